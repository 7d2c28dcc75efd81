"""Presets of linear attention and other recurrent families: published totals, constant states, and field by field what
the importers read from the published config.json.
"""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.units import matches_printed

Config = dict[str, Any]

QWEN3_NEXT: Config = {
    "architectures": ["Qwen3NextForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "decoder_sparse_step": 1,
    "eos_token_id": 151645,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "max_position_embeddings": 262144,
    "mlp_only_layers": [],
    "model_type": "qwen3_next",
    "moe_intermediate_size": 512,
    "norm_topk_prob": True,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "output_router_logits": False,
    "partial_rotary_factor": 0.25,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000000,
    "router_aux_loss_coef": 0.001,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.57.0.dev0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
_QWEN3_5: Config = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_output_gate": True,
    "dtype": "bfloat16",
    "eos_token_id": 248044,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_value_head_dim": 128,
    "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 262144,
    "mlp_only_layers": [],
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    },
    "use_cache": True,
    "vocab_size": 248320,
}
QWEN3_5: Config = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "image_token_id": 248056,
    "model_type": "qwen3_5",
    "text_config": {
        **_QWEN3_5,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * 16,
        "linear_num_value_heads": 48,
        "model_type": "qwen3_5_text",
        "num_attention_heads": 24,
        "num_hidden_layers": 64,
        "num_key_value_heads": 4,
    },
    "tie_word_embeddings": False,
    "transformers_version": "4.57.0.dev0",
    "video_token_id": 248057,
    "vision_config": {"depth": 27, "hidden_size": 1152, "model_type": "qwen3_5_vision"},
    "vision_end_token_id": 248054,
    "vision_start_token_id": 248053,
}
QWEN3_5_MOE: Config = {
    **QWEN3_5,
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "text_config": {
        **_QWEN3_5,
        "hidden_size": 2048,
        "layer_types": [*["linear_attention"] * 3, "full_attention"] * 10,
        "linear_num_value_heads": 32,
        "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": 512,
        "num_attention_heads": 16,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 40,
        "num_key_value_heads": 2,
        "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": 512,
    },
}
FULL = [4, 8, 12, 16, 20, 24, 27]
KIMI_LINEAR: Config = {
    "architectures": ["KimiLinearForCausalLM"],
    "auto_map": {
        "AutoConfig": "configuration_kimi.KimiLinearConfig",
        "AutoModel": "modeling_kimi.KimiLinearModel",
        "AutoModelForCausalLM": "modeling_kimi.KimiLinearForCausalLM",
    },
    "bos_token_id": 163584,
    "dtype": "bfloat16",
    "eos_token_id": 163586,
    "first_k_dense_replace": 1,
    "head_dim": 72,  # of nothing
    "hidden_act": "silu",
    "hidden_size": 2304,
    "initializer_range": 0.02,
    "intermediate_size": 9216,
    "kv_lora_rank": 512,
    "linear_attn_config": {
        "full_attn_layers": FULL,
        "head_dim": 128,
        "kda_layers": [layer for layer in range(1, 28) if layer not in FULL],
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
    "mla_use_nope": True,
    "model_max_length": 1048576,
    "model_type": "kimi_linear",
    "moe_intermediate_size": 1024,
    "moe_layer_freq": 1,
    "moe_renormalize": True,
    "moe_router_activation_func": "sigmoid",
    "num_attention_heads": 32,
    "num_expert_group": 1,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_hidden_layers": 27,
    "num_key_value_heads": 32,
    "num_nextn_predict_layers": 0,
    "num_shared_experts": 1,
    "pad_token_id": 163839,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "routed_scaling_factor": 2.446,
    "tie_word_embeddings": False,
    "topk_group": 1,
    "use_cache": True,
    "use_grouped_topk": True,
    "v_head_dim": 128,
    "vocab_size": 163840,
}
MINIMAX: Config = {
    "architectures": ["MiniMaxText01ForCausalLM"],
    "attention_dropout": 0.0,
    "attn_type_list": [*[0] * 7, 1] * 10,
    "auto_map": {
        "AutoConfig": "configuration_minimax_text_01.MiniMaxText01Config",
        "AutoModelForCausalLM": "modeling_minimax_text_01.MiniMaxText01ForCausalLM",
    },
    "bos_token_id": None,
    "eos_token_id": None,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 6144,
    "initializer_range": 0.02,
    "intermediate_size": 9216,
    "layernorm_full_attention_alpha": 3.5565588200778455,
    "layernorm_full_attention_beta": 1.0,
    "layernorm_linear_attention_alpha": 3.5565588200778455,
    "layernorm_linear_attention_beta": 1.0,
    "layernorm_mlp_alpha": 3.5565588200778455,
    "layernorm_mlp_beta": 1.0,
    "max_position_embeddings": 10240000,
    "model_type": "minimax_text_01",
    "num_attention_heads": 64,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "output_router_logits": False,
    "postnorm": True,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000000,
    "rotary_dim": 64,
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.0,
    "shared_intermediate_size": 0,
    "shared_moe_mode": "sigmoid",
    "sliding_window": None,
    "tie_word_embeddings": False,
    "transformers_version": "4.45.2",
    "use_cache": True,
    "vocab_size": 200064,
}
LFM2: Config = {
    "architectures": ["Lfm2ForCausalLM"],
    "block_auto_adjust_ff_dim": True,
    "block_dim": 2048,
    "block_ff_dim": 12288,
    "block_ffn_dim_multiplier": 1.0,
    "block_mlp_init_scale": 1.0,
    "block_multiple_of": 256,
    "block_norm_eps": 1e-05,
    "block_out_init_scale": 1.0,
    "block_use_swiglu": True,
    "block_use_xavier_init": True,
    "bos_token_id": 1,
    "conv_L_cache": 3,
    "conv_bias": False,
    "conv_dim": 2048,
    "conv_dim_out": 2048,
    "conv_use_xavier_init": True,
    "eos_token_id": 7,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "max_position_embeddings": 128000,
    "model_type": "lfm2",
    "norm_eps": 1e-05,
    "num_attention_heads": 32,
    "num_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "pad_token_id": 0,
    "rope_theta": 1000000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.54.0.dev0",
    "use_cache": True,
    "use_pos_enc": True,
    "vocab_size": 65536,
}
RECURRENT_GEMMA: Config = {
    "architectures": ["RecurrentGemmaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_window_size": 2048,
    "block_types": ["recurrent", "recurrent", "attention"],
    "bos_token_id": 2,
    "conv1d_width": 4,
    "embeddings_scale_by_sqrt_dim": True,
    "eos_token_id": 1,
    "final_w_init_variance_scale": 0.07692307692307693,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2560,
    "intermediate_size": 15360,
    "logits_soft_cap": 30.0,
    "lru_width": 2560,
    "model_type": "recurrent_gemma",
    "num_attention_heads": 10,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.0.dev0",
    "use_cache": True,
    "vocab_size": 256000,
    "w_init_variance_scale": 0.01,
}
RWKV: Config = {
    "architectures": ["RwkvForCausalLM"],
    "attention_hidden_size": 768,
    "bos_token_id": 0,
    "context_length": 1024,
    "eos_token_id": 0,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "layer_norm_epsilon": 1e-05,
    "model_type": "rwkv",
    "num_hidden_layers": 12,
    "rescale_every": 6,
    "tie_word_embeddings": False,
    "transformers_version": "4.29.0.dev0",
    "use_cache": True,
    "vocab_size": 50277,
}
XLSTM: Config = {
    "add_embedding_dropout": False,
    "add_forward_backend_padding": False,
    "add_out_norm": True,
    "add_post_blocks_norm": True,
    "add_post_norm": False,
    "add_qk_norm": False,
    "architectures": ["xLSTMForCausalLM"],
    "autocast_kernel_dtype": "bfloat16",
    "bos_token_id": 0,
    "cell_norm_eps": 1e-06,
    "chunk_size": 64,
    "chunkwise_kernel": "chunkwise--triton_xl_chunk",
    "embedding_dim": 4096,
    "eos_token_id": 2,
    "eps": 1e-06,
    "ffn_proj_factor": 2.667,
    "ffn_round_up_to_multiple_of": 64,
    "force_bos_token_insert": True,
    "forget_gate_bias_init_range": [3.0, 6.0],
    "gate_soft_cap": 15.0,
    "head_dim": 512,
    "igate_bias_init_range": -10.0,
    "inference_state_dtype": "float32",
    "lm_head_bias": False,
    "logits_soft_cap": 30.0,
    "max_inference_chunksize": 16384,
    "mode": "inference",
    "model_type": "xlstm",
    "norm_eps": 1e-06,
    "norm_reduction_force_float32": True,
    "num_blocks": 32,
    "num_heads": 8,
    "output_logit_soft_cap": 30.0,
    "pad_token_id": 1,
    "qk_dim_factor": 0.5,
    "return_last_states": True,
    "sequence_kernel": "native_sequence__triton",
    "slstm_at": [],
    "step_kernel": "triton",
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.48.0.dev0",
    "use_bias": False,
    "use_cache": True,
    "v_dim_factor": 1.0,
    "vocab_size": 50304,
    "weight_mode": "single",
}
CONFIGS = {
    "qwen3-next-80b-a3b": QWEN3_NEXT,
    "qwen3.5-27b": QWEN3_5,
    "qwen3.5-35b-a3b": QWEN3_5_MOE,
    "kimi-linear-48b-a3b": KIMI_LINEAR,
    "minimax-01": MINIMAX,
    "lfm2-1.2b": LFM2,
    "recurrentgemma-2b": RECURRENT_GEMMA,
    "rwkv-4-169m": RWKV,
    "xlstm-7b": XLSTM,
}
# All, those that each token uses (both vocabulary tables in either), and those of a module that is in no total.
TOTALS = {
    "qwen3-next-80b-a3b": (79_674_391_296, 3_874_929_408, 0),
    "qwen3.5-27b": (26_895_998_464, 26_895_998_464, 424_699_392),
    "qwen3.5-35b-a3b": (34_660_610_688, 3_454_988_928, 844_640_768),
    "kimi-linear-48b-a3b": (49_122_675_072, 3_484_453_248, 0),
    "minimax-01": (456_089_655_296, 48_403_306_496, 0),
    "lfm2-1.2b": (1_170_340_608, 1_170_340_608, 0),
    "recurrentgemma-2b": (2_682_862_080, 2_682_862_080, 0),
    "rwkv-4-169m": (169_342_464, 169_342_464, 0),
    "xlstm-7b": (6_865_424_896, 6_865_424_896, 0),
}
REMARKS = {"name", "source", "published_parameters"}


@pytest.mark.parametrize("name", TOTALS)
def test_preset_and_published_config_are_one_model(name):
    preset, read = load(name), load(CONFIGS[name])
    preset_says, config_says = (model.model_dump(exclude={*REMARKS, "decoder"}) for model in (preset, read))
    assert preset_says == config_says
    layers = [[group.block.model_dump(exclude={"repeat"}) for group in model.groups] for model in (preset, read)]
    assert layers[0] == layers[1]
    assert preset.inventory == read.inventory
    count = parameters(preset)
    assert (count.total, count.active, count.extra) == TOTALS[name]


def test_the_total_that_the_kimi_paper_does_not_print():
    """It prints 48B (arXiv 2510.26692); the fields of its config.json come to 49.12B."""
    arch = load("kimi-linear-48b-a3b")
    total = parameters(arch).total
    assert (arch.published_parameters, matches_printed(total, "48B")) == ("48B", False)
    assert f"{total / 1e9:.2f}B" in arch.source


def test_qwen3_5_worked_out():
    # Two tables; 48 layers of Gated DeltaNet: D·(2·2048 + 2·6144 + 2·48) in, 10,240 channels of 4 taps, 2·48 of the
    # recurrence, 128 gains, 6144·D out; 16 attentions of D·(2·6144 + 2·1024) in, 2·256 gains, 6144·D out; 64 networks;
    # 129 norms. The module beside: 2D·D, three norms, and a layer that attends.
    d, network = 5120, 3 * 5120 * 17_408
    linear = d * (2 * 2048 + 2 * 6144 + 2 * 48) + 4 * 10_240 + 2 * 48 + 128 + 6144 * d
    attention = d * (2 * 6144 + 2 * 1024) + 2 * 256 + 6144 * d
    total = 2 * 248_320 * d + 48 * linear + 16 * attention + 64 * network + 129 * d
    count = parameters(load("qwen3.5-27b"))
    assert (count.total, count.extra) == (total, 2 * d * d + 3 * d + attention + network + 2 * d)


def test_what_qwen3_5_holds():
    """2·16·4·256 numbers a token, 65,536 bytes in bfloat16: 16 GiB at 262,144 tokens. Beside them, in 48 layers, 4
    inputs of 10,240 channels, and in float32 48 heads' states of 128 x 128.
    """
    held = kv_cache(load("qwen3.5-27b"), 262_144)
    assert held.elements == 262_144 * 2 * 16 * 4 * 256
    assert (held.bytes_per_token, held.bytes - held.state_bytes) == (65_536, 16 * 2**30)
    assert held.state_elements == 48 * (4 * 10_240 + 48 * 128 * 128)
    assert held.state_bytes == 48 * (4 * 10_240 * 2 + 48 * 128 * 128 * 4)


def test_kimi_linear_grows_in_seven_layers_of_twenty_seven():
    """512 + 64 numbers a token in each, 8,064 bytes."""
    held = kv_cache(load("kimi-linear-48b-a3b"), 1000)
    assert held.elements == 1000 * 7 * (512 + 64)
    assert held.bytes_per_token == 8064
    assert held.state_elements == 20 * (4 * 3 * 4096 + 32 * 128 * 128)


def test_minimax_worked_out():
    """As printed, 45.9B for each token without the tables (arXiv 2501.08313, section 1)."""
    # Two tables; 70 layers of lightning attention, 5·D·8192 and a norm of 8192; 10 attentions of D·(2·8192 + 2·1024);
    # 80 routers of D·32 and 32 experts of 3·D·9216 each, of which 2 for each token; 161 norms.
    d, expert = 6144, 3 * 6144 * 9216
    rest = 70 * (5 * d * 8192 + 8192) + 10 * d * (2 * 8192 + 2 * 1024) + 80 * d * 32 + 161 * d
    count, tables = parameters(load("minimax-01")), 2 * 200_064 * d
    assert count.total == tables + rest + 80 * 32 * expert
    assert count.active == tables + rest + 80 * 2 * expert
    assert matches_printed(count.active - tables, "45.9B")


def test_recurrent_gemma_holds_no_more_than_its_window():
    """Eight layers of a key and a value of 256 for 2,048 tokens; 18 of 2,560 channels with 3 inputs and a state."""
    arch = load("recurrentgemma-2b")
    held = kv_cache(arch, 2048)
    assert held.elements == kv_cache(arch, 10**6).elements == 2048 * 8 * 2 * 256
    assert held.state_elements == 18 * 2560 * (3 + 1)
    assert matches_printed(parameters(arch).non_embedding, "2.0B")  # arXiv 2404.07839, table 1


def test_what_rwkv_and_xlstm_hold_does_not_grow():
    """12 layers of two tokens of 768 and three numbers a channel; 32 of 8 memories of 256 x 512, 256 and a maximum."""
    for name, elements in (("rwkv-4-169m", 12 * 5 * 768), ("xlstm-7b", 32 * 8 * (256 * 512 + 256 + 1))):
        short, long = (kv_cache(load(name), context) for context in (1, 100_000))
        assert short == long
        assert (short.elements, short.bytes_per_token, short.state_elements) == (0, 0, elements)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("qwen3-next-80b-a3b", {"linear": 36, "attention": 12}),
        ("qwen3.5-27b", {"linear": 48, "attention": 16}),
        ("kimi-linear-48b-a3b", {"linear_dense": 1, "linear_sparse": 19, "attention_sparse": 7}),
        ("minimax-01", {"lightning": 70, "attention": 10}),
        ("lfm2-1.2b", {"conv": 10, "attention": 6}),
        ("recurrentgemma-2b", {"recurrent": 18, "attention": 8}),
    ],
)
def test_how_many_layers_are_which(name, kinds):
    layout = load(name).inventory.layout["decoder"]
    words = [path.rpartition(".")[2] for path in layout]
    assert {word: words.count(word) for word in words} == kinds


def test_scans_are_a_model_of_what_is_spent():
    """All but the recurrence and the convolution before it is exact, and they are a small part."""
    for name in TOTALS:
        counted = flops(load(name), Workload(new_tokens=1000))
        assert 0 < counted.modelled < counted.forward / 20, name
