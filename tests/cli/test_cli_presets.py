"""`costcalc presets`: what is bundled."""

import csv
import io
import json

import pytest

from costcalc.sources import load

# The models that were asked for, with the number of parameters that each was published with.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b-v0.1": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "gemma-2-9b": 9_241_705_984,
    "phi-2": 2_779_683_840,
}


@pytest.fixture
def presets(fine):
    return {preset["name"]: preset for preset in json.loads(fine("presets", "--json"))["presets"]}


def test_each_has_its_published_number(presets):
    assert {name: presets[name]["total_parameters"] for name in PUBLISHED} == PUBLISHED
    assert round(presets["gpt3-175b"]["total_parameters"], -8) == 174_600_000_000


def test_each_names_its_source_and_context(presets):
    assert list(presets) == sorted(presets)
    for name, preset in presets.items():
        assert preset["source"]
        assert preset["context_length"] is None or preset["context_length"] >= 512, name
    assert {name for name in presets if presets[name]["context_length"] is None} == {
        *("transformer-base", "transformer-big"),
        *("mamba-130m", "mamba-2.8b", "mamba2-2.7b", "falcon-mamba-7b", "xlstm-7b"),  # of states alone: no length
        "recurrentgemma-2b",  # and a window
    }


def test_aliases(presets):
    assert presets["llama-2-7b"]["aliases"] == ["7b"]
    assert presets["llama-3-8b"]["aliases"] == ["8b"]
    assert presets["gpt2-xl"]["aliases"] == []


def test_the_columns(fine, presets):
    rows = list(csv.reader(io.StringIO(fine("presets", "--format", "csv"))))
    assert rows[0][3:] == ["alias", "parameters", "context", "source", "status"]
    assert [row[1] for row in rows[1:] if row[0] != "note"] == list(presets)
    row = next(row for row in rows if row[1] == "llama-3-8b")
    assert row[3:] == ["8b", "8030261248", "8192", "meta-llama/Meta-Llama-3-8B config.json", "exact"]


def test_the_title_counts_them(fine, presets):
    assert fine("presets").splitlines()[0] == f"{len(presets)} presets"


def test_every_name_and_alias_loads_in_any_letter_case(presets):
    for name, preset in presets.items():
        for word in (name.upper(), *preset["aliases"]):
            assert load(word).name == name
