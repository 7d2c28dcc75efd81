"""Wrappers: a config.json of several models, whose text model stands in a key of its own, mostly `text_config`.

Only the text model is counted, by the reader of its own type; what else the file describes is named in `not_counted`.
To add a wrapper: a line in WRAPPERS, its class defaults under `defaults/`, a line in LINEAGES.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from costcalc.errors import shown
from costcalc.sources.huggingface import check_code
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.lineages import LINEAGES
from costcalc.sources.origin import Origin, Where

Written = dict[str, Any]
VISION = {"vision_config": "vision tower"}
VISION_AUDIO = {**VISION, "audio_config": "audio tower"}
TIE = "tie_word_embeddings"


class Wrapper(NamedTuple):
    """Where a wrapper holds its text model.

    text: the model type that is meant where the text part names none. classes: those of `architectures` that are read,
    the usual one first. key: of the text part. parts: key of each other part -> its name for a reader. may_be_flat: old
    files hold the keys of the text part beside those of the others. may_lack: a part whose key is null is not there; in
    other classes it is what its own class builds by default.
    """

    text: str
    classes: tuple[str, ...]
    key: str = "text_config"
    parts: Mapping[str, str] = VISION
    may_be_flat: bool = False
    may_lack: bool = False


WRAPPERS = {
    "aya_vision": Wrapper("cohere2", ("AyaVisionForConditionalGeneration",)),
    "cohere2_vision": Wrapper("cohere2", ("Cohere2VisionForConditionalGeneration",)),
    "gemma3": Wrapper("gemma3_text", ("Gemma3ForConditionalGeneration",)),
    "gemma3n": Wrapper("gemma3n_text", ("Gemma3nForConditionalGeneration",), parts=VISION_AUDIO),
    "gemma4": Wrapper("gemma4_text", ("Gemma4ForConditionalGeneration",), parts=VISION_AUDIO, may_lack=True),
    "gemma4_unified": Wrapper(
        "gemma4_unified_text",
        ("Gemma4UnifiedForConditionalGeneration",),
        parts={"vision_config": "vision embedder", "audio_config": "audio embedder"},
        may_lack=True,
    ),
    "kimi_k25": Wrapper("deepseek_v3", ("KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration")),
    "llama4": Wrapper("llama4_text", ("Llama4ForConditionalGeneration",)),
    "mistral3": Wrapper("mistral", ("Mistral3ForConditionalGeneration",)),
    "qwen2_5_vl": Wrapper("qwen2_5_vl_text", ("Qwen2_5_VLForConditionalGeneration",), may_be_flat=True),
    "qwen2_vl": Wrapper("qwen2_vl_text", ("Qwen2VLForConditionalGeneration",), may_be_flat=True),
    "qwen3_5": Wrapper("qwen3_5_text", ("Qwen3_5ForConditionalGeneration",)),
    "qwen3_5_moe": Wrapper("qwen3_5_moe_text", ("Qwen3_5MoeForConditionalGeneration",)),
    "qwen3_vl": Wrapper("qwen3_vl_text", ("Qwen3VLForConditionalGeneration",)),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text", ("Qwen3VLMoeForConditionalGeneration",)),
}

OF_OTHER_PARTS = """
    adapter_layer_norm_eps alignment_intermediate_size downsample_factor
    ignore_index language_model_only media_placeholder_token_id projection_hidden_size projection_layer_norm_eps
    use_unified_vision_chunk video_placeholder
    audio_soft_tokens_per_image
    audio_token_id audio_token_index boa_token_id boa_token_index boi_token_id boi_token_index eoa_token_id
    eoa_token_index eoi_token_id eoi_token_index image_break_token_id image_end_token_id image_seq_length
    image_token_index mm_tokens_per_image multimodal_projector_bias projector_bias projector_hidden_act
    projector_patch_to_query_dict spatial_merge_size video_token_index vision_end_token_id vision_feature_layer
    vision_feature_select_strategy vision_soft_tokens_per_image vision_start_token_id vision_token_id
"""
"""Keys of a wrapper that are about its other parts, or about where their tokens stand in a text."""


def read_nested(config: Config) -> Written:
    """The text model, by the reader of its type, and the names of the parts that are left out."""
    wrapper = WRAPPERS[config.model_type]
    config.note(*wrapper.parts, *OF_OTHER_PARTS.split())
    data = config[wrapper.key]
    if data is None and wrapper.may_be_flat:
        return _flat(config, wrapper)
    if not isinstance(data, dict):
        what = f"`{wrapper.key}` must hold the text model of a {config.model_type} config, got {shown(data)}"
        raise config.refusal(what, f'write "{wrapper.key}": {{"hidden_size": 5120, ...}}', wrapper.key)
    model_type = data.get("model_type", wrapper.text)
    if not isinstance(model_type, str) or LINEAGES.get(model_type, "nested") == "nested":
        what = f"`{wrapper.key}` has the model_type {shown(model_type)}, which is not read"
        raise config.refusal(what, f"usual is {wrapper.text}", wrapper.key, "model_type")
    lineage = import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}")
    text = Config(data, model_type=model_type, origin=_inside(config.origin, wrapper.key))
    text.model_class = lineage.CLASSES[model_type][0]
    check_code(text, getattr(lineage, "CODE", {}).get(model_type, ()))
    text.values[TIE] = _tie(config, text)
    written: Written = lineage.READERS[model_type](text)
    text.refuse_unread()
    config.refuse_unread()
    _stand_for(config, text)
    is_there = {key: config.values.get(key) is not None or not wrapper.may_lack for key in wrapper.parts}
    left_out = [name for key, name in wrapper.parts.items() if is_there[key]]
    return {**written, "not_counted": [*left_out, *written.get("not_counted", [])]}


def _flat(config: Config, wrapper: Wrapper) -> Written:
    """The text model whose keys stand beside those of the other parts."""
    apart = {"model_type", "architectures", "auto_map", wrapper.key, *wrapper.parts, *OF_OTHER_PARTS.split()}
    data = {key: value for key, value in config.data.items() if key not in apart}
    text = Config(data, model_type=wrapper.text, origin=config.origin)
    text.values[TIE] = config[TIE]
    lineage = import_module(f"costcalc.sources.huggingface.{LINEAGES[wrapper.text]}")
    written: Written = lineage.READERS[wrapper.text](text)
    _stand_for(config, text)
    return {**written, "not_counted": [*wrapper.parts.values(), *written.get("not_counted", [])]}


def _tie(config: Config, text: Config) -> Any:
    """Whether the head is tied: the wrapper holds the head, so its word is taken where both say something.

    Old files say it in the text part alone. Where neither does, the wrapper's class decides, and the text class where
    the wrapper's has no such field.
    """
    outer, inner = config[TIE], text[TIE]
    in_text_alone = TIE in text.data and TIE not in config.data
    return inner if in_text_alone or TIE not in config.values else outer


def _inside(origin: Origin, key: str) -> Origin:
    """The same text, with the places of the keys below `key`."""

    def marks() -> Mapping[Where, tuple[int, int]]:
        return {path[1:]: mark for path, mark in origin.marks.items() if path[:1] == (key,)}

    return Origin(origin.label, origin.text, origin.breaks, marks)


def _stand_for(config: Config, text: Config) -> None:
    """From here on the whole is what its text part is: what was assumed is told of that."""
    config.data, config.defaults, config.read, config.origin = text.data, text.defaults, text.read, text.origin


READERS = dict.fromkeys(WRAPPERS, read_nested)
CLASSES = {model_type: wrapper.classes for model_type, wrapper in WRAPPERS.items()}
