r"""The report as LaTeX, a fragment to \input: a tabular for each table, formulas in mathematics, notes as a list.

It needs no package. Numbers are exact, with the human unit in brackets, as in Markdown.
"""

from __future__ import annotations

import re

from costcalc.report.report import Cell, Formula, Measure, Quantity, Ratio, Report, Row, Table
from costcalc.report.screen import Screen

ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "^": r"\textasciicircum{}",
    "·": r"$\cdot$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def render(report: Report, screen: Screen) -> str:
    """The title in bold, then every table, then the notes."""
    del screen
    parts = [rf"\noindent\textbf{{{escaped(report.title)}}}", *map(_table, report.tables)]
    if report.notes:
        items = "\n".join(rf"\item {_first(escaped(note))}" for note in report.notes)
        parts.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    sides = ["r" if _is_numeric(table, index) else "l" for index in range(len(table.columns))]
    lines = [
        rf"\begin{{tabular}}{{l{''.join(sides)}}}",
        r"\hline",
        _line([escaped(name) for name in (table.heading, *table.columns)]),
        r"\hline",
        *(_row(table, row) for row in table.rows),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _is_numeric(table: Table, index: int) -> bool:
    return any(isinstance(row.cells[index], Quantity | Ratio | Measure) for row in table.rows)


def _row(table: Table, row: Row) -> str:
    texts = [escaped(table.marked(row).strip()), *map(_text, row.cells)]
    return _line([rf"\textbf{{{text}}}" if text else "" for text in texts] if row.strong else texts)


def _line(cells: list[str]) -> str:
    return f"{_first(' & '.join(cells))} \\\\"


def _text(cell: Cell) -> str:
    if isinstance(cell, Quantity):
        return "--" if cell.value is None else escaped(cell.said)
    if isinstance(cell, Ratio):
        return escaped(f"{cell.value:.3f}" if cell.form == "quotient" else f"{cell.value:.1%}")
    if isinstance(cell, Formula):
        expression = cell.expression
        return escaped(expression) if isinstance(expression, str) else f"${expression.latex()}$"
    return escaped(cell.said if isinstance(cell, Measure) else cell or "")


def escaped(text: str) -> str:
    """Text in which no character is a command, and no two hyphens are a dash."""
    plain = "".join(ESCAPES.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)


def _first(text: str) -> str:
    """Text at the beginning of a row or of an item: * and [ would belong to the command in front of it."""
    return f"{{}}{text}" if text.startswith(("*", "[")) else text
