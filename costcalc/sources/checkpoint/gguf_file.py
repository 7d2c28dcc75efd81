"""The header of one GGUF file: its metadata, walked over and not kept, and a line for each tensor.

The format is that of ggml's docs/gguf.md. The library's own reader builds arrays for each token of a vocabulary, which
takes minutes, and follows any count that a header claims; so this is a walk of our own, bounded by the file's size, and
the library gives the types: how many bytes a block of each quantisation takes, for how many values.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from costcalc.errors import CostcalcError, shown
from costcalc.inventory.stored import Stored
from costcalc.sources.checkpoint.cursor import Cursor
from costcalc.sources.checkpoint.opened import INSTALL, LARGEST_SIZE, checked_name, opened, refusal, refuse_others

MAGIC = b"GGUF"
OLDER = (b"ggml", b"ggmf", b"ggjt", b"ggla", b"lmgg", b"fmgg", b"tjgg", b"algg")
VERSIONS = (2, 3)
MOST_KEYS = 65_536
MOST_TENSORS = 200_000
MOST_TEXTS = 2_000_000
"""Of all arrays: the largest vocabularies have 256,000 tokens, and as many merges again."""
LONGEST_KEY = 65_535
LONGEST_KEPT = 1_024
LONGEST_TEXT = 64 * 2**20
LONGEST_NAME = 256
"""The format allows 64 bytes."""
MOST_DIMENSIONS = 4
LARGEST_ALIGNMENT = 2**20
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a metadata value by its type: u8 i8 u16 i16 u32 i32 f32 bool, then u64 i64 f64."""
WHOLE = {0: False, 1: True, 2: False, 3: True, 4: False, 5: True, 10: False, 11: True}
"""Types that are whole numbers, and whether they have a sign."""
TEXT, ARRAY = 8, 9
KEPT = ("general.alignment", "general.architecture", "general.name", "split.no", "split.count", "split.tensors.count")


class GGUF(NamedTuple):
    """What one file says: its tensors, and the few keys of its metadata that mean something here."""

    tensors: tuple[Stored, ...]
    metadata: dict[str, int | str]


def read_gguf(path: Path) -> GGUF:
    """The tensors of one file, in its order."""
    quants = _library()
    with opened(path) as (file, size):
        start = file.read(64)
        refuse_others(path, start)
        cursor = _begun(Cursor(file, size, path, _byte_order(start, path)))
        tensor_count, key_count = cursor.long("the number of tensors"), cursor.long("the number of keys")
        for count, most, what in ((tensor_count, MOST_TENSORS, "tensors"), (key_count, MOST_KEYS, "metadata keys")):
            if count > most:
                raise refusal(path, f"the header claims {count:,} {what}; at most {most:,} are read")
        metadata = _metadata(cursor, key_count)
        placed = [_tensor(cursor, quants) for _ in range(tensor_count)]
        _check_places(placed, cursor, _alignment(metadata, path))
    return GGUF(tuple(each for each, _ in placed), metadata)


def _library() -> Any:
    """Type number -> (name, values of a block, bytes of a block)."""
    try:
        from gguf.constants import GGML_QUANT_SIZES  # noqa: PLC0415 - only a GGUF file needs it
    except ImportError:
        raise CostcalcError("GGUF files are read with the library gguf", hint=INSTALL) from None
    return {int(kind): (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}


def _byte_order(start: bytes, path: Path) -> str:
    """Little endian, or big where the version is only then a version."""
    if start[:4].lower() in OLDER:
        raise refusal(path, "a GGML file from before GGUF", "convert it to GGUF with llama.cpp")
    if start[:4] != MAGIC or len(start) < 24:
        raise refusal(path, "not a GGUF file: it does not begin with GGUF")
    return ">" if start[4:6] == b"\0\0" else "<"


def _begun(cursor: Cursor) -> Cursor:
    cursor.skip(4, "the magic")
    version = cursor.number("the version")
    if version not in VERSIONS:
        raise refusal(cursor.path, f"GGUF version {version:,} is not read", "versions 2 and 3 are; convert it anew")
    return cursor


def _metadata(cursor: Cursor, count: int) -> dict[str, int | str]:
    """The keys of KEPT; all others are walked over."""
    kept: dict[str, int | str] = {}
    seen: set[str] = set()
    texts = MOST_TEXTS
    for _ in range(count):
        key = cursor.text("a metadata key", LONGEST_KEY)
        if key in seen:
            raise refusal(cursor.path, f"the metadata key {shown(key)} is written twice")
        seen.add(key)
        where = f"the value of {shown(key)}"
        kind = cursor.number(where)
        if kind == ARRAY:
            texts -= _skip_array(cursor, where, texts)
        elif kind == TEXT and key in KEPT:
            kept[key] = cursor.text(where, LONGEST_KEPT)
        elif kind == TEXT:
            length = cursor.long(where)
            if length > LONGEST_TEXT:
                raise refusal(cursor.path, f"{where} claims {length:,} characters")
            cursor.skip(length, where)
        elif kind in SIZES:
            raw = cursor.take(SIZES[kind], where)
            if key in KEPT and kind in WHOLE:
                kept[key] = int.from_bytes(raw, "little" if cursor.u32.format[0] == "<" else "big", signed=WHOLE[kind])
        else:
            raise refusal(cursor.path, f"{where} has the unknown type {kind:,}")
    return kept


def _skip_array(cursor: Cursor, where: str, texts_left: int) -> int:
    """Walk over an array; how many texts it had."""
    kind, count = cursor.number(where), cursor.long(where)
    if kind == ARRAY:
        raise refusal(cursor.path, f"{where} is an array of arrays, which no reader of GGUF takes")
    if kind == TEXT:
        if count > texts_left or 8 * count > cursor.size - cursor.at:
            raise refusal(cursor.path, f"{where} claims {count:,} texts; the file has {cursor.size:,} bytes")
        cursor.skip_texts(count, where)
        return count
    if kind not in SIZES:
        raise refusal(cursor.path, f"{where} is an array of the unknown type {kind:,}")
    cursor.skip(count * SIZES[kind], where)
    return 0


def _tensor(cursor: Cursor, quants: Any) -> tuple[Stored, int]:
    """One line of the table of tensors, and the offset of its numbers."""
    path = cursor.path
    name = checked_name(cursor.text("a tensor's name", LONGEST_NAME), path)
    rank = cursor.number(f"the rank of {shown(name)}")
    if rank > MOST_DIMENSIONS:
        raise refusal(path, f"{shown(name)} claims {rank:,} dimensions; the format has at most {MOST_DIMENSIONS}")
    sizes = [cursor.long(f"the shape of {shown(name)}") for _ in range(rank)]
    number = cursor.number(f"the type of {shown(name)}")
    offset = cursor.long(f"the offset of {shown(name)}")
    if number not in quants:
        hint = "a newer library gguf may know it, or the format was withdrawn"
        raise refusal(path, f"{shown(name)} has the unknown type {number:,}", hint)
    word, values, size = quants[number]
    elements = prod(sizes)
    if elements > LARGEST_SIZE or max(sizes, default=1) > LARGEST_SIZE:
        raise refusal(path, f"{shown(name)} claims {' x '.join(map(str, sizes))} elements")
    row = sizes[0] if sizes else 1
    if row % values:
        raise refusal(path, f"a row of {shown(name)} has {row:,} values, no whole blocks of {values} in {word}")
    return Stored(name, tuple(reversed(sizes)), word, elements // values * size, path.name), offset


def _alignment(metadata: dict[str, int | str], path: Path) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= LARGEST_ALIGNMENT or alignment & (alignment - 1):
        raise refusal(path, f"general.alignment is {shown(alignment)}, which is no power of two")
    return alignment


def _check_places(placed: list[tuple[Stored, int]], cursor: Cursor, alignment: int) -> None:
    """Names differ; numbers lie inside the file, on whole multiples, and do not overlap."""
    path = cursor.path
    begin = -(-cursor.at // alignment) * alignment
    seen: set[str] = set()
    for each, offset in placed:
        if each.name in seen:
            raise refusal(path, f"two tensors are called {shown(each.name)}")
        seen.add(each.name)
        if offset % alignment:
            raise refusal(path, f"{shown(each.name)} begins at {offset:,}, no multiple of {alignment:,}")
        if begin + offset + each.bytes > cursor.size:
            end = f"{begin + offset + each.bytes:,}"
            raise refusal(path, f"{shown(each.name)} ends at {end}, and the file at {cursor.size:,}")
    in_order = sorted(((offset, each.bytes, each.name) for each, offset in placed))
    for (offset, size, before), (after, _, name) in pairwise(in_order):
        if after < offset + size:
            raise refusal(path, f"{shown(before)} and {shown(name)} overlap")
