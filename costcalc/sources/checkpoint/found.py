"""Which files a word or a folder means: an index, one file, or a set that counts itself."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from costcalc.sources.checkpoint.opened import refusal
from costcalc.sources.checkpoint.shards import COUNTED
from costcalc.sources.files import is_file, is_folder

INDEX = ".safetensors.index.json"
SUFFIXES = (".safetensors", INDEX, ".gguf")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".bin.index.json")
USUAL = "model.safetensors"
NO_PICKLES = "pickles are programs, which costcalc does not run; save the model as safetensors"
MOST_ENTRIES = 200_000


def is_checkpoint(word: str) -> bool:
    """Whether a MODEL is a file of weights by its name, or a folder that has such files and no config.json."""
    if word.endswith((*SUFFIXES, *PICKLES)):
        return True
    return is_folder(word) and not is_file(f"{word}/config.json") and bool(_weights(Path(word)))


def refuse_weights(word: str) -> None:
    """Refuse a checkpoint where an architecture is needed, with what to give in its place."""
    if not is_checkpoint(word):
        return
    path = Path(word)
    beside = (path if is_folder(word) else path.parent) / "config.json"
    if is_file(str(beside)):
        raise refusal(path, "a checkpoint, which says what is stored and not how it is used", f"give {beside}")
    hint = f"costcalc params {word} says what it holds; else give a config.json, or describe the model in YAML"
    raise refusal(path, "a checkpoint without a config.json, which would say how its weights are used", hint)


def has_checkpoint_and_config(word: str) -> bool:
    """Whether a MODEL is a folder of weights and a config.json, or a file of weights in one; pickles are none."""
    folder = Path(word) if is_folder(word) else Path(word).parent
    if not is_file(str(folder / "config.json")):
        return False
    return word.endswith(SUFFIXES) or (is_folder(word) and any(name.endswith(SUFFIXES) for name in _weights(folder)))


def weights_in(folder: Path) -> Path:
    """The one file of a folder to begin with: an index, model.safetensors, or the only set of files that is there."""
    names = _weights(folder)
    indices = [name for name in names if name.endswith(INDEX)]
    for several in (indices, [USUAL] if USUAL in names else [], _sets(names, ".safetensors"), _sets(names, ".gguf")):
        if len(several) == 1:
            return folder / several[0]
        if several:
            said = f"{len(several):,} checkpoints: {', '.join(several[:3])}{', ...' if len(several) > 3 else ''}"
            raise refusal(folder, said, f"give one of them, such as {folder / several[0]}")
    if names:
        raise refusal(folder, f"{names[0]} is a pickle", NO_PICKLES)
    raise refusal(folder, "no safetensors and no GGUF file in this folder", "give the folder that holds the weights")


def refuse_pickle(path: Path) -> None:
    """Refuse a file that can only be read by running it."""
    if path.name.endswith(PICKLES):
        raise refusal(path, "a pickle, not safetensors or GGUF", NO_PICKLES)


def _weights(folder: Path) -> list[str]:
    """Names of files of weights in a folder, in order."""
    try:
        with os.scandir(folder) as entries:
            listed = list(islice(entries, MOST_ENTRIES))
        found = [each.name for each in listed if each.name.endswith((*SUFFIXES, *PICKLES)) and not each.is_dir()]
    except OSError as error:
        raise refusal(folder, f"cannot be read: {error.strerror}", "check the path and its permissions") from None
    if len(listed) == MOST_ENTRIES:
        raise refusal(folder, f"{MOST_ENTRIES:,} files or more in this folder", "give the file itself")
    return sorted(found)


def _sets(names: list[str], suffix: str) -> list[str]:
    """The first file of each set, and every file that is of none."""
    first: dict[str, str] = {}
    for name in names:
        if name.endswith(suffix):
            counted = COUNTED.fullmatch(name)
            first.setdefault(f"{counted['stem']}-of-{counted['count']}" if counted else name, name)
    return list(first.values())
