"""`costcalc show`: one page, each number of which another command would give (test_json_contract.py compares)."""

import csv
import io
import json

import pytest


def page(text):
    """(section, quantity) -> cells of the models, the share and the status, of CSV."""
    return {(row[0], row[1].strip()): row[3:] for row in csv.reader(io.StringIO(text))}


def test_the_numbers(fine, tiny):
    """One token after 10: 15,392 + 360·11; 11 tokens: 11·15,392 + 360·66 = 193,072; 6·8,177·11 = 539,682."""
    cells = page(fine("show", tiny, "--format", "csv"))
    numbers = {key: value for key, value in cells.items() if key[0] in ("forward FLOPs", "KV cache, bf16")}
    assert [value[0] for value in numbers.values()] == [
        "11",
        "19352",
        "15392",
        "3960",
        "0.204630",  # 3,960 / 19,352
        "193072",
        "0.123063",  # 360·66 / 193,072
        "579216",
        "1.073254",  # 579,216 / 539,682
        "1320",
        "120",
    ]
    assert cells["parameters", "total"] == ["8177", "", "exact"]
    assert cells["by component", "feed_forward"] == ["4329", "0.529412", "exact"]


def test_the_rule_of_thumb(fine, tiny):
    """Matrices of the layers 3·(1,040 + 1,443) = 7,449, vocabulary tables 2·247, 2 FLOPs each, 2 bytes an element."""
    cells = page(fine("show", tiny, "--format", "csv"))
    assert [value[0] for key, value in cells.items() if key[0] == "rule of thumb"] == [
        "7449",
        "494",
        "7943",
        "14898",
        "120",
    ]


def test_counts_are_exact_and_rules_of_thumb_are_estimates(fine, tiny):
    cells = page(fine("show", tiny, "--format", "csv"))
    assert {(section, value[-1]) for (section, _), value in cells.items() if section != "note"} == {
        ("section", "status"),
        ("model", ""),
        ("parameters", "exact"),
        ("by component", "exact"),
        ("forward FLOPs", "exact"),
        ("forward FLOPs", "estimate"),
        ("KV cache, bf16", "exact"),
        ("rule of thumb", "estimate"),
    }


def test_the_rule_of_thumb_is_16_bit_whatever_the_dtype(fine, tiny):
    data = json.loads(fine("show", tiny, "--dtype", "fp8", "--json"))
    assert data["kv_bytes_per_token"] == 60
    assert data["rule_of_thumb"]["kv_bytes_per_token"] == 120


def test_context_and_dtype(fine, tiny):
    data = json.loads(fine("show", tiny, "--context", "7", "--dtype", "f32", "--json"))
    assert (data["context"], data["dtype"], data["kv_cache_bytes"]) == (7, "fp32", 1_680)
    assert data["next_token_flops"] == 15_392 + 360 * 7
    assert data["sequence_forward_flops"] == 117_824
    assert data["sequence_train_flops"] == 353_472
    assert data["sequence_6nd_flops"] == 6 * 8_177 * 7


def test_the_title_says_the_answer(fine, tiny):
    title = fine("show", tiny).splitlines()[0]
    assert title == "tiny: 8,177 parameters, 19.35 kFLOP a token and 1.29 KiB of cache at 11 tokens"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            "8b",
            ["32 of width 4,096", "32 query heads on 8 key/value heads of 128", "gated silu", "rmsnorm, pre, final"],
        ),
        ("8b", ["RoPE, theta 500,000", "head with its own table", "8,192 tokens", "meta-llama/Meta-Llama-3-8B"]),
        ("gpt2", ["12 of width 768", "dense gelu_new", "learned, 1,024 rows", "50,257, tied head", "layernorm"]),
        ("gemma-2-9b", ["local, 21 layers", "window 4,096", "global, 21 layers", "sandwich"]),
        ("phi-2", ["parallel, one norm"]),
    ],
)
def test_what_the_model_is(fine, model, words):
    text = " ".join(fine("show", model, "--format", "csv").split())
    for word in words:
        assert word in text


def test_what_the_model_is_in_json(fine, windowed):
    what = json.loads(fine("show", windowed, "--context", "7", "--json"))["what"]
    assert what["layers"] == "5 of width 13"
    assert [key for key in what if "local" in key] == ["attention (local, 4 layers)", "feed-forward (local, 4 layers)"]
    assert "context" not in what
    assert "source" not in what


def test_a_layer_without_attention_has_no_row_of_it(fine, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text("vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n")
    what = json.loads(fine("show", path, "--context", "7", "--json"))["what"]
    assert "feed-forward" in what
    assert "attention" not in what


def test_layers_with_positions_of_their_own_are_named(fine, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\npositions: {kind: rope, theta: 10000}\n"
        "layers:\n"
        "  - {repeat: 2, attention: {heads: 6, head_dim: 10}}\n"
        "  - {attention: {heads: 6, head_dim: 10}, positions: none}\n"
    )
    said = json.loads(fine("show", path, "--context", "7", "--json"))["what"]["positions"]
    assert said == "RoPE, theta 10,000 (0); none (2)"


def test_what_was_derived_is_said(fine):
    notes = " ".join(fine("show", "7b").partition("note:")[2].split())
    assert "head_dim = d_model / heads = 4,096 / 32 = 128" in notes
    assert "kv_heads = heads = 32" in notes
    derived = json.loads(fine("show", "7b", "--json"))["derived"]
    assert all(fact in notes for fact in derived)
    assert len(derived) == 3


def test_a_model_that_leaves_nothing_to_derive_says_nothing_of_it(fine, tiny):
    tiny.write_text(f"{tiny.read_text()}final_norm: true\ntie_embeddings: false\n")
    assert json.loads(fine("show", tiny, "--json"))["derived"] == []
    assert "derives" not in fine("show", tiny, "--format", "markdown")


def test_buffers_are_no_component(fine, tmp_path):
    """Beside the 1,482 parameters (2·247 + 962 + 2·13) stand 11·13 numbers of a table that is computed."""
    path = tmp_path / "model.yaml"
    path.write_text(
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n"
        "positions: {kind: sinusoidal, stored: buffer, length: 11}\n"
    )
    cells = page(fine("show", path, "--context", "7", "--format", "csv"))
    assert sum(int(value[0]) for key, value in cells.items() if key[0] == "by component") == 1_482
    assert cells["parameters", "buffers"] == ["143", "", "exact"]


def test_the_published_figure_and_the_source_are_in_json(fine):
    data = json.loads(fine("show", "gpt3", "--json"))
    assert data["published_parameters"] == "174.6B"
    assert data["source"].startswith("arXiv 2005.14165")


def test_several_models_are_columns(fine):
    cells = page(fine("show", "7b", "8b", "--format", "csv"))
    assert cells["section", "quantity"] == ["llama-2-7b", "llama-3-8b", "status"]
    assert cells["model", "layers"] == ["32 of width 4,096", "32 of width 4,096", ""]
    assert cells["KV cache, bf16", "at the context"] == ["2147483648", "1073741824", "exact"]
    assert not [key for key in cells if key[0] == "by component"]


def test_a_model_without_a_context_needs_one(refused, windowed):
    what, hint = refused("show", windowed)
    assert what == "windowed has no context_length"
    assert "--context 8k" in hint


def test_what_zaya1_is(fine, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "zaya", "num_hidden_layers": 2}), "utf-8")
    cells = page(fine("show", path, "--format", "csv"))
    described = {label: value[0] for (section, label), value in cells.items() if section == "model"}
    heads = "8 query heads on 2 key/value heads of 128, convolved over 2 and 2 tokens"
    experts = "1 of 16 experts or none (gated silu, 2,048 wide), routed by a network 256 wide"
    assert described["attention (first, 1 layer)"] == described["attention (later, 1 layer)"] == heads
    assert described["feed-forward (later, 1 layer)"] == experts
    assert described["norms"] == "rmsnorm, pre, residual shifted and scaled, final"
    assert described["embedding"] == "shifted and scaled"
