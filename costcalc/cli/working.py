"""The working of numbers as a report: for `costcalc explain`, and for `--explain` on every other command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from costcalc import __version__
from costcalc.calculators.figure import Figure
from costcalc.expression import Expression
from costcalc.inventory.letters import LETTERS
from costcalc.report import Cell, Formula, Measure, Quantity, Report, Row, Table
from costcalc.units import grouped, human


@dataclass(frozen=True, slots=True)
class Explained:
    """The figures of one model that are to be explained, under the model's name."""

    model: str
    figures: tuple[Figure, ...]

    @property
    def lines(self) -> list[Figure]:
        """Every figure that goes into them, and they themselves, each once and after what it is made of."""
        seen: dict[tuple[str, str], Figure] = {}
        for line in (line for figure in self.figures for line in figure.lineage()):
            known = seen.setdefault((line.name, line.unit), line)
            if known.exact_value != line.exact_value:
                raise AssertionError(f"{line.name} is {known.exact_value:,} and {line.exact_value:,}")
        return list(seen.values())


def explained(models: Mapping[str, list[Figure]]) -> Report:
    """How the figures of each model (by its name) come about: formula, numbers put in, value, sources."""
    found = [Explained(name, tuple(figures)) for name, figures in models.items()]
    objects = [_data(each) for each in found]
    return Report(
        title="; ".join(_answer(each) for each in found),
        tables=tuple(_table(each, several=len(found) > 1) for each in found),
        notes=tuple(note for note in (_legend(found), *_sources(found)) if note),
        data=objects[0] if len(objects) == 1 else objects,
    )


def _answer(each: Explained) -> str:
    if len(each.figures) != 1:
        return f"{each.model}: {len(each.figures):,} numbers, and where they come from"
    figure = each.figures[0]
    number = stated(figure)
    if not isinstance(number, int):
        return f"{each.model}: {figure.name} = {number:,.6f}, {figure.nature}"
    said, exact = human(number, figure.unit), grouped(number)
    unit = "" if figure.unit in ("", "FLOPs") and said != exact else f" {figure.unit}".rstrip()
    beside = "" if said == exact else f" ({said})"
    return f"{each.model}: {figure.name} = {exact}{unit}{beside}, {figure.nature}"


def _table(each: Explained, *, several: bool) -> Table:
    asked = {figure.name for figure in each.figures}
    rows = [
        Row(
            line.name,
            (Formula(line.formula), Formula(line.numbers), value_cell(line)),
            strong=line.name in asked,
            status=line.nature,
        )
        for line in each.lines
    ]
    title = f"{each.model}: number" if several else "number"
    return Table(title, ("formula", "with numbers", "value"), tuple(rows), status="exact")


def stated(figure: Figure) -> int | float:
    """The number as JSON has it: a whole one, but for a ratio, which has no unit, to six places."""
    exact = figure.exact_value
    return figure.value if figure.unit or isinstance(exact, int) else round(float(exact), 6)


def value_cell(figure: Figure) -> Cell:
    """The same for a reader."""
    number = stated(figure)
    return Quantity(number, figure.unit) if isinstance(number, int) else Measure(number, ",.6f")


def _legend(found: list[Explained]) -> str:
    """What the letters of all formulas mean."""
    used = {
        name
        for each in found
        for line in each.lines
        if isinstance(line.formula, Expression)
        for name in line.formula.symbols()
    }
    return "; ".join(f"{letter} {meaning}" for letter, meaning in LETTERS.items() if letter in used)


def _sources(found: list[Explained]) -> list[str]:
    """Each source once, with the numbers that it is for."""
    numbers: dict[str, dict[str, None]] = {}
    for line in (line for each in found for line in each.lines):
        if line.source:
            numbers.setdefault(line.source, {})[line.name] = None
    return [f"{', '.join(names)}: {source}" for source, names in numbers.items()]


def _data(each: Explained) -> dict[str, Any]:
    return {
        "schema": "costcalc.explain/1",
        "costcalc_version": __version__,
        "model": each.model,
        "explained": [figure.name for figure in each.figures],
        "numbers": [_line(line) for line in each.lines],
    }


def _line(line: Figure) -> dict[str, Any]:
    formula, numbers = line.formula, line.numbers
    return {
        "name": line.name,
        "unit": line.unit,
        "value": stated(line),
        "status": line.nature,
        "formula": formula if isinstance(formula, str) else formula.text(),
        "latex": None if isinstance(formula, str) else formula.latex(),
        "with_numbers": None if isinstance(numbers, str) else numbers.text(),
        "inputs": [below.name for below in line.inputs],
        "source": line.source or None,
    }
