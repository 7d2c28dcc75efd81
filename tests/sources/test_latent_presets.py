"""Presets with latent attention: the published totals, and field by field what the importer reads from config.json."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.calculators import kv_cache as calculators
from costcalc.units import matches_printed

Config = dict[str, Any]


def _auto_map(stem: str, word: str) -> dict[str, str]:
    return {
        "AutoConfig": f"configuration_{stem}.{word}Config",
        "AutoModel": f"modeling_{stem}.{word}Model",
        "AutoModelForCausalLM": f"modeling_{stem}.{word}ForCausalLM",
    }


YARN = {
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 40,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
    "type": "yarn",
}
FP8 = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}
V2: Config = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": _auto_map("deepseek", "DeepseekV2"),
    "aux_loss_alpha": 0.001,
    "bos_token_id": 100000,
    "eos_token_id": 100001,
    "ep_size": 1,
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": 5120,
    "initializer_range": 0.02,
    "intermediate_size": 12288,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "model_type": "deepseek_v2",
    "moe_intermediate_size": 1536,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 160,
    "n_shared_experts": 2,
    "norm_topk_prob": False,
    "num_attention_heads": 128,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 60,
    "num_key_value_heads": 128,
    "pretraining_tp": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-06,
    "rope_scaling": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
    "rope_theta": 10000,
    "routed_scaling_factor": 16.0,
    "scoring_func": "softmax",
    "seq_aux": True,
    "tie_word_embeddings": False,
    "topk_group": 3,
    "topk_method": "group_limited_greedy",
    "torch_dtype": "bfloat16",
    "transformers_version": "4.39.3",
    "use_cache": True,
    "v_head_dim": 128,
    "vocab_size": 102400,
}
V3: Config = {
    **V2,
    "architectures": ["DeepseekV3ForCausalLM"],
    "auto_map": _auto_map("deepseek", "DeepseekV3"),
    "bos_token_id": 0,
    "eos_token_id": 1,
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "quantization_config": FP8,
    "rope_scaling": YARN,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "transformers_version": "4.33.1",
    "vocab_size": 129280,
}
K2: Config = {
    **V3,
    "bos_token_id": 163584,
    "eos_token_id": 163585,
    "first_k_dense_replace": 1,
    "max_position_embeddings": 131072,
    "model_type": "kimi_k2",
    "n_group": 1,
    "n_routed_experts": 384,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "num_nextn_predict_layers": 0,
    "rope_scaling": {**YARN, "beta_fast": 1.0, "factor": 32.0},
    "rope_theta": 50000.0,
    "routed_scaling_factor": 2.827,
    "topk_group": 1,
    "transformers_version": "4.48.3",
    "vocab_size": 163840,
}
# The keys of each model's config.json on the hub.
CONFIGS: dict[str, Config] = {
    "deepseek-v2-lite": {
        **{key: value for key, value in V2.items() if key != "ep_size"},
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "moe_intermediate_size": 1408,
        "n_group": 1,
        "n_routed_experts": 64,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "num_key_value_heads": 16,
        "q_lora_rank": None,
        "routed_scaling_factor": 1.0,
        "topk_group": 1,
        "topk_method": "greedy",
    },
    "deepseek-v2": V2,
    "deepseek-v3": V3,
    "kimi-k2": K2,
    "minicpm3-4b": {
        "architectures": ["MiniCPM3ForCausalLM"],
        "auto_map": _auto_map("minicpm", "MiniCPM3"),
        "bos_token_id": 1,
        "dim_model_base": 256,
        "eos_token_id": [2, 73440],
        "hidden_act": "silu",
        "hidden_size": 2560,
        "initializer_range": 0.1,
        "intermediate_size": 6400,
        "kv_lora_rank": 256,
        "max_position_embeddings": 32768,
        "model_type": "minicpm3",
        "num_attention_heads": 40,
        "num_hidden_layers": 62,
        "num_key_value_heads": 40,
        "q_lora_rank": 768,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "type": "longrope",
            "long_factor": [1.0] * 16,
            "short_factor": [1.0] * 16,
            "original_max_position_embeddings": 32768,
        },
        "scale_depth": 1.4,
        "scale_emb": 12,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.41.0",
        "use_cache": True,
        "vocab_size": 73448,
    },
}
# Total and active parameters, and those in buffers.
COUNTS = {
    "deepseek-v2-lite": (15_706_484_224, 2_661_150_208, 0),
    "deepseek-v2": (235_741_434_880, 21_375_800_320, 0),
    "deepseek-v3": (671_026_404_352, 37_552_282_624, 14_848),
    "kimi-k2": (1_026_408_209_408, 32_861_477_888, 23_040),
    "minicpm3-4b": (4_073_875_968, 4_073_875_968, 0),
}
PRINTED = {"kimi-k2": "1T", "minicpm3-4b": "4.07B"}
REMARKS = {"name", "source", "published_parameters"}


@pytest.mark.parametrize("name", COUNTS)
def test_preset_and_published_config_are_one_model(name):
    preset, read = load(name), load(CONFIGS[name])
    assert preset.model_dump(exclude=REMARKS) == read.model_dump(exclude=REMARKS)
    assert preset.inventory == read.inventory
    count = parameters(preset)
    assert (count.total, count.active, count.buffers) == COUNTS[name]
    assert preset.published_parameters == PRINTED.get(name, count.total)
    assert matches_printed(count.total, PRINTED.get(name, str(count.total)))


def test_deepseek_v3_worked_out():
    """D=7,168, N=128, R_q=1,536, R=512, nope=128, rope=64, v=128; 3 layers of F=18,432, 58 of 256 experts of 2,048."""
    d = 7168
    attention = d * 1536 + 1536 + 1536 * 128 * 192 + d * 576 + 512 + 512 * 128 * 256 + 128 * 128 * d
    expert = 3 * d * 2048
    sparse, tables = 256 * d + 257 * expert, 2 * 129_280 * d
    total = tables + 61 * (attention + 2 * d) + 3 * 3 * d * 18_432 + 58 * sparse + d
    count = parameters(load("deepseek-v3"))
    assert count.total == total == 671_026_404_352
    assert count.active == total - 58 * 248 * expert == 37_552_282_624
    assert count.active - tables // 2 == 36_625_603_584
    # Layer 61: three norms, 2D -> D, a layer with experts and their correction; and its own copies of both tables.
    module = 3 * d + 2 * d * d + attention + 2 * d + sparse + 256
    assert (module, tables) == (11_610_068_224, 1_853_358_080)
    assert count.extra == module + tables
    assert matches_printed(total + 14_848 + module + tables, "684.5B")  # the hub's page rounds that to 685B


@pytest.mark.parametrize(
    ("name", "per_token"),
    # Layers · (R + rope) · 2 bytes.
    [("deepseek-v2-lite", 27 * 576 * 2), ("deepseek-v2", 60 * 576 * 2), ("deepseek-v3", 70_272),
     ("kimi-k2", 70_272), ("minicpm3-4b", 62 * 288 * 2)],
)  # fmt: skip
def test_bytes_of_a_token(name, per_token):
    assert kv_cache(load(name), 1).bytes_per_token == per_token


def test_a_long_request_of_deepseek_v3():
    """163,840 tokens in bf16: latents, and keys and values of 128 heads, of 192 and 128 numbers, instead."""
    arch = load("deepseek-v3")
    assert kv_cache(arch, 163_840).bytes == 163_840 * 70_272
    assert round(163_840 * 70_272 / 2**30, 4) == 10.7227
    decompressed = calculators.kv_cache(arch.inventory.decompressed, 163_840)
    assert decompressed.bytes == 163_840 * 61 * 128 * (192 + 128) * 2 == 163_840 * 4_997_120


def test_a_prefill_of_deepseek_v2_lite():
    """16 tokens: every matrix but tables, norms and the 58 experts of a layer that a token does not meet; 136 pairs."""
    d, layers, sparse = 2048, 27, 26
    attention = d * 16 * 192 + d * 576 + 512 * 16 * 256 + 16 * 128 * d
    token = layers * attention + 3 * d * 10_944 + sparse * (64 * d + 8 * 3 * d * 1408) + 102_400 * d
    counted = flops(load("deepseek-v2-lite"), Workload(new_tokens=16))
    assert counted.weights == 2 * 16 * token
    assert counted.attention == 2 * layers * 136 * 16 * (192 + 128)


@pytest.mark.parametrize(
    ("changes", "total", "active"),
    [
        # Moonlight-16B-A3B: DeepSeek-V3's class at V2-Lite's size, "16B", "3B" of which are active with it.
        (
            {
                "hidden_size": 2048, "intermediate_size": 11264, "moe_intermediate_size": 1408, "n_routed_experts": 64,
                "n_shared_experts": 2, "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts_per_tok": 6,
                "num_hidden_layers": 27, "q_lora_rank": None, "rope_scaling": None, "routed_scaling_factor": 2.446,
                "max_position_embeddings": 8192, "model_type": "deepseek_v3",
            },
            15_960_108_544,
            2_914_774_528,
        ),
        ({}, 1_026_408_209_408, 32_861_477_888),
    ],
)  # fmt: skip
def test_kin_of_kimi(changes, total, active):
    count = parameters(load({**K2, **changes}))
    assert (count.total, count.active) == (total, active)


def test_glm_4_7_flash():
    """Its layer for further tokens is named and not counted."""
    config = {
        "architectures": ["Glm4MoeLiteForCausalLM"],
        "attention_bias": False,
        "dtype": "bfloat16",
        "eos_token_id": [154820, 154827, 154829],
        "first_k_dense_replace": 1,
        "hidden_act": "silu",
        "hidden_size": 2048,
        "intermediate_size": 10240,
        "kv_lora_rank": 512,
        "max_position_embeddings": 202752,
        "model_type": "glm4_moe_lite",
        "moe_intermediate_size": 1536,
        "n_group": 1,
        "n_routed_experts": 64,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_attention_heads": 20,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 47,
        "num_key_value_heads": 20,
        "num_nextn_predict_layers": 1,
        "partial_rotary_factor": 1.0,
        "q_lora_rank": 768,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "routed_scaling_factor": 1.8,
        "tie_word_embeddings": False,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "v_head_dim": 256,
        "vocab_size": 154880,
    }
    count = parameters(load(config))
    assert (count.total, count.buffers) == (29_943_390_976, 46 * 64)
    assert count.not_counted == ("multi-token-prediction layers",)
