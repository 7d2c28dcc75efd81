"""How many parameters: a fold over the weights."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.inventory import Inventory, Weight


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
    weights = inventory.weights
    held = [weight for weight in weights if weight.role in ("trainable", "frozen")]
    multiplied = {matmul.of for matmul in inventory.matmuls}
    total = sum(weight.parameters for weight in held)
    active = sum(weight.used_parameters for weight in held)
    embedding = sum(weight.parameters for weight in held if weight.table)
    looked_up = sum(weight.parameters for weight in held if weight.table and weight.path not in multiplied)
    return Parameters(
        total=total,
        embedding=embedding,
        non_embedding=total - embedding,
        active=active,
        active_without_input_table=active - looked_up,
        active_without_tables=active - embedding,
        trainable=_of_role(weights, "trainable"),
        buffers=_of_role(weights, "buffer"),
        extra=_of_role(weights, "extra"),
        components=weights,
    )


def layer_parameters(inventory: Inventory) -> dict[str, int]:
    """Per group of equal layers (its path in the layout): the parameters that one of its layers holds."""
    layers_of: dict[str, int] = {}
    for groups in inventory.layout.values():
        for group in groups:
            layers_of[group] = layers_of.get(group, 0) + 1
    return {
        group: sum(w.parameters for w in inventory.weights if w.path.startswith(f"{group}.")) // count
        for group, count in layers_of.items()
    }


def _of_role(weights: tuple[Weight, ...], role: str) -> int:
    return sum(weight.parameters for weight in weights if weight.role == role)
