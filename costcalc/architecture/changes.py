"""What differs between two architectures, field by field, and one of them with some fields of the other.

Fields are compared in the full form and named as people write them, with the stack where a model has two: what was
written once, as a default for a stack and all of its layers, is one change. Names and where a model comes from are
none. What was left out is compared, and kept when other fields change, as what it stands for: nothing follows a change
that has no row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from costcalc.architecture.architecture import Architecture
from costcalc.architecture.block import Block
from costcalc.architecture.component import Component, RuleError
from costcalc.architecture.lent import name_lenders, numbered
from costcalc.architecture.positions import RotaryPositions, has_one_table
from costcalc.architecture.stack import Pattern, Stack
from costcalc.architecture.written import FullForm

UNCOUNTED = {"name", "source", "published_parameters", "not_counted"}
"""Fields that say what a model is called, not what it is."""
KEPT = ("kv_heads", "head_dim", "final_norm")
"""Optional fields that are as good as written: each counts for what it stands for, and stays so."""
MOST_COMPARED = 1_000
"""Layers of another structure are compared one by one up to so many."""

Path = tuple[str | int, ...]
Scalar = int | float | str | bool | None
Entry = Block | Pattern
Widths = tuple[int, int]
"""The d_model of either model, which some fields that are left out follow from."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value for a reader: a field's own, the kind of a component, or layers in a few words; None where nothing is.

    derived: what a value that was left out follows from, such as "d_model / heads"; empty for a written one.
    """

    value: Scalar
    derived: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference, named as people write it: "feed_forward.d_ff", "norm", "repeat".

    base, other: its value here and there. layers: the base's layers whose field it is, none for a field outside them.
    inside: what changes with it: of a component of another kind, the fields that both kinds have and that differ too;
        of a field, those that both models leave out and that follow from it alone, such as kv_heads from heads.
    paths, new: where `applied` puts the new value in the full form, and that value as plain data; beside: the keys next
        to it that follow. layer_by_layer: the paths have one entry for each layer.
    """

    field: str
    base: Said
    other: Said
    layers: tuple[int, ...]
    inside: tuple[tuple[str, Said, Said], ...]
    paths: tuple[Path, ...]
    new: Any
    beside: tuple[tuple[str, Any], ...]
    layer_by_layer: bool


@dataclass(frozen=True, slots=True)
class _Pair:
    """The values that both models have at one place; field: the keys of the path that people write.

    derived: from what either value follows. followers: fields that follow from this one. layer_by_layer: see Change.
    """

    path: Path
    field: tuple[str, ...]
    base: Any
    other: Any
    layers: tuple[int, ...] = ()
    derived: tuple[str, str] = ("", "")
    followers: tuple[tuple[str, Said, Said], ...] = ()
    layer_by_layer: bool = False

    def under(self, name: str) -> _Pair:
        """The pair one key further down."""
        base, other = getattr(self.base, name), getattr(self.other, name)
        path, field = (*self.path, name), (*self.field, name)
        return _Pair(path, field, base, other, self.layers, layer_by_layer=self.layer_by_layer)


def changes(base: Architecture, other: Architecture) -> tuple[Change, ...]:
    """Every field in which `other` differs, in the order of the full form.

    The same field that differs in the same way in several layers, or in a stack and its layers, is one change; another
    kind of component is one change of the whole, and so are layers of another number in another structure (more
    entries, a pattern).
    """
    places: dict[Any, list[_Pair]] = {}
    for pair in _fields(_Pair((), (), _rotating(base), _rotating(other)), (base.d_model, other.d_model)):
        places.setdefault((pair.field, pair.base, pair.other, pair.derived, pair.followers), []).append(pair)
    return tuple([_change(pairs) for pairs in places.values()])


def applied(base: Architecture, *made: Change) -> Architecture:
    """`base` with these changes only: what it leaves out stays what it stands for in the base.

    Its layers are nameless, since two that were equal may differ now, but for those that others read. Raises
    `RuleError` with the rule that the changes break, such as heads that are no multiple of the base's kv_heads.
    """
    start = _kept(_rotating(base), base.d_model)
    data = start.model_dump()
    for name in {str(path[0]) for change in made if change.layer_by_layer for path in change.paths}:
        data[name]["layers"] = [block.model_dump() for block in _expanded(start.stacks[name].layers)]
    for change in made:
        for path in change.paths:
            place: Any = data
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = change.new
            place |= dict(change.beside)
    for value in data.values():
        if isinstance(value, dict):
            name_lenders(value.get("layers", []))
    try:
        return Architecture.model_validate(FullForm(data))
    except ValidationError as error:
        for detail in error.errors():
            rule = detail.get("ctx", {}).get("error")
            if isinstance(rule, RuleError):
                raise rule from None
        raise


def _rotating(model: Architecture) -> Architecture:
    """RoPE of all the numbers of a head, in one way: with no rotary_dim. Layers that others read, by their numbers."""
    same: dict[Any, Any] = {}

    def entry(old: Entry, d_model: int) -> Entry:
        if isinstance(old, Pattern):
            return old.model_copy(update={"pattern": tuple([entry(inner, d_model) for inner in old.pattern])})
        turned = old.positions
        turns = None if old.attention is None else old.attention.rotated(d_model)
        if isinstance(turned, RotaryPositions) and turns is not None and turned.rotary_dim == turns:
            same[turned] = turned.model_copy(update={"rotary_dim": None, "frequencies": "rotated"})
        return old.model_copy(update={"positions": same.get(turned, turned)})

    def turned_stack(stack: Stack) -> Stack:
        layers = tuple([entry(old, stack.d_model or model.d_model) for old in numbered(stack).layers])
        return stack.model_copy(update={"layers": layers, "positions": same.get(stack.positions, stack.positions)})

    return model.model_copy(update={name: turned_stack(stack) for name, stack in model.stacks.items()})


def _kept(value: Any, d_model: int) -> Any:
    """A component or entries with what they leave out written down, all the way in."""
    if isinstance(value, tuple):
        return tuple([_kept(entry, d_model) for entry in value])
    if not isinstance(value, Component):
        return value
    d_model = (value.d_model or d_model) if isinstance(value, Stack) else d_model
    inner = {name: _kept(part, d_model) for name, part in value if isinstance(part, (Component, tuple))}
    left_out = value.left_out(d_model).items()
    stands = {name: stood for name, (stood, _) in left_out if name in KEPT and getattr(value, name) is None}
    return value.model_copy(update={**inner, **stands})


def _fields(pair: _Pair, widths: Widths) -> Iterator[_Pair]:
    """The fields that differ inside two components of one kind."""
    if isinstance(pair.base, Stack):
        widths = pair.base.d_model or widths[0], pair.other.d_model or widths[1]
    left_out = pair.base.left_out(widths[0]), pair.other.left_out(widths[1])
    found = [pair.under(name) for name in type(pair.base).model_fields]
    told = [_with_derived(inner, *left_out) if inner.field[-1] in KEPT else inner for inner in found]
    for inner in told:
        name = inner.field[-1]
        kept = replace(inner, base=_kept(inner.base, widths[0]), other=_kept(inner.other, widths[1]))
        if name in UNCOUNTED or kept.base == kept.other or _follows(inner, told) or _only_rotates(pair, name):
            continue
        if name == "layers":
            yield from _layers(inner, widths)
        elif isinstance(inner.base, Component) and type(inner.base) is type(inner.other):
            yield from _fields(replace(inner, field=()) if _is_the_stack(pair, inner) else inner, widths)
        elif name in KEPT or not _says_the_default(inner, left_out[1]):
            followers = tuple([_named(other) for other in told if other.derived == (name, name)])
            yield replace(_with_derived(kept, *left_out), followers=followers)


def _is_the_stack(whole: _Pair, inner: _Pair) -> bool:
    """A stack whose name need not be said, since both models have only this one."""
    return isinstance(inner.base, Stack) and len(whole.base.stacks) == len(whole.other.stacks) == 1


def _follows(pair: _Pair, beside: list[_Pair]) -> bool:
    """Left out by both models, and what another field says: it changes with that field."""
    return any(pair.derived == (other.field[-1], other.field[-1]) for other in beside)


def _named(pair: _Pair) -> tuple[str, Said, Said]:
    return pair.field[-1], _said(pair.base, pair.derived[0]), _said(pair.other, pair.derived[1])


def _only_rotates(pair: _Pair, name: str) -> bool:
    """Rotations written on a stack: they act in the layers, which hold them themselves."""
    if not isinstance(pair.base, Stack) or name != "positions":
        return False
    return not any(each.added or has_one_table(each) for each in (pair.base.positions, pair.other.positions))


Defaults = dict[str, tuple[Any, str]]


def _says_the_default(pair: _Pair, other: Defaults) -> bool:
    """One model leaves the field out, and the other writes what the second would derive: no change, only more words."""
    written, name = pair.other if pair.base is None else pair.base, pair.field[-1]
    return None in (pair.base, pair.other) and name in other and bool(other[name][0] == written)


def _with_derived(pair: _Pair, base: Defaults, other: Defaults) -> _Pair:
    """A value that was left out, as what it stands for."""
    if any(pair.derived):
        return pair
    name = pair.field[-1]
    old, why_old = base.get(name, (None, "")) if pair.base is None else (pair.base, "")
    new, why_new = other.get(name, (None, "")) if pair.other is None else (pair.other, "")
    return replace(pair, base=old, other=new, derived=(why_old, why_new))


def _layers(pair: _Pair, widths: Widths) -> Iterator[_Pair]:
    """The fields that differ, entry by entry in two stacks of one structure, else layer by layer in two of one depth.

    Otherwise the layers as a whole. None, if they come out equal.
    """
    depth, kept = _depth(pair.base), replace(pair, base=_kept(pair.base, widths[0]), other=_kept(pair.other, widths[1]))
    if _expanded(kept.base) == _expanded(kept.other) and _sharing(pair.base) == _sharing(pair.other):
        return
    if _structure(pair.base) == _structure(pair.other):
        yield from _entries(pair, widths, (0,))
    elif depth == _depth(pair.other) <= MOST_COMPARED and not any([*_sharing(pair.base), *_sharing(pair.other)]):
        for layer, (old, new) in enumerate(zip(_expanded(pair.base), _expanded(pair.other), strict=True)):
            single = _Pair((*pair.path, layer), pair.field[:-1], old, new, (layer,), layer_by_layer=True)
            yield from _fields(single, widths)
    else:
        yield replace(kept, layers=tuple(range(depth)))


def _sharing(entries: Sequence[Entry]) -> list[int]:
    """For each layer the number, from 1 on, of the entry whose weights it shares; 0 where it has its own.

    Such layers cannot be taken one by one: each would have a set of its own.
    """
    sets: dict[Path, int] = {}

    def numbers(some: Sequence[Entry], at: Path) -> list[int]:
        found: list[int] = []
        for index, entry in enumerate(some):
            if isinstance(entry, Pattern):
                found += numbers(entry.pattern, (*at, index)) * entry.repeat
            else:
                own = sets.setdefault((*at, index), len(sets) + 1) if entry.share_weights else 0
                found += [own] * entry.repeat
        return found

    return numbers(entries, ())


def _entries(pair: _Pair, widths: Widths, starts: Sequence[int]) -> Iterator[_Pair]:
    """Entry by entry; `starts`: the layers at which the sequence begins, several inside a pattern."""
    for index, (old, new) in enumerate(zip(pair.base, pair.other, strict=True)):
        once = _depth((old,)) // old.repeat
        begins = [start + once * turn for start in starts for turn in range(old.repeat)]
        layers = tuple([begin + step for begin in begins for step in range(once)])
        entry = _Pair((*pair.path, index), pair.field[:-1], old, new, layers)  # layers are named as their stack is
        if isinstance(old, Block):
            yield from _fields(entry, widths)
        else:
            if old.repeat != new.repeat:
                yield replace(entry.under("repeat"), field=(*entry.field, "pattern", "repeat"))
            yield from _entries(entry.under("pattern"), widths, begins)
        starts = [start + once * old.repeat for start in starts]


def _depth(entries: Sequence[Entry]) -> int:
    return sum(e.repeat * (1 if isinstance(e, Block) else _depth(e.pattern)) for e in entries)


def _structure(entries: Sequence[Entry]) -> list[Any]:
    """None for a block, a list for a pattern, all the way down."""
    return [_structure(entry.pattern) if isinstance(entry, Pattern) else None for entry in entries]


def _expanded(entries: Sequence[Entry]) -> list[Block]:
    """The nameless block of every layer in order."""
    blocks: list[Block] = []
    for entry in entries:
        if isinstance(entry, Block):
            blocks += [entry.model_copy(update={"name": None, "repeat": 1})] * entry.repeat
        else:
            blocks += _expanded(entry.pattern) * entry.repeat
    return blocks


def _change(pairs: list[_Pair]) -> Change:
    first = pairs[0]
    inside = list(first.followers)
    if isinstance(first.base, Component) and isinstance(first.other, Component):
        new = {name: _said(value) for name, value in first.other if name != "kind"}
        both = [(name, _said(value), new[name]) for name, value in first.base if name in new]
        inside = [(name, old, new) for name, old, new in both if old != new]
    return Change(
        field=".".join(first.field),
        base=_said(first.base, first.derived[0]),
        other=_said(first.other, first.derived[1]),
        layers=tuple(sorted({layer for pair in pairs for layer in pair.layers})),
        inside=tuple(inside),
        paths=tuple(pair.path for pair in pairs),
        new=_plain(first.other),
        beside=tuple([(name, said.value) for name, _, said in first.followers]),
        layer_by_layer=any(pair.layer_by_layer for pair in pairs),
    )


def _said(value: Any, derived: str = "") -> Said:
    if isinstance(value, Stack):
        return _said(value.layers)
    if isinstance(value, Component):
        return Said(getattr(value, "kind", type(value).__name__))
    if isinstance(value, tuple):
        kinds = len(set(_expanded(value)))
        return Said(f"{_depth(value):,} layers{f' of {kinds:,} kinds' if kinds > 1 else ''}")
    return Said(value, derived)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.model_dump() if isinstance(value, Component) else value
