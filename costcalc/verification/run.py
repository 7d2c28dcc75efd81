"""Run a model's real shapes through the reference, in prefill and decode, and compare with what it states."""

from __future__ import annotations

import copy
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
from costcalc.verification.faults import Compared, Fault, compare
from costcalc.verification.properties import (
    Property,
    cached_equals_full,
    earlier_unchanged,
    not_finite,
    prefill_is_decode,
    rotations,
    rows_sum_to_one,
)

TOKENS = 11
"""New tokens of the prefill: a prime, so that no other size is taken for it."""
WINDOW = 5
"""A window that binds within TOKENS, in place of one that would not."""
LARGEST_ARENA = 2**28
"""Elements, 1 GiB: of a larger matrix that many columns are multiplied at a time."""
LARGEST_ACTIVATIONS = 2**30
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
    properties: what was measured. replaced: windows that were too wide to bind, and were made WINDOW. arena_bytes: what
    all parameters share.
    """

    phases: tuple[Phase, ...]
    faults: tuple[Fault, ...]
    properties: tuple[Property, ...]
    replaced: tuple[int, ...]
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
    fields, replaced = binding(arch.model_dump())
    model = Architecture.model_validate(FullForm(fields)) if replaced else arch
    tokens = min(TOKENS, arch.longest or TOKENS)
    inventory = model.inventory
    _check_size(arch.name, inventory, tokens)
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
    replaced: tuple[int, ...],
    on_progress: Progress | None,
) -> Verification:
    text = np.random.default_rng(1).integers(0, fields["vocab_size"], (1, tokens))  # (B, T)
    changed = text.copy()
    changed[:, -1] = (changed[:, -1] + 1) % fields["vocab_size"]
    request = Request(kept=tokens - 1)

    def run(label: str, some: Array, request: Request) -> tuple[Tape, Array]:
        told = None if on_progress is None else (lambda done, layers: on_progress(label, done, layers))
        tape = Tape(arena)
        with np.errstate(over="ignore", invalid="ignore"):
            return tape, forward(fields, some, tape=tape, request=request, on_layer=told)

    prefill, full = run("prefill", text, Request())
    other, logits = run("prefill, last token changed", changed, request)
    decode, step = run("decode", text[:, -1:], request)

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
        earlier_unchanged(full, logits),
        cached_equals_full(full, step),
    ]
    if not all(np.isfinite(array).all() for array in (full, logits, step)):
        measured = not_finite(*measured)
    measured += [*rotations(_rotary(fields)), prefill_is_decode(inventory, sum(prefill.flops().values()), tokens)]
    return Verification(tuple(phases), tuple(faults), tuple(measured), replaced, arena.numbers.nbytes)


def binding(fields: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """A copy whose windows all bind within TOKENS, and the windows that were replaced."""
    fields = copy.deepcopy(fields)
    replaced = set()
    for layer in _blocks(fields["decoder"]["layers"]):
        attention = layer["attention"]
        if attention is not None and attention["window"] is not None and attention["window"] >= TOKENS:
            replaced.add(attention["window"])
            attention["window"] = WINDOW
    return fields, tuple(sorted(replaced))


def _blocks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        if "pattern" in entry:
            yield from _blocks(entry["pattern"])
        else:
            yield entry


def _rotary(fields: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Each distinct rotation, with the size of the heads that it turns."""
    found: list[tuple[dict[str, Any], int]] = []
    for layer in _blocks(fields["decoder"]["layers"]):
        attention = layer["attention"]
        if attention is None or layer["positions"]["kind"] != "rope":
            continue
        turned = (layer["positions"], attention["head_dim"] or fields["d_model"] // attention["heads"])
        if turned not in found:
            found.append(turned)
    return found


def arena_for(model: Architecture) -> Arena:
    """As large as the largest parameter that is not a table, as far as LARGEST_ARENA allows."""
    largest = max(prod(weight.axes.values()) for weight in model.inventory.weights if not weight.table)
    return Arena(min(largest, LARGEST_ARENA), deviation=float(model.d_model) ** -0.5)


def _width(weight: Weight) -> int:
    """Numbers that one token has on the wider side of a matrix."""
    model = prod(size for letter, size in weight.axes.items() if letter in "DW")
    return max(model, prod(weight.axes.values()) // model)


def _check_size(name: str, inventory: Inventory, tokens: int) -> None:
    flops = sum(matmul.flops(Workload(new_tokens=tokens)) for matmul in inventory.matmuls)
    multiplied = {matmul.of for matmul in inventory.matmuls}
    widest = max(_width(weight) for weight in inventory.weights if weight.path in multiplied)
    if flops > MOST_FLOPS or tokens * widest > LARGEST_ACTIVATIONS:
        raise CostcalcError(
            f"{name} is too large to run here: {flops:,} FLOPs for {tokens} tokens, {widest:,} numbers for each",
            hint="verify a copy with fewer or narrower layers",
        )
