"""What an architecture states, as single weights in single layers: what the tensors of a checkpoint have to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from costcalc.inventory import Inventory, Weight, group_of
from costcalc.verification.headers.names import OUTSIDE, Place
from costcalc.verification.headers.shapes import Shape

NO_COMPONENTS = ("experts", "shared", "adapters", "encoder", "decoder", "head")
"""Parts of a path that are places in a component, or what stands outside of the layers."""
FURTHER = "multi_token"
"""The stack of modules that predict further tokens: extra, present or absent."""


@dataclass(frozen=True)
class Leaf:
    """One stated weight of one layer. inside: its path in its place, such as attention.q; axes: its sizes in order.

    may_lack: whether a checkpoint is whole without it, since a model makes it anew or never uses it.
    """

    path: str
    inside: str
    axes: Shape
    may_lack: bool = False
    place: Place = field(default=OUTSIDE, compare=False)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts of its path in its place."""
        return tuple(self.inside.split("."))

    @property
    def is_bias(self) -> bool:
        """Whether it is added; a mixer's own dt_bias is a weight by itself."""
        return self.inside.endswith("_bias")

    @cached_property
    def word(self) -> str:
        """The last part of its path, without the word for a bias."""
        last = self.parts[-1]
        return last.removesuffix("_bias")

    @property
    def is_norm(self) -> bool:
        """Whether it belongs to a normalisation."""
        return self.word == "norm" or self.word.endswith("_norm")

    @property
    def component(self) -> str:
        """The component that it is in, empty for what stands in the layer itself; of an expert or a lender its own."""
        found = [part.removesuffix("_beside") for part in self.parts[:-1]]
        return next((part for part in reversed(found) if part not in NO_COMPONENTS), "")


def leaves(inventory: Inventory) -> list[Leaf]:
    """Every stated weight once for each layer that holds its own; what layers share is held by the first of them."""
    places = _places(inventory)
    found = []
    for weight in inventory.weights:
        group = group_of(weight.path, places)
        if group is None:
            found += _outside(weight)
            continue
        held = places[group][: max(1, weight.times)]
        inside = weight.path[len(group) + 1 :]
        for stack, index in held:
            path = f"{stack}.layers.{index}.{inside}"
            found.append(Leaf(path, inside, _sizes(weight), _may_lack(weight), (stack, index)))
    return found


def layers_with_weights(found: list[Leaf], layout: Mapping[str, tuple[str, ...]]) -> dict[str, list[int]]:
    """Per stack, the layers that hold weights of their own: one where all of them share one set."""
    return {stack: sorted({leaf.place[1] for leaf in found if leaf.place[0] == stack}) for stack in layout}


def _places(inventory: Inventory) -> dict[str, list[Place]]:
    places: dict[str, list[Place]] = {}
    for stack, groups in inventory.layout.items():
        for index, group in enumerate(groups):
            places.setdefault(group, []).append((stack, index))
    return places


def _outside(weight: Weight) -> list[Leaf]:
    """What stands in no layer; each further module counts as a layer of a stack of its own."""
    if not weight.path.startswith(f"{FURTHER}."):
        return [Leaf(weight.path, weight.path, _sizes(weight), _may_lack(weight))]
    inside = weight.path.removeprefix(f"{FURTHER}.").removeprefix("layer.")
    count = weight.times
    return [
        Leaf(f"{FURTHER}.{index}.{inside}", inside, _sizes(weight), True, (FURTHER, index)) for index in range(count)
    ]


def _sizes(weight: Weight) -> Shape:
    return tuple(weight.axes.values())


def _may_lack(weight: Weight) -> bool:
    """Buffers and frozen tables are made anew, and extra modules do not serve."""
    return weight.role != "trainable"
