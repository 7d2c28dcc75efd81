"""Tiny models whose attention meets chosen keys, and their kin: name -> what a raw config.json would hold."""

LATENT = """vocab_size=61 hidden_size=22 num_attention_heads=3 num_key_value_heads=3 q_lora_rank=13 kv_lora_rank=10
    qk_nope_head_dim=5 qk_rope_head_dim=4 v_head_dim=7 rope_theta=30.0 routed_scaling_factor=1.5
    max_position_embeddings=17 pad_token_id=null bos_token_id=1 eos_token_id=2 rms_norm_eps=0.01"""
EXPERTS = """intermediate_size=17 moe_intermediate_size=11 n_routed_experts=6 num_experts_per_tok=2 n_shared_experts=1
    index_n_heads=5 index_head_dim=6 index_topk=3"""
GROUPS = "n_group=3 topk_group=2"
BASES = """{"sliding_attention":{"rope_type":"default","rope_theta":30.0},
    "full_attention":{"rope_type":"default","rope_theta":50.0}}""".replace("\n    ", "")
MODELS = {
    "deepseek_v32": f"""model_type="deepseek_v32" architectures=["DeepseekV32ForCausalLM"] {LATENT} {EXPERTS} {GROUPS}
        num_hidden_layers=2 first_k_dense_replace=1""",
    "glm_moe_dsa": f"""model_type="glm_moe_dsa" architectures=["GlmMoeDsaForCausalLM"] {LATENT} {EXPERTS} {GROUPS}
        num_hidden_layers=3 first_k_dense_replace=1 indexer_types=["full","shared","full"]""",
    "axk2": f"""model_type="axk2" architectures=["AXK2ForCausalLM"] {LATENT} {EXPERTS} num_hidden_layers=2
        gated_norm_rank=3""",
    "hy_v4": f"""model_type="hy_v4" architectures=["HYV4ForCausalLM"] {LATENT} {EXPERTS} {GROUPS} num_hidden_layers=3
        hc_mult=3 hc_eps=0.01 hc_magnitude=1.5 swiglu_limit=1.1""",
    "dots3_note_text": f"""model_type="dots3_note_text" architectures=["Dots3NoteForCausalLM"] {LATENT} {EXPERTS}
        {GROUPS} num_hidden_layers=3 head_dim=9 sliding_window=4 swa_num_attention_heads=2 swa_num_key_value_heads=2
        swa_q_lora_rank=9 swa_kv_lora_rank=11 swa_head_dim=9 swa_qk_nope_head_dim=5 swa_v_head_dim=7
        shared_experts_intermediate_size=7""",
    "longcat_flash": f"""model_type="longcat_flash" architectures=["LongcatFlashForCausalLM"] {LATENT} num_layers=2
        ffn_hidden_size=17 expert_ffn_hidden_size=11 n_routed_experts=4 zero_expert_num=3 moe_topk=3 head_dim=4""",
    "beam": f"""model_type="beam" architectures=["BeamForCausalLM"] vocab_size=61 hidden_size=22 num_attention_heads=4
        num_key_value_heads=2 head_dim=6 intermediate_size=17 moe_intermediate_size=11 num_experts=6
        num_experts_per_tok=2 {GROUPS} num_hidden_layers=3 sliding_window=4 rms_norm_eps=0.01 routed_scaling_factor=1.5
        layer_types=["sliding_attention","full_attention","sliding_attention"] final_logit_softcapping=2.0
        mlp_layer_types=["dense","sparse","sparse"] pad_token_id=null bos_token_id=1 eos_token_id=2
        rope_parameters={BASES}""",
}
