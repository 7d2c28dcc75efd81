"""Text models that stand in wrappers alone, and are built like others: what each fixes that its kin may choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    Written,
    floor_width_per_head,
    free_head_dim,
    layer_count,
    llama_like,
    partial_rotary,
)
from costcalc.sources.huggingface.glm_moe import read_glm4_moe
from costcalc.sources.huggingface.granite import read_granite
from costcalc.sources.huggingface.like_llama import read_ernie4_5, read_hunyuan
from costcalc.sources.huggingface.llama import read_llama
from costcalc.sources.huggingface.qwen import read_qwen2
from costcalc.sources.huggingface.qwen_moe import read_qwen3_vl_moe_text

Reader = Callable[[Config], Written]


def fixed(reader: Reader, **values: Any) -> Reader:
    """`reader`, for a class that has these keys for nothing: another value of one is refused."""

    def read(config: Config) -> Written:
        for key, value in values.items():
            config.expect(key, None, value)
            config.values[key] = value
        return reader(config)

    return read


def read_glm4v(config: Config) -> Written:
    """GLM-4 of 2025 (glm4) with biases on q, k and v, and heads of the width over their number."""
    head_dim = floor_width_per_head(config)
    config.expect("head_dim", None, head_dim)
    config.expect("attention_bias", None, True)
    return _glm4(config, head_dim, bias=True)


def read_glm_ocr(config: Config) -> Written:
    """The same without biases; a head may be as wide as a file says."""
    config.expect("attention_bias", None, False)
    return _glm4(config, free_head_dim(config), bias=False)


def read_hunyuan_vl(config: Config) -> Written:
    """HunYuan's dense model; the class has no head size of its own to fall back on."""
    config.size("head_dim")
    return read_hunyuan(config)


def read_voxtral_realtime(config: Config) -> Written:
    """Mistral's layers, whose networks read what a condition scales: the delay of the transcript, by 32 numbers."""
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=[window] * layers,
        attention={},
        block={"conditioned": 32},
    )


def _glm4(config: Config, head_dim: int, *, bias: bool) -> Written:
    layers = layer_count(config)
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        attention={"bias": bias},
        norms="sandwich",
    )


READERS: dict[str, Reader] = {
    "emu3_text_model": read_llama,
    "glm4v_moe_text": fixed(read_glm4_moe, use_qk_norm=False),
    "glm4v_text": read_glm4v,
    "glm_ocr_text": read_glm_ocr,
    "granite4_vision_text": read_granite,
    "granite_docling_text": read_granite,
    "hunyuan_vl_text": read_hunyuan_vl,
    "paddleocr_vl_text": read_ernie4_5,
    "qwen2_5_omni_text": read_qwen2,
    "qwen3_omni_moe_text": read_qwen3_vl_moe_text,
    "voxtral_realtime_text": read_voxtral_realtime,
}
CLASSES = {
    "emu3_text_model": ("Emu3ForCausalLM",),
    "glm4v_moe_text": ("Glm4vMoeForConditionalGeneration",),
    "glm4v_text": ("Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration"),
    "glm_ocr_text": ("GlmOcrForConditionalGeneration",),
    "granite4_vision_text": ("Granite4VisionForConditionalGeneration",),
    "granite_docling_text": ("GraniteDoclingForConditionalGeneration",),
    "hunyuan_vl_text": ("HunYuanVLForConditionalGeneration",),
    "paddleocr_vl_text": ("PaddleOCRVLForConditionalGeneration",),
    "qwen2_5_omni_text": ("Qwen2_5OmniThinkerForConditionalGeneration",),
    "qwen3_omni_moe_text": ("Qwen3OmniMoeThinkerForConditionalGeneration",),
    "voxtral_realtime_text": ("VoxtralRealtimeForConditionalGeneration",),
}
