"""Equal layers merged before they are validated: a hundred layers cost what their distinct ones do."""

from __future__ import annotations

from typing import Any

LONGEST_PERIOD = 64


def merged_layers(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layer entries, at least one and one a layer, as the `repeat` and `pattern` entries that give the same order.

    [a, a, a] -> [{repeat: 3, ...a}]; [a, b, a, b, a] -> [{repeat: 2, pattern: [a, b]}, a].
    """
    if layers.count(layers[0]) == len(layers):
        return [{**layers[0], "repeat": len(layers)}]
    # Readers hand the same object over for equal layers, so few have to be compared.
    objects = {id(layer): layer for layer in layers}
    distinct: list[dict[str, Any]] = []
    index_of: dict[int, int] = {}
    for key, layer in objects.items():
        if layer not in distinct:
            distinct.append(layer)
        index_of[key] = distinct.index(layer)
    order = [index_of[id(layer)] for layer in layers]
    period = _period(order)
    whole = len(order) // period
    if period == 1 or whole < 2:
        return _runs(order, distinct)
    pattern = {"repeat": whole, "pattern": _runs(order[:period], distinct)}
    return [pattern, *_runs(order[whole * period :], distinct)]


def _period(order: list[int]) -> int:
    """The shortest period of the sequence, up to LONGEST_PERIOD; its length when it has none."""
    periods = range(1, min(len(order), LONGEST_PERIOD + 1))
    return next((p for p in periods if order[p:] == order[: len(order) - p]), len(order))


def _runs(order: list[int], distinct: list[dict[str, Any]]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    previous = None
    for index in order:
        if index == previous:
            entries[-1]["repeat"] += 1
        else:
            entries.append({"repeat": 1, **distinct[index]})
        previous = index
    return entries
