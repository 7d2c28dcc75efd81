"""The one error that a user sees: what is wrong and where, then what to type next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHOWN_CHARACTERS = 40
WIDEST_EXCERPT = 72
LEFT_OF_CARET = 30
MOST_IN_EXCERPT = 200
"""Characters: of combining ones, a line of no width has any number."""
CUT = "..."
BEGUN = 4
"""So many letters of a name are its beginning: `mistral_7b` is nearer to `mistral-7b-v0.1` than to `mixtral-8x7b`."""
FEW_LETTERS = 0.6
"""How alike, to difflib, a word and the one that was probably meant are at least."""


class Excerpt(NamedTuple):
    """The line of a text that an error is about; `column` counts characters from 1, `length` is what to underline."""

    number: int
    line: str
    column: int
    length: int

    def __str__(self) -> str:
        """The line behind its number, cut where it is long, and carets below the place."""
        begin = min(self.column - 1, len(self.line))
        is_long = _columns(self.line[:1000]) > WIDEST_EXCERPT
        first = max(0, begin - MOST_IN_EXCERPT // 2) if is_long else 0
        while is_long and _columns(self.line[first:begin]) > LEFT_OF_CARET:
            first += 1
        last, end = first, min(len(self.line), first + MOST_IN_EXCERPT)
        room = WIDEST_EXCERPT - 2 * len(CUT) if is_long else WIDEST_EXCERPT
        while last < end and _columns(self.line[first : last + 1]) <= room:
            last += 1
        left, right = CUT if first else "", CUT if last < len(self.line) else ""
        spaces = " " * (len(left) + _columns(self.line[first:begin]))
        carets = "^" * max(1, _columns(self.line[begin : min(begin + self.length, last)]))
        number = f"{self.number:>4}"
        text = f"{number} | {left}{_one_line(self.line[first:last])}{right}".rstrip()
        return f"{text}\n{' ' * len(number)} | {spaces}{carets}"


class CostcalcError(Exception):
    """The input is wrong (exit code 2).

    `what` says what was got and what was wanted, `where` the place (`file:line:column`, an option, a key path), `hint`
    what to type next, `excerpt` holds the line that it is about, if there is one. `str()` gives the first line,
    `where: what`.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", excerpt: Excerpt | None = None) -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where
        self.hint = hint
        self.excerpt = excerpt


def shown(value: object) -> str:
    """A value as an error may print it: one line, never longer than a screen is wide."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**SHOWN_CHARACTERS:
        # str() of an int beyond 4,300 digits raises, so the length comes from the bits: log10(2) = 0.30103.
        return f"a number of about {int((value.bit_length() - 1) * 0.30103) + 1:,} digits"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    text = _one_line(text)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def nearest(word: str, known: Iterable[str], *, count: int = 1, cutoff: float = FEW_LETTERS) -> list[str]:
    """The known words that `word` was probably meant to be, best first; empty if none is near."""
    import difflib  # noqa: PLC0415 - only an error needs it

    folded = {name.lower().replace("-", "_"): name for name in known}
    meant = word.lower().replace("-", "_")[:100]
    hits = difflib.get_close_matches(meant, folded, n=count, cutoff=cutoff)
    begun = sorted((name for name in folded if name.startswith(meant)), key=len)[:count]
    begun = begun if len(meant) >= BEGUN and cutoff <= FEW_LETTERS else []
    return [folded[hit] for hit in dict.fromkeys([*begun, *hits])][:count]


def _one_line(text: str) -> str:
    """What a terminal may get: tabs as spaces, and nothing that moves its cursor."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in text)


def _columns(text: str) -> int:
    """How many columns a terminal needs for it."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - only an error needs it

    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in "WF" else 1 for c in text)
