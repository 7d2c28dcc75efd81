"""The configs that `record_indexed.py` records: small ones, changes to them, and what the library refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASSES = {
    "axk2": "AXK2ForCausalLM",
    "beam": "BeamForCausalLM",
    "deepseek_v32": "DeepseekV32ForCausalLM",
    "dots3_note_text": "Dots3NoteForCausalLM",
    "glm_moe_dsa": "GlmMoeDsaForCausalLM",
    "hy_v4": "HYV4ForCausalLM",
    "longcat_flash": "LongcatFlashForCausalLM",
}
# V=101, D=85, N=5, R_q=17, R=23, nope=7, rope=6, v=11, F=37 and 19, E=12, X=3, indexers of 3 x 13, L=4.
SMALL: Config = {
    "vocab_size": 101,
    "hidden_size": 85,
    "intermediate_size": 37,
    "num_hidden_layers": 4,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "q_lora_rank": 17,
    "kv_lora_rank": 23,
    "qk_nope_head_dim": 7,
    "qk_rope_head_dim": 6,
    "v_head_dim": 11,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "moe_intermediate_size": 19,
    "n_routed_experts": 12,
    "n_shared_experts": 1,
    "num_experts_per_tok": 3,
    "index_n_heads": 3,
    "index_head_dim": 13,
    "index_topk": 9,
}
GROUPS: Config = {"n_group": 3, "topk_group": 2, "first_k_dense_replace": 1}
BEAM: Config = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10, "num_experts": 12}
BEAM |= {"n_group": 3, "topk_group": 2, "sliding_window": 99}
LONGCAT: Config = {"num_layers": 2, "ffn_hidden_size": 37, "expert_ffn_hidden_size": 19, "moe_topk": 3}
LONGCAT |= {"zero_expert_num": 5, "head_dim": 6}
DOTS: Config = {"num_hidden_layers": 5, "head_dim": 13, "shared_experts_intermediate_size": 23, "sliding_window": 99}
DOTS |= {"swa_num_attention_heads": 3, "swa_num_key_value_heads": 3, "swa_q_lora_rank": 19, "swa_kv_lora_rank": 31}
DOTS |= {"swa_head_dim": 17, "swa_qk_nope_head_dim": 9, "swa_v_head_dim": 5}
OWN: dict[str, Config] = {
    "axk2": {"gated_norm_rank": 8},
    "beam": BEAM,
    "deepseek_v32": GROUPS,
    "glm_moe_dsa": GROUPS,
    "dots3_note_text": DOTS,
    "hy_v4": {},
    "longcat_flash": LONGCAT,
}
"""What a type has beside or in place of those sizes."""
OF_INDEXERS = "index_n_heads index_head_dim index_topk"
OF_LATENTS = "q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim n_routed_experts n_shared_experts"
OTHER_NAMES = "intermediate_size moe_intermediate_size num_experts_per_tok num_hidden_layers n_shared_experts"
WITHOUT = {"beam": f"{OF_INDEXERS} {OF_LATENTS}", "longcat_flash": f"{OF_INDEXERS} {OTHER_NAMES}"}
"""Of those sizes, what a type has no key for."""

# Changes to that, `;` between cases; a name of a key may be an older one.
ATTENTION = """
    attention_bias=true; num_attention_heads=1 num_key_value_heads=1; num_attention_heads=17 num_key_value_heads=17;
    v_head_dim=29; qk_rope_head_dim=2; kv_lora_rank=2 q_lora_rank=1; num_hidden_layers=1; num_hidden_layers=7;
    tie_word_embeddings=true; rope_theta=50000.0; hidden_act="gelu"; index_topk=1; index_topk=17; index_topk=2048;
    index_n_heads=1; index_n_heads=8 index_head_dim=6; index_head_dim=31; vocab_size=211 hidden_size=64; head_dim=77;
    qk_head_dim=5
"""
ROUTING = """; n_shared_experts=0; n_shared_experts=3; num_experts_per_tok=1; num_experts_per_tok=8;
    norm_topk_prob=false; routed_scaling_factor=2.827; moe_intermediate_size=1; num_nextn_predict_layers=1;
    num_local_experts=24 num_experts_per_tok=5; mlp_layer_types=SDDS; mlp_layer_types=DDDD; mlp_layer_types=SSSS;
    first_k_dense_replace=0; first_k_dense_replace=4; n_group=1 topk_group=1
"""
V32 = f"""{ATTENTION}{ROUTING}; num_experts=24; first_k_dense_replace=9; n_group=6 topk_group=6;
    first_k_dense_replace=2 mlp_layer_types=SSDD; layer_types=IIII; layer_types=OOOO; mlp_bias=true;
    n_routed_experts=6 num_experts_per_tok=2
"""
CASES = {
    "axk2": f"""{ATTENTION}; n_shared_experts=0; n_shared_experts=3; num_experts_per_tok=8; norm_topk_prob=false;
    num_nextn_predict_layers=1; num_local_experts=24; mlp_layer_types=SDDS; mlp_layer_types=DDDD; layer_types=OOOO;
    n_group=3 topk_group=2; first_k_dense_replace=0; first_k_dense_replace=2 moe_layer_freq=2 num_hidden_layers=7;
    first_k_dense_replace=3 mlp_layer_types=SSSS; gated_norm_rank=1; gated_norm_rank=31 hidden_size=64
    """,
    "beam": """attention_bias=true; num_attention_heads=4 num_key_value_heads=4; num_key_value_heads=1; head_dim=32;
    num_hidden_layers=1; num_hidden_layers=7; num_hidden_layers=13 vocab_size=53; tie_word_embeddings=true;
    layer_types=VVUU; layer_types=UUUU; layer_types=VVVV; mlp_layer_types=SDDS; mlp_layer_types=SSSS;
    num_experts_per_tok=8; norm_topk_prob=false routed_scaling_factor=1.5; n_group=1 topk_group=1;
    n_group=6 topk_group=6; final_logit_softcapping=null; moe_intermediate_size=1 intermediate_size=211;
    rope_parameters={"sliding_attention":{"rope_type":"default","rope_theta":7e4},"full_attention":{"rope_type":"default","rope_theta":7e5}};
    rope_parameters={"sliding_attention":null,"full_attention":null}; rope_parameters=null; num_experts=24;
    layer_types=UUUU sliding_window=null
    """,
    "dots3_note_text": """attention_bias=true; num_attention_heads=1 num_key_value_heads=1; v_head_dim=29;
    num_hidden_layers=1; num_hidden_layers=11; tie_word_embeddings=true; index_topk=17;
    index_head_dim=31 index_n_heads=1; n_shared_experts=3;
    num_experts_per_tok=8; n_group=3 topk_group=2; num_local_experts=24; mlp_layer_types=SDDSS;
    first_k_dense_replace=0; first_k_dense_replace=2 moe_layer_freq=2; moe_layer_freq=[0,1,1,0,1]; use_dsa=false;
    use_sliding_window=false; layer_types=IVVIU; layer_types=UVUVU use_dsa=false; layer_types=VVVVV;
    swa_qk_rope_head_dim=8; moe_shared_expert_intermediate_size=41; sliding_window=null sliding_window_size=77;
    per_layer_config={}; per_layer_config={"2":{"kv_lora_rank":41,"head_dim":13}} layer_types=IIVII
    sliding_window=50; num_nextn_predict_layers=1; head_dim=77; swa_num_attention_heads=1 swa_num_key_value_heads=1;
    routed_scaling_factor=2.5 norm_topk_prob=false; rope_theta=5e5 swa_rope_theta=7e3
    """,
    "hy_v4": f"""{ATTENTION}; n_shared_experts=0; num_experts_per_tok=8; norm_topk_prob=false; n_group=3 topk_group=2;
    num_local_experts=24; mlp_layer_types=SDDS; mlp_layer_types=DDDD; indexer_types=FSSF; indexer_types=FFFF;
    num_nextn_predict_layers=1; hc_mult=2; hc_mult=7 hc_magnitude=1.5; swiglu_limit=3.5; num_key_value_heads=1
    """,
    "longcat_flash": """attention_bias=true; num_attention_heads=17 num_key_value_heads=17;
    num_key_value_heads=null; q_lora_rank=3 kv_lora_rank=5; v_head_dim=29; num_layers=1; num_layers=5 vocab_size=53;
    tie_word_embeddings=true; zero_expert_num=0; zero_expert_num=31; moe_topk=1; moe_topk=8;
    ffn_hidden_size=211; expert_ffn_hidden_size=1; n_routed_experts=7; router_bias=true; qk_head_dim=13;
    routed_scaling_factor=2.5; hidden_size=64; intermediate_size=59; moe_intermediate_size=23
    """,
    "deepseek_v32": V32,
    "glm_moe_dsa": f"""{V32}; indexer_types=FSSF; indexer_types=FFFF mlp_layer_types=DSDS; index_topk_freq=2;
    index_topk_freq=3 num_hidden_layers=7 index_skip_topk_offset=1; index_topk_freq=4 index_skip_topk_offset=3;
    index_topk_pattern="FSFS"; index_topk_pattern=["full","shared","shared","shared"] index_topk=5;
    index_topk_freq=0; indexer_types=FSFS index_topk_pattern="SSSS"
    """,
}
# What the library will not build, or will not run.
SIZED = """num_key_value_heads=1; num_key_value_heads=null; qk_rope_head_dim=5; q_lora_rank=null; index_head_dim=4;
    num_experts_per_tok=13; n_group=5 topk_group=5; mlp_layer_types=D; layer_types=LLLL; num_experts_per_tok=null;
    n_group=null; first_k_dense_replace=null; v_head_dim=null; index_topk=null; topk_group=4
"""
REFUSED = {
    "dots3_note_text": """num_key_value_heads=1; q_lora_rank=null; index_head_dim=4; num_experts_per_tok=13;
    n_group=5 topk_group=5; layer_types=LLLLL; mlp_layer_types=D; n_shared_experts=0; swa_head_dim=19
    swa_qk_rope_head_dim=8; qk_rope_head_dim=5; swa_num_attention_heads=4
    """,
    "hy_v4": """qk_rope_head_dim=5; index_head_dim=4; num_experts_per_tok=13; n_group=5 topk_group=5; layer_types=LLLL;
    mlp_layer_types=D; indexer_types=SFFF; hc_mult=null; num_key_value_heads=null; n_group=null; q_lora_rank=null
    """,
    "longcat_flash": "zero_expert_num=null; q_lora_rank=null; v_head_dim=null; kv_lora_rank=null",
    "axk2": """num_key_value_heads=1; qk_rope_head_dim=5; q_lora_rank=null; index_head_dim=4; num_experts_per_tok=13;
    n_group=5 topk_group=5; n_group=3; topk_group=2; n_group=3 topk_group=4; mlp_layer_types=D; layer_types=LLLL;
    gated_norm_rank=null; moe_layer_freq=0; first_k_dense_replace=null
    """,
    "beam": """num_key_value_heads=4; num_experts_per_tok=13; n_group=5 topk_group=5; n_group=null; topk_group=null;
    layer_types=VV; layer_types=LLLL; sliding_window=null; head_dim=null; head_dim=9; mlp_layer_types=D;
    rope_parameters={"sliding_attention":{"rope_type":"default","rope_theta":7e4}}
    """,
    "deepseek_v32": SIZED,
    "glm_moe_dsa": f'{SIZED}; indexer_types=SFFF; indexer_types=FF; index_topk_pattern="SFSF"',
}
WORDS = {
    "mlp_layer_types": {"D": "dense", "S": "sparse"},
    "layer_types": {
        "I": "indexed_attention",
        "O": "deepseek_sparse_attention",
        "L": "linear_attention",
        "U": "full_attention",
        "V": "sliding_attention",
    },
    "indexer_types": {"F": "full", "S": "shared", "X": "own"},
}


def changed(text: str) -> Config:
    """The changes of a case: `key=value` words, where lists of layers have a letter for each."""
    made: Config = {}
    for key, value in (word.split("=", 1) for word in text.split()):
        letters = WORDS.get(key)
        is_letters = letters is not None and value.isupper()
        made[key] = [letters[letter] for letter in value] if letters and is_letters else json.loads(value)
    return made


def raw(model_type: str, changes: Config, aliases: Config) -> Config:
    """A whole `config.json`: the small one with some changes; a renamed key takes the place of the class's own."""
    others = WITHOUT.get(model_type, "").split()
    given = {**{key: size for key, size in SMALL.items() if key not in others}, **OWN.get(model_type, {})}
    for key in changes:
        given.pop(aliases.get(key, key), None)
    return {"model_type": model_type, "architectures": [CLASSES[model_type]], **given, **changes}


def cases(model_type: str, text: str, aliases: Config) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, changed(case), aliases)
