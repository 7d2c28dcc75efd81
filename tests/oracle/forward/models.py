"""The tiny models that record.py records: their classes, what their config.json holds, and what must show in them."""

# Of each file: the class, what its config.json holds, and changes to it that must show, `;` between them.
SIZES = "vocab_size=97 intermediate_size=37 num_hidden_layers=3 max_position_embeddings=17"
MODELS = {
    "gpt2": (
        "GPT2LMHeadModel",
        """model_type="gpt2" vocab_size=97 n_embd=35 n_head=5 n_inner=37 n_layer=3 n_positions=17
        activation_function="gelu_new" layer_norm_epsilon=0.01 bos_token_id=1 eos_token_id=2""",
        """layer_norm_epsilon=1e-5; scale_attn_weights=false; activation_function="gelu" """,
    ),
    "llama": (
        "LlamaForCausalLM",
        f"""model_type="llama" {SIZES} hidden_size=24 num_attention_heads=6 num_key_value_heads=2 head_dim=10
        hidden_act="silu" rms_norm_eps=0.005 rope_theta=50.0 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "llama_biased": (
        "LlamaForCausalLM",
        f"""model_type="llama" {SIZES} hidden_size=30 num_attention_heads=5 num_key_value_heads=1 hidden_act="silu"
        attention_bias=true mlp_bias=true rms_norm_eps=0.01 rope_theta=200.0 tie_word_embeddings=true""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        f"""model_type="qwen3" {SIZES} hidden_size=23 num_attention_heads=6 num_key_value_heads=3 head_dim=10
        hidden_act="silu" rms_norm_eps=0.02 rope_parameters={{"rope_type":"default","rope_theta":70.0}}
        tie_word_embeddings=true""",
        """rms_norm_eps=1e-6; rope_parameters={"rope_type":"default","rope_theta":1e4}""",
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        f"""model_type="gemma2" {SIZES} hidden_size=30 num_attention_heads=6 num_key_value_heads=2 head_dim=14
        hidden_activation="gelu_pytorch_tanh" rms_norm_eps=0.05 query_pre_attn_scalar=11 attn_logit_softcapping=2.0
        final_logit_softcapping=8.0 sliding_window=4""",
        """rms_norm_eps=1e-6; rope_theta=100.0; query_pre_attn_scalar=14; attn_logit_softcapping=null;
        final_logit_softcapping=null; sliding_window=3; sliding_window=5; sliding_window=17;
        layer_types=["full_attention","sliding_attention","full_attention"]; hidden_activation="gelu" """,
    ),
    "mistral": (
        "MistralForCausalLM",
        f"""model_type="mistral" {SIZES} hidden_size=31 num_attention_heads=6 num_key_value_heads=2 head_dim=14
        hidden_act="silu" rms_norm_eps=0.005 rope_theta=30.0 sliding_window=5 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4; sliding_window=null; sliding_window=4; sliding_window=6",
    ),
    "phi": (
        "PhiForCausalLM",
        """model_type="phi" vocab_size=97 intermediate_size=37 num_hidden_layers=2 max_position_embeddings=17
        hidden_size=30 num_attention_heads=3 hidden_act="gelu_new" layer_norm_eps=0.01 partial_rotary_factor=0.4
        rope_theta=20.0 tie_word_embeddings=false""",
        """layer_norm_eps=1e-5; rope_theta=1e4; partial_rotary_factor=0.6; hidden_act="gelu" """,
    ),
    "olmo2": (  # norms on the output of each sublayer, and over the whole projection of queries and of keys
        "Olmo2ForCausalLM",
        f"""model_type="olmo2" {SIZES} hidden_size=30 num_attention_heads=3 num_key_value_heads=1 hidden_act="silu"
        rms_norm_eps=0.02 rope_theta=40.0 tie_word_embeddings=false""",
        "rms_norm_eps=1e-6; rope_theta=1e4",
    ),
    "gpt_neox": (  # parallel with two norms, GELU by erf
        "GPTNeoXForCausalLM",
        f"""model_type="gpt_neox" {SIZES} hidden_size=30 num_attention_heads=3 hidden_act="gelu" layer_norm_eps=0.01
        rotary_pct=0.4 rotary_emb_base=20 tie_word_embeddings=false""",
        """layer_norm_eps=1e-5; rotary_emb_base=10000; rotary_pct=0.6; hidden_act="gelu_new";
        use_parallel_residual=false""",
    ),
    "opt": (  # norms after the residual sum, a table narrower than the model, two rows of positions before the first
        "OPTForCausalLM",
        """model_type="opt" vocab_size=97 hidden_size=35 word_embed_proj_dim=23 ffn_dim=37 num_hidden_layers=3
        num_attention_heads=5 max_position_embeddings=17 do_layer_norm_before=false activation_function="relu" """,
        """activation_function="silu"; num_attention_heads=7""",
    ),
    "bloom": (  # ALiBi with a number of heads that is no power of two, a norm of the embeddings
        "BloomForCausalLM",
        """model_type="bloom" vocab_size=97 hidden_size=35 n_head=5 n_layer=3 layer_norm_epsilon=0.01""",
        "layer_norm_epsilon=1e-5",
    ),
    "mpt": (  # ALiBi as another class has it, LayerNorm without bias, four times as wide inside
        "MptForCausalLM",
        """model_type="mpt" vocab_size=97 d_model=42 n_heads=6 n_layers=2 max_seq_len=17 layer_norm_epsilon=0.01""",
        """layer_norm_epsilon=1e-5; attn_config={"softmax_scale":0.3}""",
    ),
    "bert": (  # looks both ways, norms after the residual sum, token types, a transform before the tied head
        "BertForMaskedLM",
        f"""model_type="bert" {SIZES} hidden_size=35 num_attention_heads=5 hidden_act="gelu" type_vocab_size=3
        layer_norm_eps=0.01""",
        """layer_norm_eps=1e-5; hidden_act="gelu_new"; hidden_act="silu" """,
    ),
    "bert_pooled": (  # without a head, and with a pooler
        "BertModel",
        """model_type="bert" vocab_size=97 intermediate_size=37 num_hidden_layers=2 max_position_embeddings=17
        hidden_size=30 num_attention_heads=3 hidden_act="relu" type_vocab_size=2 layer_norm_eps=0.02""",
        """layer_norm_eps=1e-5; hidden_act="silu" """,
    ),
    "albert": (  # one set of weights for three layers, a narrow table that is projected after norm and positions
        "AlbertForMaskedLM",
        f"""model_type="albert" {SIZES} hidden_size=30 embedding_size=23 num_attention_heads=5 hidden_act="gelu_new"
        type_vocab_size=2 layer_norm_eps=0.01""",
        """layer_norm_eps=1e-5; hidden_act="gelu" """,
    ),
    "modernbert": (  # global layers and local ones, of which a token sees two to either side, each with its own theta
        "ModernBertForMaskedLM",
        """model_type="modernbert" vocab_size=97 hidden_size=30 intermediate_size=37 num_hidden_layers=4 pad_token_id=0
        num_attention_heads=3 max_position_embeddings=17 norm_eps=0.01 global_attn_every_n_layers=3 local_attention=5
        global_rope_theta=50.0 local_rope_theta=20.0""",
        """norm_eps=1e-5; local_attention=3; local_attention=7; local_attention=99; global_attn_every_n_layers=2;
        global_rope_theta=1e4; local_rope_theta=1e4; hidden_activation="gelu_new" """,
    ),
    "t5": (  # relative positions in eight buckets, gated, a head of its own and so no scale before it
        "T5ForConditionalGeneration",
        """model_type="t5" vocab_size=97 d_model=30 d_kv=7 d_ff=37 num_heads=5 num_layers=2 num_decoder_layers=3
        relative_attention_num_buckets=8 relative_attention_max_distance=11 layer_norm_epsilon=0.01
        feed_forward_proj="gated-gelu" tie_word_embeddings=false""",
        """layer_norm_epsilon=1e-6; relative_attention_max_distance=19; feed_forward_proj="gated-silu" """,
    ),
    "t5_tied": (
        "T5ForConditionalGeneration",
        """model_type="t5" vocab_size=97 d_model=30 d_kv=11 d_ff=37 num_heads=3 num_layers=3 num_decoder_layers=2
        relative_attention_num_buckets=7 relative_attention_max_distance=13 layer_norm_epsilon=0.02
        feed_forward_proj="relu" """,
        """layer_norm_epsilon=1e-6; relative_attention_max_distance=29; feed_forward_proj="silu" """,
    ),
    "bart": (  # norms after the residual sum, positions from row 2 on in both stacks, a bias of logits that is a buffer
        "BartForConditionalGeneration",
        """model_type="bart" vocab_size=97 d_model=30 encoder_layers=2 decoder_layers=3 encoder_attention_heads=5
        decoder_attention_heads=3 encoder_ffn_dim=37 decoder_ffn_dim=41 max_position_embeddings=17
        activation_function="gelu" scale_embedding=true""",
        """scale_embedding=false; activation_function="gelu_new"; activation_function="silu";
        encoder_attention_heads=3; decoder_attention_heads=5""",
    ),
}
