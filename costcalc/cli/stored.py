"""What a MODEL that is a checkpoint holds, by dtype or tensor by tensor: for `costcalc params`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costcalc import __version__
from costcalc.cli.models import one_or_many, with_note
from costcalc.errors import CostcalcError
from costcalc.report import Cell, Measure, Quantity, Ratio, Report, Row, Table
from costcalc.units import grouped, human, several

if TYPE_CHECKING:
    from costcalc.calculators.stored import StoredTotals
    from costcalc.inventory.stored import Checkpoint

HEADERS = "the headers of a checkpoint, which say what is stored and not how it is used"


def checkpoints_among(words: list[str]) -> list[str]:
    """The words that mean checkpoints; a folder with a config.json and presets are architectures, not these."""
    files = [word for word in words if may_be_file(word)]
    if not files:
        return []
    from costcalc.sources.checkpoint import is_checkpoint  # noqa: PLC0415 - presets need none of it

    return [word for word in files if is_checkpoint(word)]


def may_be_file(word: str) -> bool:
    """Whether a MODEL may be a path; what is on the hub is none."""
    return ("/" in word or "." in word) and not word.startswith("hf:")


def refuse_mixed(words: list[str], checkpoints: list[str], *, by: str, others: dict[str, bool]) -> None:
    """Checkpoints are told apart from architectures, and have no layers and no working."""
    if len(checkpoints) != len(words):
        other = next(word for word in words if word not in checkpoints)
        what = f"{checkpoints[0]} is a checkpoint and {other} is not, so that they have no row in common"
        raise CostcalcError(what, hint=f"costcalc params {checkpoints[0]}")
    for option, is_given in {"--by layer": by == "layer", **others}.items():
        if is_given:
            raise CostcalcError(f"{option} is not answered by {HEADERS}", hint=f"costcalc params {checkpoints[0]}")


def stored_report(words: list[str], *, by: str) -> Report:
    """The report of so many checkpoints."""
    from costcalc.calculators.stored import stored  # noqa: PLC0415 - only a checkpoint needs it
    from costcalc.sources.checkpoint import read_checkpoint  # noqa: PLC0415

    found = [(checkpoint, stored(checkpoint)) for checkpoint in map(read_checkpoint, words)]
    tables = [table for pair in found for table in _tables(*pair, by=by, prefix=_prefix(pair[0], found))]
    return Report(
        title="; ".join(_answer(*pair) for pair in found),
        tables=tuple(tables),
        notes=tuple(note for checkpoint, totals in found for note in _notes(checkpoint, totals)),
        data=one_or_many([_data(*pair) for pair in found]),
    )


def _prefix(checkpoint: Checkpoint, found: list[Any]) -> str:
    return f"{checkpoint.label}: " if len(found) > 1 else ""


def _answer(checkpoint: Checkpoint, totals: StoredTotals) -> str:
    size = f"{grouped(totals.bytes)} bytes ({human(totals.bytes, 'bytes')})"
    if totals.parameters is None:
        return f"{checkpoint.name}: parameters not told, {size}"
    said = f"{grouped(totals.parameters)} parameters ({human(totals.parameters, 'parameters')})"
    return f"{checkpoint.name}: {said} in {size}{_bits(totals)}"


def _bits(totals: StoredTotals) -> str:
    return "" if totals.bits is None else f", {float(totals.bits):.4g} bits a weight"


def _tables(checkpoint: Checkpoint, totals: StoredTotals, *, by: str, prefix: str) -> list[Table]:
    cells: dict[str, Cell] = {
        "parameters": Quantity(totals.parameters, "parameters"),
        "bytes": Quantity(totals.bytes, "bytes"),
        "bits a weight": Measure(None if totals.bits is None else float(totals.bits), ".6g"),
        "tensors": Quantity(len(checkpoint.tensors), "tensors"),
        "elements as stored": Quantity(totals.elements, "elements"),
    }
    if totals.buffers:
        cells["buffers"] = Quantity(totals.buffers, "parameters")
    rows = tuple(Row(label, (cell,), label == "parameters") for label, cell in cells.items())
    whole = Table(f"{prefix}stored", (checkpoint.format,), rows, status="exact")
    return [whole, _by_tensor(checkpoint, prefix) if by == "tensor" else _by_dtype(totals, prefix)]


def _by_dtype(totals: StoredTotals, prefix: str) -> Table:
    rows = [
        Row(
            each.dtype,
            (
                Quantity(each.tensors, "tensors"),
                Quantity(each.elements, "elements"),
                Quantity(each.bytes, "bytes"),
                Measure(None if each.bits is None else float(each.bits), ".6g"),
                Ratio(each.bytes, totals.bytes, "bar"),
            ),
        )
        for each in totals.by_dtype
    ]
    columns = ("tensors", "elements", "bytes", "bits each", "share")
    return Table(f"{prefix}by dtype", columns, tuple(rows), status="exact")


def _by_tensor(checkpoint: Checkpoint, prefix: str) -> Table:
    rows = [
        Row(
            each.name,
            (
                " x ".join(map(str, each.shape)) or "scalar",
                each.dtype,
                Quantity(each.elements, "elements"),
                Quantity(each.bytes, "bytes"),
            ),
        )
        for each in checkpoint.tensors
    ]
    return Table(f"{prefix}by tensor", ("shape", "dtype", "elements", "bytes"), tuple(rows), status="exact")


def _notes(checkpoint: Checkpoint, totals: StoredTotals) -> list[str]:
    files = several(len(checkpoint.files), "file")
    packed = ", ".join(f"{several(count, 'tensor')} in {packing}" for packing, count in totals.packings.items())
    notes = [
        f"{checkpoint.name}: from the headers of {files} alone; weights that are stored twice, such as a tied head, "
        "count twice"
    ]
    if packed:
        notes.append(f"{checkpoint.name}: packed, and counted as what they stand for: {packed}")
    if totals.why:
        notes.append(f"{checkpoint.name}: {_untold(totals)}")
    return [*notes, *(f"{checkpoint.name}: {note}" for note in checkpoint.notes)]


def _untold(totals: StoredTotals) -> str:
    return f"parameters are not told, since packed integers would have to be guessed at: {totals.why}"


def _data(checkpoint: Checkpoint, totals: StoredTotals) -> dict[str, Any]:
    data = {
        "schema": "costcalc.stored/1",
        "costcalc_version": __version__,
        "model": checkpoint.name,
        "format": checkpoint.format,
        "files": list(checkpoint.files),
        "total_parameters": totals.parameters,
        "stored_elements": totals.elements,
        "buffers": totals.buffers,
        "total_bytes": totals.bytes,
        "bits_per_weight": None if totals.bits is None else float(totals.bits),
        "by_dtype": [
            {
                "dtype": each.dtype,
                "tensors": each.tensors,
                "elements": each.elements,
                "bytes": each.bytes,
                "bits_per_element": None if each.bits is None else float(each.bits),
            }
            for each in totals.by_dtype
        ],
        "packings": [{"packing": name, "weights": count} for name, count in totals.packings.items()],
        "tensors": [
            {
                "name": each.name,
                "shape": list(each.shape),
                "dtype": each.dtype,
                "elements": each.elements,
                "bytes": each.bytes,
                "file": each.file,
            }
            for each in checkpoint.tensors
        ],
    }
    return with_note(data, f"total_parameters is null: {_untold(totals)}" if totals.why else None, *checkpoint.notes)
