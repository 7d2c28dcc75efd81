"""`costcalc import`: a config.json, or any other MODEL, as a YAML file to change and compare."""

from __future__ import annotations

from typing import Annotated

import typer

from costcalc.cli.emit import deliver
from costcalc.cli.models import load_all
from costcalc.cli.options import Debug, ReadAs, Version, complete_model

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A config.json or its folder, hf:OWNER/NAME, - for standard input; a YAML file or a preset too.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, whole or not at all.")
]


def run(
    model: Model,
    read_as: ReadAs = None,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """A config.json as YAML: the same architecture, every number equal, to change and compare."""
    del version, debug
    [loaded] = load_all([model], read_as)
    from costcalc.sources.yaml_writer import write_yaml  # noqa: PLC0415 - PyYAML, which a help page need not wait for

    deliver(write_yaml(loaded).rstrip("\n"), output)
