"""SmolLM3ForCausalLM: Llama-like, with no positions in every fourth layer (NoPE, arXiv 2305.19466)."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rotary,
    windows_by_type,
)


def read_smollm3(config: Config) -> Written:
    """With `use_sliding_window` the layers without positions have the window, unless `layer_types` says otherwise."""
    layers, turned = layer_count(config), rotary(config)
    rotates = _rotates(config, layers)
    slides, bias = config.flag("use_sliding_window"), config.flag("attention_bias")
    config.note("sliding_window", "max_window_layers")  # void unless the switch is on; the second is Qwen's
    window = config.size_or_none("sliding_window") if slides else None
    types = config.layer_types(layers, (FULL, SLIDING))
    if types is None:
        types = [FULL if has_rope or window is None else SLIDING for has_rope in rotates]
    why_none = "`sliding_window` is null" if slides else "`use_sliding_window` is false"
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows_by_type(config, types, window, why_none=why_none),
        positions=[turned if has_rope else NO_POSITIONS for has_rope in rotates],
        attention={"bias": bias, "out_bias": bias},
        mlp_bias=config.flag("mlp_bias"),
    )


def _rotates(config: Config, layers: int) -> list[bool]:
    """`no_rope_layers` holds 1 for a layer with RoPE, and 0 for one without; null: one in `no_rope_layer_interval`."""
    written, key = config["no_rope_layers"], "no_rope_layers"
    if written is None:
        every = config.size("no_rope_layer_interval")
        return [(layer + 1) % every != 0 for layer in range(layers)]
    config.note("no_rope_layer_interval")
    if not isinstance(written, list) or len(written) != layers or any(entry not in (0, 1) for entry in written):
        what = f"`{key}` must be a list of {layers} numbers, 1 for RoPE and 0 for none, got {entries(written)}"
        raise config.refusal(what, "one number for each layer", key)
    return [bool(entry) for entry in written]


READERS = {"smollm3": read_smollm3}
CLASSES = {"smollm3": ("SmolLM3ForCausalLM",)}
