"""An architecture as the YAML that people write: no defaults, bare words for kinds, what all layers share said once.

Reading it again gives the same architecture, field by field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from costcalc.architecture import Architecture
from costcalc.architecture.component import Component
from costcalc.architecture.written import KINDS, LAYER_KEYS, STACKS

Written = dict[str, Any]
OF_AN_ENTRY = ("name", "repeat", "pattern")
"""Keys that say where a layer stands, and are no default for others."""
WIDTH = 120


def write_yaml(arch: Architecture) -> str:
    """The text of a YAML file."""
    text: str = yaml.safe_dump(
        written_form(arch), sort_keys=False, default_flow_style=None, width=WIDTH, allow_unicode=True
    )
    return text


def written_form(arch: Architecture) -> Written:
    """The mapping of that file: `norm` at the top where all stacks have the same, a stack's `block` for its layers."""
    top = _explicit(arch)
    stacks = {name: top.pop(name) for name in STACKS if top.get(name) is not None}
    beside = top.pop("multi_token", None)
    norms = [stack["norm"] for stack in stacks.values()]
    shared = norms[0] if all(norm == norms[0] for norm in norms) else None
    written = {"name": arch.name, **top, **({} if shared is None else {"norm": shared})}
    for name, stack in stacks.items():
        written[name] = _stack(stack, top_norm=shared)
    if beside is not None:
        written["multi_token"] = _module(beside, top_norm=shared)
    return {key: _short(key, value) for key, value in written.items()}


def _explicit(component: Component) -> Written:
    """The fields that differ from their defaults, and every kind; parts of parts in the same way."""
    found: Written = {}
    for key, field in type(component).model_fields.items():
        value = getattr(component, key)
        is_said = key == "kind" or field.is_required() or value != field.get_default(call_default_factory=True)
        is_inherited = key in LAYER_KEYS and "layers" not in type(component).model_fields  # a layer's, from its stack
        if is_said or (is_inherited and value is not None) or _ends_in_norm(component, key):
            found[key] = _plain(value)
    return found


def _ends_in_norm(component: Component, key: str) -> bool:
    """A head's transform says its norm, also where it has none."""
    return key == "norm" and bool(getattr(component, "transform", False))


def _plain(value: Any) -> Any:
    if isinstance(value, Component):
        return _explicit(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _stack(stack: Written, *, top_norm: Written | None) -> Written:
    """A stack whose layers leave to it what they have in common."""
    defaults = {"positions": {"kind": "none"}, **{key: stack[key] for key in LAYER_KEYS if key in stack}}
    leaves = list(_leaves(stack["layers"]))
    for leaf in leaves:
        _leave_to(defaults, leaf)
    block = _in_common(leaves) if len(leaves) > 1 else {}
    own = {key: value for key, value in stack.items() if key != "layers" and not (key == "norm" and value == top_norm)}
    return {**own, **({"block": block} if block else {}), "layers": stack["layers"]}


def _leave_to(defaults: Written, layer: Written) -> None:
    """Take out of a layer what its stack says; of the same kind with other fields, a null for what it has not."""
    for key, value in defaults.items():
        own = layer.get(key)
        if own == value:
            del layer[key]
        elif isinstance(own, dict) and own.get("kind") == value.get("kind"):
            layer[key] = {**own, **{name: None for name in value if name not in own}}


def _leaves(entries: list[Written]) -> Iterator[Written]:
    for entry in entries:
        if "pattern" in entry:
            yield from _leaves(entry["pattern"])
        else:
            yield entry


def _in_common(leaves: list[Written]) -> Written:
    """What all layers say in the same words, taken out of them; of a part of one kind also what its fields share."""
    first, block = leaves[0], {}
    for key in [key for key in first if key not in OF_AN_ENTRY and all(key in leaf for leaf in leaves)]:
        values = [leaf[key] for leaf in leaves]
        if all(value == values[0] for value in values):
            block[key] = values[0]
            for leaf in leaves:
                del leaf[key]
        elif all(isinstance(value, dict) and value.get("kind") == values[0].get("kind") for value in values):
            block[key] = _fields_in_common(key, leaves)
    return {key: value for key, value in block.items() if value}


def _fields_in_common(key: str, leaves: list[Written]) -> Written:
    parts = [leaf[key] for leaf in leaves]
    common = {
        name: value for name, value in parts[0].items() if all(name in part and part[name] == value for part in parts)
    }
    for leaf in leaves:
        leaf[key] = {name: value for name, value in leaf[key].items() if name not in common}
        if not leaf[key]:
            del leaf[key]
    return common


def _module(beside: Written, *, top_norm: Written | None) -> Written:
    """A module beside the model; its layer's norm is the top's unless it says another."""
    layer = beside["layer"]
    if top_norm is not None:
        _leave_to({"norm": top_norm}, layer)
    own = {key: value for key, value in beside.items() if not (key == "norm" and value == top_norm)}
    return {**own, "layer": layer}


def _short(key: str, value: Any) -> Any:
    """A kind alone as a bare word, the usual kind left out, in this value and whatever lies inside it."""
    if isinstance(value, list):
        return [_short("", each) for each in value]
    if not isinstance(value, dict):
        return value
    if key in KINDS and list(value) == ["kind"]:
        return value["kind"]
    usual = KINDS.get(key)
    kept = {name: inner for name, inner in value.items() if not (name == "kind" and usual == inner and len(value) > 1)}
    return {name: _short(name, inner) for name, inner in kept.items()}
