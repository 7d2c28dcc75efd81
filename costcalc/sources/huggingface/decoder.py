"""What Llama-like decoders share: RMSNorm, RoPE, grouped-query attention without or with biases, a gated network.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.layers import merged_layers

Written = dict[str, Any]
FULL, SLIDING = "full_attention", "sliding_attention"
"""Words of `layer_types`."""
NO_POSITIONS: Written = {"kind": "none"}
NAMES = ("global", "local")
"""Of layers that see everything, and of those that have a window, in a stack of both."""


def llama_like(
    config: Config,
    *,
    kv_heads: int | None,
    head_dim: int,
    windows: list[int | None],
    attention: Written,
    mlp_bias: bool = False,
    activation: str = "hidden_act",
    norms: str = "pre",
    norm: Written | None = None,
    positions: Sequence[Written] | None = None,
    feed_forward: Written | None = None,
    block: Written | None = None,
) -> Written:
    """The full form. `windows` has one entry a layer, and so has `positions`, where RoPE is not the same in all layers.

    `attention` and `block` hold whatever the class adds to the common fields; `norm` stands in for an RMSNorm, and
    `feed_forward` for a gated network.
    """
    norm = rms_norm(config) if norm is None else norm
    where = [rotary(config)] * len(windows) if positions is None else list(positions)
    common = {
        "kind": "grouped_query",
        "heads": config.size("num_attention_heads"),
        "kv_heads": kv_heads,
        "head_dim": rotatable(config, head_dim, where),
        **attention,
    }
    network = gated(config, activation, bias=mlp_bias) if feed_forward is None else feed_forward
    whole = {"norm": norm, "norms": norms, "feed_forward": network, **(block or {})}
    layers = layers_of(whole, common, windows, where)
    below = next((place for place in where if place != NO_POSITIONS), NO_POSITIONS)
    return {**outline(config), "decoder": {"norm": norm, "positions": below, "layers": layers}}


def layers_of(
    block: Written, attention: Written, windows: Sequence[int | None], positions: Sequence[Written]
) -> list[Written]:
    """The layers, merged: of each its window and its positions, beside what they have in common.

    They are called "global" and "local" where only windows tell them apart, with what goes along with those.
    """
    kinds: list[tuple[int | None, Written]] = []
    order: list[int] = []
    last: tuple[int | None, Written] | None = None
    for kind in zip(windows, positions, strict=True):
        if kind != last:  # the usual layer is like the one before it
            if kind not in kinds:
                kinds.append(kind)
            index, last = kinds.index(kind), kind
        order.append(index)
    names: list[Written] = [{} for _ in kinds]
    if len(kinds) == 2 and sum(window is None for window, _ in kinds) == 1:
        names = [{"name": NAMES[window is not None]} for window, _ in kinds]
    distinct = [
        {**name, **block, "positions": where, "attention": {**attention, "window": window}}
        for name, (window, where) in zip(names, kinds, strict=True)
    ]
    return merged_layers([distinct[index] for index in order])


def gated(config: Config, activation: str = "hidden_act", *, bias: bool = False) -> Written:
    """The gated network, or with `bias` one with biases on all three matrices."""
    return _network(config, "gated", activation, bias)


def dense(config: Config, activation: str = "hidden_act", *, bias: bool = False) -> Written:
    """The network of two matrices."""
    return _network(config, "dense", activation, bias)


def _network(config: Config, kind: str, activation: str, bias: bool) -> Written:
    return {
        "kind": kind,
        "d_ff": config.size("intermediate_size"),
        "activation": config.activation(activation),
        "bias": bias,
    }


def rms_norm(config: Config) -> Written:
    """RMSNorm with the class's one eps."""
    return {"kind": "rmsnorm", "eps": config.number("rms_norm_eps")}


def layer_norm(config: Config, key: str = "layer_norm_eps", *, bias: bool = True) -> Written:
    """LayerNorm with the class's one eps."""
    return {"kind": "layernorm", "eps": config.number(key), "bias": bias}


def rotatable(config: Config, head_dim: int, positions: Sequence[Written]) -> int:
    """The size of a head; an odd one is refused where all of it is rotated."""
    turned = any(where["kind"] == "rope" and where.get("rotary_dim") is None for where in positions)
    if turned and head_dim % 2:
        raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change `head_dim`", "head_dim")
    return head_dim


def width_per_head(config: Config) -> int:
    """hidden_size / num_attention_heads, where the class insists that it divides."""
    width, heads = config.size("hidden_size"), config.size("num_attention_heads")
    if width % heads:
        what = f"`hidden_size` {width} is not a multiple of `num_attention_heads` {heads}"
        raise config.refusal(what, "change one of the two", "hidden_size")
    return width // heads


def floor_width_per_head(config: Config) -> int:
    """hidden_size // num_attention_heads, rounded down as the class does."""
    return max(config.size("hidden_size") // config.size("num_attention_heads"), 1)


def free_head_dim(config: Config) -> int:
    """`head_dim` where it is written, although it is no field of the class; else the width over the heads."""
    return config.size("head_dim") if "head_dim" in config.data else floor_width_per_head(config)


def types_by_period(config: Config, period: int, *, full: int, key: str | None = None) -> list[str]:
    """`layer_types`, or where it is not written the class's own pattern: of every `period` layers, the one with the
    index `full` sees everything. A pattern that does not divide the depth breaks off.

    key: the older key that may hold the period; beside `layer_types` it has to agree.
    """
    layers = layer_count(config)
    types = config.layer_types(layers, (FULL, SLIDING))
    counts = key is not None and key in config.data and (types is None or config.data[key] is not None)
    if key is not None and counts:
        period = config.size(key)
    counted = [FULL if layer % period == full % period else SLIDING for layer in range(layers)]
    if key is not None and counts and types not in (None, counted):
        raise config.refusal(f"`layer_types` and `{key}` disagree", "keep one of the two", key)
    return counted if types is None else types


def windows_by_type(config: Config, types: list[str], window: int | None, *, why_none: str) -> list[int | None]:
    """The window of each layer; a sliding layer without a window is refused with `why_none`."""
    if window is None and SLIDING in types:
        key = "sliding_window" if config["layer_types"] is None else "layer_types"
        raise config.refusal(f"`layer_types` has {SLIDING}, but {why_none}", "change one of the two", key)
    return [window if word == SLIDING else None for word in types]


def outline(config: Config) -> Written:
    """Vocabulary, width, context and the tie."""
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("hidden_size"),
        "context_length": config.size_or_none("max_position_embeddings"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
    }


def with_rows_beyond(written: Written, rows: int) -> Written:
    """The full form with more rows in the table, which the head does not score."""
    vocab_size = written["vocab_size"]
    return {**written, "vocab_size": vocab_size + rows, "head": {"kind": "vocabulary", "rows": vocab_size}}


def layer_count(config: Config, key: str = "num_hidden_layers") -> int:
    """The number of layers, bounded so that a list of them can be made."""
    return config.size(key, largest=MOST_LAYERS)


def rotary(config: Config) -> Written:
    """RoPE with its base: in `rope_scaling` or else `rope_parameters`, and beside them in the old key `rope_theta`."""
    new = rope_mapping(config)
    theta = config["rope_theta"] if new.get("rope_theta") is None else new["rope_theta"]
    return {"kind": "rope"} if theta is None else {"kind": "rope", "theta": theta}


def rope_mapping(config: Config) -> Written:
    """What `rope_scaling`, or else `rope_parameters`, holds."""
    new = config.values.get("rope_scaling") or config["rope_parameters"]
    return new if isinstance(new, dict) else {}


def partial_rotary(config: Config, head_dim: int) -> Written:
    """RoPE of the first `partial_rotary_factor` of each head's numbers, rounded down to a whole number of them."""
    key = "partial_rotary_factor"
    old, new = config[key], rope_mapping(config).get(key)
    factor = old if new is None else new
    factor, key = 1 if factor is None else factor, config.spelled.get(key, key)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor <= 1:
        raise config.refusal(f"`{key}` must be above 0 and at most 1, got {shown(factor)}", f'write "{key}": 0.5', key)
    turned = int(head_dim * factor)
    if turned < 2 or turned % 2:
        what = f"RoPE rotates pairs, and `{key}` {factor} of a head of {head_dim} is {turned}"
        raise config.refusal(what, "change one of the two", key)
    return rotary(config) if turned == head_dim else {**rotary(config), "rotary_dim": turned}


def rotary_by_type(config: Config, old: dict[str, tuple[str, float]]) -> dict[str, Written]:
    """RoPE of each type of layer: its base in `rope_parameters`, or else under its `old` key, or the default."""
    new = config["rope_parameters"]
    found: dict[str, Written] = {}
    for word, (key, default) in old.items():
        own = new.get(word) if isinstance(new, dict) else None
        theta = own.get("rope_theta") if isinstance(own, dict) else None
        theta = config.values.get(key) if theta is None else theta
        found[word] = {"kind": "rope", "theta": default if theta is None else theta}
    return found
