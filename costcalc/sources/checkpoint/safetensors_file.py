"""The header of one safetensors file: eight bytes of length, then JSON, then the numbers, which are never read.

The format is that of its README (huggingface/safetensors, "Format"): offsets count from the end of the header, leave no
holes and do not overlap. All of it is checked here before the library opens the file, and the two must agree.
"""

from __future__ import annotations

import json
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from costcalc.errors import CostcalcError, shown
from costcalc.inventory.stored import Stored
from costcalc.sources.checkpoint.opened import (
    INSTALL,
    MOST_DIMENSIONS,
    MOST_TENSORS,
    bounded_json,
    checked_name,
    is_size,
    opened,
    refusal,
    refuse_others,
)

MOST_HEADER_BYTES = 32 * 2**20
"""About 250,000 tensors; the library allows 100 MB, and published files have a few MB at most."""
BITS = {
    **{"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8},
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
    **{"U16": 16, "I16": 16, "F16": 16, "BF16": 16},
    **{"U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64},
}
"""Bits of an element in each dtype that the format knows."""
FIELDS = {"dtype", "shape", "data_offsets"}
NOTES = (".weight_shape", ".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4")
"""How tensors end that hold no weights but a note of another tensor's shape."""
LONGEST_NOTE = 4_096


def read_safetensors(path: Path) -> tuple[Stored, ...]:
    """The tensors of one file, in the order of their names in the header."""
    safe_open, library_error = _library()
    with opened(path) as (file, size):
        refuse_others(path, file.read(64))
        header, begin = _header(file, size, path)
        tensors = _tensors(header, size - begin, path)
        tensors = tuple(_with_note(each, header[each.name]["data_offsets"][0] + begin, file) for each in tensors)
    try:
        with safe_open(path, framework="np") as checked:
            listed = set(checked.keys())
    except (library_error, OSError, ValueError, TypeError) as error:
        raise refusal(path, f"the library safetensors does not open it: {shown(str(error))}") from None
    if listed != {each.name for each in tensors}:
        raise refusal(path, "the library safetensors reads other tensors in it")
    return tensors


def _library() -> tuple[Any, type[Exception]]:
    try:
        from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - only a checkpoint needs it
    except ImportError:
        raise CostcalcError("headers of safetensors are read with the library safetensors", hint=INSTALL) from None
    return safe_open, SafetensorError


def _header(file: BinaryIO, size: int, path: Path) -> tuple[dict[str, Any], int]:
    """The entries of all tensors, and where their numbers begin."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or length < 2:
        raise refusal(path, f"{size:,} bytes are no safetensors file")
    if length > size - 8:
        raise refusal(path, f"the header claims {length:,} bytes, and the file has {size:,}: not safetensors, or cut")
    if length > MOST_HEADER_BYTES:
        raise refusal(path, f"the header claims {length:,} bytes; at most {MOST_HEADER_BYTES:,} are read")
    raw = file.read(length)
    if len(raw) != length or raw[:1] != b"{":
        raise refusal(path, "the header does not begin with {: not a safetensors file")
    return bounded_json(raw, path), 8 + length


def _tensors(header: dict[str, Any], held: int, path: Path) -> tuple[Stored, ...]:
    """Every entry but the metadata, checked against the `held` bytes behind the header."""
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise refusal(path, "__metadata__ is no object of texts")
    if len(header) > MOST_TENSORS:
        raise refusal(path, f"{len(header):,} tensors; at most {MOST_TENSORS:,} are read")
    tensors = tuple(_tensor(checked_name(name, path), entry, held, path) for name, entry in header.items())
    places = sorted((*header[each.name]["data_offsets"], each.name) for each in tensors)
    for (_, end, before), (begin, _, name) in pairwise([(0, 0, "the header"), *places]):
        if begin != end:
            what = "overlap" if begin < end else "leave a hole"
            raise refusal(
                path, f"{shown(before)} and {shown(name)} {what}: one ends at {end:,}, one begins at {begin:,}"
            )
    end = places[-1][1] if places else 0
    if end != held:
        raise refusal(path, f"the tensors end at {end:,}, and {held:,} bytes follow the header")
    return tensors


def _tensor(name: str, entry: Any, held: int, path: Path) -> Stored:
    if not isinstance(entry, dict) or entry.keys() != FIELDS:
        raise refusal(path, f"{shown(name)} has not exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise refusal(path, f"{shown(name)} has the unknown dtype {shown(dtype)}", f"known: {', '.join(BITS)}")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(map(is_size, shape)):
        raise refusal(path, f"the shape of {shown(name)} is no list of at most {MOST_DIMENSIONS} sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_size, offsets)):
        raise refusal(path, f"the data_offsets of {shown(name)} are no two offsets")
    begin, end = offsets
    if not begin <= end <= held:
        raise refusal(path, f"{shown(name)} lies at {begin:,} to {end:,} of {held:,} bytes")
    bits = prod(shape) * BITS[dtype]
    if bits != 8 * (end - begin):
        said = f"{' x '.join(map(str, shape)) or 'a scalar'} in {dtype}"
        raise refusal(path, f"{shown(name)}, {said}, is stored in {end - begin:,} bytes")
    return Stored(name, tuple(shape), dtype, end - begin, path.name)


def _with_note(tensor: Stored, begin: int, file: BinaryIO) -> Stored:
    """The tensor; if it is a note of another one's shape, with that shape."""
    if not tensor.name.endswith(NOTES) or not 0 < tensor.bytes <= LONGEST_NOTE:
        return tensor
    file.seek(begin)
    raw = file.read(tensor.bytes)
    if tensor.name.endswith(".weight_shape"):
        return tensor._replace(states=_of_numbers(raw, tensor))
    return tensor._replace(states=_of_json(raw))


def _of_numbers(raw: bytes, tensor: Stored) -> tuple[int, ...] | None:
    """What compressed-tensors notes: the shape as I64 or I32 numbers."""
    width = {"I64": 8, "I32": 4}.get(tensor.dtype)
    if width is None or len(tensor.shape) != 1 or tensor.elements > MOST_DIMENSIONS:
        return None
    sizes = [int.from_bytes(raw[at : at + width], "little", signed=True) for at in range(0, len(raw), width)]
    return tuple(sizes) if all(map(is_size, sizes)) else None


def _of_json(raw: bytes) -> tuple[int, ...] | None:
    """What bitsandbytes notes: an object with a `shape` as bytes of text."""
    try:
        sizes = json.loads(raw.decode("utf-8"))["shape"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    is_shape = isinstance(sizes, list) and len(sizes) <= MOST_DIMENSIONS and all(map(is_size, sizes))
    return tuple(sizes) if is_shape else None
