"""What Llama-like decoders share: RMSNorm, RoPE, grouped-query attention without or with biases, a gated network.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.layers import merged_layers

Written = dict[str, Any]
FULL, SLIDING = "full_attention", "sliding_attention"
"""Words of `layer_types`."""


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
) -> Written:
    """The full form; `windows` has one entry a layer, `attention` whatever the class adds to the common fields."""
    common = {
        "kind": "grouped_query",
        "heads": config.size("num_attention_heads"),
        "kv_heads": kv_heads,
        "head_dim": _even(config, head_dim),
        **attention,
    }
    feed_forward = {
        "kind": "gated",
        "d_ff": config.size("intermediate_size"),
        "activation": config.activation(activation),
        "bias": mlp_bias,
    }
    norm, positions = rms_norm(config), rotary(config)
    block = {"norm": norm, "positions": positions, "norms": norms, "feed_forward": feed_forward}
    layer_of = {window: {**block, "attention": {**common, "window": window}} for window in set(windows)}
    return {
        **outline(config),
        "decoder": {
            "norm": norm,
            "positions": positions,
            "layers": merged_layers([layer_of[window] for window in windows]),
        },
    }


def rms_norm(config: Config) -> Written:
    """RMSNorm with the class's one eps."""
    return {"kind": "rmsnorm", "eps": config.number("rms_norm_eps")}


def _even(config: Config, head_dim: int) -> int:
    if head_dim % 2:
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


def windows_by_type(config: Config, types: list[str], window: int | None, *, why_none: str) -> list[int | None]:
    """The window of each layer; a sliding layer without a window is refused with `why_none`."""
    if window is None and SLIDING in types:
        raise config.refusal(f"`layer_types` has {SLIDING}, but {why_none}", "change one of the two", "layer_types")
    return [window if word == SLIDING else None for word in types]


def outline(config: Config) -> Written:
    """Vocabulary, width, context and the tie."""
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("hidden_size"),
        "context_length": config.size_or_none("max_position_embeddings"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
    }


def layer_count(config: Config, key: str = "num_hidden_layers") -> int:
    """The number of layers, bounded so that a list of them can be made."""
    return config.size(key, largest=MOST_LAYERS)


def rotary(config: Config) -> Written:
    """RoPE with its base: in `rope_scaling` or else `rope_parameters`, and beside them in the old key `rope_theta`."""
    new = config.values.get("rope_scaling") or config["rope_parameters"]
    theta = config["rope_theta"]
    if isinstance(new, dict) and new.get("rope_theta") is not None:
        theta = new["rope_theta"]
    return {"kind": "rope"} if theta is None else {"kind": "rope", "theta": theta}
