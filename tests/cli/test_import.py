"""`costcalc import`: a config.json as YAML, to a file or to standard output."""

import json

import pytest

from costcalc import load, parameters
from costcalc.cli.main import run

TINY = {"model_type": "gemma3_text", "vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 13, "head_dim": 4}
TINY |= {"num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 17, "sliding_window": 5}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(TINY))
    return tmp_path / "tiny"


@pytest.mark.parametrize("inside", ["", "config.json"])
def test_a_config_becomes_a_file_that_costs_the_same(folder, inside, capsys):
    made = folder / "model.yaml"
    assert run(["import", str(folder / inside), "-o", str(made)]) == 0
    assert capsys.readouterr().out == ""
    one, other = load(str(made)), load(folder / "config.json")
    assert one == other
    assert parameters(one).total == parameters(other).total > 0
    assert one.name == "tiny"


def test_without_a_file_it_is_printed(folder, capsys):
    assert run(["import", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("name: tiny\nsource: config.json of model type gemma3_text")
    assert "pattern:" in printed


def test_another_family_is_said_in_the_name_and_the_source(folder, capsys):
    (folder / "config.json").write_text(json.dumps({**TINY, "model_type": "gemma99", "sliding_window": None}))
    assert run(["import", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "the model_type 'gemma99' is not read" in told
    assert "--as gemma" in told
    assert run(["import", str(folder), "--as", "llama"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("name: tiny (read as llama) source: config.json of model type llama;")
    assert "which a config.json of model type 'gemma99' was read as" in printed


def test_a_type_that_nobody_reads_cannot_be_meant(folder, capsys):
    assert run(["import", str(folder), "--as", "lama"]) == 2
    assert "hint: did you mean llama" in capsys.readouterr().err


def test_as_is_for_configs_alone(capsys):
    assert run(["params", "8b", "--as", "llama"]) == 2
    assert "--as is for a config.json" in capsys.readouterr().err
