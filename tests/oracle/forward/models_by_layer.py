"""The tiny models of mixtures, latent attention, and attention that differs by layer: as in models.py."""

SIZES = "vocab_size=61 max_position_embeddings=17"
MODELS = {
    "mixtral": (
        "MixtralForCausalLM",
        f"""model_type="mixtral" {SIZES} hidden_size=23 intermediate_size=11 num_hidden_layers=2 num_attention_heads=6
        num_key_value_heads=2 head_dim=6 hidden_act="silu" rms_norm_eps=0.01 rope_theta=50.0 sliding_window=null
        num_local_experts=7 num_experts_per_tok=3 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4; num_experts_per_tok=2; num_experts_per_tok=4",
    ),
    "qwen2_moe": (  # a shared expert behind a gate, scores that are not normalised, a dense layer, biases on q, k and v
        "Qwen2MoeForCausalLM",
        f"""model_type="qwen2_moe" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=3 num_attention_heads=4
        num_key_value_heads=2 hidden_act="silu" rms_norm_eps=0.01 rope_theta=30.0 moe_intermediate_size=7
        shared_expert_intermediate_size=11 num_experts=6 num_experts_per_tok=2 norm_topk_prob=false mlp_only_layers=[1]
        tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4; num_experts_per_tok=3; norm_topk_prob=true",
    ),
    "deepseek_v3": (  # queries of a latent, sigmoid scores with a correction, groups, one shared expert, a dense layer
        "DeepseekV3ForCausalLM",
        f"""model_type="deepseek_v3" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=3
        num_attention_heads=3 num_key_value_heads=3 q_lora_rank=11 kv_lora_rank=9 qk_nope_head_dim=5 qk_rope_head_dim=4
        v_head_dim=7 attention_bias=true hidden_act="silu" rms_norm_eps=0.01 rope_theta=20.0 first_k_dense_replace=1
        moe_intermediate_size=7 n_routed_experts=8 num_experts_per_tok=3 n_shared_experts=1 n_group=4 topk_group=2
        norm_topk_prob=true routed_scaling_factor=2.5 num_nextn_predict_layers=0 tie_word_embeddings=false""",
        """rms_norm_eps=1e-6; rope_theta=1e4; num_experts_per_tok=4; topk_group=3; topk_group=4; n_group=2;
        norm_topk_prob=false; routed_scaling_factor=1.0; rope_interleave=false""",
    ),
    "deepseek_v2": (  # queries of the input, softmax scores, groups by their best, two shared experts
        "DeepseekV2ForCausalLM",
        f"""model_type="deepseek_v2" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=2
        num_attention_heads=3 num_key_value_heads=3 q_lora_rank=null kv_lora_rank=8 qk_nope_head_dim=6
        qk_rope_head_dim=4 v_head_dim=7 hidden_act="silu" rms_norm_eps=0.01 rope_theta=20.0 first_k_dense_replace=0
        moe_intermediate_size=7 n_routed_experts=9 num_experts_per_tok=3 n_shared_experts=2 n_group=3 topk_group=2
        topk_method="group_limited_greedy" norm_topk_prob=false routed_scaling_factor=1.5 tie_word_embeddings=false""",
        """rms_norm_eps=1e-6; rope_theta=1e4; num_experts_per_tok=4; topk_group=1; topk_group=3;
        topk_method="greedy"; routed_scaling_factor=1.0""",
    ),
    "minicpm3": (  # latent attention beside dense networks; embeddings, residuals and logits are scaled
        "MiniCPM3ForCausalLM",
        f"""model_type="minicpm3" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=3 num_attention_heads=3
        num_key_value_heads=3 q_lora_rank=11 kv_lora_rank=9 qk_nope_head_dim=5 qk_rope_head_dim=4 v_head_dim=7
        hidden_act="silu" rms_norm_eps=0.01 rope_theta=20.0 scale_emb=2 scale_depth=1.4 dim_model_base=11""",
        "rms_norm_eps=1e-6; rope_theta=1e4; scale_emb=3; scale_depth=2.0; dim_model_base=22",
    ),
    "gpt_oss": (  # sinks, a window in every other layer, biases everywhere, experts with bounds, softmax of the chosen
        "GptOssForCausalLM",
        f"""model_type="gpt_oss" {SIZES} hidden_size=22 intermediate_size=7 num_hidden_layers=3 num_attention_heads=6
        num_key_value_heads=2 head_dim=6 rms_norm_eps=0.01 sliding_window=4 num_local_experts=5 num_experts_per_tok=2
        swiglu_limit=0.7 rope_parameters={{"rope_type":"default","rope_theta":50.0}}""",
        """rms_norm_eps=1e-6; sliding_window=3; sliding_window=5; sliding_window=17; swiglu_limit=7.0;
        swiglu_alpha=1.0; num_experts_per_tok=3; rope_parameters={"rope_type":"default","rope_theta":1e4};
        layer_types=["full_attention","sliding_attention","full_attention"]""",
    ),
    "gemma3_text": (  # four norms a layer, q and k normed per head, two local layers of three, a theta for each kind
        "Gemma3ForCausalLM",
        f"""model_type="gemma3_text" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=4
        num_attention_heads=4 num_key_value_heads=2 head_dim=10 hidden_activation="gelu_pytorch_tanh" rms_norm_eps=0.05
        query_pre_attn_scalar=7 sliding_window=4 sliding_window_pattern=3 rope_theta=70.0 rope_local_base_freq=20.0""",
        """rms_norm_eps=1e-6; query_pre_attn_scalar=10; sliding_window=3; sliding_window=5; sliding_window_pattern=2;
        rope_theta=1e4; rope_local_base_freq=1e4; hidden_activation="gelu" """,
    ),
    "falcon": (  # one key head, attention and network beside each other under one norm
        "FalconForCausalLM",
        f"""model_type="falcon" {SIZES} hidden_size=30 num_hidden_layers=3 num_attention_heads=5 ffn_hidden_size=37
        layer_norm_epsilon=0.01 multi_query=true parallel_attn=true bias=false alibi=false rope_theta=20.0""",
        """layer_norm_epsilon=1e-5; rope_theta=1e4; activation="gelu_new" """,
    ),
    "falcon_new": (  # two key heads, two norms before two parallel parts, biases
        "FalconForCausalLM",
        f"""model_type="falcon" {SIZES} hidden_size=36 num_hidden_layers=2 num_attention_heads=6 num_kv_heads=2
        ffn_hidden_size=31 layer_norm_epsilon=0.01 new_decoder_architecture=true bias=true rope_theta=20.0
        activation="relu" """,
        """layer_norm_epsilon=1e-5; rope_theta=1e4; activation="gelu" """,
    ),
    "llama4_text": (  # chunks with rotation and normed q and k, whole layers without, experts whose inputs are weighed
        "Llama4ForCausalLM",
        f"""model_type="llama4_text" {SIZES} hidden_size=22 intermediate_size=7 intermediate_size_mlp=13
        num_hidden_layers=4 num_attention_heads=6 num_key_value_heads=2 head_dim=6 hidden_act="silu" rms_norm_eps=0.01
        rope_theta=50.0 attention_chunk_size=5 no_rope_layer_interval=3 interleave_moe_layer_step=2 num_local_experts=4
        num_experts_per_tok=2 use_qk_norm=true attn_temperature_tuning=false""",
        """rms_norm_eps=1e-6; rope_theta=1e4; attention_chunk_size=4; attention_chunk_size=6; attention_chunk_size=17;
        no_rope_layer_interval=2; use_qk_norm=false; num_experts_per_tok=1""",
    ),
    "cohere2": (  # LayerNorm without bias before parallel parts, windows with rotation, whole layers without
        "Cohere2ForCausalLM",
        f"""model_type="cohere2" {SIZES} hidden_size=24 intermediate_size=13 num_hidden_layers=4 num_attention_heads=6
        num_key_value_heads=2 hidden_act="silu" layer_norm_eps=0.01 rope_theta=20.0 sliding_window=4
        sliding_window_pattern=3 logit_scale=0.25""",
        """layer_norm_eps=1e-5; rope_theta=1e4; sliding_window=3; sliding_window=5; sliding_window_pattern=2;
        logit_scale=0.0625""",
    ),
    "gpt_neo": (  # local and global layers by turns, scores that are not scaled, learned positions
        "GPTNeoForCausalLM",
        f"""model_type="gpt_neo" {SIZES} hidden_size=24 intermediate_size=31 num_layers=3 num_heads=4 window_size=4
        attention_types=[[["global","local"],1],[["local"],1]] activation_function="gelu_new"
        layer_norm_epsilon=0.01""",
        """layer_norm_epsilon=1e-5; window_size=3; window_size=5; activation_function="gelu";
        attention_types=[[["local","global"],1],[["local"],1]]""",
    ),
}
