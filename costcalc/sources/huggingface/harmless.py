"""Keys of a config.json that can change no shape of a weight, a matmul or a cache of a plain text decoder.

Collected from `transformers` (5.24.0 and the base class of older versions) and from public config.json files. A key
that is neither read by a reader nor listed here is refused.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.activations import ACTIVATIONS

# Regularisation, initialisation and scalar constants.
CONSTANTS = """
    attention_dropout attention_probs_dropout_prob attn_pdrop classifier_dropout dropout embd_pdrop
    embedding_dropout hidden_dropout hidden_dropout_prob resid_pdrop residual_dropout neftune_noise_alpha
    init_std initializer_factor initializer_range layer_norm_eps layer_norm_epsilon norm_eps rms_norm_eps
    attention_softmax_in_fp32 attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar
    scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn pretraining_tp summary_activation
    activation_dropout classif_dropout decoder_layerdrop dropout_rate emb_pdrop embed_dropout encoder_layerdrop
    layerdrop resid_dropout norm_epsilon
    attention_multiplier embedding_multiplier logits_scaling residual_multiplier
    summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type summary_use_proj
"""

# Rotary frequencies and remarks on length.
ROTARY_AND_LENGTH = """
    ignore_keys_at_rope_validation max_seq_len max_seq_length max_sequence_length model_max_length n_ctx
    original_max_position_embeddings rope_interleaved rope_local_base_freq rope_parameters rope_scaling
    rope_theta rotary_base rotary_emb_base seq_length tokenizer_model_max_length
"""

# Storage and kernels: bytes or speed, never a count.
STORAGE_AND_KERNELS = """
    bf16 fp16 fp32 dtype torch_dtype use_bfloat16 quantization_config quantization compression_config
    load_in_4bit load_in_8bit _load_in_4bit _load_in_8bit _is_quantized _flash_attn_2_enabled
    _use_flash_attention_2 use_flash_attention_2 use_flash_attn gradient_checkpointing
    use_gradient_checkpointing device_map distributed_config base_model_ep_plan base_model_fsdp_plan
    base_model_pp_plan base_model_tp_plan _attn_implementation_autoset _attn_implementation_internal
    _experts_implementation_internal experts_implementation onnx_safe torchscript use_cache
    chunk_size_feed_forward
"""

# Generation settings that old versions wrote into the file.
GENERATION = """
    assistant_confidence_threshold assistant_lookbehind bad_words_ids begin_suppress_tokens diversity_penalty
    do_sample early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff eta_cutoff
    exponential_decay_length_penalty force_bos_token_to_be_generated force_words_ids forced_bos_token_id
    forced_eos_token_id length_penalty
    max_length max_new_tokens max_time min_length min_new_tokens min_p no_repeat_ngram_size num_assistant_tokens
    num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences penalty_alpha
    remove_invalid_values renormalize_logits repetition_penalty suppress_tokens target_lookbehind temperature
    top_k top_p typical_p
"""

# Tokens and tokenizers.
TOKENS = """
    bos_token bos_token_id chat_template cls_token cls_token_id decoder_start_token_id eod_token_id eos_token
    eos_token_id
    eos_token_ids image_token_id mask_token mask_token_id pad_token sep_token unk_token
    pad_token_id padding_side predict_special_tokens prefix sep_token_id tokenizer_class tokenizer_padding_side
    unk_token_id video_token_id
"""

# Remarks of tools, and labels of tasks.
REMARKS = """
    _auto_class _commit_hash _from_model_config _name_or_path _num_labels _post_init_done author created_date
    finetuning_task id2label is_llama_config label2id license name_or_path num_labels
    output_attentions output_hidden_states output_logits output_past output_scores problem_type return_dict
    return_dict_in_generate task_specific_params tf_legacy_loss tie_last_hidden_states transformers.js_config
    save_step transformers_version unsloth_fixed unsloth_version use_return_dict
"""

# Of mixtures of experts: losses and noise of training, and what the scores of a router are multiplied by.
MIXTURES = """
    aux_loss_alpha ep_size input_jitter_noise load_balance_coeff output_router_logits routed_scaling_factor route_scale
    router_aux_loss_coef router_jitter_noise router_scaling_factor router_z_loss_coef seq_aux swiglu_limit
"""

# Of recurrent layers and hybrids: ranges of step sizes, kernels, losses, logits kept in generation, and multipliers
# (Falcon-H1).
RECURRENT = """
    attention_in_multiplier attention_out_multiplier calc_logits_for_entire_prompt key_multiplier lm_head_multiplier
    mixer_rms_eps mlp_multipliers moe_shared_expert_overlap num_logits_to_keep rescale_prenorm_residual residual_in_fp32
    ssm_in_multiplier ssm_multipliers ssm_out_multiplier time_step_floor time_step_init_scheme time_step_limit
    time_step_max time_step_min time_step_scale use_associative_scan use_falcon_mambapy use_mamba_kernels use_mambapy
    use_mem_eff_path z_loss_coefficient
"""

# Of encoders: heads of tasks, which are not stated, the pooler's of Google's BERT, and the training of ModernBERT.
ENCODERS = """
    classifier_dropout_prob classifier_pooling clf_pooling deterministic_flash_attn initializer_cutoff_factor
    mlp_dropout pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head qa_dropout
    reference_compile repad_logits_with_grad seq_classif_dropout sparse_pred_ignore_index
"""


HARMLESS = frozenset(
    word
    for words in (
        *(CONSTANTS, ROTARY_AND_LENGTH, STORAGE_AND_KERNELS, GENERATION, TOKENS, REMARKS),
        *(MIXTURES, RECURRENT, ENCODERS),
    )
    for word in words.split()
)

# Keys that change nothing while they hold one of these values, for readers that do not read them.
_SWITCHED_OFF: list[Any] = [False, None]
_SWITCHES = [
    "add_bias_linear",
    "add_cross_attention",
    "add_qkv_bias",
    "attention_bias",
    "attention_out_bias",
    "attn_bias",
    "bias",
    "is_encoder_decoder",
    "lm_head_bias",
    "mlp_bias",
    "multi_query",
    "qk_layer_norms",
    "qk_layernorm",
    "qk_norm",
    "qkv_bias",
    "tie_encoder_decoder",
    "use_bidirectional_attention",
    "use_bias",
    "use_mrope",
    "use_qk_norm",
    "use_sliding_window",
]
_KERNELS = [None, "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention"]
HARMLESS_IF: dict[str, list[Any]] = {
    **dict.fromkeys(_SWITCHES, _SWITCHED_OFF),
    "_attn_implementation": _KERNELS,
    "attn_implementation": _KERNELS,
    "cache_config": [None, {}],
    "cache_implementation": [None, "dynamic", "hybrid"],
    "cross_attention_hidden_size": [None],
    "directionality": ["bidi", None],
    "down_scale_factor": [1, None],
    "gap_size": [0, None],
    "hidden_act": [None, *ACTIVATIONS],
    "is_causal": [True, None],
    "is_decoder": [True, False, None],  # as the classes that do not read it are, whatever it says
    "layers_to_keep": [None, []],
    "mlp_only_layers": [None, []],
    "n_special": [0, None],
    "net_structure_type": [0, None],
    "num_memory_blocks": [0, None],
    "num_nextn_predict_layers": [0, None],
    "num_reward_heads": [0, None],
    "partial_rotary_factor": [1, None],
    "per_layer_config": [None, {}],
    "pooler_type": ["first_token_transform", None],
    "position_embedding_type": ["absolute", None],
    "pruned_heads": [{}, None],
    "rope_ratio": [1, None],
    "rotary_pct": [1, None],
    "sparse_prediction": [False, None],
    "tie_weights_": [True, None],
}
