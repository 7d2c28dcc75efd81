"""MiniMaxM2ForCausalLM: full attention with QK-norm over the whole projection, half of each head rotated, no biases."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import attention, gated, head_size, later_tokens, mixture, rotations, whole

REMARKS = """
    layernorm_full_attention_beta layernorm_linear_attention_beta layernorm_mlp_beta mlp_intermediate_size
    mtp_transformer_layers shared_moe_mode
"""
"""Of the models before it, which published files still name, and of the multi-token-prediction modules."""


def read_minimax_m2(config: Config) -> Written:
    """`rotary_dim` numbers of each head are rotated where it is written. What else published files spell out is what
    the class builds.
    """
    config.note(*REMARKS.split())
    config.expect("sliding_window", None)
    built = {"use_qk_norm": True, "qk_norm_type": "per_layer", "use_routing_bias": True, "scoring_func": "sigmoid"}
    for key, value in built.items():
        config.expect(key, None, value)
    config.expect("shared_intermediate_size", None, 0)
    layers, norm, head_dim = layer_count(config), rms_norm(config), head_size(config)
    config.layer_types(layers, (FULL,))
    config.expect("attn_type_list", None, [1] * layers)
    turned = config.size_or_none("rotary_dim")
    positions = rotations(config, head_dim, theta=5e6, part=1.0 if turned is None else turned / head_dim)
    qk_norm = {"kind": "projection", "norm": norm}
    expert, router = gated(config, config.size("intermediate_size")), {"correction": "buffer", "scores": "sigmoid"}
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "attention": attention(config, head_dim=head_dim, qk_norm=qk_norm),
        "feed_forward": mixture(config, expert, router=router, experts="num_local_experts"),
    }
    written = whole(config, norm, positions, [layer] * layers)
    return {**written, **_multi_token(config)}


def _multi_token(config: Config) -> Written:
    """`use_mtp` switches `num_mtp_modules` on."""
    config.note("num_mtp_modules")
    return later_tokens(config, "num_mtp_modules") if config["use_mtp"] in (None, True) else {}


READERS = {"minimax_m2": read_minimax_m2}
CLASSES = {"minimax_m2": ("MiniMaxM2ForCausalLM",)}
