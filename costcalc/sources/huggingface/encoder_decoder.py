"""EncoderDecoderModel (arXiv 1907.12461): an encoder of any type that is read beside a decoder that looks at one, as
files of their own would be read; and the same with an encoder of images or of speech, which is named and not counted.

Where the widths differ, what the encoder gives is projected, unless the decoder says that it takes it as it is
(`cross_attention_hidden_size`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.lineages import LINEAGES
from costcalc.sources.huggingface.nested import inside

BARE, CAUSAL = ("Model", "Encoder"), ("ForCausalLM", "LMHeadModel", "Decoder")
NOT_BARE = ("LMHeadModel", "EncoderModel")
BUILT: dict[str, Written] = {
    "encoder": {"model_type": "bert"},
    "decoder": {"model_type": "bert", "is_decoder": True, "add_cross_attention": True},
}
"""What stands for a side that is null."""
OF_A_STACK = frozenset(
    (
        *("vocab_size", "d_model", "context_length", "embedding", "tie_embeddings", "head", "pooler"),
        *("encoder", "decoder", "share_embeddings"),
    )
)
NAMED = {"vision-encoder-decoder": "vision encoder", "speech-encoder-decoder": "speech encoder"}


def read_encoder_decoder(config: Config) -> Written:
    """Both sides, and the projection between them. Whether the head is tied is the decoder's word."""
    config.note("tie_word_embeddings")
    below, (above, taken) = _side(config, "encoder", BARE)[0], _side(config, "decoder", CAUSAL)
    if below.get("encoder") is None or below.get("decoder") is not None:
        raise _not_for(config, "encoder", "looks both ways")
    stack, width = dict(below["encoder"]), below["d_model"]
    if width != above["d_model"]:
        stack |= {"d_model": width, "output_projection": taken is None}
    if below.get("embedding", {}) != above.get("embedding", {}):
        stack["embedding"] = below.get("embedding", {})
    rows = below["vocab_size"]
    return {
        **{key: above[key] for key in above if key != "share_embeddings"},
        "encoder_vocab_size": None if rows == above["vocab_size"] else rows,
        "pooler": below.get("pooler", False),
        "encoder": stack,
    }


def read_named_encoder(config: Config) -> Written:
    """The decoder; its encoder is named, and what projects that one's numbers is its part."""
    config.note("encoder", "tie_word_embeddings")
    return {**_side(config, "decoder", CAUSAL)[0], "not_counted": [NAMED[config.model_type]]}


def _side(config: Config, key: str, endings: tuple[str, ...]) -> tuple[Written, Any]:
    """One side by the reader of its type, of the class that is built of it; the width that it says it looks at."""
    config.expect("is_encoder_decoder", None, True)
    data = config[key]
    data = BUILT[key] if data is None else data
    model_type = data.get("model_type") if isinstance(data, dict) else None
    if not isinstance(model_type, str) or LINEAGES.get(model_type) in (None, "nested", "encoder_decoder"):
        what = f"`{key}` must hold a config of a model type that is read, got {shown(model_type)}"
        raise config.refusal(what, f'write "{key}": {{"model_type": "bert", ...}}', key, "model_type")
    lineage = import_module(f"costcalc.sources.huggingface.{LINEAGES[model_type]}")
    classes = [name for name in lineage.CLASSES[model_type] if name.endswith(endings)]
    if key == "encoder":
        classes = [name for name in classes if not name.endswith(NOT_BARE)]
    if not classes:
        what = f"no class of {model_type} that could be an `{key}` is read"
        raise config.refusal(what, "describe the model in YAML instead", key, "model_type")
    side = Config(data, model_type=model_type, origin=inside(config.origin, key))
    side.model_class = classes[0]
    written: Written = lineage.READERS[model_type](side)
    side.note("cross_attention_hidden_size")
    side.refuse_unread()
    if key == "decoder" and (written.get("decoder") is None or written.get("encoder") is not None):
        raise _not_for(config, key, "looks back")
    if more := sorted(name for name in written.keys() - OF_A_STACK if written[name]):
        raise _not_for(config, key, f"has no {more[0]}")
    return written, side.values.get("cross_attention_hidden_size")


def _not_for(config: Config, key: str, what: str) -> Exception:
    hint = "describe the model in YAML instead"
    return config.refusal(f"`{key}` must be of a type whose model {what}", hint, key, "model_type")


READERS = {"encoder-decoder": read_encoder_decoder, **dict.fromkeys(NAMED, read_named_encoder)}
CLASSES = {
    "encoder-decoder": ("EncoderDecoderModel",),
    "vision-encoder-decoder": ("VisionEncoderDecoderModel",),
    "speech-encoder-decoder": ("SpeechEncoderDecoderModel",),
}
