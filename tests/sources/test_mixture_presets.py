"""Presets of mixtures with grouped-query attention: published totals, what each token uses, and field by field what the
importer reads from the published config.json.
"""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters

Config = dict[str, Any]

MIXTRAL: Config = {
    "architectures": ["MixtralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mixtral",
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "output_router_logits": False,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0.dev0",
    "use_cache": True,
    "vocab_size": 32000,
}
QWEN3: Config = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "decoder_sparse_step": 1,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "output_router_logits": False,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GPT_OSS: Config = {
    "architectures": ["GptOssForCausalLM"],
    "attention_bias": True,
    "attention_dropout": 0.0,
    "eos_token_id": 200002,
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "initial_context_length": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "max_position_embeddings": 131072,
    "model_type": "gpt_oss",
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "output_router_logits": False,
    "pad_token_id": 199999,
    "quantization_config": {
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens"],
        "quant_method": "mxfp4",
    },
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
        "truncate": False,
    },
    "rope_theta": 150000,
    "router_aux_loss_coef": 0.9,
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "transformers_version": "4.55.0.dev0",
    "use_cache": True,
    "vocab_size": 201088,
}
SCOUT: Config = {
    "attention_bias": False,
    "attention_chunk_size": 8192,
    "attention_dropout": 0.0,
    "attn_scale": 0.1,
    "attn_temperature_tuning": 4,
    "bos_token_id": 200000,
    "eos_token_id": [200001, 200007, 200008],
    "floor_scale": 8192,
    "for_llm_compressor": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 5120,
    "initializer_range": 0.02,
    "interleave_moe_layer_step": 1,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "max_position_embeddings": 10485760,
    "model_type": "llama4_text",
    "no_rope_layers": [],
    "num_attention_heads": 40,
    "num_experts_per_tok": 1,
    "num_hidden_layers": 48,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "output_router_logits": False,
    "pad_token_id": 200018,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 16.0,
        "high_freq_factor": 1.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.0,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_qk_norm": True,
    "vocab_size": 202048,
}
# The keys of each model's config.json on the hub.
CONFIGS: dict[str, Config] = {
    "mixtral-8x7b": MIXTRAL,
    "mixtral-8x22b": {
        **MIXTRAL,
        "hidden_size": 6144,
        "intermediate_size": 16384,
        "max_position_embeddings": 65536,
        "num_attention_heads": 48,
        "num_hidden_layers": 56,
        "rope_theta": 1000000,
        "router_aux_loss_coef": 0.001,
        "transformers_version": "4.38.0",
    },
    "qwen3-30b-a3b": QWEN3,
    "qwen3-235b-a22b": {
        **QWEN3,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "max_window_layers": 94,
        "moe_intermediate_size": 1536,
        "num_attention_heads": 64,
        "num_hidden_layers": 94,
    },
    "gpt-oss-20b": GPT_OSS,
    "gpt-oss-120b": {
        **GPT_OSS,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
        "num_hidden_layers": 36,
        "num_local_experts": 128,
    },
    "llama-4-scout": {
        "architectures": ["Llama4ForConditionalGeneration"],
        "boi_token_index": 200080,
        "eoi_token_index": 200081,
        "image_token_index": 200092,
        "model_type": "llama4",
        "text_config": SCOUT,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0.dev0",
        "vision_config": {"hidden_size": 1408, "model_type": "llama4_vision_model", "num_hidden_layers": 34},
    },
}
# As the checkpoints have them, and how many a token uses, both vocabulary tables included in either.
TOTALS = {
    "mixtral-8x7b": (46_702_792_704, 12_879_925_248),
    "mixtral-8x22b": (140_620_634_112, 39_152_031_744),
    "qwen3-30b-a3b": (30_532_122_624, 3_353_032_704),
    "qwen3-235b-a22b": (235_093_634_560, 22_190_763_520),
    "gpt-oss-20b": (20_914_757_184, 4_187_440_704),
    "gpt-oss-120b": (116_829_156_672, 5_711_982_912),
    "llama-4-scout": (107_769_861_120, 17_172_894_720),
}
REMARKS = {"name", "source", "published_parameters"}
GIB = 2**30


@pytest.mark.parametrize("name", TOTALS)
def test_preset_and_published_config_are_one_model(name):
    preset, read = load(name), load(CONFIGS[name])
    assert preset.model_dump(exclude=REMARKS) == read.model_dump(exclude=REMARKS)
    assert preset.inventory == read.inventory
    count = parameters(preset)
    assert (count.total, count.active) == TOTALS[name]
    assert preset.published_parameters == count.total


def test_mixtral_worked_out():
    # Two tables; 32 layers of attention, 8 experts of 3·D·F, a router of D·8 and two norms; a final norm. Of 8 experts
    # a token uses 2.
    d, expert = 4096, 3 * 4096 * 14_336
    layer = 2 * d * 4096 + 2 * d * 1024 + 8 * expert + 8 * d + 2 * d
    total = 2 * 32_000 * d + 32 * layer + d
    count = parameters(load("mixtral-8x7b"))
    assert (count.total, count.active) == (total, total - 32 * 6 * expert)


def test_a_training_step_of_mixtral_is_of_two_experts():
    """6 · (attention + router + two experts + head) · 1,024 + 12 · 32 · 4,096 · 1,024²: 79.98e12, not the 287.78e12
    that eight experts would be.
    """
    t, d = 1024, 4096
    weights = 32 * (2 * d * 4096 + 2 * d * 1024 + 8 * d + 2 * 3 * d * 14_336) + 32_000 * d
    forward = flops(load("mixtral-8x7b"), Workload(new_tokens=t, counting="rectangle"))
    assert 3 * forward.forward == 6 * weights * t + 12 * 32 * d * t * t == 79_976_586_018_816


def test_gpt_oss_keeps_its_window_in_every_other_layer():
    """32 sequences of 8,192: 12 layers keep all of them, 12 keep 128 tokens, 2·8·64·2 bytes a token and layer."""
    arch = load("gpt-oss-20b")
    kept = kv_cache(arch, 8192, batch=32)
    assert kept.bytes == 32 * (12 * 8192 + 12 * 128) * 2048
    assert kept.bytes / GIB == 6.09375
    # Inside the window every layer keeps every token: 36 · 2,048 bytes of the larger model.
    assert kv_cache(load("gpt-oss-120b"), 128).bytes == 128 * 73_728


def test_scout_keeps_one_chunk_in_three_layers_of_four():
    """131,072 tokens: 12 layers keep them all, 36 one chunk of 8,192, 2·8·128·2 bytes a token and layer."""
    kept = kv_cache(load("llama-4-scout"), 131_072)
    assert kept.bytes == (12 * 131_072 + 36 * 8192) * 4096
    assert kept.bytes / GIB == 7.125


def test_scout_is_its_text_model():
    arch = load("llama-4-scout")
    assert arch.not_counted == ("vision tower",)
    # The class multiplies every token with all 16 experts: what kernels are handed; what counts is one of them.
    expert, t = 3 * 5120 * 8192, 11
    handed = flops(arch, Workload(new_tokens=t, counting="rectangle")).weights
    assert handed - flops(arch, Workload(new_tokens=t)).weights == 2 * t * 48 * 15 * expert


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("gpt-oss-20b", ("local", "global") * 12),
        ("gpt-oss-120b", ("local", "global") * 18),
        ("llama-4-scout", ("chunked", "chunked", "chunked", "global") * 12),
    ],
)
def test_which_layer_is_which(name, layout):
    order = load(name).inventory.layout["decoder"]
    assert tuple(path.rpartition(".")[2] for path in order) == layout
