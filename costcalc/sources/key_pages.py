"""Every component and kind of the YAML, explained: what it is, and each key with what it takes and means.

All of it is read off the component classes and their docstrings, so that nothing here can say something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from costcalc.architecture import Architecture
from costcalc.sources.schema import Schema, takes_of, value_of, written_schema

TOP = "Top level"
PLAIN = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
}


@dataclass(frozen=True)
class KeyRow:
    """A key: what it takes, its default ("required" where it has none), and what it means, if its class says so."""

    key: str
    takes: str
    default: str
    meaning: str


@dataclass(frozen=True)
class KeyPage:
    """A component: its name, how it is written, what it is, and its keys."""

    name: str
    written: str
    about: str
    rows: tuple[KeyRow, ...]


def key_pages() -> list[KeyPage]:
    """The top level first, then each component where it is first named."""
    schema, full = written_schema(), Architecture.model_json_schema()
    pages = [_page(TOP, schema, full, "")]
    for name, key in _reached(schema):
        kind = schema["$defs"][name]["properties"].get("kind", {}).get("const")
        written = f"{key}: {{kind: {kind}, ...}}" if kind else _as_written(key)
        pages.append(_page(name, schema["$defs"][name], full["$defs"][name], written))
    return pages


def _as_written(key: str) -> str:
    return f"{key}: [{{...}}, ...]" if key in ("layers", "pattern") else f"{key}: {{...}}"


def _reached(schema: Schema) -> Iterator[tuple[str, str]]:
    """(component, the key that holds it), breadth first."""
    waiting, seen = [schema], set()
    while waiting:
        for key, value in waiting.pop(0).get("properties", {}).items():
            for name in re.findall(r"#/\$defs/(\w+)", str(value)):
                if name not in seen:
                    seen.add(name)
                    waiting.append(schema["$defs"][name])
                    yield name, key


def _page(name: str, written: Schema, full: Schema, how: str) -> KeyPage:
    keys = [key for key in written["properties"] if key != "kind"]
    about, meanings = _explained(full.get("description", ""), keys)
    rows = [
        KeyRow(key, _takes(written["properties"][key]), _default(key, written, full), meanings.get(key, ""))
        for key in keys
    ]
    return KeyPage(name, how, about, tuple(rows))


def _takes(value: Schema) -> str:
    words = dict.fromkeys(_word(word) for word in takes_of(value).split(" | "))
    if "number" in words:
        words.pop("text", None)  # it is a number that YAML 1.1 does not read, such as 5e5
    return ", ".join(words)


def _word(word: str) -> str:
    bare = word.removeprefix("list of ")
    if bare in PLAIN:
        return PLAIN[bare]
    linked = f"[{bare}](#{bare.lower()})" if bare[0].isupper() else f"`{bare}`"
    return f"list of {linked}" if bare != word else linked


def _default(key: str, written: Schema, full: Schema) -> str:
    if key in full.get("required", []):
        return "required"
    value: Any = value_of(written["properties"][key])
    return f"`{value}`" if value else ""


def _explained(docstring: str, keys: list[str]) -> tuple[str, dict[str, str]]:
    """(what the component is, what each key means): `key: meaning` ends where the next key or a new paragraph begins.

    A line that follows a full stop and names no key speaks of the component again.
    """
    about, meanings = [], {}
    names = "|".join(map(re.escape, keys))
    for paragraph in re.split(r"\n\s*\n|(?<=\.)\n(?=[A-Z])", docstring):
        text = " ".join(paragraph.split())
        pieces = re.split(rf"(?:^|(?<=[.;] ))({names}): ", text)
        about.append(pieces[0].strip())
        for key, meaning in zip(pieces[1::2], pieces[2::2], strict=True):
            meanings[key] = re.sub(r"\bNone\b", "`null`", meaning.strip().rstrip(".;"))
    return " ".join(filter(None, about)), meanings
