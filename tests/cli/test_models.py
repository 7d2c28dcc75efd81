"""MODEL on the command line: presets, paths, standard input, and several at a time."""

import io
import json
import sys

import pytest

from costcalc.cli.models import column_names
from costcalc.sources import load

CONFIG = '{"model_type": "gpt2"}'  # every field at its class default is GPT-2 small


@pytest.fixture
def typed(monkeypatch):
    """typed(text): what standard input holds."""

    def hold(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return hold


def test_yaml_from_standard_input(fine, typed, tiny):
    typed(tiny.read_text())
    data = json.loads(fine("params", "-", "--json"))
    assert (data["model"], data["total_parameters"]) == ("tiny", 8_177)


def test_a_config_from_standard_input_has_no_name_of_its_own(fine, typed):
    typed(CONFIG)
    data = json.loads(fine("kv", "-", "--json"))
    assert (data["model"], data["context"], data["kv_cache_bytes"]) == ("model", 1_024, 37_748_736)


@pytest.mark.parametrize("command", ["show", "params", "flops", "kv"])
def test_every_command_reads_standard_input(fine, typed, command):
    typed(CONFIG)
    fine(command, "-")


def test_standard_input_stands_beside_other_models(fine, typed, tiny):
    typed(tiny.read_text())
    assert [row["model"] for row in json.loads(fine("params", "8b", "-", "--json"))] == ["llama-3-8b", "tiny"]


def test_standard_input_is_read_once_only(refused, typed, tiny):
    typed(tiny.read_text())
    what, hint = refused("params", "-", "8b", "-")
    assert "once" in what
    assert "file" in hint
    assert sys.stdin.read() == tiny.read_text()  # and nothing was taken


@pytest.mark.parametrize(
    ("text", "word"), [("", "empty"), ("\0\1\2", "binary"), ("]", "standard input"), ("- 1", "mapping")]
)
def test_standard_input_that_holds_no_model_is_refused(refused, typed, text, word):
    typed(text)
    what, _ = refused("params", "-")
    assert what.startswith("standard input")
    assert word in what


def test_no_standard_input_is_refused(refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    what, hint = refused("params", "-")
    assert what == "standard input: closed"
    assert "costcalc COMMAND -" in hint


def test_a_config_is_named_after_its_folder_and_a_file_after_itself(fine, tmp_path, tiny):
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(CONFIG)
    (tmp_path / "other.json").write_text(CONFIG)
    data = json.loads(fine("params", tmp_path / "my-model" / "config.json", tmp_path / "other.json", "--json"))
    assert [row["model"] for row in data] == ["my-model", "other"]
    assert {row["total_parameters"] for row in data} == {124_439_808}


def test_a_word_is_a_path_only_if_it_looks_like_one(refused, fine, tmp_path, monkeypatch, tiny):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text(tiny.read_text())
    what, hint = refused("params", "mine")
    assert "mine" in what
    assert "./mine" in hint
    assert json.loads(fine("params", "./mine", "--json"))["total_parameters"] == 8_177
    assert json.loads(fine("params", "tiny.yaml", "--json"))["total_parameters"] == 8_177


def test_a_file_cannot_hide_a_preset(fine, tmp_path, monkeypatch, tiny):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").write_text(tiny.read_text())
    assert json.loads(fine("params", "gpt2", "--json"))["total_parameters"] == 124_439_808


def test_equal_names_get_a_number_and_others_keep_theirs():
    models = [load(word) for word in ("8b", "gpt2", "8b", "8b")]
    assert column_names(models) == ["llama-3-8b #1", "gpt2", "llama-3-8b #2", "llama-3-8b #3"]


@pytest.mark.parametrize("form", ["csv", "markdown"])
@pytest.mark.parametrize("command", ["show", "params", "flops", "kv"])
def test_the_same_model_twice_gives_columns_that_differ(fine, command, form):
    text = fine(command, "gpt2", "gpt2", "--format", form)
    assert "gpt2 #1" in text
    assert "gpt2 #2" in text
