"""What record_wrappers.py records: wrappers around small text models, whose other parts are the class's own."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

COMMON: Config = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
PERSIMMON: Config = {key: value for key, value in COMMON.items() if key != "num_key_value_heads"}
NO_NETWORK: Config = {key: value for key, value in COMMON.items() if key != "intermediate_size"}
OPT: Config = {**PERSIMMON, "ffn_dim": 37, "word_embed_proj_dim": 48, "max_position_embeddings": 71}
OPT.pop("intermediate_size")
BART: Config = {
    "vocab_size": 97,
    "d_model": 42,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 29,
    "max_position_embeddings": 71,
    "pad_token_id": 0,
}
T5: Config = {
    "model_type": "t5",
    "vocab_size": 97,
    "d_model": 42,
    "d_kv": 5,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 6,
}
HYBRID: Config = {
    **COMMON,
    "num_hidden_layers": 4,
    "head_dim": 16,
    "mamba_num_heads": 6,
    "mamba_head_dim": 10,
    "ssm_state_size": 7,
    "n_groups": 3,
    "hybrid_override_pattern": "M*-M",
}
DELTA: Config = {
    **COMMON,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 14,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
}
MIXTURE: Config = {
    "n_routed_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 19,
    "first_k_dense_replace": 1,
}
TURNED: Config = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
"""RoPE of three positions, in sections that fit a head of 8."""
OWN: dict[str, Config] = {
    "aria_text": {"moe_num_experts": 5, "moe_topk": 2, "moe_num_shared_experts": 1},
    "cohere2": {"sliding_window": 5},
    "exaone4": {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention", "full_attention"]},
    "gemma": {"head_dim": 10},
    "gemma3_text": {"head_dim": 10, "sliding_window": 5},
    "lfm2": {"full_attn_idxs": [1], "layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 1},
    "glm4v_moe_text": {**MIXTURE, "rope_parameters": {**TURNED, "mrope_section": [1, 1, 0]}},
    "glm4v_text": {"rope_parameters": TURNED},
    "glm_ocr_text": {"rope_parameters": TURNED},
    "hunyuan_vl_text": {"head_dim": 10},
    "qwen2_5_omni_text": {"rope_parameters": TURNED},
    "lfm3": {},
    "mistral": {"sliding_window": 5},
    "qwen3": {"head_dim": 10},
    "qwen3_omni_moe_text": {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 19},
    "qwen3_vl_text": {"head_dim": 10},
}
LATENT: Config = {
    **COMMON,
    "num_key_value_heads": 6,
    "q_lora_rank": 17,
    "kv_lora_rank": 22,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 10,
    "n_routed_experts": 8,
    "n_group": 2,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 19,
    "first_k_dense_replace": 1,
}
SMALL: dict[str, Config] = {
    "modernbert": {**PERSIMMON, "local_attention": 6},
    "persimmon": PERSIMMON,
    "deepseek_v3": LATENT,
    "bart": BART,
    "nemotron_h": HYBRID,
    "opt": OPT,
    "qwen3_5_text": DELTA,
}
"""By type of text model: all of its config, where it is not COMMON and OWN."""

OTHER_TEXTS: dict[str, list[Config]] = {
    "aya_vision": [{"model_type": "cohere", **COMMON}],
    "blip-2": [T5],
    "got_ocr2": [{"model_type": "llama", **COMMON}],
    "internvl": [{"model_type": "qwen3", **COMMON, "head_dim": 10}, {"model_type": "llama", **COMMON}],
    "instructblip": [T5, {"model_type": "llama", **COMMON}],
    "llava": [{"model_type": "mistral", **COMMON, "sliding_window": 5}, {"model_type": "qwen2", **COMMON}],
    "llava_next": [{"model_type": "mistral", **COMMON}, {"model_type": "llama", **COMMON, "attention_bias": True}],
    "mistral3": [{"model_type": "ministral3", **COMMON, "head_dim": 10}],
    "paligemma": [{"model_type": "gemma2", **COMMON, "head_dim": 10, "sliding_window": 5}],
    "video_llama_3": [{"model_type": "qwen3", **COMMON, "head_dim": 10}],
    "voxtral": [{"model_type": "mistral", **COMMON, "head_dim": 10, "sliding_window": None}],
}
"""Text parts of another type than the class's own."""

TIES: list[tuple[bool, bool | None]] = [(True, None), (False, False)]
"""What wrapper and text part say of the tie: those in which whoever has the word, and in whatever version, agree."""

MORE: dict[str, Config] = {
    "emu3": {"vocabulary_map": {"<image>": 1}},
    "fun_asr_nano": {"adaptor_config": {"hidden_size": 48, "intermediate_size": 12, "num_attention_heads": 6}},
    "granite_docling": {"vision_config": {"out_hidden_size": 48}},
    "nemotron_h_omni": {
        "vision_config": {"model_type": "radio", "num_hidden_layers": 1, "video_temporal_patch_size": 2}
    },
    "ovis2": {"hidden_size": 48, "vocab_size": 97},
}
"""What a small text part asks of the keys beside it."""

NOT_BUILT = {"fast_vlm", "gemma3n", "granite4_vision", "perception_lm", "qwen2_5_omni", "qwen3_omni_moe"}
"""Their towers are of another library or cannot be small; or they hold a talker, and the wrapper that is counted."""

ELSEWHERE = {"apertus1p5", "minimax_m3_vl"}
"""Their rows stand beside those of their text models."""

NOT_RUN = {
    "blip-2",
    "instructblip",
    "instructblipvideo",
    "kimi_k25",
    "lfm2_vl",
    "lfm3_vl",
    "llama4",
    "minicpm_ocr",
    "modernvbert",
}
NOT_RUN |= {"ultravbert", "hunyuan_vl", "voxtral_realtime"}
NOT_RUN |= {"gemma4", "gemma4_unified", "paligemma", "qwen2_5_vl", "qwen2_vl"}
NOT_RUN |= {"minicpmv4_6", "minicpmv4_7", "nemo_speechlm", "nemotron_h_omni", "qwen3_5", "qwen3_5_moe"}
"""They want an image, or have states or latents, which other rows are about: their parameters alone are counted."""

LEFT_OUT = {
    "aya_vision/default",
    "emu3/default",
    "hunyuan_vl/default",
    "qwen3_omni_moe_thinker/default",
    "exaone4_5/ties=True,None",
}
"""What the library does not build."""

TEXTS = (
    "emu3_text_model",
    "glm4v_moe_text",
    "glm4v_text",
    "glm_ocr_text",
    "granite4_vision_text",
    "granite_docling_text",
    "hunyuan_vl_text",
    "paddleocr_vl_text",
    "qwen2_5_omni_text",
    "qwen3_omni_moe_text",
    "voxtral_realtime_text",
)
"""Text models that stand in wrappers alone: their class defaults are written, and their rows are the wrappers'."""

CLASSES = {
    "git": "GitForCausalLM",
    "mllama_text_model": "MllamaForCausalLM",
    "moshi": "MoshiForCausalLM",
    "phi4_multimodal": "Phi4MultimodalForCausalLM",
}
"""Text models that are built alone, or whose keys stand beside those of other parts."""

APART = ("image_encoder", "visual_projection", "img_temporal_embedding", "embed_tokens_extend")
"""Words of parameters that are of other parts, in models of one config."""

ON_NUMBERS = {"moshi"}
"""Types that do not run on the meta device: small ones do on numbers."""

FIVE: Config = {**COMMON, "num_hidden_layers": 5}
BASES: dict[str, Config] = {
    "git": {**PERSIMMON, "max_position_embeddings": 71},
    "mllama_text_model": {**FIVE, "cross_attention_layers": [1, 3]},
    "moshi": {**NO_NETWORK, "ffn_dim": 74, "sliding_window": 5},
    "phi4_multimodal": COMMON,
}
LLAMA_LIKE: list[Config] = [
    {"num_hidden_layers": 1},
    {"num_hidden_layers": 7, "vocab_size": 131},
    {"num_key_value_heads": 6},
    {"num_key_value_heads": 1, "hidden_size": 60},
    {"hidden_act": "gelu"},
]
CHANGES: dict[str, list[Config]] = {
    "git": [
        {"num_hidden_layers": 1},
        {"num_hidden_layers": 7, "vocab_size": 131, "hidden_size": 60},
        {"tie_word_embeddings": True},
        {"num_attention_heads": 4, "intermediate_size": 29, "max_position_embeddings": 64},
        {"num_image_with_embedding": 3},
    ],
    "mllama_text_model": [
        *LLAMA_LIKE,
        {"cross_attention_layers": [2]},
        {"cross_attention_layers": None, "num_hidden_layers": 9},
        {"cross_attention_layers": [4, 2, 2, 17]},
        {"hidden_size": 49},
    ],
    "moshi": [
        *LLAMA_LIKE,
        {"num_key_value_heads": None, "head_dim": 10},
        {"head_dim": 0, "ffn_dim": 6},
        {"sliding_window": 16},
        {"sliding_window": 47, "num_codebooks": 4},
    ],
    "phi4_multimodal": [
        *LLAMA_LIKE,
        {"num_key_value_heads": None},
        {"sliding_window": 5},
        {"tie_word_embeddings": True},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.75}},
    ],
}
