"""What we say, before anyone decides how: quantities with their units, in tables of rows, under one title line.

A renderer sees a `Report` only, never a model, and computes nothing but percentages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from costcalc.expression import Expression
from costcalc.units import grouped, human

MARKS = {"exact": "=", "modelled": "*", "estimate": "~", "measured": "^"}
"""What stands before a row whose numbers are something else than its table's."""
SMALL = 0.1
"""Ratios below are said with two digits, not with two decimals."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A whole number, None where it does not apply; unit: parameters, FLOPs, bytes, elements or tokens.

    versus: another model's number, which the value is so many times. signed: a difference, so + is written as well.
    """

    value: int | None
    unit: str
    versus: int | None = None
    signed: bool = False

    @property
    def digits(self) -> str:
        """All of them: '8,030,261,248', or '+1,234' of a difference."""
        if self.value is None:
            return "-"
        return f"{self.value:+,}" if self.signed and self.value else grouped(self.value)

    @property
    def rounded(self) -> str:
        """The number in a human unit: '8.03 B', or '+1.25 MiB' of a difference."""
        if self.value is None:
            return ""
        return f"{'+' if self.signed and self.value > 0 else ''}{human(self.value, self.unit)}"

    @property
    def said(self) -> str:
        """On one line: the digits, and in brackets the human unit where it says more, and the ratio."""
        beside = [words for words in (self.rounded, self.times) if words not in ("", self.digits)]
        return f"{self.digits} ({', '.join(beside)})" if beside else self.digits

    @property
    def ratio(self) -> float | None:
        """How many times `versus` the value is; None where it is compared with nothing."""
        return self.value / self.versus if self.value is not None and self.versus else None

    @property
    def times(self) -> str:
        """The ratio for a reader: 'x 1.19'."""
        if self.ratio is None:
            return ""
        return f"x {self.ratio:,.2f}" if self.ratio >= SMALL else f"x {self.ratio:.2g}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One whole number over another: a quotient, or a share of a total in percent, or that with a bar."""

    part: int
    whole: int
    form: str = "quotient"  # | "percent" | "bar"

    @property
    def value(self) -> float:
        """The quotient, 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that is no whole one, None where it does not apply: all digits where programs read.

    spec: how a screen shows it, in Python's format language; without one it has two digits.
    """

    value: int | float | None
    spec: str = ""

    @property
    def said(self) -> str:
        """For a reader."""
        if self.value is None:
            return "-"
        if self.spec:
            return format(self.value, self.spec)
        return f"{self.value:.1e}" if self.value and isinstance(self.value, float) else f"{self.value:,.0f}"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, or words in the place of one."""

    expression: Expression | str

    @property
    def said(self) -> str:
        """On one line of plain text."""
        return self.expression if isinstance(self.expression, str) else self.expression.text()


Cell = Quantity | Ratio | Measure | Formula | str | None


STATUSES = ("exact", "modelled", "estimate", "measured")
"""What a number can be: counted to the last unit; from a model of how something behaves; by a rule of thumb or another
named convention; or read off a run."""


@dataclass(frozen=True, slots=True)
class Row:
    """A label and its cells, one a column; a `strong` row is the answer or a sum; a `status` beats the table's."""

    label: str
    cells: tuple[Cell, ...]
    strong: bool = False
    status: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column names; the first column, of labels, is named by `title`.

    by_model: each column is a model, so a narrow screen may show some models below the others.
    status: one of STATUSES, what the numbers are; empty for a table without numbers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    by_model: bool = False
    status: str = ""

    @property
    def heading(self) -> str:
        """The title, and what the numbers are; rows of another status are marked, see `marked`."""
        others = {row.status for row in self.rows if self.is_marked(row)}
        said = [status for status in (self.status, *(f"{MARKS[other]} {other}" for other in sorted(others))) if status]
        return f"{self.title} ({', '.join(said)})" if said else self.title

    def is_marked(self, row: Row) -> bool:
        """Whether the row's numbers are something else than the table's."""
        return bool(row.status) and row.status != self.status

    def marked(self, row: Row) -> str:
        """The row's label, with a mark in front where its numbers are something else than the table's."""
        indent = " " * (len(row.label) - len(row.label.lstrip()))
        return f"{indent}{MARKS[row.status]} {row.label.lstrip()}" if self.is_marked(row) else row.label


@dataclass(frozen=True, slots=True)
class Report:
    """title: one line that says the answer. notes: assumptions and what does not apply. data: the JSON, literally."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    data: Any


def side_by_side(
    title: str,
    names: list[str],
    sheets: list[dict[str, Cell]],
    *,
    strong: str | None = None,
    status: str = "exact",
    others: dict[str, str] | None = None,
) -> Table:
    """One column a model: rows in the order in which they appear, empty where a model has none.

    others: the status of rows whose numbers are not what the table's are, by their labels.
    """
    labels, statuses = _in_one_order(sheets), others or {}
    rows = [
        Row(label, tuple(sheet.get(label) for sheet in sheets), label == strong, statuses.get(label, ""))
        for label in labels
    ]
    return Table(title, tuple(names), tuple(rows), by_model=True, status=status)


def _in_one_order(sheets: list[dict[str, Cell]]) -> list[str]:
    """The labels of all sheets; one that those before did not have comes behind the label before it, or last."""
    labels: list[str] = []
    for sheet in sheets:
        before: str | None = None
        for label in sheet:
            if label not in labels:
                labels.insert(len(labels) if before is None else labels.index(before) + 1, label)
            before = label
    return labels


def with_shares(
    title: str,
    name: str,
    amounts: dict[str, int],
    unit: str,
    *,
    status: str = "exact",
    others: dict[str, str] | None = None,
) -> Table:
    """One model's parts, each with its share of their sum as a bar; others: as in `side_by_side`."""
    total, statuses = sum(amounts.values()), others or {}
    rows = [
        Row(label, (Quantity(value, unit), Ratio(value, total, "bar")), status=statuses.get(label, ""))
        for label, value in amounts.items()
    ]
    return Table(title, (name, "share"), tuple(rows), status=status)
