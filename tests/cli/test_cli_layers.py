"""Layers as people write them, and `costcalc params --train-layers`, which counts what is trained of these alone."""

import csv
import io
import json

import pytest

from costcalc.cli.layers import parse_layers
from costcalc.errors import CostcalcError


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("0", [0]),
        ("10", [10]),
        ("9-10", [9, 10]),
        ("3-3", [3]),
        ("0-10", list(range(11))),
        ("0,5,7-9", [0, 5, 7, 8, 9]),
        ("7-9,5,0", [0, 5, 7, 8, 9]),  # in order, whatever the writing
        ("1-3,2-4,3", [1, 2, 3, 4]),  # each once
        ("first:1", [0]),
        ("first:4", [0, 1, 2, 3]),
        ("last:1", [10]),
        ("last:2", [9, 10]),
        ("LAST:2", [9, 10]),
        ("first:11", list(range(11))),
        ("last:11", list(range(11))),
        ("first:2,last:2,5", [0, 1, 5, 9, 10]),
        (" 0 , 7 - 9 , last : 1 ", [0, 7, 8, 9, 10]),
        ("007", [7]),
    ],
)
def test_what_is_understood_of_11_layers(text, layers):
    assert parse_layers(text, 11, name="--train-layers") == layers


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ",", "0,", ",0", "1,,2", "all", "-1", "1-", "-", "1-2-3", "1.5", "1..3", "0:3", "last", "last2"),
        *("last:", "last:-1", "last:x", "end:2", "+1", "1e0", "0x1", "1 2", "\u0661", "1" * 10, "0," * 600),
    ],
)
def test_what_is_not_understood_is_refused_with_what_to_type(text):
    with pytest.raises(CostcalcError, match="names no layers") as caught:
        parse_layers(text, 11, name="--train-layers")
    assert caught.value.hint == "--train-layers 9-10, or last:2, or 0,10"


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("11", "--train-layers '11': the last of 11 layers is 10, the first is 0", "--train-layers 9-10"),
        ("9-11", "--train-layers '9-11': the last of 11 layers is 10, the first is 0", "--train-layers 9-10"),
        ("0,3,11-12", "--train-layers '11-12': the last of 11 layers is 10, the first is 0", "--train-layers 9-10"),
        ("999999999", "--train-layers '999999999': the last of 11 layers is 10, the first is 0", "--train-layers 9-10"),
        ("5-3", "--train-layers '5-3' runs backwards", "--train-layers 3-5"),
        ("last:0", "--train-layers 'last:0' is not between 1 and all 11 layers", "--train-layers last:2"),
        ("0,First:12", "--train-layers 'First:12' is not between 1 and all 11 layers", "--train-layers first:2"),
    ],
)
def test_layers_that_there_are_not_are_refused_with_what_to_type(text, what, hint):
    with pytest.raises(CostcalcError) as caught:
        parse_layers(text, 11, name="--train-layers")
    assert (caught.value.what, caught.value.hint) == (what, hint)


@pytest.mark.parametrize("text", ["1", "0-1", "last:2", "x", ""])
def test_what_to_type_for_a_single_layer_is_right_too(text):
    with pytest.raises(CostcalcError) as caught:
        parse_layers(text, 1, name="--train-layers")
    for word in caught.value.hint.removeprefix("--train-layers ").split(", or "):
        assert parse_layers(word, 1, name="--train-layers") == [0]


def trained(text):
    data = json.loads(text)
    return data["trainable_parameters"], data["total_parameters"]


@pytest.mark.parametrize(
    ("layers", "count"), [("0", 2_509), ("last:1", 2_509), ("1-2", 5_018), ("0,2", 5_018), ("first:3", 7_527)]
)
def test_of_equal_layers_each_counts_the_same(fine, tiny, layers, count):
    """A layer of tiny holds 2,509 of its 8,177: conftest.py adds them up."""
    assert trained(fine("params", tiny, "--train-layers", layers, "--json")) == (count, 8_177)


UNEQUAL = """\
name: unequal
vocab_size: 19
d_model: 13
norm: rmsnorm
layers:
  - {repeat: 2, feed_forward: {d_ff: 37}}
  - {feed_forward: {d_ff: 11}}
  - {repeat: 2, feed_forward: {d_ff: 37}}
"""
"""2·13·37 + 13 = 975 a layer, but 2·13·11 + 13 = 299 in the one of index 2; 4·975 + 299 + 2·247 + 13 = 4,706."""


@pytest.mark.parametrize(
    ("layers", "count"), [("2", 299), ("1-2", 1_274), ("last:2", 1_950), ("0,2,4", 2_249), ("0-4", 4_199)]
)
def test_of_unequal_layers_each_counts_its_own(fine, tmp_path, layers, count):
    path = tmp_path / "unequal.yaml"
    path.write_text(UNEQUAL)
    assert trained(fine("params", path, "--train-layers", layers, "--json")) == (count, 4_706)


@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b", "phi-2", "llama-3.2-1b"])
def test_single_layers_add_up_to_all_of_them_which_is_what_by_layer_says(fine, model):
    data = json.loads(fine("params", model, "--by", "layer", "--json"))
    each = [trained(fine("params", model, "--train-layers", layer["layer"], "--json"))[0] for layer in data["layers"]]
    assert each == [layer["parameters"] for layer in data["layers"]]
    assert trained(fine("params", model, "--train-layers", f"first:{len(each)}", "--json"))[0] == sum(each)


def test_nothing_else_changes(fine, tiny):
    plain, some = (json.loads(fine("params", tiny, *words, "--json")) for words in ((), ("--train-layers", "1")))
    note = some.pop("note")
    assert note == ("tiny: trainable counts layer 1 of 3 alone, the first being 0; not tables, final norm and head")
    assert list(some) == list(plain)
    assert {key: value for key, value in some.items() if value != plain[key]} == {"trainable_parameters": 2_509}
    assert plain["trainable_parameters"] == 8_177


def test_the_row_and_the_note(fine, tiny):
    rows = list(csv.reader(io.StringIO(fine("params", tiny, "--train-layers", "last:2", "--format", "csv"))))
    assert ["parameters", "trainable", "parameters", "5018", "", "exact"] in rows
    note = "tiny: trainable counts layers 1-2 of 3 alone, the first being 0; not tables, final norm and head"
    assert rows[-1] == ["note", note, "", "", "", ""]


def test_several_models_each_train_their_own_last_layers(fine, tiny, windowed):
    lines = fine("params", tiny, windowed, "--train-layers", "last:2").splitlines()
    assert [line.split() for line in lines if line.startswith("trainable")] == [
        ["trainable", "5,018", "5.02", "K", "4,056", "4.06", "K"]  # 2·2,509 and 2·2,028
    ]
    assert [line.partition(" alone")[0] for line in lines if "alone" in line] == [
        "note: tiny: trainable counts layers 1-2 of 3",
        "note: windowed: trainable counts layers 3-4 of 5",
    ]


def test_the_model_that_lacks_a_layer_is_named(refused, tiny, windowed):
    what, hint = refused("params", windowed, tiny, "--train-layers", "3-4")
    assert what == "tiny: --train-layers '3-4': the last of 3 layers is 2, the first is 0"
    assert hint == "--train-layers 1-2"


def test_what_is_not_understood_is_refused(refused, tiny):
    assert refused("params", tiny, "--train-layers", "top") == (
        "tiny: 'top' names no layers",
        "--train-layers 1-2, or last:2, or 0,2",
    )


def test_what_is_frozen_or_a_buffer_in_a_layer_is_not_trained(fine, tmp_path):
    """Only what is trainable counts; a table of sinusoids lies outside of the layers anyway."""
    path = tmp_path / "model.yaml"
    path.write_text(UNEQUAL + "positions: {kind: sinusoidal, stored: frozen, length: 11}\n")
    assert trained(fine("params", path, "--train-layers", "2", "--json")) == (299, 4_849)


def test_its_working(fine, tiny, windowed):
    """2 of 3 layers: gate, up and down 2·481, q and output 2·390, k and v 2·130, two norms 2·13."""
    data = json.loads(fine("params", tiny, "--train-layers", "last:2", "--explain", "--json"))
    lines = {line["name"]: line for line in data["numbers"]}
    assert lines["trainable_parameters"]["value"] == 5_018
    assert lines["trainable_parameters"]["formula"] == "sum of 9 lines"
    gate = lines["decoder.layers.feed_forward.gate (trained)"]
    assert (gate["formula"], gate["with_numbers"], gate["value"]) == ("L·D·F", "2·13·37", 962)
    assert lines["decoder.layers.feed_forward.gate"]["value"] == 1_443
    assert lines["total_parameters"]["value"] == 8_177
    several = json.loads(fine("params", tiny, windowed, "--train-layers", "0", "--explain", "--json"))
    assert [next(n["value"] for n in each["numbers"] if n["name"] == "trainable_parameters") for each in several] == [
        2_509,
        2_028,
    ]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_it_fits_a_narrow_terminal(narrow, tiny, windowed, columns):
    text = narrow(columns, "params", tiny, windowed, "--train-layers", "last:2")
    assert "5,018" in text
    assert "4,056" in text
