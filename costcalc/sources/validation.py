"""Plain data to a validated `Architecture`; whatever is wrong is told as one place, one reason and what to type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from costcalc.architecture import Architecture, RuleBroken
from costcalc.architecture.written import full_form
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.keys import Where, homes_of, kinds_at, known_keys, written_paths


@dataclass(frozen=True)
class Origin:
    """Where data came from, and where in the text each key path stands (empty when it was no text)."""

    label: str
    marks: Mapping[Where, tuple[int, int]] = field(default_factory=dict)

    def place(self, where: Where) -> str:
        """`file:line:column` of a key path; of the nearest thing written when the key itself was not."""
        for path in written_paths(where):
            if path in self.marks:
                line, column = self.marks[path]
                return f"{self.label}:{line}:{column}"
        return self.label


def validated(data: object, origin: Origin) -> Architecture:
    """The architecture that `data` (in the written form) describes; refused with the place and the nearest right key."""
    try:
        return Architecture.model_validate(data)
    except ValidationError as error:
        raise _refusal(error, data, origin) from None
    except RecursionError:
        raise CostcalcError("nested too deeply", where=origin.label, hint="write it flatter") from None


def _refusal(error: ValidationError, data: object, origin: Origin) -> CostcalcError:
    details = error.errors(include_url=False, include_context=True)
    try:
        spelled = full_form(data)
    except RuleBroken:
        spelled = data
    located = [(_without_tags(detail["loc"], spelled), detail) for detail in details]
    # A typo in a required key is both unknown and missing: the unknown key is the one to tell.
    order = {"extra_forbidden": 0, "missing": 2}
    where, detail = min(located, key=lambda pair: order.get(pair[1]["type"], 1))
    what, hint = _explained(where, detail, spelled)
    broken = detail.get("ctx", {}).get("error")
    if isinstance(broken, RuleBroken):
        where = broken.where
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return CostcalcError(f"{what}{more}", where=origin.place(where), hint=hint)


def _explained(where: Where, detail: ErrorDetails, data: object) -> tuple[str, str]:
    """(what is wrong, what to type) for one of pydantic's errors."""
    kind, context, name = detail["type"], detail.get("ctx", {}), dotted(where)
    got = shown(detail["input"])
    if kind == "extra_forbidden":
        return _unknown_key(where, data)
    if kind in ("union_tag_invalid", "literal_error"):
        return _unknown_word(name, where, detail)
    if kind == "value_error":
        broken = context["error"]
        at = dotted(broken.where) if isinstance(broken, RuleBroken) else name
        return f"{at}: {broken}", f"change {at}"
    if kind == "missing":
        return f"`{name}` is missing", f"add `{where[-1]}:` to {dotted(where[:-1]) or 'the top level'}"
    if kind == "union_tag_not_found":
        wanted = kinds_at(where)
        if isinstance(detail["input"], dict):
            return f"{name} does not say its kind", f"write `kind:` with one of: {', '.join(wanted)}"
        return f"{name} must be a kind or a mapping, got {got}", f"one of: {', '.join(wanted)}"
    for prefix, wanted_text, hint in _WANTED:
        if kind.startswith(prefix):
            return f"{name} must be {wanted_text}, got {got}", hint.format(key=where[-1] if where else "name")
    return f"{name}: {detail['msg']}, got {got}", f"change {name}"


_WHOLE = ("a whole number from 1 to 1,000,000,000,000", "write digits only, such as `{key}: 32`")
_WANTED = (
    ("int_", *_WHOLE),
    ("greater_than_equal", *_WHOLE),
    ("less_than_equal", *_WHOLE),
    ("finite_number", *_WHOLE),
    ("bool_", "true or false", "write `{key}: true` or `{key}: false`"),
    ("float_", "a number", "write a number, such as `{key}: 10000.0`"),
    ("greater_than", "a number above 0", "write a number, such as `{key}: 10000.0`"),
    ("less_than", "a number below 1e30", "write a number, such as `{key}: 10000.0`"),
    ("string_pattern", "a word of letters, digits, - and _", "write a short name, such as `{key}: local`"),
    ("string_", "a short text", "write a text of at most 300 characters"),
    ("model_", "a mapping of keys", "write `key: value` lines below it"),
    ("tuple_", "a list", "write a list: each item after `- `"),
    ("too_short", "a list of at least one layer", "write at least one layer: `- repeat: 12`"),
)


def _unknown_key(where: Where, data: object) -> tuple[str, str]:
    name, container = str(where[-1]), where[:-1]
    known = known_keys(container, data)
    close = nearest(name, known)
    if close:
        hint = f"did you mean `{close[0]}`?"
    else:
        homes = homes_of(name)
        hint = f"`{name}` belongs in {homes[0]}" if homes else f"known keys: {', '.join(known)}"
    return f"unknown key `{shown(name)[1:-1]}` in {dotted(container) or 'the top level'}", hint


def _unknown_word(name: str, where: Where, detail: ErrorDetails) -> tuple[str, str]:
    if detail["type"] == "union_tag_invalid":
        allowed, got, label = kinds_at(where), str(detail["ctx"]["tag"]), "kind"
    else:
        allowed = [word.strip("'") for word in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
        got, label = detail["input"], "value"
    close = nearest(got, allowed) if isinstance(got, str) else []
    hint = f"did you mean `{close[0]}`?" if close else f"one of: {', '.join(allowed)}"
    return f"unknown {label} {shown(got)} of {name}", hint


def dotted(where: Where) -> str:
    """('decoder', 'layers', 0, 'attention') -> 'decoder.layers[0].attention'."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{shown(part)[1:-1]}"
    return text.lstrip(".")


def _without_tags(loc: Where, data: object) -> Where:
    """Pydantic's location without the tags that it puts after a list index and after a key of several kinds."""
    where: list[str | int] = []
    here: Any = data
    tag_may_follow = False
    for part in loc:
        is_kind = isinstance(here, dict) and part == here.get("kind")
        if tag_may_follow and (isinstance(where[-1], int) or is_kind):
            tag_may_follow = False
            continue
        where.append(part)
        tag_may_follow = True
        here = _child(here, part)
    return tuple(where)


def _child(data: Any, part: str | int) -> Any:
    try:
        return data[part]
    except (KeyError, IndexError, TypeError):
        return None
