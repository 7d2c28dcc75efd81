"""Tiny models of the newest sparse decoders: name -> what a raw config.json would hold."""

MODELS = {
    "minimax_m3": """model_type="minimax_m3_vl_text" architectures=["MiniMaxM3VLForCausalLM"] vocab_size=61
        hidden_size=22 num_hidden_layers=3 num_attention_heads=4 num_key_value_heads=2 head_dim=10 rms_norm_eps=0.01
        partial_rotary_factor=0.4 rope_theta=30.0 intermediate_size=11 dense_intermediate_size=17
        shared_intermediate_size=7 num_local_experts=5 num_experts_per_tok=2 index_n_heads=2 index_head_dim=6
        index_block_size=3 index_topk_blocks=2 index_local_blocks=1 mlp_layer_types=["dense","sparse","sparse"]
        layer_types=["full_attention","minimax_m3_sparse","minimax_m3_sparse"] routed_scaling_factor=1.5
        swiglu_limit=1.1 pad_token_id=null bos_token_id=1 eos_token_id=2 max_position_embeddings=17""",
    "deepseek_v4": """model_type="deepseek_v4" architectures=["DeepseekV4ForCausalLM"] vocab_size=61 hidden_size=22
        num_hidden_layers=4 num_attention_heads=4 head_dim=10 q_lora_rank=13 moe_intermediate_size=11 n_routed_experts=5
        num_experts_per_tok=2 hc_mult=3 hc_sinkhorn_iters=3 hc_eps=0.01 rms_norm_eps=0.01 sliding_window=4 o_groups=2
        o_lora_rank=7 index_n_heads=6 index_head_dim=6 index_topk=2 partial_rotary_factor=0.4 rope_theta=30.0
        compress_rope_theta=50.0 routed_scaling_factor=1.5 swiglu_limit=1.1 pad_token_id=null bos_token_id=1
        mlp_layer_types=["hash_moe","moe","moe","moe"] eos_token_id=2 max_position_embeddings=17
        compress_rates={"compressed_sparse_attention":3,"heavily_compressed_attention":5}
        layer_types=["SPARSE","HEAVY","sliding_attention","SPARSE"]""".replace(
        "SPARSE", "compressed_sparse_attention"
    ).replace("HEAVY", "heavily_compressed_attention"),
}
INKLING = """vocab_size=61 hidden_size=22 num_attention_heads=4 num_key_value_heads=2 head_dim=10 d_rel=5 rel_extent=6
    swa_num_attention_heads=3 swa_num_key_value_heads=1 swa_head_dim=8 sliding_window_size=4 conv_kernel_size=3
    rms_norm_eps=0.01 log_scaling_n_floor=5 log_scaling_alpha=0.5 moe_intermediate_size=11 n_routed_experts=5
    num_experts_per_tok=2 route_scale=1.5 pad_token_id=null bos_token_id=1 eos_token_id=2 max_position_embeddings=17"""
CLIPPED = """qk_l2_clip_threshold=3.0 rel_l2_clip_threshold=1.5 mlp_gate_softcap=2.0 mlp_up_softcap=1.5
    final_logit_softcapping=5.0 unpadded_vocab_size=57 n_layers_per_attn_res_block=2"""
MODELS |= {
    "inkling": f"""{INKLING} model_type="inkling_text" architectures=["InklingForCausalLM"] num_hidden_layers=3
        intermediate_size=17 n_shared_experts=2 layer_types=["hybrid_sliding","hybrid","hybrid_sliding"]
        mlp_layer_types=["dense","sparse","sparse"] logits_mup_width_multiplier=2.0""",
    "inkling2": f"""{INKLING} {CLIPPED} model_type="inkling2_text" architectures=["Inkling2ForCausalLM"]
        num_hidden_layers=4 layer_types=["hybrid_sliding","hybrid","hybrid","hybrid_sliding"]""",
    "inkling2_loop": f"""{INKLING} {CLIPPED} model_type="inkling2_loop_text" num_hidden_layers=5
        architectures=["Inkling2LoopForCausalLM"] loop_layer_index_start=2 loop_layer_index_end=4 loop_num_passes=3
        loop_gate_rank=7 layer_types=["hybrid_sliding","hybrid","hybrid_sliding","hybrid","hybrid_sliding"]""",
}
