"""The models that a command line names, and what every command says of them in the same way."""

from __future__ import annotations

from typing import Any

from costcalc import __version__
from costcalc.architecture import Architecture
from costcalc.errors import CostcalcError
from costcalc.sources import load


def load_all(words: list[str]) -> list[Architecture]:
    """The architecture of each MODEL; standard input can be read once only."""
    if words.count("-") > 1:
        raise CostcalcError("standard input (-) can be read once only", hint="give the other models as files")
    return [load(word) for word in words]


def column_names(models: list[Architecture]) -> list[str]:
    """One name a model; equal names get a number, so that no column is taken for another."""
    names = [model.name for model in models]
    return [
        name if names.count(name) == 1 else f"{name} #{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]


def header(command: str, model: Architecture) -> dict[str, Any]:
    """The first keys of every JSON object."""
    return {"schema": f"costcalc.{command}/1", "costcalc_version": __version__, "model": model.name}


def one_or_many(objects: list[dict[str, Any]]) -> Any:
    """One MODEL gives an object, several give an array."""
    return objects[0] if len(objects) == 1 else objects


def context_of(model: Architecture, *, option: str) -> int:
    """The model's own context length, where a command was given none."""
    if model.context_length is None:
        raise CostcalcError(f"{model.name} has no context_length", hint=f"give {option}, such as {option} 8k")
    return model.context_length


def beyond_table(model: Architecture, tokens: int) -> str | None:
    """A note where a text is longer than the learned position table: the real model cannot run it."""
    if model.longest is None or tokens <= model.longest:
        return None
    return f"{tokens:,} tokens are more than the {model.longest:,} rows of {model.name}'s position table"


def with_note(data: dict[str, Any], *notes: str | None) -> dict[str, Any]:
    """The JSON object, with a `note` where there is something to say."""
    said = [note for note in notes if note]
    return {**data, "note": "; ".join(said)} if said else data
