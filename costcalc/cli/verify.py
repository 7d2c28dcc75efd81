"""`costcalc verify`: a forward pass in NumPy against what the architecture states."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from costcalc.cli.emit import checked, emit
from costcalc.cli.headers import checked_headers, headers_report, with_checkpoints
from costcalc.cli.models import column_names, header, load_all, one_or_many
from costcalc.cli.options import Debug, Format, Json, Models, Output, ReadAs, Version
from costcalc.cli.tell import tell
from costcalc.report import Cell, Measure, Quantity, Report, Row, Table
from costcalc.units import human, ranges, several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture
    from costcalc.verification import Fault, Phase, Property, Verification

MOST_FAULTS = 40
"""Lines of differing paths in a table; JSON lists all."""
SECONDS_BETWEEN = 0.1
BESIDE = ("buffers", "extra parameters")
"""What many models have none of, and then no row for."""
UNITS = {"cached elements": "elements", **dict.fromkeys(BESIDE, "parameters")}


def run(
    models: Models,
    read_as: ReadAs = None,
    form: Format = None,
    as_json: Json = False,
    output: Output = None,
    version: Version = False,
    debug: Debug = False,
) -> int:
    """Run each layer in full width in NumPy and compare, path by path, with what is counted. Exit 1 if they differ.

    Parameters, matmuls and caches of a prefill and a decode step, or of an encoder's one pass; and properties that must
    hold, as measured. Of a folder with a config.json and a checkpoint: what the config states against the checkpoint's
    headers, tensor by tensor; nothing is run.
    """
    del version, debug
    checked(form, as_json, output)
    if with_checkpoints(models):
        return _against_headers(models, read_as, form, as_json, output)
    results = _verified(load_all(models, read_as))
    report = Report(
        title="; ".join(_answer(model, result) for model, result in results),
        tables=tuple(
            table
            for name, (_, result) in zip(column_names([model for model, _ in results]), results, strict=True)
            for table in _tables(f"{name}: " if len(results) > 1 else "", result)
        ),
        notes=tuple(note for model, result in results for note in _notes(model, result)),
        data=one_or_many([_data(model, result) for model, result in results]),
    )
    emit(report, form=form, as_json=as_json, output=output)
    return _ended(report, output, agrees=all(result.agrees for _, result in results))


def _against_headers(words: list[str], read_as: str | None, form: str | None, as_json: bool, output: str | None) -> int:
    """What config.json files state against the checkpoints beside them."""
    results = [checked_headers(word, read_as) for word in words]
    report = headers_report(results)
    emit(report, form=form, as_json=as_json, output=output)
    return _ended(report, output, agrees=all(result.check.agrees for result in results))


def _ended(report: Report, output: str | None, *, agrees: bool) -> int:
    if not agrees and output not in (None, "-"):
        tell(report.title)  # not only in a file
    return 0 if agrees else 1


def _verified(models: list[Architecture]) -> list[tuple[Architecture, Verification]]:
    from costcalc.verification import refuse_too_large, verify  # noqa: PLC0415 - NumPy only where it runs

    for model in models:
        refuse_too_large(model)
    results = []
    for model in models:
        progress = Progress(model.name)
        try:
            results.append((model, verify(model, on_progress=progress)))
        finally:
            progress.end()
    return results


class Progress:
    """One line on standard error that says which layer is running, where that is a terminal; gone at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.width = 0
        self.last = 0.0
        self.shown = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, label: str, done: int, layers: int) -> None:
        """After each layer."""
        now = time.monotonic()
        if self.shown and now - self.last >= SECONDS_BETWEEN:
            self.last = now
            self._write(f"{self.name}: {label}, layer {done:,} of {layers:,}")

    def end(self) -> None:
        """Take the line away."""
        if self.width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, line: str) -> None:
        line = line[: _columns() - 1].encode("ascii", "replace").decode()
        sys.stderr.write(f"\r{line.ljust(self.width)}")
        sys.stderr.flush()
        self.width = len(line)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _answer(model: Architecture, result: Verification) -> str:
    if result.agrees:
        paths = max(sum(item.paths for item in phase.compared) for phase in result.phases)
        where = "prefill and decode" if len(result.phases) > 1 else "one pass"
        return f"{model.name}: verified, {several(paths, 'path')} agree in {where}"
    missed = [item for item in result.properties if not item.holds]
    counts = ((len(result.faults), "difference"), (len(missed), "broken law"))
    return f"{model.name}: NOT verified, {' and '.join(several(*count) for count in counts if count[0])}"


def _tables(prefix: str, result: Verification) -> list[Table]:
    rows = [
        Row(
            f"{phase.name}: {item.kind}",
            (Quantity(item.paths, "paths"), _quantity(item.stated, item.kind), _quantity(item.recorded, item.kind)),
        )
        for phase in result.phases
        for item in phase.compared
        if item.paths or item.kind not in BESIDE
    ]
    tables = [Table(f"{prefix}compared", ("paths", "stated", "recorded"), tuple(rows), status="exact")]
    if result.faults:
        tables.append(_faults_table(f"{prefix}differs", result.faults))
    return [*tables, _properties_table(f"{prefix}measured", result.properties)]


def _quantity(value: int, kind: str) -> Cell:
    return Quantity(value, UNITS.get(kind, kind))


def _faults_table(title: str, faults: tuple[Fault, ...]) -> Table:
    rows = [
        Row(
            fault.path,
            (
                _layers(fault),
                "both" if len(fault.phases) > 1 else fault.phases[0],
                fault.kind,
                _said(fault.stated),
                _said(fault.recorded),
            ),
        )
        for fault in faults[:MOST_FAULTS]
    ]
    if len(faults) > MOST_FAULTS:
        rows.append(Row(f"and {len(faults) - MOST_FAULTS:,} more", ("",) * 5))
    return Table(title, ("layers", "in", "kind", "stated", "recorded"), tuple(rows), status="exact")


def _layers(fault: Fault) -> str:
    return ranges(list(fault.layers))


def _said(amount: int | str | None) -> Cell:
    if amount is None:
        return "nothing"
    return Quantity(amount, "") if isinstance(amount, int) else amount


def _properties_table(title: str, properties: tuple[Property, ...]) -> Table:
    rows = [
        Row(
            item.name, (Measure(item.measured), "exactly 0" if item.bound == 0 else f"{item.bound:.0e}", _verdict(item))
        )
        for item in properties
    ]
    return Table(title, ("by", "allowed", "verdict"), tuple(rows), status="measured")


def _verdict(item: Property) -> str:
    if item.measured is None:
        return f"NOT TOLD: {item.why}" if item.failed else item.why
    return f"{'fine' if item.holds else 'TOO MUCH'}{f', {item.why}' if item.why else ''}"


def _notes(model: Architecture, result: Verification) -> list[str]:
    given = result.phases[0].workload
    tokens = several(given.new_tokens, "token")
    if given.memory_tokens:
        whose = "of the encoder's" if model.encoder is not None else "that it looks at"
        tokens += f" and {given.memory_tokens} {whose}"
    notes = [
        f"{model.name}: {tokens}, every layer in full width, float32; "
        f"all parameters share one random arena of {human(result.arena_bytes, 'bytes')}"
    ]
    if len(result.phases) == 1:
        notes.append(f"{model.name}: an encoder sees all of its tokens at once, so that there is no decode phase")
    if result.replaced:
        made = ", ".join(f"{window:,} was made {binds}" for window, binds in result.replaced.items())
        notes.append(f"{model.name}: so that windows and chunks bind, {made}")
    return notes


def _data(model: Architecture, result: Verification) -> dict[str, Any]:
    return {
        **header("verify", model),
        "verified": result.agrees,
        "phases": [_phase(phase) for phase in result.phases],
        "faults": [
            {**asdict(fault), "phases": list(fault.phases), "layers": list(fault.layers)} for fault in result.faults
        ],
        "properties": [
            {
                "property": item.name.replace(" ", "_").lower(),
                "measured": item.measured,
                "bound": item.bound,
                "within_bound": None if item.measured is None and item.holds else item.holds,
                **({"note": item.why} if item.why else {}),
            }
            for item in result.properties
        ],
        "replaced_windows": [{"window": window, "made": made} for window, made in result.replaced.items()],
        "arena_bytes": result.arena_bytes,
    }


def _phase(phase: Phase) -> dict[str, Any]:
    parameters, flops, cached, buffers, extra = phase.compared
    return {
        "phase": phase.name,
        "workload": asdict(phase.workload),
        "parameter_paths": parameters.paths,
        "stated_parameters": parameters.stated,
        "recorded_parameters": parameters.recorded,
        "matmul_paths": flops.paths,
        "stated_flops": flops.stated,
        "recorded_flops": flops.recorded,
        "cache_paths": cached.paths,
        "stated_cache_elements": cached.stated,
        "recorded_cache_elements": cached.recorded,
        "buffer_paths": buffers.paths,
        "stated_buffers": buffers.stated,
        "recorded_buffers": buffers.recorded,
        "extra_paths": extra.paths,
        "stated_extra_parameters": extra.stated,
        "recorded_extra_parameters": extra.recorded,
    }
