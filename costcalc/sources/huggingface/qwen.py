"""Qwen2ForCausalLM (biases on q, k, v) and Qwen3ForCausalLM (QK-norm per head, `attention_bias` as in Llama), and the
text models of Qwen2-VL, which is Qwen2, and of Qwen3-VL, which is Qwen3 without windows.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rms_norm,
    windows_by_type,
)


def read_qwen2(config: Config) -> Written:
    """q, k and v always have biases, the output never; `head_dim` is no field of the class, but is used when given."""
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows(config),
        attention={"bias": True},
    )


def read_qwen3(config: Config) -> Written:
    """An RMSNorm of head_dim on queries and keys."""
    return _with_qk_norm(config, windows(config))


def read_qwen3_vl(config: Config) -> Written:
    """Qwen3 without windows; what rotates by three positions of an image's parts changes no count."""
    return _with_qk_norm(config, [None] * layer_count(config))


def _with_qk_norm(config: Config, windows_of_layers: list[int | None]) -> Written:
    bias = config.flag("attention_bias")
    qk_norm = {"kind": "per_head", "norm": rms_norm(config)}
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size("head_dim"),
        windows=windows_of_layers,
        attention={"bias": bias, "out_bias": bias, "qk_norm": qk_norm},
    )


def windows(config: Config) -> list[int | None]:
    """The window of each layer: `use_sliding_window` beats `sliding_window`; where `layer_types` is not written, the
    first `max_window_layers` layers see everything.
    """
    layers = layer_count(config)
    config.note("sliding_window", "max_window_layers")  # void unless the switch is on
    slides = config.flag("use_sliding_window")
    window = config.size_or_none("sliding_window") if slides else None
    types = config.layer_types(layers, (FULL, SLIDING))
    if types is None:
        full = layers if window is None else config.whole("max_window_layers")
        types = [SLIDING if layer >= full else FULL for layer in range(layers)]
    why_none = "`sliding_window` is null" if slides else "`use_sliding_window` is false"
    return windows_by_type(config, types, window, why_none=why_none)


READERS = {
    "qwen2": read_qwen2,
    "qwen2_5_vl_text": read_qwen2,
    "qwen2_vl_text": read_qwen2,
    "qwen3": read_qwen3,
    "qwen3_vl_text": read_qwen3_vl,
}
CLASSES = {
    "qwen2": ("Qwen2ForCausalLM",),
    "qwen2_5_vl_text": ("Qwen2_5_VLForConditionalGeneration",),
    "qwen2_vl_text": ("Qwen2VLForConditionalGeneration",),
    "qwen3": ("Qwen3ForCausalLM",),
    "qwen3_vl_text": ("Qwen3VLForConditionalGeneration",),
}
