"""The configs that `record_newest.py` records: a small one of each type, changes to it, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "minimax_m3_vl_text": "MiniMaxM3VLForCausalLM",
}
WRAPPERS = {"minimax_m3_vl": "MiniMaxM3SparseForConditionalGeneration"}
OTHER_TYPES = {"minimax_m3": "minimax_m3_vl_text"}
"""Names that published files have for a type, and the type."""

SMALL: dict[str, Config] = {
    "minimax_m3_vl_text": {
        "vocab_size": 97,
        "hidden_size": 42,
        "intermediate_size": 23,
        "dense_intermediate_size": 37,
        "shared_intermediate_size": 19,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 10,
        "num_local_experts": 5,
        "num_experts_per_tok": 3,
        "index_n_heads": 2,
        "index_head_dim": 14,
        "index_block_size": 8,
        "index_topk_blocks": 2,
        "layer_types": "FBBF",
        "mlp_layer_types": "DSDS",
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
}
WORDS = {
    "minimax_m3_vl_text": {
        "layer_types": {"F": "full_attention", "B": "minimax_m3_sparse", "X": "linear_attention"},
        "mlp_layer_types": {"D": "dense", "S": "sparse"},
    },
}
"""What a letter of a list of layers stands for."""

M3 = {"sparse_block_size": 4, "sparse_topk_blocks": 3, "sparse_num_index_heads": 3, "sparse_index_dim": 22}
OLDER = {**M3, "sparse_local_block": 2, "sparse_attention_freq": [0, 1, 1]}
CASES = {
    "minimax_m3_vl_text": f"""
        num_hidden_layers=1 layer_types=F mlp_layer_types=D; num_hidden_layers=1 layer_types=B mlp_layer_types=S;
        layer_types=null mlp_layer_types=null; layer_types=BBBB mlp_layer_types=SSSS tie_word_embeddings=true;
        num_hidden_layers=7 layer_types=FBFBBBB mlp_layer_types=DDDSSSS vocab_size=53; num_key_value_heads=6;
        num_key_value_heads=1 num_attention_heads=8 index_n_heads=4; head_dim=16 index_head_dim=8; index_n_heads=1;
        index_n_heads=6 index_block_size=3 index_topk_blocks=1; index_block_size=128 index_topk_blocks=16;
        index_local_blocks=2 index_topk_blocks=3 index_block_size=1; num_local_experts=17 num_experts_per_tok=1;
        intermediate_size=61 dense_intermediate_size=59 shared_intermediate_size=1 hidden_size=30;
        partial_rotary_factor=0.4 rope_theta=1e4; rope_parameters={{"rope_type":"default","rope_theta":7e4}};
        rope_parameters=null hidden_act="swigluoai" routed_scaling_factor=1.5 swiglu_limit=5.0;
        layer_types=null mlp_layer_types=null num_hidden_layers=3 moe_layer_freq=[0,1,1]
        sparse_attention_config={json.dumps(OLDER, separators=(",", ":"))}
    """,
}
REFUSED = {
    "minimax_m3_vl_text": """
        layer_types=FBB; layer_types=FXBB; mlp_layer_types=DS; num_key_value_heads=4; num_experts_per_tok=6;
        index_n_heads=4; head_dim=9; num_hidden_layers=0 head_dim=null
    """,
}


def raw(model_type: str, case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split() if "=" in word)
    listed = WORDS[model_type]
    made: Config = {**SMALL[model_type]}
    for key, value in changes.items():
        made[key] = value if key in listed and value.isalpha() and value != "null" else json.loads(value)
    for key, words in listed.items():
        if isinstance(made.get(key), str):
            made[key] = [words[letter] for letter in made[key]]
    return {"model_type": model_type, "architectures": [CLASSES[model_type]], **made}


def cases(model_type: str, texts: dict[str, str]) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case of a type."""
    for case in filter(None, (" ".join(case.split()) for case in texts.get(model_type, "").split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, case)
