"""BLOOM, MPT and Falcon: worked-out sums, published totals, and what is refused instead of guessed."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import kv_cache, load, parameters, verify

Config = dict[str, Any]

# V=19, D=42, N=3 (H=14), L=3.
BLOOM: Config = {"model_type": "bloom", "vocab_size": 19, "hidden_size": 42, "n_head": 3, "n_layer": 3}
MPT: Config = {"model_type": "mpt", "vocab_size": 19, "d_model": 42, "n_heads": 3, "n_layers": 3, "max_seq_len": 11}
FALCON: Config = {
    "model_type": "falcon",
    "vocab_size": 19,
    "hidden_size": 42,
    "num_attention_heads": 3,
    "num_hidden_layers": 3,
    "ffn_hidden_size": 37,
}
NEW = {"new_decoder_architecture": True, "num_attention_heads": 6, "hidden_size": 60, "num_kv_heads": 2}
SMALL = {"bloom": BLOOM, "mpt": MPT, "falcon": FALCON}
TABLE, NORM = 19 * 42, 2 * 42
NETWORK = 2 * 42 * 37


def _total(config: Config) -> int:
    return parameters(load(config)).total


# ---------------------------------------------------------------------------------------------------- worked-out sums


@pytest.mark.parametrize(
    ("config", "total"),
    [
        # 4·D² and 8·D² with 4·D and 5·D biases, two LayerNorms; one below the layers and one above.
        (BLOOM, TABLE + 3 * (12 * 42**2 + 9 * 42 + 2 * NORM) + 2 * NORM),
        ({**BLOOM, "tie_word_embeddings": False}, 2 * TABLE + 3 * (12 * 42**2 + 9 * 42 + 2 * NORM) + 2 * NORM),
        # No biases, and LayerNorms of D.
        (MPT, TABLE + 3 * (12 * 42**2 + 2 * 42) + 42),
        # q and output D², k and v D·H = 42·14 each, one norm.
        (FALCON, TABLE + 3 * (2 * 42**2 + 2 * 42 * 14 + NETWORK + NORM) + NORM),
        ({**FALCON, "ffn_hidden_size": None}, TABLE + 3 * (2 * 42**2 + 2 * 42 * 14 + 8 * 42**2 + NORM) + NORM),
        ({**FALCON, "multi_query": False}, TABLE + 3 * (4 * 42**2 + NETWORK + NORM) + NORM),
        ({**FALCON, "parallel_attn": False}, TABLE + 3 * (2 * 42**2 + 2 * 42 * 14 + NETWORK + 2 * NORM) + NORM),
        ({**FALCON, "alibi": True}, TABLE + 3 * (2 * 42**2 + 2 * 42 * 14 + NETWORK + NORM) + NORM),
        # Biases: q and output D, k and v H, the network F and D.
        (
            {**FALCON, "bias": True},
            TABLE + 3 * (2 * 42**2 + 2 * 42 * 14 + 2 * 42 + 2 * 14 + NETWORK + 37 + 42 + NORM) + NORM,
        ),
        # D = 60, N = 6, H = 10, K = 2; two norms, or one.
        ({**FALCON, **NEW}, 19 * 60 + 3 * (2 * 60**2 + 2 * 60 * 20 + 2 * 60 * 37 + 4 * 60) + 2 * 60),
        (
            {**FALCON, **NEW, "num_ln_in_parallel_attn": 1},
            19 * 60 + 3 * (2 * 60**2 + 2 * 60 * 20 + 2 * 60 * 37 + 2 * 60) + 2 * 60,
        ),
        (
            {**FALCON, **NEW, "num_kv_heads": None},
            19 * 60 + 3 * (4 * 60**2 + 2 * 60 * 37 + 4 * 60) + 2 * 60,
        ),
    ],
)
def test_totals(config, total):
    assert _total(config) == total


@pytest.mark.parametrize("config", [BLOOM, MPT, FALCON, {**FALCON, **NEW}, {**FALCON, "alibi": True}])
def test_the_reference_agrees(config):
    assert verify(load(config)).agrees


@pytest.mark.parametrize(
    ("config", "total"),
    [
        ({**BLOOM, "vocab_size": 250880, "hidden_size": 1536, "n_head": 16, "n_layer": 24}, 1_065_314_304),  # bloom-1b1
        ({**BLOOM, "vocab_size": 250880, "hidden_size": 2048, "n_head": 16, "n_layer": 24}, 1_722_408_960),  # bloom-1b7
        ({**BLOOM, "vocab_size": 250880, "hidden_size": 2560, "n_head": 32, "n_layer": 30}, 3_002_557_440),  # bloom-3b
        ({**BLOOM, "vocab_size": 250880, "hidden_size": 4096, "n_head": 32, "n_layer": 30}, 7_069_016_064),  # bloom-7b1
        ({**BLOOM, "vocab_size": 250880, "hidden_size": 14336, "n_head": 112, "n_layer": 70}, 176_247_271_424),  # bloom
        (
            {
                "model_type": "falcon",
                "hidden_size": 8192,
                "new_decoder_architecture": True,
                "num_attention_heads": 128,
                "num_hidden_layers": 60,
                "num_kv_heads": 8,
            },
            41_303_293_952,
        ),  # falcon-40b
    ],
)
def test_published_totals(config, total):
    assert _total(config) == total


def test_what_does_not_show_in_a_total():
    bloom = load({**BLOOM, "seq_length": 23})
    block = bloom.decoder.layers[0]
    assert (bloom.context_length, bloom.longest()) == (23, None)
    assert (block.norms, block.parallel, block.positions.kind) == ("pre", False, "alibi")
    assert (block.positions.max_bias, block.positions.slope_scale) == (8.0, 1.0)
    assert (block.attention.bias, block.attention.out_bias, block.feed_forward.activation) == (True, True, "gelu_tanh")
    mpt = load({**MPT, "attn_config": {"alibi_bias_max": 16, "softmax_scale": 0.5, "clip_qkv": 6.0}})
    block = mpt.decoder.layers[0]
    assert (mpt.context_length, block.positions.max_bias, block.attention.scale) == (11, 16.0, 0.5)
    assert (block.norm.bias, block.feed_forward.bias, block.feed_forward.d_ff) == (False, False, 168)
    falcon = load({**FALCON, "alibi": True}).decoder
    assert falcon.positions.slope_scale == 14**-0.5
    assert falcon.layers[0].parallel == "one_norm"
    assert load({**FALCON, "rope_theta": 5e5}).decoder.positions.theta == 5e5
    assert load({**FALCON, **NEW}).decoder.layers[0].parallel == "two_norms"
    assert load({**FALCON, "parallel_attn": False, "num_ln_in_parallel_attn": 2}).decoder.layers[0].parallel is False


@pytest.mark.parametrize(
    ("changes", "kv_heads", "head_dim"),
    [
        ({}, 1, 14),
        ({"num_kv_heads": 3}, 1, 14),  # falcon-7b's file says 71
        ({"num_kv_heads": 1}, 1, 14),
        ({"multi_query": False}, 3, 14),
        ({"multi_query": False, "num_kv_heads": 3}, 3, 14),
        (NEW, 2, 10),
        ({**NEW, "multi_query": False}, 2, 10),
        ({**NEW, "num_kv_heads": None}, 6, 10),
    ],
)
def test_the_cache_of_falcon(changes, kv_heads, head_dim):
    """What an engine keeps: the library itself expands the new architecture's keys and values to all heads."""
    assert kv_cache(load({**FALCON, **changes}), 5).elements == 2 * 3 * 5 * kv_heads * head_dim


@pytest.mark.parametrize("model_type", SMALL)
def test_keys_of_the_published_files(model_type):
    keys = {
        "bloom": {"n_inner": None, "offset_alibi": 100, "skip_bias_add_qkv": False, "masked_softmax_fusion": True},
        "mpt": {"embedding_fraction": 1.0, "init_config": {"x": 1}, "verbose": 0, "attn_config": {"model_type": ""}},
        "falcon": {"apply_residual_connection_post_layernorm": False, "attention_dropout": 0.1, "ff_factor": 4},
    }[model_type]
    assert load({**SMALL[model_type], **keys}).inventory == load(SMALL[model_type]).inventory


def test_names_of_old_files():
    old = {key: value for key, value in BLOOM.items() if key != "hidden_size"}
    assert load({**old, "n_embed": 42}).inventory == load(BLOOM).inventory
    assert load({**BLOOM, "n_inner": 168}).inventory == load(BLOOM).inventory
    old = {key: value for key, value in FALCON.items() if key != "hidden_size"}
    assert load({**old, "n_embed": 42}).inventory == load(FALCON).inventory


def test_the_class_that_published_mpt_files_name():
    named = {"architectures": ["MPTForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_mpt.MPTForCausalLM"}}
    assert load({**MPT, **named}).inventory == load(MPT).inventory


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("model_type", "key", "value"),
    [
        ("bloom", "n_inner", 100),
        ("bloom", "apply_residual_connection_post_layernorm", True),
        ("bloom", "n_embed", 43),
        ("bloom", "num_key_value_heads", 1),
        ("bloom", "attention_bias", True),
        ("mpt", "no_bias", False),
        ("mpt", "expansion_ratio", 3),
        ("mpt", "expansion_ratio", True),
        ("mpt", "logit_scale", 0.5),
        ("mpt", "norm_type", "rmsnorm"),
        ("mpt", "ffn_config", {"ffn_type": "mptmlp"}),
        ("mpt", "attn_config", [1]),
        ("mpt", "use_pad_tok_in_ffn", False),
        ("falcon", "num_kv_heads", 2),
        ("falcon", "num_ln_in_parallel_attn", 2),
        ("falcon", "apply_residual_connection_post_layernorm", True),
        ("falcon", "alibi", None),
        ("falcon", "bias", 0),
        ("falcon", "activation", "xielu"),
        ("falcon", "n_head_kv", 2),
        ("falcon", "rotary_pct", 0.5),
    ],
)
def test_a_key_that_would_build_something_else(refusal, model_type, key, value):
    assert f"`{key}`" in refusal({**SMALL[model_type], key: value}).what


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alibi", False),
        ("attn_type", "multiquery_attention"),
        ("attn_type", "grouped_query_attention"),
        ("kv_n_heads", 2),
        ("prefix_lm", True),
        ("qk_ln", True),
        ("rope", True),
        ("sliding_window_size", 5),
        ("softmax_scale", 0),
        ("softmax_scale", "x"),
        ("alibi_bias_max", True),
        ("a_key_of_tomorrow", 1),
    ],
)
def test_a_nested_key_of_mpt_that_would_build_something_else(refusal, key, value):
    error = refusal({**MPT, "attn_config": {"alibi": True, key: value}})
    assert error.what.startswith(f"`{key}`")
    assert "in `attn_config`" in error.what


def test_a_nested_null_of_mpt():
    assert load({**MPT, "attn_config": None}).inventory == load(MPT).inventory
    nulls = {"clip_qkv": None, "softmax_scale": None, "alibi_bias_max": None, "kv_n_heads": None}
    assert load({**MPT, "attn_config": nulls}) == load(MPT)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"parallel_attn": False, **NEW}, "`new_decoder_architecture` is of parallel layers"),
        ({**NEW, "num_ln_in_parallel_attn": 3}, "`num_ln_in_parallel_attn` 3 is not what the class can run"),
        ({**NEW, "num_kv_heads": 4}, "heads 6 is not a multiple of kv_heads 4"),
        ({"num_attention_heads": 4}, "`hidden_size` 42 is not a multiple of `num_attention_heads` 4"),
        ({"num_attention_heads": 6}, "RoPE rotates pairs, and a head of 7 is odd"),
        ({"multi_query": False, "num_kv_heads": 1}, "`num_kv_heads` 1, but `multi_query` is false"),
        ({"num_kv_heads": 2}, "`num_kv_heads` 2, but `multi_query` is true: one key/value head"),
    ],
)
def test_what_falcon_cannot_be(refusal, changes, what):
    assert what in refusal({**FALCON, **changes}).what


def test_an_odd_head_without_rotation():
    """6 heads of 7: ALiBi rotates nothing. k and v are D·H = 42·7."""
    config = {**FALCON, "num_attention_heads": 6, "alibi": True}
    assert _total(config) == TABLE + 3 * (2 * 42**2 + 2 * 42 * 7 + NETWORK + NORM) + NORM


def test_heads_that_do_not_divide(refusal):
    assert "heads 5" in refusal({**BLOOM, "n_head": 5}).what
    assert "heads 5" in refusal({**MPT, "n_heads": 5}).what


@pytest.mark.parametrize("named", ["BloomForMaskedLM", "BloomForMultipleChoice", "FalconForCausalLM"])
def test_classes_that_are_not_read(refusal, named):
    assert f"'{named}' is not read for bloom" in refusal({**BLOOM, "architectures": [named]}).what
