"""Words of papers and of other tools for what is called otherwise here: letters alone would suggest something else."""

from __future__ import annotations

from collections.abc import Iterable

from costcalc.errors import FEW_LETTERS, nearest

OURS = {
    # keys
    "vocab_size": "n_vocab padded_vocab_size",
    "d_model": "dim hidden_dim hidden_size n_embd width embed_dim d_embed model_dim dmodel",
    "context_length": "block_size max_len max_seq_len max_position_embeddings n_ctx n_positions seq_len",
    "tie_embeddings": "tied tie tie_word_embeddings weight_tying",
    "token_types": "type_vocab_size n_token_types segments segment_types",
    "buckets": "relative_attention_num_buckets num_buckets n_buckets",
    "max_distance": "relative_attention_max_distance",
    "cross_attention": "xattn encoder_attn cross_attn encdec_attention enc_dec_attention",
    "share_weights": "shared tied_layers share_layers universal",
    "offset": "padding_offset pad_offset",
    "layers": "blocks n_layer n_layers num_layers num_hidden_layers depth",
    "repeat": "count times n num_layers n_layers depth",
    "positions": "pos position position_embedding pos_emb position_encoding rope rope_theta",
    "attention": "attn mha gqa self_attn self_attention",
    "feed_forward": "ffn ff mlp feedforward",
    "heads": "n_head n_heads num_heads num_attention_heads query_heads",
    "kv_heads": "n_kv_heads num_kv_heads num_key_value_heads n_kv key_value_heads num_query_groups",
    "head_dim": "d_head head_size dim_head head_width d_k d_kv kv_channels",
    "window": "sliding_window window_size local_window attention_window",
    "chunk": "attention_chunk_size chunk_size",
    "v_dim": "v_head_dim d_v value_dim",
    "sinks": "attention_sinks sink",
    "cache_of": "kv_from share_kv kv_shared shared_kv shares_cache kv_sharing",
    "q_rank": "q_lora_rank q_latent",
    "kv_rank": "kv_lora_rank latent_rank rank latent_dim",
    "nope_dim": "qk_nope_head_dim nope_head_dim",
    "rope_dim": "qk_rope_head_dim rope_head_dim",
    "experts": "num_experts n_experts n_routed_experts num_local_experts",
    "experts_per_token": "top_k topk k num_experts_per_tok n_active_experts active_experts moe_top_k",
    "shared": "shared_expert shared_experts n_shared_experts",
    "expert": "routed",
    "correction": "e_score_correction_bias expert_bias",
    "multi_token": "mtp multi_token_prediction num_nextn_predict_layers next_n",
    "bias": "qkv_bias use_bias attention_bias mlp_bias biases",
    "d_ff": "dff ffn_dim intermediate_size intermediate hidden hidden_size hidden_dim n_inner inner_dim mlp_dim width",
    "activation": "act act_fn hidden_act activation_function nonlinearity",
    "eps": "epsilon norm_eps rms_norm_eps layer_norm_eps",
    "theta": "base rope_theta rope_base rotary_base",
    "length": "max_len max_length max_positions n_positions num_embeddings size",
    # kinds and values
    "grouped_query": "gqa mha mqa multi_head multihead multi_query self full",
    "latent": "mla multi_head_latent deepseek",
    "mixture": "moe experts sparse mixture_of_experts",
    "gated": "glu swiglu geglu reglu",
    "dense": "mlp ffn ff linear",
    "rope": "rotary",
    "learned": "absolute embedding",
    "sinusoidal": "sine sin_cos",
    "relative": "t5 relative_bias bucketed",
    "vocabulary": "lm lm_head mlm tied",
    "rmsnorm": "rms",
    "layernorm": "ln",
    "silu": "swish swiglu",
    "gelu": "geglu",
    "gelu_new": "gelu_pytorch_tanh gelu_fast",
    "pre": "pre_norm prenorm before",
    "post": "post_norm postnorm after",
    "per_head": "head_wise headwise",
}


def meant(word: str, allowed: Iterable[str], *, cutoff: float = FEW_LETTERS) -> list[str]:
    """Which of the allowed words was probably meant, first by what it means elsewhere, then by its letters."""
    known = list(allowed)
    folded = word.lower().replace("-", "_").replace(" ", "_")
    same = [ours for ours, others in OURS.items() if ours in known and folded in others.split()]
    return same[:1] or nearest(word, known, cutoff=cutoff)
