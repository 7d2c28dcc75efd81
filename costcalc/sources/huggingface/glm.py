"""GLM-4 (arXiv 2406.12793): Llama-like, with biases on q, k and v and RoPE on half of each head. The version of 2025
(`glm4`) has a norm on the output of each sublayer as well.
"""

from __future__ import annotations

from functools import partial

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, llama_like, partial_rotary


def _read(config: Config, norms: str) -> Written:
    layers, head_dim = layer_count(config), config.size("head_dim")
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        attention={"bias": config.flag("attention_bias")},
        norms=norms,
    )


READERS = {"glm": partial(_read, norms="pre"), "glm4": partial(_read, norms="sandwich")}
CLASSES = {"glm": ("GlmForCausalLM",), "glm4": ("Glm4ForCausalLM",)}
