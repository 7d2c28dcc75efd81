"""Classes of efficient attention over long texts: every recorded row to the last unit, and what is refused.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
import re
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
RECORDED: list[Row] = json.loads((ORACLE / "long.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
TYPES = list(dict.fromkeys(row["config"]["model_type"] for row in RECORDED))


def _merged(config: Row) -> Row:
    """The whole config with the class defaults merged in."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text(encoding="utf-8"))
    aliases = defaults.pop("_aliases", {})
    del defaults["_provenance"]
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _merged}


def _workload(name: str, arch: Architecture) -> Workload:
    """What a pass was given: "flops48", "flops16_batch3", "decode48"; of a pair as many tokens of either text."""
    kind, tokens, batch = re.fullmatch(r"([a-z]+)(\d+)(?:_batch(\d))?", name).groups()
    is_step = kind == "decode"
    memory = int(tokens) - is_step if arch.inventory.needs_memory else 0
    return Workload(
        batch=int(batch or 1),
        new_tokens=1 if is_step else int(tokens),
        past_tokens=int(tokens) - 1 if is_step else 0,
        memory_tokens=memory,
        counting="rectangle",
    )


def _ours(arch: Architecture, name: str) -> int:
    """The number of a row, ours. Of what is modelled the library's counter sees convolutions, and no transform."""
    if name in ("params", "trainable"):
        return getattr(parameters(arch), "total" if name == "params" else "trainable")
    if name.startswith(("cache", "cross")):
        tokens = int(name.rpartition("cache")[2])
        held = kv_cache(arch, tokens, memory_tokens=tokens if arch.inventory.needs_memory else 0)
        return held.cross_elements if name.startswith("cross") else held.elements
    counted = flops(arch, _workload(name, arch))
    assert counted.forward == counted.weights + counted.attention + counted.modelled
    return counted.forward - (counted.modelled if any(_is_fourier(group.block) for group in arch.groups) else 0)


def _is_fourier(block: Any) -> bool:
    return block.mixer is not None and block.mixer.kind == "fourier"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    arch = load(FORMS[form](row["config"]))
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    assert {key: _ours(arch, key) for key in wanted} == wanted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


@pytest.mark.parametrize("name", [f"{model_type}/small" for model_type in TYPES])
def test_the_importer_writes_the_full_form(name):
    written = read_config(MEASURED[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


@pytest.mark.parametrize("name", [f"{model_type}/small" for model_type in TYPES])
def test_it_verifies(name):
    result = verify(load(MEASURED[name]["config"]))
    assert result.faults == ()
    assert result.agrees
