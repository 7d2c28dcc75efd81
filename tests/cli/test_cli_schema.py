"""`costcalc schema`: what an editor reads."""

import json

import jsonschema
import pytest

import costcalc
from costcalc.sources.presets import presets_folder
from costcalc.sources.yaml_text import read_yaml

WRITTEN = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 37}}]}
TYPOS = [
    {"d_modell": 13},
    {"d_model": "13"},
    {"d_model": 0},
    {"norm": "rmsnrm"},
    {"layers": [{"attention": {"heads": 6, "hedas": 2}}]},
    {"layers": [{"attention": {"heads": True}}]},
    {"layers": [{"feed_forward": {"kind": "gated", "d_ff": 37, "activation": "silly"}}]},
]


def test_every_preset_is_valid_under_it_and_a_typo_is_not(fine):
    schema = json.loads(fine("schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((presets_folder() / "models").glob("*.yaml"))
    assert files
    for file in files:
        written = read_yaml(file.read_text(encoding="utf-8"), file.name).data
        assert [error.message for error in validator.iter_errors(written)] == [], file.name
    assert validator.is_valid(WRITTEN)
    for change in TYPOS:
        assert not validator.is_valid({**WRITTEN, **change}), change


@pytest.mark.parametrize("change", TYPOS, ids=str)
def test_what_it_finds_is_refused_by_a_run_too(change):
    with pytest.raises(costcalc.CostcalcError):
        costcalc.load({**WRITTEN, **change})


def test_the_keys_as_a_table(fine):
    lines = [line.split() for line in fine("schema", "--format", "table").splitlines()]
    assert ["Dense.d_ff", "integer"] in lines
    assert ["Dense.bias", "boolean", "false"] in lines
    assert ["Gated.kind", "gated", "gated"] in lines


def test_markdown_explains_each_key_on_a_page(fine, tmp_path):
    page = fine("schema", "--format", "markdown")
    assert page.startswith("### Top level\n\nWhat a transformer is")
    assert "Written `feed_forward: {kind: gated, ...}`. (activation(x W_gate)" in page
    assert "| `kv_heads` | whole number, `null` |  | `null` means as many as heads |\n" in page
    assert page.endswith("|\n")
    fine("schema", "--output", tmp_path / "keys.md")
    assert (tmp_path / "keys.md").read_text(encoding="utf-8") == page
