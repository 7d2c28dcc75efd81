"""Which types of a config.json are wrappers: where each holds its text model, and what else it holds.

To add one: a line here, its class defaults under `defaults/`, a line in LINEAGES.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

VISION = {"vision_config": "vision tower"}
AUDIO = {"audio_config": "audio tower"}
BOTH = {**VISION, **AUDIO}
QFORMER = {**VISION, "qformer_config": "query transformer"}
SPEECH = {"encoder_config": "audio tower", "projector_config": "audio projector", "has_lora_adapter": "LoRA adapter"}
TOKENIZERS = {
    "acoustic_tokenizer_encoder_config": "acoustic tokenizer",
    "semantic_tokenizer_encoder_config": "semantic tokenizer",
}

WRAPPER, TEXT, EITHER, NEVER = "wrapper", "text", "either", "never"
"""Whose word ties the head to the table: the wrapper's, the text part's, a yes of either of them, or nobody's."""


class Wrapper(NamedTuple):
    """Where a wrapper holds its text model.

    text: the model type that is meant where the text part names none. classes: those of `architectures` that are read,
    the usual one first. parts: key of each other part -> its name for a reader. key: of the text part. may_be_flat: old
    files hold the keys of the text part beside those of the others. may_lack: a part whose key is null is not there; in
    other classes it is what its own class builds by default. fills: what the class's own text part says (`defaults/`)
    holds where a written one leaves it out as well, and not only where none is written. is_fixed: the text part is of
    the class `text` and of no other. called: other names of a text part's type. more: keys of the other parts that are
    no fields of the class. alone: classes, after `classes`, that hold nothing but the text model. drops: keys of the
    text part that are about the tokens of other parts. sizes_head: whether a head of its own has the sizes that the
    wrapper says. ties: whose word ties the head.
    """

    text: str
    classes: tuple[str, ...]
    parts: Mapping[str, str] = VISION
    key: str = "text_config"
    may_be_flat: bool = False
    may_lack: bool = False
    fills: bool = False
    is_fixed: bool = False
    called: Mapping[str, str] = MappingProxyType({})
    more: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    sizes_head: bool = False
    ties: str = WRAPPER


def _of(text: str, name: str, parts: Mapping[str, str] = VISION, **more: object) -> Wrapper:
    """A wrapper whose one class that is read is called as most are."""
    return Wrapper(text, (f"{name}ForConditionalGeneration",), parts, **more)  # type: ignore[arg-type]


BLIP = ("use_decoder_only_language_model",)
KIMI = ("KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration")
SPEAKERS = {"vision_config": "image tokenizer", "audio_config": "sound tokenizer"}
OF_PATCHES = ("img_token_compression_config", "process_image_mode", "projector_hidden_size")
SEEN = {
    "apertus1p5": _of("apertus1p5_text", "Apertus1p5", SPEAKERS),
    "aria": _of(
        "aria_text",
        "Aria",
        is_fixed=True,
        called={"aria_moe_lm": "aria_text"},
        more=("max_value_projector_patch_to_query_dict",),
    ),
    "aya_vision": _of("cohere2", "AyaVision"),
    "blip-2": _of("opt", "Blip2", QFORMER, more=BLIP, ties=TEXT),
    "cohere2_vision": _of("cohere2", "Cohere2Vision"),
    "cosmos3_omni": _of("qwen3_vl_text", "Cosmos3Omni"),
    "deepseek_vl": _of("llama", "DeepseekVL"),
    "deepseek_vl_hybrid": _of(
        "llama", "DeepseekVLHybrid", {**VISION, "high_res_vision_config": "high-resolution vision tower"}
    ),
    "emu3": _of("emu3_text_model", "Emu3", {"vq_config": "image tokenizer"}, is_fixed=True, alone=("Emu3ForCausalLM",)),
    "exaone4_5": _of("exaone4", "Exaone4_5_"),
    "fast_vlm": _of("qwen2", "FastVlm", ties=EITHER),
    "florence2": _of("bart", "Florence2"),
    "fuyu": Wrapper("persimmon", ("FuyuForCausalLM",), {"patch_size": "projection of image patches"}, may_be_flat=True),
    "gemma3": _of("gemma3_text", "Gemma3", is_fixed=True),
    "glm46v": _of("glm4v_text", "Glm46V"),
    "glm4v": _of("glm4v_text", "Glm4v", is_fixed=True, ties=EITHER),
    "glm4v_moe": _of("glm4v_moe_text", "Glm4vMoe", is_fixed=True, ties=EITHER),
    "glm_ocr": _of("glm_ocr_text", "GlmOcr", is_fixed=True, ties=EITHER),
    "glmga": _of("glm4v_text", "Glm46V"),
    "got_ocr2": _of("qwen2", "GotOcr2"),
    "granite4_vision": _of("granite4_vision_text", "Granite4Vision", QFORMER, is_fixed=True),
    "granite_docling": _of("granite_docling_text", "GraniteDocling", is_fixed=True),
    "hunyuan_vl": _of("hunyuan_vl_text", "HunYuanVL", may_be_flat=True, is_fixed=True, ties=EITHER),
    "hyperclovax_vision_v2": _of("hyperclovax", "HyperCLOVAXVisionV2"),
    "idefics2": _of("mistral", "Idefics2", {**VISION, "perceiver_config": "perceiver"}),
    "idefics3": _of("llama", "Idefics3"),
    "instructblip": _of("opt", "InstructBlip", QFORMER, more=BLIP, ties=TEXT),
    "instructblipvideo": _of("opt", "InstructBlipVideo", QFORMER, more=BLIP, ties=TEXT),
    "internvl": _of("qwen2", "InternVL"),
    "janus": _of("llama", "Janus", {**VISION, "vq_config": "image tokenizer"}),
    "kimi_k25": Wrapper("deepseek_v3", KIMI),
    "lfm2_vl": _of("lfm2", "Lfm2Vl"),
    "lfm3_vl": _of("lfm3", "Lfm3Vl"),
    "lighton_ocr": _of("qwen3", "LightOnOcr"),
    "llama4": _of("llama4_text", "Llama4", is_fixed=True, alone=("Llama4ForCausalLM",), ties=TEXT),
    "llava": _of("llama", "Llava", ties=EITHER),
    "llava_next": _of("llama", "LlavaNext"),
    "llava_next_video": _of("llama", "LlavaNextVideo", ties=EITHER),
    "llava_onevision": _of("qwen2", "LlavaOnevision", ties=EITHER),
    "minicpm_ocr": _of("qwen3_5_text", "MiniCPMOcr", more=("patch_size",)),
    "minicpmv4_6": _of("qwen3_5_text", "MiniCPMV4_6", more=("patch_size",)),
    "minicpmv4_7": _of("qwen3_5_text", "MiniCPMV4_7", more=("patch_size",)),
    "minimax_m3_vl": _of(
        "minimax_m3_vl_text", "MiniMaxM3Sparse", is_fixed=True, ties=EITHER, more=("image_grid_pinpoints", *OF_PATCHES)
    ),
    "mistral3": _of("mistral", "Mistral3"),
    "mllama": _of("mllama_text_model", "Mllama", alone=("MllamaForCausalLM",), is_fixed=True, ties=NEVER),
    "modernvbert": Wrapper("modernbert", ("ModernVBertForMaskedLM",)),
    "ovis2": _of("qwen2", "Ovis2", sizes_head=True),
    "paddleocr_vl": _of("paddleocr_vl_text", "PaddleOCRVL", may_be_flat=True, is_fixed=True, ties=EITHER),
    "paligemma": _of("gemma", "PaliGemma", drops=("num_image_tokens", "use_bidirectional_attention")),
    "perception_lm": _of("llama", "PerceptionLM"),
    "pp_chart2table": Wrapper("qwen2", ("GotOcr2ForConditionalGeneration",)),
    "qianfan_ocr": _of("qwen3", "QianfanOCR"),
    "qwen2_5_vl": _of("qwen2_5_vl_text", "Qwen2_5_VL", may_be_flat=True, is_fixed=True, ties=EITHER),
    "qwen2_vl": _of("qwen2_vl_text", "Qwen2VL", may_be_flat=True, is_fixed=True, ties=EITHER),
    "qwen3_5": _of("qwen3_5_text", "Qwen3_5", is_fixed=True, alone=("Qwen3_5ForCausalLM",)),
    "qwen3_5_moe": _of("qwen3_5_moe_text", "Qwen3_5Moe", is_fixed=True, alone=("Qwen3_5MoeForCausalLM",)),
    "qwen3_vl": _of("qwen3_vl_text", "Qwen3VL", is_fixed=True),
    "qwen3_vl_moe": _of("qwen3_vl_moe_text", "Qwen3VLMoe", is_fixed=True),
    "smolvlm": _of("llama", "SmolVLM"),
    "ultravbert": Wrapper("ultrabert", ("UltraVBertForMaskedLM",)),
    "video_llama_3": _of("qwen2", "VideoLlama3", ties=EITHER),
    "video_llava": _of("llama", "VideoLlava"),
    "vipllava": _of("llama", "VipLlava"),
}
"""Text and images."""

ROTATED = ("head_dim", "max_position_embeddings", "partial_rotary_factor")
"""Of audio frames, which the tower rotates by their time."""
HEARD = {
    "audioflamingo3": _of("qwen2", "AudioFlamingo3", AUDIO, ties=NEVER),
    "fun_asr_nano": _of("qwen3", "FunAsrNano", {**AUDIO, "adaptor_config": "audio adaptor"}),
    "gemma3n": _of("gemma3n_text", "Gemma3n", BOTH, is_fixed=True),
    "gemma4": _of("gemma4_text", "Gemma4", BOTH, is_fixed=True, may_lack=True),
    "gemma4_unified": _of(
        "gemma4_unified_text",
        "Gemma4Unified",
        {"vision_config": "vision embedder", "audio_config": "audio embedder"},
        is_fixed=True,
        may_lack=True,
    ),
    "glmasr": _of("llama", "GlmAsr", AUDIO, fills=True),
    "granite_speech": _of("granite", "GraniteSpeech", SPEECH),
    "granite_speech_plus": _of("granite", "GraniteSpeechPlus", SPEECH),
    "moss_transcribe_diarize": _of("qwen3", "MossTranscribeDiarize", AUDIO),
    "musicflamingo": _of("qwen2", "MusicFlamingo", AUDIO, more=ROTATED, ties=NEVER),
    "nemo_speechlm": _of(
        "nemotron_h", "Nemotron3_5Transcribe", {**AUDIO, "word_timestamp_config": "word timestamp head"}, ties=NEVER
    ),
    "nemotron_h_omni": Wrapper("nemotron_h", ("NemotronH_Omni_Reasoning_V3",), BOTH, may_lack=True, ties=TEXT),
    "omniasr": _of("llama", "OmniASR", AUDIO, ties=NEVER),
    "qwen2_5_omni": Wrapper(
        "qwen2_5_omni_thinker",
        ("Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel"),
        {"talker_config": "talker", "token2wav_config": "vocoder"},
        "thinker_config",
        is_fixed=True,
        more=("enable_audio_output", "enable_talker"),
    ),
    "qwen2_5_omni_thinker": _of("qwen2_5_omni_text", "Qwen2_5OmniThinker", BOTH, is_fixed=True),
    "qwen2_audio": _of("qwen2", "Qwen2Audio", AUDIO, ties=NEVER),
    "qwen3_asr": _of("qwen3", "Qwen3ASR", AUDIO),
    "qwen3_omni_moe": Wrapper(
        "qwen3_omni_moe_thinker",
        ("Qwen3OmniMoeForConditionalGeneration",),
        {"talker_config": "talker", "code2wav_config": "vocoder"},
        "thinker_config",
        is_fixed=True,
        more=("enable_audio_output",),
    ),
    "qwen3_omni_moe_thinker": _of("qwen3_omni_moe_text", "Qwen3OmniMoeThinker", BOTH, is_fixed=True),
    "vibevoice_asr": _of("qwen2", "VibeVoiceAsr", TOKENIZERS, ties=NEVER),
    "voxtral": _of("llama", "Voxtral", AUDIO, fills=True, ties=NEVER),
    "voxtral_realtime": _of("voxtral_realtime_text", "VoxtralRealtime", AUDIO, fills=True),
}
"""Text and sound, and maybe images."""

OF_INTERNVL = """
    dynamic_image_size force_image_size hidden_size image_fold max_dynamic_patch min_dynamic_patch pad2square ps_version
    select_layer system_message template use_thumbnail
"""
OF_JANUS = ("aligner_config", "gen_aligner_config", "gen_head_config", "gen_vision_config")
OF_LLAVA = """
    freeze_mm_mlp_adapter freeze_mm_vision_resampler image_aspect_ratio image_crop_resolution image_grid_pinpoints
    image_split_resolution mm_hidden_size mm_newline_position mm_patch_merge_type mm_projector_lr mm_projector_type
    mm_resampler_type mm_spatial_pool_mode mm_spatial_pool_stride mm_tunable_parts mm_use_im_patch_token
    mm_use_im_start_end mm_vision_select_feature mm_vision_select_layer mm_vision_tower mm_vision_tower_lr
    tokenizer_model_max_length tune_mm_mlp_adapter tune_mm_vision_resampler unfreeze_mm_vision_tower use_mm_proj
    use_pos_skipping pos_skipping_range vision_tower_pretrained delay_load
"""
OF_OVIS = ("conversation_formatter_class", "disable_tie_weight", "llm_attn_implementation", "multimodal_max_length")
OF_MINIMAX = ("image_grid_pinpoints", "process_image_mode", "projector_hidden_size", "img_token_compression_config")


def _llava(text: str, name: str) -> Wrapper:
    """A file of the first LLaVA code: the keys of the text model, and beside them those of the tower."""
    parts = {"mm_vision_tower": "vision tower"}
    return Wrapper(text, (f"{name}ForCausalLM",), parts, may_be_flat=True, is_fixed=True, more=tuple(OF_LLAVA.split()))


PUBLISHED = {
    "h2ovl_chat": Wrapper(
        "llama", ("H2OVLChatModel",), VISION, "llm_config", more=tuple(OF_INTERNVL.split()), ties=TEXT
    ),
    "interns1": _of("qwen3", "InternS1", ties=TEXT),
    "internvl_chat": Wrapper(
        "qwen2", ("InternVLChatModel",), VISION, "llm_config", more=tuple(OF_INTERNVL.split()), ties=TEXT
    ),
    "kimi_vl": _of("deepseek_v3", "KimiVL", ties=TEXT),
    "llava_llama": _llava("llama", "LlavaLlama"),
    "llava_mistral": _llava("mistral", "LlavaMistral"),
    "llava_qwen": _llava("qwen2", "LlavaQwen"),
    "minimax_vl_01": _of("minimax_text_01", "MiniMaxVL01", more=OF_MINIMAX, ties=TEXT),
    "multi_modality": Wrapper("llama", ("MultiModalityCausalLM",), VISION, "language_config", more=OF_JANUS, ties=TEXT),
    "ovis": Wrapper(
        "qwen2", ("Ovis",), {"visual_tokenizer_config": "visual tokenizer"}, "llm_config", more=OF_OVIS, ties=TEXT
    ),
}
"""Of the code that was published beside files, with its own names for the same parts."""

WRAPPERS = {**SEEN, **HEARD, **PUBLISHED}
