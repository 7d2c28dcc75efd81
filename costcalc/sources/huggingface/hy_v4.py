"""HYV4ForCausalLM (Hy4): latent attention over chosen keys, sinks and gates, a residual stream of several parts."""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.indexed import (
    KERNELS,
    OWN,
    SHARED,
    checked_types,
    chosen,
    first_chooses,
    of_layers,
    plain_corrected_router,
    without_indexer,
)
from costcalc.sources.huggingface.latent import TRAINING, block, latent, network
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, dense_first, gated, mixture, shared_experts, words

PERIOD = 4
"""Layers from one indexer to the next, behind the first layer's."""
KEYS_OF_HEADS = "num_key_value_heads"


def read_hy_v4(config: Config) -> Written:
    """Dense in the first layer where `mlp_layer_types` is null; an indexer in the first layer, and in every fourth from
    the second on, where `indexer_types` is. Experts are limited, the one for all tokens is not.
    """
    layers = layer_count(config)
    checked_types(config, layers)
    config.note(*TRAINING, *KERNELS, "learnable_sink_init")
    config.size(KEYS_OF_HEADS)
    config.data = {key: value for key, value in config.data.items() if key != KEYS_OF_HEADS}  # the class overwrites it
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, 1)
    usual = [SHARED if layer and (layer - 1) % PERIOD else OWN for layer in range(layers)]
    indexers = words(config, "indexer_types", layers, (OWN, SHARED)) or usual
    first_chooses(config, indexers, "indexer_types")
    attention = {**latent(config, overwritten=True), "output_gate": "per_channel", "sinks": True}
    norm = {"kind": "layernorm", "eps": config.number("rms_norm_eps")}
    own, networks = chosen(config, attention, norm=norm, rotates="last"), _networks(config)

    def layer_of(kind: str, indexer: str) -> Written:
        return block(config, own if indexer == OWN else without_indexer(own), networks[kind])

    written = of_layers(config, list(zip(kinds, indexers, strict=True)), layer_of)
    written["decoder"]["hyper_connections"] = _parts(config)
    return written


def _networks(config: Config) -> Written:
    """One network a layer, or experts whose factors are limited."""
    width = config.size("moe_intermediate_size")
    limit = config["swiglu_limit"]
    is_bound = isinstance(limit, (int, float)) and limit > 0
    expert = {**gated(config, width), **({"limit": config.number("swiglu_limit")} if is_bound else {})}
    of_all: dict[str, Any] = {"router": plain_corrected_router(config), "experts": "n_routed_experts"}
    experts = mixture(config, expert, shared=shared_experts(config, "n_shared_experts", width), **of_all)
    return {DENSE: network(config), SPARSE: experts}


def _parts(config: Config) -> Written:
    """`hc_mult` parts of the stream, which are not mixed with one another."""
    config.note("hc_eps", "hc_magnitude")
    factors = {"eps": config.number("hc_eps"), "magnitude": config.number("hc_magnitude")}
    return {"streams": config.size("hc_mult"), "mixing": "none", **factors}


READERS = {"hy_v4": read_hy_v4}
CLASSES = {"hy_v4": ("HYV4ForCausalLM",)}
