"""BitNet b1.58 (arXiv 2504.12285): Llama with a norm inside of the attention and of the network, before their last
product. Its weights are 1, 0 and -1 by training; how they are stored changes no count of them.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, free_head_dim, gated, layer_count, llama_like, rms_norm


def read_bitnet(config: Config) -> Written:
    """The norm inside of the attention has `hidden_size` numbers, so that the heads have to come to as many.

    The network has no biases, whatever `mlp_bias` says.
    """
    config.note("mlp_bias")
    layers, bias, head_dim = layer_count(config), config.flag("attention_bias"), free_head_dim(config)
    config.layer_types(layers, (FULL,))
    width, heads, norm = config.size("hidden_size"), config.size("num_attention_heads"), rms_norm(config)
    if heads * head_dim != width:
        what = f"{heads} heads of {head_dim} do not come to `hidden_size` {width}, which the norm inside has"
        raise config.refusal(what, "change one of the three", "hidden_size")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=head_dim,
        windows=[None] * layers,
        attention={"bias": bias, "out_bias": bias, "output_norm": norm},
        feed_forward={**gated(config), "inner_norm": norm},
    )


READERS = {"bitnet": read_bitnet}
CLASSES = {"bitnet": ("BitNetForCausalLM",)}
