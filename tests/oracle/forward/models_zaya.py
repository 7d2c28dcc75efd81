"""The tiny model of compressed convolutional attention, ZAYA1: as in models.py."""

MODELS = {
    "zaya": (  # convolutions of 3 and 2 tokens, window 4 in the second layer, routers' numbers carried, experts skipped
        "ZayaForCausalLM",
        """model_type="zaya" vocab_size=61 max_position_embeddings=17 pad_token_id=null hidden_size=22
        num_hidden_layers=4 num_attention_heads=4 num_key_value_heads=2 head_dim=10 hidden_act="silu" rms_norm_eps=0.01
        layer_types=["hybrid","hybrid_sliding","hybrid","hybrid"] sliding_window=4 moe_intermediate_size=11
        num_experts=5 router_hidden_size=7 attention_bias=true lm_head_bias=true cca_time0=3 cca_time1=2
        tie_word_embeddings=false
        rope_parameters={"hybrid":{"rope_theta":30.0},"hybrid_sliding":{"rope_theta":50.0,"partial_rotary_factor":0.4}}
        """,
        """rms_norm_eps=1e-6; sliding_window=3; hidden_act="gelu_pytorch_tanh";
        rope_parameters={"hybrid":{"rope_theta":1e4},"hybrid_sliding":{"rope_theta":50.0,"partial_rotary_factor":0.4}};
        rope_parameters={"hybrid":{"rope_theta":30.0},"hybrid_sliding":{"rope_theta":50.0,"partial_rotary_factor":0.8}}
        """,
    ),
}
