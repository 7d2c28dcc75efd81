"""What is wider than the screen, folded by rich between words, and inside of a word that is longer than a line."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from costcalc.report.grid import GAP, Grid
from costcalc.report.screen import Screen

NO_LIMIT = 100_000


def folded_line(line: str, style: str, screen: Screen, width: int) -> str:
    """One line as several, in bold or dim where the screen has colours."""
    return _printed(Text(line, style=style if screen.colour else "", overflow="fold"), screen, width)


def folded_grid(grid: Grid, screen: Screen, width: int) -> str:
    """The grid with its words folded."""
    return _printed(_table(grid, screen), screen, width)


def narrowest(grid: Grid) -> int:
    """The width that the grid has when all words are below each other."""
    return _console(Screen(), NO_LIMIT).measure(_table(grid, Screen())).minimum


def _table(grid: Grid, screen: Screen) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim" if screen.colour else "")
    for column in grid.columns:
        side, heading = column.side, Text(column.heading)
        table.add_column(heading, justify=side, no_wrap=not column.folds, overflow="fold")  # type: ignore[arg-type]
    for is_strong, texts in zip(grid.strong, zip(*[column.texts for column in grid.columns], strict=True), strict=True):
        table.add_row(*map(Text, texts), style="bold" if is_strong and screen.colour else "")
    return table


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


def _printed(what: RenderableType, screen: Screen, width: int) -> str:
    console = _console(screen, width)
    console.print(what)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
