from __future__ import annotations

import pytest

from costcalc.sources.schema import schema_rows, written_schema
from costcalc.sources.synonyms import OURS, meant

ROWS = schema_rows(written_schema())
WORDS = {key.rpartition(".")[2] for key, _, _ in ROWS} | {word for _, takes, _ in ROWS for word in takes.split(" | ")}
LAYER = {"attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"kind": "gated", "d_ff": 37}}
MODEL = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [LAYER]}


def test_every_synonym_leads_to_a_word_that_may_be_written():
    assert set(OURS) <= WORDS


def test_what_it_means_goes_before_how_it_is_spelled_and_only_where_it_may_stand():
    assert meant("head_size", ["heads", "head_dim"]) == ["head_dim"]
    assert meant("Head-Size", ["heads", "head_dim"]) == ["head_dim"]
    assert meant("head_size", ["heads", "kv_heads"]) == ["heads"]
    assert meant("xyzzy", ["heads", "head_dim"]) == []


@pytest.mark.parametrize(
    ("place", "written", "word"),
    [
        ("top", "dim", "d_model"), ("top", "n_layers", "layers"), ("top", "max_position_embeddings", "context_length"),
        ("top", "vocab", "vocab_size"), ("top", "tied", "tie_embeddings"), ("top", "rope_theta", "positions"),
        ("layer", "mlp", "feed_forward"), ("layer", "attn", "attention"), ("layer", "count", "repeat"),
        ("attention", "d_head", "head_dim"), ("attention", "head", "heads"), ("attention", "n_heads", "heads"),
        ("attention", "num_key_value_heads", "kv_heads"), ("attention", "kv_head", "kv_heads"),
        ("attention", "qkv_bias", "bias"), ("attention", "sliding_window", "window"),
        ("feed_forward", "hidden_size", "d_ff"), ("feed_forward", "hidden_act", "activation"),
        ("positions", "base", "theta"), ("norm", "epsilon", "eps"),
    ],
)  # fmt: skip
def test_a_key_of_another_tool_is_known(refusal, place, written, word):
    layer = {**LAYER, "attention": dict(LAYER["attention"]), "feed_forward": dict(LAYER["feed_forward"])}
    model = {**MODEL, "layers": [layer], "positions": {"kind": "rope"}, "norm": {"kind": "rmsnorm"}}
    home = {"top": model, "layer": layer, "positions": model["positions"], "norm": model["norm"]}.get(place)
    (layer[place] if home is None else home)[written] = 3
    error = refusal(model)
    assert f"unknown key `{written}`" in error.what
    assert f"did you mean `{word}`?" in error.hint


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"norm": "rms"}, "rmsnorm"), ({"norm": "LayerNorm"}, "layernorm"), ({"norm": "layer_norm"}, "layernorm"),
        ({"positions": "rotary"}, "rope"), ({"positions": "rop"}, "rope"), ({"positions": "sinusoid"}, "sinusoidal"),
        ({"attention": "gqa"}, "grouped_query"), ({"attention": "mha"}, "grouped_query"),
        ({"feed_forward": "swiglu"}, "gated"), ({"feed_forward": "gate"}, "gated"), ({"feed_forward": "MLP"}, "dense"),
        ({"feed_forward": {"d_ff": 37, "activation": "swish"}}, "silu"),
        ({"feed_forward": {"d_ff": 37, "activation": "GELU"}}, "gelu"),
        ({"norms": "pre-norm"}, "pre"), ({"norms": "sandwhich"}, "sandwich"), ({"parallel": "onenorm"}, "one_norm"),
    ],
    ids=str,
)  # fmt: skip
def test_a_kind_or_value_of_another_name_is_known(refusal, changes, word):
    assert refusal({**MODEL, "layers": [{**LAYER, **changes}]}).hint == f"did you mean `{word}`?"
