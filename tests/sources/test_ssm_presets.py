"""Presets of state-space models and their hybrids: published totals, constant states, and field by field what the
importers read from the published config.json.
"""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.units import matches_printed

Config = dict[str, Any]

MAMBA: Config = {
    "architectures": ["MambaForCausalLM"],
    "bos_token_id": 0,
    "conv_kernel": 4,
    "d_inner": 5120,
    "d_model": 2560,
    "eos_token_id": 0,
    "expand": 2,
    "fused_add_norm": True,
    "hidden_act": "silu",
    "hidden_size": 2560,
    "initializer_range": 0.1,
    "intermediate_size": 5120,
    "layer_norm_epsilon": 1e-05,
    "model_type": "mamba",
    "n_layer": 64,
    "num_hidden_layers": 64,
    "pad_token_id": 0,
    "pad_vocab_size_multiple": 8,
    "rescale_prenorm_residual": False,
    "residual_in_fp32": True,
    "rms_norm": True,
    "ssm_cfg": {},
    "state_size": 16,
    "time_step_floor": 0.0001,
    "time_step_init_scheme": "random",
    "time_step_max": 0.1,
    "time_step_min": 0.001,
    "time_step_rank": 160,
    "time_step_scale": 1.0,
    "torch_dtype": "float32",
    "transformers_version": "4.39.0.dev0",
    "use_bias": False,
    "use_cache": True,
    "use_conv_bias": True,
    "vocab_size": 50280,
}
JAMBA: Config = {
    "architectures": ["JambaForCausalLM"],
    "attention_dropout": 0.0,
    "attn_layer_offset": 4,
    "attn_layer_period": 8,
    "auto_map": {
        "AutoConfig": "configuration_jamba.JambaConfig",
        "AutoModel": "modeling_jamba.JambaModel",
        "AutoModelForCausalLM": "modeling_jamba.JambaForCausalLM",
    },
    "bos_token_id": 1,
    "calc_logits_for_entire_prompt": False,
    "eos_token_id": 2,
    "expert_layer_offset": 1,
    "expert_layer_period": 2,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_state": 16,
    "mamba_dt_rank": 256,
    "mamba_expand": 2,
    "mamba_inner_layernorms": True,
    "mamba_proj_bias": False,
    "model_type": "jamba",
    "n_ctx": 262144,
    "num_attention_heads": 32,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "output_router_logits": False,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.38.2",
    "use_cache": True,
    "use_mamba_kernels": True,
    "vocab_size": 65536,
}
FALCON_MAMBA: Config = {
    **{key: MAMBA[key] for key in MAMBA if not key.startswith(("d_", "n_", "fused", "pad_vocab", "rms", "ssm"))},
    "architectures": ["FalconMambaForCausalLM"],
    "expand": 16,  # which `intermediate_size` overrules
    "hidden_size": 4096,
    "intermediate_size": 8192,
    "mixer_rms_eps": 1e-06,
    "model_type": "falcon_mamba",
    "tie_word_embeddings": False,
    "time_step_rank": 256,
    "use_mambapy": False,
    "vocab_size": 65024,
}
BAMBA: Config = {
    "architectures": ["BambaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_layer_indices": [9, 18, 27],
    "attn_rotary_emb": 64,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "mamba_chunk_size": 256,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_n_heads": 128,
    "mamba_proj_bias": False,
    "max_position_embeddings": 262144,
    "mlp_bias": False,
    "model_type": "bamba",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_logits_to_keep": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "use_mamba_kernels": True,
    "vocab_size": 128256,
}
FALCON_H1: Config = {
    "architectures": ["FalconH1ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_in_multiplier": 1.0,
    "attention_out_multiplier": 0.9375,
    "attn_layer_indices": None,
    "embedding_multiplier": 5.656854249492381,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "key_multiplier": 0.39062499999999994,
    "lm_head_multiplier": 0.0390625,
    "mamba_chunk_size": 128,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_head": 64,
    "mamba_d_ssm": 1536,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_n_heads": 24,
    "mamba_norm_before_gate": False,
    "mamba_proj_bias": False,
    "mamba_rms_norm": False,
    "mamba_use_mlp": True,
    "max_position_embeddings": 16384,
    "mlp_bias": False,
    "mlp_multipliers": [0.8838834764831844, 0.5859375],
    "model_type": "falcon_h1",
    "num_attention_heads": 8,
    "num_hidden_layers": 36,
    "num_key_value_heads": 2,
    "projectors_bias": False,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 100000000000,
    "ssm_in_multiplier": 1.25,
    "ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738],
    "ssm_out_multiplier": 0.23570226039551587,
    "tie_word_embeddings": False,
    "vocab_size": 32784,
}
GRANITE: Config = {
    "architectures": ["GraniteMoeHybridForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_multiplier": 0.0078125,
    "embedding_multiplier": 12,
    "hidden_act": "silu",
    "hidden_size": 1536,
    "init_method": "mup",
    "intermediate_size": 512,
    "layer_types": [
        *(["mamba"] * 5 + ["attention"]),
        *(["mamba"] * 9 + ["attention"]) * 3,
        *["mamba"] * 4,
    ],
    "logits_scaling": 6,
    "mamba_chunk_size": 256,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_n_heads": 48,
    "mamba_proj_bias": False,
    "max_position_embeddings": 131072,
    "model_type": "granitemoehybrid",
    "normalization_function": "rmsnorm",
    "num_attention_heads": 12,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 40,
    "num_key_value_heads": 4,
    "num_local_experts": 64,
    "position_embedding_type": "nope",
    "residual_multiplier": 0.22,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000,
    "shared_intermediate_size": 1024,
    "tie_word_embeddings": True,
    "vocab_size": 100352,
}
NEMOTRON: Config = {
    "architectures": ["NemotronHForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {
        "AutoConfig": "configuration_nemotron_h.NemotronHConfig",
        "AutoModelForCausalLM": "modeling_nemotron_h.NemotronHForCausalLM",
    },
    "chunk_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "hidden_dropout": 0.0,
    "hidden_size": 4096,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "intermediate_size": 21504,
    "layer_norm_epsilon": 1e-05,
    "mamba_head_dim": 64,
    "mamba_hidden_act": "silu",
    "mamba_num_heads": 128,
    "mamba_proj_bias": False,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "mlp_hidden_act": "relu2",
    "model_type": "nemotron_h",
    "n_groups": 8,
    "num_attention_heads": 32,
    "num_hidden_layers": 52,
    "num_key_value_heads": 8,
    "num_logits_to_keep": 1,
    "rescale_prenorm_residual": True,
    "residual_in_fp32": False,
    "rms_norm_eps": 1e-05,
    "sliding_window": None,
    "ssm_state_size": 128,
    "tie_word_embeddings": False,
    "time_step_floor": 0.0001,
    "time_step_limit": [0.0, float("inf")],
    "time_step_max": 0.1,
    "time_step_min": 0.001,
    "torch_dtype": "bfloat16",
    "use_bias": False,
    "use_conv_bias": True,
    "use_mamba_kernels": True,
    "vocab_size": 131072,
}
ZAMBA2: Config = {
    "add_bias_linear": False,
    "adapter_rank": 128,
    "architectures": ["Zamba2ForCausalLM"],
    "attention_dropout": 0.0,
    "attention_head_dim": 160,
    "attention_hidden_size": 5120,
    "chunk_size": 256,
    "hidden_act": "gelu",
    "hidden_size": 2560,
    "hybrid_layer_ids": [6, 12, 18, 24, 30, 36, 42, 47, 51],
    "intermediate_size": 10240,
    "kv_channels": 80,
    "layers_block_type": [
        *(["mamba"] * 6 + ["hybrid"]),
        *(["mamba"] * 5 + ["hybrid"]) * 6,
        *(["mamba"] * 4 + ["hybrid"]),
        *(["mamba"] * 3 + ["hybrid"]),
        *["mamba"] * 2,
    ],
    "mamba_d_conv": 4,
    "mamba_d_state": 64,
    "mamba_expand": 2,
    "mamba_headdim": 64,
    "mamba_ngroups": 1,
    "max_position_embeddings": 4096,
    "model_type": "zamba2",
    "n_mamba_heads": 80,
    "num_attention_heads": 32,
    "num_hidden_layers": 54,
    "num_key_value_heads": 32,
    "num_mem_blocks": 2,
    "num_query_groups": 32,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000,
    "use_conv_bias": True,
    "use_long_context": False,
    "use_mem_rope": False,
    "use_shared_attention_adapter": False,
    "vocab_size": 32000,
}
# The keys of each model's config.json on the hub that say something.
CONFIGS: dict[str, Config] = {
    "jamba-v0.1": JAMBA,
    "mamba-2.8b": MAMBA,
    "mamba-130m": {
        **MAMBA,
        **{"d_inner": 1536, "d_model": 768, "hidden_size": 768, "intermediate_size": 1536},
        **{"n_layer": 24, "num_hidden_layers": 24, "time_step_rank": 48},
    },
    "mamba2-2.7b": {
        "architectures": ["Mamba2ForCausalLM"],
        "hidden_size": 2560,
        "model_type": "mamba2",
        "n_groups": 1,
        "num_heads": 80,
        "tie_word_embeddings": True,
        "vocab_size": 50288,
    },
    "falcon-mamba-7b": FALCON_MAMBA,
    "bamba-9b": BAMBA,
    "falcon-h1-0.5b": FALCON_H1,
    "granite-4.0-h-tiny": GRANITE,
    "nemotron-h-8b": {**NEMOTRON, "attention_head_dim": 128},
    "nemotron-3-nano-30b-a3b": {
        **NEMOTRON,
        "head_dim": 128,
        "hidden_size": 2688,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "intermediate_size": 1856,
        "mamba_num_heads": 64,
        "mamba_ssm_cache_dtype": "float32",
        "max_position_embeddings": 262144,
        "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712,
        "n_group": 1,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "norm_eps": 1e-05,
        "norm_topk_prob": True,
        "num_experts_per_tok": 6,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 1.0,
        "rope_theta": 10000,
        "routed_scaling_factor": 2.5,
        "topk_group": 1,
    },
    "zamba-7b": {"architectures": ["ZambaForCausalLM"], "model_type": "zamba"},  # the defaults of its class
    "zamba2-2.7b": ZAMBA2,
}
# All, and those that each token uses, both vocabulary tables in either.
TOTALS = {
    "jamba-v0.1": (51_570_323_328, 12_110_311_296),
    "mamba-2.8b": (2_768_345_600, 2_768_345_600),
    "mamba-130m": (129_135_360, 129_135_360),
    "mamba2-2.7b": (2_702_599_680, 2_702_599_680),
    "falcon-mamba-7b": (7_272_665_088, 7_272_665_088),
    "bamba-9b": (9_780_235_392, 9_780_235_392),
    "falcon-h1-0.5b": (521_411_104, 521_411_104),
    "granite-4.0-h-tiny": (6_939_037_248, 1_465_470_528),
    "nemotron-h-8b": (8_100_852_736, 8_100_852_736),
    "nemotron-3-nano-30b-a3b": (31_577_937_344, 3_580_073_408),
    "zamba-7b": (7_232_490_496, 7_232_490_496),
    "zamba2-2.7b": (2_662_214_560, 2_662_214_560),
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
    assert (count.total, count.active) == TOTALS[name]
    assert matches_printed(count.total, preset.published_parameters)


def test_jamba_worked_out():
    # Two tables; 28 Mamba layers of D·4D in, 5·8192 of the convolution, 8192·288 and 257·8192 that choose, 17·8192 of
    # the recurrence, 288 gains, 8192·D out; 4 attentions; 16 networks and 16·16 experts of 3·D·F, 16 routers of D·16;
    # 65 norms.
    d, inner, network = 4096, 8192, 3 * 4096 * 14_336
    mamba = d * 2 * inner + 5 * inner + inner * 288 + 257 * inner + 17 * inner + 288 + inner * d
    attention = 2 * d * d + 2 * d * 1024
    total = 2 * 65_536 * d + 28 * mamba + 4 * attention + 16 * network + 16 * (16 * network + 16 * d) + 65 * d
    assert parameters(load("jamba-v0.1")).total == total == 51_570_323_328


def test_mamba_worked_out():
    # One table; 64 layers of D·4D in, 5 numbers a channel of the convolution, inner·192 and 161·inner that choose,
    # 17·inner of the recurrence, inner·D out and a norm; a final norm.
    d, inner = 2560, 5120
    layer = d * 2 * inner + 5 * inner + inner * 192 + 161 * inner + 17 * inner + inner * d + d
    assert parameters(load("mamba-2.8b")).total == 50_280 * d + 64 * layer + d == 2_768_345_600


def test_what_mamba_holds_does_not_grow():
    """64 layers of 5,120 channels: 4 inputs of the convolution in the cache's dtype and 16 numbers of state in fp32."""
    short, long = (kv_cache(load("mamba-2.8b"), context) for context in (1, 100_000))
    assert short == long
    assert (short.elements, short.bytes_per_token) == (0, 0)
    assert short.state_elements == 64 * 5120 * (4 + 16)
    assert short.bytes == short.state_bytes == 64 * 5120 * (4 * 2 + 16 * 4)


def test_nemotron_grows_in_six_layers_of_fifty_two():
    """2·6·2·128 numbers a token, 6,144 bytes; 23 layers of 6,144 channels with 4 inputs and 64·64·128 of state."""
    held = kv_cache(load("nemotron-3-nano-30b-a3b"), 1000)
    assert held.elements == 1000 * 2 * 6 * 2 * 128
    assert held.bytes_per_token == 6144
    assert held.state_elements == 23 * (6144 * 4 + 64 * 64 * 128)
    assert held.state_bytes == 23 * (6144 * 4 * 2 + 64 * 64 * 128 * 4)


def test_falcon_h1_has_both_in_every_layer():
    """36 layers of 2·2·64 numbers a token, and of 1,792 channels with 4 inputs and 24·64·128 of state."""
    held = kv_cache(load("falcon-h1-0.5b"), 1000)
    assert held.elements == 36 * 1000 * 2 * 2 * 64
    assert held.state_elements == 36 * (1792 * 4 + 24 * 64 * 128)


def test_shared_blocks_cost_in_every_layer_that_has_them():
    """Zamba's 13 layers with the shared block share its weights, not its products, nor what it caches."""
    arch = load("zamba-7b")
    d, network = 3712, 3 * 3712 * 14_848
    shared = 3 * 2 * d * 2 * d + 2 * d * d + network
    mamba = load({**CONFIGS["zamba-7b"], "layers_block_type": ["mamba"] * 76})
    # Two norms, 13 projections of what comes out; a token's products are those of 13 blocks.
    assert parameters(arch).total - parameters(mamba).total == shared + 3 * d + 13 * d * d
    once = Workload(new_tokens=1)
    assert flops(arch, once).weights - flops(mamba, once).weights == 13 * 2 * (shared + d * d)
    assert kv_cache(arch, 1).elements == 13 * 2 * 16 * 464


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("jamba-v0.1", {"mamba": 12, "mamba-sparse": 16, "attention": 4}),
        ("bamba-9b", {"mamba": 29, "attention": 3}),
        ("granite-4.0-h-tiny", {"mamba": 36, "attention": 4}),
        ("nemotron-h-8b", {"mamba": 24, "network": 24, "attention": 4}),
        ("nemotron-3-nano-30b-a3b", {"mamba": 23, "experts": 23, "attention": 6}),
        ("zamba-7b", {"mamba": 63, "hybrid": 13}),
        ("zamba2-2.7b", {"mamba": 45, "hybrid0": 5, "hybrid1": 4}),
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
