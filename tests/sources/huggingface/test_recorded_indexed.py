"""Every recorded row of classes whose attention meets chosen keys against their importers, to the last unit.

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

RECORDED: list[Row] = json.loads((Path(__file__).resolve().parents[2] / "oracle" / "indexed.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
TYPES = sorted({name.partition("/")[0] for name in MEASURED})
PASSES = {
    "flops16": {"new_tokens": 16},
    "flops48": {"new_tokens": 48},
    "decode48": {"new_tokens": 1, "past_tokens": 47},
    "flops11_batch3": {"new_tokens": 11, "batch": 3},
    "flops5_past13": {"new_tokens": 5, "past_tokens": 13},
}


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {aliases.get(key, key): value for each in (defaults, config) for key, value in each.items()}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, ours; the library expands latents in every step."""
    count = parameters(arch)
    got = {"params": count.total, "buffers": count.buffers}
    form = "expanded" if any(matmul.is_of_latent for matmul in arch.inventory.matmuls) else None
    for name, lengths in PASSES.items():
        if name in row:
            got[name] = flops(arch, Workload(**lengths, counting="rectangle", latent=form)).forward
    for tokens in (16, 48):
        if f"cache{tokens}" in row:
            got[f"cache{tokens}"] = kv_cache(arch, tokens).elements
    return got


@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name):
    row = MEASURED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    for form, made in FORMS.items():
        assert _measured(load(made(row["config"])), row) == wanted, form


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name):
    refusal(BROKEN[name]["config"])


def test_importers_write_the_full_form():
    for name, row in MEASURED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


@pytest.mark.parametrize("model_type", TYPES)
def test_the_reference_agrees(model_type):
    names = [name for name in MEASURED if name.startswith(f"{model_type}/") and not name.endswith("/default")]
    for name in (names[0], names[1], names[-1]):
        arch = load(MEASURED[name]["config"])
        if not arch.inventory.unstated:
            assert verify(arch).agrees, name


def test_chosen_keys_are_fewer_than_kernels_are_handed():
    """DeepSeek-V3.2 at 8,192 tokens: heads meet 2,048 keys, 61 layers x 128 heads x (192 + 128) multiply-adds a pair.

    A causal sum with a window has as many pairs: 8,192·2,048 - 2,048·2,047 / 2. All of them are scored by the indexer,
    8,192·8,193 / 2 pairs of 64 x (128 + 1).
    """
    arch = load({"model_type": "deepseek_v32"})
    met, scored = 8_192 * 2_048 - 2_048 * 2_047 // 2, 8_192 * 8_193 // 2
    counted = flops(arch, Workload(new_tokens=8_192))
    assert counted.attention == 61 * 2 * (met * 128 * 320 + scored * 64 * 129)
    assert kv_cache(arch, 8_192).elements == 61 * 8_192 * (512 + 64 + 128)


def test_layers_are_called_by_what_tells_them_apart():
    """GLM-5.2: an indexer in the first three layers and every fourth of the others."""
    arch = load({"model_type": "glm_moe_dsa", "index_topk_freq": 4, "index_skip_topk_offset": 3})
    assert [(group.path.removeprefix("decoder.layers."), group.times) for group in arch.groups] == [
        ("dense_full", 3),
        ("sparse_shared", 57),
        ("sparse_full", 18),
    ]
