"""`costcalc presets`: the models that are bundled, each with its source."""

from __future__ import annotations

from typing import Any

from costcalc import __version__
from costcalc.calculators.parameters import parameters
from costcalc.cli.emit import emit
from costcalc.cli.options import Debug, Format, Json, Output, Version
from costcalc.report import Quantity, Report, Row, Table
from costcalc.sources import load
from costcalc.sources.presets import preset_aliases, preset_names


def run(
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """The bundled models: name, aliases, parameters, context, source."""
    del version, debug
    aliases: dict[str, list[str]] = {}
    for alias, name in preset_aliases().items():
        aliases.setdefault(name, []).append(alias)
    rows, objects = [], []
    for name in preset_names():
        model = load(name)
        total = parameters(model.inventory).total
        short = aliases.get(name, [])
        cells = (", ".join(short), Quantity(total, "parameters"), Quantity(model.context_length, "tokens"))
        rows.append(Row(name, (*cells, model.source)))
        objects.append(_data(name, short, total, model.context_length, model.source))
    report = Report(
        title=f"{len(rows)} presets",
        tables=(Table("preset", ("alias", "parameters", "context", "source"), tuple(rows), status="exact"),),
        notes=("a preset is a YAML file: costcalc schema describes the format",),
        data={"schema": "costcalc.presets/1", "costcalc_version": __version__, "presets": objects},
    )
    emit(report, form=form, as_json=as_json, output=output)


def _data(name: str, aliases: list[str], total: int, context: int | None, source: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "aliases": aliases,
        "total_parameters": total,
        "context_length": context,
        "source": source,
    }
