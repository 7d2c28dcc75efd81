"""The tiny models of linear attention, convolutions and gated recurrences, some beside attention: as in models.py.

Two are as they are for the library's own caches: MiniMax asks the one of its first layer how long the text is, which a
linear layer does not know, and xLSTM makes its states for keys and values of multiples of 64 numbers.
"""

SIZES = "vocab_size=61 max_position_embeddings=17 pad_token_id=null"
MODELS = {
    "qwen3_next": (  # the gated delta rule with two value heads a key head, gated attention, a dense layer, experts
        "Qwen3NextForCausalLM",
        f"""model_type="qwen3_next" {SIZES} hidden_size=22 intermediate_size=13 num_hidden_layers=4
        num_attention_heads=4 num_key_value_heads=2 head_dim=8 hidden_act="silu" rms_norm_eps=0.01
        rope_parameters={{"rope_type":"default","rope_theta":30.0,"partial_rotary_factor":0.5}}
        layer_types=["linear_attention","full_attention","linear_attention","full_attention"]
        linear_conv_kernel_dim=3 linear_num_key_heads=2 linear_num_value_heads=4 linear_key_head_dim=6
        linear_value_head_dim=5 mlp_only_layers=[1] num_experts=5 num_experts_per_tok=2 norm_topk_prob=true
        moe_intermediate_size=7 shared_expert_intermediate_size=11 tie_word_embeddings=false""",
        """rms_norm_eps=1e-6; num_experts_per_tok=3; norm_topk_prob=false; hidden_act="gelu_pytorch_tanh";
        rope_parameters={"rope_type":"default","rope_theta":1e4,"partial_rotary_factor":0.5}""",
    ),
    "kimi_linear": (  # a decay of each channel, gates of low rank, latent attention without positions, experts
        "KimiLinearForCausalLM",
        """model_type="kimi_linear" vocab_size=61 model_max_length=17 pad_token_id=null hidden_size=22
        intermediate_size=13 num_hidden_layers=4 num_attention_heads=3 num_key_value_heads=3 q_lora_rank=null
        kv_lora_rank=9 qk_nope_head_dim=5 qk_rope_head_dim=4 v_head_dim=7 hidden_act="silu" rms_norm_eps=0.01
        layer_types=["linear_attention","full_attention","linear_attention","linear_attention"]
        mlp_layer_types=["dense","sparse","sparse","dense"] linear_head_dim=5 linear_num_heads=3
        linear_conv_kernel_dim=4 num_experts=6 num_experts_per_token=2 num_shared_experts=1 moe_intermediate_size=7
        num_expert_group=1 topk_group=1 moe_renormalize=true routed_scaling_factor=1.5 tie_word_embeddings=false""",
        """rms_norm_eps=1e-6; num_experts_per_token=3; moe_renormalize=false; routed_scaling_factor=2.5""",
    ),
    "minimax": (  # lightning attention in blocks of 5, whose slopes fall with depth; the residual is what is normed
        "MiniMaxForCausalLM",
        f"""model_type="minimax" {SIZES} hidden_size=22 intermediate_size=11 num_hidden_layers=4 num_attention_heads=4
        num_key_value_heads=2 head_dim=6 hidden_act="silu" rms_norm_eps=1e-6 block_size=5
        rope_parameters={{"rope_type":"default","rope_theta":30.0}} num_local_experts=5 num_experts_per_tok=2
        layer_types=["full_attention","linear_attention","linear_attention","full_attention"]
        tie_word_embeddings=false""",
        """rms_norm_eps=0.3; num_experts_per_tok=3; hidden_act="gelu_pytorch_tanh";
        rope_parameters={"rope_type":"default","rope_theta":1e4}""",
    ),
    "lfm2": (  # short convolutions with biases, and attention with normed q and k
        "Lfm2ForCausalLM",
        f"""model_type="lfm2" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=3 num_attention_heads=4
        num_key_value_heads=2 norm_eps=0.01 rope_parameters={{"rope_type":"default","rope_theta":30.0}} conv_bias=true
        conv_L_cache=3 block_auto_adjust_ff_dim=false layer_types=["conv","full_attention","conv"]
        tie_word_embeddings=true""",
        """norm_eps=1e-6; rope_parameters={"rope_type":"default","rope_theta":1e4}""",
    ),
    "recurrent_gemma": (  # real-gated linear recurrent units wider than the model, a local layer, capped logits
        "RecurrentGemmaForCausalLM",
        """model_type="recurrent_gemma" vocab_size=61 pad_token_id=null hidden_size=25 intermediate_size=26
        num_hidden_layers=3 num_attention_heads=3 num_key_value_heads=1 head_dim=8 lru_width=33 conv1d_width=4
        attention_window_size=4 block_types=["recurrent","attention"] hidden_activation="gelu_pytorch_tanh"
        rms_norm_eps=0.05 logits_soft_cap=3.0 tie_word_embeddings=true
        rope_parameters={"rope_type":"default","rope_theta":30.0,"partial_rotary_factor":0.5}""",
        """rms_norm_eps=1e-6; attention_window_size=3; attention_window_size=5; logits_soft_cap=30.0;
        hidden_activation="gelu";
        rope_parameters={"rope_type":"default","rope_theta":1e4,"partial_rotary_factor":0.5}""",
    ),
    "xlstm": (  # matrix memories with exponential gates that are capped, capped logits
        "xLSTMForCausalLM",
        """model_type="xlstm" vocab_size=61 pad_token_id=null hidden_size=32 num_hidden_layers=2 num_heads=4
        qk_dim_factor=2.0 v_dim_factor=4.0 use_bias=false norm_eps=0.01 ffn_proj_factor=1.5
        ffn_round_up_to_multiple_of=13 gate_soft_cap=2.0 output_logit_soft_cap=3.0 tie_word_embeddings=false""",
        """norm_eps=1e-6; gate_soft_cap=15.0; output_logit_soft_cap=30.0""",
    ),
}
