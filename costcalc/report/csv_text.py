"""Every row of every table as one CSV: section, label, unit, then one column a model. Exact numbers, no grouping."""

from __future__ import annotations

import csv
import io

from costcalc.report.report import Cell, Quantity, Ratio, Report, Row
from costcalc.report.screen import Screen


def render(report: Report, screen: Screen) -> str:
    """One header, then the rows; the widest table names the columns."""
    del screen
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    widest = max(report.tables, key=lambda table: len(table.columns))
    writer.writerow(["section", "quantity", "unit", *widest.columns])
    for table in report.tables:
        for row in table.rows:
            padding = [""] * (len(widest.columns) - len(row.cells))
            writer.writerow([table.title, row.label.strip(), _unit(row), *map(_plain, row.cells), *padding])
    return out.getvalue()


def _unit(row: Row) -> str:
    units = [cell.unit for cell in row.cells if isinstance(cell, Quantity)]
    return units[0] if units else ""


def _plain(cell: Cell) -> str:
    if isinstance(cell, Quantity):
        return "" if cell.value is None else str(cell.value)
    if isinstance(cell, Ratio):
        return f"{cell.value:.6f}"
    return cell or ""
