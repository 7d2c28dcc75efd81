"""What record_gemma_layers.py records: small configs, changes to them, random ones, and published shapes."""

from __future__ import annotations

import random
from typing import Any

Config = dict[str, Any]

LETTERS = {"F": "full_attention", "S": "sliding_attention", "X": "linear_attention"}
COMMON: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "intermediate_size": 37,
    "num_hidden_layers": 7,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "sliding_window": 5,
    "max_position_embeddings": 71,
}
OWN: Config = {"vocab_size_per_layer_input": 89, "hidden_size_per_layer_input": 11}
SMALL: dict[str, Config] = {
    "gemma3n_text": {**COMMON, **OWN, "altup_num_inputs": 3, "laurel_rank": 7, "num_kv_shared_layers": 2},
    "gemma4_text": {**COMMON, **OWN, "vocab_size_per_layer_input": 97, "global_head_dim": 14},
    "gemma4_unified_text": {**COMMON, "global_head_dim": 14},
}
EXPERTS = "enable_moe_block=true num_experts=7 top_k_experts=3 moe_intermediate_size=13"
OF_GEMMA4 = """
attention_bias=true; tie_word_embeddings=false; sliding_window=8; sliding_window=16; sliding_window=47;
layer_types="FSSSSSF"; layer_types="SSSSSSF"; layer_types="FFFFFFF"; layer_types="SFSFSFS"; num_hidden_layers=5;
num_hidden_layers=13; final_logit_softcapping=30.0; hidden_activation="silu"; global_head_dim=10;
attention_k_eq_v=true; attention_k_eq_v=true num_global_key_value_heads=3; num_global_key_value_heads=3;
attention_k_eq_v=true attention_bias=true; num_key_value_heads=6; num_key_value_heads=1; num_attention_heads=4;
num_hidden_layers=13 num_kv_shared_layers=3; num_hidden_layers=13 num_kv_shared_layers=7 use_double_wide_mlp=true;
num_hidden_layers=13 num_kv_shared_layers=1; layer_types="SFSFSSF" num_kv_shared_layers=3 attention_k_eq_v=true;
num_hidden_layers=13 num_kv_shared_layers=7 attention_bias=true; use_double_wide_mlp=true;
use_bidirectional_attention="vision"; per_layer_config={"05":{"head_dim":12},"06":{"head_dim":12}};
per_layer_config={"05":{"head_dim":14,"num_key_value_heads":3},"06":{"head_dim":14,"num_key_value_heads":3}};
rope_parameters={"full_attention":{"rope_type":"default","rope_theta":50.0},"sliding_attention":{"rope_type":"default","rope_theta":20.0}};
rope_parameters={"full_attention":{"rope_type":"proportional","rope_theta":50.0},"sliding_attention":{"rope_type":"proportional","partial_rotary_factor":0.5,"rope_theta":20.0}};
"""
CASES: dict[str, str] = {
    "gemma3n_text": """
        attention_bias=true; tie_word_embeddings=false; sliding_window=8; sliding_window=16; sliding_window=47;
        altup_num_inputs=2; altup_num_inputs=5; altup_active_idx=2; laurel_rank=1; num_kv_shared_layers=0;
        num_kv_shared_layers=1; num_hidden_layers=13; num_hidden_layers=13 num_kv_shared_layers=7; num_hidden_layers=3
        num_kv_shared_layers=0; layer_types="FSSSSSF"; layer_types="SFSFSFS" num_kv_shared_layers=5;
        layer_types="FFFFFFF"; layer_types="SSSSSSS" num_kv_shared_layers=3; final_logit_softcapping=3.0;
        hidden_activation="silu"; intermediate_size=[37,37,41,37,29,37,41];
        activation_sparsity_pattern=[0.95,0.5,0.0,0.5,0.0,0.9,0.0];
        activation_sparsity_pattern=[0.5,0.5,0.5,0.5,0.5,0.5,0.5]; hidden_size_per_layer_input=1;
        vocab_size_per_layer_input=131; num_key_value_heads=6; num_key_value_heads=1; head_dim=14; hidden_size=30;
        num_hidden_layers=11; num_hidden_layers=10; altup_coef_clip=1.0;
        intermediate_size=[37,37,41,37,29,37,41] activation_sparsity_pattern=[0.95,0.5,0.0,0.5,0.0,0.9,0.0]
        num_kv_shared_layers=2 attention_bias=true;
    """,
    "gemma4_text": OF_GEMMA4
    + f"""hidden_size_per_layer_input=0; hidden_size_per_layer_input=1; vocab_size_per_layer_input=131; {EXPERTS};
        {EXPERTS} hidden_size_per_layer_input=0 attention_k_eq_v=true num_global_key_value_heads=3;
        {EXPERTS} num_hidden_layers=13 num_kv_shared_layers=7 use_double_wide_mlp=true; {EXPERTS} top_k_experts=7;
        {EXPERTS} top_k_experts=1; num_experts=7""",
    "gemma4_unified_text": OF_GEMMA4,
}
SHARED = """num_kv_shared_layers=7; num_kv_shared_layers=6; layer_types="FSFSSSS" num_hidden_layers=6;
    layer_types="XSSSSSF"; num_attention_heads=4 num_key_value_heads=3;"""
REFUSED: dict[str, str] = {
    "gemma3n_text": SHARED
    + """hidden_size=40; intermediate_size=[37,37]; activation_sparsity_pattern=[0.5]; layer_types="SSSSSSF"
        num_kv_shared_layers=1; activation_sparsity_pattern=0.5; altup_active_idx=3; head_dim=9;""",
    "gemma4_text": SHARED
    + f"""head_dim=9; {EXPERTS} top_k_experts=8; {EXPERTS} num_experts=null;
        per_layer_config={{"7":{{"head_dim":14}}}};
        per_layer_config={{"0":{{"head_dim":14}}}};""",
    "gemma4_unified_text": SHARED,
}


def drawn(model_type: str, rng: random.Random) -> Config:
    """A small config of odd sizes, with every switch drawn at random."""
    layers, heads, is_3n = rng.choice((3, 5, 7, 11, 13)), rng.choice((1, 2, 3, 4, 6)), model_type == "gemma3n_text"
    types = [LETTERS["F" if rng.random() < 0.4 else "S"] for _ in range(layers)]
    if not is_3n:
        types[-1] = LETTERS["F"]
    least = max(types.index(word) for word in set(types)) + 1
    config: Config = {
        "vocab_size": rng.choice((61, 97, 1009)),
        "hidden_size": heads * rng.choice((5, 7, 12)),
        "intermediate_size": rng.choice((1, 29, 37, 211)),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([k for k in range(1, heads + 1) if heads % k == 0]),
        "head_dim": rng.choice((2, 8, 10)),
        "sliding_window": rng.choice((2, 3, 5, 8, 11, 16, 17, 47, 48, 49)),
        "layer_types": types,
        "num_kv_shared_layers": rng.choice((0, rng.randint(0, layers - least))),
        "tie_word_embeddings": rng.random() < 0.5,
        "attention_bias": rng.random() < 0.5,
    }
    own = {"vocab_size_per_layer_input": rng.choice((61, 1013)), "hidden_size_per_layer_input": rng.choice((1, 3, 11))}
    if is_3n:
        states = rng.choice((2, 3, 4))
        widths = [rng.choice((29, 37)) for _ in range(layers)]
        return {
            **config,
            **own,
            "altup_num_inputs": states,
            "altup_active_idx": rng.randrange(states),
            "laurel_rank": rng.choice((1, 7, 13)),
            "intermediate_size": rng.choice((37, widths)),
            "activation_sparsity_pattern": rng.choice((None, [rng.choice((0.0, 0.5)) for _ in range(layers)])),
        }
    config |= {
        "global_head_dim": rng.choice((2, 6, 14)),
        "num_global_key_value_heads": rng.choice((None, 1, heads)),
        "attention_k_eq_v": rng.random() < 0.5,
        "use_double_wide_mlp": rng.random() < 0.5,
    }
    if model_type == "gemma4_text":
        experts = rng.choice((3, 7))
        used = {"num_experts": experts, "top_k_experts": rng.randint(1, experts), "moe_intermediate_size": 13}
        config |= {**own, "vocab_size_per_layer_input": 1013}
        config |= {"hidden_size_per_layer_input": rng.choice((0, 3)), "enable_moe_block": rng.random() < 0.5, **used}
    return config


GEMMA3N: Config = {"model_type": "gemma3n_text"}
GEMMA4: Config = {
    "model_type": "gemma4_text",
    "attention_k_eq_v": True,
    "final_logit_softcapping": 30.0,
    "hidden_size_per_layer_input": 0,
    "max_position_embeddings": 262144,
    "sliding_window": 1024,
}
SMALL_GEMMA4: Config = {"model_type": "gemma4_text", "final_logit_softcapping": 30.0}
SHAPES: dict[str, Config] = {
    "gemma-3n-e4b": GEMMA3N,
    "gemma-3n-e2b": {**GEMMA3N, "intermediate_size": 8192, "num_hidden_layers": 30, "num_kv_shared_layers": 10},
    "gemma4_text": {"model_type": "gemma4_text"},
    "gemma4_unified_text": {"model_type": "gemma4_unified_text"},
    "gemma-4-e2b": {
        **SMALL_GEMMA4,
        "hidden_size": 1536,
        "intermediate_size": 6144,
        "layer_types": [*[LETTERS["S"]] * 4, LETTERS["F"]] * 7,
        "num_hidden_layers": 35,
        "num_key_value_heads": 1,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
    },
    "gemma-4-e4b": {
        **SMALL_GEMMA4,
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 42,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 18,
    },
    "gemma-4-26b-a4b": {
        **GEMMA4,
        "enable_moe_block": True,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "num_attention_heads": 16,
        "num_experts": 128,
        "num_global_key_value_heads": 2,
        "num_hidden_layers": 30,
        "num_key_value_heads": 8,
        "top_k_experts": 8,
    },
    "gemma-4-31b": {
        **GEMMA4,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_attention_heads": 32,
        "num_global_key_value_heads": 4,
        "num_hidden_layers": 60,
        "num_key_value_heads": 16,
    },
}
"""As their published files say: parameters alone are counted."""
