"""From what people write to the full form that the components validate.

People write less than the whole: a bare word for a kind, defaults once at the top or in a stack's `block:`, `layers:`
without `decoder:`. This module spells that out on plain mappings, before validation, so that a component always sees
all of its own fields. Nothing is judged here: whatever does not fit is left for the components to refuse.
"""

from __future__ import annotations

from typing import Any

from costcalc.architecture.component import RuleError

KINDS: dict[str, str | None] = {
    "attention": "grouped_query",
    "cross_attention": "grouped_query",
    "expert": "dense",
    "feed_forward": "dense",
    "feed_forward_beside": "dense",
    "shortcut": "dense",
    "head": "vocabulary",
    "head_norm": None,
    "inner_norm": None,
    "mixer": None,
    "mixer_beside": None,
    "norm": None,
    "output_norm": None,
    "positions": None,
    "qk_norm": None,
    "shared": "dense",
    "v_norm": None,
}
"""Keys that hold one of several kinds, and the kind that is meant when none is written (None: it must be written)."""

STACKS = ("encoder", "decoder")
STACK_KEYS = (
    *("norm", "positions", "final_norm", "altup", "hyper_connections", "residual_sources", "per_layer_input"),
    *("hierarchy", "loop", "padding", "global_tokens", "block"),
)
"""Keys of a stack that may stand at the top level, as defaults for every stack."""
LAYER_KEYS = ("norm", "positions")
"""Keys of a stack that are defaults for its layers as well."""

EXCLUSIVE = {"attention": "mixer", "mixer_beside": "mixer", "mixer": "attention", "shared_block": "attention"}
"""A default -> what takes its place in a layer that writes it."""

MOST_ENTRIES = 10_000

Mapping = dict[str, Any]


class FullForm(dict[str, Any]):
    """A mapping that is in the full form already: importers write every default themselves."""


def full_form(written: object) -> object:
    """The written form of an architecture with every default spelled out; not a mapping: returned as it is."""
    if not isinstance(written, dict) or isinstance(written, FullForm):
        return written
    top = dict(written)
    if "layers" in top:
        if "decoder" in top:
            raise RuleError(
                "short for `decoder: {layers: ...}`, which is there too", ("layers",), "write one of the two"
            )
        top["decoder"] = {"layers": top.pop("layers")}
    found = {key: top.pop(key) for key in STACK_KEYS if key in top}
    defaults = {key: value for key, value in found.items() if value is not None}
    full = {
        key: _full_stack(key, _merged(defaults, value))
        if key in STACKS and isinstance(value, dict)
        else _full(key, value)
        for key, value in top.items()
    }
    beside = full.get("multi_token")
    if isinstance(beside, dict):
        own = {key: _full(key, defaults[key]) for key in LAYER_KEYS if key in defaults}
        norm = {"norm": own["norm"]} if "norm" in own else {}
        full["multi_token"] = {**norm, **beside, "layer": _full_layer(beside.get("layer"), own)}
    head = full.get("head")
    if isinstance(head, dict) and head.get("transform") and _is_of_words(head) and "norm" in defaults:
        full["head"] = {"norm": _full("norm", defaults["norm"]), **head}
    return full


def _is_of_words(head: Mapping) -> bool:
    return bool(head.get("kind", "vocabulary") == "vocabulary")


def _full_stack(name: str, stack: Mapping) -> Mapping:
    block, layers = stack.pop("block", {}), stack.pop("layers", None)
    if not isinstance(block, dict):
        raise RuleError("must be a mapping of defaults for the layers", (name, "block"), "write keys of a layer")
    if _entries(layers) > MOST_ENTRIES:
        raise RuleError(f"more than {MOST_ENTRIES:,} layers are written out", (name, "layers"), "use `repeat:`")
    defaults = _merged({key: stack[key] for key in LAYER_KEYS if key in stack}, block)
    own = {key: _full(key, value) for key, value in stack.items()}
    return {**own, "layers": _full_layers(layers, defaults)}


def _entries(layers: Any) -> int:
    if not isinstance(layers, (list, tuple)):
        return 0
    return sum(1 + _entries(layer.get("pattern")) if isinstance(layer, dict) else 1 for layer in layers)


def _full_layers(layers: Any, defaults: Mapping) -> Any:
    if not isinstance(layers, (list, tuple)):
        return layers
    return [_full_layer(layer, defaults) for layer in layers]


def _full_layer(layer: Any, defaults: Mapping) -> Any:
    if not isinstance(layer, dict):
        return layer
    if "pattern" in layer:
        return {**layer, "pattern": _full_layers(layer["pattern"], defaults)}
    meant = {key: value for key, value in defaults.items() if not _is_replaced(key, layer)}
    return {key: _full(key, value) for key, value in _merged(meant, layer).items()}


def _is_replaced(key: str, layer: Mapping) -> bool:
    """Of an attention and a mixer a layer has one: writing one takes a default of the other away, and its company."""
    other = EXCLUSIVE.get(key)
    return other is not None and layer.get(other) is not None and key not in layer


def _merged(base: Mapping, over: Mapping) -> Mapping:
    """`over` on top of `base`, key by key and all the way down; a null takes the key away; another kind replaces.

    A default that names no kind is one for any kind: what does not fit is left for the component to refuse.
    """
    result = dict(base)
    for key, written in over.items():
        value, below = _worded(key, written), _worded(key, result.get(key))
        if value is None:
            result.pop(key, None)
        elif isinstance(below, dict) and isinstance(value, dict) and _same_kind(below, value):
            result[key] = _merged(below, value)
        else:
            result[key] = value
    return result


def _same_kind(below: Mapping, value: Mapping) -> bool:
    return "kind" not in value or "kind" not in below or value["kind"] == below["kind"]


def _worded(key: str, value: Any) -> Any:
    """A bare word is {kind: word}."""
    return {"kind": value} if key in KINDS and isinstance(value, str) else value


def _full(key: str, value: Any) -> Any:
    """Bare words and missing kinds spelled out, in this value and in whatever lies inside it."""
    value = _worded(key, value)
    if not isinstance(value, dict):
        return value
    if KINDS.get(key) is not None:
        value = {"kind": KINDS[key], **value}
    return {name: _full(name, inner) for name, inner in value.items()}
