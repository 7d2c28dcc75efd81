"""The report as tables for a terminal: exact digits right-aligned, a human unit beside them, shares as bars.

Nothing is ever cut. Where a table is wider than the screen, human units go below the exact numbers, then models are
split over several tables, then long labels are folded, and at last each row becomes a list. Through a pipe there is no
limit.
"""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len, chop_cells

from costcalc.report.grid import Column, Grid, drawn, styled
from costcalc.report.report import Cell, Formula, Measure, Quantity, Ratio, Report, Table
from costcalc.report.screen import Screen

BAR_WIDTH = 16
WIDEST_NAME = 28
LEAST_LABEL = 16
"""Characters for words of labels, and the gap behind them: with less, rows become lists."""
EIGHTHS = " ▏▎▍▌▋▊▉"


def render(report: Report, screen: Screen) -> str:
    """Title line, tables, notes, with a blank line between."""
    blocks = [_text(report.title, screen, "bold")]
    blocks += [block for table in report.tables for block in _fitted(table, screen)]
    if report.notes:
        blocks.append("".join(_text(f"note: {note}", screen, "dim") for note in report.notes))
    return "\n".join(blocks)


def _fitted(table: Table, screen: Screen) -> list[str]:
    """The table as one block, or as several that each fit the screen."""
    wide, width = _grid(table, screen, stacked=False), screen.width
    if width is None or wide.width <= width:
        return [drawn(wide, screen)]
    grid = _grid(table, screen, stacked=True)
    if grid.width <= width:
        return [drawn(grid, screen)]
    if table.by_model and len(table.columns) > 1:
        middle = (len(table.columns) + 1) // 2
        return [block for part in _split(table, middle) for block in _fitted(part, screen)]
    return [_folded(table, grid, screen, width)]


def _folded(table: Table, grid: Grid, screen: Screen, width: int) -> str:
    """The table with its words folded, or as a list where labels would have no room."""
    from costcalc.report.folded import folded_grid, narrowest  # noqa: PLC0415 - most tables fit: rich takes long to load

    longest = max(cell_len(word) for row in table.rows for word in (row.label.split() or [""]))
    cells = replace(table, title="", status="", rows=tuple(replace(row, label="", status="") for row in table.rows))
    if width - narrowest(_grid(cells, screen, stacked=True)) < min(longest, LEAST_LABEL):
        return _listed(table, screen)
    return folded_grid(grid, screen, width)


def _listed(table: Table, screen: Screen) -> str:
    """Each label on a line of its own, and below it a line for each cell that says something."""
    lines = [_text(table.heading, screen, "dim")]
    for row in table.rows:
        lines.append(_text(table.marked(row), screen, "bold" if row.strong else ""))
        for name, cell in zip(table.columns, row.cells, strict=True):
            words = "  ".join(filter(None, [_exact(cell, screen), *(column[0] for column in _beside([cell]))]))
            if words:
                lines.append(_text(f"  {name}: {words}" if name else f"  {words}", screen, ""))
    return "".join(lines)


def _split(table: Table, at: int) -> list[Table]:
    return [
        replace(
            table, columns=table.columns[part], rows=tuple(replace(row, cells=row.cells[part]) for row in table.rows)
        )
        for part in (slice(0, at), slice(at, None))
    ]


def _grid(table: Table, screen: Screen, *, stacked: bool) -> Grid:
    columns = [Column(table.heading, [table.marked(row) for row in table.rows], "left", folds=True)]
    for index, name in enumerate(table.columns):
        cells = [row.cells[index] for row in table.rows]
        exact, beside = [_exact(cell, screen) for cell in cells], _beside(cells)
        is_text = all(cell is None or isinstance(cell, str | Formula) for cell in cells)
        is_bar = any(isinstance(cell, Ratio) and cell.form == "bar" for cell in cells)
        heading = name if screen.width is None else "\n".join(chop_cells(name, WIDEST_NAME))
        if stacked and beside:
            below = ["  ".join(filter(None, words)) for words in zip(*beside, strict=True)]
            exact = [f"{number}\n{words}".rstrip("\n") for number, words in zip(exact, below, strict=True)]
            beside = []
        columns.append(Column(heading, exact, "left" if is_text or is_bar else "right", folds=is_text))
        columns += [Column("", words) for words in beside]
    return Grid(columns, [row.strong for row in table.rows])


def _exact(cell: Cell, screen: Screen) -> str:
    if isinstance(cell, Quantity):
        return cell.digits
    if isinstance(cell, Measure | Formula):
        return cell.said
    if not isinstance(cell, Ratio):
        return cell or ""
    if cell.form == "bar":
        return f"{cell.value:6.1%}  {bar(cell.value, unicode=screen.unicode)}"
    return f"{cell.value:.3f}" if cell.form == "quotient" else f"{cell.value:.1%}"


def _beside(cells: list[Cell]) -> list[list[str]]:
    """What a column says beside its digits: human units and ratios, each for all rows, where any row has one."""
    words = [(_rounded(cell), cell.times) if isinstance(cell, Quantity) else ("", "") for cell in cells]
    return [list(column) for column in zip(*words, strict=True) if any(column)]


def _rounded(cell: Quantity) -> str:
    """The human unit, where it says more than the digits: not '447 B' beside '447'."""
    return "" if cell.rounded.partition(" ")[0] == cell.digits else cell.rounded


def bar(share: float, *, unicode: bool) -> str:
    """A share between 0 and 1 as a bar of at most BAR_WIDTH characters; never nothing for something."""
    if not unicode:
        return "#" * max(round(share * BAR_WIDTH), 1 if share else 0)
    eighths = max(round(share * BAR_WIDTH * 8), 1 if share else 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _text(line: str, screen: Screen, style: str) -> str:
    if screen.width is None or cell_len(line) <= screen.width:
        return styled(line, style, screen)
    from costcalc.report.folded import folded_line  # noqa: PLC0415 - as above

    return folded_line(line, style, screen, screen.width)
