"""Columns of text beside each other, each as wide as its widest line; nothing is folded here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from costcalc.report.screen import Screen

GAP = 2
STYLES = {"bold": 1, "dim": 2}
"""The codes of ECMA-48 (SGR) for them."""


class Column(NamedTuple):
    """A heading and a text for each row, each of one or several lines.

    side: "left" or "right", where the texts stand. folds: whether they are words, which may be folded.
    """

    heading: str
    texts: list[str]
    side: str = "right"
    folds: bool = False

    @property
    def width(self) -> int:
        """Characters of the widest line, as a terminal counts them."""
        return max([cell_len(line) for text in (self.heading, *self.texts) for line in text.split("\n")])


class Grid(NamedTuple):
    """Columns, and which of the rows are strong."""

    columns: list[Column]
    strong: list[bool]

    @property
    def width(self) -> int:
        """Characters of the widest row, where every column is as wide as it wants to be."""
        return sum([column.width for column in self.columns]) + GAP * (len(self.columns) - 1)


def drawn(grid: Grid, screen: Screen) -> str:
    """The headings, which end on one line, and every row, on as many lines as its tallest cell has."""
    columns = grid.columns
    places = [(column.width, column.side) for column in columns]
    above = _lines([column.heading for column in columns], places, from_below=True)
    lines = [styled(line, "dim", screen) for line in above]
    for is_strong, texts in zip(grid.strong, zip(*[column.texts for column in columns], strict=True), strict=True):
        lines += [styled(line, "bold" if is_strong else "", screen) for line in _lines(texts, places)]
    return "".join(lines)


def styled(line: str, style: str, screen: Screen) -> str:
    """A line without blanks at its end, in bold or dim where the screen has colours."""
    line = line.rstrip()
    return f"\x1b[{STYLES[style]}m{line}\x1b[0m\n" if style and line and screen.colour else f"{line}\n"


def _lines(texts: Sequence[str], places: list[tuple[int, str]], *, from_below: bool = False) -> list[str]:
    """The lines of one row; `places` are the width and the side of each column."""
    cells = [text.split("\n") for text in texts]
    height = max(map(len, cells))
    blanks = [[""] * (height - len(lines)) for lines in cells]
    filled = [empty + lines if from_below else lines + empty for lines, empty in zip(cells, blanks, strict=True)]
    return [(" " * GAP).join(map(_padded, line, places)) for line in zip(*filled, strict=True)]


def _padded(text: str, place: tuple[int, str]) -> str:
    width, side = place
    blanks = " " * (width - cell_len(text))
    return text + blanks if side == "left" else blanks + text
