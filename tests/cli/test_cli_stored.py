"""`costcalc params` of a checkpoint: in every format, and what it is not asked."""

import csv
import io
import json

import pytest
from hostile import entry, line, write_gguf, write_safetensors

from costcalc import __version__

KEYS = ["schema", "costcalc_version", "model", "format", "files", "total_parameters", "stored_elements", "buffers"]
FILE = {"file": "model.safetensors"}
KEYS += ["total_bytes", "bits_per_weight", "by_dtype", "packings", "tensors"]


@pytest.fixture
def checkpoint(tmp_path):
    """3·5 weights of 2 bytes and 7 of 4: 22 in 58 bytes."""
    header = {"a.weight": entry("F16", [3, 5], 0, 30), "b": entry("F32", [7], 30, 58)}
    return write_safetensors(tmp_path / "model.safetensors", header, 58)


@pytest.fixture
def quantised(tmp_path):
    """5·512 weights in blocks of 34 bytes for 32: 2,720 bytes."""
    return write_gguf(tmp_path / "model.gguf", [line("x", [512, 5], 8, 0)], [], 2_720)


def test_the_object(fine, checkpoint):
    data = json.loads(fine("params", checkpoint, "--json"))
    assert list(data) == KEYS
    assert data == {
        "schema": "costcalc.stored/1",
        "costcalc_version": __version__,
        "model": "model.safetensors",
        "format": "safetensors",
        "files": ["model.safetensors"],
        "total_parameters": 22,
        "stored_elements": 22,
        "buffers": 0,
        "total_bytes": 58,
        "bits_per_weight": 8 * 58 / 22,
        "by_dtype": [
            {"dtype": "F16", "tensors": 1, "elements": 15, "bytes": 30, "bits_per_element": 16.0},
            {"dtype": "F32", "tensors": 1, "elements": 7, "bytes": 28, "bits_per_element": 32.0},
        ],
        "packings": [],
        "tensors": [
            {"name": "a.weight", "shape": [3, 5], "dtype": "F16", "elements": 15, "bytes": 30, **FILE},
            {"name": "b", "shape": [7], "dtype": "F32", "elements": 7, "bytes": 28, **FILE},
        ],
    }  # fmt: skip


def test_several_give_an_array(fine, checkpoint, quantised):
    data = json.loads(fine("params", checkpoint, quantised, "--json"))
    assert [each["total_parameters"] for each in data] == [22, 2_560]
    assert data[1]["bits_per_weight"] == 8.5


@pytest.mark.parametrize("by", ["component", "tensor"])
def test_every_format(fine, checkpoint, quantised, by):
    for form in ("table", "markdown"):
        text = fine("params", quantised, "--by", by, "--format", form)
        assert "2,560" in text
        assert "Q8_0" in text.replace("\\", "")
    for words in ([quantised], [checkpoint, quantised]):
        rows = list(csv.reader(io.StringIO(fine("params", *words, "--by", by, "--format", "csv"))))
        assert {len(row) for row in rows} == {len(rows[0])}
    assert "2720" in fine("params", quantised, "--format", "csv")


def test_packed_integers_are_told_and_not_guessed_at(fine, tmp_path):
    path = write_safetensors(tmp_path / "x.safetensors", {"x": entry("I32", [3], 0, 12)}, 12)
    data = json.loads(fine("params", path, "--json"))
    assert (data["total_parameters"], data["bits_per_weight"], data["stored_elements"]) == (None, None, 3)
    assert data["note"].startswith("total_parameters is null: ")
    assert "parameters not told, 12 bytes" in fine("params", path)


def test_what_headers_do_not_say_is_refused(refused, checkpoint):
    for words in (["--by", "layer"], ["--train-layers", "0"], ["--explain"], ["--as", "llama"]):
        what, hint = refused("params", checkpoint, *words)
        assert words[0] in what
        assert hint == f"costcalc params {checkpoint}"
    what, _ = refused("params", "gpt2", checkpoint)
    assert "is a checkpoint and gpt2 is not" in what


@pytest.mark.parametrize("line", ["flops M", "kv M", "show M", "compare gpt2 M", "weights M", "fits M --memory 1GB"])
def test_other_questions_need_a_config(refused, checkpoint, line):
    what, hint = refused(*(str(checkpoint) if word == "M" else word for word in line.split()))
    assert "a checkpoint without a config.json" in what
    assert hint.startswith(f"costcalc params {checkpoint} says what it holds")
