"""`load()`: an architecture from a preset's name, a YAML file, a config.json, a mapping or standard input."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from costcalc.architecture import Architecture
from costcalc.errors import CostcalcError, nearest, shown
from costcalc.sources.files import config_inside, is_file, is_folder, read_text
from costcalc.sources.json_text import read_json
from costcalc.sources.origin import Origin, Written
from costcalc.sources.presets import preset_aliases, preset_file, preset_names
from costcalc.sources.validation import validated

MAPPING = Origin("the mapping")
CONFIG_KEYS = {"model_type", "architectures", "hidden_size", "n_embd"}
"""Keys that only a config.json has."""

HUB = "hf:"
"""How a repository is written, before its name."""

FILES = (".json", ".yaml", ".yml")
"""How names of files end; what is behind another dot belongs to a name, such as qwen2.5-7b."""

WEIGHTS = (".safetensors", ".safetensors.index.json", ".gguf", ".bin", ".pt", ".pth", ".ckpt")
"""How names of checkpoints end, which say what is stored and not how it is used."""


def load(source: str | os.PathLike[str] | Mapping[str, Any], *, read_as: str | None = None) -> Architecture:
    """The architecture that `source` names or holds.

    source: a preset or alias ("8b"); a path, which has a "/" or a ".", of a file or of a folder with a config.json;
        "hf:" and the name of a repository; "-" for standard input; a `Path`; or a mapping in our YAML's form or a
        config.json's. read_as: the model type that a config.json is taken for, whatever it says.

    Raises `CostcalcError` with what is wrong, where, and what to type.
    """
    if isinstance(source, Mapping):
        return _from_data(dict(source), MAPPING, "model", read_as)
    found = _found(source)
    written = _read(found.text, found.label)
    return _from_data(written.data, written.origin, found.name, read_as)


class Found(NamedTuple):
    """The text that a MODEL means, what to call where it came from, and a name for what gives none itself."""

    text: str
    label: str
    name: str


def _found(source: str | os.PathLike[str]) -> Found:
    if not isinstance(source, str):
        return _in_file(os.fspath(source))
    if source == "-":
        return Found(read_text("-"), "standard input", "model")
    if source.startswith(HUB):
        return _on_hub(source.removeprefix(HUB))
    preset = preset_file(source)
    if preset is not None:
        return Found(preset.read_text(encoding="utf-8"), f"presets/models/{preset.name}", preset.stem)
    if is_path(source):
        return _in_file(source)
    raise _unknown_preset(source)


def _on_hub(word: str) -> Found:
    """The config.json of a repository; the library that fetches it is loaded only here."""
    hub = import_module("costcalc.sources.hub")
    repository, revision = hub.parsed(word)
    text = read_text(hub.config_file(repository, revision))
    return Found(text, f"{HUB}{word}/config.json", repository.rpartition("/")[2])


@cache
def _config_reader() -> Any:
    """The importers are loaded for a config.json only: presets and YAML never need them."""
    return import_module("costcalc.sources.huggingface").read_config


@cache
def _yaml_reader() -> Any:
    """PyYAML is loaded for a YAML file only: a help page and a config.json never need it."""
    return import_module("costcalc.sources.yaml_text").read_yaml


def is_path(word: str) -> bool:
    """Whether a MODEL that is no preset is meant as a path."""
    return "/" in word or "." in word or os.sep in word


def _unknown_preset(word: str) -> CostcalcError:
    close = nearest(word, [*preset_names(), *preset_aliases()], count=3)
    if word and (is_file(word) or is_folder(word)):
        hint = f"for the {'file' if is_file(word) else 'folder'} of that name write ./{word}"
    elif close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = "costcalc presets lists what is bundled; a file is written with a / or a ."
    return CostcalcError(f"no preset is called {shown(word)}", hint=hint)


def _in_file(path: str) -> Found:
    """A file, or the config.json of a folder."""
    inside = config_inside(path)
    path = path if inside is None else inside
    if path.endswith(WEIGHTS) or (not path.endswith(FILES) and is_folder(path)):
        import_module("costcalc.sources.checkpoint.found").refuse_weights(path)
    try:
        text = read_text(path)
    except CostcalcError as error:
        name = PurePath(path)
        close = nearest(name.stem if name.suffix in FILES else name.name, preset_names())
        if close and error.what == "no such file" and "/" not in path:
            error.hint = f"did you mean the preset {close[0]}?"
        raise
    return Found(text, path, _name_of(path))


def _name_of(path: str) -> str:
    """A name for a file that gives none: its own, or its folder's when it is called config."""
    stem = PurePath(path).stem
    if stem != "config":
        return stem
    try:
        return Path(path).absolute().parent.name or stem
    except OSError:  # the working directory is gone
        return PurePath(path).parent.name or stem


def _read(text: str, label: str) -> Written:
    if label.endswith(".json"):
        return read_json(text, label)
    if text.lstrip().startswith("{"):
        try:
            return read_json(text, label)
        except CostcalcError as error:
            if not error.what.startswith("not JSON"):
                raise  # else it may be YAML in braces
    written: Written = _yaml_reader()(text, label)
    return written


def _from_data(data: Any, origin: Origin, name: str, read_as: str | None) -> Architecture:
    if not isinstance(data, dict):
        what = f"a mapping of keys was expected, got {shown(data)}"
        raise origin.refusal(what, "costcalc schema describes what to write")
    if not CONFIG_KEYS.isdisjoint(data):
        name = name if read_as in (None, data.get("model_type")) else f"{name} (read as {read_as})"
        data = _config_reader()(data, origin, read_as=read_as)
        origin = Origin(origin.label)  # the keys of the full form are not those of the text
    elif read_as is not None:
        raise origin.refusal("--as is for a config.json, and this is none", "leave --as out")
    if "name" not in data:
        data["name"] = name[:300] if name.isprintable() and name.strip() else "model"
    return validated(data, origin)
