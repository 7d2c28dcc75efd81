"""MptForCausalLM: ALiBi, no biases at all, not even in the LayerNorms, multi-head attention, a network of 4 x width.

The published files name MosaicML's own class, which builds more than the library's: where the two would differ, a file
is refused.
"""

from __future__ import annotations

import math
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.harmless import HARMLESS, HARMLESS_IF

REMARKS = ("embedding_fraction", "init_config", "init_device", "learned_pos_emb", "tokenizer_name", "verbose")
"""How it was trained. Under ALiBi `learned_pos_emb` is void in both classes: neither builds a table."""

BUILT: dict[str, list[Any]] = {
    "alibi": [True],
    "attn_type": ["multihead_attention"],
    "prefix_lm": [False],
    "qk_gn": [False],
    "qk_ln": [False],
    "rope": [False],
}
"""What keys of `attn_config` may say: all that the library's class builds."""

CONSTANTS: dict[str, float | None] = {"softmax_scale": None, "alibi_bias_max": 8.0}
"""Numbers of `attn_config` that the forward pass needs, and what they are where nothing is written."""

NO_COUNT = ("attn_impl", "attn_pdrop", "attn_uses_sequence_id", "clip_qkv", "model_type")
"""Keys of `attn_config` that change none: kernels, dropout, texts packed in training, clipped numbers."""


def read_mpt(config: Config) -> Written:
    """What MosaicML's class could build beside it is refused: biases, another width, other norms, a logit scale."""
    config.note(*REMARKS)
    config.expect("expansion_ratio", 4)
    config.expect("no_bias", True)
    config.expect("logit_scale", None)
    config.expect("norm_type", "low_precision_layernorm", "layernorm")
    width = config.size("d_model")
    scale, positions = _attention(config)
    norm: Written = {"kind": "layernorm", "eps": config.number("layer_norm_epsilon"), "bias": False}
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "repeat": layer_count(config, "n_layers"),
        "attention": {"kind": "grouped_query", "heads": config.size("n_heads"), "scale": scale},
        "feed_forward": {"kind": "dense", "d_ff": 4 * width, "activation": "gelu"},
    }
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": config.size("max_seq_len"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {"norm": norm, "positions": positions, "layers": [layer]},
    }


def _attention(config: Config) -> tuple[float | None, Written]:
    """The scale of scores and the positions, from the nested `attn_config`."""
    nested = {} if config["attn_config"] is None else config["attn_config"]
    if not isinstance(nested, dict):
        raise config.refusal("`attn_config` must be a mapping", 'write "attn_config": {"alibi": true}', "attn_config")
    for key, value in nested.items():
        if value is None or key in HARMLESS or key in NO_COUNT or key in CONSTANTS:
            continue
        if value not in BUILT.get(key, HARMLESS_IF.get(key, [])):
            what = f"`{shown(key)[1:-1]}`: {shown(value)} in `attn_config` is not read for mpt and might change a cost"
            raise config.refusal(what, "describe the model in YAML instead", "attn_config", key)
    scale, max_bias = (_constant(config, nested, key, default) for key, default in CONSTANTS.items())
    return scale, {"kind": "alibi", "max_bias": max_bias}


def _constant(config: Config, nested: Written, key: str, default: float | None) -> float | None:
    value = nested.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        what = f"`{key}` in `attn_config` must be a number above 0, got {shown(value)}"
        raise config.refusal(what, f'write "{key}": 1.0', "attn_config", key)
    return float(value)


READERS = {"mpt": read_mpt}
CLASSES = {"mpt": ("MptForCausalLM", "MPTForCausalLM")}
