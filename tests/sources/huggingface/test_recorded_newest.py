"""Every recorded row of the newest sparse decoders against its importer, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.calculators.terms import cached_term, matmul_term
from costcalc.inventory.letters import LETTERS
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "newest.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
SMALL = {name: row for name, row in MEASURED.items() if name.endswith("/small")}
PASSES = {
    "flops16": Workload(new_tokens=16, counting="rectangle"),
    "flops48": Workload(new_tokens=48, counting="rectangle"),
    "decode48": Workload(new_tokens=1, past_tokens=47, counting="rectangle"),
    "flops11_batch3": Workload(new_tokens=11, batch=3, counting="rectangle"),
    "flops5_past13": Workload(new_tokens=5, past_tokens=13, counting="rectangle"),
}


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _left_out(arch: Architecture, tokens: int) -> int:
    """Of keys and values of the oldest token of a window: the library's caches keep w - 1 tokens, where one is needed
    no more than that in the next pass.
    """
    left = 0
    for group in arch.groups:
        some = group.block.attention
        if some.window is not None and tokens >= some.window:
            kv_heads, head_dim = some.sizes(arch.d_model)
            arrays = 1 if some.kind == "compressed" and not some.held_twice else 2
            loop = None if group.block.block_residuals is None else group.block.block_residuals.loop
            left += arrays * kv_heads * head_dim * group.times * (1 if loop is None else loop.passes)
    return left


def _of_kernels(arch: Architecture, workload: Workload) -> int:
    """What the library's convolutions multiply beyond ours behind the first part of a text.

    A step has two places of taps + 1 numbers, where ours counts `taps`; a later part of a text begins `taps` earlier.
    """
    if workload.past_tokens == 0:
        return 0
    places = {record.path: record for record in arch.inventory.matmuls if record.role == "scan"}
    more = 0
    for record in places.values():
        taps = record.axes["taps"]
        beyond = 2 - taps if workload.new_tokens == 1 else taps
        more += 2 * record.times * record.axes["channels"] * taps * beyond
    return more * workload.batch


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, as the library would have them."""
    count = parameters(arch)
    got = {"params": count.total, "buffers": count.buffers}
    for name, workload in PASSES.items():
        if name in row:
            counted = flops(arch, workload)
            assert counted.forward == counted.weights + counted.attention + counted.modelled
            beyond = _of_kernels(arch, workload)
            got[name], got[f"scan_{name}"] = counted.forward + beyond, counted.modelled + beyond
    for tokens in (16, 48):
        cache = kv_cache(arch, tokens)
        got[f"cache{tokens}"] = cache.elements + cache.state_elements - _left_out(arch, tokens)
    return got


def test_the_recording_is_whole():
    counts = dict.fromkeys(LINEAGES, 0)
    for row in MEASURED.values():
        counts[row["config"]["model_type"]] += 1
    assert {name: count for name, count in counts.items() if count} == {
        **{"minimax_m3_vl_text": 19, "deepseek_v4": 32},
        **{"inkling_text": 14, "inkling2_text": 16, "inkling2_loop_text": 11},
    }
    assert len(BROKEN) == 34


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
def test_importers_write_the_full_form(name):
    written = read_config(MEASURED[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_verify(name):
    result = verify(load(SMALL[name]["config"]))
    assert result.faults == ()
    assert result.agrees


@pytest.mark.parametrize("name", SMALL)
def test_formulas_come_to_what_is_counted(name):
    inventory = load(SMALL[name]["config"]).inventory
    for workload in (*PASSES.values(), Workload(batch=3, new_tokens=23, past_tokens=5)):
        for matmul in inventory.matmuls:
            if matmul.runs(workload):
                assert matmul_term(matmul, workload).exact_value == matmul.flops(workload), matmul.path
    context = Workload(batch=3, new_tokens=23)
    for held in inventory.cached:
        assert cached_term(held, context).exact_value == held.elements(context), held.path
    letters = {letter for record in inventory.records for axis in record.axes for letter in axis.split("·")}
    assert letters <= LETTERS.keys()


@pytest.mark.parametrize("name", SMALL)
def test_no_other_class_is_taken(name):
    with pytest.raises(CostcalcError, match="its head may differ"):
        load({**SMALL[name]["config"], "architectures": ["LlamaForCausalLM"]})
