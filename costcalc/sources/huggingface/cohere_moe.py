"""Cohere2MoeForCausalLM: attention and experts side by side under one norm, windows with rotations in three layers of
four, layers without positions that see all.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, SLIDING, Written, layer_count, windows_by_type
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    count,
    dense_first,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    rotations,
    shared_experts,
    whole,
    words,
)


def read_cohere2_moe(config: Config) -> Written:
    """LayerNorms without biases, or RMSNorms where `rms_norm_eps` is written; `attention_bias` is on the output too.
    Dense layers that see all are rotated where `prefix_dense_sliding_window_pattern` is 1. How the shared experts'
    output is combined with the others' changes no count.
    """
    config.expect("shared_expert_combination_strategy", "average", "sum")
    layers, bias, window = layer_count(config), config.flag("attention_bias"), config.size_or_none("sliding_window")
    kinds = _kinds(config, layers)
    prefix = config.size("prefix_dense_sliding_window_pattern")
    norm, head_dim, networks = _norm(config), head_size(config), _networks(config)
    positions = rotations(config, head_dim, theta=1e4)
    types = _types(config, layers, prefix)
    windows_by_type(config, types, window, why_none="`sliding_window` is null")

    def layer_of(word: str, kind: str) -> Written:
        slides = word == SLIDING
        turns = slides or (kind == DENSE and prefix == 1)
        reach = window if slides else None
        return {
            "norm": norm,
            "parallel": "one_norm",
            "positions": positions if turns else NO_POSITIONS,
            "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias, window=reach),
            "feed_forward": networks[kind],
        }

    config.note("logit_scale")  # it changes no count
    head = {"kind": "vocabulary", "scale": config.number("logit_scale")}
    stack = layers_by_kind(list(zip(types, kinds, strict=True)), layer_of)
    return whole(config, norm, positions, stack, head=head)


def _networks(config: Config) -> dict[str, Written]:
    """The chosen are those of the largest scores; then a softmax of them alone, or sigmoids."""
    width = config.size("intermediate_size")
    config.expect("expert_selection_fn", "softmax", "sigmoid")
    by_softmax = config["expert_selection_fn"] == "softmax"
    normalize = config.flag("norm_topk_prob")
    router = {"scores": "softmax_of_chosen"} if by_softmax else {"scores": "sigmoid", "normalize": normalize}
    shared = shared_experts(config, "num_shared_experts", width)
    dense = config.size_or_none("prefix_dense_intermediate_size") or width
    return {
        SPARSE: mixture(config, gated(config, width), router=router, shared=shared),
        DENSE: gated(config, dense),
    }


def _norm(config: Config) -> Written:
    eps = config.number_or_none("rms_norm_eps")
    if eps is not None:
        return {"kind": "rmsnorm", "eps": eps}
    return {"kind": "layernorm", "eps": config.number("layer_norm_eps"), "bias": False}


def _kinds(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, else dense in the first `first_k_dense_replace` layers."""
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    return kinds or dense_first(layers, count(config, "first_k_dense_replace"))


def _types(config: Config, layers: int, prefix: int) -> list[str]:
    """`layer_types`, else two patterns, each counted from its first layer: of the dense layers and of the others."""
    types = config.layer_types(layers, (FULL, SLIDING))
    every, dense = config.size("sliding_window_pattern"), min(count(config, "first_k_dense_replace"), layers)
    if types is not None:
        return types
    counted = [(layer, prefix) for layer in range(dense)] + [(layer, every) for layer in range(layers - dense)]
    return [SLIDING if (layer + 1) % period else FULL for layer, period in counted]


READERS = {"cohere2_moe": read_cohere2_moe}
CLASSES = {"cohere2_moe": ("Cohere2MoeForCausalLM",)}
