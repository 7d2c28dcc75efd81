"""`costcalc train` on the models of conftest.py, most of it 77 tokens in 11 sequences of 7.

tiny: 8,177 parameters, 7,540 of them in no table; matrices of the layers 7,449 and with the head 7,696, 15,392 FLOPs a
token; a pair takes 120 FLOPs in each of three layers.
"""

import csv
import io
import json
import re

import pytest

NAMES = [
    *("exact_attended", "exact_rectangle", "half_rectangle", "6nd_total", "6nd_non_embedding", "kaplan", "palm"),
    *("megatron", "megatron_full_recompute", "chinchilla", "rule_of_thumb"),
]
WORKED = {
    # name: (total, weights' part, core's part) of 77 tokens in sequences of 7
    "exact_attended": (3_888_192, 3_555_552, 332_640),  # 3·77·15,392; 3·11·360·28
    "exact_rectangle": (4_137_672, 3_555_552, 582_120),  # 3·11·360·49
    "half_rectangle": (3_846_612, 3_555_552, 291_060),
    "6nd_total": (3_777_774, 3_777_774, 0),  # 6·8,177·77
    "6nd_non_embedding": (3_483_480, 3_483_480, 0),  # 6·7,540·77
    "kaplan": (3_774_540, 3_483_480, 291_060),  # 3·(2·7,540 + 2·3·7·6·5)·77
    "palm": (4_359_894, 3_777_774, 582_120),  # (6·8,177 + 12·3·6·5·7)·77
    "megatron": (3_177_174, 2_924_922, 252_252),  # 72·77·3·169·(1 + 7/78 + 19/468) = 6,006·(468 + 42 + 19)
    "megatron_full_recompute": (4_198_194, 3_861_858, 336_336),  # 6,006·(624 + 56 + 19)
    "chinchilla": (4_339_104, 3_669_666, 669_438),  # 3·(2·19·13 + 2·7,696 + 3·(4·7·30 + 3·6·7))·77
    "rule_of_thumb": (3_441_438, 3_441_438, 0),  # 6·7,449·77
}
# Layers of two kinds: the model has no single N and has no single H.
MIXED = """\
name: mixed
vocab_size: 19
d_model: 13
context_length: 7
norm: rmsnorm
layers:
  - {attention: {heads: 6, kv_heads: 2, head_dim: 5}, feed_forward: {d_ff: 37}}
  - {attention: {heads: 3, kv_heads: 1, head_dim: 7}, feed_forward: {d_ff: 37}}
"""
PLAIN = "name: plain\nvocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n"


@pytest.fixture
def asked(fine):
    return lambda *words: json.loads(fine("train", *words, "--json"))


def by_name(data):
    return {way["name"]: way for way in data["conventions"]}


def test_every_convention_worked_out(asked, tiny):
    data = asked(tiny, "--tokens", "77", "--seq-len", "7")
    ways = by_name(data)
    assert list(ways) == NAMES
    assert {
        name: (way["train_flops"], way["weight_flops"], way["attention_flops"]) for name, way in ways.items()
    } == WORKED
    assert {name: way["ratio_to_exact"] for name, way in ways.items()} == {
        name: round(total / 3_888_192, 6) for name, (total, _, _) in WORKED.items()
    }
    assert {name for name, way in ways.items() if way["status"] == "exact"} == {"exact_attended", "exact_rectangle"}
    assert {way["status"] for way in ways.values()} == {"exact", "estimate"}
    assert data["train_flops"] == 3_888_192


def test_the_formula_and_the_paper_of_each(asked, tiny):
    ways = by_name(asked(tiny, "--tokens", "77"))
    assert ways["kaplan"]["formula"] == "3·(2·P_non_embedding + 2·L·S·N·H)·t"
    assert ways["palm"]["formula"] == "(6·P + 12·L·N·H·S)·t"
    assert ways["megatron"]["formula"] == "72·t·L·D^2·(1 + S / (6·D) + V / (12·L·D))"
    papers = {"kaplan": "2001.08361", "palm": "2204.02311", "megatron": "2104.04473", "chinchilla": "2203.15556"}
    for name, paper in papers.items():
        assert paper in ways[name]["source"]
    assert all(way["why"] and way["formula"] for way in ways.values())


@pytest.mark.parametrize(
    ("tokens", "seq_len", "whole", "rest", "weights", "core"),
    [
        (77, 7, 11, 0, 3_555_552, 332_640),
        (80, 7, 11, 3, 3_694_080, 339_120),  # 80·3·15,392; 3·360·(11·28 + 6)
        (3, 7, 0, 3, 138_528, 6_480),  # a shorter sequence alone
        (7, 7, 1, 0, 323_232, 30_240),
        (1, 1, 1, 0, 46_176, 1_080),
    ],
)
def test_what_is_left_over_is_a_shorter_sequence(asked, tiny, tokens, seq_len, whole, rest, weights, core):
    data = asked(tiny, "--tokens", tokens, "--seq-len", seq_len)
    assert (data["tokens"], data["seq_len"]) == (tokens, seq_len)
    assert (data["sequences"], data["tokens_of_a_shorter_sequence"]) == (whole, rest)
    exact = by_name(data)["exact_attended"]
    assert (exact["weight_flops"], exact["attention_flops"]) == (weights, core)


def test_layers_with_a_window(asked, windowed):
    """11·(4·25 + 28) pairs and as many rectangles of 49 in five layers: the cache hands over all 7 of a prefill."""
    ways = by_name(asked(windowed, "--tokens", "77", "--seq-len", "7"))
    assert ways["exact_attended"]["attention_flops"] == 3 * 120 * 11 * 128
    assert ways["exact_rectangle"]["attention_flops"] == 3 * 120 * 11 * 5 * 49
    assert ways["exact_attended"]["weight_flops"] == 3 * 77 * 20_514


def test_the_rows(fine, tiny):
    text = fine("train", tiny, "--tokens", "77", "--seq-len", "7", "--format", "csv")
    rows = list(csv.reader(io.StringIO(text)))
    ratios = ["FLOPs", "ratio", "weights' part", "core's part"]
    assert rows[0] == ["section", "quantity", "unit", *ratios, "formula", "why it differs", "status"]
    assert rows[1] == [
        "training",
        "exact_attended",
        "FLOPs",
        "3888192",
        "1.000000",
        "1.000000",
        "1.000000",
        "",
        "",
        "exact",
    ]
    assert rows[7] == ["training", "palm", "FLOPs", "4359894", "1.121317", "1.062500", "1.750000", "", "", "estimate"]
    assert [row[1] for row in rows[1:12]] == [row[1] for row in rows[12:23]] == NAMES
    assert rows[18][7] == "(6·P + 12·L·N·H·S)·t"
    assert "published MFUs use it" in rows[18][8]


def test_the_title_and_the_notes(fine, tiny):
    lines = fine("train", tiny, "--tokens", "80", "--seq-len", "7").splitlines()
    assert lines[0] == "tiny: 4.033e+06 FLOPs (4.03 MFLOP) to train on 80 tokens"
    assert lines[-1] == (
        "note: tiny: 11 sequences of 7 tokens and one of 3 tokens; exact counts are three times the forward pass with "
        "all logits; ratios are to exact_attended"
    )
    assert "note: tiny: 11 sequences of 7 tokens; exact" in fine("train", tiny, "--tokens", "77", "--seq-len", "7")
    assert "note: tiny: 1 sequence of 7 tokens and one of 1 token; " in fine(
        "train", tiny, *["--tokens", "8", "--seq-len", "7"]
    )


def test_without_a_length_sequences_are_as_long_as_the_context(asked, tiny):
    assert asked(tiny, "--tokens", "77")["seq_len"] == 11


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ("--tokens 77 --seq-len 11", 0),
        ("--tokens 77 --seq-len 12", 12),
        ("--tokens 5 --seq-len 99", 0),
        ("--tokens 20 --seq-len 99", 20),
    ],
)
def test_a_sequence_beyond_the_position_table_is_noted(fine, asked, tiny, options, warns):
    note = f"{warns} tokens are more than the 11 rows of tiny's position table"
    assert asked(tiny, *options.split()).get("note") == (note if warns else None)
    assert ("position table" in fine("train", tiny, *options.split())) == bool(warns)


def test_a_rule_that_lacks_a_letter_does_not_apply(fine, asked, tmp_path):
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED)
    ways = by_name(asked(path, "--tokens", "77"))
    for name in ("kaplan", "palm", "chinchilla"):
        assert ways[name]["note"] == "the model has no single N and has no single H"
        keys = ("train_flops", "weight_flops", "attention_flops", "ratio_to_exact", "formula", "source")
        assert {ways[name][key] for key in keys} == {None}
    assert ways["megatron"]["train_flops"] == 2_156_154  # 72·77·2·169·(1 + 7/78 + 19/312) = 6,006·(312 + 28 + 19)
    assert all("note" not in ways[name] for name in NAMES if name not in ("kaplan", "palm", "chinchilla"))
    lines = fine("train", path, "--tokens", "77").splitlines()
    assert ["~", "palm", "-"] in [line.split() for line in lines]
    assert "note: mixed: palm does not apply: the model has no single N and has no single H" in lines


def test_a_model_that_lacks_a_letter_takes_no_formula_from_the_other(fine, tiny, tmp_path):
    """The formulas are shown once, whichever of the models has the letters."""
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED)
    for pair in ((path, tiny), (tiny, path)):
        assert "(6·P + 12·L·N·H·S)·t" in fine("train", *pair, "--tokens", "77")


def test_without_attention_there_is_no_ratio_of_cores(fine, tmp_path):
    """3·77·2·(2·481 + 247) = 558,558, and nothing else."""
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN)
    lines = fine("train", path, "--tokens", "77", "--seq-len", "7").splitlines()
    assert ["exact_attended", "558,558", "558.56", "kFLOP", "1.000", "1.000"] in [line.split() for line in lines]


def test_a_published_run(asked):
    """GPT-3 175B on 300B tokens is said to have taken 3.14e23 FLOPs (arXiv 2005.14165, table D.1), which is 6·N·D."""
    ways = by_name(asked("gpt3-175b", "--tokens", "300B"))
    assert f"{ways['6nd_total']['train_flops']:.2e}" == "3.14e+23"
    assert f"{ways['exact_attended']['train_flops']:.2e}" == "3.19e+23"


@pytest.mark.parametrize("model", ["gpt2", "8b", "gemma-2-9b"])
def test_a_step_is_what_flops_says(fine, asked, model):
    """3 sequences of 1,024 tokens."""
    ways = by_name(asked(model, "--tokens", "3072", "--seq-len", "1k"))
    for counting in ("attended", "rectangle"):
        step = json.loads(fine("flops", model, *["--batch", "3", "--seq-len", "1k", "--json", "--counting"], counting))
        assert ways[f"exact_{counting}"]["train_flops"] == step["train_flops"]
        assert ways[f"exact_{counting}"]["weight_flops"] == 3 * step["weight_flops"]


def test_twice_the_tokens_take_twice_the_flops(asked, tiny):
    once, twice = (by_name(asked(tiny, "--tokens", tokens, "--seq-len", "7")) for tokens in (77, 154))
    assert {name: way["train_flops"] for name, way in twice.items()} == {
        name: 2 * way["train_flops"] for name, way in once.items()
    }


def test_several_models_have_tables_of_their_own(fine, asked, tiny, windowed):
    assert [each["model"] for each in asked(tiny, windowed, "--tokens", "77", "--seq-len", "7")] == ["tiny", "windowed"]
    text = fine("train", tiny, windowed, "--tokens", "77", "--seq-len", "7")
    assert re.findall(r"^(\w+): training \(exact, ~ estimate\)", text, re.MULTILINE) == ["tiny", "windowed"]
    assert text.splitlines()[0].startswith("tiny: 3.888e+06 FLOPs (3.89 MFLOP) to train on 77 tokens; windowed: ")
    assert len(re.findall("^convention", text, re.MULTILINE)) == 1


def test_the_same_model_twice_is_told_apart(fine, tiny):
    text = fine("train", tiny, tiny, "--tokens", "77")
    assert re.findall(r"^(tiny #\d): training", text, re.MULTILINE) == ["tiny #1", "tiny #2"]


@pytest.mark.parametrize(
    ("options", "what", "hint"),
    [
        ("", "Missing option '--tokens'", "costcalc train --help"),
        ("--tokens 0", "--tokens must be at least 1, got '0'", "--tokens takes"),
        ("--tokens many", "'many' is not a number that --tokens takes", "15M"),
        ("--tokens 1.5", "--tokens '1.5' is not a whole number", "15M"),
        ("--tokens -5", "'-5' is not a number that --tokens takes", "15M"),
        ("--tokens 1e30", "--tokens '1e30' is more than 1,000,000,000,000,000,000", "15M"),
        ("--tokens 5 --seq-len 0", "--seq-len must be at least 1, got '0'", "8k"),
        ("--tokens 5 --seq-len 5T", "'5T' is not a number that --seq-len takes", "8k"),
        (
            "--tokens 1000000T --seq-len 1",
            "--tokens 1,000,000,000,000,000,000 are more than 1,000,000,000,000,000 sequences",
            "--seq-len 8k",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_type(refused, options, what, hint):
    said, told = refused("train", "gpt2", *options.split())
    assert said == what
    assert hint in told


def test_a_model_without_a_context_needs_a_length(refused, windowed):
    what, hint = refused("train", windowed, "--tokens", "77")
    assert what == "windowed has no context_length"
    assert "--seq-len 8k" in hint


def test_the_working(fine, tiny):
    data = json.loads(fine("train", tiny, "--tokens", "80", "--seq-len", "7", "--explain", "--json"))
    lines = {line["name"]: line for line in data["numbers"]}
    assert data["explained"][:4] == ["sequences", "tokens_of_a_shorter_sequence", "train_flops", "exact_attended"]
    assert lines["sequences"]["with_numbers"] == "floor(80 / 7)"
    assert lines["tokens_of_a_shorter_sequence"]["with_numbers"] == "(80 mod 7)"
    assert lines["palm"]["with_numbers"] == "(6·8,177 + 12·3·6·5·7)·80"
    assert lines["palm.weight_flops"]["with_numbers"] == "(6·8,177 + 12·3·6·5·0)·80"
    assert lines["palm.attention_flops"]["formula"] == "palm - palm.weight_flops"
    assert lines["palm.ratio_to_exact"]["value"] == round(lines["palm"]["value"] / lines["exact_attended"]["value"], 6)
    assert lines["palm.ratio_to_exact"]["status"] == "estimate"
    assert lines["exact_rectangle.ratio_to_exact"]["status"] == "exact"


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("line", ["train 8b gpt2 --tokens 15T", "train 8b --tokens 15T --explain"])
def test_it_fits_a_narrow_terminal(narrow, columns, line):
    assert "722,723,512,320,000,000,000,000" in narrow(columns, *line.split())  # 6·8,030,261,248·15·10^12


def test_as_many_sequences_as_a_workload_holds_and_one_more(fine, refused, tiny):
    assert json.loads(fine("train", tiny, "--tokens", "1000T", "--seq-len", "1", "--json"))["sequences"] == 10**15
    what, _ = refused("train", tiny, "--tokens", str(10**15 + 1), "--seq-len", "1")
    assert what == "--tokens 1,000,000,000,000,001 are more than 1,000,000,000,000,000 sequences"
