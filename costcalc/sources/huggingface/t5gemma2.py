"""T5Gemma-2 (arXiv 2512.14856): an encoder and a decoder of Gemma-3's layers, of one width and with one table.

A decoder's attention meets the encoder's tokens beside its own earlier ones, by the same matrices and in one softmax.
The encoder may read images too: its vision tower is named, not counted.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm, rotary_by_type, types_by_period
from costcalc.sources.huggingface.gemma import OLD_BASES, with_windows
from costcalc.sources.huggingface.nested import inside
from costcalc.sources.huggingface.pair import BARE, WHOLE, Classes
from costcalc.sources.huggingface.t5gemma import each_layer, side_of

PARTS: Classes = {"T5Gemma2ForConditionalGeneration": WHOLE, "T5Gemma2Model": BARE}
PERIOD = 6
OF_IMAGES = "vision_config mm_tokens_per_image boi_token_index eoi_token_index image_token_index image_token_id"
SAID_ABOVE = "attention_dropout classifier_dropout_rate dropout_rate vocab_size is_encoder_decoder"


def read_t5gemma2(config: Config) -> Written:
    """The end of an image has a row of its own beside the table. Untied, each side and the head have theirs."""
    parts = PARTS[config.model_class]
    config.expect("is_encoder_decoder", True)
    config.note(*SAID_ABOVE.split(), "image_token_index", "eoi_token_index")
    below, above = _read_side(_text_of(config)), _read_side(side_of(config, "decoder", "t5gemma2_decoder"))
    for key, name in (("d_model", "hidden_size"), ("vocab_size", "vocab_size")):
        if below[key] != above[key]:
            what = f"`{name}` of the encoder is {below[key]}, and of the decoder {above[key]}: the class wants one"
            raise config.refusal(what, "make the two agree", "decoder", name)
    tied, decoder = config.flag("tie_word_embeddings"), above["decoder"]
    encoder = {**below["decoder"], "layers": each_layer(below["decoder"]["layers"], attention=_both_ways)}
    return {
        **above,
        "embedding": {**above["embedding"], "own_rows": 1},
        "share_embeddings": tied,
        **({"tie_embeddings": tied} if parts.head else {"tie_embeddings": False, "head": {"kind": "none"}}),
        "encoder": encoder,
        "decoder": {**decoder, "layers": each_layer(decoder["layers"], attention=_with_memory)},
        "not_counted": ["vision tower"],
    }


def _text_of(config: Config) -> Config:
    """The text part of the encoder, whose other part reads images."""
    encoder = side_of(config, "encoder", "t5gemma2_encoder", *OF_IMAGES.split())
    data = encoder["text_config"]
    encoder.refuse_unread()
    if not isinstance(data, dict | None):
        hint = 'write "text_config": {"hidden_size": 2304, ...}'
        raise encoder.refusal(f"`text_config` must hold the text part, got {shown(data)}", hint, "text_config")
    text = Config(data or {}, model_type="t5gemma2_text", origin=inside(encoder.origin, "text_config"))
    text.expect("model_type", None, "t5gemma2_text")
    text.values["tie_word_embeddings"] = False  # the whole says
    text.note("tie_word_embeddings", "dropout_rate")
    return text


def _read_side(side: Config) -> Written:
    """Gemma-3's layers: QK-norm, and a window in all but every sixth, with a RoPE base of each kind's own."""
    types = types_by_period(side, PERIOD, full=-1, key="sliding_window_pattern")
    rotary = rotary_by_type(side, OLD_BASES)
    written = with_windows(
        side,
        types,
        norms="sandwich",
        attention={"qk_norm": {"kind": "per_head", "norm": rms_norm(side)}},
        positions=[rotary[types[layer]] for layer in range(layer_count(side))],
    )
    side.refuse_unread()
    return written


def _both_ways(attention: Written) -> Written:
    """An even window of w holds w keys: w / 2 later ones, and w / 2 - 1 earlier ones."""
    return attention if attention.get("window") is None else {**attention, "uneven_window": True}


def _with_memory(attention: Written) -> Written:
    return {**attention, "with_memory": True}


READERS = {"t5gemma2": read_t5gemma2}
CLASSES = {"t5gemma2": tuple(PARTS)}
