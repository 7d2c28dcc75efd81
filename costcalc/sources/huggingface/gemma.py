"""Gemma2ForCausalLM (arXiv 2408.00118): four norms a layer, and a window in every other layer, the first included."""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    layer_count,
    llama_like,
    width_per_head,
    windows_by_type,
)


def read_gemma2(config: Config) -> Written:
    """Raw configs do not spell the pattern out: the class's own is sliding, full, sliding, full, ..."""
    layers, bias = layer_count(config), config.flag("attention_bias")
    width_per_head(config)  # the class insists that it divides, although head_dim is free
    types = config.layer_types(layers, (FULL, SLIDING)) or [FULL if layer % 2 else SLIDING for layer in range(layers)]
    window = config.size_or_none("sliding_window")
    config.expect("use_sliding_window", None, True)  # engines differ on whether it beats the size in this family
    config.expect("sliding_window_size", None, window)  # an older name, which real files write beside the new one
    core = {
        "scale": config.number("query_pre_attn_scalar") ** -0.5,
        "softcap": config.number_or_none("attn_logit_softcapping"),
    }
    written = llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=config.size("head_dim"),
        windows=windows_by_type(config, types, window, why_none="`sliding_window` is null"),
        attention={"bias": bias, "out_bias": bias, **core},
        activation="hidden_activation",
        norms="sandwich",
    )
    return {
        **written,
        "embedding": {"scale": math.sqrt(written["d_model"])},
        "head": {"kind": "vocabulary", "softcap": config.number_or_none("final_logit_softcapping")},
    }


READERS = {"gemma2": read_gemma2}
CLASSES = {"gemma2": ("Gemma2ForCausalLM",)}
