"""Every recorded row of mixtures with grouped-query attention against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "mixtures.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
NUMBERS = ("params", "trainable", "buffers", "flops16", "flops48", "decode48", "cache16", "cache48")
MORE = ("flops11_batch3", "flops5_past13")


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    if "text_config" in config:
        config = {**config, "text_config": _with_defaults(config["text_config"])}
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _held(arch: Architecture, context: int, spare: int) -> int:
    """Keys and values of every layer: of the latest tokens of a window or a chunk, less `spare`, or all."""
    total = 0
    for group in arch.groups:
        attention = group.block.attention
        kv_heads, head_dim = attention.sizes(arch.d_model)
        reach = attention.window if attention.chunk is None else attention.chunk
        tokens = context if reach is None else min(context, reach - spare)
        total += kv_heads * (head_dim + (attention.v_dim or head_dim)) * tokens * group.times
    return total


def _measured(arch: Architecture) -> Row:
    """The numbers of a row, as the library would have them."""

    def rectangle(**workload: int) -> int:
        counted = flops(arch, Workload(counting="rectangle", **workload))
        assert counted.forward == counted.weights + counted.attention
        return counted.forward

    def library(context: int) -> int:
        # Its caches keep one token less than a window: that confirms the count, which then holds for ours.
        assert kv_cache(arch, context).elements == _held(arch, context, spare=0)
        return _held(arch, context, spare=1)

    count = parameters(arch)
    return {
        "params": count.total,
        "trainable": count.trainable,
        "buffers": count.buffers,
        "flops16": rectangle(new_tokens=16),
        "flops48": rectangle(new_tokens=48),
        "decode48": rectangle(new_tokens=1, past_tokens=47),
        "flops11_batch3": rectangle(new_tokens=11, batch=3),
        "flops5_past13": rectangle(new_tokens=5, past_tokens=13),
        "cache16": library(16),
        "cache48": library(48),
    }


def test_the_recording_is_whole():
    assert (len(MEASURED), len(BROKEN)) == (639, 36)
    counts: dict[str, int] = {}
    for row in MEASURED.values():
        counts[row["config"]["model_type"]] = counts.get(row["config"]["model_type"], 0) + 1
    assert len(counts) == 29
    assert all(count >= 11 for count in counts.values())
    assert counts.keys() <= LINEAGES.keys()
    assert sum(row["cache48"] < 3 * row["cache16"] for row in MEASURED.values()) >= 55


@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name):
    row = MEASURED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    small = name.partition("/")[2].startswith(("small", "random"))
    assert tuple(wanted) == (*NUMBERS, *(MORE if small else ()))
    for form, made in FORMS.items():
        got = _measured(load(made(row["config"])))
        assert {key: got[key] for key in wanted} == wanted, form


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


def test_importers_write_the_full_form():
    """They promise that nothing is left to spell out, so spelling it out must change nothing."""
    for name, row in MEASURED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


def test_what_counts_never_exceeds_the_rectangle():
    """And of what each token is multiplied with, both say the same, unless the class hands every token to all."""
    for name, row in MEASURED.items():
        arch = load(row["config"])
        rectangle = flops(arch, Workload(new_tokens=16, counting="rectangle"))
        attended = flops(arch, Workload(new_tokens=16))
        assert attended.attention < rectangle.attention, name
        if row["config"]["model_type"] == "llama4_text":
            assert attended.weights <= rectangle.weights, name
        else:
            assert attended.weights == rectangle.weights, name


def test_a_wrapper_counts_its_text_model_alone():
    for name, row in MEASURED.items():
        if "text_config" in row["config"]:
            text = {**row["config"]["text_config"], "model_type": f"{row['config']['model_type']}_text"}
            text["tie_word_embeddings"] = row["config"].get("tie_word_embeddings", False)
            arch = load(row["config"])
            assert arch.inventory.records == load(text).inventory.records, name
            assert arch.not_counted == ("vision tower",)


def test_no_config_of_another_class_is_taken():
    for name, row in MEASURED.items():
        if name.endswith("/small"):
            with pytest.raises(CostcalcError, match="its head may differ"):
                load({**row["config"], "architectures": ["LlamaForCausalLM"]})
