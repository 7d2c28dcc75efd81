"""LlamaForCausalLM: `attention_bias` puts biases on q, k, v and the output, `mlp_bias` on all three matrices."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, llama_like, width_per_head


def read_llama(config: Config) -> Written:
    """Full attention in every layer; key/value heads and head size follow from the heads where they are null."""
    layers, bias, derived = layer_count(config), config.flag("attention_bias"), width_per_head(config)
    config.layer_types(layers, (FULL,))
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        windows=[None] * layers,
        attention={"bias": bias, "out_bias": bias},
        mlp_bias=config.flag("mlp_bias"),
    )


READERS = {"llama": read_llama}
CLASSES = {"llama": ("LlamaForCausalLM",)}
