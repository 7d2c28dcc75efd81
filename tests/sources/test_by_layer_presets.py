"""Presets of decoders by layer and in parallel: the published total, and field by field what the importer reads from
the published config.json.
"""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters

Config = dict[str, Any]

VISION: Config = {
    "hidden_size": 1152,
    "image_size": 896,
    "intermediate_size": 4304,
    "model_type": "siglip_vision_model",
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vision_use_head": False,
}
GEMMA_3: Config = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "boi_token_index": 255999,
    "eoi_token_index": 256000,
    "eos_token_id": [1, 106],
    "image_token_index": 262144,
    "initializer_range": 0.02,
    "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0",
    "vision_config": VISION,
}
ROPE_SCALING: Config = {"factor": 8.0, "rope_type": "linear"}
# The keys of each model's config.json on the hub.
CONFIGS: dict[str, Config] = {
    "gemma-3-1b": {
        "architectures": ["Gemma3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_logit_softcapping": None,
        "bos_token_id": 2,
        "cache_implementation": "hybrid",
        "eos_token_id": [1, 106],
        "final_logit_softcapping": None,
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 1152,
        "initializer_range": 0.02,
        "intermediate_size": 6912,
        "max_position_embeddings": 32768,
        "model_type": "gemma3_text",
        "num_attention_heads": 4,
        "num_hidden_layers": 26,
        "num_key_value_heads": 1,
        "pad_token_id": 0,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.50.0.dev0",
        "use_cache": True,
        "vocab_size": 262144,
    },
    "gemma-3-4b": {
        **GEMMA_3,
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": ROPE_SCALING,
            "sliding_window": 1024,
        },
    },
    "gemma-3-12b": {
        **GEMMA_3,
        "text_config": {
            "hidden_size": 3840,
            "intermediate_size": 15360,
            "model_type": "gemma3_text",
            "num_attention_heads": 16,
            "num_hidden_layers": 48,
            "num_key_value_heads": 8,
            "rope_scaling": ROPE_SCALING,
            "sliding_window": 1024,
        },
    },
    "gemma-3-27b": {
        **GEMMA_3,
        "text_config": {
            "head_dim": 128,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "model_type": "gemma3_text",
            "num_attention_heads": 32,
            "num_hidden_layers": 62,
            "num_key_value_heads": 16,
            "query_pre_attn_scalar": 168,
            "rope_scaling": ROPE_SCALING,
            "sliding_window": 1024,
        },
    },
    "falcon-7b": {
        "alibi": False,
        "apply_residual_connection_post_layernorm": False,
        "architectures": ["FalconForCausalLM"],
        "attention_dropout": 0.0,
        "auto_map": {
            "AutoConfig": "configuration_falcon.FalconConfig",
            "AutoModel": "modeling_falcon.FalconModel",
            "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
        },
        "bias": False,
        "bos_token_id": 11,
        "eos_token_id": 11,
        "hidden_dropout": 0.0,
        "hidden_size": 4544,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05,
        "model_type": "falcon",
        "multi_query": True,
        "new_decoder_architecture": False,
        "num_attention_heads": 71,
        "num_hidden_layers": 32,
        "parallel_attn": True,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.27.4",
        "use_cache": True,
        "vocab_size": 65024,
    },
    "falcon-40b": {
        "alibi": False,
        "apply_residual_connection_post_layernorm": False,
        "architectures": ["FalconForCausalLM"],
        "attention_dropout": 0.0,
        "auto_map": {
            "AutoConfig": "configuration_falcon.FalconConfig",
            "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
        },
        "bias": False,
        "bos_token_id": 11,
        "eos_token_id": 11,
        "hidden_dropout": 0.0,
        "hidden_size": 8192,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05,
        "model_type": "falcon",
        "new_decoder_architecture": True,
        "num_attention_heads": 128,
        "num_hidden_layers": 60,
        "num_kv_heads": 8,
        "parallel_attn": True,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.26.0",
        "use_cache": True,
        "vocab_size": 65024,
    },
    "gpt-neox-20b": {
        "architectures": ["GPTNeoXForCausalLM"],
        "attention_probs_dropout_prob": 0,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "hidden_act": "gelu_fast",
        "hidden_dropout_prob": 0,
        "hidden_size": 6144,
        "initializer_range": 0.02,
        "intermediate_size": 24576,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 2048,
        "model_type": "gpt_neox",
        "num_attention_heads": 64,
        "num_hidden_layers": 44,
        "rotary_emb_base": 10000,
        "rotary_pct": 0.25,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.19.0.dev0",
        "use_cache": True,
        "vocab_size": 50432,
    },
    "olmo-2-7b": {
        "architectures": ["Olmo2ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "eos_token_id": 100257,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "initializer_range": 0.02,
        "intermediate_size": 11008,
        "max_position_embeddings": 4096,
        "model_type": "olmo2",
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 32,
        "pad_token_id": 100277,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 500000,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "transformers_version": "4.47.0.dev0",
        "use_cache": False,
        "vocab_size": 100352,
    },
    "command-r7b": {
        "architectures": ["Cohere2ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 5,
        "cache_implementation": "hybrid",
        "eos_token_id": 255001,
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "initializer_range": 0.02,
        "intermediate_size": 14336,
        "layer_norm_eps": 1e-05,
        "layer_switch": 4,
        "logit_scale": 0.25,
        "max_position_embeddings": 8192,
        "model_type": "cohere2",
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "order_of_interleaved_layers": "local_attn_first",
        "pad_token_id": 0,
        "position_embedding_type": "rope_gptj",
        "rope_scaling": None,
        "rope_theta": 50000,
        "rotary_pct": 1.0,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.48.0.dev0",
        "use_cache": True,
        "use_embedding_sharing": True,
        "use_gated_activation": True,
        "use_parallel_block": True,
        "use_parallel_embedding": False,
        "use_qk_norm": False,
        "vocab_size": 256000,
    },
}
TOTALS = {
    "gemma-3-1b": 999_885_952,
    "gemma-3-4b": 3_880_263_168,
    "gemma-3-12b": 11_766_034_176,
    "gemma-3-27b": 27_009_346_304,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "gpt-neox-20b": 20_554_567_680,
    "olmo-2-7b": 7_298_617_344,
    "command-r7b": 8_028_033_024,
}
# Of the whole checkpoints of Gemma-3, as their headers have it: text model, vision tower and the projection between.
WITH_VISION = {"gemma-3-4b": 4_300_079_472, "gemma-3-12b": 12_187_325_040, "gemma-3-27b": 27_432_406_640}
VISION_TOWER = 416_866_032
REMARKS = {"name", "source", "published_parameters"}


@pytest.mark.parametrize("name", TOTALS)
def test_preset_and_published_config_are_one_model(name):
    preset, read = load(name), load(CONFIGS[name])
    assert preset.model_dump(exclude=REMARKS) == read.model_dump(exclude=REMARKS)
    assert preset.inventory == read.inventory
    assert preset.published_parameters == parameters(preset).total == TOTALS[name]


@pytest.mark.parametrize("name", WITH_VISION)
def test_what_gemma_3_leaves_out(name):
    """The tower is the same in all sizes; its rows of 1,152 are projected to D, after a norm of theirs."""
    arch = load(name)
    assert parameters(arch).not_counted == ("vision tower",)
    assert TOTALS[name] + VISION_TOWER + 1152 * arch.d_model + 1152 == WITH_VISION[name]


def test_gemma_3_27b_worked_out():
    # V·D; 62 layers of q and output 2·D·N·H, k and v 2·D·K·H, two norms of H, gate, up and down 3·D·F, four norms of D;
    # a norm on top.
    v, d, n, k, h, f = 262_208, 5376, 32, 16, 128, 21_504
    layer = 2 * d * n * h + 2 * d * k * h + 2 * h + 3 * d * f + 4 * d
    assert parameters(load("gemma-3-27b")).total == v * d + 62 * layer + d


def test_gemma_3_27b_breaks_its_pattern_off():
    layout = [path.rpartition(".")[2] for path in load("gemma-3-27b").inventory.layout["decoder"]]
    assert [layer for layer, word in enumerate(layout) if word == "global"] == list(range(5, 60, 6))
    assert layout[60:] == ["local", "local"]


def test_caches_of_gemma_3():
    """(10·131,072 + 52·1,024)·2·16·128·2 bytes; (4·32,768 + 22·512)·2·1·256·2 bytes."""
    assert kv_cache(load("gemma-3-27b"), 131_072).bytes == (10 * 131_072 + 52 * 1024) * 8192 == 10.40625 * 2**30
    assert kv_cache(load("gemma-3-1b"), 32_768).bytes == (4 * 32_768 + 22 * 512) * 1024 == 139 * 2**20


def test_falcon_40b_worked_out():
    # 60 layers of q and output 2·D², k and v 2·D·8·64, 8·D² in the network, two LayerNorms.
    d = 8192
    layer = 2 * d * d + 2 * d * 8 * 64 + 8 * d * d + 4 * d
    assert parameters(load("falcon-40b")).total == 65_024 * d + 60 * layer + 2 * d


def test_command_r7b_sees_all_in_every_fourth_layer():
    # T = 5,000 tokens: a local query i sees the latest min(i, 4096) keys, in 24 layers of 32; 4·N·H FLOPs a pair.
    t, w = 5000, 4096
    local, everything = w * (w + 1) // 2 + (t - w) * w, t * (t + 1) // 2
    arch = load("command-r7b")
    assert flops(arch, Workload(new_tokens=t)).attention == 4 * 4096 * (24 * local + 8 * everything)
    blocks = {group.path.rpartition(".")[2]: group.block for group in arch.groups}
    assert (blocks["local"].positions.kind, blocks["global"].positions.kind) == ("rope", "none")
    assert {block.parallel for block in blocks.values()} == {"one_norm"}


def test_palm_540b_worked_out():
    # V·D; 118 layers of q and output 2·D·N·H, one key and one value head 2·D·H, and 3·D·(4·D) in the network.
    v, d, n, h = 256_000, 18_432, 48, 256
    total = v * d + 118 * (2 * d * n * h + 2 * d * h + 12 * d * d)
    assert parameters(load("palm-540b")).total == total == 540_354_281_472
    assert round(total / 1e9, 2) == 540.35


@pytest.mark.parametrize(
    ("layers", "heads", "d_model", "printed"), [(32, 16, 4096, 8.63), (64, 32, 8192, 62.50), (118, 48, 18_432, 540.35)]
)
def test_the_three_sizes_of_palm_as_printed(layers, heads, d_model, printed):
    """Table 1 of arXiv 2204.02311: one shape of layer, heads of 256, gains of norms in none of the three."""
    palm = load("palm-540b").model_dump(exclude={"published_parameters"})
    palm["d_model"], (layer,) = d_model, palm["decoder"]["layers"]
    layer = {**layer, "repeat": layers, "attention": {**layer["attention"], "heads": heads}}
    layer["feed_forward"] = {**layer["feed_forward"], "d_ff": 4 * d_model}
    palm["decoder"] = {**palm["decoder"], "layers": [layer]}
    assert round(parameters(load(palm)).total / 1e9, 2) == printed
