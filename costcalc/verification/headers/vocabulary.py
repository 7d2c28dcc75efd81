"""What the field calls the parts of a transformer: words of checkpoints, by the last part of our own paths.

No model is named here. A word says what a tensor may be; its shape, and what else is in its layer, have to agree.
"""

from __future__ import annotations

ROLES: dict[str, str] = {
    # attention
    "q": "indexer.wq_b q q_proj q_lin query query_proj wq attn_q q_attn query_layer",
    "k": "k k_proj k_lin key key_proj wk attn_k key_layer",
    "v": "v v_proj v_lin value value_proj wv attn_v value_layer",
    "output": "o o_proj out_proj out_lin wo attn_output attn_out output linear_out c_proj dense output.dense "
    "attn_out.0 to_out ssm_out proj_out out_project att_proj",
    "q_down": "q_a_proj q_down q_down_proj wq_a attn_q_a",
    "q_up": "q_b_proj q_up q_up_proj wq_b attn_q_b",
    "kv_down": "kv_a_proj_with_mqa kv_a_proj kv_down wkv_a attn_kv_a_mqa",
    "k_up": "k_b_proj attn_k_b",
    "v_up": "v_b_proj attn_v_b",
    "sinks": "sinks attention_sink_bias sink attn_sinks",
    # feed-forward
    "gate": "in_proj_z gate_proj gate wi_0 w1 linear_1 proj_up_gate ffn_gate gate_project fc_gate ffn_gate_exps "
    "ffn_gate_shexp "
    "fc1_g g_proj ogate_preact linear_y gate_linear expert_gate fc11 linear_v",
    "up": "up_proj up wi wi_1 w3 fc1 c_fc fc_in dense_h_to_4h lin1 intermediate.dense ffn_up proj_up linear_in ffn "
    "ffn.0 w1 fc fc12 ffn_up_exps ffn_up_shexp linear_1 up_project layer_1 input_linear linear1 wi_proj "
    "ff.layer_1 laurel.linear_right",
    "down": "down_proj down w2 wo fc2 c_proj fc_out dense_4h_to_h lin2 output.dense ffn_down proj_down linear_2 "
    "ffn.2 "
    "ffn_output ffn_down_exps ffn_down_shexp down_project layer_2 output_linear linear2 wo_proj ff.layer_2 "
    "laurel.linear_left",
    "router": "gate router wg gate.wg ffn_gate_inp router.layer classifier router.proj router.gate gate_inp",
    "router_correction": "e_score_correction_bias expert_bias exp_probs_b correction_bias score_correction_bias "
    "moe_statics.e_score_correction_bias expert_biases "
    "gate.balancing_biases",
    "shared_gate": "shared_expert_gate ffn_gate_inp_shexp shared_experts_gate",
    # recurrent
    "input": "in_proj ssm_in linear_x in_linear",
    "conv": "conv1d conv_1d conv conv1d_weight ssm_conv1d short_conv q_conv1d k_conv1d v_conv1d q_conv k_conv v_conv",
    "selection": "x_proj ssm_x x_proj_weight",
    "dt": "dt_proj ssm_dt dt_proj_weight",
    "a_log": "a_log ssm_a",
    "a": "recurrent_param a a_param",
    "d": "d ssm_d",
    "group_conv": "conv_qk_grouped",
    "recurrence_gate": "recurrent_gate recurrent_gate_weight a_gate",
    "r": "receptance r",
    "mix_k": "time_mix_key time_mix_k",
    "mix_v": "time_mix_value time_mix_v",
    "mix_r": "time_mix_receptance time_mix_r",
    "forget_gate": "fgate_preact fgate f_gate",
    "input_gate": "igate_preact igate i_gate input_gate input_gate_weight",
    "decay_down": "f_a_proj",
    "decay_up": "f_b_proj f_proj",
    "below": "altup_projections",
    "above": "altup_unembed_projections",
    "gate_up_down": "gate_up_proj_adapter_list",
    "gate_up_up": "gate_up_proj_adapter_list",
    "gate_down": "g_a_proj",
    "gate_up": "g_b_proj",
    "beta": "b_proj in_proj_b beta",
    "decay": "a_proj in_proj_a alpha f_proj",
    # gains and shifts of the stream
    "attention_output_gain": "post_attention_residual_scale.hidden_states_scale",
    "attention_output_shift": "post_attention_residual_scale.hidden_states_bias",
    "attention_residual_gain": "post_attention_residual_scale.residual_scale",
    "attention_residual_shift": "post_attention_residual_scale.residual_bias",
    "feed_forward_output_gain": "post_mlp_residual_scale.hidden_states_scale",
    "feed_forward_output_shift": "post_mlp_residual_scale.hidden_states_bias",
    "feed_forward_residual_gain": "post_mlp_residual_scale.residual_scale",
    "feed_forward_residual_shift": "post_mlp_residual_scale.residual_bias",
    "embedding_gain": "input_hidden_states_scale",
    "embedding_shift": "input_hidden_states_bias",
    "key_scale": "qk_norm.temp temp",
    "router_carried_gain": "router_states_scale",
    "router_down": "gate.down_proj",
    "router_inner1": "router_mlp.fc1",
    "router_inner2": "router_mlp.fc2",
    "activation_alpha_n": "act_fn.alpha_n",
    "activation_alpha_p": "act_fn.alpha_p",
    "activation_beta": "act_fn.beta",
    "activation_eps": "act_fn.eps",
    "output_down": "o_a_proj",
    "output_up": "o_b_proj",
    "kv": "kv_proj compressor.kv_proj",
    "weights": "weights_proj compressor.gate_proj",
    "places": "compressor.position_bias",
    "global_q": "query_global",
    "global_k": "key_global",
    "global_v": "value_global",
    "q_word_entity": "w2e_query",
    "q_entity_word": "e2w_query",
    "q_entity_entity": "e2e_query",
    "layer_scale": "layer_scalar",
    "attention_gate": "cross_attn_attn_gate",
    "cross_attention_gate": "cross_attn_attn_gate",
    "feed_forward_gate": "cross_attn_mlp_gate",
    "factors": "hc_fn fn",
    "added": "hc_base base",
    "gains": "hc_scale scale",
    "head_weights": "scorer.weights_proj",
    "attention_norm_gate_down": "input_layernorm.mlp.fc1",
    "attention_norm_gate_up": "input_layernorm.mlp.fc2",
    "feed_forward_norm_gate_down": "post_attention_layernorm.mlp.fc1 input_layernorm.mlp.fc1",
    "feed_forward_norm_gate_up": "post_attention_layernorm.mlp.fc2 input_layernorm.mlp.fc2",
    # outside of the layers
    "inner": "linear1",
    "distances": "relative_attention_bias",
    "x": "x_position_embeddings",
    "y": "y_position_embeddings",
    "height": "h_position_embeddings",
    "width": "w_position_embeddings",
    "embedding": "entity_embeddings embed_tokens_per_layer embed_tokens wte word_embeddings shared "
    "tok_embeddings token_embd "
    "embeddings embedding embed_in w "
    "embed wordembed tokens_embed word_embedding tok_embed",
    "positions": "pos_embeds position_embedding_table wpe embed_positions position_embeddings position_embd "
    "positions_embed relative_attention_bias "
    "position_embedding attn_rel_b pos_embed pos_emb",
    "token_types": "token_type_embeddings token_types token_type_embedding",
    "embedding_projection": "map_inputs_layer embedding_hidden_mapping_in embeddings_project project_in embed_proj "
    "embeddings.projection",
    "projection": "entity_embedding_dense project_out eh_proj per_layer_model_projection",
    "head": "pred_layer.proj entity_predictions output_projection proj_out lm_head head embed_out output "
    "decoder predictions.decoder "
    "vocab_projector generator_lm_head unembed "
    "predictions final_logits_bias cls.predictions qa_outputs score classifier",
    "transform": "linear2 transform.dense dense vocab_transform generator_predictions.dense predictions.dense "
    "lm_head.dense "
    "head.dense",
    "dense": "pooler.dense dense pooler",
}
"""The last part of a path -> what checkpoints call it: the last part of a tensor's name, or the last two."""

FUSED: dict[str, str] = {
    "q k v": "qkv qkv_proj c_attn query_key_value wqkv attn_qkv in_proj qkv_layer in_proj_qkv",
    "q k v gate": "in_proj_qkvz qkvg_proj",
    "q gate": "q_proj",
    "k v": "kv kv_proj key_value c_kv",
    "k_up v_up": "kv_b_proj attn_kv_b wkv_b",
    "gate up": "gate_up_proj wi fc1 gate_up w1w3 input_linear gate_and_up up_gate_proj w13 ffn_gate_up",
    "beta decay": "in_proj_ba",
}
"""Paths that are stored as one tensor -> what it is called."""

PARTS: dict[str, str] = {
    "attention": "attn attention sa self selfattention mha attentions",
    "cross_attention": "cross crossattention encdecattention encdec xattn",
    "feed_forward": "mlp ffn ff feed_forward feedforward densereludense moe intermediate fc1 fc2 channel fc "
    "block_sparse_moe experts expert router lin1 lin2",
    "mixer": "mamba mixer ssm temporal mlstm shortconv conv1d lru linear_attn",
    "compression": "compressor",
    "indexer": "indexer",
    "choice": "indexer",
    "shared_block": "transf transformer",
    "per_layer_input": "per",
    "altup": "altup",
    "augmented_residual": "laurel",
}
"""Components -> words that point at them, anywhere in a name inside its layer."""

NESTED = ("compression", "indexer", "choice")
"""Components inside of another one, the innermost last: a word that points at them says more."""

NORMS: dict[str, str] = {
    "attention_norm": "input_layernorm ln_1 attn_norm self_attn_layer_norm sa_layer_norm norm1 norm_1 ln1 "
    "layer_norm1 "
    "layernorm1 ln_attn attention_norm operator_norm pre_attention_layernorm attention.output.layernorm "
    "self_attention_layer_norm layernorm_before attn_ln temporal_pre_norm attention.layernorm "
    "0.layer_norm attention_layernorm attention.ln",
    "feed_forward_norm": "layer_norm2 post_attention_layernorm ln_2 ffn_norm mlp_norm final_layer_norm "
    "pre_feedforward_layernorm "
    "norm2 norm_2 ln2 layernorm2 ln_mlp pre_ff_layernorm output.layernorm output_layer_norm channel_pre_norm "
    "full_layer_layer_norm norm_ffn layernorm_after "
    "1.layer_norm 2.layer_norm feedforward_layernorm pre_mlp_layernorm ln",
    "mixer_norm": "input_layernorm norm temporal_pre_norm operator_norm norm_mlstm ln1 attn_norm "
    "attention_layer_norm fourier.output.layernorm",
    "cross_attention_norm": "encoder_attn_layer_norm crossattention.output.layernorm cross_attn_norm ln_cross_attn "
    "1.layer_norm",
    "attention_output_norm": "post_attention_layernorm post_self_attn_layernorm post_attention_norm attn_post_norm",
    "feed_forward_output_norm": "post_feedforward_layernorm post_mlp_layernorm post_ffw_norm",
    "final_norm": "norm ln_f final_layernorm final_layer_norm norm_f final_norm layer_norm output_norm out_norm "
    "ln_out "
    "layernorm embedding_norm",
    "embedding_norm": "layer_norm_emb embeddings.layernorm layernorm_embedding word_embeddings_layernorm pre_ln "
    "embeddings_layernorm "
    "token_embd_norm embeddings.norm emb_ln",
    "norm": "layernorm layer_norm transform.layernorm vocab_layer_norm generator_predictions.layernorm norm "
    "predictions.layernorm input_layernorm ln_1 multihead_norm ssm_norm",
    "q_norm": "q_norm q_layernorm query_layernorm query_norm q_a_layernorm attn_q_norm q_ln",
    "k_norm": "k_norm k_layernorm key_layernorm key_norm attn_k_norm k_ln",
    "b_norm": "b_layernorm",
    "c_norm": "c_layernorm",
    "dt_norm": "dt_layernorm",
    "output_norm": "attn_sub_norm",
    "inner_norm": "ffn_sub_norm",
    "augmented_residual_norm": "post_laurel_norm",
    "per_layer_input_norm": "per_layer_projection_norm post_per_layer_input_norm",
    "kv_norm": "kv_a_layernorm kv_norm attn_kv_a_norm",
}
"""The same for gains and shifts of normalisations, of which a layer has several of one shape."""

LAYERS = "layers layer h blocks block blk albert_layer_groups layer_groups groups"
"""What a list of layers is called."""

TOWERS = (
    "vision visual image audio speech multi_modal_projector projector connector aligner vit siglip perceiver qformer"
)
"""Parts beside a text model."""

FURTHER = "mtp nextn"
"""Modules that predict further tokens, where they stand beside the layers."""

TEXT = "language text llm thinker"
"""What the text model is called, beside such parts."""
