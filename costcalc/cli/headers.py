"""`costcalc verify` of a folder: what its config.json states against what the headers of its checkpoint say."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from costcalc import __version__
from costcalc.cli.models import one_or_many
from costcalc.cli.stored import may_be_file
from costcalc.errors import CostcalcError
from costcalc.report import Cell, Quantity, Report, Row, Table
from costcalc.units import ranges, several

if TYPE_CHECKING:
    from collections.abc import Iterable

    from costcalc.architecture import Architecture
    from costcalc.inventory.stored import Checkpoint
    from costcalc.verification.headers import Differing, HeaderCheck, Leaf, Match, Tensor

MOST_FAULTS = 40
"""Lines of a table; JSON lists all."""
WAYS = {
    "name": "by name and shape",
    "fused": "several stored as one",
    "split": "one stored as several",
    "shape": "by shape alone, in their layer",
}


class Checked(NamedTuple):
    """One folder: what it states, what it holds, and what came of it."""

    model: Architecture
    checkpoint: Checkpoint
    check: HeaderCheck


class Line(NamedTuple):
    """One difference, of all layers that have it."""

    path: str
    layers: tuple[int, ...]
    kind: str
    stated: str
    stored: str


def with_checkpoints(words: list[str]) -> list[str]:
    """The words that mean a config.json with a checkpoint beside it: folders, and files of weights in such a folder."""
    files = [word for word in words if may_be_file(word)]
    if not files:
        return []
    from costcalc.sources.checkpoint import has_checkpoint_and_config  # noqa: PLC0415 - presets need none of it

    found = [word for word in files if has_checkpoint_and_config(word)]
    if found and len(found) < len(words):
        other = next(word for word in words if word not in found)
        what = f"{found[0]} is verified against its checkpoint, and {other} has none beside it"
        raise CostcalcError(what, hint="verify them one at a time")
    return found


def checked_headers(word: str, read_as: str | None = None) -> Checked:
    """Read both and compare them."""
    from costcalc.sources import load  # noqa: PLC0415 - pydantic
    from costcalc.sources.checkpoint import read_checkpoint  # noqa: PLC0415
    from costcalc.verification.headers import compare_headers  # noqa: PLC0415

    path = Path(word)
    config = path / "config.json" if path.is_dir() else path.parent / "config.json"
    model = load(config, read_as=read_as)
    checkpoint = read_checkpoint(word)
    return Checked(model, checkpoint, compare_headers(model.inventory, checkpoint))


def headers_report(results: list[Checked]) -> Report:
    """The report on all of them."""
    return Report(
        title="; ".join(_answer(each) for each in results),
        tables=tuple(table for each in results for table in _tables(each, len(results) > 1)),
        notes=tuple(note for each in results for note in _notes(each)),
        data=one_or_many([_data(each) for each in results]),
    )


def _answer(result: Checked) -> str:
    check, name = result.check, result.model.name
    if check.agrees:
        return f"{name}: verified, config.json and {several(len(result.checkpoint.tensors), 'stored tensor')} agree"
    counts = (
        (len(check.missing), "missing"),
        (len(check.unexplained), "unexplained"),
        (len(check.differing), "of another shape"),
        (len(check.untold), "packed in an unknown way"),
    )
    return f"{name}: NOT verified, {', '.join(f'{count:,} {what}' for count, what in counts if count)}"


def _tables(result: Checked, is_one_of_several: bool) -> list[Table]:
    check = result.check
    prefix = f"{result.model.name}: " if is_one_of_several else ""
    rows = []
    for way, label in WAYS.items():
        found = [each for each in check.matches if each.how == way]
        if found:
            rows.append(_counted(label, _leaves(found), [tensor for each in found for tensor in each.tensors]))
    beside = (
        ("copies of tied tables", (), check.copies),
        ("further modules, not stated", (), check.further),
        ("stated, and not stored", check.lacking, ()),
    )
    rows += [_counted(label, leaves, tensors) for label, leaves, tensors in beside if leaves or tensors]
    others = (("buffers", check.buffers), ("scales", check.scales), ("of parts that are not counted", check.towers))
    rows += [Row(label, ("", "", Quantity(len(names), "tensors"), "")) for label, names in others if names]
    columns = ("weights", "parameters", "tensors", "elements")
    tables = [Table(f"{prefix}agrees", columns, tuple(rows), status="exact")]
    lines = _lines(check)
    if lines:
        shown = [Row(each.path, (ranges(list(each.layers)), *each[2:])) for each in lines[:MOST_FAULTS]]
        if len(lines) > MOST_FAULTS:
            shown.append(Row(f"and {len(lines) - MOST_FAULTS:,} more", ("",) * 4))
        tables.append(Table(f"{prefix}differs", ("layers", "kind", "stated", "stored"), tuple(shown)))
    return tables


def _counted(label: str, leaves: Iterable[Leaf], tensors: Iterable[Tensor]) -> Row:
    leaves, tensors = list(leaves), list(tensors)
    cells: tuple[Cell, ...] = (
        Quantity(len(leaves), "weights"),
        Quantity(sum(prod(leaf.axes) for leaf in leaves), "parameters"),
        Quantity(sum(len(tensor.names) for tensor in tensors), "tensors"),
        Quantity(sum(prod(tensor.shape) for tensor in tensors), "elements"),
    )
    return Row(label, cells)


def _lines(check: HeaderCheck) -> list[Line]:
    """Equal differences of several layers in one line."""
    from costcalc.verification.headers import said  # noqa: PLC0415

    found: dict[tuple[str, str, str, str], list[int]] = {}

    def note(place: tuple[str, int], path: str, kind: str, stated: str, stored: str) -> None:
        stack, layer = place
        key = (f"{stack}.layers.*.{path}" if stack else path, kind, stated, stored)
        found.setdefault(key, []).extend([layer] if stack else [])

    for pair in check.differing:
        stated = " + ".join(said(leaf.axes) for leaf in pair.leaves)
        path = " + ".join(leaf.inside for leaf in pair.leaves)
        note(pair.leaves[0].place, path, "shape", stated, f"{said(pair.tensor.shape)} in {_called(pair.tensor)}")
    for leaf in check.missing:
        note(leaf.place, leaf.inside, "missing", said(leaf.axes), "nothing")
    for tensor in check.unexplained:
        path = tensor.inside if tensor.place[0] else tensor.names[0]
        note(tensor.place, path, "unexplained", "nothing", said(tensor.shape))
    for weight in check.untold:
        note(("", 0), weight.name, "packed", "", weight.why)
    return [Line(path, tuple(layers), kind, stated, stored) for (path, kind, stated, stored), layers in found.items()]


def _called(tensor: Tensor) -> str:
    """Its name, without the number of its layer, so that equal differences are one line."""
    return tensor.inside if tensor.place[0] else tensor.names[0]


def _notes(result: Checked) -> list[str]:
    name, check = result.model.name, result.check
    notes = [f"{name}: {result.checkpoint.format} headers of {several(len(result.checkpoint.files), 'file')} alone"]
    if check.towers:
        beside = ", ".join(result.model.inventory.not_counted)
        notes.append(f"{name}: {several(len(check.towers), 'tensor')} of what is not counted beside the text: {beside}")
    if any(each.how == "shape" for each in check.matches):
        notes.append(f"{name}: by shape alone: a word that is not known, where nothing else of its layer fits better")
    return [*notes, *(f"{name}: {note}" for note in result.checkpoint.notes)]


def _data(result: Checked) -> dict[str, Any]:
    check, checkpoint = result.check, result.checkpoint
    matched = {way: len(_leaves(each for each in check.matches if each.how == way)) for way in WAYS}
    absent = len(check.missing) + len(check.lacking) + len(_leaves(check.differing))
    return {
        "schema": "costcalc.headers/1",
        "costcalc_version": __version__,
        "model": result.model.name,
        "format": checkpoint.format,
        "files": list(checkpoint.files),
        "verified": check.agrees,
        "stated_weights": sum(matched.values()) + absent,
        "stored_tensors": len(checkpoint.tensors),
        "matched_weights": matched,
        "matched_parameters": sum(prod(leaf.axes) for leaf in _leaves(check.matches)),
        "missing": [{"path": leaf.path, "axes": list(leaf.axes)} for leaf in check.missing],
        "unexplained": [_tensor(tensor) for tensor in check.unexplained],
        "differing": [{**_paths(each.leaves), **_tensor(each.tensor)} for each in check.differing],
        "untold": [{"name": each.name, "why": each.why} for each in check.untold],
        "copies": _names(check.copies),
        "buffers": list(check.buffers),
        "scales": list(check.scales),
        "not_counted": list(check.towers),
        "further": _names(check.further),
        "not_stored": [leaf.path for leaf in check.lacking],
        "matches": [
            {"how": each.how, **_paths(each.leaves), "tensors": _names(each.tensors)} for each in check.matches
        ],
    }


def _leaves(found: Iterable[Match | Differing]) -> list[Leaf]:
    return [leaf for each in found for leaf in each.leaves]


def _names(tensors: Iterable[Tensor]) -> list[str]:
    return [name for tensor in tensors for name in tensor.names]


def _paths(leaves: Iterable[Leaf]) -> dict[str, Any]:
    leaves = list(leaves)
    return {"paths": [leaf.path for leaf in leaves], "axes": [list(leaf.axes) for leaf in leaves]}


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"tensors": list(tensor.names), "shape": list(tensor.shape)}
