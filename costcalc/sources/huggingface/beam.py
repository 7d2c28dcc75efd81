"""BeamForCausalLM (Beam-1.0): windows with rotations, and layers that see everything without; gated heads, norms around
each sublayer, experts in groups behind the first layers.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, SLIDING, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    corrected_router,
    dense_first,
    gated,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    whole,
    words,
)

PERIOD, DENSE_LAYERS = 6, 3
ROPE = "rope_parameters"
USUAL: Written = {SLIDING: {"rope_theta": 1e4}, FULL: None}
"""What stands for `rope_parameters` where those are null."""


def read_beam(config: Config) -> Written:
    """Every sixth layer and the last one see everything where `layer_types` is null; three dense ones come first where
    `mlp_layer_types` is. `attention_bias` is on the output as well.

    Queries of layers without rotations are multiplied by a number of their position, which is left out here: it changes
    no count.
    """
    layers, norm = layer_count(config), rms_norm(config)
    types = config.layer_types(layers, (FULL, SLIDING))
    if types is None:
        types = [SLIDING if (layer + 1) % PERIOD and layer + 1 < layers else FULL for layer in range(layers)]
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, DENSE_LAYERS)
    window = config.size("sliding_window") if SLIDING in types else None
    config.note("sliding_window")
    positions = {word: _positions(config, word) for word in dict.fromkeys(types)}
    core, networks = _attention(config, norm), _networks(config, kinds)

    def layer_of(word: str, kind: str) -> Written:
        return {
            "norm": norm,
            "norms": "sandwich",
            "residual_mean": True,
            "positions": positions[word],
            "attention": {**core, "window": window if word == SLIDING else None},
            "feed_forward": networks[kind],
        }

    below = next((place for place in positions.values() if place != NO_POSITIONS), NO_POSITIONS)
    cap = None if config["final_logit_softcapping"] is None else config.number("final_logit_softcapping")
    head = {"kind": "vocabulary", **({} if cap is None else {"softcap": cap})}
    return whole(config, norm, below, layers_by_kind(list(zip(types, kinds, strict=True)), layer_of), head=head)


def _attention(config: Config, norm: Written) -> Written:
    """One gate for each number of a head, and one bias for each head's gates."""
    bias = config.flag("attention_bias")
    config.size("num_key_value_heads")
    gates = {"output_gate": "per_channel", "gate_bias": "per_head"}
    size = config.size("head_dim")
    return attention(config, head_dim=size, bias=bias, out_bias=bias, qk_norm=per_head(norm), **gates)


def _networks(config: Config, kinds: list[str]) -> Written:
    """Of the kinds of layers that there are."""
    config.note("intermediate_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok")
    config.note("n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor")
    found: Written = {}
    if DENSE in kinds:
        found[DENSE] = gated(config, config.size("intermediate_size"))
    if SPARSE in kinds:
        for key in ("n_group", "topk_group"):
            config.size(key)
        router = corrected_router(config, normalize=config.flag("norm_topk_prob"))
        found[SPARSE] = mixture(config, gated(config, config.size("moe_intermediate_size")), router=router)
    return found


def _positions(config: Config, word: str) -> Written:
    """RoPE of a type of layer, from its entry of `rope_parameters`; none where that is null."""
    config.note(ROPE)
    every = config.values.get(ROPE)
    own = USUAL[word] if every is None else every.get(word, every) if isinstance(every, dict) else every
    if isinstance(every, dict) and word not in every:
        what = f"`{ROPE}` has no entry for layers of type {word}"
        raise config.refusal(what, f'write "{word}": null for layers without rotations', ROPE)
    return NO_POSITIONS if own is None else rotations(config, config.size("head_dim"), theta=1e4, word=word)


READERS = {"beam": read_beam}
CLASSES = {"beam": ("BeamForCausalLM",)}
