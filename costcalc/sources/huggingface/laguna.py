"""LagunaForCausalLM (Poolside): heads by layer, their outputs behind a gate of softplus, rotations by type of layer,
experts after the first layer and one for all tokens.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm, windows_by_type
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    dense_first,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    whole,
    words,
)

TURNS = {FULL: (500_000.0, 0.5), SLIDING: (10_000.0, 1.0)}
"""Base and part of a head, where `rope_parameters` is null."""

GATES = {True: "per_head", "per-head": "per_head", "per-element": "per_channel"}


def read_laguna(config: Config) -> Written:
    """Full attention where `layer_types` is null, dense in the first layer where `mlp_layer_types` is. `attention_bias`
    is on the output as well, never on the gate. The correction is a parameter that is not trained.
    """
    config.note("moe_router_logit_softcapping")
    config.expect("moe_apply_router_weight_on_input", None, False)
    config.expect("gating", *GATES)
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    types = config.layer_types(layers, (FULL, SLIDING)) or [FULL] * layers
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    norm, head_dim, bias = rms_norm(config), head_size(config), config.flag("attention_bias")
    positions = {
        word: rotations(config, head_dim, theta=theta, part=part, word=word) for word, (theta, part) in TURNS.items()
    }
    gate = {"output_gate": GATES[config["gating"]], "gate_activation": "softplus"}
    core = {"bias": bias, "out_bias": bias, "qk_norm": per_head(norm), **gate}
    networks = _networks(config)
    each = [f"heads{number}" for number in _heads(config, layers)]
    number_of = dict(zip(each, _heads(config, layers), strict=True))

    def layer_of(word: str, kind: str, heads: str) -> Written:
        made = attention(config, head_dim=head_dim, window=window if word == SLIDING else None, **core)
        return {
            "norm": norm,
            "positions": positions[word],
            "attention": {**made, "heads": number_of[heads]},
            "feed_forward": networks[kind],
        }

    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, 1)
    return whole(config, norm, positions[FULL], layers_by_kind(list(zip(types, kinds, each, strict=True)), layer_of))


def _networks(config: Config) -> dict[str, Written]:
    shared = gated(config, config.size("shared_expert_intermediate_size"))
    scale = config.number_or_none("moe_routed_scaling_factor") or 1.0
    config.note("moe_routed_scaling_factor")
    router = {"correction": "frozen", "scores": "sigmoid", "scale": scale}
    expert = gated(config, config.size("moe_intermediate_size"))
    return {
        DENSE: gated(config, config.size("intermediate_size")),
        SPARSE: mixture(config, expert, router=router, shared=shared),
    }


def _heads(config: Config, layers: int) -> list[int]:
    """`num_attention_heads_per_layer`, else the same in all layers."""
    listed = config["num_attention_heads_per_layer"]
    if listed is None:
        return [config.size("num_attention_heads")] * layers
    key = "num_attention_heads_per_layer"
    if not isinstance(listed, list) or len(listed) != layers or any(type(n) is not int or n < 1 for n in listed):
        what = f"`{key}` must be a list of {layers} whole numbers from 1"
        raise config.refusal(what, "heads of each layer", key)
    return listed


READERS = {"laguna": read_laguna}
CLASSES = {"laguna": ("LagunaForCausalLM",)}
