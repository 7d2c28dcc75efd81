"""The kinds of mixer that a layer may have: what mixes tokens without attention, in states of a fixed size."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.fourier import fourier
from costcalc.reference.gated_delta import gated_delta
from costcalc.reference.kinds import of_kind
from costcalc.reference.lightning import lightning
from costcalc.reference.mamba1 import mamba1
from costcalc.reference.mamba2 import mamba2
from costcalc.reference.mlstm import mlstm
from costcalc.reference.rg_lru import rg_lru
from costcalc.reference.rwkv import rwkv
from costcalc.reference.short_conv import short_conv
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

MIXERS: dict[str, Callable[..., Array]] = {
    "mamba1": mamba1,
    "mamba2": mamba2,
    "gated_delta": gated_delta,
    "lightning": lightning,
    "short_conv": short_conv,
    "rg_lru": rg_lru,
    "rwkv": rwkv,
    "mlstm": mlstm,
    "fourier": fourier,
}


def mixer(fields: Fields, x: Array, at: Scope, *, sight: Sight, norm_of: Fields) -> Array:
    """The mixer of a kind. norm_of: the layer's norm, whose eps its own norms have too. (B, T, D) -> (B, T, D)."""
    return of_kind(MIXERS, fields["kind"], "mixer")(fields, x, at, sight=sight, eps=norm_of["eps"])
