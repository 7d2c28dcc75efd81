"""Decoders like Llama whose layers have sizes of their own, in lists: DeciLM, the Nemotron models that were found by a
search over layers (Puzzle, arXiv 2411.19146), and OpenELM (2404.14619). The library has no class for them.
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import (
    Written,
    gated,
    layer_count,
    rms_norm,
    rotary,
    rotatable,
    width_per_head,
)
from costcalc.sources.huggingface.sparse import whole

BLOCKS = "block_configs"
UNREAD = ("sparsify", "window_length", "num_sink_tokens", "unshifted_sink", "use_prefill_window_in_sink_attention")
MULTIPLE = 256
"""Widths of networks are rounded up to it."""


def read_deci(config: Config) -> Written:
    """DeciLM-6B and 7B: key/value heads of each layer in a list."""
    key, layers = "num_key_value_heads_per_layer", layer_count(config)
    config.note("num_key_value_heads")
    of_layer = {kv_heads: _layer(config, kv_heads, gated(config)) for kv_heads in _numbers(config, key, layers)}
    made = [of_layer[kv_heads] for kv_heads in _numbers(config, key, layers)]
    return whole(config, rms_norm(config), rotary(config), made)


def read_nemotron_nas(config: Config) -> Written:
    """Each layer says in `block_configs` how many query heads share a key/value head, and how wide its network is; or
    that it has no attention, or no network. A layer with neither does nothing, and is left out.
    """
    config.note("num_key_value_heads", "intermediate_size", "pretraining_tp")
    layers, listed = layer_count(config), config[BLOCKS]
    if not isinstance(listed, list) or len(listed) != layers:
        raise config.refusal(f"`{BLOCKS}` must be a list of {layers} layers, got {entries(listed)}", "one each", BLOCKS)
    made: dict[tuple[int | None, int | None], Written] = {}
    order = []
    for index, block in enumerate(listed):
        kv_heads = _kv_heads(config, _part(config, block, "attention", index), index)
        d_ff = _width(config, _part(config, block, "ffn", index), index)
        if (kv_heads, d_ff) != (None, None):
            order.append((kv_heads, d_ff))
            made.setdefault((kv_heads, d_ff), _nemotron_layer(config, kv_heads, d_ff))
    if not order:
        raise config.refusal(f"no layer of `{BLOCKS}` does anything", "leave one its attention", BLOCKS)
    return whole(config, rms_norm(config), rotary(config), [made[kind] for kind in order])


def _nemotron_layer(config: Config, kv_heads: int | None, d_ff: int | None) -> Written:
    bias = config.flag("mlp_bias")
    activation = config.activation("hidden_act")
    network = None if d_ff is None else {"kind": "gated", "d_ff": d_ff, "activation": activation, "bias": bias}
    return _layer(config, kv_heads, network)


def _layer(config: Config, kv_heads: int | None, network: Written | None) -> Written:
    """Without an attention where there are no key/value heads, without a network where there is none."""
    attention, bias = None, config.flag("attention_bias")
    if kv_heads is not None:
        heads = config.size("num_attention_heads")
        head_dim = rotatable(config, width_per_head(config), [rotary(config)])
        attention = {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
        attention |= {"bias": bias, "out_bias": bias}
    parts = {"attention": attention, "feed_forward": network}
    there = {name: part for name, part in parts.items() if part is not None}
    return {"norm": rms_norm(config), "positions": rotary(config), **there}


def _part(config: Config, block: object, name: str, index: int) -> dict[str, Any]:
    """The keys of a layer's attention or network, of which those that change what it does must not be set."""
    part = block.get(name) if isinstance(block, dict) and set(block) == {"attention", "ffn"} else None
    if not isinstance(part, dict):
        what = f"`{BLOCKS}` has {shown(block)} for layer {index}"
        raise config.refusal(what, 'write {"attention": {...}, "ffn": {...}}', BLOCKS, index)
    read = {"attention": {"n_heads_in_group"}, "ffn": {"ffn_mult", "intermediate_size", "hidden_act"}}[name]
    for key, value in part.items():
        is_known = key in read or key == "no_op" or (value in (None, False) and key in (*UNREAD, "replace_with_linear"))
        if not is_known or (key == "hidden_act" and value != config["hidden_act"]):
            what = f"`{shown(key)[1:-1]}`: {shown(value)} in `{BLOCKS}` is not read for {config.model_type}"
            raise config.refusal(what, "describe the model in YAML instead", BLOCKS, index)
    return part


def _kv_heads(config: Config, part: dict[str, Any], index: int) -> int | None:
    """Heads over the size of a group; None where the layer has no attention."""
    if part.get("no_op"):
        return None
    heads, group = config.size("num_attention_heads"), part.get("n_heads_in_group")
    if type(group) is not int or group < 1 or heads % group:
        what = f"`n_heads_in_group` {shown(group)} of layer {index} does not divide {heads} heads"
        raise config.refusal(what, 'write "n_heads_in_group": 8', BLOCKS, index)
    return heads // group


def _width(config: Config, part: dict[str, Any], index: int) -> int | None:
    """`intermediate_size`, or two thirds of `ffn_mult` times the width, rounded down and then up to a multiple of 256;
    None where the layer has no network.
    """
    if part.get("no_op"):
        return None
    factor, written = part.get("ffn_mult"), part.get("intermediate_size")
    if type(written) is int and written > 0 and factor is None:
        return written
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 1000 or written is not None:
        what = f"`ffn_mult` {shown(factor)} of layer {index} must be a number above 0, and no width beside it"
        raise config.refusal(what, 'write "ffn_mult": 5.25', BLOCKS, index)
    exact = int(2 * factor * config.size("hidden_size") / 3)
    return -(-exact // MULTIPLE) * MULTIPLE or MULTIPLE


def _numbers(config: Config, key: str, layers: int) -> list[int]:
    """A list of one whole number a layer."""
    listed = config[key]
    if not isinstance(listed, list) or len(listed) != layers or any(type(n) is not int or n < 1 for n in listed):
        what = f"`{key}` must be a list of {layers} whole numbers, got {entries(listed)}"
        raise config.refusal(what, "one for each layer", key)
    return listed


# ------------------------------------------------------------------------------------------------------- OpenELM


def read_openelm(config: Config) -> Written:
    """Query heads, key/value heads and the width of the network of each layer in lists; QK-norm; a tied head where
    `share_input_output_layers` says so.
    """
    config.note("num_gqa_groups", "qkv_multipliers", "rope_max_length")
    config.expect("normalization_layer_name", "rms_norm")
    config.expect("ffn_with_glu", True)
    layers = layer_count(config)
    sizes = zip(
        _numbers(config, "num_query_heads", layers),
        _numbers(config, "num_kv_heads", layers),
        _openelm_widths(config, layers),
        strict=True,
    )
    order = list(sizes)
    made = {kind: _openelm_layer(config, *kind) for kind in dict.fromkeys(order)}
    norm: Written = {"kind": "rmsnorm", "eps": 1e-6}
    return whole(config, norm, rotary(config), [made[kind] for kind in order])


def _openelm_layer(config: Config, heads: int, kv_heads: int, d_ff: int) -> Written:
    norm: Written = {"kind": "rmsnorm", "eps": 1e-6}
    qk_norm = {"kind": "per_head", "norm": norm} if config.flag("normalize_qk_projections") else None
    where = rotary(config)
    head_dim = rotatable(config, config.size("head_dim"), [where])
    attention = {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    return {
        "norm": norm,
        "positions": where,
        "attention": {**attention, "qk_norm": qk_norm},
        "feed_forward": {"kind": "gated", "d_ff": d_ff, "activation": config.activation("hidden_act")},
    }


def _openelm_widths(config: Config, layers: int) -> list[int]:
    """Factors of the width, rounded to the nearest multiple of `ffn_dim_divisor`, but never down by a tenth."""
    key, width, step = "ffn_multipliers", config.size("hidden_size"), config.size("ffn_dim_divisor")
    listed = config[key]
    is_list = isinstance(listed, list) and len(listed) == layers
    if not is_list or any(isinstance(f, bool) or not isinstance(f, (int, float)) or not 0 < f < 1000 for f in listed):
        what = f"`{key}` must be a list of {layers} numbers above 0, got {entries(listed)}"
        raise config.refusal(what, "one for each layer", key)
    exact = [factor * width for factor in listed]
    near = [max(step, int(size + step / 2) // step * step) for size in exact]
    return [made + step if made < 0.9 * size else made for made, size in zip(near, exact, strict=True)]


READERS = {"deci": read_deci, "nemotron-nas": read_nemotron_nas, "openelm": read_openelm}
CLASSES = {
    "deci": ("DeciLMForCausalLM",),
    "nemotron-nas": ("DeciLMForCausalLM",),
    "openelm": ("OpenELMForCausalLM",),
}
CODE = {"nemotron-nas": ("modeling_decilm",), "deci": ("modeling_decilm",)}
