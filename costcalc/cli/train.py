"""`costcalc train`: what a training run costs, by every convention, and why they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costcalc.calculators.conventions import Convention, convention_figures, conventions, split
from costcalc.calculators.figure import Figure
from costcalc.calculators.workings import Figures
from costcalc.cli.emit import emit
from costcalc.cli.flops import new_tokens
from costcalc.cli.models import (
    beyond_table,
    column_names,
    explain_numbers,
    header,
    idle_cross,
    load_all,
    memory_for,
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Debug,
    Explain,
    Format,
    Json,
    MemoryTokens,
    Models,
    Output,
    ReadAs,
    SeqLen,
    TrainTokens,
    Version,
)
from costcalc.errors import CostcalcError
from costcalc.expression import Number, symbol
from costcalc.inventory.workload import LARGEST
from costcalc.report import Cell, Formula, Quantity, Ratio, Report, Row, Table
from costcalc.units import human, parse_count, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

REST = "tokens_of_a_shorter_sequence"


@dataclass(frozen=True, slots=True)
class Training:
    """One model's training run, counted in every way; the first way is the exact one that others are compared with."""

    model: Architecture
    tokens: int
    seq_len: int
    memory_tokens: int
    ways: list[Convention]

    @property
    def exact(self) -> Convention:
        """What mask and windows let through."""
        return self.ways[0]

    @property
    def asked(self) -> tuple[list[Convention], int, int]:
        """What the working of every number goes by."""
        return self.ways, self.tokens, self.seq_len


def run(
    models: Models,
    tokens: TrainTokens,
    seq_len: SeqLen = None,
    memory_tokens: MemoryTokens = None,
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Training FLOPs by every convention, each with its ratio to the exact count.

    Exact: three times the forward pass with all logits. Recomputation, optimizer and communication are left out. Of an
    encoder-decoder --tokens and --seq-len are the decoder's; each sequence has --memory-tokens beside it.
    """
    del version, debug
    count = parse_count(tokens, name="--tokens")
    loaded = load_all(models, read_as)
    found = [
        _training(model, count, new_tokens(model, seq_len), memory)
        for model, memory in zip(loaded, memory_for(loaded, memory_tokens), strict=True)
    ]
    names = column_names([each.model for each in found])
    if explain:
        report = explain_numbers(
            names, [train_figures(*each.asked) for each in found], [_numbers(each) for each in found]
        )
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)


def _training(model: Architecture, tokens: int, seq_len: int, memory_tokens: int) -> Training:
    return Training(model, tokens, seq_len, memory_tokens, training_ways(model, tokens, seq_len, memory_tokens))


def training_ways(model: Architecture, tokens: int, seq_len: int, memory_tokens: int) -> list[Convention]:
    """Every convention; more sequences than a workload can hold are refused."""
    if tokens // seq_len > LARGEST:
        raise CostcalcError(f"--tokens {tokens:,} are more than {LARGEST:,} sequences", hint="--seq-len 8k")
    return conventions(model.inventory, tokens, seq_len, memory_tokens=memory_tokens)


def train_figures(ways: list[Convention], tokens: int, seq_len: int) -> Figures:
    """The working of every number: those of a convention by its name, and `.` and its key in the JSON."""
    by_name = convention_figures(ways)
    exact = by_name[ways[0].name]
    given: dict[str, Figure | Number] = {"t": tokens, "S": seq_len}
    return {
        "sequences": Figure("sequences", "", symbol("t") // symbol("S"), given),
        REST: Figure(REST, "tokens", symbol("t") % symbol("S"), given),
        "train_flops": exact.named("train_flops"),
        **by_name,
    }


def _numbers(each: Training) -> dict[str, Any]:
    """The JSON, each convention below its name in the place of a list."""
    data = _data(each)
    for way in data.pop("conventions"):
        data[way["name"]] = way["train_flops"]
        data.update({f"{way['name']}.{key}": way[key] for key in ("weight_flops", "attention_flops", "ratio_to_exact")})
    return data


def _report(names: list[str], found: list[Training]) -> Report:
    tables = [_table(f"{name}: " if len(found) > 1 else "", each) for name, each in zip(names, found, strict=True)]
    return Report(
        title="; ".join(_answer(name, each) for name, each in zip(names, found, strict=True)),
        tables=(*tables, _rules(found)),
        notes=tuple(dict.fromkeys(note for each in found for note in _notes(each))),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(name: str, each: Training) -> str:
    total = _total(each.exact)
    return f"{name}: {total:.4g} FLOPs ({human(total, 'FLOPs')}) to train on {each.tokens:,} tokens"


def _total(way: Convention) -> int:
    return way.total.value if way.total is not None else 0


def _table(before: str, each: Training) -> Table:
    rows = [Row(way.name, _cells(way, each.exact), way is each.exact, _status(way)) for way in each.ways]
    columns = ("FLOPs", "ratio", "weights' part", "core's part")
    return Table(f"{before}training", columns, tuple(rows), status="exact")


def _rules(found: list[Training]) -> Table:
    """The conventions themselves, which are the same for every model that has the letters."""
    formulas = {way.name: way.total.formula for each in reversed(found) for way in each.ways if way.total is not None}
    rows = [Row(way.name, (Formula(formulas.get(way.name, "-")), way.why)) for way in found[0].ways]
    return Table("convention", ("formula", "why it differs"), tuple(rows))


def _status(way: Convention) -> str:
    return "estimate" if way.total is None else way.total.nature


def _cells(way: Convention, exact: Convention) -> tuple[Cell, ...]:
    """The total, and three ratios to the exact count: of all, of the weights' part, of the attention core's."""
    if way.total is None or way.weight_flops is None or way.core_flops is None:
        return (Quantity(None, "FLOPs"), None, None, None)
    return (
        Quantity(way.total.value, "FLOPs"),
        Ratio(way.total.value, _total(exact)),
        Ratio(way.weight_flops, exact.weight_flops or 0),
        Ratio(way.core_flops, exact.core_flops) if exact.core_flops else None,
    )


def _notes(each: Training) -> list[str]:
    whole, rest = split(each.tokens, each.seq_len)
    shorter = f" and one of {several(rest, 'token')}" if rest else ""
    notes = [
        f"{each.model.name}: {several(whole, 'sequence')} of {several(each.seq_len, 'token')}{shorter}; exact counts "
        "are three times the forward pass with all logits; ratios are to exact_attended",
        *[f"{each.model.name}: {way.name} does not apply: {way.missing}" for way in each.ways if way.missing],
    ]
    if each.memory_tokens:
        notes.append(
            f"{each.model.name}: tokens are the decoder's, {several(each.memory_tokens, 'encoder token')} beside each "
            "sequence; conventions with t count the decoder's alone"
        )
    more = [idle_cross(each.model, each.memory_tokens), *_of_family(each.model), _beyond(each)]
    return [*notes, *[note for note in more if note]]


def _of_family(model: Architecture) -> list[str]:
    """Why conventions differ here that were made for decoders with layers of their own."""
    notes = []
    if not model.inventory.has_cache:
        notes.append(f"{model.name}: an encoder's core is the whole rectangle, of which some conventions charge half")
    if any(group.block.share_weights for group in model.groups):
        notes.append(f"{model.name}: weights that layers share are in P once, and multiply in each of those layers")
    return notes


def _beyond(each: Training) -> str | None:
    return beyond_table(each.model, min(each.seq_len, each.tokens), each.memory_tokens)


def _data(each: Training) -> dict[str, Any]:
    whole, rest = split(each.tokens, each.seq_len)
    data = {
        **header("train", each.model),
        "tokens": each.tokens,
        "seq_len": each.seq_len,
        "memory_tokens": each.memory_tokens,
        "sequences": whole,
        REST: rest,
        "train_flops": _total(each.exact),
        "conventions": [_convention(way, each.exact) for way in each.ways],
    }
    return with_note(data, idle_cross(each.model, each.memory_tokens), _beyond(each))


def _convention(way: Convention, exact: Convention) -> dict[str, Any]:
    formula = way.total.formula if way.total is not None else None
    data = {
        "name": way.name,
        "status": _status(way),
        "train_flops": None if way.total is None else way.total.value,
        "weight_flops": way.weight_flops,
        "attention_flops": way.core_flops,
        "ratio_to_exact": None if way.total is None else round(way.total.value / _total(exact), 6),
        "formula": formula if formula is None or isinstance(formula, str) else formula.text(),
        "source": None if way.total is None else way.total.source,
        "why": way.why,
    }
    return with_note(data, way.missing)
