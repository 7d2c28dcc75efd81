"""Every recorded row of Gemma-3n and Gemma-4 against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "gemma_layers.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
SHAPES = [name for name in MEASURED if name.startswith("shape/")]
HELD = {"params", "buffers"}
COUNTED = {"flops16", "flops48", "decode48", "flops11_batch3", "flops5_past13", "cache16", "cache48"}


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    if "text_config" in config:
        return {**config, "text_config": _with_defaults(config["text_config"])}
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    defaults.pop("_provenance")
    return {**defaults, **config}


FORMS: dict[str, Callable[[Config], Config]] = {"as recorded": dict, "defaults merged in": _with_defaults}


def _held(arch: Architecture, context: int, spare: int) -> int:
    """Keys and values of every layer that has its own: of a window's latest tokens, less `spare`, or of all."""
    total = 0
    for group in arch.groups:
        attention = group.block.attention
        assert isinstance(attention, GroupedQuery)
        if attention.cache_of is None:
            kv_heads, head_dim = attention.sizes(arch.d_model)
            tokens = context if attention.window is None else min(context, attention.window - spare)
            total += 2 * kv_heads * head_dim * tokens * group.times
    return total


def _measured(arch: Architecture) -> Row:
    """The numbers of a row, as the library would have them."""

    def rectangle(**workload: int) -> int:
        counted = flops(arch, Workload(counting="rectangle", **workload))  # type: ignore[arg-type]
        assert counted.forward == counted.weights + counted.attention
        return counted.forward

    def library(context: int) -> int:
        # Its caches keep one token less than a window: that confirms the count, which then holds for ours.
        assert kv_cache(arch, context).elements == _held(arch, context, spare=0)
        return _held(arch, context, spare=1)

    count = parameters(arch)
    return {
        "params": count.total,
        "buffers": count.buffers,
        "flops16": rectangle(new_tokens=16),
        "flops48": rectangle(new_tokens=48),
        "decode48": rectangle(new_tokens=1, past_tokens=47),
        "flops11_batch3": rectangle(new_tokens=11, batch=3),
        "flops5_past13": rectangle(new_tokens=5, past_tokens=13),
        "cache16": library(16),
        "cache48": library(48),
    }


def test_the_recording_is_whole() -> None:
    counts: dict[str, int] = {}
    for name in MEASURED:
        counts[name.partition("/")[0]] = counts.get(name.partition("/")[0], 0) + 1
    assert counts == {"gemma3n_text": 46, "gemma4_text": 54, "gemma4_unified_text": 45, "gemma4": 1, "shape": 8}
    assert len(BROKEN) == 27
    assert sum(row.get("cache48", 0) < 3 * row.get("cache16", 0) for row in MEASURED.values()) >= 90


@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name: str) -> None:
    row = MEASURED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    assert set(wanted) == (HELD if name in SHAPES else HELD | COUNTED)
    for form, made in FORMS.items():
        got = _measured(load(made(row["config"])))
        assert {key: got[key] for key in wanted} == wanted, form


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(name: str, form: str) -> None:
    with pytest.raises(CostcalcError) as caught:
        load(FORMS[form](BROKEN[name]["config"]))
    assert caught.value.hint


def test_importers_write_the_full_form() -> None:
    """They promise that nothing is left to spell out, so spelling it out must change nothing."""
    for name, row in MEASURED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


@pytest.mark.parametrize("name", [name for name in MEASURED if "/small" in name or "/random" in name])
def test_what_is_stated_is_what_a_pass_does(name: str) -> None:
    checked = verify(load(MEASURED[name]["config"]))
    assert checked.agrees, (checked.faults, checked.properties)
