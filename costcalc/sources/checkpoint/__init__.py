"""Checkpoints: what is stored, from headers alone. safetensors, one file or many, and GGUF; pickles are refused.

Headers are validated before anything that they claim is allocated; no weight is read.
"""

from __future__ import annotations

from pathlib import Path

from costcalc.errors import shown
from costcalc.inventory.stored import Checkpoint, Stored
from costcalc.sources.checkpoint.found import INDEX, has_checkpoint_and_config, is_checkpoint, refuse_pickle, weights_in
from costcalc.sources.checkpoint.opened import refusal
from costcalc.sources.checkpoint.shards import read_index, whole_set
from costcalc.sources.files import is_file, is_folder, read_text
from costcalc.sources.json_text import read_json


def read_checkpoint(word: str) -> Checkpoint:
    """The checkpoint that a path means: a file, an index, any file of a counted set, or a folder that holds one.

    Raises `CostcalcError` with what is wrong, where, and what to type.
    """
    path = Path(word)
    refuse_pickle(path)
    if is_folder(word):
        path = weights_in(path)
    notes: tuple[str, ...] = ()
    if path.name.endswith(INDEX):
        tensors, notes = read_index(path)
        files = sorted({each.file for each in tensors})
    else:
        paths = whole_set(path)
        files = [each.name for each in paths]
        tensors = _gguf(paths) if path.name.endswith(".gguf") else _safetensors(paths)
    form = "gguf" if path.name.endswith(".gguf") else "safetensors"
    return Checkpoint(word, form, tuple(files), tensors, _config(path.parent), notes)


def _config(folder: Path) -> dict[str, object]:
    """The config.json beside it."""
    path = folder / "config.json"
    if not is_file(str(path)):
        return {}
    data = read_json(read_text(str(path)), str(path)).data
    return data if isinstance(data, dict) else {}


def _safetensors(paths: list[Path]) -> tuple[Stored, ...]:
    from costcalc.sources.checkpoint.safetensors_file import read_safetensors  # noqa: PLC0415 - only these need it

    return _once([each for path in paths for each in read_safetensors(path)], paths)


def _gguf(paths: list[Path]) -> tuple[Stored, ...]:
    from costcalc.sources.checkpoint.gguf_file import read_gguf  # noqa: PLC0415 - only these need it

    files = [read_gguf(path) for path in paths]
    count = files[0].metadata.get("split.count", 0)
    if count not in (0, len(files)) and not (count == 1 and len(files) == 1):
        hint = f"its other files end in -of-{count:05d}.gguf" if isinstance(count, int) else ""
        raise refusal(paths[0], f"one of {shown(count)} files by its metadata, of {len(files):,} by its name", hint)
    tensors = _once([each for file in files for each in file.tensors], paths)
    said = files[0].metadata.get("split.tensors.count", len(tensors))
    if len(files) > 1 and said != len(tensors):
        raise refusal(paths[0], f"the set has {len(tensors):,} tensors, and its metadata says {shown(said)}")
    return tensors


def _once(tensors: list[Stored], paths: list[Path]) -> tuple[Stored, ...]:
    files: dict[str, str] = {}
    for each in tensors:
        if each.name in files:
            raise refusal(paths[0], f"{shown(each.name)} is in {files[each.name]} and in {each.file}")
        files[each.name] = each.file
    return tuple(tensors)


__all__ = ["Checkpoint", "Stored", "has_checkpoint_and_config", "is_checkpoint", "read_checkpoint", "weights_in"]
