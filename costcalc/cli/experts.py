"""`costcalc experts`: mixtures of experts, and what a batch of tokens reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costcalc.calculators.experts import Experts, expert_figures, experts
from costcalc.calculators.figure import Figure
from costcalc.calculators.parameters import Parameters, parameters
from costcalc.cli.emit import emit
from costcalc.cli.models import column_names, explain_numbers, header, load_all, not_counted, one_or_many, with_note
from costcalc.cli.options import Debug, Explain, Format, Json, Models, Output, ReadAs, Version
from costcalc.report import Cell, Measure, Quantity, Ratio, Report, Row, Table, side_by_side
from costcalc.units import human, parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

PLACES = 6
STEPS = (1, 8, 32, 128, 512)
"""Batches of the second table, the one that is asked for among them."""
EVEN = "expected, of tokens that choose alike and independently: trained routers are less even, and read fewer"
Tokens = Annotated[str, typer.Option("--batch", metavar="N", help="Tokens of one step: sequences, of a decode step.")]


@dataclass(frozen=True, slots=True)
class Found:
    """One model's mixtures, and what the step that is asked for reads."""

    model: Architecture
    tokens: int
    counted: Parameters
    step: Experts


def run(
    models: Models,
    batch: Tokens = "1",
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Mixtures of experts: total and active parameters, and the distinct experts that a batch is expected to read.

    Counts are exact; E (1 - (1 - X/E)^B) distinct experts are an estimate, of tokens that choose alike and
    independently.
    """
    del version, debug
    tokens = parse_length(batch, name="--batch")
    loaded = load_all(models, read_as)
    names = column_names(loaded)
    found = [Found(model, tokens, parameters(model.inventory), experts(model.inventory, tokens)) for model in loaded]
    if explain:
        figures = [_figures(each) for each in found]
        report = explain_numbers(names, figures, [_stated(known) for known in figures])
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)


def _figures(each: Found) -> dict[str, Figure]:
    """The working of every number, those of a mixture below the path of its experts."""
    from costcalc.calculators.workings import parameter_figures  # noqa: PLC0415 - only --explain needs it

    counted = parameter_figures(each.model.inventory)
    keys = [key for key in _data(each) if key in counted]
    return {**{key: counted[key] for key in keys}, **expert_figures(each.model.inventory, each.tokens)}


def _stated(known: dict[str, Figure]) -> dict[str, Any]:
    """Each number as its working gives it."""
    from costcalc.cli.working import stated  # noqa: PLC0415 - a report without --explain needs none of it

    return {key: stated(figure) for key, figure in known.items()}


def _report(names: list[str], found: list[Found]) -> Report:
    sheets = [_sheet(each) for each in found]
    estimated = {f"read by {several(each.tokens, 'token')}": "estimate" for each in found if each.tokens > 1}
    steps = [_steps(name if len(found) > 1 else "", each) for name, each in zip(names, found, strict=True)]
    return Report(
        title="; ".join(_answer(name, each) for name, each in zip(names, found, strict=True)),
        tables=(side_by_side("experts", names, sheets, strong="active", others=estimated), *filter(None, steps)),
        notes=(EVEN, *filter(None, (note for each in found for note in (_none(each), not_counted(each.model))))),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(name: str, each: Found) -> str:
    total, active = (human(count, "parameters") for count in (each.counted.total, each.counted.active))
    return f"{name}: {active} of {total} are active" if each.step.mixtures else f"{name}: no experts, {total}"


def _none(each: Found) -> str | None:
    return None if each.step.mixtures else f"{each.model.name} has no mixture of experts: every token uses all of it"


def _sheet(each: Found) -> dict[str, Cell]:
    counted = each.counted
    sheet: dict[str, Cell] = {}
    several_of = len(each.step.mixtures) > 1
    for mixture in each.step.mixtures:
        where = f" ({mixture.path})" if several_of else ""
        sheet[f"experts of a token{where}"] = f"{mixture.chosen:,} of {mixture.experts:,}"
        sheet[f"layers with experts{where}"] = Quantity(mixture.layers, "layers")
        sheet[f"one expert{where}"] = Quantity(mixture.expert_parameters, "parameters")
    return {
        **sheet,
        "total": Quantity(counted.total, "parameters"),
        "active": Quantity(counted.active, "parameters"),
        "active, no input table": Quantity(counted.active_without_input_table, "parameters"),
        "active, no tables": Quantity(counted.active_without_tables, "parameters"),
        f"read by {several(each.tokens, 'token')}": Quantity(each.step.read_parameters, "parameters"),
    }


def _steps(name: str, each: Found) -> Table | None:
    """Distinct experts of each mixture by the tokens of a step, and the parameters that it reads."""
    if not each.step.mixtures:
        return None
    places = [mixture.path for mixture in each.step.mixtures]
    rows = []
    for tokens in sorted({*STEPS, each.tokens}):
        step = experts(each.model.inventory, tokens)
        cells: list[Cell] = [Measure(step.distinct[path], ",.2f") for path in places]
        shares: list[Cell] = [
            Quantity(step.read_parameters, "parameters"),
            Ratio(step.read_parameters, each.counted.total, "percent"),
        ]
        rows.append(Row(f"{tokens:,}", (*cells, *shares), status="exact" if tokens == 1 else "estimate"))
    columns = [f"distinct in {path}" for path in places] if len(places) > 1 else ["distinct experts"]
    return Table(
        f"{name}: tokens of a step" if name else "tokens of a step",
        (*columns, "parameters read", "of all"),
        tuple(rows),
        status="estimate",
    )


def _data(each: Found) -> dict[str, Any]:
    counted = each.counted
    data = {
        **header("experts", each.model),
        "batch": each.tokens,
        "total_parameters": counted.total,
        "active_parameters": counted.active,
        "active_parameters_without_input_table": counted.active_without_input_table,
        "active_parameters_without_tables": counted.active_without_tables,
        "mixtures": [
            {
                "path": mixture.path,
                "layers": mixture.layers,
                "experts": mixture.experts,
                "experts_per_token": mixture.chosen,
                "expert_parameters": mixture.expert_parameters,
                "distinct_experts": round(each.step.distinct[mixture.path], PLACES),
            }
            for mixture in each.step.mixtures
        ],
        "read_parameters": each.step.read_parameters,
    }
    return with_note(data, _none(each), not_counted(each.model))
