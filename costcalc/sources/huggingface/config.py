"""A config.json as a reader sees it: class defaults applied, old names resolved, every key that is read noted.

A reader asks for what its class builds from; at the end any key that nobody read and that is not known to be harmless
is refused by name, since it might change a cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.huggingface.activations import ACTIVATIONS
from costcalc.sources.huggingface.harmless import HARMLESS, HARMLESS_IF
from costcalc.sources.origin import Origin

DEFAULTS = Path(__file__).resolve().parent / "defaults"
LARGEST = 10**12
MOST_LAYERS = 100_000
LARGEST_NUMBER = 1e30


class Config:
    """The keys of one config.json, over the field defaults of its class."""

    def __init__(self, data: Mapping[str, Any], *, model_type: str, origin: Origin) -> None:
        defaults, aliases = _class_defaults(model_type)
        self.model_type = model_type
        self.model_class = ""
        self.origin = origin
        self.spelled: dict[str, str] = {}
        self.written = frozenset(data)
        self.data = self._renamed(data, aliases) if aliases else data
        self.defaults = defaults
        self.values = {**defaults, **self.data}
        self.read = {"model_type", "architectures"}

    def _renamed(self, data: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
        """The keys under the class's own names; two names for one field must agree."""
        renamed: dict[str, Any] = {}
        for key, value in data.items():
            name = aliases.get(key, key)
            if name in renamed and renamed[name] != value:
                raise self.refusal(f"`{key}` and another name of `{name}` disagree", "keep one of the two", key)
            renamed[name] = value
            self.spelled[name] = key
        return renamed

    def __getitem__(self, key: str) -> Any:
        """The value of a key: as written (a null stays null), else the class default, else None."""
        self.read.add(key)
        return self.values.get(key)

    def overrule(self, key: str, value: Any) -> None:
        """What a class builds whatever is written under a key, which says nothing then."""
        self.read.add(key)
        self.values[key] = value

    def note(self, *keys: str) -> None:
        """Mark keys as read that a switch beside them makes void."""
        self.read.update(keys)

    def size(self, key: str, *, largest: int = LARGEST) -> int:
        """A whole number of at least 1."""
        value = self[key]
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and 1 <= value <= largest:
            return value
        raise self.refusal(
            f"`{key}` must be a whole number from 1 to {largest:,}, got {shown(value)}",
            f'write "{key}": 32',
            key,
        )

    def size_or_none(self, key: str) -> int | None:
        """A whole number of at least 1, or None where the key is null or absent."""
        return None if self[key] is None else self.size(key)

    def whole(self, key: str) -> int:
        """A whole number, zero and below included."""
        value = self[key]
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int:
            return value
        raise self.refusal(f"`{key}` must be a whole number, got {shown(value)}", f'write "{key}": 28', key)

    def number(self, key: str) -> float:
        """A constant above zero. It changes no count, so it is not noted among what the counts were read from."""
        value = self.values.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LARGEST_NUMBER:
            return float(value)
        raise self.refusal(f"`{key}` must be a number above 0, got {shown(value)}", f'write "{key}": 1e-06', key)

    def number_or_none(self, key: str) -> float | None:
        """A number above zero, or None where the key is null or absent."""
        return None if self.values.get(key) is None else self.number(key)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self[key]
        if not isinstance(value, bool):
            raise self.refusal(f"`{key}` must be true or false, got {shown(value)}", f'write "{key}": false', key)
        return value

    def activation(self, key: str) -> str:
        """Our name of an activation without parameters."""
        value = self[key]
        if not isinstance(value, str) or value not in ACTIVATIONS:
            close = nearest(str(value), ACTIVATIONS)
            hint = f'did you mean "{close[0]}"?' if close else f"one of: {', '.join(ACTIVATIONS)}"
            raise self.refusal(f"`{key}` {shown(value)} is not an activation that is read", hint, key)
        return ACTIVATIONS[value]

    def expect(self, key: str, *allowed: Any) -> None:
        """Refuse a key whose value would build something else than this reader states."""
        value = self[key]
        if not any(value is word or (type(value) is type(word) and value == word) for word in allowed):
            raise self.refusal(
                f"`{key}`: {shown(value)} of a {self.model_type} config is not read",
                "describe the model in YAML instead",
                key,
            )

    def layer_types(self, layers: int, known: tuple[str, ...]) -> list[str] | None:
        """The `layer_types` list, one known word a layer; None where the key is null or absent."""
        types = self["layer_types"]
        if types is None:
            return None
        if not isinstance(types, list) or len(types) != layers:
            what = f"`layer_types` must be a list of {layers} words, got {entries(types)}"
            raise self.refusal(what, "one word for each layer", "layer_types")
        for index, word in enumerate(types):
            if word not in known:
                raise self.refusal(
                    f"`layer_types` has {shown(word)}, which {self.model_type} does not build",
                    f"one of: {', '.join(known)}",
                    "layer_types",
                    index,
                )
        return types

    def assumed(self) -> list[str]:
        """Keys that were read but not written, so that the class's default stands in."""
        unwritten = self.read - self.data.keys()
        return [key for key, value in self.defaults.items() if value is not None and key in unwritten]

    def refuse_unread(self) -> None:
        """Refuse the first key that could change a cost and that nobody read."""
        for key in self.data:
            if key in self.read or key in HARMLESS or (key in HARMLESS_IF and self.data[key] in HARMLESS_IF[key]):
                continue
            if self.data[key] is None and key not in self.defaults:
                continue  # a null switches nothing on
            close = nearest(str(key), self.read)
            meant = f" (did you mean `{close[0]}`?)" if close else ""
            raise self.refusal(
                f"`{shown(key)[1:-1]}`: {shown(self.data[key])} is not read for {self.model_type}"
                f" and might change a cost{meant}",
                "remove the key if it changes nothing, or describe the model in YAML",
                key,
            )

    def refusal(self, what: str, hint: str, *where: str | int) -> CostcalcError:
        """An error that names this config, at a key (as the class names it) or an item of it, if that is written."""
        if not where:
            return self.origin.refusal(what, hint)
        spelled = (self.spelled.get(str(where[0]), where[0]), *where[1:])
        return self.origin.refusal(what, hint, [spelled])


def entries(value: object) -> str:
    """What was written in the place of a list of another length."""
    return f"{len(value)} entries" if isinstance(value, list) else shown(value)


@cache
def _class_defaults(model_type: str) -> tuple[dict[str, Any], dict[str, str]]:
    defaults = json.loads((DEFAULTS / f"{model_type}.json").read_text(encoding="utf-8"))
    aliases = defaults.pop("_aliases", {})
    defaults.pop("_provenance")
    return defaults, aliases
