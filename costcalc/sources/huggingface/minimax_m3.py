"""MiniMaxM3VLForCausalLM (MiniMax-M3's text model): layers that see everything and layers that choose blocks of keys,
QK-norm over each head, half of a head rotated, experts with a bounded gate beside one for all tokens.
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import nearest, shown
from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    agreed,
    attention,
    dense_first,
    later_tokens,
    layers_by_kind,
    marked,
    mixture,
    per_head,
    rotations,
    whole,
    words,
)

CHOOSING = "minimax_m3_sparse"
OLDER = "sparse_attention_config"
INDEX = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
    "index_local_blocks": "sparse_local_block",
}
"""A key, and what published files call it inside of OLDER, which goes before the key itself."""
AS_BUILT: dict[str, Any] = {
    "use_qk_norm": True,
    "qk_norm_type": "per_head",
    "use_gemma_norm": True,
    "use_routing_bias": True,
    "scoring_func": "sigmoid",
    "attention_output_gate": False,
    "n_shared_experts": 1,
    "swiglu_alpha": 1.702,
}
"""What published files spell out, and the class always builds."""
OF_OLDER: dict[str, Any] = {"use_sparse_attention": True, "sparse_score_type": "max", "sparse_init_block": 0}
"""The same inside of OLDER."""
FREQUENCY, VALUELESS = "sparse_attention_freq", "sparse_disable_index_value"


def read_minimax_m3(config: Config) -> Written:
    """Which layers choose stands in `layer_types`, or in published files in `sparse_attention_freq`; which have
    experts in `mlp_layer_types` or `moe_layer_freq`. The gate is x · sigmoid(1.702 x), whatever `hidden_act`.
    """
    config.note("hidden_act", "rotary_dim")
    for key, value in AS_BUILT.items():
        config.expect(key, None, value)
    layers, norm, head_dim = layer_count(config), rms_norm(config), config.size("head_dim")
    older = _older(config, layers)
    types = config.layer_types(layers, (FULL, CHOOSING)) or older.get(FREQUENCY) or [FULL] * layers
    positions = rotations(config, head_dim, theta=5e6, part=1.0)
    networks = {DENSE: _network(config, "dense_intermediate_size"), SPARSE: _experts(config)}
    core = attention(config, head_dim=head_dim, qk_norm=per_head(norm))
    choice = {"block_choice": _choice(config, older, norm)} if CHOOSING in types else {}

    def layer_of(kind: str, network: str) -> Written:
        own = choice if kind == CHOOSING else {}
        return {"norm": norm, "positions": positions, "attention": {**core, **own}, "feed_forward": networks[network]}

    kinds = list(zip(types, _networks(config, layers), strict=True))
    written = whole(config, norm, positions, layers_by_kind(kinds, layer_of))
    return {**written, **later_tokens(config, "num_mtp_modules", "num_nextn_predict_layers")}


def _networks(config: Config, layers: int) -> list[str]:
    """One word a layer; beside a list, the older count of dense layers below has to agree."""
    listed = marked(config, "moe_layer_freq", layers, off=DENSE, on=SPARSE)
    listed = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or listed
    count = config["first_k_dense_replace"]
    counted = None if count is None else dense_first(layers, config.whole("first_k_dense_replace"))
    return agreed(config, listed, counted, "first_k_dense_replace") or [SPARSE] * layers


def _network(config: Config, key: str) -> Written:
    return {
        "kind": "gated",
        "d_ff": config.size(key),
        "activation": "quick_gelu",
        "limit": config.number("swiglu_limit"),
        "up_shift": 1.0,
    }


def _experts(config: Config) -> Written:
    """Sigmoids, a correction for choosing alone, and one expert for all tokens."""
    config.expect("moe_intermediate_size", None, config["intermediate_size"])
    router = {"correction": "buffer", "scores": "sigmoid", "scale": config.number("routed_scaling_factor")}
    expert, shared = _network(config, "intermediate_size"), _network(config, "shared_intermediate_size")
    return mixture(config, expert, router=router, shared=shared, experts="num_local_experts")


def _choice(config: Config, older: Written, norm: Written) -> Written:
    """The class's own word for what is always seen may be 0; which keys a query then meets only its numbers tell."""
    sizes = {key: older[key] if key in older else config.size(key) for key in INDEX}
    heads = config.size("num_attention_heads")
    if heads % sizes["index_n_heads"]:
        what = f"`num_attention_heads` {heads} is not a multiple of `index_n_heads` {sizes['index_n_heads']}"
        raise config.refusal(what, "change one of the two", "index_n_heads")
    if sizes["index_local_blocks"] > sizes["index_topk_blocks"]:
        what = f"`index_local_blocks` {sizes['index_local_blocks']}, but {sizes['index_topk_blocks']} are chosen"
        raise config.refusal(what, "write fewer", "index_local_blocks")
    names = ("heads", "head_dim", "block", "blocks", "local")
    return {**dict(zip(names, sizes.values(), strict=True)), "norm": norm}


def _older(config: Config, layers: int) -> Written:
    """What OLDER says, under the newer names: sizes that are written there, and the type of each layer."""
    config.note(*INDEX)
    held = config[OLDER] or {}
    if not isinstance(held, dict):
        raise config.refusal(f"`{OLDER}` must hold the sizes of the choice, got {shown(held)}", "write {}", OLDER)
    known = {*INDEX.values(), *OF_OLDER, FREQUENCY, VALUELESS}
    for key, value in held.items():
        usual = OF_OLDER.get(key, value)
        if key not in known or value != usual or isinstance(value, bool) != isinstance(usual, bool):
            close = nearest(str(key), known)
            hint = f"did you mean {close[0]}?" if key not in known and close else "describe the model in YAML instead"
            raise config.refusal(f"`{key}`: {shown(value)} of `{OLDER}` is not read", hint, OLDER, key)
    found: Written = {}
    for name, key in INDEX.items():
        if key in held:
            if type(held[key]) is not int or held[key] < 1:
                what = f"`{key}` must be a whole number from 1, got {shown(held[key])}"
                raise config.refusal(what, f'write "{key}": 4', OLDER, key)
            found[name] = held[key]
    return {**found, **_frequency(config, held, layers)}


def _frequency(config: Config, held: Written, layers: int) -> Written:
    """The layers that choose; none of them has values of its own for the choice, which the class does not know."""
    lists = {}
    for key in (FREQUENCY, VALUELESS):
        marks = held.get(key)
        if marks is not None and not (isinstance(marks, list) and len(marks) == layers and {*marks} <= {0, 1}):
            what = f"`{key}` must be a list of {layers} numbers 0 or 1, got {entries(marks)}"
            raise config.refusal(what, "one for each layer", OLDER, key)
        lists[key] = marks
    frequency, valueless = lists[FREQUENCY], lists[VALUELESS]
    if frequency is None:
        return {}
    if valueless is not None and any(mark and not off for mark, off in zip(frequency, valueless, strict=True)):
        what = f"`{VALUELESS}` has a 0 for a layer that chooses: values of its own are not read"
        raise config.refusal(what, "describe the model in YAML instead", OLDER, VALUELESS)
    return {FREQUENCY: [CHOOSING if mark else FULL for mark in frequency]}


READERS = {"minimax_m3_vl_text": read_minimax_m3, "minimax_m3": read_minimax_m3}
CLASSES = {"minimax_m3_vl_text": ("MiniMaxM3VLForCausalLM",), "minimax_m3": ("MiniMaxM3ForCausalLM",)}
