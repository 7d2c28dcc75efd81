"""The configs that `record_newest.py` records: a small one of each type, changes to it, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "minimax_m3_vl_text": "MiniMaxM3VLForCausalLM",
    "deepseek_v4": "DeepseekV4ForCausalLM",
    "inkling_text": "InklingForCausalLM",
    "inkling2_text": "Inkling2ForCausalLM",
    "inkling2_loop_text": "Inkling2LoopForCausalLM",
}
WRAPPERS = {"minimax_m3_vl": "MiniMaxM3SparseForConditionalGeneration"}
OTHER_TYPES = {"minimax_m3": "minimax_m3_vl_text"}
"""Names that published files have for a type, and the type."""

INKLING: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 10,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 2,
    "swa_head_dim": 14,
    "sliding_window_size": 64,
    "d_rel": 5,
    "rel_extent": 11,
    "conv_kernel_size": 3,
    "moe_intermediate_size": 23,
    "n_routed_experts": 7,
    "num_experts_per_tok": 3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
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
    "deepseek_v4": {
        "vocab_size": 97,
        "hidden_size": 42,
        "moe_intermediate_size": 23,
        "num_hidden_layers": 5,
        "num_attention_heads": 6,
        "head_dim": 14,
        "q_lora_rank": 17,
        "n_routed_experts": 7,
        "num_experts_per_tok": 3,
        "hc_mult": 3,
        "hc_sinkhorn_iters": 2,
        "sliding_window": 64,
        "o_groups": 3,
        "o_lora_rank": 11,
        "index_n_heads": 5,
        "index_head_dim": 8,
        "index_topk": 3,
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 7},
        "partial_rotary_factor": 0.3,
        "layer_types": "WSHSH",
        "mlp_layer_types": "HHCCC",
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "inkling_text": {
        **INKLING,
        "num_hidden_layers": 4,
        "intermediate_size": 37,
        "n_shared_experts": 2,
        "log_scaling_n_floor": 8,
        "layer_types": "WGWG",
        "mlp_layer_types": "DSDS",
    },
    "inkling2_text": {
        **INKLING,
        "unpadded_vocab_size": 89,
        "num_hidden_layers": 5,
        "n_layers_per_attn_res_block": 2,
        "layer_types": "WGWGG",
    },
    "inkling2_loop_text": {
        **INKLING,
        "unpadded_vocab_size": 89,
        "num_hidden_layers": 7,
        "n_layers_per_attn_res_block": 2,
        "loop_layer_index_start": 2,
        "loop_layer_index_end": 6,
        "loop_num_passes": 3,
        "loop_gate_rank": 13,
        "layer_types": "WGWGGWG",
    },
}
OF_INKLING = {
    "layer_types": {"G": "hybrid", "W": "hybrid_sliding", "X": "full_attention"},
    "mlp_layer_types": {"D": "dense", "S": "sparse"},
}
WORDS = {
    "minimax_m3_vl_text": {
        "layer_types": {"F": "full_attention", "B": "minimax_m3_sparse", "X": "linear_attention"},
        "mlp_layer_types": {"D": "dense", "S": "sparse"},
    },
    "deepseek_v4": {
        "layer_types": {
            "W": "sliding_attention",
            "S": "compressed_sparse_attention",
            "H": "heavily_compressed_attention",
            "X": "full_attention",
        },
        "mlp_layer_types": {"H": "hash_moe", "C": "moe", "X": "dense"},
    },
    "inkling_text": OF_INKLING,
    "inkling2_text": OF_INKLING,
    "inkling2_loop_text": OF_INKLING,
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
    "deepseek_v4": """
        num_hidden_layers=1 layer_types=W mlp_layer_types=C; num_hidden_layers=1 layer_types=S mlp_layer_types=H;
        num_hidden_layers=1 layer_types=H mlp_layer_types=C; num_hidden_layers=3 vocab_size=53;
        layer_types=null mlp_layer_types=null; layer_types=null mlp_layer_types=null num_hidden_layers=2;
        layer_types=null mlp_layer_types=null num_hidden_layers=8 num_hash_layers=1 compress_rates=null;
        layer_types=null compress_ratios=[0,4,128,4,128,0]; layer_types=null compress_ratios=[128,128,4,0,0];
        compress_rates=null; compress_rate_csa=3 compress_rate_hca=16;
        compress_rates={"heavily_compressed_attention":5} layer_types=HHWHH; sliding_window=8; sliding_window=2;
        sliding_window=1000; tie_word_embeddings=true; num_attention_heads=9 o_groups=9; o_groups=4 o_lora_rank=1;
        num_key_value_heads=3 norm_topk_prob=false; hc_mult=1; hc_mult=2 hc_sinkhorn_iters=1; mlp_bias=true;
        index_topk=100 index_n_heads=1 index_head_dim=16; index_topk=1; q_lora_rank=5 head_dim=20;
        n_routed_experts=3 num_experts_per_tok=1 moe_intermediate_size=61; scoring_func="sigmoid" swiglu_limit=3.0;
        partial_rotary_factor=null qk_rope_head_dim=6; hidden_size=30 rope_theta=1e5 compress_rope_theta=2e5;
        rope_scaling={"type":"yarn","rope_type":"yarn","factor":16,"original_max_position_embeddings":65536};
        rope_parameters={"main":{"rope_type":"default","rope_theta":7e4,"partial_rotary_factor":0.3},"compress":{"rope_type":"default","rope_theta":9e4,"partial_rotary_factor":0.3}}
    """,
    "inkling_text": """
        num_hidden_layers=1 layer_types=G mlp_layer_types=S; num_hidden_layers=1 layer_types=W mlp_layer_types=D;
        layer_types=null mlp_layer_types=null num_hidden_layers=7 vocab_size=53; tie_word_embeddings=true;
        layer_types=null local_layer_ids=[0,1,3] mlp_layer_types=null dense_mlp_idx=1; sliding_window_size=8;
        num_key_value_heads=6 swa_num_key_value_heads=4; conv_kernel_size=5 d_rel=1 rel_extent=3;
        dense_intermediate_size=31 intermediate_size=17; n_shared_experts=1 unpadded_vocab_size=89;
        n_routed_experts=3 num_experts_per_tok=1 moe_intermediate_size=61; num_mtp_layers=2 hidden_size=30;
        swa_head_dim=6 head_dim=16 log_scaling_n_floor=null shared_expert_sink=false
    """,
    "inkling2_text": """
        num_hidden_layers=1 layer_types=G; num_hidden_layers=1 layer_types=W; num_hidden_layers=4 layer_types=GGGG;
        layer_types=null num_hidden_layers=7 vocab_size=53; tie_word_embeddings=true; n_layers_per_attn_res_block=1;
        n_layers_per_attn_res_block=3 num_hidden_layers=6 layer_types=WWGWWG; n_layers_per_attn_res_block=9;
        sliding_window_size=8; num_key_value_heads=6 swa_num_key_value_heads=4; conv_kernel_size=5 d_rel=1 rel_extent=3;
        unpadded_vocab_size=97; n_routed_experts=3 num_experts_per_tok=1 moe_intermediate_size=61; hidden_size=30;
        swa_head_dim=6 head_dim=16 mlp_gate_softcap=2.0 route_scale=1.5
    """,
    "inkling2_loop_text": """
        num_hidden_layers=4 layer_types=WGGW loop_layer_index_end=4; loop_num_passes=1; loop_num_passes=2;
        loop_num_passes=5 loop_gate_rank=1; loop_layer_index_start=4; layer_types=null num_hidden_layers=8;
        n_layers_per_attn_res_block=1 loop_layer_index_start=1 loop_layer_index_end=4; sliding_window_size=8;
        num_key_value_heads=6 tie_word_embeddings=true hidden_size=30;
        loop_config={"core_start":4,"core_end":6,"num_passes":2,"gate_rank":7}
    """,
}
REFUSED = {
    "minimax_m3_vl_text": """
        layer_types=FBB; layer_types=FXBB; mlp_layer_types=DS; num_key_value_heads=4; num_experts_per_tok=6;
        index_n_heads=4; head_dim=9; num_hidden_layers=0 head_dim=null
    """,
    "deepseek_v4": """
        layer_types=WSH; layer_types=WSHSX; mlp_layer_types=HHC; mlp_layer_types=HHCCX; o_groups=5;
        num_experts_per_tok=8;
        layer_types=null compress_ratios=[0,4,128,4]; layer_types=null compress_ratios=[0,4,128,4,7]; head_dim=null;
        compress_rates={"compressed_sparse_attention":5} layer_types=SSWSS; compress_rates={};
        scoring_func="dense"; q_lora_rank=null
    """,
    "inkling_text": "layer_types=WGW; num_key_value_heads=4; n_shared_experts=0; num_experts_per_tok=8; head_dim=null",
    "inkling2_text": "layer_types=WGW; num_key_value_heads=4; num_experts_per_tok=8; unpadded_vocab_size=null",
    "inkling2_loop_text": "loop_layer_index_start=3; loop_layer_index_end=5; loop_num_passes=0; layer_types=WGW",
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
