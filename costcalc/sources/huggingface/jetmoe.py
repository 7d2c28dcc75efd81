"""JetMoeForCausalLM (arXiv 2404.07413): mixtures of attention heads and of networks, with as many experts in both."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rotary, rotatable
from costcalc.sources.huggingface.sparse import mixture, whole


def read_jetmoe(config: Config) -> Written:
    """Query heads are those of the experts that a token uses: `num_attention_heads` says nothing."""
    config.note("num_attention_heads", "aux_loss_coef")
    layers, kv_heads, where = layer_count(config), config.size("num_key_value_heads"), rotary(config)
    config.layer_types(layers, (FULL,))
    norm: Written = {"kind": "rmsnorm", "eps": 1e-6}  # the class hands its layers no other
    network = {"kind": "gated", "d_ff": config.size("intermediate_size")}
    network["activation"] = config.activation("activation_function")
    router = {"scores": "softmax_of_chosen", "normalize": False}
    experts = mixture(config, network, router=router, experts="num_local_experts", out_bias=True)
    attention = {
        "kind": "mixture_of_heads",
        "heads": kv_heads * config.size("num_experts_per_tok"),
        "kv_heads": kv_heads,
        "head_dim": rotatable(config, config.size("kv_channels"), [where]),
        "experts": config.size("num_local_experts"),
        "out_bias": True,
    }
    layer = {"norm": norm, "positions": where, "attention": attention, "feed_forward": experts}
    return whole(config, norm, where, [layer] * layers)


READERS = {"jetmoe": read_jetmoe}
CLASSES = {"jetmoe": ("JetMoeForCausalLM",)}
