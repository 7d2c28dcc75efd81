"""Every recorded row of classes with latent attention against the importers, to the last unit.

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
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.huggingface.harmless import HARMLESS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

RECORDED = json.loads((Path(__file__).resolve().parents[2] / "oracle" / "latent.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
DENSE = ("minicpm3", "youtu")
TYPES = ("axk1", "deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", "sarvam_mla", *DENSE)
CONSTANTS = {"rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta", "routed_scaling_factor"}
"""Keys that change no count, but that are read."""
SMALL = [name for name in MEASURED if not name.endswith("/default")]


def _measured(arch: Architecture) -> dict[str, int]:
    """The numbers of a row, ours; the library expands latents in every step."""

    def rectangle(new_tokens: int, *, batch: int = 1, past_tokens: int = 0) -> int:
        size = {"batch": batch, "new_tokens": new_tokens, "past_tokens": past_tokens}
        counted = flops(arch, Workload(**size, counting="rectangle", latent="expanded"))
        assert counted.forward == counted.weights + counted.attention
        return counted.forward

    count = parameters(arch)
    assert count.total == count.trainable
    return {
        "params": count.total,
        "buffers": count.buffers,
        "flops16": rectangle(16),
        "flops48": rectangle(48),
        "decode48": rectangle(1, past_tokens=47),
        "cache16": kv_cache(arch, 16).elements,
        "cache48": kv_cache(arch, 48).elements,
        "flops11_batch3": rectangle(11, batch=3),
        "flops5_past13": rectangle(5, past_tokens=13),
    }


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {aliases.get(key, key): value for each in (defaults, config) for key, value in each.items()}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def test_the_recording_is_whole():
    rows = {model_type: [name for name in SMALL if name.startswith(f"{model_type}/")] for model_type in TYPES}
    assert sum(len(names) for names in rows.values()) == len(SMALL)
    assert all(len(names) >= 20 for model_type, names in rows.items() if model_type != "kimi_k2")
    assert all(sum("random" in name for name in names) == 8 for names in rows.values())
    assert len(MEASURED) - len(SMALL) == len(TYPES) - 1  # Kimi-K2 has no class, and so no defaults, of its own
    assert len(BROKEN) >= 30


@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name):
    row = MEASURED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    assert len(wanted) == 9
    for form, made in FORMS.items():
        assert _measured(load(made(row["config"]))) == wanted, form


UNKNOWN = "deepseek_v2/refused/num_experts_per_tok=null"


def test_experts_of_an_unknown_number_are_counted_and_no_pass_is():
    """The class can be built, and not run: E = 12 of 3·85·19, three layers; 32 layers of 64 as it is."""
    arch = load(BROKEN[UNKNOWN]["config"])
    whole = parameters(load({"model_type": "deepseek_v2"}))
    assert (whole.total, whole.active) == (38_612_307_968, 38_612_307_968)
    assert parameters(arch).total == MEASURED["deepseek_v2/n_shared_experts=3"]["params"] - 3 * 2 * 3 * 85 * 19
    with pytest.raises(CostcalcError, match="how many experts a token uses is not known"):
        flops(arch, Workload(new_tokens=16))
    assert kv_cache(arch, 16).elements == MEASURED["deepseek_v2/n_shared_experts=3"]["cache16"]
    assert "an unknown number of 12 experts" in arch.groups[1].block.feed_forward.summary()


@pytest.mark.parametrize("name", sorted(BROKEN.keys() - {UNKNOWN}))
def test_what_the_library_refuses_is_refused(refusal, name):
    error = refusal(BROKEN[name]["config"])
    assert error.where == "the mapping"
    assert "`" in error.what, "a key is named"


def test_nothing_else_is_refused():
    for row in MEASURED.values():
        try:
            load(row["config"])
        except CostcalcError as error:
            pytest.fail(f"{row['id']}: {error}")


@pytest.mark.parametrize("model_type", TYPES)
def test_the_reference_agrees(model_type):
    names = [name for name in SMALL if name.startswith(f"{model_type}/")]
    for name in (names[0], names[1], names[2], names[-1], names[-2]):
        assert verify(load(MEASURED[name]["config"])).agrees, name


@pytest.mark.parametrize("model_type", TYPES)
def test_a_harmless_key_changes_nothing_whatever_it_holds(model_type):
    config = MEASURED[f"{model_type}/random-00"]["config"]
    inventory = load(config).inventory
    unread = HARMLESS - CONSTANTS
    for value in ("x", 7, True, None, 0.5, [7], {"a": [7]}):
        assert load({**config, **dict.fromkeys(unread, value)}).inventory == inventory


def test_importers_write_the_full_form():
    for name, row in MEASURED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


@pytest.mark.parametrize("name", SMALL)
def test_the_forms_of_decode(name):
    """Expanded, every latent that is seen is multiplied; absorbed, only what is new: R·N·(nope + v) a layer for each.

    Scores and values over what is cached: R + rope and R numbers instead of nope + rope and v, for each head.
    """
    arch = load(MEASURED[name]["config"])
    step = {"new_tokens": 1, "past_tokens": 47}
    expanded, absorbed = (flops(arch, Workload(**step, latent=form)) for form in ("expanded", "absorbed"))
    assert flops(arch, Workload(**step)) == absorbed
    a = arch.groups[0].block.attention
    layers = sum(group.times for group in arch.groups)
    again = a.kv_rank * a.heads * (a.nope_dim + a.v_dim)
    assert expanded.weights - absorbed.weights == layers * 2 * 47 * again
    wider = (a.kv_rank + a.rope_dim + a.kv_rank) - (a.nope_dim + a.rope_dim + a.v_dim)
    assert absorbed.attention - expanded.attention == layers * 2 * 48 * a.heads * wider


def test_each_type_has_its_module():
    modules = {"axk", "deepseek", "glm_moe_lite", "minicpm", "sarvam", "youtu"}
    assert {LINEAGES[model_type] for model_type in TYPES} == modules
