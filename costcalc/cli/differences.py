"""What each difference of two models costs on its own, and the rest that they cost together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from costcalc.architecture import Architecture, RuleError
from costcalc.architecture.changes import Change, Said, applied, changes
from costcalc.calculators.attention import passes
from costcalc.calculators.flops import flops
from costcalc.calculators.kv_cache import held_bytes
from costcalc.calculators.parameters import parameters
from costcalc.report import Cell, Quantity, Row, Table
from costcalc.units import grouped, ranges, several


class Question(NamedTuple):
    """At which context (a decoder's), beside how many encoder tokens where a model reads them, in which cache dtype."""

    context: int
    memory_tokens: int
    dtype: str


class Cost(NamedTuple):
    """What a model has, or has more than another; FLOPs of the next token, of the sequence where an encoder runs.

    modelled: what of the FLOPs is recurrent work, an estimate.
    """

    parameters: int
    flops: int
    kv_cache_bytes: int
    modelled: int

    @property
    def told(self) -> tuple[int, int, int]:
        """What has a column."""
        return self.parameters, self.flops, self.kv_cache_bytes

    @property
    def status(self) -> str:
        """Of its FLOPs."""
        return "modelled" if self.modelled else ""

    def less(self, other: Cost) -> Cost:
        """The difference."""
        return Cost(*(mine - its for mine, its in zip(self, other, strict=True)))


NOTHING = (None, None, None)
HEADINGS = ("added parameters", "added FLOPs", "added cache")
UNITS = ("parameters", "FLOPs", "bytes")
PASSES = {"next_token": "the next token", "sequence": "the whole sequence, in which an encoder runs"}


@dataclass(frozen=True, slots=True)
class Differences:
    """singles: each change of the base with what it costs alone, or with the rule that it breaks alone.

    together: what is left of the whole, `all`, when the possible singles are taken away: sum of singles + together =
    all, exactly, in each of the three quantities. of: the pass that FLOPs are of, one of PASSES.
    """

    base: Architecture
    of: str
    singles: tuple[tuple[Change, Cost | RuleError], ...]
    together: Cost
    all: Cost


def differences(base: Architecture, other: Architecture, question: Question) -> Differences:
    """Every field in which `other` differs, applied to `base` alone; FLOPs of one pass, cache at the context."""
    of = "next_token" if base.main == other.main == "decoder" and not (base.encoder or other.encoder) else "sequence"
    start = _cost(base, of, question)
    whole = _cost(other, of, question).less(start)
    singles: list[tuple[Change, Cost | RuleError]] = []
    together = whole
    for change in changes(base, other):
        try:
            alone = _cost(applied(base, change), of, question).less(start)
        except RuleError as rule:
            singles.append((change, rule))
            continue
        singles.append((change, alone))
        together = together.less(alone)
    return Differences(base, of, tuple(singles), together, whole)


def _cost(model: Architecture, of: str, question: Question) -> Cost:
    inventory = model.inventory
    memory = question.memory_tokens if inventory.takes_memory else 0
    last, whole = passes(question.context, memory_tokens=memory)
    counted = flops(inventory, last if of == "next_token" else whole)
    held = held_bytes(inventory, question.context, memory_tokens=memory, dtype=question.dtype)
    return Cost(parameters(inventory).total, counted.forward, held, counted.modelled)


def table(found: Differences, base: str, other: str) -> Table:
    """A row for each change, then what only their combination does, then all; each column adds up."""
    rows: list[Row] = []
    for label, (change, alone) in zip(_labels(found), found.singles, strict=True):
        known = None if isinstance(alone, RuleError) else alone
        cost = _cells(NOTHING if known is None else known.told)
        status = "" if known is None else known.status
        rows.append(Row(label, (_cell(change.base), _cell(change.other), *cost), status=status))
        rows += [Row(f"  with {name}", (_cell(old), _cell(new), *NOTHING)) for name, old, new in change.inside]
    if rows:
        rows.append(Row("together", (None, None, *_cells(found.together.told)), status=found.together.status))
        rows.append(Row("all", (None, None, *_cells(found.all.told)), strong=True, status=found.all.status))
    # Every column can be read alone, so a narrow screen may show some below the others.
    return Table("changes", (base, other, *HEADINGS), tuple(rows), by_model=True, status="exact")


def notes(found: Differences, base: str, other: str) -> list[str]:
    """What the rows mean, and why some changes have no numbers."""
    if not found.singles:
        return [f"no field differs: {base} and {other} are one architecture"]
    flops_of = PASSES[found.of]
    said = [
        f"a change is {base} with that one field of {other}; FLOPs are of {flops_of}, the cache is at the context",
        "together is what the changes do only in combination: each column adds up to all",
    ]
    if any(change.field == "layers" for change, _ in found.singles):
        said.append("layers of another number and in another structure are one change of the whole")
    for label, (_, alone) in zip(_labels(found), found.singles, strict=True):
        if isinstance(alone, RuleError):
            said.append(f"{label} alone is impossible, so that what it does is in together: {alone}")
    return said


def data(found: Differences) -> dict[str, Any]:
    """The rows of the table."""
    return {
        "changes": [_change(change, alone, found.of) for change, alone in found.singles],
        "together": _added(found.together.told, found.of),
        "all": _added(found.all.told, found.of),
    }


def _labels(found: Differences) -> list[str]:
    """The field of each change, and its layers where those are not all, or where another change has its name."""
    times = Counter(change.field for change, _ in found.singles)
    return [
        change.field
        if len(change.layers) in (0, _depth(found.base, change)) and times[change.field] == 1
        else f"{change.field} ({_where(change)})"
        for change, _ in found.singles
    ]


def _depth(base: Architecture, change: Change) -> int:
    """The layers of the stack that the change is made in; 0 outside of the stacks."""
    stack = base.stacks.get(str(change.paths[0][0]))
    return 0 if stack is None else stack.depth


def _where(change: Change) -> str:
    if not change.layers:
        return "outside the layers"
    return f"{several(len(change.layers), 'layer')}: {ranges(list(change.layers))}"


def _cells(cost: Iterable[int | None]) -> list[Cell]:
    return [Quantity(value, unit, signed=True) for value, unit in zip(cost, UNITS, strict=True)]


def _cell(said: Said) -> Cell:
    """A field's value as people write it: sizes with their digits grouped."""
    value = _whole(said.value)
    if value is None:
        return said.derived or "none"
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int):
        if not said.derived:
            return Quantity(value, "")
        text = grouped(value)
    else:
        text = f"{value:.6g}" if isinstance(value, float) else value
    return f"{text} ({said.derived})" if said.derived else text


def _whole(value: Any) -> Any:
    """500000.0 is the 500,000 that people write."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _change(change: Change, alone: Cost | RuleError, of: str) -> dict[str, Any]:
    return {
        "field": change.field,
        "layers": len(change.layers),
        "base": _whole(change.base.value),
        "base_derived_from": change.base.derived or None,
        "other": _whole(change.other.value),
        "other_derived_from": change.other.derived or None,
        "with": [
            {"field": name, "base": _whole(old.value), "other": _whole(new.value)} for name, old, new in change.inside
        ],
        **_added(NOTHING if isinstance(alone, RuleError) else alone.told, of),
        "impossible_alone": str(alone) if isinstance(alone, RuleError) else None,
    }


def _added(cost: Iterable[int | None], of: str) -> dict[str, int | None]:
    return dict(zip(("added_parameters", f"added_{of}_flops", "added_kv_cache_bytes"), cost, strict=True))
