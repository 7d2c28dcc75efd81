"""DiffLlamaForCausalLM: Llama with differential attention (arXiv 2410.05258)."""

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


def read_diffllama(config: Config) -> Written:
    """`attention_bias` is on all four products. The class builds none with dropout, or with an odd number of key/value
    heads; its vectors' spread at the start changes nothing.
    """
    config.note("lambda_std_dev", "mlp_bias")
    config.expect("attention_dropout", 0, 0.0)
    heads, layers = config.size("num_attention_heads"), layer_count(config)
    config.layer_types(layers, (FULL,))
    kv_heads, where, norm = config.size_or_none("num_key_value_heads") or heads, rotary(config), rms_norm(config)
    head_dim = rotatable(config, config.size_or_none("head_dim") or floor_width_per_head(config), [where])
    for count, key in ((kv_heads, "num_key_value_heads"), (heads, "num_attention_heads")):
        if count % 2:
            raise config.refusal(
                f"`{key}` {count} is odd: half of the heads is taken from the others", "make it even", key
            )
    attention = {
        "kind": "differential",
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "bias": config.flag("attention_bias"),
        "norm": {**norm, "weight": False},
    }
    layer = {"norm": norm, "positions": where, "attention": attention, "feed_forward": gated(config)}
    return whole(config, norm, where, [layer] * layers)


READERS = {"diffllama": read_diffllama}
CLASSES = {"diffllama": ("DiffLlamaForCausalLM",)}
