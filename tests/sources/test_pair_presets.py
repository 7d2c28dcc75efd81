"""Presets of encoder-decoders and of decoders with ALiBi or multi-query attention: what the published files say."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, load, parameters
from costcalc.units import matches_printed

Config = dict[str, Any]

BART_GENERATION: Config = {
    "bos_token_id": 0, "decoder_start_token_id": 2, "early_stopping": True, "eos_token_id": 2, "forced_bos_token_id": 0,
    "forced_eos_token_id": 2, "no_repeat_ngram_size": 3, "num_beams": 4, "pad_token_id": 1, "use_cache": True,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "task_specific_params": {"summarization": {"length_penalty": 1.0, "max_length": 128}}, "torch_dtype": "float32",
}  # fmt: skip
T5: Config = {
    "architectures": ["T5ForConditionalGeneration"], "decoder_start_token_id": 0, "dropout_rate": 0.1,
    "eos_token_id": 1, "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06,
    "model_type": "t5", "n_positions": 512, "output_past": True, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "vocab_size": 32128,
    "task_specific_params": {"translation_en_to_de": {"max_length": 300, "prefix": "translate English to German: "}},
}  # fmt: skip


def _bart(width: int, layers: int, heads: int, d_ff: int) -> Config:
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("layers", layers), ("attention_heads", heads), ("ffn_dim", d_ff), ("layerdrop", 0.0))
    }
    return {
        "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False,
        "add_final_layer_norm": False, "attention_dropout": 0.1, "classif_dropout": 0.1,
        "architectures": ["BartForConditionalGeneration"],  # the files name BartModel, which has the same parameters
        "classifier_dropout": 0.0, "d_model": width, "dropout": 0.1, "gradient_checkpointing": False, "init_std": 0.02,
        "is_encoder_decoder": True, "max_position_embeddings": 1024, "model_type": "bart", "normalize_before": False,
        "normalize_embedding": True, "num_hidden_layers": layers, "scale_embedding": False, "vocab_size": 50265,
        **sides, **BART_GENERATION,
    }  # fmt: skip


FALCON: Config = {
    "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"], "attention_dropout": 0.0,
    "auto_map": {
        "AutoConfig": "configuration_falcon.FalconConfig", "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
    },
    "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon",
    "new_decoder_architecture": False, "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True,
}  # fmt: skip

# The config.json of each, by hand.
CONFIGS: dict[str, Config] = {
    "t5-small": {**T5, "d_ff": 2048, "d_kv": 64, "d_model": 512, "num_heads": 8, "num_layers": 6},
    "t5-11b": {**T5, "d_ff": 65536, "d_kv": 128, "d_model": 1024, "num_heads": 128, "num_layers": 24},
    "flan-t5-base": {
        **T5, "d_ff": 2048, "d_kv": 64, "d_model": 768, "dense_act_fn": "gelu_new", "feed_forward_proj": "gated-gelu",
        "is_gated_act": True, "num_decoder_layers": 12, "num_heads": 12, "num_layers": 12,
        "relative_attention_max_distance": 128, "tie_word_embeddings": False, "torch_dtype": "float32",
    },
    "bart-base": _bart(768, 6, 12, 3072),
    "bart-large": _bart(1024, 12, 16, 4096),
    "bloom-560m": {
        "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
        "attention_dropout": 0.0, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
        "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 1024, "n_inner": None, "n_layer": 24,
        "num_attention_heads": 16, "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1, "seq_length": 2048,
        "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0,
        "use_cache": True, "vocab_size": 250880,
    },
    "mpt-7b": {
        "architectures": ["MPTForCausalLM"],
        "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
            "attn_type": "multihead_attention", "attn_uses_sequence_id": False, "clip_qkv": None, "prefix_lm": False,
            "qk_ln": False, "softmax_scale": None,
        },
        "auto_map": {
            "AutoConfig": "configuration_mpt.MPTConfig", "AutoModelForCausalLM": "modeling_mpt.MPTForCausalLM",
        },
        "d_model": 4096, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4,
        "init_config": {"name": "kaiming_normal_", "init_nonlinearity": "relu", "verbose": 0}, "init_device": "cpu",
        "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
        "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
        "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
        "use_cache": False, "verbose": 0, "vocab_size": 50432,
    },
    "falcon-rw-1b": {
        **FALCON, "alibi": True, "bias": True, "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 2048,
        "multi_query": False, "num_attention_heads": 32, "num_hidden_layers": 24, "parallel_attn": False,
        "vocab_size": 50304,
    },
    "falcon-7b": {
        **FALCON, "alibi": False, "bias": False, "bos_token_id": 11, "eos_token_id": 11, "hidden_size": 4544,
        "multi_query": True, "num_attention_heads": 71, "num_hidden_layers": 32, "num_kv_heads": 71,
        "parallel_attn": True, "vocab_size": 65024,
    },
}  # fmt: skip

TOTALS = {
    "t5-small": 60_506_624,
    "t5-11b": 11_307_321_344,
    "flan-t5-base": 247_577_856,
    "bart-base": 139_420_416,
    "bart-large": 406_291_456,
    "bloom-560m": 559_214_592,
    "mpt-7b": 6_649_286_656,
    "falcon-rw-1b": 1_311_625_216,
    "falcon-7b": 6_921_720_704,
}
WORDS = {"name", "source", "published_parameters"}
TRANSFORMERS = ("transformer-base", "transformer-big")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_preset_is_what_its_config_says(name):
    preset, read = load(name), load(CONFIGS[name])
    assert preset.model_dump(exclude=WORDS) == read.model_dump(exclude=WORDS)
    assert preset.inventory == read.inventory
    assert parameters(read).total == preset.published_parameters == TOTALS[name]


@pytest.mark.parametrize(
    ("name", "d_model", "d_ff", "heads", "total", "printed"),
    [
        ("transformer-base", 512, 2048, 8, 63_045_632, "65M"),
        ("transformer-big", 1024, 4096, 16, 214_171_648, "213M"),
    ],
)
def test_the_first_transformers(name, d_model, d_ff, heads, total, printed):
    """arXiv 1706.03762, table 3, 6 layers each: biases in the networks alone, one table of 37,000 rows for all.

    63.05M and 214.17M, where the paper prints 65M and 213M: no single vocabulary gives both.
    """
    arch = load(name)
    network, norm = 2 * d_model * d_ff + d_ff + d_model, 2 * d_model
    encoder = 4 * d_model**2 + network + 2 * norm
    decoder = 8 * d_model**2 + network + 3 * norm
    assert parameters(arch).total == 37_000 * d_model + 6 * (encoder + decoder) == total
    assert arch.embedding.scale == d_model**0.5
    assert (arch.published_parameters, matches_printed(total, printed)) == (printed, False)
    for group in arch.groups:
        assert (group.block.norms, group.times) == ("post", 6)
        assert group.block.attention is not None
        assert group.block.attention.sizes(d_model) == (heads, 64)
    assert not arch.encoder.has_final_norm
    assert not arch.decoder.has_final_norm


def test_no_vocabulary_gives_both_printed_figures():
    layers = {name: parameters(load(name)).total - 37_000 * load(name).d_model for name in TRANSFORMERS}
    base = [v for v in range(30_000, 50_000) if matches_printed(v * 512 + layers["transformer-base"], "65M")]
    big = [v for v in range(30_000, 50_000) if matches_printed(v * 1024 + layers["transformer-big"], "213M")]
    assert (base[0], base[-1], big[0], big[-1]) == (39_841, 41_793, 35_368, 36_344)


@pytest.mark.parametrize("name", ["t5-small", "flan-t5-base", "bart-base", *TRANSFORMERS])
def test_encoder_and_decoder_look_up_one_table(name):
    weights = parameters(load(name)).components
    tables = [weight.path for weight in weights if "V" in weight.axes and weight.table]
    assert tables == ["decoder.embedding", *(["head"] if name == "flan-t5-base" else [])]


def test_a_translation_of_t5_small():
    """11 source and 7 target tokens. D = N·H = 512, F = 2,048, six layers each.

    Encoder: 4·D² + 2·D·F a token, 2·11²·D pairs. Decoder: 4·D² + 2·D·F, cross-attention 2·D² for each target and each
    source token; 2·28·D attended pairs (7·8/2), 2·7·11·D of the encoder's. Head: V·D. Two FLOPs each.
    """
    width, d_ff = 512, 2_048
    encoder = 11 * (4 * width**2 + 2 * width * d_ff) + 2 * 11**2 * width
    decoder = 7 * (6 * width**2 + 2 * width * d_ff) + 11 * 2 * width**2 + 2 * 28 * width + 2 * 77 * width
    head = 7 * 32_128 * width
    counted = flops(load("t5-small"), Workload(new_tokens=7, memory_tokens=11))
    assert counted.forward == 2 * (6 * (encoder + decoder) + head)
