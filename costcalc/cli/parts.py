"""Parameters by component, layer or tensor: the second table of `costcalc params`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costcalc.calculators.components import sum_by_component
from costcalc.calculators.parameters import HELD, Parameters, group_parameters, layer_parameters
from costcalc.cli.models import column_names
from costcalc.inventory import Weight
from costcalc.report import Cell, Quantity, Ratio, Row, Table, side_by_side, with_shares
from costcalc.units import ranges

if TYPE_CHECKING:
    from costcalc.architecture import Architecture


def parts(by: str, models: list[Architecture], counted: list[Parameters]) -> Table:
    """One row a part: of one model with its share, of several side by side."""
    names = column_names(models)
    if len(models) > 1:
        sheets: list[dict[str, Cell]] = [
            {label: Quantity(amount, "parameters") for label, amount in _amounts(by, model, count).items()}
            for model, count in zip(models, counted, strict=True)
        ]
        return side_by_side(f"by {by}", names, sheets)
    if by == "component":
        return with_shares("by component", names[0], _amounts(by, models[0], counted[0]), "parameters")
    beside = _layer_sizes(models[0]) if by == "layer" else {w.path: _shape(w) for w in counted[0].components}
    rows = [
        Row(label, (beside.get(label), Quantity(amount, "parameters"), Ratio(amount, counted[0].total, "bar")))
        for label, amount in _amounts(by, models[0], counted[0]).items()
    ]
    return Table(f"by {by}", ("each" if by == "layer" else "shape", names[0], "share"), tuple(rows), status="exact")


def _amounts(by: str, model: Architecture, count: Parameters) -> dict[str, int]:
    held = [weight for weight in count.components if weight.role in HELD]
    if by == "tensor":
        return {weight.path: weight.parameters for weight in held}
    if by == "component":
        return sum_by_component([(weight.path, weight.parameters) for weight in held], model.inventory)
    together = group_parameters(model.inventory)
    rows = {label: together[group] for group, label in _layer_labels(model).items()}
    return {**rows, "outside the layers": count.total - sum(rows.values())}


def _shape(weight: Weight) -> Cell:
    axes = " x ".join(f"{letter} {size:,}" for letter, size in weight.axes.items())
    return f"{axes}, {weight.times:,} times" if weight.times > 1 else axes


def _layer_sizes(model: Architecture) -> dict[str, Cell]:
    per_layer = layer_parameters(model.inventory)
    return {label: Quantity(per_layer[group], "parameters") for group, label in _layer_labels(model).items()}


def _layer_labels(model: Architecture) -> dict[str, str]:
    """'decoder layers 0, 2, 4, ... (21 local)' for each group of equal layers, in the order of their first."""
    labels: dict[str, str] = {}
    for stack, groups in model.inventory.layout.items():
        layers: dict[str, list[int]] = {}
        for layer, group in enumerate(groups):
            layers.setdefault(group, []).append(layer)
        for group, members in layers.items():
            name = group.removeprefix(f"{stack}.layers").lstrip(".")
            kind = "" if not name or name.isdigit() else f" ({len(members):,} {name})"
            labels[group] = f"{stack} layer{'s' * (len(members) > 1)} {ranges(members)}{kind}"
    return labels
