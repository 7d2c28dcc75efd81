"""The tiny encoders of record_kin.py, and what becomes of their parameters' names here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 29,
    "max_position_embeddings": 19,
    "layer_norm_eps": 0.01,
}
DEBERTA = {**SIZES, "relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]}
MODELS: dict[str, dict[str, Any]] = {
    "deberta": {
        "model_type": "deberta",
        "architectures": ["DebertaForMaskedLM"],
        **DEBERTA,
        "max_relative_positions": 5,
        "position_biased_input": True,
        "type_vocab_size": 2,
    },
    "deberta_v2": {
        "model_type": "deberta-v2",
        "architectures": ["DebertaV2ForMaskedLM"],
        **DEBERTA,
        "share_att_key": True,
        "position_buckets": 6,
        "max_relative_positions": 11,
        "norm_rel_ebd": "layer_norm",
        "conv_kernel_size": 3,
        "conv_act": "gelu",
    },
    "deberta_v2_own": {
        "model_type": "deberta-v2",
        "architectures": ["DebertaV2ForMaskedLM"],
        **DEBERTA,
        "conv_kernel_size": 5,
        "conv_groups": 4,
    },
    "mpnet": {"model_type": "mpnet", "architectures": ["MPNetForMaskedLM"], **SIZES},
    "roformer": {
        "model_type": "roformer",
        "architectures": ["RoFormerForMaskedLM"],
        **SIZES,
        "embedding_size": 17,
        "rotary_value": True,
    },
    "rembert": {
        "model_type": "rembert",
        "architectures": ["RemBertForMaskedLM"],
        **SIZES,
        "input_embedding_size": 17,
        "output_embedding_size": 31,
    },
    "roc_bert": {
        "model_type": "roc_bert",
        "architectures": ["RoCBertForMaskedLM"],
        **SIZES,
        "pronunciation_embed_dim": 5,
        "pronunciation_vocab_size": 11,
        "shape_embed_dim": 7,
        "shape_vocab_size": 13,
    },
    "luke": {
        "model_type": "luke",
        "architectures": ["LukeForMaskedLM"],
        **SIZES,
        "entity_vocab_size": 11,
        "entity_emb_size": 7,
    },
    "squeezebert": {
        "model_type": "squeezebert",
        "architectures": ["SqueezeBertForMaskedLM"],
        **SIZES,
        "embedding_size": 24,
        "intermediate_size": 28,
        **dict.fromkeys(("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups"), 2),
    },
    "xlnet": {
        "model_type": "xlnet",
        "architectures": ["XLNetLMHeadModel"],
        "vocab_size": 61,
        "d_model": 24,
        "n_layer": 2,
        "n_head": 3,
        "d_inner": 29,
        "layer_norm_eps": 0.01,
    },
    "xmod": {
        "model_type": "xmod",
        "architectures": ["XmodForMaskedLM"],
        **SIZES,
        "languages": ["en_XX", "de_DE"],
        "default_language": "en_XX",
    },
    "xmod_pre": {
        "model_type": "xmod",
        "architectures": ["XmodForMaskedLM"],
        **SIZES,
        "languages": ["en_XX", "de_DE"],
        "default_language": "en_XX",
        "pre_norm": True,
        "adapter_layer_norm": True,
        "ln_before_adapter": False,
        "adapter_reduction_factor": 3,
    },
    "mobilebert": {
        "model_type": "mobilebert",
        "architectures": ["MobileBertForMaskedLM"],
        **SIZES,
        "embedding_size": 11,
        "intra_bottleneck_size": 15,
        "num_feedforward_networks": 2,
    },
    "convbert": {
        "model_type": "convbert",
        "architectures": ["ConvBertForMaskedLM"],
        **SIZES,
        "embedding_size": 17,
        "num_attention_heads": 6,
        "conv_kernel_size": 5,
        "intermediate_size": 28,
        "num_groups": 2,
    },
}
BERT = [
    (r"^[a-z_]+\.(?=embeddings|encoder|pooler|layers|norm|entity)", ""),
    (r"^embeddings\.word_embeddings", "encoder.embedding"),
    (r"^embeddings\.position_embeddings", "encoder.positions"),
    (r"^embeddings\.token_type_embeddings", "encoder.token_types"),
    (r"^embeddings\.LayerNorm", "encoder.embedding_norm"),
    (r"^encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.", "attention."),
    (r"attention\.(query|key|value)(_proj)?\.", lambda found: f"attention.{found[1][0]}."),
    (r"attention\.output\.LayerNorm", "attention_norm"),
    (r"attention\.output\.dense", "attention.output"),
    (r"intermediate\.dense", "feed_forward.up"),
    (r"(?<!attention)\.output\.LayerNorm", ".feed_forward_norm"),
    (r"(?<!attention)\.output\.dense", ".feed_forward.down"),
    (r"^(cls\.predictions|lm_head)\.(transform\.)?dense", "head.transform"),
    (r"^(cls\.predictions|lm_head)\.(transform\.)?(LayerNorm|layer_norm)", "head.norm"),
    (r"^(cls\.predictions|lm_head)\.bias$", "head_bias"),
    (r"^(cls\.predictions|lm_head)\.decoder\.bias$", "head_bias"),
    (r"^(cls\.predictions|lm_head)\.decoder\.weight$", "head"),
    (r"^pooler\.dense", "pooler.dense"),
]
NAMES: dict[str, list[tuple[str, Any]]] = {
    "xlnet": [
        (r"^transformer\.mask_emb$", "encoder.tables.mask"),
        (r"^transformer\.word_embedding", "encoder.embedding"),
        (r"^transformer\.layer\.", "encoder.layers."),
        (r"rel_attn\.layer_norm", "attention_norm"),
        (r"rel_attn\.([qkv])$", r"attention.\1"),
        (r"rel_attn\.o$", "attention.output"),
        (r"rel_attn\.r$", "attention.distance_k"),
        (r"rel_attn\.r_r_bias$", "attention.distance_shift"),
        (r"rel_attn\.r_w_bias$", "attention.content_shift"),
        (r"rel_attn\.r_s_bias$", "attention.segment_shift"),
        (r"rel_attn\.seg_embed$", "attention.segments"),
        (r"ff\.layer_norm", "feed_forward_norm"),
        (r"ff\.layer_1", "feed_forward.up"),
        (r"ff\.layer_2", "feed_forward.down"),
        (r"^lm_loss\.bias$", "head_bias"),
    ],
    "xmod": [
        *BERT,
        (r"(?<=\d)\.output\.adapter_modules\.(\w+)\.dense1", r".adapter.down.\1"),
        (r"(?<=\d)\.output\.adapter_modules\.(\w+)\.dense2", r".adapter.up.\1"),
        (r"(?<=\d)\.output\.adapter_layer_norm", ".adapter_norm"),
        (r"^encoder\.LayerNorm", "encoder.final_norm"),
    ],
    "mobilebert": [
        (r"(?<=\d)\.ffn\.(\d+)\.intermediate\.dense", r".networks.\1.up"),
        (r"(?<=\d)\.ffn\.(\d+)\.output\.dense", r".networks.\1.down"),
        (r"(?<=\d)\.ffn\.(\d+)\.output\.LayerNorm", r".networks.\1_norm"),
        (r"(?<=\d)\.output\.bottleneck\.dense", ".bottleneck.output"),
        (r"(?<=\d)\.output\.bottleneck\.LayerNorm", ".bottleneck.output_norm"),
        (r"bottleneck\.(input|attention)\.dense", r"bottleneck.\1"),
        (r"bottleneck\.(input|attention)\.LayerNorm", r"bottleneck.\1_norm"),
        (r"^mobilebert\.embeddings\.embedding_transformation", "encoder.embedding_projection"),
        (r"^cls\.predictions\.dense\.weight", "head_beside"),
        *BERT,
    ],
    "squeezebert": [
        (r"encoder\.layers\.(\d+)\.post_attention\.conv1d", r"encoder.layers.\1.attention.output"),
        (r"post_attention\.layernorm", "attention_norm"),
        (r"intermediate\.conv1d", "feed_forward.up"),
        (r"(?<=\d\.)output\.conv1d", "feed_forward.down"),
        (r"(?<=\d\.)output\.layernorm", "feed_forward_norm"),
        *BERT,
    ],
    "convbert": [
        *BERT,
        (r"^embeddings_project", "encoder.embedding_projection"),
        (r"attention\.key_conv_attn_layer\.depthwise", "attention.span_depthwise"),
        (r"attention\.key_conv_attn_layer\.pointwise", "attention.span_key"),
        (r"attention\.key_conv_attn_layer\.bias", "attention.span_key_bias"),
        (r"attention\.conv_kernel_layer", "attention.span_kernel"),
        (r"attention\.conv_out_layer", "attention.span_value"),
        (r"^generator_predictions\.LayerNorm", "head.norm"),
        (r"^generator_predictions\.dense", "head.transform"),
        (r"^generator_lm_head\.bias", "head_bias"),
    ],
    "deberta": [
        *BERT,
        (r"encoder\.rel_embeddings", "encoder.distances"),
        (r"attention\.pos_proj", "attention.distance_k"),
        (r"attention\.pos_q_proj", "attention.distance_q"),
        (r"attention\.q_bias", "attention.q_bias"),
        (r"attention\.v_bias", "attention.v_bias"),
    ],
    "deberta-v2": [
        *BERT,
        (r"encoder\.rel_embeddings", "encoder.distances"),
        (r"encoder\.LayerNorm", "encoder.distances_norm"),
        (r"attention\.pos_key_proj", "attention.distance_k"),
        (r"attention\.pos_query_proj", "attention.distance_q"),
        (r"encoder\.conv\.conv\.", "encoder.layers.0.convolution."),
        (r"encoder\.conv\.LayerNorm", "encoder.layers.0.convolution_norm"),
    ],
    "mpnet": [
        *BERT,
        (r"encoder\.relative_attention_bias", "encoder.distances"),
        (r"attention\.attn\.", "attention."),
        (r"attention\.o\.", "attention.output."),
        (r"attention\.LayerNorm", "attention_norm"),
    ],
    "roformer": [
        *BERT,
        (r"^embeddings_project", "encoder.embedding_projection"),
        (r"encoder\.embed_positions", "encoder.positions"),
    ],
    "rembert": [*BERT, (r"encoder\.embedding_hidden_mapping_in", "encoder.embedding_projection")],
    "roc_bert": [
        *BERT,
        (r"^embeddings\.(pronunciation|shape)_embed", r"encoder.tables.\1"),
        (r"^embeddings\.map_inputs_layer", "encoder.embedding_projection"),
    ],
    "luke": [
        *BERT,
        (r"attention\.w2e_q", "attention.q_word_entity"),
        (r"attention\.e2w_q", "attention.q_entity_word"),
        (r"attention\.e2e_q", "attention.q_entity_entity"),
        (r"(q_[a-z]+_[a-z]+)uery", r"\1"),
        (r"^entity_embeddings\.entity_embeddings", "entities.embedding"),
        (r"^entity_embeddings\.entity_embedding_dense", "entities.projection"),
        (r"^entity_embeddings\.position_embeddings", "entities.positions"),
        (r"^entity_embeddings\.token_type_embeddings", "entities.token_types"),
        (r"^entity_embeddings\.LayerNorm", "entities.embedding_norm"),
        (r"^entity_predictions\.transform\.dense", "entity_head.transform"),
        (r"^entity_predictions\.transform\.LayerNorm", "entity_head.norm"),
        (r"^entity_predictions\.bias", "entity_head.head_bias"),
    ],
}


def of_neighbours(value: np.ndarray) -> np.ndarray:
    """(outputs, inputs of a group, taps) -> (groups, taps·inputs, outputs of a group)."""
    outputs, inputs, taps = value.shape
    groups = 24 // inputs
    split = value.reshape(groups, outputs // groups, inputs, taps).transpose(0, 3, 2, 1)
    return split.reshape(groups, taps * inputs, outputs // groups)


def of_one_token(value: np.ndarray) -> np.ndarray:
    """(outputs, inputs of a group, 1) -> (groups, inputs and outputs of a group): SqueezeBERT's 1 or 2 groups."""
    outputs, inputs, _ = value.shape
    groups = 1 if inputs == 24 else 2
    return value.reshape(groups, outputs // groups, inputs).transpose(0, 2, 1)


def as_it_is(value: np.ndarray) -> np.ndarray:
    """A table is (rows, width) in both."""
    return value


TRANSPOSED: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    (r"(embedding|positions|token_types|distances)\.weight$", as_it_is),
    (r"tables\.\w+\.weight$", as_it_is),
    (r"^head(\.weight)?$", as_it_is),
    (r"\.convolution\.weight$", of_neighbours),
    (r"^head_beside$", lambda value: value.T),
    (r"encoder\.tables\.mask$", lambda value: value.reshape(1, -1)),
    (r"attention\.(q|k|v|distance_k)$", lambda value: value.reshape(value.shape[0], -1)),
    (r"attention\.output$", lambda value: value.reshape(value.shape[0], -1).T),
    (r"span_depthwise\.weight$", lambda value: value.transpose(0, 2, 1)),
    (r"span_key\.weight$", lambda value: value[..., 0].T),
    (r"span_key_bias$", lambda value: value[..., 0]),
]
"""What is no matrix of inputs and outputs."""
