"""A gate behind a norm (`AXK2GatedRMSNorm`)."""

from __future__ import annotations

from costcalc.reference.activations import sigmoid, silu
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.tape import Scope


def gated_norm(how: Fields, y: Array, at: Scope, name: str) -> Array:
    """y · sigmoid(silu(y W) V) of the norm of this name, if that has a gate. y: (B, T, D) -> (B, T, D)."""
    everywhere = of_kind({"all": True, "attention": False}, how["before"], "place of a gate")
    if not everywhere and name != "attention_norm":
        return y
    inside = silu(at.linear(f"{name}_gate_down", y, how["rank"], bias=False))  # (B, T, D) x (D, rank)
    return y * sigmoid(at.linear(f"{name}_gate_up", inside, y.shape[-1], bias=False))  # (B, T, rank) x (rank, D)
