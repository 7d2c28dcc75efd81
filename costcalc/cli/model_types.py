"""`costcalc models`: which model types of a config.json are read, how exactly, and which are refused and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from costcalc import __version__
from costcalc.cli.emit import emit
from costcalc.cli.options import Debug, Format, Json, Output, Version
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.report import Report, Row, Table
from costcalc.sources.huggingface.not_read import NOT_READ
from costcalc.sources.huggingface.read import QUESTIONS, read_types

FAMILIES = ("decoder-only", "encoder-only", "encoder-decoder")
NOTES = (
    "exact: equal to the real class to the last unit, held by recorded truth; modelled: scans are an estimate",
    "refused: the question is, with the reason; none: nothing is kept between two tokens",
    "another type: --as TYPE reads it as one of these, and says so",
)
Family = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="|".join(FAMILIES),
        help="Those of one family only.",
        autocompletion=lambda: list(FAMILIES),
    ),
]


def run(
    family: Family = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """The model types of config.json that are read, how exactly, and those that are refused and why."""
    del version, debug
    if family is not None and family not in FAMILIES:
        close = nearest(family, FAMILIES)
        hint = f"did you mean --family {close[0]}?" if close else f"--family takes one of: {', '.join(FAMILIES)}"
        raise CostcalcError(f"unknown --family {shown(family)}", hint=hint)
    chosen = {name: row for name, row in read_types().items() if family in (None, row["family"])}
    rows = [Row(name, tuple(_cells(row))) for name, row in chosen.items()]
    tables = [Table("model type", ("family", *QUESTIONS, "rows", "not counted"), tuple(rows))]
    if family is None and NOT_READ:
        tables.append(Table("refused", ("why",), tuple(Row(name, (why,)) for name, why in sorted(NOT_READ.items()))))
    report = Report(
        title=f"{len(rows)} model types of config.json are read",
        tables=tuple(tables),
        notes=NOTES,
        data=_data(chosen, NOT_READ if family is None else {}),
    )
    emit(report, form=form, as_json=as_json, output=output)


def _cells(row: dict[str, Any]) -> list[Any]:
    return [row["family"], *(row[name] for name in QUESTIONS), str(row["recorded"]), ", ".join(row["not_counted"])]


def _data(chosen: dict[str, dict[str, Any]], refused: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": "costcalc.models/1",
        "costcalc_version": __version__,
        "models": [{"model_type": name, **row} for name, row in chosen.items()],
        "refused": [{"model_type": name, "why": why} for name, why in sorted(refused.items())],
    }
