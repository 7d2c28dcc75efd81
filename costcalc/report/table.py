"""The report as tables for a terminal: exact digits right-aligned, a human unit beside them, shares as bars.

Nothing is ever cut. Where a table is wider than the screen, human units go below the exact numbers, then models are
split over several tables, then long labels are folded, and at last each row becomes a list. Through a pipe there is no
limit.
"""

from __future__ import annotations

import io
from dataclasses import replace

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from costcalc.report.report import Cell, Formula, Measure, Quantity, Ratio, Report, Table
from costcalc.report.screen import Screen

NO_LIMIT = 100_000
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
    width = screen.width or NO_LIMIT
    for stacked in (False, True):
        grid = _grid(table, screen, stacked=stacked)
        if _width(grid) <= width:
            return [_drawn(grid, screen, NO_LIMIT)]
    if table.by_model and len(table.columns) > 1:
        middle = (len(table.columns) + 1) // 2
        return [block for part in _split(table, middle) for block in _fitted(part, screen)]
    longest = max(cell_len(word) for row in table.rows for word in (row.label.split() or [""]))
    cells = replace(table, title="", status="", rows=tuple(replace(row, label="", status="") for row in table.rows))
    narrowest = _console(Screen(), NO_LIMIT).measure(_grid(cells, screen, stacked=True)).minimum
    if width - narrowest < min(longest, LEAST_LABEL):
        return [_listed(table, screen)]
    return [_drawn(grid, screen, width)]


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
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim" if screen.colour else "")
    grid.add_column(Text(table.heading), overflow="fold")
    columns: list[list[str]] = [[table.marked(row) for row in table.rows]]
    for index, name in enumerate(table.columns):
        cells = [row.cells[index] for row in table.rows]
        exact, beside = [_exact(cell, screen) for cell in cells], _beside(cells)
        is_text = all(cell is None or isinstance(cell, str | Formula) for cell in cells)
        is_bar = any(isinstance(cell, Ratio) and cell.form == "bar" for cell in cells)
        heading = Text(name if screen.width is None else "\n".join(chop_cells(name, WIDEST_NAME)))
        side = "left" if is_text or is_bar else "right"
        grid.add_column(heading, justify=side, no_wrap=not is_text, overflow="fold")  # type: ignore[arg-type]
        if stacked:
            below = ["  ".join(filter(None, words)) for words in zip(*beside, strict=True)] or [""] * len(exact)
            columns.append([f"{number}\n{words}".rstrip("\n") for number, words in zip(exact, below, strict=True)])
        else:
            columns += [exact, *beside]
            for _ in beside:
                grid.add_column("", justify="right", no_wrap=True)
    for row, texts in zip(table.rows, zip(*columns, strict=True), strict=True):
        grid.add_row(*map(Text, texts), style="bold" if row.strong and screen.colour else "")
    return grid


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
    return _drawn(Text(line, style=style if screen.colour else "", overflow="fold"), screen, screen.width or NO_LIMIT)


def _console(screen: Screen, width: int) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def _width(grid: Grid) -> int:
    console = _console(Screen(), NO_LIMIT)
    return console.measure(grid).maximum


def _drawn(what: Grid | Text, screen: Screen, width: int) -> str:
    console = _console(screen, width)
    console.print(what)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())
