"""Checkpoints of several files: an index that says which tensor is where, or names that count themselves."""

from __future__ import annotations

import re
from pathlib import Path

from costcalc.errors import shown
from costcalc.inventory.stored import Stored
from costcalc.sources.checkpoint.opened import (
    MOST_PLACED,
    bounded_json,
    checked_name,
    is_size,
    opened,
    refusal,
    refuse_others,
)
from costcalc.sources.checkpoint.safetensors_file import read_safetensors
from costcalc.sources.files import is_file

MOST_INDEX_BYTES = 64 * 2**20
MOST_FILES = 10_000
MOST_NAMED = 3
COUNTED = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.(?:safetensors|gguf))", re.ASCII)


def read_index(path: Path) -> tuple[tuple[Stored, ...], tuple[str, ...]]:
    """The tensors of every file that a `*.safetensors.index.json` names, and notes on what it says of them."""
    with opened(path) as (file, size):
        if size > MOST_INDEX_BYTES:
            raise refusal(path, f"an index of {size:,} bytes; at most {MOST_INDEX_BYTES:,} are read")
        raw = file.read(MOST_INDEX_BYTES)
    refuse_others(path, raw[:64])
    index = bounded_json(raw, path)
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places or len(places) > MOST_PLACED:
        raise refusal(path, "no `weight_map`, an object that says which file each tensor is in", "give the index")
    shards: dict[str, set[str]] = {}
    for name, where in places.items():
        shards.setdefault(_beside(where, path), set()).add(checked_name(name, path))
    refuse_missing(path, [path.parent / shard for shard in shards])
    tensors = [each for shard in sorted(shards) for each in _shard(path, shard, shards[shard])]
    return tuple(tensors), _size_note(index, sum(each.bytes for each in tensors))


def _beside(where: object, path: Path) -> str:
    """The name of a file in the same folder; a path to another place is refused."""
    if not isinstance(where, str) or not where.isprintable() or not where.endswith(".safetensors"):
        raise refusal(path, f"{shown(where)} in the weight_map is no safetensors file")
    if "/" in where or "\\" in where or where.startswith("."):
        raise refusal(path, f"{shown(where)} in the weight_map is not in the same folder")
    return where


def _shard(index: Path, shard: str, named: set[str]) -> tuple[Stored, ...]:
    tensors = read_safetensors(index.parent / shard)
    held = {each.name for each in tensors}
    if held == named:
        return tensors
    absent = sorted(named - held)
    if absent:
        raise refusal(index, f"{shown(absent[0])} is not in {shard}, where the index has it")
    raise refusal(
        index, f"{shown(min(held - named))} in {shard} is not in the index", "the two are of different models"
    )


def _size_note(index: dict[str, object], held: int) -> tuple[str, ...]:
    metadata = index.get("metadata")
    said = metadata.get("total_size") if isinstance(metadata, dict) else None
    if not is_size(said) or said == held:
        return ()
    return (f"the index says {said:,} bytes in total; the headers say {held:,}",)


def refuse_missing(path: Path, wanted: list[Path]) -> None:
    """Refuse if files of a set are not there, naming the first of them."""
    if len(wanted) > MOST_FILES:
        hint = "no model is published in so many; check the index, or the name"
        raise refusal(path, f"a set of {len(wanted):,} files; at most {MOST_FILES:,} are read", hint)
    missing = sorted(each.name for each in wanted if not is_file(str(each)))
    if missing:
        more = f" and {len(missing) - MOST_NAMED:,} more" if len(missing) > MOST_NAMED else ""
        said = f"{len(missing):,} of {len(wanted):,} files are missing: {', '.join(missing[:MOST_NAMED])}{more}"
        raise refusal(path, said, "fetch them too: a part of a model is not counted as the whole")


def whole_set(path: Path) -> list[Path]:
    """All files of the set that a name such as model-00002-of-00003.gguf belongs to, in order; else the file itself."""
    found = COUNTED.fullmatch(path.name)
    if found is None:
        return [path]
    count, number = int(found["count"]), int(found["number"])
    if not 1 <= number <= count:
        raise refusal(path, f"file {number:,} of {count:,}", "check the name")
    names = [f"{found['stem']}-{each:05d}-of-{found['count']}{found['suffix']}" for each in range(1, count + 1)]
    wanted = [path.parent / name for name in names]
    refuse_missing(path, wanted)
    return wanted
