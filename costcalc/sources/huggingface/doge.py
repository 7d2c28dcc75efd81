"""DogeForCausalLM (arXiv 2412.11834): attention whose values say which keys are met, and gains of the stream."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    Written,
    floor_width_per_head,
    gated,
    layer_count,
    rms_norm,
    rotary,
    rotatable,
)
from costcalc.sources.huggingface.sparse import whole


def read_doge(config: Config) -> Written:
    """`attention_bias` is on all products of the attention. With `is_moe` a network looks single neurons up among
    thousands, and mixes the scores of tokens as it does: that is not described here.
    """
    config.expect("is_moe", False)
    config.note("num_experts", "num_experts_per_tok", "norm_topk_prob")
    config.expect("sliding_window", None)
    layers, where, norm, bias = layer_count(config), rotary(config), rms_norm(config), config.flag("attention_bias")
    config.layer_types(layers, (FULL,))
    heads = config.size("num_attention_heads")
    head_dim = config.size("head_dim") if "head_dim" in config.data else floor_width_per_head(config)
    attention = {
        "kind": "dynamic_mask",
        "heads": heads,
        "kv_heads": config.size_or_none("num_key_value_heads") or heads,
        "head_dim": rotatable(config, head_dim, [where]),
        "keys": config.size("keep_window_size"),
        "bias": bias,
        "norm": norm,
    }
    network = gated(config, bias=config.flag("mlp_bias"))
    layer = {"norm": norm, "residual_gain": True, "positions": where, "attention": attention, "feed_forward": network}
    return whole(config, norm, where, [layer] * layers)


READERS = {"doge": read_doge}
CLASSES = {"doge": ("DogeForCausalLM",)}
