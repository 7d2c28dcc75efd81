"""The report as Markdown: the title in bold, a pipe table each, notes as a list."""

from __future__ import annotations

from costcalc.report.report import Cell, Measure, Quantity, Ratio, Report, Table
from costcalc.report.screen import Screen
from costcalc.units import grouped, human


def render(report: Report, screen: Screen) -> str:
    """Numbers right-aligned, exact with the human unit in brackets."""
    del screen
    parts = [f"**{_escaped(report.title)}**", *map(_table, report.tables)]
    if report.notes:
        parts.append("\n".join(f"- {_escaped(note)}" for note in report.notes))
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    lines = [
        _line([_escaped(name) for name in (table.heading, *table.columns)]),
        _line([":--", *["--:"] * len(table.columns)]),
    ]
    lines += [_line([_escaped(table.marked(row).strip()), *map(_text, row.cells)]) for row in table.rows]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    if isinstance(cell, Quantity):
        if cell.value is None:
            return "-"
        said = human(cell.value, cell.unit)
        return grouped(cell.value) if said == grouped(cell.value) else f"{grouped(cell.value)} ({said})"
    if isinstance(cell, Measure):
        return cell.said
    if isinstance(cell, Ratio):
        return f"{cell.value:.3f}" if cell.form == "quotient" else f"{cell.value:.1%}"
    return _escaped(cell or "")


def _escaped(text: str) -> str:
    for character in "\\|*_`<[":
        text = text.replace(character, f"\\{character}")
    return text
