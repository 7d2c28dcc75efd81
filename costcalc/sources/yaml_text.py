"""YAML text to plain data, exactly: what PyYAML would guess or merge in silence is resolved or refused here.

PyYAML's parser is used for its events only. YAML 1.1 reads `no` and `off` as false, `010` as 8, `1e6` as text, merges
duplicate keys in silence, lets aliases explode and tags run code; here `no` is text, `1e6` a number, duplicates and
tags are refused, and depth and the expanded size are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from costcalc.errors import CostcalcError, shown
from costcalc.sources.origin import Mark, Origin, Where, Written

MOST_NODES = 10_000
DEEPEST = 60
LONGEST_NUMBER = 1_000
TEXT_FILE = "check that it is a text file in YAML"
BREAKS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""What PyYAML counts as the end of a line."""

INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]{1,6})?")
WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
INFINITE = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}


@dataclass
class _Open:
    """A mapping or list that is being read."""

    value: Any
    path: Where
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merges: list[Any] = field(default_factory=list)


def read_yaml(text: str, label: str) -> Written:
    """The data of one YAML document; anything that is not plain data is refused with `label:line:column`."""
    reader = _Reader(text, label)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reader.take(event)
    except yaml.YAMLError as error:
        raise _not_yaml(error, reader.origin) from None
    except UnicodeError:
        raise reader.origin.refusal("not YAML: it has half a character", TEXT_FILE) from None
    return Written(reader.root, reader.origin)


def _not_yaml(error: yaml.YAMLError, origin: Origin) -> CostcalcError:
    """What PyYAML has to say, and where."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what, hint = f"not YAML: {error.problem}", "check the indentation, brackets and quotes"
        return origin.refusal_at(what, hint, _mark(mark)) if mark else origin.refusal(what, hint)
    odd = yaml.reader.Reader.NON_PRINTABLE.search(origin.text)
    if odd:
        what = f"not YAML: the character U+{ord(odd[0]):04X} is not allowed"
        return origin.refusal_at(what, TEXT_FILE, origin.mark(odd.start()))
    return origin.refusal(f"not YAML: {' '.join(str(error).split())[:120]}", TEXT_FILE)


class _Reader:
    """Takes parser events one by one, without recursion, and builds plain data."""

    def __init__(self, text: str, label: str) -> None:
        self.origin = Origin(label, text, BREAKS, lambda: self.marks)
        self.root: Any = None
        self.marks: dict[Where, Mark] = {}
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._refuse(event, "a second document begins here", "keep one model in a file")
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._begin(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._end(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._count(event, 1)
            self._refuse_tag(event)
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(event, top)
            return
        value = self._plain(event) if event.implicit[0] else event.value
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._put(event, value)

    def _key(self, event: yaml.ScalarEvent, top: _Open) -> None:
        key = event.value
        if key in top.value:
            raise self._refuse(event, f"`{shown(key)[1:-1]}` is written twice", "keep one of the two")
        top.key = key
        path = (*top.path, key)
        self.marks[path] = _mark(event.start_mark)
        self.marks.setdefault((), self.marks[path])

    def _put(self, event: yaml.Event, value: Any) -> None:
        if not self.open:
            self.root = value
            return
        top = self.open[-1]
        if isinstance(top.value, list):
            self.marks.setdefault(self._path(), _mark(event.start_mark))
            top.value.append(value)
            return
        if top.key is None:
            raise self._refuse(event, "a key must be a word, not a list, a mapping or an alias", "write `key: value`")
        if top.key == "<<":
            top.merges.append((event, value))
        else:
            top.value[top.key] = value
        top.key = None

    def _path(self) -> Where:
        if not self.open:
            return ()
        top = self.open[-1]
        return (*top.path, len(top.value)) if isinstance(top.value, list) else (*top.path, top.key or "?")

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, value: Any) -> None:
        self._count(event, 1)
        self._refuse_tag(event)
        if len(self.open) >= DEEPEST:
            raise self._refuse(event, f"nested deeper than {DEEPEST} levels", "write it flatter")
        path = self._path()
        if path and isinstance(path[-1], int):
            self.marks[path] = _mark(event.start_mark)
        self.open.append(_Open(value, path, event.anchor, self.nodes))

    def _end(self, event: yaml.Event) -> None:
        top = self.open.pop()
        for merge_event, source in top.merges:
            for part in source if isinstance(source, list) else [source]:
                if not isinstance(part, dict):
                    raise self._refuse(merge_event, "`<<` takes a mapping", "write `<<: *name` of a mapping")
                top.value.update({key: value for key, value in part.items() if key not in top.value})
        if top.anchor:
            self.anchors[top.anchor] = (top.value, self.nodes - top.nodes_before + 1)
        self._put(event, top.value)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self.anchors:
            raise self._refuse(
                event, f"the alias *{event.anchor} has no finished anchor before it", f"write &{event.anchor} first"
            )
        value, nodes = self.anchors[event.anchor]
        self._count(event, nodes)
        self._put(event, value)

    def _plain(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        folded = text.lower()
        if folded in WORDS:
            return WORDS[folded]
        if folded in INFINITE:
            return INFINITE[folded]
        is_integer = INTEGER.fullmatch(text)
        if not is_integer and not FLOAT.fullmatch(text):
            return text
        if len(text) > LONGEST_NUMBER:
            raise self._refuse(event, f"a number of {len(text):,} digits", "write a number below 10^12")
        digits = text.replace("_", "")
        return int(digits) if is_integer else float(digits)

    def _count(self, event: yaml.Event, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES:
            raise self._refuse(
                event, f"more than {MOST_NODES:,} values, aliases expanded", "use `repeat:` for equal layers"
            )

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if event.tag is not None and event.tag != "!":
            raise self._refuse(event, f"the YAML tag {shown(event.tag)} is not read", "remove the tag")

    def _refuse(self, event: yaml.Event, what: str, hint: str) -> CostcalcError:
        return self.origin.refusal_at(what, hint, _mark(event.start_mark))


def _mark(mark: Any) -> Mark:
    """Line and column from 1 (PyYAML counts from 0)."""
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
