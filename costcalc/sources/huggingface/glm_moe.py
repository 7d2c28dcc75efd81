"""Glm4MoeForCausalLM (GLM-4.5, arXiv 2508.06471): DeepSeek-V3's experts under grouped-query attention, dense layers
first, half of each head rotated; Sarvam's, which the same class builds; SolarOpenForCausalLM and Dots1ForCausalLM
(arXiv 2506.05767), which are near it.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm, windows_by_type
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    corrected_router,
    count,
    dense_first,
    gated,
    head_size,
    later_tokens,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    shared_experts,
    whole,
)


def read_glm4_moe(config: Config) -> Written:
    """`attention_bias` is not on the output; QK-norm per head under `use_qk_norm`."""
    return _read_glm(config, theta=1e4, part=0.5)


def read_sarvam_moe(config: Config) -> Written:
    """All of a head is rotated. What else published files spell out is what the class builds."""
    config.note("embedding_dropout", "output_dropout", "router_dtype")
    config.expect("moe_router_enable_expert_bias", None, True)
    config.expect("moe_shared_expert_intermediate_size", None, config["moe_intermediate_size"])
    config.expect("score_function", None, "sigmoid")
    return _read_glm(config, theta=8e6, part=1.0)


def _read_glm(config: Config, *, theta: float, part: float) -> Written:
    layers, bias = layer_count(config), config.flag("attention_bias")
    config.layer_types(layers, (FULL,))
    core = {"bias": bias, "qk_norm": per_head(rms_norm(config)) if config.flag("use_qk_norm") else None}
    kinds = dense_first(layers, count(config, "first_k_dense_replace"))
    written = _read(config, [FULL] * layers, None, kinds, core, theta=theta, part=part)
    return {**written, **later_tokens(config, "num_mtp_layers")}


def read_solar_open(config: Config) -> Written:
    """A mixture in every layer, no QK-norm, `attention_bias` not on the output."""
    config.note("intermediate_size")
    config.expect("first_k_dense_replace", None, 0)
    layers, core = layer_count(config), {"bias": config.flag("attention_bias")}
    config.layer_types(layers, (FULL,))
    return _read(config, [FULL] * layers, None, [SPARSE] * layers, core, theta=1e6)


def read_dots1(config: Config) -> Written:
    """QK-norm per head, `attention_bias` on the output as well; a window from layer `max_window_layers` on, where
    `layer_types` is not written.
    """
    layers, bias, window = layer_count(config), config.flag("attention_bias"), config.size_or_none("sliding_window")
    config.note("max_window_layers")
    config.expect("use_sliding_window", None, window is not None)
    reach = layers if window is None or config["max_window_layers"] is None else config.whole("max_window_layers")
    counted = [SLIDING if layer >= reach else FULL for layer in range(layers)]
    types = config.layer_types(layers, (FULL, SLIDING)) or counted
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    kinds = dense_first(layers, count(config, "first_k_dense_replace"))
    core = {"bias": bias, "out_bias": bias, "qk_norm": per_head(rms_norm(config))}
    return _read(config, types, window, kinds, core, theta=1e4)


def _read(
    config: Config,
    types: list[str],
    window: int | None,
    kinds: list[str],
    core: Written,
    *,
    theta: float,
    part: float | None = None,
) -> Written:
    """Shared experts are of the same width as the others."""
    config.expect("moe_layer_freq", None, 1)
    norm, head_dim = rms_norm(config), head_size(config)
    positions = rotations(config, head_dim, theta=theta, part=part)
    width = config.size("moe_intermediate_size")
    shared = shared_experts(config, "n_shared_experts", width)
    router = corrected_router(config)
    networks: dict[str, Any] = {
        SPARSE: mixture(config, gated(config, width), router=router, shared=shared, experts="n_routed_experts")
    }
    if DENSE in kinds:
        networks[DENSE] = gated(config, config.size("intermediate_size"))
    config.note("intermediate_size")

    def layer_of(word: str, kind: str) -> Written:
        reach = window if word == SLIDING else None
        return {
            "norm": norm,
            "positions": positions,
            "attention": attention(config, head_dim=head_dim, window=reach, **core),
            "feed_forward": networks[kind],
        }

    return whole(config, norm, positions, layers_by_kind(list(zip(types, kinds, strict=True)), layer_of))


READERS = {
    "glm4_moe": read_glm4_moe,
    "sarvam_moe": read_sarvam_moe,
    "solar_open": read_solar_open,
    "dots1": read_dots1,
}
CLASSES = {
    "glm4_moe": ("Glm4MoeForCausalLM",),
    "sarvam_moe": ("Glm4MoeForCausalLM", "SarvamMoEForCausalLM"),
    "solar_open": ("SolarOpenForCausalLM",),
    "dots1": ("Dots1ForCausalLM",),
}
