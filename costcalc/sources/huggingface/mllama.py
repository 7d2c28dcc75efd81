"""Llama-3.2-Vision's text model (arXiv 2407.21783, section 7): Llama, with layers in between that look at an image.

Those layers have nothing else to look at: in a text without an image they are skipped, and only held.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import (
    NO_POSITIONS,
    Written,
    floor_width_per_head,
    gated,
    layer_count,
    outline,
    rms_norm,
    rotary,
    with_rows_beyond,
)
from costcalc.sources.layers import merged_layers

USUAL = [3, 8, 13, 18, 23, 28, 33, 38]
PLACES_OF_IMAGES = 8
"""Rows of the table beyond the vocabulary, whatever the config says."""


def read_mllama(config: Config) -> Written:
    """`cross_attention_layers` says which; null means those of the 11B model, as far as there are as many layers."""
    layers, elsewhere = layer_count(config), _looking_elsewhere(config)
    config.overrule("tie_word_embeddings", False)  # no class of it ties, and the table has rows that no head scores
    norm, network = rms_norm(config), gated(config)
    attention = {
        "kind": "grouped_query",
        "heads": config.size("num_attention_heads"),
        "kv_heads": config.size("num_key_value_heads"),
        "head_dim": floor_width_per_head(config),
    }
    common = {"norm": norm, "feed_forward": network}
    own = {"name": "text", **common, "positions": rotary(config), "attention": attention}
    image = {
        "name": "image",
        **common,
        "positions": NO_POSITIONS,
        "cross_attention": {**attention, "qk_norm": {"kind": "per_head", "norm": norm}},
        "sublayer_gates": True,
        "needs_memory": True,
    }
    order = merged_layers([image if layer in elsewhere else own for layer in range(layers)])
    written = with_rows_beyond(outline(config), PLACES_OF_IMAGES)
    return {**written, "decoder": {"norm": norm, "positions": rotary(config), "layers": order}}


def _looking_elsewhere(config: Config) -> set[int]:
    key = "cross_attention_layers"
    listed = USUAL if config[key] is None else config[key]
    if not isinstance(listed, list) or not all(type(layer) is int and 0 <= layer < MOST_LAYERS for layer in listed):
        what = f"`{key}` must be a list of layers, counted from 0, got {shown(listed)}"
        raise config.refusal(what, f'write "{key}": [3, 8]', key)
    return set(listed)


READERS = {"mllama_text_model": read_mllama}
CLASSES = {"mllama_text_model": ("MllamaForCausalLM",)}
