"""T5Gemma (arXiv 2504.06225): an encoder and a decoder of Gemma-2's layers, each of its own sizes, with tables apart.

The decoder's layers look at the encoder's tokens between the two others, with heads like their own and without
positions; keys and values are made of as many numbers as the encoder is wide.
"""

from __future__ import annotations

from collections.abc import Callable

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, types_by_period
from costcalc.sources.huggingface.gemma import with_windows
from costcalc.sources.huggingface.nested import inside
from costcalc.sources.huggingface.pair import BARE, ENCODER, WHOLE, Classes

MODULE = "t5_gemma_module"
PARTS: Classes = {"T5GemmaForConditionalGeneration": WHOLE, "T5GemmaModel": BARE, "T5GemmaEncoderModel": ENCODER}
SAID_ABOVE = "dropout_rate classifier_dropout_rate cross_attention_hidden_size is_decoder tie_word_embeddings"
"""Keys of a side that the whole's class says itself."""


def read_t5gemma(config: Config) -> Written:
    """Both sides are read as files of their own would be."""
    parts = PARTS[config.model_class]
    config.note("is_encoder_decoder", "dropout_rate", "classifier_dropout_rate", "vocab_size", "attention_dropout")
    if parts == ENCODER:
        config.expect("is_encoder_decoder", False)
        config.note("decoder", "tie_word_embeddings")
    elif parts == BARE:
        config.expect("is_encoder_decoder", True)
    sides = {side: side_of(config, side, MODULE) for side in parts.stacks}
    read = {side: _read_side(made) for side, made in sides.items()}
    encoder = _looking_both_ways(read["encoder"])
    if parts == ENCODER:
        return {**encoder, "tie_embeddings": False, "head": {"kind": "none"}}
    tied = config.flag("tie_word_embeddings")
    return {
        **_pair(encoder, read["decoder"]),
        **({"tie_embeddings": tied} if parts.head else {"tie_embeddings": False, "head": {"kind": "none"}}),
    }


def side_of(config: Config, key: str, model_type: str, *more: str) -> Config:
    """One side's keys over its class's defaults, which stand alone where it is null. more: keys of it to read over."""
    data = config[key]
    if not isinstance(data, dict | None):
        hint = f'write "{key}": {{"hidden_size": 2304, ...}}'
        raise config.refusal(f"`{key}` must hold one side of the model, got {shown(data)}", hint, key)
    side = Config(data or {}, model_type=model_type, origin=inside(config.origin, key))
    side.expect("model_type", None, model_type)
    side.values["tie_word_embeddings"] = False  # the whole says
    side.note(*SAID_ABOVE.split(), *more)
    return side


def _read_side(side: Config) -> Written:
    written = with_windows(side, types_by_period(side, 2, full=-1), norms="sandwich")
    side.refuse_unread()
    return written


def _looking_both_ways(written: Written) -> Written:
    """The same as an encoder: a window of w reaches w places to either side, of which ours would be 2·w + 1."""
    stack = written["decoder"]
    kept = {key: value for key, value in written.items() if key != "decoder"}
    return {**kept, "encoder": {**stack, "layers": each_layer(stack["layers"], attention=_wide)}}


def each_layer(entries: list[Written], **made: Callable[[Written], Written]) -> list[Written]:
    """The same entries, with these keys of every layer made of its attention."""

    def changed(entry: Written) -> Written:
        if "pattern" in entry:
            return {**entry, "pattern": each_layer(entry["pattern"], **made)}
        return {**entry, **{key: make(entry["attention"]) for key, make in made.items()}}

    return [changed(entry) for entry in entries]


def _wide(attention: Written) -> Written:
    window = attention.get("window")
    return attention if window is None else {**attention, "window": 2 * window + 1}


def _pair(encoder: Written, decoder: Written) -> Written:
    """The encoder beside the decoder, whose layers look at it."""
    width, rows = encoder["d_model"], encoder["vocab_size"]
    is_as_wide = width == decoder["d_model"]
    below = encoder["encoder"]
    if not is_as_wide:
        below = {**below, "d_model": width, "embedding": encoder["embedding"]}
    memory: Written = {} if is_as_wide else {"memory_width": width}
    above = decoder["decoder"]
    layers = each_layer(above["layers"], cross_attention=lambda attention: {**_without_window(attention), **memory})
    return {
        **decoder,
        "encoder_vocab_size": None if rows == decoder["vocab_size"] else rows,
        "encoder": below,
        "decoder": {**above, "layers": layers},
    }


def _without_window(attention: Written) -> Written:
    return {key: value for key, value in attention.items() if key != "window"}


READERS = {"t5gemma": read_t5gemma}
CLASSES = {"t5gemma": tuple(PARTS)}
