"""Every row of every table as one CSV: section, label, unit, one column a model, status. No digits are grouped."""

from __future__ import annotations

import csv
import io

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
            cells = dict(zip(table.columns, map(_plain, row.cells), strict=True))
            about, values = [table.title, row.label.strip(), _unit(row)], [cells.get(name, "") for name in names]
            writer.writerow([*about, *values, row.status or table.status])
    for note in report.notes:  # a number without its assumptions would be another number
        writer.writerow(["note", note, "", *("" for _ in names), ""])
    return out.getvalue()


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
