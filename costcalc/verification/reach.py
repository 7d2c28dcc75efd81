"""How far a changed token is seen: in principle, and in float32."""

from __future__ import annotations

from costcalc.reference.arrays import Fields
from costcalc.reference.stack import expanded

UNSEEN = ((2, 1e-6), (8, 0.3), (12, 0.6))
"""How far scores of one head spread at most -> how often the weight of a token is lost behind float32's digits."""
CERTAIN = 1e-6
UNNORMED = ("collisions", "multi_resolution")
"""Kinds of attention that have no rows of weights that sum to 1."""
ANYWHERE = 10**9
"""Further than any text is long."""


def has_rows(fields: Fields) -> bool:
    """Whether some attention has weights that sum to 1: those of colliding hashes do not."""
    stacks = [fields[name] for name in ("encoder", "decoder") if fields[name] is not None]
    layers = [layer for stack in stacks for layer in expanded(stack["layers"])]
    found = [layer[key] for layer in layers for key in ("attention", "cross_attention") if layer[key] is not None]
    return any(each["kind"] not in UNNORMED for each in found) or not found


def reach(stack: Fields) -> int | None:
    """How far a token is seen to either side in an encoder, through all of its layers; None for any distance."""
    layers = list(expanded(stack["layers"]))
    if any(layer.get("mixer") or layer.get("mixer_beside") for layer in layers):
        return None  # a mixer of an encoder mixes all of the text
    attentions = [layer["attention"] for layer in layers if layer["attention"] is not None]
    if any(each.get("landmarks") or each.get("kind") == "multi_resolution" for each in attentions):
        return ANYWHERE  # by means of segments
    if any(each.get("first") or each.get("summed") or each.get("kind") == "global_local" for each in attentions):
        return ANYWHERE  # by some that all others see, perhaps one layer further on
    windows = [each.get("window") for each in attentions]
    return None if None in windows else sum(window // 2 for window in windows)


def is_seen(fields: Fields, stack: str, attention: str) -> bool:
    """Whether in one of a stack's attentions each token's weight must show in float32, with the arena's numbers.

    attention: "attention" or "cross_attention". With normed rows and matrices of deviation 1 / √D queries and keys are
    numbers around 1, so that the products of a head deviate by √H, times the scale: with few heads of a large scale all
    of the softmax may go to one token. Rows that come in larger, or slopes that are steeper, are not judged.
    """
    if fields["embedding"]["scale"] > 2 * fields["d_model"] ** 0.5:
        return False
    unseen = 1.0
    for layer in expanded(fields[stack]["layers"]):
        if layer[attention] is None:
            continue
        if attention == "attention" and layer["positions"].get("slope_scale", 0) > 1:
            return False
        unseen *= _unseen(layer[attention], fields["d_model"]) ** layer[attention]["heads"]
    return unseen <= CERTAIN


def head_size(attention: Fields, d_model: int) -> int:
    """Numbers of a head that scores are made of."""
    if attention["kind"] == "latent":
        return int(attention["nope_dim"] + attention["rope_dim"])
    return int(attention.get("head_dim") or d_model // attention["heads"])


def _unseen(attention: Fields, d_model: int) -> float:
    """How often a token's weight is lost in one head."""
    head_dim = head_size(attention, d_model)
    scale = attention.get("scale")
    spread = 1.0 if scale is None else scale * head_dim**0.5
    return next((often for most, often in UNSEEN if spread <= most), 1.0)
