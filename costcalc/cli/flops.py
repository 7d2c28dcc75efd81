"""`costcalc flops`: the operations of one forward pass, and of one training step."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from costcalc.architecture import Architecture
from costcalc.calculators.components import sum_by_component
from costcalc.calculators.conventions import six_nd_total
from costcalc.calculators.flops import Flops, flops, flops_by_matmul
from costcalc.calculators.parameters import parameters
from costcalc.cli.emit import emit
from costcalc.cli.models import beyond_table, column_names, context_of, header, load_all, one_or_many, with_note
from costcalc.cli.options import (
    Batch,
    Counting,
    Debug,
    Format,
    Json,
    Logits,
    Models,
    Output,
    PastTokens,
    SeqLen,
    Version,
)
from costcalc.inventory import Workload
from costcalc.report import Cell, Quantity, Ratio, Report, side_by_side, with_shares
from costcalc.units import human, parse_length, several

NO_TRAINING = "train_flops is null: a training pass has no past tokens and computes all logits"


def run(
    models: Models,
    seq_len: SeqLen = None,
    batch: Batch = "1",
    past_tokens: PastTokens = "0",
    counting: Counting = "attended",
    logits: Logits = "all",
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> None:
    """Forward FLOPs of a prefill, a decode step (--seq-len 1 --past-tokens N) or a batch, and training FLOPs.

    Exact: every matrix product, a multiply-add is two; nothing else is counted.
    """
    del version, debug
    loaded = load_all(models)
    workloads = [
        Workload(
            batch=parse_length(batch, name="--batch"),
            new_tokens=_new_tokens(model, seq_len),
            past_tokens=parse_length(past_tokens, name="--past-tokens", least=0),
            counting=counting,
            logits=logits,
        )
        for model in loaded
    ]
    counted = [flops(model.inventory, workload) for model, workload in zip(loaded, workloads, strict=True)]
    rows = list(zip(loaded, workloads, counted, strict=True))
    names = column_names(loaded)
    tables = [side_by_side("FLOPs", names, [_sheet(*row) for row in rows], strong="forward")]
    if len(loaded) == 1:
        amounts = [(matmul.path, count) for matmul, count in flops_by_matmul(loaded[0].inventory, workloads[0])]
        tables.append(with_shares("by component", names[0], sum_by_component(amounts, loaded[0].inventory), "FLOPs"))
    report = Report(
        title="; ".join(_answer(name, *row[1:]) for name, row in zip(names, rows, strict=True)),
        tables=tuple(tables),
        notes=_notes(rows),
        data=one_or_many([_data(*row) for row in rows]),
    )
    emit(report, form=form, as_json=as_json, output=output)


def _answer(name: str, workload: Workload, counted: Flops) -> str:
    batch = f"{workload.batch:,} x " if workload.batch > 1 else ""
    return f"{name}: {human(counted.forward, 'FLOPs')} forward for {batch}{several(workload.new_tokens, 'token')}"


def _new_tokens(model: Architecture, seq_len: str | None) -> int:
    return context_of(model, option="--seq-len") if seq_len is None else parse_length(seq_len, name="--seq-len")


def _sheet(model: Architecture, workload: Workload, counted: Flops) -> dict[str, Cell]:
    sheet: dict[str, Cell] = {
        "new tokens": Quantity(workload.new_tokens, "tokens"),
        "forward": Quantity(counted.forward, "FLOPs"),
        "weights": Quantity(counted.weights, "FLOPs"),
        "attention core": Quantity(counted.attention, "FLOPs"),
        "attention core share": Ratio(counted.attention, counted.forward, "percent"),
        "per new token": Quantity(counted.per_token, "FLOPs"),
    }
    if counted.modelled:
        sheet["modelled"] = Quantity(counted.modelled, "FLOPs")
    if counted.train is not None:
        rule = six_nd_total(parameters(model.inventory), workload.tokens)
        sheet["train (3 x forward)"] = Quantity(counted.train, "FLOPs")
        sheet["6·N·D, all parameters"] = Quantity(rule, "FLOPs")
        sheet["train / 6·N·D"] = Ratio(counted.train, rule)
    return sheet


def _notes(rows: list[tuple[Architecture, Workload, Flops]]) -> tuple[str, ...]:
    workload = rows[0][1]
    pairs = "the pairs that mask and window allow" if workload.counting == "attended" else "every query with every key"
    logits = "every token" if workload.logits == "all" else "the last token"
    notes = [
        f"batch {workload.batch:,}, {workload.past_tokens:,} past tokens, logits of {logits}; "
        f"attention counts {pairs}; exact"
    ]
    notes += [note for model, w, _ in rows for note in [beyond_table(model, w.past_tokens + w.new_tokens)] if note]
    return tuple(notes)


def _data(model: Architecture, workload: Workload, counted: Flops) -> dict[str, Any]:
    data = {
        **header("flops", model),
        "workload": asdict(workload),
        "forward_flops": counted.forward,
        "weight_flops": counted.weights,
        "attention_flops": counted.attention,
        "modelled_flops": counted.modelled,
        "train_flops": counted.train,
    }
    no_training = NO_TRAINING if counted.train is None else None
    return with_note(data, no_training, beyond_table(model, workload.past_tokens + workload.new_tokens))
