"""`costcalc schema`: the JSON Schema of the YAML, for editors."""

from __future__ import annotations

from costcalc.cli.emit import emit
from costcalc.cli.options import Debug, Format, Json, Output, Version
from costcalc.report import Report, Row, Table
from costcalc.sources.schema import schema_rows, written_schema


def run(
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """JSON Schema of a YAML file, for editors; --format table lists the keys for people."""
    del version, debug
    schema = written_schema()
    rows = tuple(Row(key, (takes, default)) for key, takes, default in schema_rows(schema))
    report = Report(
        title="keys of a YAML file",
        tables=(Table("key", ("takes", "default"), rows),),
        notes=("a bare word is {kind: word}; top-level keys are defaults for stacks, `block:` for layers",),
        data=schema,
    )
    emit(report, form=form, as_json=as_json, output=output, default="json")
