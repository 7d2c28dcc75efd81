"""Lfm2ForCausalLM, Lfm2MoeForCausalLM (arXiv 2511.23404) and Lfm3ForCausalLM: gated short convolutions, and in some
layers attention with QK-norm.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    rope_mapping,
    windows_by_type,
)
from costcalc.sources.huggingface.recurrent import agree
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    dense_first,
    layers_by_kind,
    mixture,
    numbered,
    per_head,
    rotations,
    whole,
    whole_number,
)

CONV = "conv"
NAMES = {CONV: "conv", FULL: "attention"}
NAMES_OF_THREE = {CONV: "conv", FULL: "global", SLIDING: "local"}
TIE, WIDTH = "tie_word_embeddings", "intermediate_size"
"""Keys of which published files have older names."""
REMARKS = "block_mlp_init_scale block_norm_eps block_out_init_scale block_use_xavier_init conv_use_xavier_init"
ROTATED, PROPORTIONAL = 0.5, "proportional"
"""The part of a head that LFM3's layers rotate that see all, as pairs of the whole head at its frequencies."""


def read_lfm2(config: Config) -> Written:
    """`layer_types`, else attention in the layers that `full_attn_idxs` names, or in all where that is null. What else
    the published files spell out is what the class builds.
    """
    config.note(*REMARKS.split())
    width, heads = config.size("hidden_size"), config.size("num_attention_heads")
    agree(config, block_dim=width, conv_dim=width, conv_dim_out=width, num_heads=heads)
    agree(config, block_use_swiglu=True, use_pos_enc=True)
    layers = layer_count(config)
    there = None if config["full_attn_idxs"] is None else numbered(config, "full_attn_idxs", layers)
    counted = [FULL if there is None or layer in there else CONV for layer in range(layers)]
    types = config.layer_types(layers, (CONV, FULL)) or counted
    return _read(config, types, [DENSE] * layers, {DENSE: _gated(_adjusted(config))})


def read_lfm2_moe(config: Config) -> Written:
    """`layer_types` has to be there. Experts from layer `num_dense_layers` on."""
    layers = layer_count(config)
    types = config.layer_types(layers, (CONV, FULL))
    if types is None:
        what = "`layer_types` says which layers attend, and nothing stands in for it"
        raise config.refusal(what, f"write {CONV} or {FULL} for each layer", "layer_types")
    kinds = dense_first(layers, whole_number(config, "num_dense_layers"))
    config.note("intermediate_size")  # where no layer is dense
    router = {
        "correction": "buffer" if config.flag("use_expert_bias") else False,
        "scores": "sigmoid",
        "normalize": config.flag("norm_topk_prob"),
        "scale": config.number_or_none("routed_scaling_factor") or 1.0,
    }
    networks: Written = {SPARSE: mixture(config, _gated(config.size("moe_intermediate_size")), router=router)}
    if DENSE in kinds:
        networks[DENSE] = _gated(config.size("intermediate_size"))
    return _read(config, types, kinds, networks)


def read_lfm3(config: Config) -> Written:
    """Of every four layers the third sees all, and the first has a window, but for the first of all, where
    `layer_types` is null. Gates of the heads' outputs and norms on the sublayers' outputs may be switched off.
    """
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    counted = [FULL if n % 4 == 2 else SLIDING if n % 4 == 0 and n else CONV for n in range(layers)]
    types = config.layer_types(layers, (CONV, FULL, SLIDING)) or counted
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    bias, gates = config.flag("attention_bias"), config.flag("use_attention_gate")
    more = {"bias": bias, "out_bias": bias, "output_gate": "per_head" if gates else None}
    norms = "sandwich" if config.flag("use_sandwich_norm") else "pre"
    networks = {DENSE: _gated(config.size("intermediate_size"))}
    return _read(config, types, [DENSE] * layers, networks, window=window, norms=norms, **more)


def _read(
    config: Config,
    types: list[str],
    kinds: list[str],
    networks: dict[str, Written],
    *,
    window: int | None = None,
    norms: str = "pre",
    **core: Any,
) -> Written:
    """A convolution or an attention in each layer, and QK-norm per head in the latter."""
    config.values[TIE] = _older(config, "tie_embedding", TIE)
    norm: Written = {"kind": "rmsnorm", "eps": config.number("norm_eps")}
    names = NAMES_OF_THREE if SLIDING in types else NAMES
    head_dim = config.size("head_dim") if "head_dim" in config.defaults else free_head_dim(config)
    turned = _positions(config, head_dim)
    mixer = {"kind": "short_conv", "d_conv": config.size("conv_L_cache"), "bias": config.flag("conv_bias")}
    made: dict[str, Written] = {names[CONV]: {"positions": NO_POSITIONS, "mixer": mixer}}
    for word in names.keys() & turned.keys():
        reach = window if word == SLIDING else None
        kv_heads = config.size("num_key_value_heads")  # a null has no meaning to these classes
        of_word = attention(config, head_dim=head_dim, kv_heads=kv_heads, qk_norm=per_head(norm), window=reach, **core)
        made[names[word]] = {"positions": turned[word], "attention": of_word}

    def layer_of(word: str, kind: str) -> Written:
        return {"norm": norm, "norms": norms, **made[word], "feed_forward": networks[kind]}

    order = layers_by_kind(list(zip([names[word] for word in types], kinds, strict=True)), layer_of)
    return whole(config, norm, turned.get(SLIDING, turned[FULL]), order)


def _positions(config: Config, head_dim: int) -> dict[str, Written]:
    """Rotations of each type of layer with attention that the class has."""
    if "sliding_window" not in config.defaults:
        return {FULL: rotations(config, head_dim, theta=1e6)}
    new = rope_mapping(config)
    of_all = rotations(config, head_dim, theta=1e6, part=1.0 if new else ROTATED, word=FULL)
    own = new.get(FULL, new)
    is_spread = not new or (isinstance(own, dict) and own.get("rope_type") == PROPORTIONAL)
    if is_spread and of_all["rotary_dim"] < head_dim:
        of_all["frequencies"] = "head"
    return {FULL: of_all, SLIDING: rotations(config, head_dim, theta=1e4, part=1.0, word=SLIDING)}


def _older(config: Config, old: str, new: str) -> Any:
    """The value under an older key, which wins where it is written, or else under the class's own."""
    config.note(old, new)
    return config.data[old] if old in config.data else config.values[new]


def _gated(width: int) -> Written:
    return {"kind": "gated", "d_ff": width, "activation": "silu", "bias": False}


def _adjusted(config: Config) -> int:
    """`block_ff_dim` or `intermediate_size`; under `block_auto_adjust_ff_dim` two thirds of it, times a factor, rounded
    up to a multiple: as in the first Llama's code.
    """
    config.values[WIDTH] = _older(config, "block_ff_dim", WIDTH)
    width = config.size(WIDTH)
    config.note("block_ffn_dim_multiplier", "block_multiple_of")  # void unless the switch is on
    if not config.flag("block_auto_adjust_ff_dim"):
        return width
    factor, multiple = config.number("block_ffn_dim_multiplier"), config.size("block_multiple_of")
    width = int(factor * int(2 * width / 3))
    if width < 1:
        what = f"`{WIDTH}` {config.values[WIDTH]} leaves no width under `block_auto_adjust_ff_dim`"
        raise config.refusal(what, "change one of the two", WIDTH)
    return -(-width // multiple) * multiple


READERS = {"lfm2": read_lfm2, "lfm2_moe": read_lfm2_moe, "lfm3": read_lfm3}
CLASSES = {"lfm2": ("Lfm2ForCausalLM",), "lfm2_moe": ("Lfm2MoeForCausalLM",), "lfm3": ("Lfm3ForCausalLM",)}
