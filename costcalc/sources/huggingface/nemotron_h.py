"""NemotronHForCausalLM (Nemotron-H, arXiv 2504.03624; Nemotron Nano 2; Nemotron 3): one sublayer a layer, which is
Mamba-2, attention without positions, a network of two matrices, or experts of such.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written, layer_count
from costcalc.sources.huggingface.mamba import check_groups
from costcalc.sources.huggingface.recurrent import LINEAR, agree, kinds_of_layers, state_dtype
from costcalc.sources.huggingface.sparse import (
    ROPE_KEYS,
    agreed,
    attention,
    corrected_router,
    later_tokens,
    mixture,
    whole,
)

EXPERTS, NETWORK = "moe", "mlp"
LETTERS = {"M": LINEAR, "*": FULL, "-": NETWORK, "E": EXPERTS}
NAMES = {LINEAR: "mamba", FULL: "attention", NETWORK: "network", EXPERTS: "experts"}
USUAL = [LINEAR, EXPERTS, FULL, NETWORK]
"""The layers of the class where nothing says which."""

BEFORE = {
    "n_groups": "mamba_n_groups",
    "conv_kernel": "mamba_d_conv",
    "use_conv_bias": "mamba_conv_bias",
    "chunk_size": "mamba_chunk_size",
}
"""What other files call a field: there the class takes it from, if it is written."""

REMARKS = """
    expand mamba_expand mamba_dt_min mamba_dt_max mamba_dt_limit mamba_dt_init_floor time_step_rank
    mtp_hybrid_override_pattern mtp_layers_block_type
"""
"""Widths that the heads give, ranges of the step size, and what the layers for later tokens are."""


def read_nemotron_h(config: Config) -> Written:
    """Which layer is which: `layers_block_type`, or a letter for each in `hybrid_override_pattern`."""
    config.note(*REMARKS.split(), *ROPE_KEYS)
    config.overrule("tie_word_embeddings", False)  # the class ties nothing
    for key in ("attention_bias", "mamba_proj_bias", "sliding_window"):
        config.expect(key, None, False)  # the class builds the same whatever they say, other code of this type may not
    kinds = _kinds(config)
    norm = {"kind": "rmsnorm", "eps": config.number("layer_norm_epsilon")}
    made = {LINEAR: _mixer, FULL: _attention, NETWORK: _network, EXPERTS: _experts}
    layers = {
        kind: {"name": NAMES[kind], "norm": norm, "positions": NO_POSITIONS, **made[kind](config)}
        for kind in dict.fromkeys(kinds)
    }
    _note_what_is_not_there(config, kinds)
    later = later_tokens(config, "num_nextn_predict_layers")
    return {**whole(config, norm, NO_POSITIONS, [layers[kind] for kind in kinds]), **later}


def _kinds(config: Config) -> list[str]:
    written, pattern = config["layers_block_type"], config["hybrid_override_pattern"]
    if written == []:
        raise config.refusal("`layers_block_type` lists no layer", "write one word a layer", "layers_block_type")
    listed = written
    if written is not None:
        depth = len(written) if isinstance(written, list) else 1
        listed = kinds_of_layers(config, "layers_block_type", min(depth, MOST_LAYERS), tuple(NAMES))
    spelled = None if pattern is None else _spelled(config, pattern)
    kinds = agreed(config, listed, spelled, "hybrid_override_pattern") or USUAL
    if config["num_hidden_layers"] is not None and layer_count(config) != len(kinds):
        what = f"`num_hidden_layers` is {layer_count(config)}, but {len(kinds)} layers are listed"
        raise config.refusal(what, "change one of the two", "num_hidden_layers")
    return kinds


def _spelled(config: Config, pattern: object) -> list[str]:
    key = "hybrid_override_pattern"
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MOST_LAYERS:
        raise config.refusal(f"`{key}` must be a letter a layer, got {shown(pattern)}", f'write "{key}": "M-M*-"', key)
    for letter in pattern:
        if letter not in LETTERS:
            what = f"`{key}` has {shown(letter)}, which is not read"
            raise config.refusal(what, f"one of: {' '.join(LETTERS)}", key)
    return [LETTERS[letter] for letter in pattern]


def _note_what_is_not_there(config: Config, kinds: list[str]) -> None:
    """Sizes of sublayers that no layer has say nothing."""
    sizes = {
        LINEAR: "mamba_num_heads mamba_head_dim n_groups ssm_state_size conv_kernel chunk_size use_conv_bias use_bias",
        FULL: "num_attention_heads num_key_value_heads head_dim attention_head_dim",
        NETWORK: "intermediate_size",
        EXPERTS: """
            n_routed_experts n_shared_experts num_experts_per_tok moe_intermediate_size moe_latent_size
            moe_shared_expert_intermediate_size n_group topk_group norm_topk_prob
        """,
    }
    for kind in sizes.keys() - set(kinds):
        config.note(*sizes[kind].split())
    config.note(*BEFORE, *BEFORE.values(), "mamba_hidden_act", "mamba_ssm_cache_dtype", "mlp_bias", "mlp_hidden_act")


def _named(config: Config, field: str) -> str:
    """The key that holds a field."""
    return field if config[BEFORE[field]] is None else BEFORE[field]


def _mixer(config: Config) -> Written:
    heads, groups = config.size("mamba_num_heads"), config.size(_named(config, "n_groups"))
    check_groups(config, heads, groups=(_named(config, "n_groups"), groups))
    bias = config.flag("use_bias")
    mixer = {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": config.size("mamba_head_dim"),
        "d_state": config.size("ssm_state_size"),
        "groups": groups,
        "d_conv": config.size(_named(config, "conv_kernel")),
        "conv_bias": config.flag(_named(config, "use_conv_bias")),
        "bias": bias,
        "out_bias": bias,
        "gated_norm": True,
        "norm_before_gate": False,
        "chunk": config.size(_named(config, "chunk_size")),
        "activation": config.activation("mamba_hidden_act"),
        "state_dtype": state_dtype(config, "mamba_ssm_cache_dtype"),
    }
    return {"mixer": mixer}


def _attention(config: Config) -> Written:
    """Files of the first models call the size of heads `attention_head_dim`."""
    key = "head_dim" if "head_dim" in config.data or config["attention_head_dim"] is None else "attention_head_dim"
    head_dim, kv_heads = config.size(key), config.size("num_key_value_heads")
    agree(config, attention_head_dim=head_dim)
    return {"attention": attention(config, head_dim=head_dim, kv_heads=kv_heads)}


def _dense(config: Config, width: str, *, bias: bool) -> Written:
    activation = config.activation("mlp_hidden_act")
    return {"kind": "dense", "d_ff": config.size(width), "activation": activation, "bias": bias}


def _network(config: Config) -> Written:
    return {"feed_forward": _dense(config, "intermediate_size", bias=config.flag("mlp_bias"))}


def _experts(config: Config) -> Written:
    """The one for all tokens reads what the layer reads, the routed ones `moe_latent_size` numbers of it; `mlp_bias` is
    not on the routed ones.
    """
    config.expect("n_shared_experts", None, 1)
    bias, latent = config.flag("mlp_bias"), config.size_or_none("moe_latent_size")
    network = mixture(
        config,
        _dense(config, "moe_intermediate_size", bias=False),
        router=corrected_router(config),
        shared=_dense(config, "moe_shared_expert_intermediate_size", bias=bias),
        experts="n_routed_experts",
        latent_dim=latent,
        latent_bias=bias and latent is not None,
    )
    return {"feed_forward": network}


READERS = {"nemotron_h": read_nemotron_h}
CLASSES = {"nemotron_h": ("NemotronHForCausalLM",)}
