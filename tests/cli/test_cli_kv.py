"""`costcalc kv` on the models of conftest.py: 2·3·2·5 = 60 elements a token, 20 a layer."""

import csv
import io
import json

import pytest

KEYS = ("kv_cache_elements", "kv_cache_bytes", "kv_bytes_per_token")


def held(text):
    data = json.loads(text)
    return tuple(data[key] for key in KEYS)


@pytest.mark.parametrize(
    ("options", "elements", "size", "adds"),
    [
        ("", 660, 1_320, 120),  # the model's own context of 11, in bf16
        ("--context 7", 420, 840, 120),
        ("--context 7 --batch 2", 840, 1_680, 240),
        ("--context 7 --dtype fp32", 420, 1_680, 240),
        ("--context 7 --dtype fp8", 420, 420, 60),
        ("--context 7 --dtype FP8_E4M3", 420, 420, 60),
        ("--context 7 --dtype q8_0", 420, 447, 63),  # 446.25 up; 480·34/32 = 510
        ("--context 7 --dtype q8_0 --batch 2", 840, 893, 127),  # 892.5 up; 960·34/32 = 1,020
        ("--context 7 --dtype int4", 420, 210, 30),
    ],
)
def test_what_is_held(fine, tiny, options, elements, size, adds):
    assert held(fine("kv", tiny, *options.split(), "--json")) == (elements, size, adds)


def test_layers_with_a_window_stop_growing(fine, windowed):
    """Four layers hold at most 5 tokens, one holds all 7: 4·20·5 + 20·7 = 540; only the one grows, by 20."""
    assert held(fine("kv", windowed, "--context", "7", "--json")) == (540, 1_080, 40)
    assert held(fine("kv", windowed, "--context", "4", "--json")) == (400, 800, 200)
    assert held(fine("kv", windowed, "--context", "5", "--json")) == (500, 1_000, 40)


def test_the_rows(fine, tiny):
    rows = list(csv.reader(io.StringIO(fine("kv", tiny, "--context", "7", "--batch", "2", "--format", "csv"))))
    assert rows == [
        ["section", "quantity", "unit", "tiny", "status"],
        ["KV cache", "context", "tokens", "7", "exact"],
        ["KV cache", "cache", "bytes", "1680", "exact"],
        ["KV cache", "next token adds", "bytes", "240", "exact"],
        ["KV cache", "keys and values", "elements", "840", "exact"],
        ["note", "2 sequences, bf16; exact, before an engine's paging", "", "", ""],
    ]


def test_the_title_and_the_assumptions(fine, tiny):
    lines = fine("kv", tiny, "--context", "7", "--batch", "2", "--dtype", "half").splitlines()
    assert lines[0] == "tiny: 1.64 KiB at 7 tokens"
    assert lines[-1].startswith("note: 2 sequences, fp16; exact")
    assert fine("kv", tiny).splitlines()[-1].startswith("note: 1 sequence, bf16; exact")


def test_several_models_are_columns_at_one_context(fine):
    """8k, batch 32, bf16: 2·32 layers·32 or 8 heads·128·8,192·32 elements."""
    data = json.loads(fine("kv", "7b", "8b", "--context", "8k", "--batch", "32", "--dtype", "bf16", "--json"))
    assert [row["kv_cache_bytes"] for row in data] == [137_438_953_472, 34_359_738_368]
    assert [(row["context"], row["batch"], row["dtype"]) for row in data] == [(8_192, 32, "bf16")] * 2


def test_without_a_context_each_model_takes_its_own(fine):
    assert [row["context"] for row in json.loads(fine("kv", "gpt2", "7b", "8b", "--json"))] == [1_024, 4_096, 8_192]


def test_the_same_model_twice_is_told_apart(fine):
    lines = fine("kv", "gpt2", "gpt2").splitlines()
    assert "gpt2 #1: 36.00 MiB" in lines[0]
    assert "gpt2 #2: 36.00 MiB" in lines[0]
    assert lines[2].split() == ["KV", "cache", "(exact)", "gpt2", "#1", "gpt2", "#2"]


@pytest.mark.parametrize(
    ("command", "context", "warns"),
    [
        ("kv gpt2 --context 8k", "8,192", True),
        ("kv gpt2 --context 1025", "1,025", True),
        ("kv gpt2 --context 1024", "1,024", False),
        ("kv 8b --context 1M", "1,048,576", False),  # RoPE has no last row
        ("show gpt2 --context 8k", "8,192", True),
        ("show gpt2", "1,024", False),
        ("flops gpt2 --seq-len 8k", "8,192", True),
        ("flops gpt2 --seq-len 1 --past-tokens 1024", "1,025", True),
        ("flops gpt2 --seq-len 24 --past-tokens 1000", "1,024", False),
    ],
)
def test_a_context_beyond_the_position_table_is_noted(fine, command, context, warns):
    notes = fine(*command.split(), "--format", "markdown").partition("\n- ")[2]
    assert (f"{context} tokens are more than the 1,024 rows of gpt2's position table" in notes) == warns


def test_a_model_without_a_context_needs_one(refused, windowed):
    what, hint = refused("kv", windowed)
    assert what == "windowed has no context_length"
    assert "--context 8k" in hint


@pytest.mark.parametrize(
    ("word", "hint"),
    [("bf17", "bf16"), ("q8", "q8_0"), ("float23", "float32"), ("fp4", "mxfp4"), ("zzz", "bf16, fp8")],
)
@pytest.mark.parametrize("command", ["kv", "show"])
def test_an_unknown_dtype_is_refused_with_the_nearest(refused, command, word, hint):
    what, told = refused(command, "gpt2", "--dtype", word)
    assert word in what
    assert hint in told
