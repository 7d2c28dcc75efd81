"""Llama4ForCausalLM: chunked attention, every fourth layer without positions that sees all, one of many experts and a
shared one, in every layer or in every other.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    CHUNKED,
    DENSE,
    ROTATED,
    SPARSE,
    UNROTATED,
    attention,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    numbered,
    per_head,
    rotations,
    whole,
)

CONSTANTS = ("attn_scale", "attn_temperature_tuning", "floor_scale", "for_llm_compressor")
"""Of layers without positions, which multiply their queries by a number that grows with the position; and remarks."""


def read_llama4_text(config: Config) -> Written:
    """`attention_bias` is on the output as well; rotated layers norm queries and keys without a weight, under
    `use_qk_norm`. The class multiplies every token with every expert, those not chosen with zeros.
    """
    config.note(*CONSTANTS)
    layers, bias = layer_count(config), config.flag("attention_bias")
    chunk = config.size_or_none("attention_chunk_size")
    turns = _turns(config, layers)
    types = _types(config, turns, chunk)
    norm, head_dim = rms_norm(config), head_size(config)
    positions = rotations(config, head_dim, theta=500_000.0)
    without_weight = per_head({**norm, "weight": False}) if config.flag("use_qk_norm") else None
    networks = {
        DENSE: gated(config, config.size("intermediate_size_mlp")),
        SPARSE: _mixture(config),
    }

    def layer_of(word: str, turned: str, kind: str) -> Written:
        core = {"qk_norm": without_weight if turned == ROTATED else None, "bias": bias, "out_bias": bias}
        return {
            "norm": norm,
            "positions": positions if turned == ROTATED else NO_POSITIONS,
            "attention": attention(config, head_dim=head_dim, chunk=chunk if word == CHUNKED else None, **core),
            "feed_forward": networks[kind],
        }

    kinds = list(zip(types, turns, _sparse(config, layers), strict=True))
    return whole(config, norm, positions, layers_by_kind(kinds, layer_of))


def _mixture(config: Config) -> Written:
    """A sigmoid of each chosen expert's score multiplies its input; the shared expert is as wide as the others."""
    expert = gated(config, config.size("intermediate_size"))
    router = {"scores": "sigmoid", "normalize": False, "weigh": "inputs"}
    return mixture(config, expert, router=router, shared=expert, experts="num_local_experts", dispatch="all")


def _turns(config: Config, layers: int) -> list[str]:
    """Which layers are rotated: a 1 in `no_rope_layers`, which may be longer; else all but every so many."""
    marks, every = config["no_rope_layers"], config.size("no_rope_layer_interval")
    if not marks:
        return [ROTATED if (layer + 1) % every else UNROTATED for layer in range(layers)]
    if not isinstance(marks, list) or len(marks) < layers or any(mark not in (0, 1) for mark in marks):
        what = f"`no_rope_layers` must be a list of {layers} numbers 0 or 1, got {entries(marks)}"
        raise config.refusal(what, "a 1 for each layer with RoPE", "no_rope_layers")
    return [ROTATED if mark else UNROTATED for mark in marks[:layers]]


def _types(config: Config, turns: list[str], chunk: int | None) -> list[str]:
    """`layer_types`, else chunks in every rotated layer, unless `attention_chunk_size` is null."""
    types = config.layer_types(len(turns), (FULL, CHUNKED))
    if types is None:
        return [CHUNKED if turned == ROTATED and chunk is not None else FULL for turned in turns]
    if CHUNKED in types and chunk is None:
        what = f"`layer_types` has {CHUNKED}, but `attention_chunk_size` is null"
        raise config.refusal(what, "change one of the two", "layer_types")
    return types


def _sparse(config: Config, layers: int) -> list[str]:
    """`moe_layers` by number, else every `interleave_moe_layer_step`-th, from the last of the first so many on."""
    step = config.size("interleave_moe_layer_step")
    sparse = set(range(step - 1, layers, step))
    if config["moe_layers"] is not None:
        sparse = set(numbered(config, "moe_layers", layers))
    return [SPARSE if layer in sparse else DENSE for layer in range(layers)]


READERS = {"llama4_text": read_llama4_text}
CLASSES = {"llama4_text": ("Llama4ForCausalLM",)}
