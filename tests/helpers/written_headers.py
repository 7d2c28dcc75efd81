"""Checkpoints with the tensors of a recorded one: as they are read, or as files that take no room on the disk."""

import json
import sys
from math import prod
from pathlib import Path

from hostile import write_safetensors

from costcalc.inventory.stored import Checkpoint, Stored

ORACLE = Path(__file__).resolve().parents[1] / "oracle"
sys.path.append(str(ORACLE))
from headers_packed import unpacked  # noqa: E402 - the recorder's own way to write few lines


def recorded(name="headers.json"):
    """id -> (config, name -> shape)."""
    rows = json.loads((ORACLE / name).read_text(encoding="utf-8"))
    return {row["id"]: (row["config"], unpacked(row["tensors"])) for row in rows}


def as_read(tensors):
    """What a header of these tensors says."""
    held = [Stored(name, tuple(shape), "F32", 4 * prod(shape), "f") for name, shape in tensors.items()]
    return Checkpoint("x", "safetensors", ("f",), tuple(held))


def as_folder(folder, config, tensors, integers=()):
    """A folder with a config.json and a model.safetensors whose numbers are a hole in the file."""
    folder.mkdir(exist_ok=True)
    header, end = {}, 0
    for name, shape in tensors.items():
        dtype, size = ("I64", 8) if name in integers else ("F32", 4)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size * prod(shape)]}
        end += size * prod(shape)
    write_safetensors(folder / "model.safetensors", header, end)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
