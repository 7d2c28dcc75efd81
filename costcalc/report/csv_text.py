"""Every row of every table as one CSV: section, label, unit, one column a model, status. No digits are grouped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from costcalc.report.report import Cell, Formula, Measure, Quantity, Ratio, Report, Row
from costcalc.report.screen import Screen


def render(report: Report, screen: Screen) -> str:
    """One header with the columns of all tables, then the rows, each cell under its own column's name."""
    del screen
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    widest_first = sorted(report.tables, key=lambda table: -len(table.columns))
    names = list(dict.fromkeys(name for table in widest_first for name in table.columns))
    writer.writerow(["section", "quantity", "unit", *names, "status"])
    for table in report.tables:
        for row in table.rows:
            for unit, texts in _lines(row):
                cells = dict(zip(table.columns, texts, strict=True))
                values = [cells.get(name, "") for name in names]
                writer.writerow([table.title, row.label.strip(), unit, *values, row.status or table.status])
    for note in report.notes:  # a number without its assumptions would be another number
        writer.writerow(["note", note, "", *("" for _ in names), ""])
    return out.getvalue()


def _lines(row: Row) -> Iterator[tuple[str, list[str]]]:
    """(unit, a text each cell): the values, and below them, where some are compared with others, how many times."""
    yield _unit(row), [_plain(cell) for cell in row.cells]
    ratios = [cell.ratio if isinstance(cell, Quantity) else None for cell in row.cells]
    if any(ratio is not None for ratio in ratios):
        yield "ratio", ["" if ratio is None else f"{ratio:.6g}" for ratio in ratios]


def _unit(row: Row) -> str:
    """The unit of a row's numbers; empty where they have none, or several."""
    units = {cell.unit for cell in row.cells if isinstance(cell, Quantity)}
    return units.pop() if len(units) == 1 else ""


def _plain(cell: Cell) -> str:
    if isinstance(cell, Quantity | Measure):
        return "" if cell.value is None else str(cell.value)
    if isinstance(cell, Ratio):
        return f"{cell.value:.6f}"
    return cell.said if isinstance(cell, Formula) else cell or ""
