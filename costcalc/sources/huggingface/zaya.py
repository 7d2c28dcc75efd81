"""ZayaForCausalLM (ZAYA1, arXiv 2511.17127): compressed convolutional attention, experts behind a network that carries
its numbers from layer to layer, residual sums that are shifted and scaled.
"""

from __future__ import annotations

import json

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import PART, ROPE_KEYS, gated, layers_by_kind, mixture, whole

TYPES = {"hybrid": FULL, "hybrid_sliding": SLIDING}
BASE = "rope_theta"
USUAL = {"hybrid": {BASE: 5e6, PART: 0.5}, "hybrid_sliding": {BASE: 1e4, PART: 0.5}}
"""What stands for `rope_parameters` where those are null."""
FIRST, LATER = "first", "later"


def read_zaya(config: Config) -> Written:
    """All layers see everything where `layer_types` is null. The first layer's router has nothing to carry on."""
    config.expect("num_experts_per_tok", 1)
    layers, norm = layer_count(config), rms_norm(config)
    types = config.layer_types(layers, tuple(TYPES)) or ["hybrid"] * layers
    window = config.size_or_none("sliding_window")
    if window is None and "hybrid_sliding" in types:
        raise config.refusal(
            "`layer_types` has hybrid_sliding, but `sliding_window` is null", "change one of the two", "sliding_window"
        )
    positions = {word: _positions(config, word) for word in dict.fromkeys(types)}
    core = _attention(config)
    of_type = {kind: word for word, kind in TYPES.items()}

    def layer_of(kind: str, place: str) -> Written:
        return {
            "norm": norm,
            "residual_affine": True,
            "positions": positions[of_type[kind]],
            "attention": {**core, "window": window if kind == SLIDING else None},
            "feed_forward": _experts(config, norm, carried=place == LATER),
        }

    kinds = [(TYPES[word], LATER if index else FIRST) for index, word in enumerate(types)]
    head = {"kind": "vocabulary", "bias": config.flag("lm_head_bias")}
    made = layers_by_kind(kinds, layer_of)
    return whole(config, norm, positions[types[0]], made, embedding={"affine": True}, head=head)


def _attention(config: Config) -> Written:
    """`attention_bias` is on the output as well."""
    return {
        "kind": "convolved",
        "heads": config.size("num_attention_heads"),
        "kv_heads": config.size("num_key_value_heads"),
        "head_dim": config.size("head_dim"),
        "taps": config.size("cca_time0"),
        "group_taps": config.size("cca_time1"),
        "bias": config.flag("attention_bias"),
    }


def _positions(config: Config, word: str) -> Written:
    """RoPE of a type of layer: all of it stands in that type's entry of `rope_parameters`, if those are not null."""
    config.note(*ROPE_KEYS)
    every, head_dim = config.values.get("rope_scaling") or config.values.get("rope_parameters"), config.size("head_dim")
    own = USUAL[word] if every is None else every.get(word) if isinstance(every, dict) else None
    if not isinstance(own, dict) or not _is_base(own.get(BASE)):
        what, usual = f"`rope_parameters` has no `{BASE}` for layers of type {word}", json.dumps({word: USUAL[word]})
        raise config.refusal(what, f'write "rope_parameters": {usual}', "rope_parameters")
    share = own.get(PART, 1.0)
    turned = int(head_dim * share) if isinstance(share, (int, float)) and 0 < share <= 1 else 0
    turned += turned % 2
    if not 0 < turned <= head_dim:
        what = f"RoPE rotates pairs, and `{PART}` {shown(share)} of a head of {head_dim} gives {turned}"
        raise config.refusal(what, f'write "{PART}": 0.5', "rope_parameters")
    return {"kind": "rope", "theta": float(own[BASE]), "rotary_dim": turned}


def _is_base(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _experts(config: Config, norm: Written, *, carried: bool) -> Written:
    """One expert a token, or none: one choice more than there are experts. Scores weigh as they are."""
    network = {"width": config.size("router_hidden_size"), "carried": carried, "norm": norm}
    router = {"correction": "buffer", "scores": "softmax", "normalize": False, "network": network, "skips": 1}
    return mixture(config, gated(config, config.size("moe_intermediate_size")), router=router)


READERS = {"zaya": read_zaya}
CLASSES = {"zaya": ("ZayaForCausalLM",)}
