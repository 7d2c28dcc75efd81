"""The report as Markdown: the title in bold, a pipe table each, notes as a list."""

from __future__ import annotations

from costcalc.report.report import Cell, Formula, Measure, Quantity, Ratio, Report, Table
from costcalc.report.screen import Screen


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
        _line([":--", *(_side(table, index) for index in range(len(table.columns)))]),
    ]
    lines += [_line([_escaped(table.marked(row).strip()), *map(_text, row.cells)]) for row in table.rows]
    return "\n".join(lines)


def _side(table: Table, index: int) -> str:
    """Formulas read from the left, all else is a number or stands beside one."""
    return ":--" if any(isinstance(row.cells[index], Formula) for row in table.rows) else "--:"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    if isinstance(cell, Quantity):
        return cell.said
    if isinstance(cell, Measure):
        return cell.said
    if isinstance(cell, Ratio):
        return f"{cell.value:.3f}" if cell.form == "quotient" else f"{cell.value:.1%}"
    if isinstance(cell, Formula):
        return f"`{cell.said}`" if cell.said and not isinstance(cell.expression, str) else _escaped(cell.said)
    return _escaped(cell or "")


def _escaped(text: str) -> str:
    for character in "\\|*_`<[":
        text = text.replace(character, f"\\{character}")
    return text
