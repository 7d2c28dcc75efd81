"""Encoder presets: the published total, and field by field what the importer reads from the published config.json."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, load, parameters

Config = dict[str, Any]

BERT = {
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 30522,
}
ROBERTA = {
    "architectures": ["RobertaForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 514,
    "model_type": "roberta",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "type_vocab_size": 1,
    "vocab_size": 50265,
}
# The keys of each model's config.json on the hub.
CONFIGS: dict[str, Config] = {
    "bert-base-uncased": BERT,
    "bert-large-uncased": {
        **BERT,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
    },
    "roberta-base": ROBERTA,
    "xlm-roberta-base": {
        **ROBERTA,
        "architectures": ["XLMRobertaForMaskedLM"],
        "model_type": "xlm-roberta",
        "output_past": True,
        "position_embedding_type": "absolute",
        "transformers_version": "4.17.0.dev0",
        "use_cache": True,
        "vocab_size": 250002,
    },
    "distilbert-base-uncased": {
        "activation": "gelu",
        "architectures": ["DistilBertForMaskedLM"],
        "attention_dropout": 0.1,
        "dim": 768,
        "dropout": 0.1,
        "hidden_dim": 3072,
        "initializer_range": 0.02,
        "max_position_embeddings": 512,
        "model_type": "distilbert",
        "n_heads": 12,
        "n_layers": 6,
        "pad_token_id": 0,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
        "transformers_version": "4.10.0.dev0",
        "vocab_size": 30522,
    },
    "albert-base-v2": {
        "architectures": ["AlbertForMaskedLM"],
        "attention_probs_dropout_prob": 0,
        "bos_token_id": 2,
        "classifier_dropout_prob": 0.1,
        "down_scale_factor": 1,
        "embedding_size": 128,
        "eos_token_id": 3,
        "gap_size": 0,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "inner_group_num": 1,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "model_type": "albert",
        "net_structure_type": 0,
        "num_attention_heads": 12,
        "num_hidden_groups": 1,
        "num_hidden_layers": 12,
        "num_memory_blocks": 0,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30000,
    },
    "modernbert-base": {
        "architectures": ["ModernBertForMaskedLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 50281,
        "classifier_activation": "gelu",
        "classifier_bias": False,
        "classifier_dropout": 0.0,
        "classifier_pooling": "mean",
        "cls_token_id": 50281,
        "decoder_bias": True,
        "deterministic_flash_attn": False,
        "embedding_dropout": 0.0,
        "eos_token_id": 50282,
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0,
        "gradient_checkpointing": False,
        "hidden_activation": "gelu",
        "hidden_size": 768,
        "initializer_cutoff_factor": 2.0,
        "initializer_range": 0.02,
        "intermediate_size": 1152,
        "layer_norm_eps": 1e-05,
        "local_attention": 128,
        "local_rope_theta": 10000.0,
        "max_position_embeddings": 8192,
        "mlp_bias": False,
        "mlp_dropout": 0.0,
        "model_type": "modernbert",
        "norm_bias": False,
        "norm_eps": 1e-05,
        "num_attention_heads": 12,
        "num_hidden_layers": 22,
        "pad_token_id": 50283,
        "position_embedding_type": "absolute",
        "reference_compile": True,
        "repad_logits_with_grad": False,
        "sep_token_id": 50282,
        "sparse_pred_ignore_index": -100,
        "sparse_prediction": False,
        "torch_dtype": "float32",
        "transformers_version": "4.47.0.dev0",
        "vocab_size": 50368,
    },
}
# As the hub's checkpoint headers and the library's classes have them, with the masked-LM head.
TOTALS = {
    "bert-base-uncased": 109_514_298,
    "bert-large-uncased": 335_174_458,
    "roberta-base": 124_697_433,
    "xlm-roberta-base": 278_295_186,
    "distilbert-base-uncased": 66_985_530,
    "albert-base-v2": 11_221_680,
    "modernbert-base": 149_655_232,
}
REMARKS = {"name", "source", "published_parameters"}


@pytest.mark.parametrize("name", TOTALS)
def test_preset_and_published_config_are_one_model(name):
    preset, read = load(name), load(CONFIGS[name])
    assert preset.model_dump(exclude=REMARKS) == read.model_dump(exclude=REMARKS)
    assert preset.inventory == read.inventory
    assert preset.published_parameters == parameters(preset).total == TOTALS[name]


def test_bert_base_worked_out():
    # Tables of V, 512 positions and 2 types, a norm; 12 layers of 4·D² + 2·D·F matrices, 4·D + F + D biases, two norms;
    # the head's D² + D, its norm and a bias for each word.
    d, f, v = 768, 3072, 30_522
    layer = 4 * d * d + 2 * d * f + 5 * d + f + 4 * d
    assert parameters(load("bert-base-uncased")).total == (v + 512 + 2) * d + 2 * d + 12 * layer + d * d + 3 * d + v


def test_albert_computes_twelve_layers_with_the_weights_of_one():
    # 12·(4·D² + 2·D·F) of layers, 128·D of the projection, D·128 of the head's and V·128, 2 for each token.
    d, f, t = 768, 3072, 11
    counted = flops(load("albert-base-v2"), Workload(new_tokens=t))
    assert counted.weights == 2 * t * (12 * (4 * d * d + 2 * d * f) + 2 * 128 * d + 30_000 * 128)
    assert counted.attention == 12 * 4 * d * t * t


def test_modernbert_looks_at_64_keys_to_either_side():
    # T = 200: a local query i sees itself, min(i, 64) keys before it and min(199 - i, 64) after it; 14 layers of 22.
    t = 200
    local = sum(min(i, 64) + min(t - 1 - i, 64) + 1 for i in range(t))
    arch = load("modernbert-base")
    assert flops(arch, Workload(new_tokens=t)).attention == 4 * 768 * (14 * local + 8 * t * t)
    layout = arch.inventory.layout["encoder"]
    assert [path.rpartition(".")[2] for path in layout[:7]] == [
        "first", "local", "local", "global", "local", "local", "global",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rows"), [("bert-base-uncased", 512), ("roberta-base", 512), ("modernbert-base", None)]
)
def test_how_long_a_text_may_be(name, rows):
    """RoBERTa's 514 rows begin with two for padding."""
    assert load(name).longest() == rows
