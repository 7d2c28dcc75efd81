"""What rotary positions promise, measured on the attentions of the pass itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from costcalc.reference import Arena, Request, Scope, Tape
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.block import ATTENTION
from costcalc.reference.kinds import of_kind
from costcalc.reference.sight import Sight
from costcalc.verification.limits import written_layers
from costcalc.verification.properties import LAYER_ROUNDING, ROUNDING, Property, distance

TOKENS = 5
STARTS = (3, 102, 8191)
"""Where the same text stands once more."""
LEAST_THETA = 1e-4
"""Angles are positions over powers of theta: with a smaller one they exceed 10^8, and rounding what is bound."""
TOO_SMALL = f"theta is below {LEAST_THETA}: rounding loses such angles"
OWN_FACTORS = ("scale", "softcap", "chunk", "block_choice", "compression", "top_k", "query_gain")
"""Left out, so that scores are of the order of 1 and their rounding is bound; chunks, blocks and entries begin at fixed
places, of two keys that are all but equal rounding may choose either, and gains do not turn with their numbers.
"""
OFFSETS, LENGTHS = "attention at the same RoPE offsets differs", "RoPE changes lengths of keys"


class Rotated(NamedTuple):
    """An attention, its rotary positions, and whether it is a decoder's."""

    attention: Fields
    positions: Fields
    causal: bool = True


def rotary(fields: Fields) -> list[Rotated]:
    """Each distinct attention of each stack that has rotary positions, with those."""
    found: dict[str, Rotated] = {}
    for name in ("encoder", "decoder"):
        for layer in written_layers(fields[name]["layers"]) if fields[name] else ():
            attention = layer["attention"]
            makes_keys = attention is not None and attention.get("cache_of") is None
            if makes_keys and layer["positions"]["kind"] == "rope" and not layer["positions"].get("values"):
                rotated = Rotated(attention, layer["positions"], causal=name == "decoder")
                found.setdefault(repr(rotated), rotated)
    return list(found.values())


def rotations(turned: list[Rotated], *, d_model: int, arena: Arena) -> list[Property]:
    """RoPE turns each pair by an angle: scores depend on offsets only, and lengths stay (arXiv 2104.09864, eq. 16).

    turned: the distinct attentions that have rotary positions. Each is run on one text that starts at 0,
    and again where the text stands at other positions: the outputs must be the same, and every cached key as long.
    """
    bounds = {OFFSETS: LAYER_ROUNDING, LENGTHS: ROUNDING}
    if not turned:
        return [Property(name, None, bound, "no layer has rotary positions") for name, bound in bounds.items()]
    told = [rotated for rotated in turned if rotated.positions["theta"] >= LEAST_THETA]
    if not told:
        return [Property(name, None, bound, TOO_SMALL) for name, bound in bounds.items()]
    found = [_shifted(rotated, d_model, arena) for rotated in told]
    if not all(turns for _, _, turns in found):
        why = "positions change no key"
        return [Property(name, None, bound, why, failed=True) for name, bound in bounds.items()]
    left_out = "" if len(told) == len(turned) else f"but not where {TOO_SMALL}"
    offsets, lengths = (float(np.max(errors)) for errors in list(zip(*found, strict=True))[:2])
    return [
        Property(OFFSETS, offsets, bounds[OFFSETS], left_out),
        Property(LENGTHS, lengths, bounds[LENGTHS], left_out),
    ]


def _shifted(rotated: Rotated, d_model: int, arena: Arena) -> tuple[float, float, bool]:
    """By how much outputs and lengths differ at STARTS, as shares of the largest, and whether any cached key turns."""
    x = np.random.default_rng(0).normal(size=(1, TOKENS, d_model)).astype(FLOAT)  # (1, T, D)
    fields = {**rotated.attention, **{name: None for name in OWN_FACTORS if name in rotated.attention}}

    def run(start: int) -> tuple[Array, list[Array]]:
        request, at = Request(past=start), Scope(Tape(arena), "attention")
        sight = Sight(start, rotated.causal, request)  # an encoder keeps no keys, but here they are looked at
        attend = of_kind(ATTENTION, fields["kind"], "attention")
        output = attend(fields, x, at, positions=rotated.positions, sight=sight)
        return output, list(request.arrays.values())

    output, cached = run(0)
    offsets, lengths, turns = [], [], False
    for there, held in map(run, STARTS):
        offsets.append(distance(output, there, scale=output))
        lengths += [distance(_lengths(a), _lengths(b), scale=_lengths(a)) for a, b in zip(cached, held, strict=True)]
        turns |= any(a.shape[-1] == 1 or not np.array_equal(a, b) for a, b in zip(cached, held, strict=True))
    return float(np.max(offsets)), float(np.max(lengths)), turns


def _lengths(vectors: Array) -> Array:
    """(..., H) -> (...)."""
    lengths: Array = np.linalg.norm(vectors, axis=-1)
    return lengths
