"""Run a model's real shapes through the reference, in prefill and decode, and compare with what it states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError
from costcalc.inventory import Inventory, Workload
from costcalc.reference import Arena, NoReferenceError
from costcalc.reference.arrays import Fields
from costcalc.verification.faults import Compared, Fault, compare, told_once
from costcalc.verification.limits import arena_for, binding, refuse_too_large, tokens_for
from costcalc.verification.passes import Passes, Progress, run_passes
from costcalc.verification.properties import (
    FEW,
    Property,
    cached_equals_full,
    earlier_unchanged,
    prefill_is_decode,
    rows_sum_to_one,
    tellable,
)
from costcalc.verification.rotations import rotary, rotations


@dataclass(frozen=True, slots=True)
class Phase:
    """One recorded pass, and the totals of both sides."""

    name: str
    workload: Workload
    compared: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared, and what came of it.

    phases: the passes that were compared. faults: where the two sides differ, none if the model is verified.
    properties: what was measured. replaced: windows that were too wide to bind, and what they were made.
    arena_bytes: what all parameters share.
    """

    phases: tuple[Phase, ...]
    faults: tuple[Fault, ...]
    properties: tuple[Property, ...]
    replaced: dict[int, int]
    arena_bytes: int

    @property
    def agrees(self) -> bool:
        """Whether every path agrees and every property holds."""
        return not self.faults and all(item.holds for item in self.properties)


def verify(arch: Architecture, *, on_progress: Progress | None = None) -> Verification:
    """Every parameter, matmul and cached array of every layer, in full width, against what `arch` states.

    Three passes over one random float32 arena: a prefill of 11 tokens, or as many as the position table has rows; the
    same with another last token, of which the cache keeps those that are the same; and the real last token decoded
    after those. A window that would not bind in so short a text is made smaller, which the result says. Raises
    `CostcalcError` where a model is too large to run or a kind has no forward pass.
    """
    refuse_too_large(arch)
    tokens = tokens_for(arch)
    fields, replaced = binding(arch.model_dump(), tokens)
    model = _revalidated(arch, fields) if replaced else arch
    try:
        arena = arena_for(model)
        passes = run_passes(fields, arena, tokens, on_progress)
        phases, faults = _compared(model.inventory, passes, tokens)
        properties = _measured(fields, model.inventory, passes, arena, tokens)
    except NoReferenceError as error:
        raise CostcalcError(f"{arch.name} cannot be verified: {error}", hint="report this, please") from None
    except MemoryError:
        raise CostcalcError(f"{arch.name} does not fit into memory here", hint="verify a narrower copy of it") from None
    return Verification(phases, faults, properties, replaced, arena.numbers.nbytes)


def _revalidated(arch: Architecture, fields: Fields) -> Architecture:
    try:
        return Architecture.model_validate(FullForm(fields))
    except ValueError:
        what = f"{arch.name} is no valid model: a copy with other fields, which nothing has checked"
        raise CostcalcError(what, hint="costcalc.load(copy.model_dump()) says what is wrong") from None


def _compared(inventory: Inventory, passes: Passes, tokens: int) -> tuple[tuple[Phase, ...], tuple[Fault, ...]]:
    phases, faults = [], []
    prefill, _, decode = passes.tapes
    for name, tape, workload in (
        ("prefill", prefill, Workload(new_tokens=tokens)),
        ("decode", decode, Workload(new_tokens=1, past_tokens=tokens - 1)),
    ):
        totals, differing = compare(inventory, workload, tape, phase=name)
        phases.append(Phase(name, workload, tuple(totals)))
        faults += differing
    return tuple(phases), tuple(told_once(faults))


def _measured(fields: Fields, inventory: Inventory, passes: Passes, arena: Arena, tokens: int) -> tuple[Property, ...]:
    has_core = any(matmul.role == "scores" for matmul in inventory.matmuls)
    measured = [
        rows_sum_to_one([tape.row_sum_error for tape in passes.tapes] if has_core else []),
        earlier_unchanged(passes.full, passes.other, tells=fields["vocab_size"] > 1 and fields["d_model"] >= FEW),
        cached_equals_full(passes.errors),
    ]
    # A norm makes zeros of what overflows: all is finite then, and a law that fails says nothing.
    lost = passes.overflowed and not all(item.holds for item in measured)
    measured = tellable(measured, finite=passes.finite and not lost)
    with np.errstate(all="ignore"):
        measured += tellable(rotations(rotary(fields), d_model=fields["d_model"], arena=arena), finite=True)
    prefill = sum(passes.tapes[0].flops().values())
    return (*measured, prefill_is_decode(inventory, prefill, tokens))
