"""The kinds of mixer that a layer may have: what mixes tokens without attention, in states of a fixed size."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array

MIXERS: dict[str, Callable[..., Array]] = {}
"""By kind, mixer(fields, x, at, *, sight, eps): (B, T, D) -> (B, T, D), with eps that of the layer's norm."""
