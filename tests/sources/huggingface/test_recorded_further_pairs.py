"""Every recorded row of further encoder-decoder classes and of their halves against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "further_pairs.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
TYPES = list(dict.fromkeys(row["config"]["model_type"] for row in RECORDED))


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, ours."""
    is_pair = arch.family == "encoder-decoder"
    count = parameters(arch)
    got = {"params": count.total, "buffers": count.buffers}
    for tokens in (16, 48):
        memory = tokens * is_pair
        got[f"flops{tokens}"] = _rectangle(arch, new_tokens=tokens, memory_tokens=memory)
        if arch.family != "encoder-only":
            kept = kv_cache(arch, tokens, memory_tokens=memory)
            got |= {f"cache{tokens}": kept.elements, f"cross{tokens}": kept.cross_elements}
    if is_pair:
        got["flops5_memory11_batch3"] = _rectangle(arch, new_tokens=5, memory_tokens=11, batch=3)
        got["decode_past13_memory7"] = _rectangle(arch, new_tokens=1, memory_tokens=7, past_tokens=13)
        kept = kv_cache(arch, 14, memory_tokens=7)
        got |= {"cache14": kept.elements, "cross7": kept.cross_elements}
    elif arch.family == "decoder-only":
        got["decode48"] = _rectangle(arch, new_tokens=1, past_tokens=47)
    return {key: got[key] for key in row if key not in ("id", "config")}


def _rectangle(arch: Architecture, **work: int) -> int:
    counted = flops(arch, Workload(counting="rectangle", **work))
    assert counted.forward == counted.weights + counted.attention
    return counted.forward


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    arch = load(FORMS[form](row["config"]))
    assert _measured(arch, row) == {key: value for key, value in row.items() if key not in ("id", "config")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


@pytest.mark.parametrize("name", MEASURED)
def test_the_importer_writes_the_full_form(name):
    written = read_config(MEASURED[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


@pytest.mark.parametrize("model_type", TYPES)
def test_it_verifies(model_type):
    result = verify(load(MEASURED[f"{model_type}/small"]["config"]))
    assert result.faults == ()
    assert result.agrees
