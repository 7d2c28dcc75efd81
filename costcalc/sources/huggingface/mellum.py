"""MellumForCausalLM (JetBrains): Qwen3-MoE, windows and experts layer by layer, each kind with its own rotations."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm, windows_by_type
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    gated,
    head_size,
    later_tokens,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    whole,
    words,
)

THETA = {FULL: 500_000.0, SLIDING: 1e4}


def read_mellum(config: Config) -> Written:
    """Full attention and experts in every layer unless `layer_types` and `mlp_layer_types` say otherwise."""
    config.note("mtp_layer_types", "mtp_mlp_layer_types")
    layers, bias, window = layer_count(config), config.flag("attention_bias"), config.size_or_none("sliding_window")
    types = config.layer_types(layers, (FULL, SLIDING)) or [FULL] * layers
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    norm, head_dim = rms_norm(config), head_size(config)
    positions = {word: rotations(config, head_dim, theta=theta, word=word) for word, theta in THETA.items()}
    expert, router = gated(config, config.size("moe_intermediate_size")), {"normalize": config.flag("norm_topk_prob")}
    networks = {
        DENSE: gated(config, config.size("intermediate_size")),
        SPARSE: mixture(config, expert, router=router),
    }
    core = {"bias": bias, "out_bias": bias, "qk_norm": per_head(norm)}

    def layer_of(word: str, kind: str) -> Written:
        reach = window if word == SLIDING else None
        return {
            "norm": norm,
            "positions": positions[word],
            "attention": attention(config, head_dim=head_dim, window=reach, **core),
            "feed_forward": networks[kind],
        }

    sparse = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or [SPARSE] * layers
    stack = layers_by_kind(list(zip(types, sparse, strict=True)), layer_of)
    return {**whole(config, norm, positions[FULL], stack), **later_tokens(config, "num_mtp_layers")}


READERS = {"mellum": read_mellum}
CLASSES = {"mellum": ("MellumForCausalLM",)}
