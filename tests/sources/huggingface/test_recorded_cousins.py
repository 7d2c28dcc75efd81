"""Every recorded row of decoders near Llama against their importers: parameters, FLOPs and caches to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.sources.huggingface.config import DEFAULTS

Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "cousins.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
PASSES = {
    "flops16": Workload(new_tokens=16, counting="rectangle"),
    "flops48": Workload(new_tokens=48, counting="rectangle"),
    "decode48": Workload(new_tokens=1, past_tokens=47, counting="rectangle"),
    "flops11_batch3": Workload(new_tokens=11, batch=3, counting="rectangle"),
    "flops5_past13": Workload(new_tokens=5, past_tokens=13, counting="rectangle"),
}


def _held(arch: Architecture, tokens: int) -> int:
    """Keys and values; a sliding cache keeps w - 1 tokens in the library, as in all of its classes."""
    total = kv_cache(arch, tokens).elements
    for group in arch.groups:
        attention = group.block.attention
        if attention.window is not None and attention.window <= tokens:
            kv_heads, head_dim = attention.sizes(arch.d_model)
            total -= 2 * kv_heads * head_dim * group.times
    return total


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    arch = load(FORMS[form](row["config"]))
    count = parameters(arch)
    got = {"params": count.total, "trainable": count.trainable, "buffers": count.buffers}
    got |= {pass_: flops(arch, PASSES[pass_]).forward for pass_ in PASSES if pass_ in row}
    got |= {f"cache{tokens}": _held(arch, tokens) for tokens in (16, 48) if f"cache{tokens}" in row}
    assert got == {key: value for key, value in row.items() if key not in ("id", "config")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))
