"""Every recorded row of ZAYA1 against its importer.

Parameters, buffers, keys and values, states and all FLOPs are the library's to the last unit, but for what `_beyond`
and `_keys_and_values` name. tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "zaya.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
PASSES = {
    "flops16": Workload(new_tokens=16, counting="rectangle"),
    "flops48": Workload(new_tokens=48, counting="rectangle"),
    "decode48": Workload(new_tokens=1, past_tokens=47, counting="rectangle"),
    "flops11_batch3": Workload(new_tokens=11, batch=3, counting="rectangle"),
    "flops5_past13": Workload(new_tokens=5, past_tokens=13, counting="rectangle"),
}


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / "zaya.json").read_text("utf-8"))
    del defaults["_provenance"]
    return {**defaults, **config}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _attentions(arch: Architecture) -> list[tuple[Any, int]]:
    """Of each layer's attention, and in how many layers it is."""
    return [(group.block.attention, group.times) for group in arch.groups]


def _beyond(arch: Architecture, workload: Workload) -> int:
    """What the library multiplies and nobody needs: in a pass that starts a text, values of a token of zeros.

    D x K·H/2 for each sequence and layer; the values of a token before the first one are the bias, or 0.
    """
    if workload.past_tokens:
        return 0
    halves = sum(each.kv_heads * each.head_dim // 2 * times for each, times in _attentions(arch))
    return 2 * workload.batch * arch.d_model * halves


def _keys_and_values(arch: Architecture, tokens: int) -> int:
    """A sliding cache keeps w - 1 tokens in the library, as in all of its classes."""
    kept = 0
    for each, times in _attentions(arch):
        held = tokens if each.window is None else min(tokens, each.window - 1)
        kept += 2 * times * each.kv_heads * each.head_dim * held
    return kept


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, as the library would have them."""
    count = parameters(arch)
    got = {"params": count.total, "trainable": count.trainable, "buffers": count.buffers}
    for name, workload in PASSES.items():
        if name in row:
            counted = flops(arch, workload)
            assert counted.forward == counted.weights + counted.attention + counted.modelled
            got[f"scan_{name}"] = counted.modelled
            got[name] = counted.forward + _beyond(arch, workload)
    for tokens in (16, 48):
        got[f"state{tokens}"] = kv_cache(arch, tokens).state_elements
        got[f"cache{tokens}"] = _keys_and_values(arch, tokens)
    return got


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    arch = load(FORMS[form](row["config"]))
    assert _measured(arch, row) == {key: value for key, value in row.items() if key not in ("id", "config")}
    if all(each.window is None for each, _ in _attentions(arch)):
        for tokens in (16, 48):
            assert kv_cache(arch, tokens).elements == row[f"cache{tokens}"]


def test_the_recording_is_whole():
    assert (len(MEASURED), len(BROKEN)) == (23, 9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


def test_the_class_as_it_is():
    """ZAYA1: 8.3B without the table. Of each of 40 layers 2,688 numbers are held whatever the text: (8 + 2)·128·2
    channels of the convolutions, and half of 2·128 values; beside 2·256 for each token.

    The totals of tests of the whole class: those of the shared recording of all classes.
    """
    arch = load({"model_type": "zaya"})
    count = parameters(arch)
    assert (count.total, count.non_embedding) == (8_840_488_784, 8_840_488_784 - 262_272 * 2_048)
    cache = kv_cache(arch, 16)
    assert (cache.elements, cache.state_elements) == (40 * 512 * 16, 40 * 2_688) == (327_680, 107_520)
    assert cache.elements + cache.state_elements == 435_200
    assert [(group.path, group.times) for group in arch.groups] == [
        ("decoder.layers.first", 1),
        ("decoder.layers.later", 39),
    ]


def test_layers_are_called_by_what_tells_them_apart():
    types = ["hybrid", "hybrid_sliding", "hybrid", "hybrid_sliding"]
    row = {"model_type": "zaya", "num_hidden_layers": 4, "sliding_window": 8, "layer_types": types}
    arch = load(row)
    assert [(group.path.rpartition(".")[2], group.times) for group in arch.groups] == [
        ("global_first", 1),
        ("local_later", 2),
        ("global_later", 1),
    ]
    assert [group.block.attention.window for group in arch.groups] == [None, 8, None]
    assert [group.block.positions.theta for group in arch.groups] == [5e6, 1e4, 5e6]
    assert [group.block.positions.rotary_dim for group in arch.groups] == [64, 64, 64]


@pytest.mark.parametrize(
    ("entry", "theta", "rotary_dim"),
    [
        ({"rope_theta": 7e4}, 7e4, 10),
        ({"rope_theta": 7e4, "partial_rotary_factor": 0.4}, 7e4, 4),
        ({"rope_theta": 100, "partial_rotary_factor": 0.3}, 100.0, 4),  # 3 numbers are turned as 4 are
    ],
)
@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
def test_rotations_stand_in_the_entry_of_a_type(key, entry, theta, rotary_dim):
    config = {**MEASURED["zaya/cca_time1=1"]["config"], key: {"hybrid": entry}}
    positions = load({**config, "partial_rotary_factor": 0.8, "rope_theta": 3.0}).groups[0].block.positions
    assert (positions.theta, positions.rotary_dim) == (theta, rotary_dim)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rope_theta": 0}, "no `rope_theta` for layers of type hybrid"),
        ({"rope_theta": "5e6"}, "no `rope_theta` for layers of type hybrid"),
        ({"rope_theta": True}, "no `rope_theta` for layers of type hybrid"),
        ({"rope_theta": 5e6, "partial_rotary_factor": 1.5}, "`partial_rotary_factor` 1.5 of a head of 10 gives 0"),
        ({"rope_theta": 5e6, "partial_rotary_factor": 0.05}, "`partial_rotary_factor` 0.05 of a head of 10 gives 0"),
        ({"rope_theta": 5e6, "partial_rotary_factor": None}, "`partial_rotary_factor` nothing of a head of 10 gives 0"),
    ],
)
def test_rotations_that_cannot_be(refusal, entry, message):
    config = {**MEASURED["zaya/cca_time1=1"]["config"], "rope_parameters": {"hybrid": entry}}
    assert message in str(refusal(config))


@pytest.mark.parametrize("name", MEASURED)
def test_the_importer_writes_the_full_form(name):
    written = read_config(MEASURED[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


@pytest.mark.parametrize("case", ["small", "layer_types=HSS,sliding_window=8", "cca_time0=1,cca_time1=3"])
def test_it_verifies(case):
    result = verify(load(MEASURED[f"zaya/{case}"]["config"]))
    assert result.faults == ()
    assert result.agrees


def test_no_other_class_is_taken():
    with pytest.raises(CostcalcError, match="its head may differ"):
        load({**MEASURED["zaya/small"]["config"], "architectures": ["ZayaForTokenClassification"]})
