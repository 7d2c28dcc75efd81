"""Which keys and kinds may stand where, read off the component classes: for errors that name the nearest right one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from costcalc.architecture import Architecture, Pattern
from costcalc.architecture.written import STACK_KEYS, STACKS
from costcalc.sources.origin import Where

Classes = list[type[BaseModel]]


def known_keys(where: Where, data: object) -> list[str]:
    """The keys that may be written at `where`; `data` tells which kind is meant where there are several."""
    classes = _classes_at(where)
    kind = _value_at(data, where, "kind")
    narrowed = [cls for cls in classes if kind in _kinds_of(cls)] or classes
    keys = [name for cls in narrowed for name in cls.model_fields]
    if not where:
        keys += ["layers", *STACK_KEYS]
    if where in [(stack,) for stack in STACKS]:
        keys.append("block")
    return list(dict.fromkeys(keys))


def kinds_at(where: Where) -> list[str]:
    """The kinds that the key at `where` may hold."""
    return list(dict.fromkeys(kind for cls in _classes_at(where) for kind in _kinds_of(cls)))


def kinds_with(key: str, where: Where) -> list[str]:
    """The kinds that the component at `where` may have with a key of this name: `latent` for `kv_rank`."""
    kinds = [kind for cls in _classes_at(where) if key in cls.model_fields for kind in _kinds_of(cls)]
    return list(dict.fromkeys(kinds))


def homes_of(key: str) -> list[str]:
    """The places that have a key of this name, such as 'attention' for `heads`; of equal ones the first."""
    first: dict[type[BaseModel], str] = {}
    for home, cls in _places(Architecture, "the top level"):
        first.setdefault(cls, home)  # cross-attention is written as attention is, an encoder as a decoder
    return list(dict.fromkeys(home for cls, home in first.items() if key in cls.model_fields))


def written_paths(where: Where) -> Iterator[Where]:
    """Where a key path of the full form may stand in the text: there, in `block:`, at the top level; its parents."""
    parts = list(where)
    while parts:
        yield tuple(parts)
        if parts[0] in STACKS:
            inside = parts[1:]
            yield tuple(inside)  # `layers:` at the top level, and top-level defaults for stacks
            while len(inside) >= 2 and inside[0] in ("layers", "pattern") and isinstance(inside[1], int):
                inside = inside[2:]
            if inside and len(inside) < len(parts) - 1:
                yield (parts[0], "block", *inside)
                yield ("block", *inside)
                yield (parts[0], *inside)
                yield tuple(inside)
        parts.pop()
    yield ()


def _classes_at(where: Where) -> Classes:
    classes: Classes = [Architecture]
    for part in where:
        if not isinstance(part, int):
            fields = [cls.model_fields[part] for cls in classes if part in cls.model_fields]
            classes = [found for field in fields for found in _classes_in(field.annotation)]
    return classes


def _classes_in(annotation: Any) -> Classes:
    if getattr(annotation, "__forward_arg__", None) == "Pattern":
        return [Pattern]
    parts = get_args(annotation)  # before the question below: to Python 3.10, tuple[int] is a class
    if not parts and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [cls for part in parts for cls in _classes_in(part)]


def _kinds_of(cls: type[BaseModel]) -> tuple[str, ...]:
    return get_args(cls.model_fields["kind"].annotation) if "kind" in cls.model_fields else ()


def _places(cls: type[BaseModel], home: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield home, cls
    if cls is not Pattern:
        for name, field in cls.model_fields.items():
            for inner in _classes_in(field.annotation):
                yield from _places(inner, "a layer" if name == "layers" else name)


def _value_at(data: Any, where: Where, key: str) -> Any:
    for part in (*where, key):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
