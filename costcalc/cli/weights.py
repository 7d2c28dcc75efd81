"""`costcalc weights`: how many bytes the weights take, in which format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from costcalc.calculators.figure import Figure, given
from costcalc.calculators.weights import WeightFormat, bits_format, vector_parameters, weight_formats, weight_sizes
from costcalc.cli.emit import emit
from costcalc.cli.models import column_names, explain_numbers, header, load_all, not_counted, one_or_many, with_note
from costcalc.cli.options import Debug, Explain, Format, Json, Memory, Models, Output, ReadAs, Version
from costcalc.expression import symbol
from costcalc.report import Cell, Measure, Quantity, Report, Row, Table
from costcalc.units import gigabytes, human, parse_bytes

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

NO_MEMORY = "memory_bytes and left_bytes are null without --memory"
Bits = Annotated[
    list[str] | None,
    typer.Option("--bits", metavar="BITS", help="A format of your own: bits a weight, scales included, such as 4.82."),
]


def run(
    models: Models,
    bits: Bits = None,
    memory: Memory = None,
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Bytes of the weights by dtype and quantisation format, with true bits a weight.

    Exact where each weight takes the format's bits; a file also has a header, and often keeps norms and biases wider.
    """
    del version, debug
    own = dict.fromkeys(bits_format(word, name="--bits") for word in bits or [])
    formats = [*own, *weight_formats()]
    space = None if memory is None else parse_bytes(memory, name="--memory")
    loaded = load_all(models, read_as)
    names = column_names(loaded)
    sizes = [weight_sizes(model.inventory, formats) for model in loaded]
    if explain:
        figures = [weight_figures(found, space) for found in sizes]
        report = explain_numbers(
            names, figures, [{key: each.value for key, each in found.items()} for found in figures]
        )
    else:
        data = [_data(model, formats, found, space) for model, found in zip(loaded, sizes, strict=True)]
        report = _report(names, loaded, formats, sizes, space, data)
    emit(report, form=form, as_json=as_json, output=output)


def weight_figures(sizes: dict[str, Figure], space: int | None) -> dict[str, Figure]:
    """The working of every number, by its key in the JSON and the format: weight_bytes_q4_0, left_bytes_q4_0."""
    figures = {size.name: size for size in sizes.values()}
    if space is not None:
        memory = given("memory_bytes", "bytes", space)
        figures.update({left.name: left for left in [_left(memory, size) for size in sizes.values()]})
    return figures


def _left(memory: Figure, size: Figure) -> Figure:
    name = size.name.replace("weight_bytes", "left_bytes")
    return Figure(name, "bytes", symbol(memory.name) - symbol(size.name), {memory.name: memory, size.name: size})


def _report(
    names: list[str],
    models: list[Architecture],
    formats: list[WeightFormat],
    sizes: list[dict[str, Figure]],
    space: int | None,
    data: list[dict[str, Any]],
) -> Report:
    vectors = [vector_parameters(model.inventory) for model in models]
    notes = [
        f"{name}: {count:,} parameters of norms and biases, which files often keep wider"
        for name, count in zip(names, vectors, strict=True)
    ]
    notes += [note for model in models for note in [not_counted(model)] if note]
    notes.append("modelled: files that mix formats tensor by tensor, at the bits measured on Llama-2-7B")
    return Report(
        title="; ".join(
            f"{name}: {human(found['bf16'].value, 'bytes')} ({gigabytes(found['bf16'].value)}) in bf16"
            for name, found in zip(names, sizes, strict=True)
        ),
        tables=tuple(
            _table(name if len(names) > 1 else "", formats, found, space)
            for name, found in zip(names, sizes, strict=True)
        ),
        notes=tuple(notes),
        data=one_or_many(data),
    )


def _table(name: str, formats: list[WeightFormat], sizes: dict[str, Figure], space: int | None) -> Table:
    columns = ["bits a weight", "bytes", "GB", *(["left"] if space is not None else [])]
    rows = []
    for form in formats:
        size = sizes[form.name].value
        cells: list[Cell] = [Measure(float(form.bits), ".6g"), Quantity(size, "bytes"), Measure(size / 1e9, ",.2f")]
        if space is not None:
            cells.append(Quantity(space - size, "bytes"))
        rows.append(Row(form.name, tuple(cells), status=form.status))
    return Table(f"{name}: weights in" if name else "weights in", tuple(columns), tuple(rows), status="exact")


def _data(
    model: Architecture, formats: list[WeightFormat], sizes: dict[str, Figure], space: int | None
) -> dict[str, Any]:
    total = next(iter(sizes.values())).values["total_parameters"]
    data = {
        **header("weights", model),
        "total_parameters": total.value if isinstance(total, Figure) else total,
        "memory_bytes": space,
        "formats": [
            {
                "format": form.name,
                "bits_per_weight": float(form.bits),
                "weight_bytes": sizes[form.name].value,
                "left_bytes": None if space is None else space - sizes[form.name].value,
                "status": form.status,
            }
            for form in formats
        ],
    }
    return with_note(data, not_counted(model), NO_MEMORY if space is None else None)
