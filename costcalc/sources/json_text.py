"""JSON text to plain data: duplicate keys, NaN and hostile nesting are refused, not resolved in silence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from costcalc.errors import CostcalcError, shown
from costcalc.sources.origin import Mark, Origin, Where, Written

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
MOST_DIGITS = 4_000
"""Python itself reads a few more."""


def read_json(text: str, label: str) -> Written:
    """The data of one JSON document; what is not plain JSON is refused with `label:line:column` where it is known."""
    origin = Origin(label, text, find_marks=lambda: _marks(origin))

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            raise _written_twice(origin)
        return data

    def constant(name: str) -> Any:
        if name.endswith("Infinity"):  # Python writes an open bound so, such as those of Mamba-2's time steps
            return float(name)
        raise _at_token(origin, lambda token: token == name, f"{name} is not a number", "write a number, or null")

    try:
        return Written(json.loads(text, object_pairs_hook=unique, parse_constant=constant), origin)
    except json.JSONDecodeError as error:
        what, hint = f"not JSON: {error.msg}", "check the brackets, commas and quotes"
        raise origin.refusal_at(what, hint, (error.lineno, error.colno)) from None
    except RecursionError:
        raise origin.refusal("nested too deeply", "write it flatter") from None
    except ValueError:
        what, hint = "a number of thousands of digits", "write a number below 10^12"
        raise _at_token(origin, _is_endless, what, hint) from None


def _is_endless(token: str) -> bool:
    return len(token) > MOST_DIGITS and token.lstrip("-").isdigit()


def _at_token(origin: Origin, is_meant: Callable[[str], bool], what: str, hint: str) -> CostcalcError:
    offset = next((found.start() for found in TOKEN.finditer(origin.text) if is_meant(found[0])), 0)
    return origin.refusal_at(what, hint, origin.mark(offset))


def _written_twice(origin: Origin) -> CostcalcError:
    seen: set[Where] = set()
    path, offset = next(each for each in _places(origin.text) if each[0] in seen or seen.add(each[0]))  # type: ignore[func-returns-value]
    what = f"the key {shown(path[-1])} is written twice"
    return origin.refusal_at(what, "keep one of the two", origin.mark(offset))


def _marks(origin: Origin) -> dict[Where, Mark]:
    """Where each key and item stands. One sweep over the lines, not one for each key."""
    marks: dict[Where, Mark] = {}
    line, begin = 1, 0
    for path, offset in _places(origin.text):
        line += origin.text.count("\n", begin, offset)
        begin = offset
        mark = (line, offset - origin.text.rfind("\n", 0, offset))
        marks.setdefault((), mark)
        marks[path] = mark
    return marks


@dataclass
class _Open:
    """An object or array that is being read, and the key or index that is next in it (None: a key must come first)."""

    path: Where
    at: str | int | None


def _places(text: str) -> Iterator[tuple[Where, int]]:
    """(path, offset) of each key and item in the order of writing, in a text that is JSON as far as this is asked."""
    stack: list[_Open] = []
    for found in TOKEN.finditer(text):
        token = found[0]
        top = stack[-1] if stack else None
        if token in ("]", "}"):
            stack.pop()
        elif token == "," and top is not None:
            top.at = top.at + 1 if isinstance(top.at, int) else None
        elif top is not None and top.at is None:
            top.at = str(json.loads(token))
            yield (*top.path, top.at), found.start()
        elif token not in (",", ":"):
            path: Where = (*top.path, top.at) if top is not None and top.at is not None else ()
            if path and isinstance(path[-1], int):
                yield path, found.start()
            if token in ("[", "{"):
                stack.append(_Open(path, 0 if token == "[" else None))
