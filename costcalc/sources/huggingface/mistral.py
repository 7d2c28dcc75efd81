"""MistralForCausalLM: Llama without any bias, and one sliding window for every layer (null for none)."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    floor_width_per_head,
    layer_count,
    llama_like,
)


def read_mistral(config: Config) -> Written:
    """`sliding_window` in every layer; where the key is absent it is the class default of 4,096."""
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    if window is not None:
        config.expect("use_sliding_window", None, True)  # engines differ on whether it beats the size in this family
    config.layer_types(layers, (FULL if window is None else SLIDING,))
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=[window] * layers,
        attention={},
    )


READERS = {"mistral": read_mistral}
CLASSES = {"mistral": ("MistralForCausalLM",)}
