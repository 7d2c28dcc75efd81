"""Where data came from, and where in the text each of its keys stands, so that an error can show the place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from costcalc.errors import CostcalcError, Excerpt

Where = tuple[str | int, ...]
Mark = tuple[int, int]
"""Line and column, both from 1."""

LINE_FEEDS = re.compile(r"\n")
WORD = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|[!&*]?\w[\w.+-]*""")
"""What a caret is drawn under: a quoted text, or a word with its YAML sign."""


@dataclass(frozen=True)
class Origin:
    """What to call the source of some data; of a text also the text, and the marks of its keys and items.

    `breaks` matches what ends a line. `find_marks` is called only when an error needs it; its path () is the first key.
    """

    label: str
    text: str = ""
    breaks: re.Pattern[str] = LINE_FEEDS
    find_marks: Callable[[], Mapping[Where, Mark]] = dict

    @cached_property
    def marks(self) -> Mapping[Where, Mark]:
        """Key path -> where it stands; empty when the data came from no text."""
        return self.find_marks()

    def refusal(self, what: str, hint: str, paths: Iterable[Where] = ()) -> CostcalcError:
        """An error at the first of `paths` that is written, or of the source as a whole where none is."""
        mark = next((self.marks[path] for path in paths if path in self.marks), None)
        return CostcalcError(what, where=self.label, hint=hint) if mark is None else self.refusal_at(what, hint, mark)

    def refusal_at(self, what: str, hint: str, mark: Mark) -> CostcalcError:
        """An error at a line and column, with that line."""
        line, column = mark
        return CostcalcError(what, where=f"{self.label}:{line}:{column}", hint=hint, excerpt=self._excerpt(mark))

    def mark(self, offset: int) -> Mark:
        """Line and column of the character at `offset`."""
        ends = [found.end() for found in self.breaks.finditer(self.text, 0, offset)]
        return len(ends) + 1, offset - (ends[-1] if ends else 0) + 1

    def _excerpt(self, mark: Mark) -> Excerpt | None:
        number, column = mark
        lines = self.breaks.split(self.text)[:number]
        while lines and not lines[-1].strip():  # the end of the text, behind all that is written
            lines.pop()
        if not lines:
            return None
        line = lines[-1].rstrip()
        if len(lines) < number:
            column = len(line) + 1
        word = WORD.match(line, column - 1)
        return Excerpt(len(lines), line, column, len(word[0]) if word else 1)


class Written(NamedTuple):
    """Plain data that was read from a text, and where it came from."""

    data: Any
    origin: Origin
