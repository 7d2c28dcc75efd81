"""The configs that `record_ssm.py` records: a small one of each type, changes to it, and two changes at once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "mamba": "MambaForCausalLM",
    "falcon_mamba": "FalconMambaForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "jamba": "JambaForCausalLM",
    "bamba": "BambaForCausalLM",
    "falcon_h1": "FalconH1ForCausalLM",
    "granitemoehybrid": "GraniteMoeHybridForCausalLM",
    "nemotron_h": "NemotronHForCausalLM",
    "zamba": "ZambaForCausalLM",
    "zamba2": "Zamba2ForCausalLM",
}

TOKENS: Config = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# D=39, d_inner=78, N=7, taps=5, R=11, L=5.
MAMBA: Config = {
    "vocab_size": 101,
    "hidden_size": 39,
    "num_hidden_layers": 5,
    "state_size": 7,
    "conv_kernel": 5,
    "expand": 2,
    "time_step_rank": 11,
    **TOKENS,
}
# D=84, N=6, K=3, H=14 or 10, F=37.
ATTENTION: Config = {
    "vocab_size": 101,
    "hidden_size": 84,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 37,
    **TOKENS,
}
# 12 heads of 14 in 3 groups, N=11, taps=5, chunks of 13.
MAMBA2: Config = {
    "mamba_n_heads": 12,
    "mamba_d_head": 14,
    "mamba_n_groups": 3,
    "mamba_d_state": 11,
    "mamba_d_conv": 5,
    "mamba_expand": 2,
    "mamba_chunk_size": 13,
}
SMALL: dict[str, Config] = {
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": {
        "vocab_size": 101,
        "hidden_size": 42,
        "num_hidden_layers": 5,
        "num_heads": 12,
        "head_dim": 7,
        "n_groups": 3,
        "state_size": 11,
        "conv_kernel": 5,
        "chunk_size": 13,
        **TOKENS,
    },
    "jamba": {
        **ATTENTION,
        "num_hidden_layers": 9,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "expert_layer_period": 3,
        "expert_layer_offset": 1,
        "num_experts": 11,
        "num_experts_per_tok": 3,
        "mamba_d_state": 7,
        "mamba_d_conv": 5,
        "mamba_dt_rank": 13,
    },
    "bamba": {**ATTENTION, **MAMBA2, "num_hidden_layers": 5, "attn_layer_indices": [1, 3]},
    "falcon_h1": {**ATTENTION, **MAMBA2, "num_hidden_layers": 3, "head_dim": 10, "mamba_d_ssm": None},
    "granitemoehybrid": {
        **ATTENTION,
        **MAMBA2,
        "num_hidden_layers": 5,
        "num_local_experts": 11,
        "num_experts_per_tok": 3,
        "shared_intermediate_size": 29,
        "layer_types": "LFLLF",
    },
    "nemotron_h": {
        **ATTENTION,
        "head_dim": 10,
        "hybrid_override_pattern": "ME*-M*E",
        "mamba_num_heads": 12,
        "mamba_head_dim": 7,
        "n_groups": 3,
        "ssm_state_size": 11,
        "conv_kernel": 5,
        "chunk_size": 13,
        "n_routed_experts": 12,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 23,
        "moe_shared_expert_intermediate_size": 29,
    },
    "zamba": {
        **ATTENTION,
        "num_hidden_layers": 9,
        "attn_layer_period": 3,
        "attn_layer_offset": 1,
        "n_mamba_heads": 3,
        "mamba_d_state": 7,
        "mamba_d_conv": 5,
        "mamba_dt_rank": 13,
    },
    "zamba2": {
        **ATTENTION,
        "num_key_value_heads": 6,
        "num_hidden_layers": 7,
        "layers_block_type": "LHLHHLH",
        "n_mamba_heads": 12,
        "mamba_ngroups": 3,
        "mamba_d_state": 11,
        "mamba_d_conv": 5,
        "chunk_size": 13,
        "num_mem_blocks": 2,
        "adapter_rank": 5,
    },
}

# Changes to these, `;` between cases, `-key` takes a key away; in lists of layers L is a recurrent one, F attention, H
# both, E experts, D a dense network, M and A are words of old files, X is no word.
SHARED = "num_hidden_layers=1; num_hidden_layers=8 vocab_size=53; tie_word_embeddings=true; tie_word_embeddings=false"
MAMBA_CASES = f"""{SHARED};
    -time_step_rank; time_step_rank="auto" hidden_size=49; expand=3; expand=3 intermediate_size=123; state_size=1;
    conv_kernel=2 use_conv_bias=false; use_bias=true; use_bias=true use_conv_bias=false state_size=13;
    hidden_act="gelu" time_step_scale=2.0 residual_in_fp32=false time_step_init_scheme="constant";
    conv_kernel=16; conv_kernel=17 use_cache=false; layer_norm_epsilon=1e-6 rescale_prenorm_residual=true
"""
ROPES = """;
    rope_theta=5e5 rope_scaling=null torch_dtype="bfloat16"; rope_parameters={"rope_type":"default","rope_theta":7e4};
    rope_scaling={"rope_type":"linear","factor":2.0}
"""
HYBRIDS = "; num_key_value_heads=6; num_attention_heads=12 num_key_value_heads=2"
FORMS = """;
    num_key_value_heads=null; mamba_d_head="auto"; -mamba_d_head mamba_n_heads=24; mamba_n_groups=1; mamba_n_groups=12;
    mamba_d_state=2; mamba_expand=3 mamba_d_head=21; mamba_d_conv=2 mamba_conv_bias=false; mamba_proj_bias=true;
    attention_bias=true; mamba_chunk_size=5; mamba_chunk_size=48; mamba_chunk_size=256 mamba_d_state=23;
    time_step_limit=[0.01,0.1] hidden_act="gelu"; head_dim=16
"""
CASES = {
    "mamba": f"{MAMBA_CASES}; use_mambapy=true use_associative_scan=false",
    "falcon_mamba": f"{MAMBA_CASES}; mixer_rms_eps=1e-5 use_falcon_mambapy=false",
    "mamba2": f"""{SHARED};
    hidden_size=36 num_heads=9 head_dim=8; expand=3 head_dim=3 num_heads=42 n_groups=7; n_groups=1; n_groups=12;
    state_size=2 chunk_size=5; state_size=29; conv_kernel=2 use_conv_bias=false; use_bias=true; chunk_size=2;
    use_bias=true use_conv_bias=false chunk_size=256; chunk_size=16; chunk_size=48; time_step_rank=7; conv_kernel=17;
    time_step_limit=[0.01,0.1] hidden_act="gelu" residual_in_fp32=false
    """,
    "jamba": f"""{SHARED}{HYBRIDS};
    attn_layer_period=1 attn_layer_offset=0; attn_layer_period=9 attn_layer_offset=8;
    expert_layer_period=1 expert_layer_offset=0;
    attn_layer_period=5 attn_layer_offset=0 expert_layer_period=2 expert_layer_offset=0; num_experts=1;
    num_experts=7 num_experts_per_tok=7; num_experts_per_tok=1; -num_experts num_local_experts=5; head_dim=16;
    mamba_expand=3; mamba_dt_rank="auto"; -mamba_dt_rank hidden_size=96; mamba_d_conv=2 mamba_conv_bias=false;
    mamba_proj_bias=true mamba_d_state=1; mamba_d_state=29 use_mamba_kernels=false;
    hidden_act="gelu" intermediate_size=61;
    attn_layer_period=11 attn_layer_offset=10 num_key_value_heads=3; output_router_logits=true
    """,
    "bamba": f"""{SHARED}{HYBRIDS}{ROPES}{FORMS};
    attn_layer_indices=[0,1,2,3,4]; attn_layer_indices=[]; attn_layer_indices=null; attn_layer_indices=[4,2,4];
    attn_layer_indices=[0,7]; mlp_bias=true; mlp_bias=true attention_bias=true mamba_proj_bias=true;
    num_logits_to_keep=null z_loss_coefficient=0.1
    """,
    "falcon_h1": f"""{SHARED}{HYBRIDS}{ROPES}{FORMS};
    mamba_d_ssm=96 mamba_d_head=8; mamba_d_ssm=60 mamba_d_head="auto"; mamba_rms_norm=true;
    mamba_rms_norm=true mamba_norm_before_gate=false; projectors_bias=true; projectors_bias=true mamba_proj_bias=true;
    mlp_bias=true attention_bias=true; mamba_rms_norm=true mamba_n_groups=1 mlp_bias=true; -head_dim;
    mamba_norm_before_gate=false;
    lm_head_multiplier=0.04 embedding_multiplier=5.6 mlp_multipliers=[0.9,0.2] key_multiplier=0.4;
    ssm_multipliers=[0.3,0.25,0.2,0.5,0.3] ssm_in_multiplier=1.25 ssm_out_multiplier=0.2 attention_in_multiplier=1.0;
    mamba_d_ssm=180 mamba_d_head=15 mamba_expand=5 attention_out_multiplier=0.9
    """,
    "granitemoehybrid": f"""
    num_hidden_layers=1 layer_types=F; num_hidden_layers=8 layer_types=LLFLLLFL vocab_size=53; tie_word_embeddings=true;
    layer_types=MAMMA; layer_types=AAAAA; layer_types=FFFFF num_local_experts=0; layer_types=null; -layer_types;
    layer_types=LLLLL; -layer_types layers_block_type=MMAMA;
    num_local_experts=0; num_local_experts=0 num_experts_per_tok=0 shared_intermediate_size=61; num_experts_per_tok=1;
    num_local_experts=1 num_experts_per_tok=1; num_experts_per_tok=11; shared_intermediate_size=1;
    position_embedding_type="rope"; position_embedding_type="rope" rope_theta=5e5; position_embedding_type="nope";
    attention_multiplier=0.0078125 residual_multiplier=0.22; embedding_multiplier=12 logits_scaling=6
    {HYBRIDS}{FORMS}
    """,
    "nemotron_h": """
    num_hidden_layers=7; -hybrid_override_pattern; hybrid_override_pattern="M*"; hybrid_override_pattern="*";
    vocab_size=53; hybrid_override_pattern="*-" intermediate_size=61;
    hybrid_override_pattern="M-M-M*-M-" num_hidden_layers=9;
    -hybrid_override_pattern layers_block_type=MEADL;
    -hybrid_override_pattern layers_block_type=LEFD num_hidden_layers=4;
    num_key_value_heads=6; num_attention_heads=12; head_dim=16; -head_dim; -n_groups mamba_n_groups=1;
    n_groups=12; mamba_num_heads=15 mamba_head_dim=11; ssm_state_size=2; conv_kernel=2 use_conv_bias=false;
    -conv_kernel mamba_d_conv=3 mamba_conv_bias=false; use_bias=true; mlp_bias=true; mlp_bias=true moe_latent_size=17;
    moe_latent_size=17; moe_latent_size=91 num_experts_per_tok=12; chunk_size=5; -chunk_size mamba_chunk_size=48;
    chunk_size=128;
    n_group=3 topk_group=2; n_group=4 topk_group=1 norm_topk_prob=false routed_scaling_factor=2.5;
    -n_routed_experts num_local_experts=7; num_experts_per_tok=1 moe_shared_expert_intermediate_size=61;
    moe_intermediate_size=31 mlp_hidden_act="silu"; num_nextn_predict_layers=1 mtp_hybrid_override_pattern="*E";
    num_nextn_predict_layers=1 mtp_layers_block_type=AE; mamba_ssm_cache_dtype="bfloat16" mamba_hidden_act="gelu";
    hybrid_override_pattern="M*EM*E" rope_theta=10000 partial_rotary_factor=1.0; expand=3; hybrid_override_pattern="-*"
    """,
    "zamba": """
    num_hidden_layers=6; num_hidden_layers=16 vocab_size=53; tie_word_embeddings=false; num_key_value_heads=6;
    num_attention_heads=12 num_key_value_heads=2; attention_head_dim=18; head_dim=22 num_key_value_heads=2;
    attn_layer_period=1 attn_layer_offset=0; attn_layer_period=5 attn_layer_offset=0; layers_block_type=LHLLHLLLH;
    layers_block_type=MMHMMMHMH; layers_block_type=HHHHHHHHH; layers_block_type=LLLLLLLHH; n_mamba_heads=1;
    n_mamba_heads=7 mamba_dt_rank=3; mamba_dt_rank="auto"; -mamba_dt_rank; mamba_expand=3; mamba_d_state=1;
    mamba_d_conv=2 mamba_conv_bias=false; mamba_proj_bias=true; hidden_act="silu" hidden_mamba_act="gelu";
    attention_hidden_size=168 intermediate_size=61; mamba_proj_bias=true n_mamba_heads=2 mamba_d_state=29
    """,
    "zamba2": """
    num_hidden_layers=3 layers_block_type=LLH; num_hidden_layers=9 layers_block_type=LLHLLLHLH vocab_size=53;
    tie_word_embeddings=false; num_mem_blocks=1; num_mem_blocks=3; num_mem_blocks=9; layers_block_type=MHMHHMH;
    layers_block_type=HHHHHHH; layers_block_type=LLLLHLL; use_shared_attention_adapter=true; adapter_rank=17;
    use_shared_attention_adapter=true num_mem_blocks=1 adapter_rank=1; use_mem_rope=true; num_key_value_heads=null;
    use_mem_rope=true use_long_context=true rope_theta=5e5; add_bias_linear=true; num_key_value_heads=3;
    add_bias_linear=true use_shared_attention_adapter=true num_mem_blocks=3;
    num_attention_heads=12 num_key_value_heads=12;
    n_mamba_heads=24; n_mamba_heads=6 mamba_ngroups=1; mamba_ngroups=12; mamba_expand=3; mamba_d_state=2;
    mamba_d_conv=2; chunk_size=5; chunk_size=256; intermediate_size=null; hidden_act="silu" intermediate_size=61;
    attention_head_dim=20; attention_head_dim=22 use_mem_rope=true num_key_value_heads=2;
    hybrid_layer_ids=[1,3,4,6] attention_head_dim=28 attention_hidden_size=168 mamba_headdim=14 kv_channels=14
    """,
}

# What the library will not build, or will not run.
REFUSED = {
    "mamba": 'time_step_rank="rank"; hidden_act="prelu_like"',
    "mamba2": "head_dim=8; num_heads=13; expand=3; n_groups=5; hidden_size=43",
    "jamba": """
    attn_layer_offset=4; expert_layer_offset=3; num_experts_per_tok=12; num_key_value_heads=4;
    expert_layer_period=0 expert_layer_offset=0; num_key_value_heads=null
    """,
    "bamba": "mamba_d_head=15; mamba_n_heads=13; mamba_n_groups=5; num_key_value_heads=5; mamba_expand=3",
    "falcon_h1": "mamba_d_ssm=96; mamba_d_head=15; mamba_d_ssm=97; mamba_n_groups=5; head_dim=7; head_dim=null",
    "granitemoehybrid": """
    layer_types=LFL; layer_types=XXXXX; mamba_d_head=15; num_experts_per_tok=12; mamba_n_groups=5;
    position_embedding_type="rope" head_dim=7
    """,
    "nemotron_h": """
    hybrid_override_pattern="MXM"; -hybrid_override_pattern layers_block_type=LXF; num_experts_per_tok=13; n_group=5;
    n_groups=5; n_group=12 topk_group=12; num_key_value_heads=4; num_key_value_heads=null
    """,
    "zamba": """
    attention_hidden_size=84; n_mamba_heads=5; num_key_value_heads=5; layers_block_type=LXHLLLLLL;
    num_key_value_heads=null
    """,
    "zamba2": """
    n_mamba_heads=11; mamba_ngroups=5; use_shared_attention_adapter=true num_key_value_heads=3;
    use_shared_attention_adapter=true attention_head_dim=20;
    num_mem_blocks=0; hybrid_layer_ids=[1,3]
    """,
}
WORDS = {
    "L": "linear_attention",
    "F": "full_attention",
    "H": "hybrid",
    "E": "moe",
    "D": "mlp",
    "M": "mamba",
    "A": "attention",
    "X": "sliding_attention_of_sorts",
}
LISTS = ("layer_types", "layers_block_type", "mtp_layers_block_type")


def changed(model_type: str, case: str) -> Config:
    """The small config of a type with the changes of a case."""
    config = dict(SMALL[model_type])
    for word in case.split():
        key, _, value = word.partition("=")
        if not value:
            config.pop(key.removeprefix("-"))
        elif key in LISTS and value != "null":
            config[key] = value
        else:
            config[key] = json.loads(value)
    for key in LISTS:
        if isinstance(config.get(key), str):
            config[key] = [WORDS[letter] for letter in config[key]]
    return config


def raw(model_type: str, config: Config) -> Config:
    """A whole `config.json`."""
    return {"model_type": model_type, "architectures": [CLASSES[model_type]], **config}


def split(text: str) -> list[str]:
    """The cases of a text."""
    return [case for case in (" ".join(case.split()) for case in text.split(";")) if case]


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in split(text):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, changed(model_type, case))


def drawn(model_type: str, rng: random.Random) -> Config:
    """Two of the type's cases at once, where they change no list of layers, and another vocabulary."""
    of_layers = ("layer", "hybrid_override_pattern", "null", "hidden_size", "expand")
    of_shapes = ("head", "n_groups", "ngroups", "d_ssm", "experts", "kv_channels")
    every = [case for case in split(CASES[model_type]) if not any(word in case for word in (*of_layers, *of_shapes))]
    first, second = rng.sample(every, 2)
    keys = {word.partition("=")[0].lstrip("-") for word in first.split()}
    words = [word for word in second.split() if word.partition("=")[0].lstrip("-") not in keys]
    config = changed(model_type, f"{first} {' '.join(words)}")
    config["vocab_size"] = rng.choice((13, 97, 211))
    if "intermediate_size" in SMALL[model_type]:
        config["intermediate_size"] = rng.choice((31, 43, 59))
    return raw(model_type, config)
