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
OPT: Config = {**COMMON, "ffn_dim": 37, "word_embed_proj_dim": 48, "max_position_embeddings": 71}
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
OWN: dict[str, Config] = {
    "aria_text": {"moe_num_experts": 5, "moe_topk": 2, "moe_num_shared_experts": 1},
    "cohere2": {"sliding_window": 5},
    "exaone4": {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention", "full_attention"]},
    "gemma": {"head_dim": 10},
    "gemma3_text": {"head_dim": 10, "sliding_window": 5},
    "lfm2": {"full_attn_idxs": [1], "layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 1},
    "lfm3": {},
    "mistral": {"sliding_window": 5},
    "qwen3": {"head_dim": 10},
    "qwen3_vl_text": {"head_dim": 10},
}
SMALL: dict[str, Config] = {"bart": BART, "nemotron_h": HYBRID, "opt": OPT, "qwen3_5_text": DELTA}
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

TIES: list[tuple[bool | None, bool | None]] = [(True, None), (False, False), (True, True)]
"""What wrapper and text part say of the tie: those in which whoever has the word, and in whatever version, agree."""

NOT_BUILT = {"fast_vlm", "gemma3n", "perception_lm"}
"""Their vision towers are of another library."""
