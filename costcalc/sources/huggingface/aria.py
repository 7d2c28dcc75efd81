"""AriaTextForCausalLM (arXiv 2410.05993), the text model of Aria: Llama's attention, fine-grained experts gated by
SiLU, shared ones.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm, width_per_head
from costcalc.sources.huggingface.sparse import attention, gated, mixture, rotations, shared_experts, whole


def read_aria_text(config: Config) -> Written:
    """`attention_bias` is on the output as well, `mlp_bias` on the shared experts alone; `hidden_act` is theirs too."""
    layers, bias, derived = layer_count(config), config.flag("attention_bias"), width_per_head(config)
    config.layer_types(layers, (FULL,))
    head_dim = config.size_or_none("head_dim") or derived
    norm, width = rms_norm(config), config.size("intermediate_size")
    positions = rotations(config, head_dim, theta=1e4)
    shared = shared_experts(config, "moe_num_shared_experts", width, bias=config.flag("mlp_bias"))
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias),
        "feed_forward": mixture(
            config,
            {**gated(config, width), "activation": "silu"},
            router={"scores": "softmax_of_chosen"},
            shared=shared,
            experts="moe_num_experts",
            used="moe_topk",
        ),
    }
    return whole(config, norm, positions, [layer] * layers)


READERS = {"aria_text": read_aria_text}
CLASSES = {"aria_text": ("AriaTextForCausalLM",)}
