"""The configs that `record_linear.py` records: a small one of each type, changes to it, and two changes at once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "qwen3_next": "Qwen3NextForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "lara_mini": "LaraMiniForCausalLM",
    "olmo_hybrid": "OlmoHybridForCausalLM",
    "kimi_linear": "KimiLinearForCausalLM",
    "bailing_hybrid": "BailingHybridForCausalLM",
    "minimax": "MiniMaxForCausalLM",
    "lfm2": "Lfm2ForCausalLM",
    "lfm2_moe": "Lfm2MoeForCausalLM",
    "lfm3": "Lfm3ForCausalLM",
    "recurrent_gemma": "RecurrentGemmaForCausalLM",
    "rwkv": "RwkvForCausalLM",
    "xlstm": "xLSTMForCausalLM",
}
WRAPPERS = {"qwen3_5": "Qwen3_5ForConditionalGeneration", "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration"}
TEXTS = {wrapper: f"{wrapper}_text" for wrapper in WRAPPERS}
NO_DEFAULT = {"lfm2_moe"}
"""Its class wants to be told the types of its layers."""

# V=101, D=84, N=6, K=3, H=10, F=37 and 23, E=11, X=3, L=5 where a case does not say otherwise.
SIZES: Config = {
    "vocab_size": 101,
    "hidden_size": 84,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 37,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DELTA: Config = {
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 11,
    "linear_value_head_dim": 13,
}
ROUTED: Config = {"num_experts": 11, "num_experts_per_tok": 3, "moe_intermediate_size": 23}
SHARED: Config = {"shared_expert_intermediate_size": 29}
LATENT: Config = {"kv_lora_rank": 19, "qk_nope_head_dim": 7, "qk_rope_head_dim": 6, "v_head_dim": 9}
DEEPSEEK: Config = {
    **LATENT,
    "num_key_value_heads": 6,
    "num_experts": 12,
    "num_experts_per_token": 3,
    "moe_intermediate_size": 23,
    "num_shared_experts": 2,
}
QWEN: Config = {**SIZES, **DELTA, "head_dim": 20}
OWN: dict[str, Config] = {
    "qwen3_next": {**QWEN, **ROUTED, **SHARED},
    "qwen3_5_text": QWEN,
    "qwen3_5_moe_text": {**QWEN, **ROUTED, **SHARED},
    "qwen3_5": QWEN,
    "qwen3_5_moe": {**QWEN, **ROUTED, **SHARED},
    "lara_mini": {**SIZES, **DELTA, **ROUTED, **SHARED, "head_dim": 10},
    "olmo_hybrid": {**SIZES, **DELTA},
    "kimi_linear": {**SIZES, **DEEPSEEK, "linear_head_dim": 11, "linear_num_heads": 5},
    "bailing_hybrid": {
        **SIZES,
        **DEEPSEEK,
        "num_expert_group": 3,
        "topk_group": 2,
        "head_dim": 11,
        "layer_group_size": 3,
    },
    "minimax": {**SIZES, "num_local_experts": 11, "num_experts_per_tok": 3, "head_dim": 10},
    "lfm2": {**SIZES, "full_attn_idxs": [1, 4]},
    "lfm2_moe": {**SIZES, **ROUTED, "layer_types": "CFCCF"},
    "lfm3": {**SIZES, "head_dim": 10},
    "recurrent_gemma": {**SIZES, "lru_width": 66, "intermediate_size": 74},
    "rwkv": {
        **{key: SIZES[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")},
        "context_length": 64,
    },
    "xlstm": {"vocab_size": 101, "hidden_size": 128, "num_hidden_layers": 3, "num_heads": 4},
}
for name, own in OWN.items():
    if name in ("lara_mini", "lfm3"):
        own.pop("num_hidden_layers")
        own["num_hidden_layers"] = 7

# Changes to these, `;` between cases, `-key` takes a key away; in `layer_types` L is linear attention, F full, S slides
# and C is a convolution, in `mlp_layer_types` D is dense and S sparse.
LAYERS = "num_hidden_layers=4; num_hidden_layers=9 vocab_size=53"
TIED = "tie_word_embeddings=true; tie_word_embeddings=false"
COMMON = f"""{LAYERS}; {TIED}; num_key_value_heads=6; num_attention_heads=12 torch_dtype="bfloat16" """
GATED_DELTA = """;
    linear_num_key_heads=6; linear_num_key_heads=2 linear_num_value_heads=8; linear_num_key_heads=1;
    linear_key_head_dim=17; linear_value_head_dim=7; linear_conv_kernel_dim=2; linear_conv_kernel_dim=7
"""
QWEN_CASES = f"""{COMMON}{GATED_DELTA};
    attention_bias=true; head_dim=32; head_dim=14; full_attention_interval=2; layer_types=LFFLL; layer_types=FFFFF;
    partial_rotary_factor=0.5 rope_theta=1e7; linear_conv_kernel_dim=1
"""
QWEN_ROPE = """;
    rope_parameters={"mrope_interleaved":true,"mrope_section":[2,1,1],"rope_type":"default","rope_theta":1e7,"partial_rotary_factor":0.4}
"""
EXPERTS = "; num_experts_per_tok=11; shared_expert_intermediate_size=61 moe_intermediate_size=7"
GROUPS = "; num_expert_group=4 topk_group=2; num_expert_group=1 topk_group=1 moe_renormalize=false"
LATENT_CASES = f"""num_hidden_layers=6; num_hidden_layers=9 vocab_size=53;
    attention_bias=true; q_lora_rank=17; q_lora_rank=17 attention_bias=true; kv_lora_rank=23 v_head_dim=5;
    qk_nope_head_dim=3 qk_rope_head_dim=10; num_shared_experts=1; num_key_value_heads=null;
    num_experts_per_token=2 routed_scaling_factor=1.5; -num_experts num_local_experts=24; mlp_layer_types=SDSDD;
    layer_types=LFFLL; layer_types=FFFFF; num_attention_heads=12 num_key_value_heads=12{GROUPS}
"""
CASES = {
    "qwen3_next": f"""{QWEN_CASES}{EXPERTS};
    norm_topk_prob=false; decoder_sparse_step=2; mlp_only_layers=[0,3]; decoder_sparse_step=2 mlp_only_layers=[1];
    mlp_only_layers=[0,1,2,3,4]
    """,
    "qwen3_5_text": f"{QWEN_CASES}{QWEN_ROPE}",
    "qwen3_5_moe_text": f"{QWEN_CASES}{QWEN_ROPE}{EXPERTS}",
    "qwen3_5": "; linear_num_key_heads=2 linear_num_value_heads=8; layer_types=LFFLL; head_dim=32 attention_bias=true",
    "qwen3_5_moe": "; linear_value_head_dim=7; layer_types=LFFLL; num_experts_per_tok=11",
    "lara_mini": f"""{COMMON}{GATED_DELTA}{EXPERTS};
    attention_bias=true; sliding_window=5; sliding_window=17 layer_types=SLFSLFF; layer_types=FFFFFFF;
    layer_types=SSSSSSS sliding_window=8; norm_topk_prob=false; head_dim=16
    """,
    "olmo_hybrid": f"""num_hidden_layers=2; num_hidden_layers=9 vocab_size=53; {TIED}{GATED_DELTA};
    num_key_value_heads=6; num_key_value_heads=null; attention_bias=true; layer_types=LFFLL; layer_types=FLFFF;
    linear_allow_neg_eigval=false; -linear_num_key_heads -linear_num_value_heads; -linear_key_head_dim;
    -linear_value_head_dim; -linear_key_head_dim -linear_value_head_dim linear_num_key_heads=1;
    rope_parameters={{"rope_type":"default","rope_theta":null}};
    rope_parameters={{"rope_type":"default","rope_theta":5e5}}
    """,
    "kimi_linear": f"""{LATENT_CASES};
    linear_num_heads=2 linear_head_dim=17; linear_conv_kernel_dim=2; first_k_dense_replace=3; first_k_dense_replace=0;
    linear_attn_config={{"full_attn_layers":[2,5],"kda_layers":[1,3,4],"head_dim":13,"num_heads":3,"short_conv_kernel_size":3}};
    linear_attn_config={{"head_dim":13,"num_heads":3}} layer_types=LLFLF
    """,
    "bailing_hybrid": f"""{LATENT_CASES};
    head_dim=7; short_conv_kernel_size=2; layer_group_size=2; first_k_dense_replace=0; first_k_dense_replace=9;
    kda_safe_gate=false kda_lower_bound=-3.0; num_nextn_predict_layers=0; rope_theta=1e4
    """,
    "minimax": f"""{LAYERS}; {TIED}; num_key_value_heads=6; num_attention_heads=3 torch_dtype="bfloat16";
    head_dim=null; head_dim=16 hidden_size=62; layer_types=LFFLL; layer_types=FFFFF; layer_types=LLLLL; block_size=7;
    block_size=16; block_size=5 layer_types=LLFLL; num_experts_per_tok=11; -num_local_experts num_experts=7;
    full_attn_alpha_factor=3.5 linear_attn_alpha_factor=3.5 mlp_alpha_factor=3.5;
    mlp_beta_factor=0.5 linear_attn_beta_factor=2.0
    """,
    "lfm2": f"""{LAYERS}; {TIED}; num_key_value_heads=6; num_attention_heads=3 torch_dtype="bfloat16";
    block_auto_adjust_ff_dim=false; block_multiple_of=7; block_ffn_dim_multiplier=1.3 block_multiple_of=5;
    conv_bias=true; conv_L_cache=5; conv_L_cache=2 conv_bias=true; layer_types=CCFFC;
    -full_attn_idxs; block_ff_dim=53; tie_embedding=false; rope_theta=1e4; head_dim=10; hidden_size=62;
    full_attn_idxs=[0,1,2,3,4]
    """,
    "lfm2_moe": f"""
    num_hidden_layers=1 layer_types=F; num_hidden_layers=3 layer_types=CFC vocab_size=53; {TIED};
    num_key_value_heads=6; conv_bias=true; conv_L_cache=5; num_dense_layers=0; num_dense_layers=9;
    use_expert_bias=false; norm_topk_prob=false routed_scaling_factor=2.5; num_experts_per_tok=11; layer_types=FFFFF;
    tie_embedding=false; head_dim=10
    """,
    "lfm3": f"""{COMMON};
    conv_bias=true; conv_L_cache=3; use_sandwich_norm=false; use_attention_gate=false; attention_bias=true;
    sliding_window=5; sliding_window=17 layer_types=SCFSCFF; layer_types=FFFFFFF;
    head_dim=16; layer_types=SSSSSSS sliding_window=8;
    rope_parameters={{"sliding_attention":{{"rope_type":"default","rope_theta":2e4}},"full_attention":{{"rope_type":"default","rope_theta":5e5}}}}
    """,
    "recurrent_gemma": f"""{LAYERS}; {TIED};
    lru_width=null; lru_width=84; lru_width=132; attention_window_size=5; attention_window_size=17
    block_types=["attention","recurrent"]; block_types=["attention"] attention_window_size=8;
    conv1d_width=2; conv1d_width=7; num_key_value_heads=1; num_key_value_heads=null; attention_bias=true;
    intermediate_size=75; hidden_size=62; num_attention_heads=3 lru_width=63;
    logits_soft_cap=10.0 hidden_activation="silu"
    """,
    "rwkv": f"""num_hidden_layers=2; num_hidden_layers=7 vocab_size=53; {TIED};
    intermediate_size=null; hidden_size=59; attention_hidden_size=84; rescale_every=0; layer_norm_epsilon=1e-6;
    -context_length max_position_embeddings=128
    """,
    "xlstm": """num_hidden_layers=1; num_hidden_layers=5 num_blocks=5; tie_word_embeddings=false;
    num_heads=2; qk_dim_factor=1.0; v_dim_factor=2.0; ffn_proj_factor=1.3; ffn_round_up_to_multiple_of=7;
    weight_mode="fused"; chunk_size=16; embedding_dim=128; hidden_size=192 qk_dim_factor=1.0 num_heads=3;
    hidden_size=320 qk_dim_factor=0.6 num_heads=2; gate_soft_cap=7.0;
    inference_state_dtype="bfloat16"; vocab_size=53 add_out_norm=true
    """,
}

# What the library will not build, or will not run.
REFUSED = {
    "qwen3_next": "num_experts_per_tok=12; layer_types=LFL; linear_num_key_heads=4; num_key_value_heads=5",
    "qwen3_5_text": "layer_types=LFL; linear_num_key_heads=4; num_key_value_heads=5",
    "qwen3_5_moe_text": "num_experts_per_tok=12; layer_types=LFL",
    "lara_mini": "num_experts_per_tok=12; linear_num_key_heads=4; num_key_value_heads=5; layer_types=LFS; head_dim=7",
    "olmo_hybrid": """
    layer_types=LLLLL; layer_types=FFFFF; layer_types=LFL; linear_num_key_heads=4; num_key_value_heads=5
    """,
    "kimi_linear": "num_experts_per_token=13; layer_types=LFL; num_expert_group=5; mlp_layer_types=SD",
    "bailing_hybrid": "num_experts_per_token=13; layer_types=LFL; num_expert_group=5",
    "minimax": "num_experts_per_tok=12; layer_types=LFL; num_key_value_heads=5; head_dim=7",
    "lfm2": "layer_types=CF; num_key_value_heads=5; head_dim=7",
    "lfm2_moe": "layer_types=CF; num_experts_per_tok=12; -layer_types",
    "lfm3": "layer_types=CFS; num_key_value_heads=5; head_dim=7",
    "recurrent_gemma": "lru_width=65; num_key_value_heads=12; num_key_value_heads=5",
    "rwkv": "attention_hidden_size=60",
    "xlstm": 'num_heads=3; weight_mode="both"; hidden_size=120; embedding_dim=64; hidden_size=192 num_heads=6',
}
WORDS = {"L": "linear_attention", "F": "full_attention", "S": "sliding_attention", "C": "conv"}
NETWORKS = {"D": "dense", "S": "sparse"}


def changed(model_type: str, case: str) -> Config:
    """The small config of a type with the changes of a case."""
    config = dict(OWN[model_type])
    for word in case.split():
        key, _, value = word.partition("=")
        if not value:
            config.pop(key.removeprefix("-"))
        elif key in ("layer_types", "mlp_layer_types"):
            config[key] = value
        else:
            config[key] = json.loads(value)
    for key, names in (("layer_types", WORDS), ("mlp_layer_types", NETWORKS)):
        if isinstance(config.get(key), str):
            config[key] = [names[letter] for letter in config[key]]
    return config


def raw(model_type: str, text: Config) -> Config:
    """A whole `config.json`: of a wrapper, with its text model inside and a vision tower of a few numbers."""
    if model_type not in TEXTS:
        return {"model_type": model_type, "architectures": [CLASSES[model_type]], **text}
    vision = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 84}
    outer = {"model_type": model_type, "architectures": [WRAPPERS[model_type]]}
    return {**outer, "text_config": {"model_type": TEXTS[model_type], **text}, "vision_config": vision}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, changed(model_type, case))


def drawn(model_type: str, rng: random.Random) -> Config:
    """Two of the type's cases at once, and other sizes."""
    every = [case for case in (" ".join(case.split()) for case in CASES[model_type].split(";")) if case]
    every = [case for case in every if "num_hidden_layers" not in case and "hidden_size" not in case]
    if model_type == "minimax":  # its cache asks the first layer how many tokens it holds
        every = [case for case in every if "layer_types=L" not in case]
    first, second = rng.sample(every, 2)
    keys = {word.partition("=")[0].lstrip("-") for word in first.split()}
    words = [word for word in second.split() if word.partition("=")[0].lstrip("-") not in keys]
    config = changed(model_type, f"{first} {' '.join(words)}")
    if config.get("linear_num_value_heads", 0) % (config.get("linear_num_key_heads") or 1):
        config["linear_num_value_heads"] = 2 * config["linear_num_key_heads"]
    named = {word.partition("=")[0].lstrip("-") for word in f"{first} {second}".split()}
    config["vocab_size"] = rng.choice((13, 97, 211))
    for key, sizes in (("intermediate_size", (31, 43, 59)), ("moe_intermediate_size", (17, 19, 47))):
        if key in config and key not in named:
            config[key] = rng.choice(sizes)
    return raw(model_type, config)
