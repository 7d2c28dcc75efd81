"""`costcalc flops`: the operations of one forward pass, and of one training step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from costcalc.calculators.components import sum_by_component
from costcalc.calculators.conventions import six_nd
from costcalc.calculators.flops import Flops, flops, flops_by_matmul
from costcalc.calculators.parameters import parameters
from costcalc.cli.emit import emit
from costcalc.cli.models import (
    beyond_table,
    check_pass,
    column_names,
    context_of,
    explain_numbers,
    header,
    idle_cross,
    load_all,
    memory_for,
    one_or_many,
    with_note,
)
from costcalc.cli.options import (
    Batch,
    Counting,
    Debug,
    Explain,
    Format,
    Json,
    Latent,
    Logits,
    MemoryTokens,
    Models,
    Output,
    PastTokens,
    ReadAs,
    SeqLen,
    Version,
)
from costcalc.cli.recurrent import modelled, scan_row, scans_note
from costcalc.inventory import Workload
from costcalc.report import Cell, Quantity, Ratio, Report, side_by_side, with_shares
from costcalc.units import human, parse_length, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture

NO_TRAINING = "train_flops is null: a training pass has no past tokens and computes all logits"
RULES = ("6·N·D, all parameters", "6·N·D, active parameters", "train / 6·N·D")
WITH_SCANS = ("forward", "attention core share", "per new token", "train (3 x forward)")


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of one model, counted."""

    model: Architecture
    workload: Workload
    counted: Flops

    def figures(self) -> Any:
        """The working of every number."""
        from costcalc.calculators.workings import flop_figures  # noqa: PLC0415 - only --explain needs it

        return flop_figures(self.model.inventory, self.workload)


def run(
    models: Models,
    seq_len: SeqLen = None,
    memory_tokens: MemoryTokens = None,
    batch: Batch = "1",
    past_tokens: PastTokens = "0",
    counting: Counting = "attended",
    logits: Logits = "all",
    latent: Latent = None,
    explain: Explain = False,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Forward FLOPs of a prefill, a decode step (--seq-len 1 --past-tokens N) or a batch, and training FLOPs.

    Exact: every matrix product, a multiply-add is two; nothing else is counted, but scans of recurrent layers, which
    are modelled and on a row of their own. An encoder-decoder's encoder runs over its --memory-tokens in the pass that
    starts the request, the one without past tokens.
    """
    del version, debug
    sequences, past = parse_length(batch, name="--batch"), parse_length(past_tokens, name="--past-tokens", least=0)
    found, loaded = [], load_all(models, read_as)
    for model, memory in zip(loaded, memory_for(loaded, memory_tokens), strict=True):
        lengths = (sequences, new_tokens(model, seq_len), past, memory)
        workload = Workload(*lengths, counting=counting, logits=logits, latent=latent)
        check_pass(model, past_tokens=past, logits=logits, latent=latent)
        found.append(Pass(model, workload, flops(model.inventory, workload)))
    names = column_names([each.model for each in found])
    if explain:
        report = explain_numbers(names, [each.figures() for each in found], [_data(each) for each in found])
    else:
        report = _report(names, found)
    emit(report, form=form, as_json=as_json, output=output)


def new_tokens(model: Architecture, seq_len: str | None) -> int:
    """--seq-len, or else the model's own context."""
    return context_of(model, option="--seq-len") if seq_len is None else parse_length(seq_len, name="--seq-len")


def _report(names: list[str], found: list[Pass]) -> Report:
    sheets = [_sheet(each) for each in found]
    statuses = {**dict.fromkeys(RULES, "estimate"), **modelled(WITH_SCANS, *(each.counted for each in found))}
    tables = [side_by_side("FLOPs", names, sheets, strong="forward", others=statuses)]
    if len(found) == 1:
        inventory = found[0].model.inventory
        counted = flops_by_matmul(inventory, found[0].workload)
        amounts = sum_by_component([(matmul.path, count) for matmul, count in counted], inventory)
        scans = sum_by_component(
            [(matmul.path, count) for matmul, count in counted if matmul.role == "scan"], inventory
        )
        others = dict.fromkeys(scans, "modelled")
        tables.append(with_shares("by component", names[0], amounts, "FLOPs", others=others))
    return Report(
        title="; ".join(_answer(name, each) for name, each in zip(names, found, strict=True)),
        tables=tuple(tables),
        notes=_notes(found),
        data=one_or_many([_data(each) for each in found]),
    )


def _answer(name: str, each: Pass) -> str:
    workload, counted = each.workload, each.counted
    batch = f"{workload.batch:,} x " if workload.batch > 1 else ""
    beside = f" and {several(workload.memory_tokens, 'encoder token')}" if workload.memory_tokens else ""
    tokens = several(workload.new_tokens, "token")
    return f"{name}: {human(counted.forward, 'FLOPs')} forward for {batch}{tokens}{beside}"


def _sheet(each: Pass) -> dict[str, Cell]:
    workload, counted = each.workload, each.counted
    sheet: dict[str, Cell] = {
        "new tokens": Quantity(workload.new_tokens, "tokens"),
        **({"encoder tokens": Quantity(workload.memory_tokens, "tokens")} if workload.memory_tokens else {}),
        "forward": Quantity(counted.forward, "FLOPs"),
        **scan_row(counted),
        "weights": Quantity(counted.weights, "FLOPs"),
        "attention core": Quantity(counted.attention, "FLOPs"),
        "attention core share": Ratio(counted.attention, counted.forward, "percent"),
        "per new token": Quantity(counted.per_token, "FLOPs"),
    }
    if counted.train is not None:
        held = parameters(each.model.inventory)
        rule = six_nd(held, workload.tokens)
        sheet["train (3 x forward)"] = Quantity(counted.train, "FLOPs")
        sheet[f"6·N·D, {'all' if held.active == held.total else 'active'} parameters"] = Quantity(rule, "FLOPs")
        sheet["train / 6·N·D"] = Ratio(counted.train, rule)
    return sheet


def _notes(found: list[Pass]) -> tuple[str, ...]:
    workload = found[0].workload
    pairs = "the pairs that mask and window allow" if workload.counting == "attended" else "every query with every key"
    logits = "every token" if workload.logits == "all" else "the last token"
    notes = [
        f"batch {workload.batch:,}, {workload.past_tokens:,} past tokens, logits of {logits}; attention counts {pairs}"
    ]
    said = (note for each in found for note in (_encoder(each), latent_form(each), _scans(each), _beyond(each)))
    notes += [note for note in said if note]
    return tuple(notes)


def latent_form(each: Pass) -> str | None:
    """Which of its two forms latent attention is computed in."""
    latent = [matmul for matmul in each.model.inventory.matmuls if matmul.is_of_latent]
    forms = {matmul.form for matmul in latent if matmul.runs(each.workload)}
    return f"{each.model.name}: latent attention in its {forms.pop()} form (--latent)" if forms else None


def _scans(each: Pass) -> str | None:
    return scans_note(each.model.name, each.model.inventory, each.workload)


def _encoder(each: Pass) -> str | None:
    """When the encoder of a pair runs, or that nothing is given to those that ask."""
    if not each.model.inventory.needs_memory:
        return idle_cross(each.model, each.workload.memory_tokens)
    runs = "does not run again" if each.workload.past_tokens else "runs once, and its pass is counted here"
    return f"{each.model.name}: new tokens are the decoder's; the encoder {runs}"


def _beyond(each: Pass) -> str | None:
    workload = each.workload
    return beyond_table(each.model, workload.past_tokens + workload.new_tokens, workload.memory_tokens)


def _data(each: Pass) -> dict[str, Any]:
    counted = each.counted
    data = {
        **header("flops", each.model),
        "workload": asdict(each.workload),
        "forward_flops": counted.forward,
        "weight_flops": counted.weights,
        "attention_flops": counted.attention,
        "modelled_flops": counted.modelled,
        "train_flops": counted.train,
    }
    no_training = NO_TRAINING if counted.train is None else None
    return with_note(data, no_training, idle_cross(each.model, each.workload.memory_tokens), _beyond(each))
