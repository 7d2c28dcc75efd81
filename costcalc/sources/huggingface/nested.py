"""Wrappers: a config.json of several models, whose text model stands in a key of its own, mostly `text_config`.

Only the text model is counted, by the reader of its own type; what else the file describes is named in `not_counted`.
`wrappers.py` says which types these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface import check_code
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.lineages import LINEAGES
from costcalc.sources.huggingface.wrapped_ties import TIE, tie_of
from costcalc.sources.huggingface.wrappers import TEXT, WRAPPERS, Wrapper
from costcalc.sources.origin import Origin, Where

Written = dict[str, Any]

OF_OTHER_PARTS = """
    audio_token_offset image_token_offset
    _pad_token_id adapter_layer_norm_eps alignment_intermediate_size downsample_factor
    ignore_index language_model_only media_placeholder_token_id projection_hidden_size projection_layer_norm_eps
    use_unified_vision_chunk video_placeholder
    audio_soft_tokens_per_image
    audio_token_id audio_token_index boa_token_id boa_token_index boi_token_id boi_token_index eoa_token_id
    eoa_token_index eoi_token_id eoi_token_index image_break_token_id image_end_token_id image_seq_length
    image_token_index mm_tokens_per_image multimodal_projector_bias projector_bias projector_hidden_act
    projector_patch_to_query_dict spatial_merge_size video_token_index vision_end_token_id vision_feature_layer
    vision_feature_select_strategy vision_soft_tokens_per_image vision_start_token_id vision_token_id
"""
"""Keys of a wrapper that are about its other parts, or about where their tokens stand in a text; beside them are the
fields of its own class, of which none reaches the text model.
"""


def read_nested(config: Config) -> Written:
    """The text model, by the reader of its type, and the names of the parts that are left out."""
    wrapper = WRAPPERS[config.model_type]
    config.note(wrapper.key, *wrapper.parts, *wrapper.more, *(config.defaults.keys() - {TIE}), *OF_OTHER_PARTS.split())
    for key in ("use_backbone_lora", "use_llm_lora"):
        config.expect(key, None, 0)  # of InternVL's code: ranks of adapters that would be weights of their own
    text, lineage = _flat(config, wrapper) or _nested(config, wrapper)
    check_code(text, getattr(lineage, "CODE", {}).get(text.model_type, ()))
    text.model_class = lineage.CLASSES[text.model_type][0]
    if text.model_type in WRAPPERS:
        config.note(TIE)  # the head is further in
    else:
        is_alone = config.model_class in wrapper.alone
        text.values[TIE] = tie_of(config, text, TEXT if is_alone else wrapper.ties)
    text.note(*wrapper.drops)
    written: Written = lineage.READERS[text.model_type](text)
    written = _with_its_head(config, written) if wrapper.sizes_head else written
    text.refuse_unread()
    config.note(*(key for key, value in config.data.items() if _repeats(value, text.values.get(key))))
    config.refuse_unread()
    _stand_for(config, text)
    parts = {} if config.model_class in wrapper.alone else wrapper.parts
    left_out = [name for key, name in parts.items() if _is_there(config.values.get(key), wrapper)]
    return {**written, "not_counted": [*left_out, *written.get("not_counted", [])]}


def _nested(config: Config, wrapper: Wrapper) -> tuple[Config, ModuleType]:
    """The text part and the module that reads it; where none is written, the one that the wrapper's class builds."""
    written, own = config.data.get(wrapper.key), config.defaults.get(wrapper.key) or {}
    if written is not None and not isinstance(written, dict):
        what = f"`{wrapper.key}` must hold the text model of a {config.model_type} config, got {shown(written)}"
        raise config.refusal(what, f'write "{wrapper.key}": {{"hidden_size": 5120, ...}}', wrapper.key)
    model_type = (written or {}).get("model_type", wrapper.text)
    model_type = wrapper.called.get(model_type, model_type) if isinstance(model_type, str) else model_type
    if not isinstance(model_type, str) or not _may_be(model_type, wrapper):
        what = f"`{wrapper.key}` has the model_type {shown(model_type)}, which is not read"
        raise config.refusal(what, f"usual is {wrapper.text}", wrapper.key, "model_type")
    text = Config(written or {}, model_type=model_type, origin=inside(config.origin, wrapper.key))
    if written is None or wrapper.fills:
        text.defaults = {**text.defaults, **own}
        text.values = {**text.defaults, **text.data}
    return text, import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}")


def _may_be(model_type: str, wrapper: Wrapper) -> bool:
    """Whether the text part may be of this type: any that is read and no wrapper itself, or the wrapper's only one."""
    return model_type == wrapper.text or (not wrapper.is_fixed and LINEAGES.get(model_type, "nested") != "nested")


def _flat(config: Config, wrapper: Wrapper) -> tuple[Config, ModuleType] | None:
    """The text model whose keys stand beside those of the other parts, in an old file; None in a new one."""
    if not wrapper.may_be_flat or config.data.get(wrapper.key) is not None:
        return None
    apart = {"model_type", "architectures", "auto_map", *config.defaults, *OF_OTHER_PARTS.split()}
    apart |= {*wrapper.parts, *wrapper.more}
    data = {key: value for key, value in config.data.items() if key not in apart}
    text = Config(data, model_type=wrapper.text, origin=config.origin)
    if not text.data.keys() & text.defaults.keys():
        return None
    config.note(*data)  # the text part's own reader refuses what it does not read
    return text, import_module(f"costcalc.sources.huggingface.{LINEAGES[wrapper.text]}")


def _with_its_head(config: Config, written: Written) -> Written:
    """The text model with the head that the wrapper sizes, unless it is the table: as wide, with no more rows."""
    if config.size("hidden_size") != written["d_model"]:
        what = f"`hidden_size` {config['hidden_size']} is not that of the text part, {written['d_model']}"
        raise config.refusal(what, "let both say the same", "hidden_size")
    rows, vocab_size = config.size("vocab_size"), written["vocab_size"]
    if written["tie_embeddings"] or rows == vocab_size:
        return written
    if rows > vocab_size:
        what = f"`vocab_size` {rows} is more than the text part has rows, {vocab_size}"
        raise config.refusal(what, "let both say the same", "vocab_size")
    return {**written, "head": {"kind": "vocabulary", "rows": rows}}


def _is_there(value: object, wrapper: Wrapper) -> bool:
    """Whether a part is there, by the value of its key."""
    return value is not False and (value is not None or not wrapper.may_lack)


def _repeats(value: object, inner: object) -> bool:
    """Whether a key beside the text part says what the text part says: newer files of old wrappers hold both."""
    return value is not None and type(value) is type(inner) and value == inner


def inside(origin: Origin, key: str) -> Origin:
    """The same text, with the places of the keys below `key`."""

    def marks() -> Mapping[Where, tuple[int, int]]:
        return {path[1:]: mark for path, mark in origin.marks.items() if path[:1] == (key,)}

    return Origin(origin.label, origin.text, origin.breaks, marks)


def _stand_for(config: Config, text: Config) -> None:
    """From here on the whole is what its text part is: what was assumed is told of that."""
    config.data, config.defaults, config.read, config.origin = text.data, text.defaults, text.read, text.origin


READERS = dict.fromkeys(WRAPPERS, read_nested)
CLASSES = {model_type: (*wrapper.classes, *wrapper.alone) for model_type, wrapper in WRAPPERS.items()}
