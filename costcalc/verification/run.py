"""Run a model's real shapes through the reference, in prefill and decode, and compare with what it states."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError
from costcalc.inventory import Inventory, Workload
from costcalc.reference import Arena, NoReferenceError
from costcalc.reference.arrays import Fields
from costcalc.verification.faults import Compared, Fault, compare, told_once
from costcalc.verification.limits import arena_for, binding, refuse_too_large, workload_for
from costcalc.verification.passes import Passes, Progress, run_passes, source_words
from costcalc.verification.properties import (
    BOTH_WAYS,
    CACHED,
    CHUNKS,
    EARLIER,
    FEW,
    FORMS,
    LAYER_ROUNDING,
    NO_STEPS,
    STEPS,
    Property,
    beyond_reach,
    cached_equals_full,
    changed_outputs,
    earlier_unchanged,
    prefill_is_decode,
    rows_sum_to_one,
    tellable,
)
from costcalc.verification.reach import has_rows, is_seen, reach
from costcalc.verification.rotations import rotary, rotations

IN_CHUNKS = "prefill, chunked"


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

    Passes over one random float32 arena: a prefill of 11 tokens, or as many as the position table has rows; the same
    with another last token, of which the cache keeps those that are the same; and the real last token decoded after
    those. An encoder-decoder has an encoder's text of 7 tokens beside them, and a fourth pass with another last token
    of that; a decoder with cross-attention alone has random numbers for it. An encoder alone has the first two passes.
    Latent attention and scans of two forms run once more in the other one. A window or chunk that would not bind in so
    short a text is made smaller, which the result says. Raises `CostcalcError` where
    a model is too large to run or a kind has no forward pass.
    """
    refuse_too_large(arch)
    workload = workload_for(arch)
    fields, replaced = binding(arch.model_dump(), workload)
    model = _revalidated(arch, fields) if replaced else arch
    try:
        arena = arena_for(model)
        passes = run_passes(fields, arena, workload, on_progress)
        phases, faults = _compared(model.inventory, passes, workload)
        properties = _measured(fields, model.inventory, passes, arena, workload)
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


def _compared(inventory: Inventory, passes: Passes, workload: Workload) -> tuple[tuple[Phase, ...], tuple[Fault, ...]]:
    phases, faults = [], []
    step = replace(workload, new_tokens=1, past_tokens=workload.new_tokens - 1)
    prefill, _, *decode = passes.tapes
    compared = (
        [("prefill", prefill, workload), ("decode", decode[0], step)] if decode else [("pass", prefill, workload)]
    )
    if passes.absorbed is not None:
        compared.append(("prefill, absorbed", passes.absorbed[0], replace(workload, latent="absorbed")))
    if passes.chunked is not None:
        compared.append((IN_CHUNKS, passes.chunked[0], workload))
    for name, tape, given in compared:
        told = inventory.chunked if name == IN_CHUNKS else inventory
        totals, differing = compare(told, given, tape, phase=name)
        phases.append(Phase(name, given, tuple(totals)))
        faults += differing
    return tuple(phases), tuple(told_once(faults))


def _measured(
    fields: Fields, inventory: Inventory, passes: Passes, arena: Arena, workload: Workload
) -> tuple[Property, ...]:
    has_core = any(matmul.role == "scores" for matmul in inventory.matmuls) and has_rows(fields)
    rows = rows_sum_to_one([tape.row_sum_error for tape in passes.tapes] if has_core else [])
    measured = [rows, *(_laws_of_decoder if inventory.has_cache else _laws_of_encoder)(fields, passes)]
    # A norm makes zeros of what overflows: all is finite then, and a law that fails says nothing.
    lost = passes.overflowed and not all(item.holds for item in measured)
    measured = tellable(measured, finite=passes.finite and not lost)
    with np.errstate(all="ignore"):
        measured += tellable(rotations(rotary(fields), d_model=fields["d_model"], arena=arena), finite=True)
    if not inventory.has_cache:
        return (*measured, Property(STEPS, None, 0, NO_STEPS))
    tape, form = (passes.tapes[0], None) if passes.absorbed is None else (passes.absorbed[0], "absorbed")
    return (*measured, prefill_is_decode(inventory, sum(tape.flops().values()), replace(workload, latent=form)))


def _laws_of_decoder(fields: Fields, passes: Passes) -> list[Property]:
    """What is later changes nothing, and what was kept is as good as the text; encoder tokens are seen by all."""
    laws = [
        earlier_unchanged(passes.full, passes.other, tells=_tells(fields, fields["vocab_size"]), errors=passes.earlier),
        cached_equals_full(passes.errors),
    ]
    if passes.absorbed is not None:
        laws.append(Property(FORMS, float(np.max(passes.absorbed[1])), LAYER_ROUNDING))
    if passes.chunked is not None:
        laws.append(Property(CHUNKS, float(np.max(passes.chunked[1])), LAYER_ROUNDING))
    if passes.asked is not None:
        words = FEW if fields["encoder"] is None else source_words(fields)
        tells = _tells(fields, words) and is_seen(fields, "decoder", "cross_attention")
        laws.append(changed_outputs(passes.full, passes.asked, everywhere=True, tells=tells))
    if passes.encoded:
        laws.append(beyond_reach(*passes.encoded, reach=reach(fields["encoder"])))
    return laws


def _laws_of_encoder(fields: Fields, passes: Passes) -> list[Property]:
    """Each token is seen by all, or as far as windows reach."""
    far = reach(fields["encoder"])
    tells = _tells(fields, fields["vocab_size"]) and (far is not None or is_seen(fields, "encoder", "attention"))
    return [
        Property(EARLIER, None, 0, BOTH_WAYS),
        Property(CACHED, None, LAYER_ROUNDING, NO_STEPS),
        changed_outputs(passes.full, passes.other, everywhere=far is None, tells=tells),
        beyond_reach(*passes.encoded, reach=far),
    ]


def _tells(fields: Fields, words: int) -> bool:
    """Whether another word must make a difference."""
    return words > 1 and bool(fields["d_model"] >= FEW)
