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
