"""The models that a command line names, and what every command says of them in the same way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from costcalc import __version__
from costcalc.errors import CostcalcError
from costcalc.inventory.asked import reads_last_logits
from costcalc.report import Report
from costcalc.units import parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture


def load_all(words: list[str], read_as: str | None = None) -> list[Architecture]:
    """The architecture of each MODEL; standard input can be read once only. read_as: the model type of all configs."""
    if words.count("-") > 1:
        raise CostcalcError("standard input (-) can be read once only", hint="give the other models as files")
    from costcalc.sources import load  # noqa: PLC0415 - pydantic, which a help page and a wrong option need not wait for

    return [load(word, read_as=read_as) for word in words]


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


def context_or_own(model: Architecture, context: str | None) -> int:
    """--context, or else the model's own."""
    return context_of(model, option="--context") if context is None else parse_length(context, name="--context")


def memory_for(models: list[Architecture], given: str | None) -> list[int]:
    """--memory-tokens for each model: 0 for those without cross-attention, unless nobody at all reads it."""
    tokens = None if given is None else parse_length(given, name="--memory-tokens")
    takes = [model.inventory.takes_memory for model in models]
    for model in models:
        if model.inventory.needs_memory and tokens is None:
            raise CostcalcError(
                f"{model.name} is an encoder-decoder, and its encoder's tokens are not given",
                hint="add --memory-tokens 512: the length of the text that its encoder reads",
            )
    if tokens is not None and not any(takes):
        names = " and ".join(column_names(models))
        raise CostcalcError(
            f"--memory-tokens is read by no cross-attention of {names}", hint="leave --memory-tokens out"
        )
    return [tokens or 0 if reads else 0 for reads in takes]


NO_NEXT_TOKEN = "an encoder has no next token: it sees a text at once, and keeps no cache"


def no_next_token(model: Architecture) -> str | None:
    """Why the numbers of a next token, and of what is kept for it, are null."""
    return None if model.inventory.has_cache else f"{model.name}: {NO_NEXT_TOKEN}"


def idle_cross(model: Architecture, memory_tokens: int) -> str | None:
    """A decoder whose cross-attention is handed nothing: it may run so, and costs less than people may think."""
    if memory_tokens or not model.inventory.takes_memory:
        return None
    return f"{model.name}: without --memory-tokens its cross-attention does nothing"


def family_note(model: Architecture, memory_tokens: int) -> str | None:
    """What only some families have to be told."""
    return no_next_token(model) or idle_cross(model, memory_tokens)


def not_counted(model: Architecture) -> str | None:
    """Parts that the source describes and no number here holds, and those that stand beside every total."""
    names, beside = model.inventory.not_counted, model.multi_token
    said = [f"{model.name}: not counted, beside the text model: {', '.join(names)}"] if names else []
    if beside is not None:
        tables = " with tables of their own" if beside.own_tables else ""
        modules = several(beside.repeat, "module")
        said.append(f"{model.name}: extra, and in no other number: {modules} that predict further tokens{tables}")
    return "; ".join(said) or None


def check_pass(model: Architecture, *, past_tokens: int, logits: str, latent: str | None = None) -> None:
    """Options that nothing in this model reads are refused, in the words of the command line."""
    inventory = model.inventory
    if past_tokens and not inventory.has_cache:
        raise CostcalcError(f"{model.name} is an encoder, which has no past", hint="leave --past-tokens out")
    if logits == "last" and not reads_last_logits(inventory):
        why = "has no head" if inventory.has_cache else "is an encoder, which has no last token"
        raise CostcalcError(f"{model.name} {why}, so that --logits last does nothing", hint="leave --logits out")
    if latent is not None and not any(matmul.is_of_latent for matmul in inventory.matmuls):
        raise CostcalcError(f"{model.name} has no latent attention, which --latent is for", hint="leave --latent out")


def beyond_table(model: Architecture, tokens: int, memory_tokens: int = 0) -> str | None:
    """A note where a text is longer than the learned position table: the real model cannot run it."""
    asked = {model.main: tokens}
    if len(model.stacks) > 1:
        asked["encoder"] = memory_tokens
    said = []
    for stack, count in asked.items():
        longest = model.longest(stack)
        if longest is not None and count > longest:
            whose = f"{model.name}'s {stack if len(asked) > 1 else ''}".rstrip()
            said.append(f"{count:,} tokens are more than the {longest:,} rows of {whose} position table")
    return "; ".join(said) or None


def with_note(data: dict[str, Any], *notes: str | None) -> dict[str, Any]:
    """The JSON object, with a `note` where there is something to say."""
    said = [note for note in notes if note]
    return {**data, "note": "; ".join(said)} if said else data


def explain_numbers(names: list[str], figures: list[Any], data: list[dict[str, Any]]) -> Report:
    """`--explain`: the working of every number of each model's report that is not 0, by its key in the JSON.

    A number that its working does not give would be our bug, and is never printed.
    """
    from costcalc.cli.working import explained, stated  # noqa: PLC0415 - a report without --explain needs none of it

    asked: dict[str, list[Any]] = {}
    for name, known, numbers in zip(names, figures, data, strict=True):
        wanted = {key: value for key, value in _flat(numbers).items() if key in known and value}
        for key, value in wanted.items():
            if stated(known[key]) != value:
                raise AssertionError(f"{key} is {value:,}, but its working gives {stated(known[key]):,}")
        asked[name] = list({known[key].name: known[key] for key in wanted}.values())
    # A model of which nothing can be explained says what its own report says of that.
    why = [None if asked[name] else each.get("note") for name, each in zip(names, data, strict=True)]
    report = explained(asked)
    objects = [with_note(each, note) for each, note in zip(_listed(report.data), why, strict=True)]
    return replace(report, notes=(*report.notes, *filter(None, why)), data=one_or_many(objects))


def _listed(data: Any) -> list[dict[str, Any]]:
    return data if isinstance(data, list) else [data]


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers inside of objects by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return flat
