"""The configs that `record_cousins.py` records: a small one of each type, changes to it, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "apertus": "ApertusForCausalLM",
    "apertus1p5_text": "Apertus1p5TextForCausalLM",
    "bitnet": "BitNetForCausalLM",
    "dbrx": "DbrxForCausalLM",
    "diffllama": "DiffLlamaForCausalLM",
    "doge": "DogeForCausalLM",
    "dory": "DoryForCausalLM",
    "hrm_text": "HrmTextForCausalLM",
    "jetmoe": "JetMoeForCausalLM",
}
# V=101, D=84, N=6, K=3, F=37, L=3 where a case does not say otherwise.
SIZES: Config = {
    "vocab_size": 101,
    "hidden_size": 84,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 37,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DATA_DEPENDENT = ("dbrx", "jetmoe")
"""Their classes ask which experts were chosen, so that they run with numbers, and only in small."""
DBRX: Config = {
    "vocab_size": 101,
    "d_model": 84,
    "n_layers": 3,
    "n_heads": 6,
    "attn_config": {"kv_n_heads": 3, "rope_theta": 1e4, "clip_qkv": 8},
    "ffn_config": {"ffn_hidden_size": 37, "moe_num_experts": 5, "moe_top_k": 2},
}
JETMOE: Config = {
    "vocab_size": 101,
    "hidden_size": 84,
    "num_hidden_layers": 3,
    "num_key_value_heads": 3,
    "kv_channels": 10,
    "intermediate_size": 37,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
}
OWN: dict[str, Config] = {
    "apertus": SIZES,
    "apertus1p5_text": SIZES,
    "bitnet": SIZES,
    "dbrx": DBRX,
    "doge": SIZES,
    "dory": {
        **SIZES,
        "head_dim": 10,
        "num_hidden_layers": 7,
        "n_input_layers": 2,
        "n_output_layers": 1,
        "sliding_window": 8,
    },
    "hrm_text": {
        **{key: SIZES[key] for key in SIZES if key != "num_key_value_heads"},
        "head_dim": 10,
        "num_hidden_layers": 2,
    },
    "diffllama": {**SIZES, "num_attention_heads": 12, "num_key_value_heads": 4, "hidden_size": 120},
    "jetmoe": JETMOE,
}

# Changes to these, `;` between cases, `-key` takes a key away.
COMMON = """
    num_hidden_layers=1; num_hidden_layers=7 vocab_size=53; tie_word_embeddings=true; tie_word_embeddings=false;
    num_key_value_heads=6; num_key_value_heads=1 intermediate_size=61;
    num_attention_heads=14 num_key_value_heads=7 torch_dtype="bfloat16";
    rope_theta=1e6; rope_parameters={"rope_type":"default","rope_theta":5e4};
"""
APERTUS = f"""{COMMON}
    num_key_value_heads=null; attention_bias=true; head_dim=20; head_dim=10 attention_bias=true hidden_act="silu";
    hidden_act="relu2"; hidden_size=85; mlp_bias=true
"""
CASES = {
    "apertus": APERTUS,
    "apertus1p5_text": f"""{APERTUS};
    output_vocab_size=101; output_vocab_size=29; output_vocab_size=1 tie_word_embeddings=false; output_vocab_size=null
    """,
    "bitnet": f'{COMMON} num_key_value_heads=null; attention_bias=true; head_dim=14; hidden_act="silu" mlp_bias=true',
}
CASES |= {
    "dbrx": """
    n_layers=1; n_layers=5 vocab_size=53; n_heads=14 attn_config={"kv_n_heads":7,"rope_theta":5e5,"clip_qkv":8};
    attn_config={"rope_theta":1e4,"clip_qkv":6.0}; ffn_config={"moe_num_experts":7,"moe_top_k":7,"ffn_hidden_size":23};
    ffn_config={"ffn_hidden_size":29,"moe_normalize_expert_weights":null,"ffn_act_fn":{"name":"gelu"}};
    max_position_embeddings=77 torch_dtype="bfloat16"
    """,
    "diffllama": """
    num_hidden_layers=1; num_hidden_layers=7 vocab_size=53; tie_word_embeddings=true; num_key_value_heads=null;
    num_key_value_heads=2 intermediate_size=61; num_key_value_heads=12; head_dim=14; head_dim=null; hidden_size=125;
    attention_bias=true lambda_std_dev=0.2; num_attention_heads=4 num_key_value_heads=2 torch_dtype="bfloat16";
    rope_theta=1e6 hidden_act="gelu"; rope_scaling={"rope_type":"linear","factor":2.0} mlp_bias=true
    """,
    "doge": f"""{COMMON}
    num_key_value_heads=null; attention_bias=true; mlp_bias=true attention_bias=true; head_dim=10; keep_window_size=8;
    keep_window_size=17 num_hidden_layers=2; keep_window_size=1; hidden_size=85; hidden_act="gelu" hidden_dropout=0.1
    """,
    "dory": """
    num_hidden_layers=4; n_recurrent_layers=4; n_recurrent_loops=1; n_recurrent_loops=5 vocab_size=53; n_input_layers=0;
    n_output_layers=0; n_input_layers=4 n_output_layers=3; tie_word_embeddings=true; num_key_value_heads=6; head_dim=14;
    attention_bias=true; mlp_bias=true intermediate_size=61; sliding_window=5; hidden_act="gelu" ngpt_alpha_init=0.1;
    layer_types=["full_attention","sliding_attention"] num_hidden_layers=2 n_input_layers=1 n_output_layers=0;
    layer_types=["sliding_attention","mlp","full_attention","mlp"] num_hidden_layers=4 n_input_layers=2
    n_output_layers=0;
    rope_parameters={"sliding_attention":{"rope_type":"default","rope_theta":1e5},"full_attention":{"rope_type":"default","rope_theta":1e6}}
    """,
    "hrm_text": """
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=true; H_cycles=1; L_cycles=1;
    H_cycles=3;
    L_cycles=5 H_cycles=1; H_cycles=1 L_cycles=1; attention_bias=true; mlp_bias=true intermediate_size=61; head_dim=14;
    num_layers_per_stack=2 num_hidden_layers=16; num_layers_per_stack=3 num_hidden_layers=12 H_cycles=2 L_cycles=1;
    prefix_lm=false embedding_scale=7.5 L_bp_cycles=[1,3]; rope_theta=1e6 hidden_act="gelu"
    """,
    "jetmoe": """
    num_hidden_layers=1; num_hidden_layers=5 vocab_size=53; tie_word_embeddings=false; num_key_value_heads=1;
    kv_channels=14 intermediate_size=61; -kv_channels head_dim=6; num_local_experts=7 num_experts_per_tok=3;
    num_experts_per_tok=1;
    num_local_experts=1 num_experts_per_tok=1; activation_function="gelu" rope_theta=5e5; num_experts_per_tok=5;
    num_attention_heads=4; hidden_size=85
    """,
}
REFUSED = {
    "apertus": "num_key_value_heads=4; head_dim=7; head_dim=null; hidden_act=null",
    "apertus1p5_text": "num_key_value_heads=4; head_dim=7; output_vocab_size=102; output_vocab_size=0",
    "dbrx": """
    tie_word_embeddings=true; attn_config=null; attn_config={"kv_n_heads":4,"rope_theta":1e4}; n_heads=12;
    ffn_config={"ffn_act_fn":{"name":"new"}}
    """,
    "diffllama": """
    num_key_value_heads=3; num_key_value_heads=8; attention_dropout=0.1; head_dim=7; num_attention_heads=9
    """,
    "doge": "num_key_value_heads=4; head_dim=7; head_dim=null",
    "dory": """
    n_recurrent_layers=3; n_recurrent_loops=0; num_key_value_heads=4; head_dim=7; n_input_layers=7;
    layer_types=["full_attention"]; recurrent_kv_cache_mode="first"
    """,
    "hrm_text": "hidden_size=85; head_dim=7; H_cycles=null; L_cycles=null; num_attention_heads=5",
    "jetmoe": "num_experts_per_tok=6; kv_channels=7; num_key_value_heads=null",
    "bitnet": "num_key_value_heads=4; head_dim=20; hidden_size=85; hidden_size=90; head_dim=null",
}


def changed(model_type: str, case: str) -> Config:
    """The small config of a type with the changes of a case."""
    config = dict(OWN[model_type])
    for word in case.split():
        key, _, value = word.partition("=")
        if value:
            config[key] = json.loads(value)
        else:
            config.pop(key.removeprefix("-"))
    return {"model_type": model_type, "architectures": [CLASSES[model_type]], **config}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), changed(model_type, case)
