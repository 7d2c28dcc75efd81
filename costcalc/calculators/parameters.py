"""How many parameters: a fold over the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from costcalc.inventory import Inventory, Weight, group_of

HELD = ("trainable", "frozen")
"""Roles that the total counts; buffers and extra parts stand beside it."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Exact counts, tied weights once.

    total = trainable + frozen. embedding: vocabulary, position and token-type tables, the head's own table included;
    non_embedding = total - embedding. active: what one token uses, all tables included; beside it without the tables
    that are only looked up (the input vocabulary table unless the head is tied to it, and position tables), and without
    any table. buffers and extra stand beside the total. not_counted: names of parts that the total leaves out.
    """

    total: int
    embedding: int
    non_embedding: int
    active: int
    active_without_input_table: int
    active_without_tables: int
    trainable: int
    buffers: int
    extra: int
    components: tuple[Weight, ...]
    not_counted: tuple[str, ...] = ()


def parameters(inventory: Inventory) -> Parameters:
    """Count the parameters of everything the architecture states."""
    weights, multiplied = inventory.weights, {matmul.of for matmul in inventory.matmuls}
    by_role = {"trainable": 0, "frozen": 0, "buffer": 0, "extra": 0}
    embedding = looked_up = unused = 0
    for weight in weights:
        count = weight.parameters
        by_role[weight.role] += count
        if weight.role in HELD:
            if weight.used is not None:
                unused += count - weight.used_parameters
            if weight.table:
                embedding += count
                looked_up += 0 if weight.path in multiplied else count
    total = by_role["trainable"] + by_role["frozen"]
    active = total - unused
    return Parameters(
        total=total,
        embedding=embedding,
        non_embedding=total - embedding,
        active=active,
        active_without_input_table=active - looked_up,
        active_without_tables=active - embedding,
        trainable=by_role["trainable"],
        buffers=by_role["buffer"],
        extra=by_role["extra"],
        components=weights,
        not_counted=inventory.not_counted,
    )


def layer_parameters(inventory: Inventory) -> dict[str, int]:
    """Per group of equal layers (its path in the layout): the parameters of one of its layers.

    Where layers share their weights, each of them has all of them, and `group_parameters` says what they hold together.
    """
    layers_of = inventory.layers_of
    return _per_group(inventory, lambda weight, group: in_one_layer(weight, layers_of[group]).parameters)


def group_parameters(inventory: Inventory) -> dict[str, int]:
    """Per group of equal layers: the parameters that they hold together, shared ones once."""
    return _per_group(inventory, lambda weight, _: weight.parameters)


def _per_group(inventory: Inventory, count: Callable[[Weight, str], int]) -> dict[str, int]:
    layers_of = inventory.layers_of
    held = dict.fromkeys(layers_of, 0)
    for weight in inventory.weights:
        group = group_of(weight.path, layers_of)
        if group is not None and weight.role in HELD:
            held[group] += count(weight, group)
    return held


def in_one_layer(weight: Weight, layers: int) -> Weight:
    """What one of the `layers` that a weight stands for has of it: all, if they share it."""
    return weight._replace(times=weight.times // layers or 1)


def trained_weights(inventory: Inventory, layers: Iterable[int]) -> tuple[Weight, ...]:
    """What is trained if these layers alone are: their trainable weights, each for as many layers as are trained.

    Weights that layers share are trained, once, as soon as one of those layers is.

    Layers are counted from 0 in the order of the stacks. Tables, the final norm and the head are in no layer.
    """
    in_order = [group for groups in inventory.layout.values() for group in groups]
    chosen, layers_of = Counter(in_order[layer] for layer in layers), inventory.layers_of
    trained = []
    for weight in inventory.weights:
        group = group_of(weight.path, layers_of)
        if group is not None and group in chosen and weight.role == "trainable":
            trained.append(weight._replace(times=weight.times * chosen[group] // layers_of[group] or 1))
    return tuple(trained)
