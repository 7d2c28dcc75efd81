"""`costcalc params`: how many parameters, and where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costcalc.calculators.parameters import Parameters, layer_parameters, parameters, trained_weights
from costcalc.cli.emit import emit
from costcalc.cli.layers import parse_layers
from costcalc.cli.models import column_names, explain_numbers, header, load_all, not_counted, one_or_many, with_note
from costcalc.cli.options import Debug, Explain, Format, Json, Models, Output, ReadAs, Version
from costcalc.cli.parts import parts
from costcalc.cli.stored import checkpoints_among, refuse_mixed, stored_report
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.inventory import Weight
from costcalc.report import Cell, Quantity, Report, Table, side_by_side
from costcalc.units import grouped, human, matches_printed, ranges, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

BY = ("component", "layer", "tensor")
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="|".join(BY),
        help="What the rows of the table are; JSON lists every tensor, and with layer every layer too.",
        autocompletion=lambda: list(BY),
    ),
]
TrainLayers = Annotated[
    str | None,
    typer.Option(
        "--train-layers",
        metavar="LAYERS",
        help="Layers that alone are trained, such as 22-23, 0,5,7-9, first:4 or last:2; default: all there is.",
    ),
]


def run(
    models: Models,
    by: By = "component",
    train_layers: TrainLayers = None,
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Parameters: totals, and by component, layer or tensor. Exact; tied weights count once."""
    del version, debug
    if by not in BY:
        close = nearest(by, BY)
        hint = f"did you mean --by {close[0]}?" if close else f"--by takes one of: {', '.join(BY)}"
        raise CostcalcError(f"unknown --by {shown(by)}", hint=hint)
    checkpoints = checkpoints_among(models)
    if checkpoints:
        others = {"--train-layers": train_layers is not None, "--explain": explain, "--as": read_as is not None}
        refuse_mixed(models, checkpoints, by=by, others=others)
        emit(stored_report(models, by=by), form=form, as_json=as_json, output=output)
        return
    loaded = load_all(models, read_as)
    trained = [None if train_layers is None else _chosen(model, train_layers) for model in loaded]
    counted = [_counted(model, layers) for model, layers in zip(loaded, trained, strict=True)]
    notes = [_trained_note(model, layers) for model, layers in zip(loaded, trained, strict=True)]
    beside = [[_shared_note(model), not_counted(model)] for model in loaded]
    notes = ["; ".join(filter(None, [own, *more])) or None for own, more in zip(notes, beside, strict=True)]
    data = [with_note(_data(model, count, by), note) for model, count, note in zip(loaded, counted, notes, strict=True)]
    if explain:
        figures = [_figures(model, layers) for model, layers in zip(loaded, trained, strict=True)]
        report = explain_numbers(column_names(loaded), figures, [_numbers(each) for each in data])
    else:
        report = _report(by, loaded, counted, notes, data)
    emit(report, form=form, as_json=as_json, output=output)


def _chosen(model: Architecture, train_layers: str) -> list[int]:
    """The layers that the option names, in the order of the model's stacks."""
    depth = sum(model.inventory.layers_of.values())
    try:
        return parse_layers(train_layers, depth, name="--train-layers")
    except CostcalcError as error:
        raise CostcalcError(error.what, where=model.name, hint=error.hint) from None


def _counted(model: Architecture, trained_layers: list[int] | None) -> Parameters:
    count = parameters(model.inventory)
    if trained_layers is None:
        return count
    trained = trained_weights(model.inventory, trained_layers)
    return replace(count, trainable=sum(weight.parameters for weight in trained))


def _trained_note(model: Architecture, trained_layers: list[int] | None) -> str | None:
    if trained_layers is None:
        return None
    depth = sum(model.inventory.layers_of.values())
    which = f"layer{'s' * (len(trained_layers) > 1)} {ranges(trained_layers)} of {depth:,}"
    stacks, first = [], 0
    for name, groups in model.inventory.layout.items():
        stacks.append(f"{name} {ranges(list(range(first, first + len(groups))))}")
        first += len(groups)
    both = f" ({', '.join(stacks)})" if len(stacks) > 1 else ""
    return f"{model.name}: trainable counts {which}{both} alone, the first being 0; not tables, final norm and head"


def _shared_note(model: Architecture) -> str | None:
    shared = sum(group.times for group in model.groups if group.block.share_weights)
    if not shared:
        return None
    sets = sum(group.block.share_weights for group in model.groups)
    share = "shares" if shared == 1 else "share"
    return f"{model.name}: {several(shared, 'layer')} {share} {several(sets, 'set')} of weights, counted once"


def _figures(model: Architecture, trained_layers: list[int] | None) -> Any:
    from costcalc.calculators.workings import layer_figures, parameter_figures  # noqa: PLC0415 - only --explain needs it

    return {**parameter_figures(model.inventory, trained_layers=trained_layers), **layer_figures(model.inventory)}


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    """The JSON, and each of its layers by its group; tensors are lines of every working."""
    return {**data, **{layer["group"]: layer["parameters"] for layer in data.get("layers", [])}}


def _report(
    by: str,
    loaded: list[Architecture],
    counted: list[Parameters],
    trained_notes: list[str | None],
    data: list[dict[str, Any]],
) -> Report:
    pairs = list(zip(loaded, counted, strict=True))
    return Report(
        title="; ".join(_answer(name, count) for name, count in zip(column_names(loaded), counted, strict=True)),
        tables=(_totals(loaded, counted), parts(by, loaded, counted)),
        notes=tuple(note for note in [*(published_note(*pair) for pair in pairs), *trained_notes] if note),
        data=one_or_many(data),
    )


def _answer(name: str, count: Parameters) -> str:
    return f"{name}: {grouped(count.total)} parameters ({human(count.total, 'parameters')})"


def published_note(model: Architecture, count: Parameters) -> str | None:
    """Whether the published figure, where there is one, agrees at its printed digits."""
    printed = model.published_parameters
    if printed is None:
        return None
    said = grouped(printed) if isinstance(printed, int) else printed
    if matches_printed(count.total, printed):
        return f"{model.name}: the published figure, {said}, agrees"
    return f"{model.name}: the published figure, {said}, DIFFERS from this count by {_difference(count, printed)}"


def _difference(count: Parameters, printed: int | str) -> str:
    return f"{count.total - printed:+,}" if isinstance(printed, int) else "more than its last digit"


def totals(count: Parameters) -> dict[str, Cell]:
    """The rows of totals: what is always said, and what only some models have."""
    always = {
        "total": count.total,
        "embedding tables": count.embedding,
        "non-embedding": count.non_embedding,
    }
    sometimes = {
        "active": (count.active, count.total),
        **({} if count.active == count.total else _active(count)),
        "trainable": (count.trainable, count.total),
        "buffers": (count.buffers, 0),
        "extra": (count.extra, 0),
    }
    rows = {**always, **{name: value for name, (value, plain) in sometimes.items() if value != plain}}
    return {name: Quantity(value, "parameters") for name, value in rows.items()}


def _active(count: Parameters) -> dict[str, tuple[int, int]]:
    """Of a mixture of experts, what a token uses without tables that are only looked up, and without any."""
    return {
        "active, no input table": (count.active_without_input_table, 0),
        "active, no tables": (count.active_without_tables, 0),
    }


def _totals(models: list[Architecture], counted: list[Parameters]) -> Table:
    return side_by_side("parameters", column_names(models), [totals(count) for count in counted], strong="total")


def _data(model: Architecture, count: Parameters, by: str) -> dict[str, Any]:
    data = {
        **header("params", model),
        "total_parameters": count.total,
        "embedding_parameters": count.embedding,
        "non_embedding_parameters": count.non_embedding,
        "active_parameters": count.active,
        "active_parameters_without_input_table": count.active_without_input_table,
        "active_parameters_without_tables": count.active_without_tables,
        "trainable_parameters": count.trainable,
        "buffers": count.buffers,
        "extra_parameters": count.extra,
        "components": [_component(weight) for weight in count.components],
    }
    if count.not_counted:
        data["not_counted"] = list(count.not_counted)
    if by == "layer":
        per_layer = layer_parameters(model.inventory)
        data["layers"] = [
            {"stack": stack, "layer": index, "group": group, "parameters": per_layer[group]}
            for stack, groups in model.inventory.layout.items()
            for index, group in enumerate(groups)
        ]
    return data


def _component(weight: Weight) -> dict[str, Any]:
    row = {"path": weight.path, "axes": dict(weight.axes), "times": weight.times, "parameters": weight.parameters}
    return row if weight.role == "trainable" else {**row, "role": weight.role}
