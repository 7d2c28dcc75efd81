"""The configs that `record_mixtures.py` records: a small one of each type, changes to it, and two changes at once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "mixtral": "MixtralForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "llama4_text": "Llama4ForCausalLM",
    "mimo_v2_flash": "MiMoV2FlashForCausalLM",
    "olmoe": "OlmoeForCausalLM",
    "flex_olmo": "FlexOlmoForCausalLM",
    "phimoe": "PhimoeForCausalLM",
    "granitemoe": "GraniteMoeForCausalLM",
    "granitemoeshared": "GraniteMoeSharedForCausalLM",
    "granitemoe_swa": "GraniteMoeSWAForCausalLM",
    "ernie4_5_moe": "Ernie4_5_MoeForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "sarvam_moe": "Glm4MoeForCausalLM",
    "solar_open": "SolarOpenForCausalLM",
    "dots1": "Dots1ForCausalLM",
    "minimax_m2": "MiniMaxM2ForCausalLM",
    "hy_v3": "HYV3ForCausalLM",
    "hunyuan_v1_moe": "HunYuanMoEV1ForCausalLM",
    "exaone_moe": "ExaoneMoeForCausalLM",
    "cohere2_moe": "Cohere2MoeForCausalLM",
    "mellum": "MellumForCausalLM",
    "afmoe": "AfmoeForCausalLM",
    "aria_text": "AriaTextForCausalLM",
    "flint": "FlintForCausalLM",
    "kolibri1": "Kolibri1ForCausalLM",
    "laguna": "LagunaForCausalLM",
}
WRAPPERS = {"llama4": "Llama4ForConditionalGeneration", "qwen3_vl_moe": "Qwen3VLMoeForConditionalGeneration"}
"""Only their class defaults are written, and a few rows of `qwen3_vl_moe`: the library cannot run the other on meta."""
TEXTS = {"qwen3_vl_moe": "qwen3_vl_moe_text"}
NO_DEFAULT = {"dots1", "hunyuan_v1_moe"}
"""Classes whose defaults name no experts, or one: a default row would say nothing."""

# V=101, D=84, N=6, K=3, H=10, F=37 and 23, E=11, X=3, L=5 where a case does not say otherwise.
SIZES: Config = {
    "vocab_size": 101,
    "hidden_size": 84,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 10,
    "intermediate_size": 37,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
ROUTED: Config = {"num_experts": 11, "num_experts_per_tok": 3}
LOCAL: Config = {"num_local_experts": 11, "num_experts_per_tok": 3}
DEEPSEEK: Config = {
    "n_routed_experts": 12,
    "num_experts_per_tok": 3,
    "n_shared_experts": 2,
    "moe_intermediate_size": 23,
}
OWN: dict[str, Config] = {
    "mixtral": LOCAL,
    "qwen2_moe": {**ROUTED, "moe_intermediate_size": 23, "shared_expert_intermediate_size": 29},
    "qwen3_moe": {**ROUTED, "moe_intermediate_size": 23},
    "qwen3_vl_moe": {**ROUTED, "moe_intermediate_size": 23},
    "gpt_oss": LOCAL,
    "llama4_text": {"num_local_experts": 7, "num_experts_per_tok": 1, "intermediate_size_mlp": 41},
    "mimo_v2_flash": {
        "n_routed_experts": 12,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 23,
        "head_dim": 18,  # 0.334 of it are 6 that are rotated
        "v_head_dim": 14,
        "num_key_value_heads": 1,
    },
    "olmoe": {**ROUTED, "head_dim": 14},
    "flex_olmo": ROUTED,
    "phimoe": {"num_local_experts": 11},
    "granitemoe": LOCAL,
    "granitemoeshared": LOCAL,
    "granitemoe_swa": LOCAL,
    "ernie4_5_moe": {"moe_num_experts": 11, "moe_k": 3, "moe_intermediate_size": 23},
    "glm4_moe": {**DEEPSEEK, "head_dim": 12},
    "sarvam_moe": DEEPSEEK,
    "solar_open": DEEPSEEK,
    "dots1": DEEPSEEK,
    "minimax_m2": LOCAL,
    "hy_v3": {**ROUTED, "moe_intermediate_size": 23},
    "hunyuan_v1_moe": {"num_experts": 11, "moe_topk": 3},
    "exaone_moe": {"num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 23},
    "cohere2_moe": ROUTED,
    "mellum": {**ROUTED, "moe_intermediate_size": 23},
    "afmoe": {**ROUTED, "moe_intermediate_size": 23},
    "aria_text": {"moe_num_experts": 11, "moe_topk": 3},
    "flint": {**ROUTED, "moe_intermediate_size": 23, "shared_expert_intermediate_size": 29},
    "kolibri1": {**ROUTED, "moe_intermediate_size": 23, "shared_expert_intermediate_size": 29},
    "laguna": {**ROUTED, "moe_intermediate_size": 23, "shared_expert_intermediate_size": 29, "head_dim": 12},
}

# Changes to these, `;` between cases, `-key` takes a key away; in `layer_types` S slides, F is full and C in chunks, in
# `mlp_layer_types` D is dense and S sparse.
SHARED = """
    num_hidden_layers=1; num_hidden_layers=7 vocab_size=53; tie_word_embeddings=true; tie_word_embeddings=false;
    num_key_value_heads=6
"""
COMMON = f"""{SHARED}; num_attention_heads=12; rope_theta=5e5 rope_scaling=null torch_dtype="bfloat16" """
ONE_ROPE = """;
    rope_parameters={"rope_type":"default","rope_theta":7e4}; rope_scaling={"rope_type":"linear","factor":2.0}
"""
FREE_HEAD = "; -head_dim; head_dim=16 hidden_size=62"
GROUPS = "; n_group=3 topk_group=2; n_group=4 topk_group=1 norm_topk_prob=false routed_scaling_factor=2.5"
MLP = "; mlp_layer_types=SDSDD; mlp_layer_types=DDDDD; mlp_layer_types=SSSSS"
CASES = {
    "mixtral": f"""{COMMON}{ONE_ROPE}{FREE_HEAD};
    sliding_window=5; sliding_window=17; head_dim=null; -num_local_experts num_experts=7; num_experts_per_tok=11;
    num_experts_per_tok=1 intermediate_size=1 router_jitter_noise=0.1 output_router_logits=true
    """,
    "qwen2_moe": f"""{COMMON}{ONE_ROPE}{FREE_HEAD};
    qkv_bias=false; norm_topk_prob=true; decoder_sparse_step=2; decoder_sparse_step=3 mlp_only_layers=[2];
    mlp_only_layers=[0,3]; mlp_only_layers=[0,1,2,3,4]; shared_expert_intermediate_size=41 num_experts_per_tok=1;
    use_sliding_window=true sliding_window=5; use_sliding_window=true sliding_window=8 max_window_layers=3;
    use_sliding_window=true sliding_window=5 layer_types=FFSSF mlp_only_layers=[1]; sliding_window=5
    """,
    "qwen3_moe": f"""{COMMON}{ONE_ROPE}{FREE_HEAD};
    attention_bias=true; norm_topk_prob=true; decoder_sparse_step=2 mlp_only_layers=[1]; mlp_only_layers=[0,1,2,3,4];
    decoder_sparse_step=7; use_sliding_window=true sliding_window=5; sliding_window=5 max_window_layers=2;
    use_sliding_window=true sliding_window=null; -num_experts num_local_experts=7
    """,
    "qwen3_vl_moe": """;
    attention_bias=true; decoder_sparse_step=2 mlp_only_layers=[1]; -head_dim; head_dim=null; num_key_value_heads=6;
    rope_theta=5e6 rope_scaling={"mrope_interleaved":true,"mrope_section":[2,2,1],"rope_type":"default"}
    """,
    "gpt_oss": f"""{COMMON}{FREE_HEAD};
    attention_bias=false; sliding_window=5; sliding_window=8 layer_types=FFSSF; layer_types=FFFFF;
    -num_local_experts num_experts=7; swiglu_limit=5.5 num_experts_per_tok=11;
    rope_scaling={{"rope_type":"yarn","factor":32.0,"beta_fast":32.0,"beta_slow":1.0,"truncate":false}}
    """,
    "llama4_text": f"""{COMMON}{FREE_HEAD};
    use_qk_norm=false; attention_chunk_size=5; attention_chunk_size=8 no_rope_layer_interval=2; attention_bias=true;
    attention_chunk_size=null; interleave_moe_layer_step=2; interleave_moe_layer_step=3 intermediate_size_mlp=61;
    moe_layers=[0,3] attention_chunk_size=11; moe_layers=[]; no_rope_layers=[1,0,0,1,1] attention_chunk_size=5;
    no_rope_layers=[] attention_chunk_size=17; layer_types=CFCFC attention_chunk_size=5; num_experts_per_tok=2;
    num_experts_per_tok=7; no_rope_layers=[0,0,0,0,0]; no_rope_layers=[1,1,1,1,1] attention_chunk_size=8
    """,
    "mimo_v2_flash": f"""
    num_hidden_layers=1; num_hidden_layers=13; tie_word_embeddings=true; num_key_value_heads=3{MLP};
    attention_bias=true; sliding_window=5; sliding_window_size=7;
    sliding_window=8 layer_types=SSFSF mlp_layer_types=DDSSD;
    v_head_dim=18; v_head_dim=22 head_dim=24; n_group=3 topk_group=2 norm_topk_prob=false; routed_scaling_factor=null;
    attention_value_scale=null sliding_window=17; layer_types=FFFFF; layer_types=SSSSS sliding_window=5
    """,
    "olmoe": f"""{SHARED}{ONE_ROPE};
    attention_bias=true; norm_topk_prob=true; clip_qkv=8.0; num_key_value_heads=null; -head_dim hidden_size=60
    """,
    "flex_olmo": f"{COMMON}{ONE_ROPE}{FREE_HEAD}; attention_bias=true; norm_topk_prob=true; num_key_value_heads=null",
    "phimoe": f"""{COMMON}{FREE_HEAD};
    attention_bias=true; lm_head_bias=true; sliding_window=5; lm_head_bias=true tie_word_embeddings=true;
    attention_bias=true lm_head_bias=true sliding_window=17 router_jitter_noise=0.02
    """,
    "granitemoe": f"""{COMMON}{ONE_ROPE}{FREE_HEAD};
    attention_bias=true; num_key_value_heads=null; attention_multiplier=0.0078125 residual_multiplier=0.22;
    embedding_multiplier=12.0 logits_scaling=6.0
    """,
    "granitemoeshared": f"""{COMMON}{FREE_HEAD};
    shared_intermediate_size=29; shared_intermediate_size=1 attention_bias=true; logits_scaling=6.0
    """,
    "granitemoe_swa": f"""{COMMON}{FREE_HEAD};
    shared_intermediate_size=29 attention_bias=true; sliding_window=5; sliding_window=8 layer_types=SSFSF;
    layer_rope_theta=[0,10000.0,0,500000.0,10000.0]; layer_types=FFFFF; layer_types=SSSSS sliding_window=17
    """,
    "ernie4_5_moe": f"""{COMMON}{ONE_ROPE}{FREE_HEAD};
    use_bias=true; moe_layer_interval=2; moe_layer_start_index=3; moe_layer_start_index=0 moe_layer_end_index=2;
    moe_num_shared_experts=0; moe_num_shared_experts=3 use_bias=true; use_bias=true moe_num_shared_experts=0;
    -moe_num_experts num_experts=7 moe_layer_start_index=9
    """,
    "glm4_moe": f"""{COMMON}{ONE_ROPE}{GROUPS};
    first_k_dense_replace=0; first_k_dense_replace=3; first_k_dense_replace=9; use_qk_norm=true; attention_bias=true;
    n_shared_experts=1 partial_rotary_factor=1.0; -head_dim hidden_size=96; n_shared_experts=0; num_mtp_layers=0
    """,
    "sarvam_moe": f"""{COMMON}{GROUPS}{FREE_HEAD};
    first_k_dense_replace=2 use_qk_norm=false; use_qkv_bias=true num_nextn_predict_layers=1;
    -n_routed_experts num_experts=24 -n_shared_experts num_shared_experts=1
    """,
    "solar_open": f"{COMMON}{GROUPS}; attention_bias=true; n_shared_experts=1 head_dim=16; n_shared_experts=0",
    "dots1": f"""{COMMON}{ONE_ROPE}{GROUPS}{FREE_HEAD};
    attention_bias=true; first_k_dense_replace=2; sliding_window=5 max_window_layers=2 first_k_dense_replace=1;
    sliding_window=8 layer_types=SFSSF; sliding_window=5; sliding_window=null; norm_topk_prob=null
    """,
    "minimax_m2": f"{COMMON}{ONE_ROPE}{FREE_HEAD}; rotary_dim=6; partial_rotary_factor=0.4; num_experts_per_tok=11",
    "hy_v3": f"""{COMMON}{FREE_HEAD}{MLP};
    attention_bias=true; mlp_bias=true; num_shared_experts=3 mlp_bias=true mlp_layer_types=DSDSS;
    enable_moe_fp32_combine=false router_scaling_factor=1.5
    """,
    "hunyuan_v1_moe": f"""{COMMON};
    head_dim=16 hidden_size=62; attention_bias=true; moe_topk=[2,2,2,2,2]; num_key_value_heads=null
    """,
    "exaone_moe": f"""{COMMON}{GROUPS}{FREE_HEAD}{MLP};
    sliding_window=5; sliding_window=8 sliding_window_pattern=2; sliding_window=5 layer_types=FFSSF;
    layer_types=FFFFF; first_k_dense_replace=0; first_k_dense_replace=3 num_shared_experts=2
    """,
    "cohere2_moe": f"""{COMMON}{MLP};
    rms_norm_eps=1e-6; num_shared_experts=2; num_shared_experts=1 shared_expert_combination_strategy="sum";
    first_k_dense_replace=2; first_k_dense_replace=3 prefix_dense_sliding_window_pattern=2 sliding_window=5;
    prefix_dense_intermediate_size=41 first_k_dense_replace=1; expert_selection_fn="sigmoid" norm_topk_prob=false;
    sliding_window=5 sliding_window_pattern=2; attention_bias=true; sliding_window=8 layer_types=SFFSF;
    num_key_value_heads=null head_dim=16; mlp_layer_types=DSSDS prefix_dense_intermediate_size=41
    """,
    "mellum": f"""{SHARED}{FREE_HEAD}{MLP};
    attention_bias=true; norm_topk_prob=false; sliding_window=5 layer_types=SFSFS mlp_layer_types=DSDSD;
    -num_experts num_local_experts=7 num_mtp_layers=1;
    rope_parameters={{"full_attention":{{"rope_type":"default","rope_theta":3e5}},"sliding_attention":{{"rope_type":"default","rope_theta":2e4}}}}
    """,
    "afmoe": f"""{COMMON}{FREE_HEAD};
    attention_bias=true; num_dense_layers=0; num_dense_layers=3; sliding_window=5; mup_enabled=true route_scale=2.5;
    global_attn_every_n_layers=2 sliding_window=8; num_shared_experts=1; num_shared_experts=0;
    layer_types=SSFSF sliding_window=5 num_dense_layers=2
    """,
    "aria_text": f"""{COMMON}{ONE_ROPE};
    attention_bias=true; mlp_bias=true; moe_num_shared_experts=1; -head_dim; head_dim=16; hidden_act="gelu";
    moe_num_shared_experts=0; num_key_value_heads=null
    """,
    "flint": f"""{COMMON}{FREE_HEAD};
    attention_bias=true; sliding_window=5; sliding_window=8 layer_types=SSFSF; mlp_only_layers=[];
    mlp_only_layers=[3] decoder_sparse_step=2; norm_topk_prob=false shared_expert_intermediate_size=61
    """,
    "kolibri1": f"""{COMMON}{FREE_HEAD};
    sliding_window=5; sliding_window=8 layer_types=SSFSF; norm_topk_prob=true shared_expert_intermediate_size=61;
    layer_types=FFFFF
    """,
    "laguna": f"""{SHARED}{MLP};
    attention_bias=true; gating="per-head"; gating="per-element"; layer_types=SFSFF sliding_window=5;
    num_attention_heads_per_layer=[6,3,12,6,9]; moe_routed_scaling_factor=2.5 moe_router_logit_softcapping=30.0;
    num_attention_heads_per_layer=[3,6,6,9,9] layer_types=FSSSF sliding_window=8 gating="per-element";
    rope_parameters={{"full_attention":{{"rope_type":"default","rope_theta":3e5,"partial_rotary_factor":1.0}}}}
    """,
}

# What the library will not build, or will not run.
REFUSED = {
    "mixtral": "num_experts_per_tok=12; head_dim=7; num_key_value_heads=5",
    "qwen2_moe": "num_experts_per_tok=12; layer_types=FFSF; sliding_window=5 layer_types=FFXFF",
    "qwen3_moe": "num_experts_per_tok=12; head_dim=7",
    "gpt_oss": "num_experts_per_tok=12; layer_types=FFF; sliding_window=null",
    "llama4_text": "num_experts_per_tok=8; no_rope_layers=[1,0]; attention_chunk_size=null layer_types=CFCFC",
    "mimo_v2_flash": "num_experts_per_tok=13; mlp_layer_types=DSS; n_group=5; num_key_value_heads=2",
    "olmoe": "head_dim=10; hidden_size=62 head_dim=10",
    "glm4_moe": "num_experts_per_tok=13; n_group=5; n_group=12 topk_group=12",
    "exaone_moe": "mlp_layer_types=DSS; num_experts_per_tok=13; layer_types=FFXFF",
    "cohere2_moe": 'num_experts_per_tok=12; expert_selection_fn="tanh" ; layer_types=FFF',
    "aria_text": "hidden_size=62",
    "ernie4_5_moe": "moe_k=12",
    "afmoe": "num_experts_per_tok=12; layer_types=FFF",
    "laguna": "num_experts_per_tok=12; num_attention_heads_per_layer=[6,6]; moe_apply_router_weight_on_input=true",
}
LAYERS = {"S": "sliding_attention", "F": "full_attention", "C": "chunked_attention", "X": "local_attention"}
NETWORKS = {"D": "dense", "S": "sparse"}


def changed(model_type: str, case: str) -> Config:
    """The small config of a type with the changes of a case."""
    config = {**SIZES, **OWN[model_type]}
    for word in case.split():
        key, _, value = word.partition("=")
        if not value:
            config.pop(key.removeprefix("-"))
        elif key == "layer_types":
            config[key] = [LAYERS[letter] for letter in value]
        elif key == "mlp_layer_types":
            config[key] = [NETWORKS[letter] for letter in value]
        else:
            config[key] = json.loads(value)
    return config


def raw(model_type: str, text: Config) -> Config:
    """A whole `config.json`: of a wrapper, with its text model inside and a vision tower of a few numbers."""
    if model_type not in TEXTS:
        return {"model_type": model_type, "architectures": [CLASSES[model_type]], **text}
    vision = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 84}
    outer = {"model_type": model_type, "architectures": [WRAPPERS[model_type]]}
    text = {"model_type": TEXTS[model_type], **text}
    return {**outer, "text_config": text, "vision_config": {**vision, "deepstack_visual_indexes": [0]}}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, changed(model_type, case))


def drawn(model_type: str, rng: random.Random) -> Config:
    """Two of the type's cases at once, and other sizes: prime widths, heads and experts of any number."""
    every = [case for case in (" ".join(case.split()) for case in CASES[model_type].split(";")) if case]
    every = [case for case in every if "num_hidden_layers" not in case and "hidden_size" not in case]
    first, second = rng.sample(every, 2)
    keys = {word.partition("=")[0].lstrip("-") for word in first.split()}
    words = [word for word in second.split() if word.partition("=")[0].lstrip("-") not in keys]
    config = changed(model_type, f"{first} {' '.join(words)}")
    named = {word.partition("=")[0].lstrip("-") for word in f"{first} {second}".split()}
    config["vocab_size"] = rng.choice((13, 97, 211))
    for key, sizes in (("intermediate_size", (31, 43, 59)), ("moe_intermediate_size", (17, 19, 47))):
        if key in config and key not in named:
            config[key] = rng.choice(sizes)
    if "num_attention_heads" not in named and "num_key_value_heads" not in named and config.get("head_dim"):
        heads, kv_heads = rng.choice(((4, 2), (6, 3), (6, 1), (14, 7), (12, 4)))
        if model_type == "mimo_v2_flash":
            kv_heads = 1
        config |= {"num_attention_heads": heads, "num_key_value_heads": kv_heads}
        if model_type == "olmoe":
            config["head_dim"] = 84 // heads // 2 * 2
            config["hidden_size"] = config["head_dim"] * heads
    if not config.get("head_dim") and config["num_attention_heads"] == 12:
        config["num_attention_heads"] = 6  # 84 over 12 is odd, which rotates no pairs
    if "num_attention_heads_per_layer" in config:
        config["num_key_value_heads"] = 3
    return raw(model_type, config)
