"""`costcalc flops` on the model of conftest.py: every option changes the sum as it should.

A token's weights: 2·(3·(1,040 + 1,443) + 247) = 15,392; attention 3 layers·2·6 heads·(5 + 5) = 360 a pair.
"""

import csv
import io
import json

import pytest


def counted(text):
    data = json.loads(text)
    return data["forward_flops"], data["weight_flops"], data["attention_flops"], data["train_flops"]


@pytest.mark.parametrize(
    ("options", "weights", "attention"),
    [
        ("--seq-len 7", 7 * 15_392, 360 * 28),  # 7·8/2 pairs
        ("--seq-len 7 --batch 2", 2 * 7 * 15_392, 2 * 360 * 28),
        ("--seq-len 7 --counting rectangle", 7 * 15_392, 360 * 49),
        ("--seq-len 7 --counting attended", 7 * 15_392, 360 * 28),
        ("", 11 * 15_392, 360 * 66),  # the model's own context of 11
    ],
)
def test_a_training_pass(fine, tiny, options, weights, attention):
    forward = weights + attention
    assert counted(fine("flops", tiny, *options.split(), "--json")) == (forward, weights, attention, 3 * forward)


@pytest.mark.parametrize(
    ("options", "weights", "attention"),
    [
        ("--seq-len 1 --past-tokens 5", 15_392, 360 * 6),
        ("--seq-len 2 --past-tokens 5", 2 * 15_392, 360 * 13),  # 6 + 7
        ("--seq-len 2 --past-tokens 5 --counting rectangle", 2 * 15_392, 360 * 14),
        ("--seq-len 7 --logits last", 7 * 15_392 - 6 * 494, 360 * 28),  # 6 of 7 heads of 2·247 left out
        ("--seq-len 7 --logits last --batch 3", 3 * (7 * 15_392 - 6 * 494), 3 * 360 * 28),
    ],
)
def test_a_pass_that_trains_nothing(fine, tiny, options, weights, attention):
    text = fine("flops", tiny, *options.split(), "--json")
    assert counted(text) == (weights + attention, weights, attention, None)


def test_the_workload_is_said_back(fine, tiny):
    options = ["--seq-len", "2", "--past-tokens", "5", "--batch", "3", "--counting", "rectangle", "--logits", "last"]
    assert json.loads(fine("flops", tiny, *options, "--json"))["workload"] == {
        "batch": 3,
        "new_tokens": 2,
        "past_tokens": 5,
        "memory_tokens": 0,
        "counting": "rectangle",
        "logits": "last",
        "latent": None,
    }


def test_the_rows(fine, tiny):
    """Two sequences of 7: 14·15,392 + 2·360·28; 6·8,177·14 = 686,868; attention projects with 14·2·3·1,040 = 87,360."""
    rows = list(csv.reader(io.StringIO(fine("flops", tiny, "--seq-len", "7", "--batch", "2", "--format", "csv"))))
    assert [row[1:] for row in rows if row[0] == "FLOPs"] == [
        ["new tokens", "tokens", "7", "", "exact"],
        ["forward", "FLOPs", "235648", "", "exact"],
        ["weights", "FLOPs", "215488", "", "exact"],
        ["attention core", "FLOPs", "20160", "", "exact"],
        ["attention core share", "", "0.085551", "", "exact"],  # 20,160 / 235,648
        ["per new token", "FLOPs", "16832", "", "exact"],  # 235,648 / 14
        ["train (3 x forward)", "FLOPs", "706944", "", "exact"],
        ["6·N·D, all parameters", "FLOPs", "686868", "", "estimate"],
        ["train / 6·N·D", "", "1.029228", "", "estimate"],  # 706,944 / 686,868
    ]
    parts = {row[1]: row[3] for row in rows if row[0] == "by component"}
    assert parts == {"attention": str(87_360 + 20_160), "feed_forward": str(14 * 2 * 3 * 1_443), "head": str(14 * 494)}


def test_no_row_of_training_where_nothing_is_trained(fine, tiny):
    text = fine("flops", tiny, "--seq-len", "7", "--logits", "last")
    assert "train" not in text
    assert "6·N·D" not in text


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ("--seq-len 7", "tiny: 117.82 kFLOP forward for 7 tokens"),
        ("--seq-len 7 --batch 2", "tiny: 235.65 kFLOP forward for 2 x 7 tokens"),
        ("--seq-len 1", "tiny: 15.75 kFLOP forward for 1 token"),
        ("--seq-len 1 --batch 2", "tiny: 31.50 kFLOP forward for 2 x 1 token"),
    ],
)
def test_the_title_says_the_answer(fine, tiny, options, title):
    assert fine("flops", tiny, *options.split()).splitlines()[0] == title


def test_the_assumptions_are_said(fine, tiny):
    options = ["--seq-len", "2", "--past-tokens", "5", "--batch", "3"]
    note = fine("flops", tiny, *options).splitlines()[-1]
    for part in ("batch 3", "5 past tokens", "logits of every token", "mask and window allow"):
        assert part in note
    note = fine("flops", tiny, *options, "--counting", "rectangle", "--logits", "last").splitlines()[-1]
    assert "logits of the last token" in note
    assert "every query with every key" in note


def test_without_a_length_each_model_takes_its_own_context(fine):
    data = json.loads(fine("flops", "gpt2", "8b", "--json"))
    assert [row["workload"]["new_tokens"] for row in data] == [1_024, 8_192]
    assert ["new", "tokens", "1,024", "8,192"] in [line.split() for line in fine("flops", "gpt2", "8b").splitlines()]


def test_several_models_are_columns_without_shares(fine, tiny, windowed):
    rows = list(csv.reader(io.StringIO(fine("flops", tiny, windowed, "--seq-len", "7", "--format", "csv"))))
    assert rows[0] == ["section", "quantity", "unit", "tiny", "windowed", "status"]
    # Windowed: weights 2·(5·(1,040 + 962) + 247) = 20,514 a token; 120 a pair, of which a window of 5 leaves 15 + 2·5.
    assert rows[1] == ["FLOPs", "new tokens", "tokens", "7", "7", "exact"]
    assert rows[2] == ["FLOPs", "forward", "FLOPs", "117824", str(7 * 20_514 + 120 * (4 * 25 + 28)), "exact"]
    assert {row[0] for row in rows} == {"section", "FLOPs", "note"}


def test_prefill_is_the_sum_of_decode_steps(fine, windowed):
    steps = [
        counted(fine("flops", windowed, "--seq-len", "1", "--past-tokens", past, "--json"))[0] for past in range(7)
    ]
    assert sum(steps) == counted(fine("flops", windowed, "--seq-len", "7", "--json"))[0]


def test_a_model_without_a_context_needs_a_length(refused, windowed):
    what, hint = refused("flops", windowed)
    assert what == "windowed has no context_length"
    assert "--seq-len 8k" in hint


@pytest.mark.parametrize(
    ("option", "word", "hint"),
    [
        ("--counting", "atended", "attended"),
        ("--counting", "square", "attended, rectangle"),
        ("--logits", "lst", "last"),
        ("--logits", "everything", "all, last"),
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest(refused, option, word, hint):
    what, told = refused("flops", "gpt2", option, word)
    assert option.removeprefix("--") in what
    assert word in what
    assert hint in told
