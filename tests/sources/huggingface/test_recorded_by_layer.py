"""Every recorded row of decoders by layer and in parallel against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "by_layer.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}

# What the library builds and we refuse on purpose: the row, and a word of the refusal.
REFUSED_ON_PURPOSE = {
    # The library lets the list win in silence; engines read the older key.
    "gemma3_text/sliding_window_pattern=2,layer_types=FSS": "`layer_types` and `sliding_window_pattern` disagree",
    "cohere2/sliding_window_pattern=2,layer_types=FSS": "`layer_types` and `sliding_window_pattern` disagree",
}
AGREED = {name: row for name, row in MEASURED.items() if name not in REFUSED_ON_PURPOSE}
KEEPS_ALL = "gpt_neo"
"""The type whose library cache holds every token, whatever its window, and is multiplied whole."""


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS: dict[str, Callable[[Config], Config]] = {"as recorded": dict, "defaults merged in": _with_defaults}


def _held(arch: Architecture, context: int, kept: Callable[[int], int]) -> int:
    """Keys and values of every layer: of `kept(window)` tokens, or all."""
    total = 0
    for group in arch.groups:
        attention = group.block.attention
        kv_heads, head_dim = attention.sizes(arch.d_model)
        tokens = context if attention.window is None else min(context, kept(attention.window))
        total += 2 * kv_heads * head_dim * tokens * group.times
    return total


def _measured(arch: Architecture) -> dict[str, int]:
    """The numbers of a row, as the library would have them."""
    keeps_all = arch.source is not None and f"model type {KEEPS_ALL};" in f"{arch.source};"

    def rectangle(new_tokens: int, past_tokens: int = 0) -> int:
        counted = flops(arch, Workload(counting="rectangle", new_tokens=new_tokens, past_tokens=past_tokens))
        assert counted.forward == counted.weights + counted.attention
        return counted.forward + (_not_multiplied(arch, new_tokens, past_tokens) if keeps_all else 0)

    def library(context: int) -> int:
        assert kv_cache(arch, context).elements == _held(arch, context, lambda window: window)
        return _held(arch, context, lambda window: context if keeps_all else window - 1)

    return {
        "params": parameters(arch).total,
        "flops16": rectangle(16),
        "flops48": rectangle(48),
        "decode48": rectangle(1, 47),
        "flops5_past13": rectangle(5, 13),
        "cache16": library(16),
        "cache48": library(48),
    }


def _not_multiplied(arch: Architecture, new_tokens: int, past_tokens: int) -> int:
    """4·T·N·H FLOPs for each cached token that a window leaves out of ours."""
    more = 0
    for group in arch.groups:
        attention = group.block.attention
        if attention.window is not None:
            _, head_dim = attention.sizes(arch.d_model)
            left_out = past_tokens - min(past_tokens, attention.window - 1)
            more += 4 * new_tokens * attention.heads * head_dim * left_out * group.times
    return more


def test_the_recording_is_whole():
    assert (len(MEASURED), len(BROKEN)) == (503, 55)
    counts: dict[str, int] = {}
    for row in MEASURED.values():
        counts[row["config"]["model_type"]] = counts.get(row["config"]["model_type"], 0) + 1
    assert len(counts) == 46
    assert all(count >= 8 for count in counts.values())
    windowed = [row for row in MEASURED.values() if row.get("cache48", 0) < 3 * row.get("cache16", 0)]
    assert len(windowed) >= 80


@pytest.mark.parametrize("name", AGREED)
def test_a_row(name):
    row = AGREED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    assert len(wanted) == (7 if row["config"]["model_type"] != "openai-gpt" else 3)
    for form, made in FORMS.items():
        got = _measured(load(made(row["config"])))
        assert {key: got[key] for key in wanted} == wanted, form


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name):
    assert refusal(BROKEN[name]["config"]).where == "the mapping"


@pytest.mark.parametrize("name", REFUSED_ON_PURPOSE)
def test_what_is_refused_on_purpose(refusal, name):
    assert REFUSED_ON_PURPOSE[name] in refusal(MEASURED[name]["config"]).what


def test_nothing_else_is_refused():
    refused = set()
    for name, row in MEASURED.items():
        try:
            load(row["config"])
        except CostcalcError:
            refused.add(name)
    assert refused == set(REFUSED_ON_PURPOSE)


def test_importers_write_the_full_form():
    for name, row in AGREED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


def test_attended_counting_never_exceeds_the_rectangle():
    """And where no window binds, a prefill of T attends to T(T+1)/2 of the rectangle's T·T pairs."""
    for name, row in AGREED.items():
        arch = load(row["config"])
        rectangle = flops(arch, Workload(new_tokens=16, counting="rectangle"))
        attended = flops(arch, Workload(new_tokens=16))
        assert attended.weights == rectangle.weights, name
        windows = [group.block.attention.window for group in arch.groups]
        if all(window is None or window >= 16 for window in windows):
            assert attended.attention * 16 * 16 == rectangle.attention * (16 * 17 // 2), name
        else:
            assert attended.attention * 16 * 16 < rectangle.attention * (16 * 17 // 2), name
