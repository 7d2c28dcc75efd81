"""Encoders that are BERT with differences: every recorded row to the last unit, and what their readers refuse.

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

Config = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED = json.loads((ORACLE / "bert_kin.json").read_text(encoding="utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
SMALL = {name: row for name, row in MEASURED.items() if name.endswith("/small")}
PASSES = {
    "flops16": {"new_tokens": 16},
    "flops48": {"new_tokens": 48},
    "flops11_batch3": {"batch": 3, "new_tokens": 11},
    "decode48": {"new_tokens": 1, "past_tokens": 47},
    "crossing16": {"new_tokens": 16, "memory_tokens": 13},
    "crossing_decode17": {"new_tokens": 1, "past_tokens": 16, "memory_tokens": 13},
}


def _merged(config: Config) -> Config:
    """The whole config with the class defaults merged in."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text(encoding="utf-8"))
    aliases = defaults.pop("_aliases", {})
    del defaults["_provenance"]
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _merged}


def _measured(arch: Architecture, row: Config) -> Config:
    """The numbers of a row, ours."""
    count = parameters(arch)
    numbers = {"params": count.total, "trainable": count.trainable}
    for name in PASSES.keys() & row.keys():
        counted = flops(arch, Workload(counting="rectangle", **PASSES[name]))
        assert counted.forward == counted.weights + counted.attention
        numbers[name] = counted.forward
    for name in {"cache16", "cache48"} & row.keys():
        numbers[name] = kv_cache(arch, int(name[5:])).elements
    if "cross_cache" in row:
        numbers["cross_cache"] = kv_cache(arch, 16, memory_tokens=13).cross_elements
    return numbers


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    arch = load(FORMS[form](row["config"]))
    assert _measured(arch, row) == {key: value for key, value in row.items() if key not in ("id", "config")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    assert refusal(FORMS[form](BROKEN[name]["config"])).where == "the mapping"


@pytest.mark.parametrize("name", SMALL)
def test_it_verifies(name):
    result = verify(load(SMALL[name]["config"]))
    assert result.faults == ()
    assert result.agrees


@pytest.mark.parametrize("name", SMALL)
def test_importers_write_the_full_form(name):
    written = read_config(SMALL[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


def test_what_a_class_writes_beside_its_keys(refusal):
    """MobileBERT's `to_dict` has the width inside of a layer, which follows from the others."""
    config = SMALL["mobilebert/small"]["config"]
    assert load({**config, "true_hidden_size": 30}) == load(config)
    assert "`true_hidden_size`" in refusal({**config, "true_hidden_size": 42}).what
