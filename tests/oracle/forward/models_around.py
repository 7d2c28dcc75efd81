"""The tiny models with something around or beside their sublayers (Gemma-3n, Gemma-4): as in models.py."""

ROPE = """rope_parameters={"sliding_attention":{"rope_type":"default","rope_theta":20.0},
    "full_attention":{"rope_type":"default","rope_theta":70.0}}""".replace("\n    ", "")
PARTIAL = ROPE.replace('"default","rope_theta":70.0', '"proportional","partial_rotary_factor":0.5,"rope_theta":70.0')
SIZES = """vocab_size=61 max_position_embeddings=17 hidden_size=24 intermediate_size=13 num_attention_heads=4
    num_key_value_heads=2 sliding_window=4 rms_norm_eps=0.05"""
MIXED = '["sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"]'
MODELS = {
    "gemma3n_text": (  # three states, a shorter table of per-layer inputs, sparse networks, two layers that share keys
        "Gemma3nForCausalLM",
        f"""model_type="gemma3n_text" {SIZES} {ROPE} num_hidden_layers=5 head_dim=6 vocab_size_per_layer_input=53
        hidden_size_per_layer_input=5 altup_num_inputs=3 laurel_rank=3 num_kv_shared_layers=2 layer_types={MIXED}
        activation_sparsity_pattern=[0.6,0.6,0.0,0.0,0.0] final_logit_softcapping=8.0""",
        f"""rms_norm_eps=1e-6; {ROPE.replace("20.0", "1e4")}; {ROPE.replace("70.0", "1e4")}; sliding_window=3;
        sliding_window=5; sliding_window=17; final_logit_softcapping=4.0; altup_active_idx=1; hidden_activation="gelu";
        activation_sparsity_pattern=[0.6,0.7,0.0,0.0,0.0]; activation_sparsity_pattern=[0.6,0.6,0.0,0.0,0.6];
        layer_types={MIXED.replace("full", "none", 1).replace("sliding", "full", 1).replace("none", "sliding")}""",
    ),
    "gemma4_text": (  # per-layer inputs, layers scaled, four layers that share keys and have wider networks
        "Gemma4ForCausalLM",
        f"""model_type="gemma4_text" {SIZES} {PARTIAL} num_hidden_layers=7 head_dim=4 global_head_dim=8
        vocab_size_per_layer_input=61 hidden_size_per_layer_input=5 num_kv_shared_layers=4 use_double_wide_mlp=true
        layer_types={MIXED.replace("]", ',"sliding_attention","full_attention"]')} final_logit_softcapping=8.0""",
        f"""rms_norm_eps=1e-6; {PARTIAL.replace("20.0", "1e4")}; {PARTIAL.replace("70.0", "1e4")}; sliding_window=3;
        sliding_window=5; sliding_window=17; final_logit_softcapping=4.0; hidden_activation="gelu";
        {PARTIAL.replace("0.5", "0.25")}; {PARTIAL.replace("0.5", "1.0")}; {ROPE}""",
    ),
    "gemma4_experts": (  # experts beside the network, a router of the residual stream, values that are the keys
        "Gemma4ForCausalLM",
        f"""model_type="gemma4_text" {SIZES} {PARTIAL} num_hidden_layers=3 head_dim=4 global_head_dim=8
        hidden_size_per_layer_input=0 attention_k_eq_v=true num_global_key_value_heads=1 enable_moe_block=true
        num_experts=5 top_k_experts=2 moe_intermediate_size=7 attention_bias=true tie_word_embeddings=false
        layer_types=["full_attention","sliding_attention","full_attention"]""",
        """rms_norm_eps=1e-6; sliding_window=3; sliding_window=5; top_k_experts=1; top_k_experts=3;
        hidden_activation="gelu" """,
    ),
}
