"""Run a model's real shapes through the reference, in prefill and decode, and compare with what it states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm
from costcalc.errors import CostcalcError
from costcalc.inventory import Inventory, Weight, Workload
from costcalc.reference import Arena, NoReferenceError, Request, Tape, forward
from costcalc.reference.arrays import Array
from costcalc.verification.faults import Compared, Fault, compare, told_once
from costcalc.verification.properties import (
    FEW,
    Property,
    cached_equals_full,
    distance,
    earlier_unchanged,
    prefill_is_decode,
    rows_sum_to_one,
    tellable,
)
from costcalc.verification.rotations import rotations

TOKENS = 11
"""New tokens of the prefill: a prime, so that no other size is taken for it."""
WINDOW = 5
"""A window that binds within TOKENS, in place of one that would not."""
LARGEST_ARENA = 2**28
"""Elements, 1 GiB: of a larger matrix that many columns are multiplied at a time."""
TABLE_ROWS = 512
"""Of a vocabulary's table at least so many rows are held, where it has them: more than one, so that words differ."""
LARGEST_ACTIVATIONS = 2**27
"""Numbers of all tokens on the wider side of a matrix, 512 MiB; several such arrays are alive at once."""
MOST_FLOPS = 10**15

Progress = Callable[[str, int, int], None]
"""Told what is running, how many of its layers are done, and of how many."""


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

    Three passes over one random float32 arena: a prefill of 11 tokens; the same with another last token, of which the
    cache keeps the ten that are the same; and the real last token decoded after those. Raises `CostcalcError` where a
    model is too large to run or a kind has no forward pass.
    """
    refuse_too_large(arch)
    tokens = tokens_for(arch)
    fields, replaced = binding(arch.model_dump(), tokens)
    try:
        model = Architecture.model_validate(FullForm(fields)) if replaced else arch
    except ValueError as error:  # a copy with changed fields, which nothing has checked
        raise CostcalcError(
            f"{arch.name} is no valid model: {error}", hint="costcalc.load checks what it loads"
        ) from None
    inventory = model.inventory
    arena = arena_for(model)
    try:
        return _verified(fields, inventory, arena, tokens, replaced, on_progress)
    except NoReferenceError as error:
        raise CostcalcError(f"{arch.name} cannot be verified: {error}", hint="report this, please") from None
    except MemoryError:
        raise CostcalcError(f"{arch.name} does not fit into memory here", hint="verify a narrower copy of it") from None


def _verified(
    fields: dict[str, Any],
    inventory: Inventory,
    arena: Arena,
    tokens: int,
    replaced: dict[int, int],
    on_progress: Progress | None,
) -> Verification:
    text = np.random.default_rng(1).integers(0, fields["vocab_size"], (1, tokens))  # (B, T)
    changed = text.copy()
    last = changed[:, -1]
    changed[:, -1] = np.where(last + 1 < fields["vocab_size"], last + 1, np.maximum(last - 1, 0))  # a row beside it
    request = Request(kept=tokens - 1)

    rows: list[Array] = []
    errors: list[float] = []

    def kept(_: int, x: Array) -> Array:
        rows.append(x[:, -1:].copy())  # (B, 1, D)
        return x

    def compared(done: int, x: Array) -> Array:
        errors.append(distance(x, rows[done - 1], scale=rows[done - 1]))
        return rows[done - 1]  # every layer starts from the same

    def run(label: str, some: Array, request: Request, then: Callable[[int, Array], Array]) -> tuple[Tape, Array]:
        def on_layer(done: int, layers: int, x: Array) -> Array:
            if on_progress is not None:
                on_progress(label, done, layers)
            return then(done, x)

        tape = Tape(arena)
        with np.errstate(all="ignore"):
            return tape, forward(fields, some, tape=tape, request=request, on_layer=on_layer)

    prefill, full = run("prefill", text, Request(), kept)
    other, logits = run("prefill, last token changed", changed, request, lambda _, x: x)
    decode, step = run("decode", text[:, -1:], request, compared)
    errors.append(distance(step, full[:, -1:], scale=full))

    phases, faults = [], []
    for name, tape, workload in (
        ("prefill", prefill, Workload(new_tokens=tokens)),
        ("decode", decode, Workload(new_tokens=1, past_tokens=tokens - 1)),
    ):
        totals, differing = compare(inventory, workload, tape, phase=name)
        phases.append(Phase(name, workload, tuple(totals)))
        faults += differing
    has_core = any(matmul.role == "scores" for matmul in inventory.matmuls)
    measured = [
        rows_sum_to_one([tape.row_sum_error for tape in (prefill, other, decode)] if has_core else []),
        earlier_unchanged(full, logits, tells=fields["vocab_size"] > 1 and fields["d_model"] >= FEW),
        cached_equals_full(errors),
    ]
    measured = tellable(measured, finite=all(np.isfinite(array).all() for array in (full, logits, step)))
    with np.errstate(all="ignore"):
        measured += tellable(rotations(_rotary(fields), d_model=fields["d_model"], arena=arena), finite=True)
    measured.append(prefill_is_decode(inventory, sum(prefill.flops().values()), tokens))
    return Verification(tuple(phases), tuple(told_once(faults)), tuple(measured), replaced, arena.numbers.nbytes)


def tokens_for(arch: Architecture) -> int:
    """TOKENS, or as many as the position table has rows."""
    return min(TOKENS, arch.longest or TOKENS)


def binding(fields: dict[str, Any], tokens: int) -> tuple[dict[str, Any], dict[int, int]]:
    """The fields with every window that would not bind within `tokens` made smaller, and what was made of which."""
    binds, replaced = min(WINDOW, max(tokens - 1, 1)), {}
    for layer in _blocks(fields["decoder"]["layers"]):
        attention = layer["attention"] or {}
        window = attention.get("window")
        if window is not None and window >= tokens and window != binds:
            replaced[window] = attention["window"] = binds
    return fields, dict(sorted(replaced.items()))


def _blocks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        if "pattern" in entry:
            yield from _blocks(entry["pattern"])
        else:
            yield entry


def _rotary(fields: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each distinct attention that has rotary positions, with those."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for layer in _blocks(fields["decoder"]["layers"]):
        if layer["attention"] is not None and layer["positions"]["kind"] == "rope":
            turned = (layer["attention"], layer["positions"])
            found.setdefault(repr(turned), turned)
    return list(found.values())


def arena_for(model: Architecture) -> Arena:
    """As large as the largest parameter, of a table TABLE_ROWS rows, as far as LARGEST_ARENA allows."""
    largest = max(_held(weight) for weight in model.inventory.weights)
    return Arena(min(largest, LARGEST_ARENA), deviation=float(model.d_model) ** -0.5)


def _held(weight: Weight) -> int:
    rows, *width = weight.axes.values()
    return (min(rows, TABLE_ROWS) if weight.table else rows) * prod(width)


def refuse_too_large(arch: Architecture) -> None:
    """Raise `CostcalcError` where a pass of `arch` would take hours, or activations of many gigabytes."""
    tokens, inventory = tokens_for(arch), arch.inventory
    flops = sum(matmul.flops(Workload(new_tokens=tokens)) for matmul in inventory.matmuls)
    multiplied = {matmul.of for matmul in inventory.matmuls}
    widest = max(_width(weight) for weight in inventory.weights if weight.path in multiplied)
    if flops > MOST_FLOPS or tokens * widest > LARGEST_ACTIVATIONS:
        raise CostcalcError(
            f"{arch.name} is too large to run here: {flops:,} FLOPs for {tokens} tokens, {widest:,} numbers for each",
            hint="verify a copy with fewer layers, a smaller vocabulary or smaller widths",
        )


def _width(weight: Weight) -> int:
    """Numbers that one token has on the wider side of a matrix."""
    models = [size for letter, size in weight.axes.items() if letter in "DW"]
    return max(*models, prod(weight.axes.values()) // prod(models))
