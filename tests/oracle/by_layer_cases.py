"""What `record_by_layer.py` records: the small config that every case starts from, and what each changes of it."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

LETTERS = {"S": "sliding_attention", "F": "full_attention", "X": "local_attention"}

# What every case starts from: small, all sizes apart. Names are those that most classes know; a class has its own.
SMALL: Config = {
    "vocab_size": 101,
    "hidden_size": 48,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 71,
    "pad_token_id": 0,
}
OWN: dict[str, Config] = {
    "gpt-sw3": {"pad_token_id": None},
    "openai-gpt": {"pad_token_id": None},
    "hunyuan_v1_dense": {"head_dim": 16},
    "ctrl": {"dff": 37},
    "gpt_neo": {"attention_types": [[["global", "local"], 1], [["local"], 1]], "window_size": 5},
    "gptj": {"rotary_dim": 4},
    "codegen": {"rotary_dim": 4},
    "gpt_bigcode": {"n_inner": 37},
    "opt": {"ffn_dim": 37},
    "xglm": {"ffn_dim": 37},
    "helium": {"head_dim": 8},
    "ministral": {"head_dim": 10},
    **{named: {"head_dim": 16} for named in ("gemma", "gemma3_text", "glm", "glm4", "ministral3", "vaultgemma")},
    **{named: {"hidden_size": 96} for named in ("gpt_neox", "stablelm", "nemotron")},
}
"""What a type has beside or in place of it."""

# Changes to that, `;` between cases. In `layer_types` S is sliding, F full, X a name that does not exist.
WINDOWS = "sliding_window=3; sliding_window=8; sliding_window=17; "
PATTERNS = f"{WINDOWS}num_hidden_layers=9 sliding_window=5; sliding_window=5 layer_types=FSSFS; layer_types=FFF; "
CASES = {
    "arcee": 'attention_bias=true; mlp_bias=true; head_dim=10; num_key_value_heads=null hidden_act="silu"',
    "biogpt": 'scale_embedding=false tie_word_embeddings=false; hidden_act="relu"',
    "codegen": "n_inner=41; rotary_dim=8 tie_word_embeddings=true; n_head=4 n_embd=40 rotary_dim=6",
    "cohere": """
    use_qk_norm=true; use_qk_norm=true num_key_value_heads=null attention_bias=true; attention_bias=true; head_dim=10;
    tie_word_embeddings=false logit_scale=0.25; hidden_size=53 num_attention_heads=5 num_key_value_heads=1
    """,
    "cohere2": f"""
    {PATTERNS} head_dim=10 attention_bias=true sliding_window=5; tie_word_embeddings=false num_key_value_heads=null;
    num_hidden_layers=7 sliding_window_pattern=3 sliding_window=5; sliding_window_pattern=1;
    sliding_window_pattern=2 layer_types=SFS sliding_window=5; sliding_window_pattern=2 layer_types=FSS
    """,
    "ctrl": "tie_word_embeddings=false; dff=41 n_layer=1",
    "cwm": f"{PATTERNS} head_dim=10 mlp_bias=true sliding_window=5; tie_word_embeddings=true num_key_value_heads=6",
    "ernie4_5": "use_bias=true; use_bias=null tie_word_embeddings=false; head_dim=null num_key_value_heads=null",
    "exaone": 'num_layers=5 layer_norm_epsilon=1e-6 activation_function="gelu"; mlp_bias=true; attention_bias=true',
    "exaone4": f"""
    {PATTERNS} sliding_window=null layer_types=FFF; head_dim=10 sliding_window=5; tie_word_embeddings=true;
    num_hidden_layers=7 sliding_window_pattern=3 sliding_window=5;
    sliding_window_pattern="LLLG" layer_types=SSSFSSS sliding_window=5;
    sliding_window_pattern="LLG" layer_types=SFS sliding_window=5
    """,
    "gemma": 'hidden_act="gelu"; attention_bias=true; hidden_size=53 tie_word_embeddings=false head_dim=10',
    "gemma3_text": f"""
    {PATTERNS} num_hidden_layers=13 sliding_window=5; num_hidden_layers=7 sliding_window_pattern=3 sliding_window=5;
    num_hidden_layers=6 sliding_window=5 layer_types=SSSSSF _sliding_window_pattern=6; head_dim=10 attention_bias=true;
    query_pre_attn_scalar=168 final_logit_softcapping=30.0 attn_logit_softcapping=50.0 tie_word_embeddings=false;
    sliding_window_pattern=2 layer_types=FSS; rope_theta=1e5 rope_local_base_freq=500 rope_scaling=null sliding_window=5
    """,
    "glm": """
    attention_bias=false; partial_rotary_factor=0.25;
    tie_word_embeddings=true head_dim=8 num_key_value_heads=6
    """,
    "glm4": """
    attention_bias=false; partial_rotary_factor=1.0;
    tie_word_embeddings=true head_dim=8 num_key_value_heads=1
    """,
    "gpt-sw3": "n_inner=41; scale_attn_weights=false",
    "gpt_bigcode": "multi_query=false; n_inner=null; multi_query=false tie_word_embeddings=false; n_head=1",
    "gpt_neo": """
    window_size=8; window_size=17 intermediate_size=null; attention_types=[[["local"],3]];
    attention_types=[[["global"],1],[["local","local"],1]]; attention_types=[[["global"],3]] tie_word_embeddings=false;
    attention_types=[[["global","local"],1],[["local"],1]] attention_layers=["global","local","local"]
    """,
    "gpt_neox": """
    use_parallel_residual=false; attention_bias=false; rotary_pct=1.0 rotary_emb_base=500; rotary_pct=0.5;
    attention_bias=false use_parallel_residual=false tie_word_embeddings=true hidden_act="gelu_fast"
    """,
    "gpt_neox_japanese": "num_hidden_layers=1; intermediate_multiple_size=3 tie_word_embeddings=false; rotary_pct=0.5",
    "gptj": "n_inner=41; rotary_dim=8 tie_word_embeddings=true; n_head=3 n_embd=42 rotary_dim=6 n_layer=1",
    "granite": """
    attention_bias=true; mlp_bias=true head_dim=10; num_key_value_heads=null tie_word_embeddings=true;
    attention_multiplier=0.0078125 embedding_multiplier=12 residual_multiplier=0.22 logits_scaling=8
    """,
    "granite_swa": f"""
    {PATTERNS} attention_bias=true mlp_bias=true head_dim=10 sliding_window=5;
    num_key_value_heads=null sliding_window=5; layer_rope_theta=[1e4,0,5e5] sliding_window=5;
    layer_rope_theta=[0,1e4,1e4]; tie_word_embeddings=false
    """,
    "helium": "attention_bias=true; mlp_bias=true; tie_word_embeddings=true num_key_value_heads=6",
    "hunyuan_v1_dense": """
    attention_bias=true; head_dim=10 num_key_value_heads=null;
    tie_word_embeddings=true head_dim=8
    """,
    "hyperclovax": """
    use_post_norm=false; attention_bias=true; mlp_bias=true head_dim=10; attention_multiplier=0.5 logits_scaling=0.125
    """,
    "internlm3": """
    qkv_bias=true bias=true; head_dim=null num_key_value_heads=null;
    tie_word_embeddings=true head_dim=10
    """,
    "iquestcoder": "attention_bias=true; mlp_bias=true head_dim=null; head_dim=10 tie_word_embeddings=true",
    "jais2": "attention_bias=false; mlp_bias=false head_dim=10; num_key_value_heads=null tie_word_embeddings=true",
    "ministral": f"""
    {WINDOWS} sliding_window=5 layer_types=FSS; layer_types=FFF; head_dim=8 num_key_value_heads=6;
    tie_word_embeddings=true
    """,
    "ministral3": f"""
    {WINDOWS} head_dim=8 num_key_value_heads=6; sliding_window=5 layer_types=SSS;
    tie_word_embeddings=true
    """,
    "nanochat": "attention_bias=true head_dim=10; num_key_value_heads=null; final_logit_softcapping=null",
    "nemotron": "attention_bias=true; mlp_bias=true head_dim=8; partial_rotary_factor=1.0 num_key_value_heads=6",
    "olmo": "attention_bias=true clip_qkv=8.0; num_key_value_heads=null tie_word_embeddings=true; head_dim=10",
    "olmo2": "attention_bias=true; num_key_value_heads=null tie_word_embeddings=true; head_dim=10",
    "olmo3": f"{PATTERNS} attention_bias=true head_dim=10 sliding_window=5; num_key_value_heads=null sliding_window=5",
    "openai-gpt": 'tie_word_embeddings=false afn="relu"; n_layer=1',
    "opt": """
    do_layer_norm_before=false; word_embed_proj_dim=24; word_embed_proj_dim=24 do_layer_norm_before=false;
    enable_bias=false layer_norm_elementwise_affine=false; _remove_final_layer_norm=true; tie_word_embeddings=false;
    enable_bias=false; layer_norm_elementwise_affine=false activation_function="gelu"; word_embed_proj_dim=48
    """,
    "persimmon": 'qk_layernorm=false tie_word_embeddings=true; partial_rotary_factor=1.0 hidden_act="gelu"',
    "phi": """
    qk_layernorm=true; num_key_value_heads=null tie_word_embeddings=true; partial_rotary_factor=0.25; head_dim=8;
    partial_rotary_factor=1.0 hidden_act="gelu"
    """,
    "phi3": f"{WINDOWS} head_dim=10; num_key_value_heads=null tie_word_embeddings=true; partial_rotary_factor=0.75",
    "seed_oss": """
    attention_bias=false; attention_out_bias=true; mlp_bias=true head_dim=null; attention_bias=false mlp_bias=true;
    num_key_value_heads=null head_dim=10 tie_word_embeddings=true
    """,
    "smollm3": """
    use_sliding_window=true sliding_window=5; use_sliding_window=true sliding_window=8 layer_types=SFS;
    no_rope_layers=[1,0,0]; no_rope_layers=[0,1,1] use_sliding_window=true sliding_window=3; sliding_window=5;
    num_hidden_layers=7 no_rope_layer_interval=3 use_sliding_window=true sliding_window=17; attention_bias=true;
    mlp_bias=true head_dim=10; num_key_value_heads=null tie_word_embeddings=false; use_sliding_window=true
    """,
    "stablelm": """
    qk_layernorm=true; use_parallel_residual=true; use_qkv_bias=true; tie_word_embeddings=true;
    qk_layernorm=true use_parallel_residual=true use_qkv_bias=true num_key_value_heads=6 partial_rotary_factor=0.5
    """,
    "starcoder2": f"{WINDOWS} use_bias=false; head_dim=10; tie_word_embeddings=false sliding_window=5 layer_types=SSS",
    "vaultgemma": f"{PATTERNS} attention_bias=true head_dim=10; attn_logit_softcapping=null tie_word_embeddings=false",
    "xglm": 'scale_embedding=false tie_word_embeddings=false; activation_function="relu" num_layers=1',
}
# What the library will not build, or will not run.
REFUSED = {
    "cohere": "logit_scale=null; num_key_value_heads=4",
    "cohere2": "layer_types=XFF; layer_types=FS; sliding_window=null; sliding_window=0; sliding_window_pattern=0",
    "cwm": "sliding_window=0; sliding_window=null; hidden_size=49; layer_types=FS",
    "exaone4": "sliding_window=null layer_types=SFF; sliding_window_pattern=0 sliding_window=5",
    "gemma3_text": "hidden_size=50; sliding_window=null; sliding_window_pattern=0; layer_types=XFF; layer_types=FF",
    "gpt_neo": """
    attention_types=[[["global","local"],12]]; attention_types=[[["global"],2]]; hidden_size=50;
    attention_types=[[["everywhere"],3]]; attention_types=[["global",3]]
    """,
    "gpt_neox": "hidden_size=100; num_attention_heads=7",
    "gptj": "n_embd=50; rotary_dim=5; rotary_dim=10; rotary_dim=null",
    "granite_swa": "layer_rope_theta=[1e4,null,1e4]; layer_rope_theta=[1e4]; sliding_window=null",
    "helium": "head_dim=10; head_dim=null",
    "glm": "head_dim=null; num_key_value_heads=null",
    "internlm3": "qkv_bias=true; bias=true",
    "iquestcoder": "clip_qkv=8.0; use_sliding_window=true; hidden_size=50",
    "ministral": "sliding_window=null layer_types=SFF; layer_types=FS",
    "olmo3": "layer_types=XFF; sliding_window=null; num_key_value_heads=4",
    "phi": "qk_layernorm=true head_dim=10; partial_rotary_factor=0.4",
    "phi3": "sliding_window=0",
    "smollm3": "no_rope_layer_interval=0; no_rope_layers=[1,0]; no_rope_layers=[]; layer_types=XFF",
    "stablelm": "hidden_size=50; num_key_value_heads=4",
}

SWITCHES = """
    attention_bias attention_out_bias do_layer_norm_before enable_bias layer_norm_elementwise_affine mlp_bias
    multi_query qk_layernorm scale_embedding tie_word_embeddings use_bias use_parallel_residual use_post_norm
    use_qk_norm use_qkv_bias use_sliding_window
"""
HEAD_IS_FREE = """
    arcee cwm ernie4_5 gemma gemma3_text glm glm4 hunyuan_v1_dense hyperclovax iquestcoder jais2 ministral ministral3
    nemotron seed_oss vaultgemma
"""
FLOORS = """
    cohere cohere2 ernie4_5 gemma granite granite_swa ministral3 nanochat olmo olmo2 olmo3 phi3 starcoder2
"""
"""Types whose width need not be a multiple of the heads."""
DEFAULT: dict[str, Config] = {
    "hunyuan_v1_dense": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}
"""What the class default needs, since it cannot run as it is."""
REFUSED_LENGTHS = ("layer_types=FS", "layer_types=FF")
"""Cases whose list is shorter than the depth."""
