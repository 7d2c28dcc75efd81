"""The one error that a user sees: what is wrong and where, then what to type next."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN_CHARACTERS = 40


class CostcalcError(Exception):
    """The input is wrong (exit code 2).

    `what` says what was got and what was wanted, `where` the place (`file:line:column`, an option, a key path), `hint`
    what to type next. `str()` gives the first line, `where: what`.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where
        self.hint = hint


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
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def nearest(word: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known words that `word` was probably meant to be, best first; empty if none is near."""
    import difflib  # noqa: PLC0415 - only an error needs it

    folded = {name.lower().replace("-", "_"): name for name in known}
    hits = difflib.get_close_matches(word.lower().replace("-", "_")[:100], folded, n=count, cutoff=0.6)
    return [folded[hit] for hit in hits]
