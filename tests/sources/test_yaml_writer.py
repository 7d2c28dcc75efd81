"""What is written as YAML is read as the same architecture, and says nothing twice."""

import json
from pathlib import Path

import pytest
import yaml

from costcalc import load
from costcalc.sources.presets import preset_names
from costcalc.sources.yaml_writer import write_yaml, written_form

ORACLE = Path(__file__).resolve().parents[1] / "oracle"
SOME = 23
"""Of the recorded configs every so many-th is written."""


def configs():
    for path in sorted(ORACLE.glob("*.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in rows if isinstance(row, dict) and "params" in row] if isinstance(rows, list) else []
        yield from (pytest.param(row["config"], id=str(row.get("id", path.stem))) for row in rows[::SOME])


def again(arch):
    return load(yaml.safe_load(write_yaml(arch)))


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_the_same_when_it_is_read_again(name):
    model = load(name)
    assert again(model) == model


@pytest.mark.parametrize("config", list(configs()))
def test_a_config_is_the_same_when_it_is_read_again(config):
    model = load(config)
    assert again(model) == model
    assert again(model).inventory == model.inventory


LAYER = {"attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"kind": "gated", "d_ff": 37}}
SMALL = {"name": "small", "vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}


def test_defaults_are_left_out_and_kinds_are_words():
    model = load({**SMALL, "layers": [{"repeat": 3, **LAYER, "norms": "pre", "positions": "none"}]})
    assert written_form(model) == {**SMALL, "decoder": {"layers": [{"repeat": 3, **LAYER}]}}


def test_what_all_layers_share_is_said_once():
    local = {**LAYER, "attention": {**LAYER["attention"], "window": 7}}
    model = load({**SMALL, "layers": [{"name": "local", "repeat": 2, **local}, {"name": "global", **LAYER}]})
    assert written_form(model)["decoder"] == {
        "block": LAYER,
        "layers": [{"name": "local", "repeat": 2, "attention": {"window": 7}}, {"name": "global"}],
    }


def test_a_layer_takes_back_what_its_stack_says_of_the_same_kind():
    far = {"kind": "rope", "theta": 1e6}
    layers = [{**LAYER, "positions": far}, {**LAYER, "positions": {"kind": "rope", "theta": None}, "norms": "post"}]
    model = load({**SMALL, "decoder": {"positions": far, "layers": layers}})
    written = written_form(model)["decoder"]
    assert written["layers"][1] == {"norms": "post", "positions": {"kind": "rope", "theta": None}}
    assert again(model) == model


def test_letters_of_any_language_stay_readable():
    assert "naïve – 模型" in write_yaml(load({**SMALL, "name": "naïve – 模型", "layers": [LAYER]}))
