"""Plain data to a validated `Architecture`; whatever is wrong is told as one place, one reason and what to type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from costcalc.architecture import Architecture, RuleError
from costcalc.architecture.block import Block
from costcalc.architecture.written import FullForm, full_form
from costcalc.errors import FEW_LETTERS, CostcalcError, shown
from costcalc.sources.keys import homes_of, kinds_at, kinds_with, known_keys, written_paths
from costcalc.sources.origin import Origin, Where
from costcalc.sources.synonyms import meant

MOST_VALUES = 50_000
FEW_HOMES = 2
"""A key of more places is too common to say where it belongs."""
ONE_LETTER = 0.85
"""How alike `head` and `heads` are: `head` has a place of its own, but is not sure to be meant for it."""


def validated(data: object, origin: Origin) -> Architecture:
    """The architecture that `data`, in the written form, describes; else the place and the nearest right key."""
    if not isinstance(data, FullForm) and _values(data, MOST_VALUES) > MOST_VALUES:
        raise origin.refusal(f"more than {MOST_VALUES:,} values", "use `repeat:` for equal layers")
    try:
        return Architecture.model_validate(data)
    except ValidationError as error:
        raise _refusal(error, data, origin) from None
    except RecursionError:
        raise origin.refusal("nested too deeply", "write it flatter") from None


def _values(data: object, most: int) -> int:
    """How many values lie in `data`, itself included; counting stops a little above `most`."""
    waiting, count = [data], 0
    while waiting and count + len(waiting) <= most:
        value = waiting.pop()
        count += 1
        waiting.extend(value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ())
    return count + len(waiting)


@dataclass(frozen=True)
class _Problem:
    """One of pydantic's errors: its key path, its details, and the full form of the data."""

    where: Where
    detail: ErrorDetails
    data: object

    @property
    def name(self) -> str:
        return dotted(self.where)

    @property
    def key(self) -> str:
        return str(self.where[-1]) if self.where else "name"

    @property
    def urgency(self) -> int:
        """Which to tell first: a wrong kind makes its keys unknown, a typo makes the right key missing."""
        if self.detail["type"] == "union_tag_invalid" or self.key == "kind":
            return 0
        return {"extra_forbidden": 1, "missing": 3}.get(self.detail["type"], 2)


def _refusal(error: ValidationError, data: object, origin: Origin) -> CostcalcError:
    try:
        spelled = full_form(data)
    except RuleError:
        spelled = data
    problems = [_problem(detail, spelled) for detail in error.errors(include_url=False)]
    problem = min(problems, key=lambda each: each.urgency)
    what, hint = _explained(problem)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    paths = list(written_paths(problem.where))
    if problem.detail["type"] == "union_tag_invalid":
        paths = [*_where_the_kind_is(paths, origin), *paths]
    return origin.refusal(f"{what}{more}", hint, paths)


def _where_the_kind_is(paths: list[Where], origin: Origin) -> list[Where]:
    """Of a component that a layer and the defaults below it write together: the key `kind`, or the bare word."""
    inside = {mark[:-1] for mark in origin.marks}
    said = [(*path, "kind") if path in inside else path for path in paths]
    return [path for path in said if path in origin.marks]


def _problem(detail: ErrorDetails, spelled: object) -> _Problem:
    broken = detail.get("ctx", {}).get("error")
    where = broken.where if isinstance(broken, RuleError) else _without_tags(detail["loc"], spelled)
    return _Problem(where, detail, spelled)


def _explained(problem: _Problem) -> tuple[str, str]:
    """(what is wrong, what to type)."""
    kind, got = problem.detail["type"], shown(problem.detail["input"])
    explain = _EXPLAINED.get(kind)
    if explain is not None:
        return explain(problem)
    written = _WRITTEN.get(problem.key)
    if written is not None and kind.startswith(("model_", "union_tag")):
        return f"{problem.name} must be a mapping or a kind, got {got}", f"write {written}"
    for prefix, wanted, hint in (*_WANTED_OF.get(problem.key, ()), *_WANTED):
        if kind.startswith(prefix):
            return f"{problem.name or 'the model'} must be {wanted}, got {got}", hint.format(key=problem.key)
    return f"{problem.name}: {problem.detail['msg']}, got {got}", f"change {problem.name}"


_WRITTEN = {
    "head": "`head: none`, `head: {bias: true}`, or `head: {kind: classifier, labels: 2}`",
    "attention": "`attention: {heads: 12}`",
    "cross_attention": "`cross_attention: {heads: 12}`",
    "feed_forward": "`feed_forward: {kind: gated, d_ff: 3072}`",
    "mixer": "`mixer: {kind: mamba2, heads: 32, head_dim: 64}`",
    "mixer_beside": "`mixer_beside: {kind: mamba2, heads: 32, head_dim: 64}`",
    "embedding": "`embedding: {norm: layernorm}`",
}
"""How keys that hold a component are written, for those who wrote something else."""
_WHOLE = ("a whole number from 1 to 1,000,000,000,000", "write digits only, such as `{key}: 32`")
_NUMBER = ("a number above 0 and below 1e30", "write a number, such as `{key}: 10000.0`")
_WANTED = (
    ("int_", *_WHOLE),
    ("greater_than_equal", *_WHOLE),
    ("less_than_equal", *_WHOLE),
    ("bool_", "true or false", "write `{key}: true` or `{key}: false`"),
    ("float_", *_NUMBER),
    ("finite_number", *_NUMBER),
    ("greater_than", *_NUMBER),
    ("less_than", *_NUMBER),
    ("string_pattern", "a word of letters, digits, - and _", "write a short name, such as `{key}: local`"),
    ("string_", "a short text", "write a text of at most 300 characters"),
    ("model_", "a mapping of keys", "write `key: value` lines below it"),
    ("tuple_", "a list", "write a list: each item after `- `"),
)


_WANTED_OF = {
    "sparsity": (("", "a number from 0 to below 1", "write a share, such as `{key}: 0.95`"),),
    "up_shift": (("", "a number", "write a number, such as `{key}: 1.0`"),),
    "decay_floor": (("", "a number below 0", "write a number, such as `{key}: -5.0`"),),
}
"""Numbers with bounds of their own."""


def _unknown_key(problem: _Problem) -> tuple[str, str]:
    container = problem.where[:-1]
    known = known_keys(container, problem.data)
    homes, of_kinds = homes_of(problem.key), kinds_with(problem.key, container)
    if len(homes) > FEW_HOMES:  # of parts inside of parts nobody thinks first
        homes = [home for home in homes if home in Block.model_fields] or homes
    home = [f"`{problem.key}` belongs in {' or '.join(homes)}"] if 1 <= len(homes) <= FEW_HOMES else []
    if of_kinds:  # it stands where it may, but beside another kind
        home = [f"`{problem.key}` is of kind {' or '.join(of_kinds)}"]
    others = [key for key in known if key != problem.key]
    close = meant(problem.key, others, cutoff=ONE_LETTER if home else FEW_LETTERS)
    asked = [f"did you mean `{word}`?" for word in close]
    hint = " ".join([*asked, *home]) or f"known keys: {', '.join(known)}"
    return f"unknown key `{shown(problem.key)[1:-1]}` in {dotted(container) or 'the top level'}", hint


def _missing_key(problem: _Problem) -> tuple[str, str]:
    return f"`{problem.name}` is missing", f"add `{problem.key}:` to {dotted(problem.where[:-1]) or 'the top level'}"


def _unknown_kind(problem: _Problem) -> tuple[str, str]:
    return _unknown_word("kind", problem.name, problem.detail["ctx"]["tag"], kinds_at(problem.where))


def _unknown_literal(problem: _Problem) -> tuple[str, str]:
    expected = problem.detail["ctx"]["expected"].replace(" or ", ", ")
    allowed = [word.strip("'").lower() for word in expected.split(", ")]
    if problem.key == "kind":
        return _unknown_word("kind", dotted(problem.where[:-1]), problem.detail["input"], allowed)
    return _unknown_word("value", problem.name, problem.detail["input"], allowed)


def _unknown_word(what: str, name: str, got: object, allowed: list[str]) -> tuple[str, str]:
    close = meant(got, allowed) if isinstance(got, str) else []
    hint = f"did you mean `{close[0]}`?" if close else f"one of: {', '.join(allowed)}"
    return f"unknown {what} {shown(got)} of {name}", hint


def _no_kind(problem: _Problem) -> tuple[str, str]:
    wanted, got = ", ".join(kinds_at(problem.where)), problem.detail["input"]
    if isinstance(got, dict):
        return f"{problem.name} does not say its kind", f"write `kind:` with one of: {wanted}"
    return f"{problem.name} must be a kind or a mapping, got {shown(got)}", f"one of: {wanted}"


def _broken_rule(problem: _Problem) -> tuple[str, str]:
    broken = problem.detail["ctx"]["error"]
    name = f"{problem.name}: " if problem.name else ""
    return f"{name}{broken}", getattr(broken, "hint", "") or f"change {problem.name}"


_EXPLAINED = {
    "extra_forbidden": _unknown_key,
    "missing": _missing_key,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _no_kind,
    "literal_error": _unknown_literal,
    "value_error": _broken_rule,
}


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
