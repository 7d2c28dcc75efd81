"""`costcalc schema`: the JSON Schema of the YAML, for editors; its keys in a table, or explained on a page."""

from __future__ import annotations

from costcalc.cli.emit import checked, deliver, emit
from costcalc.cli.options import Debug, Format, Json, Output, Version
from costcalc.report import Report, Row, Table
from costcalc.sources.key_pages import KeyPage, KeyRow, key_pages
from costcalc.sources.schema import schema_rows, written_schema


def run(
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """JSON Schema of a YAML file, for editors; --format table lists the keys for people.

    --format markdown explains each component and key, as in docs/yaml.md.
    """
    del version, debug
    if checked(form, as_json, output, default="json") == "markdown":
        deliver("\n".join(map(_section, key_pages())), output)
        return
    schema = written_schema()
    rows = tuple(Row(key, (takes, default)) for key, takes, default in schema_rows(schema))
    report = Report(
        title="keys of a YAML file",
        tables=(Table("key", ("takes", "default"), rows),),
        notes=("a bare word is {kind: word}; top-level keys are defaults for stacks, `block:` for layers",),
        data=schema,
    )
    emit(report, form=form, as_json=as_json, output=output, default="json")


def _section(page: KeyPage) -> str:
    written = f"Written `{page.written}`. " if page.written else ""
    lines = [f"### {page.name}", "", f"{written}{_escaped(page.about)}", ""]
    if page.rows:
        lines += ["| key | takes | default | meaning |", "| :-- | :-- | :-- | :-- |", *map(_row, page.rows), ""]
    return "\n".join(lines)


def _row(row: KeyRow) -> str:
    return f"| `{row.key}` | {row.takes} | {row.default} | {_escaped(row.meaning)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")
