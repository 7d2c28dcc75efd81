"""Mistral (arXiv 2310.06825) and Ministral: Llama without any bias, and sliding windows (null for none)."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    floor_width_per_head,
    layer_count,
    llama_like,
    windows_by_type,
)


def read_mistral(config: Config) -> Written:
    """`sliding_window` in every layer; where the key is absent it is the class default: 4,096, in Ministral-3 none."""
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    if window is not None:
        config.expect("use_sliding_window", None, True)  # engines differ on whether it beats the size in this family
    config.layer_types(layers, (FULL if window is None else SLIDING,))
    return _whole(config, [window] * layers)


def read_ministral(config: Config) -> Written:
    """`layer_types` says which layers slide; where it is absent all do, unless `sliding_window` is null."""
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    types = config.layer_types(layers, (FULL, SLIDING)) or [FULL if window is None else SLIDING] * layers
    return _whole(config, windows_by_type(config, types, window, why_none="`sliding_window` is null"))


def _whole(config: Config, windows: list[int | None]) -> Written:
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=windows,
        attention={},
    )


READERS = {"ministral": read_ministral, "ministral3": read_mistral, "mistral": read_mistral}
CLASSES = {
    "ministral": ("MinistralForCausalLM",),
    "ministral3": ("Ministral3ForCausalLM",),
    "mistral": ("MistralForCausalLM",),
}
