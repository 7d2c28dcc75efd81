"""The tiny models with state spaces or RWKV, some beside attention: as in models.py.

Of a text the classes of Mamba-2 run the chunked form, of a single token the recurrent one. Chunks are of 5 tokens.
"""

SIZES = "vocab_size=61 pad_token_id=null"
MAMBA2 = "mamba_d_state=7 mamba_d_conv=3"
ROPE = 'rope_parameters={"rope_type":"default","rope_theta":30.0}'
MODELS = {
    "mamba": (  # projections with biases, a rank of step sizes that is not the default
        "MambaForCausalLM",
        f"""model_type="mamba" {SIZES} hidden_size=22 state_size=5 num_hidden_layers=3 expand=2 conv_kernel=4
        time_step_rank=3 use_bias=true use_conv_bias=true hidden_act="silu" layer_norm_epsilon=0.01""",
        """layer_norm_epsilon=1e-6; hidden_act="gelu_pytorch_tanh" """,
    ),
    "mamba2": (  # two heads a group, chunks that end within a text, biases
        "Mamba2ForCausalLM",
        f"""model_type="mamba2" {SIZES} hidden_size=21 state_size=5 num_hidden_layers=3 expand=2 num_heads=6 head_dim=7
        n_groups=3 conv_kernel=4 chunk_size=5 use_bias=true use_conv_bias=true hidden_act="silu"
        layer_norm_epsilon=0.01 tie_word_embeddings=false""",
        """layer_norm_epsilon=1e-6; hidden_act="gelu_pytorch_tanh" """,
    ),
    "jamba": (  # norms inside of Mamba, one layer of attention without positions, experts in every other layer
        "JambaForCausalLM",
        f"""model_type="jamba" {SIZES} max_position_embeddings=17 hidden_size=20 intermediate_size=13
        num_hidden_layers=4 num_attention_heads=4 num_key_value_heads=2 hidden_act="silu" rms_norm_eps=0.01
        num_experts=5 num_experts_per_tok=2 expert_layer_period=2 expert_layer_offset=1 attn_layer_period=4
        attn_layer_offset=2 mamba_d_state=5 mamba_d_conv=4 mamba_expand=2 mamba_dt_rank=3 mamba_conv_bias=true
        mamba_proj_bias=false tie_word_embeddings=false""",
        """rms_norm_eps=1e-6; num_experts_per_tok=3""",
    ),
    "falcon_h1": (  # attention and Mamba-2 beside each other, a norm before the gate
        "FalconH1ForCausalLM",
        f"""model_type="falcon_h1" {SIZES} max_position_embeddings=17 hidden_size=22 intermediate_size=13
        num_hidden_layers=2 num_attention_heads=4 num_key_value_heads=2 head_dim=6 hidden_act="silu" rms_norm_eps=0.01
        mamba_d_ssm=30 mamba_n_heads=6 mamba_d_head=5 mamba_n_groups=2 {MAMBA2} mamba_chunk_size=5 mamba_conv_bias=true
        mamba_proj_bias=false mamba_rms_norm=true mamba_norm_before_gate=true {ROPE} tie_word_embeddings=false""",
        f"""rms_norm_eps=1e-6; mamba_norm_before_gate=false; {ROPE.replace("30.0", "1e4")}""",
    ),
    "zamba": (  # one block that two layers share, step sizes by head
        "ZambaForCausalLM",
        f"""model_type="zamba" {SIZES} max_position_embeddings=17 hidden_size=18 intermediate_size=13
        num_hidden_layers=4 num_attention_heads=4 num_key_value_heads=4 n_mamba_heads=2 hidden_act="gelu"
        hidden_mamba_act="silu" rms_norm_eps=0.01 mamba_d_state=5 mamba_d_conv=4 mamba_expand=2 mamba_dt_rank=3
        layers_block_type=["hybrid","mamba","hybrid","mamba"] tie_word_embeddings=true""",
        """rms_norm_eps=1e-6; hidden_act="silu"; hidden_mamba_act="gelu_pytorch_tanh" """,
    ),
    "zamba2": (  # two blocks by turns, adapters on both of their parts, rotation
        "Zamba2ForCausalLM",
        f"""model_type="zamba2" {SIZES} max_position_embeddings=17 hidden_size=20 intermediate_size=13
        num_hidden_layers=4 num_attention_heads=4 num_key_value_heads=4 hidden_act="gelu" rms_norm_eps=1e-5 {MAMBA2}
        mamba_expand=2 mamba_ngroups=2 n_mamba_heads=4 chunk_size=5 num_mem_blocks=2 use_shared_attention_adapter=true
        adapter_rank=3 use_mem_rope=true {ROPE} layers_block_type=["hybrid","mamba","hybrid","hybrid"]
        tie_word_embeddings=true""",
        f"""hidden_act="silu"; {ROPE.replace("30.0", "1e4")}; use_mem_rope=false""",
    ),
    "nemotron_h": (  # one sublayer a layer: Mamba-2, attention, a network, experts on fewer numbers
        "NemotronHForCausalLM",
        f"""model_type="nemotron_h" {SIZES} max_position_embeddings=17 hidden_size=22 intermediate_size=13
        layers_block_type=["mamba","moe","attention","mlp","mamba"] num_attention_heads=4 num_key_value_heads=2
        head_dim=6 mlp_hidden_act="relu2" layer_norm_epsilon=0.01 ssm_state_size=5 mamba_num_heads=6 mamba_head_dim=7
        n_groups=3 conv_kernel=4 chunk_size=5 n_routed_experts=6 n_shared_experts=1 num_experts_per_tok=2
        moe_intermediate_size=7 moe_shared_expert_intermediate_size=11 moe_latent_size=9 n_group=1 topk_group=1
        norm_topk_prob=true routed_scaling_factor=1.5 tie_word_embeddings=false""",
        """layer_norm_epsilon=1e-6; num_experts_per_tok=3; norm_topk_prob=false; routed_scaling_factor=2.5""",
    ),
    "rwkv": (  # time and channel mixing; the last norm has an eps of 1e-5 whatever the config says
        "RwkvForCausalLM",
        """model_type="rwkv" vocab_size=61 context_length=17 hidden_size=22 intermediate_size=31
        num_hidden_layers=3 layer_norm_epsilon=1e-5 rescale_every=0 tie_word_embeddings=false""",
        """layer_norm_epsilon=0.01""",
    ),
}
