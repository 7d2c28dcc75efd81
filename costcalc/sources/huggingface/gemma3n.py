"""Gemma3nForCausalLM: AltUp, a learned augmented residual and per-layer inputs around Gemma-3's layers.

The last layers share the keys and values of earlier ones; the first ones have sparse networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from costcalc.errors import shown
from costcalc.sources.huggingface.borrowed import MAKES, lent, sharing
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    SLIDING,
    Written,
    rms_norm,
    rotary_by_type,
    types_by_period,
    width_per_head,
)
from costcalc.sources.huggingface.gemma import OLD_BASES
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, attention, layers_by_kind, per_head, whole

TRAINING = ("altup_coef_clip", "altup_lr_multiplier")
SPARSITIES, WIDTHS = "activation_sparsity_pattern", "intermediate_size"
SPARSE_LAYERS, USUAL_SPARSITY = 10, 0.95
"""Where the pattern is not written: of more layers the first so many are sparse."""


def read_gemma3n(config: Config) -> Written:
    """All but every fifth layer have a window, unless `layer_types` says otherwise; each kind has its RoPE base."""
    config.note(*TRAINING)
    config.expect("altup_correct_scale", True)
    width_per_head(config)  # the class insists that it divides, although head_dim is free
    types = types_by_period(config, 5, full=-1)
    makes, shares, widths = sharing(config, types), _sparsities(config, len(types)), _widths(config, len(types))
    norm, bias, positions = rms_norm(config), config.flag("attention_bias"), rotary_by_type(config, OLD_BASES)
    head_dim, window = config.size("head_dim"), config.size("sliding_window")
    if head_dim % 2:
        raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change `head_dim`", "head_dim")
    core = {"bias": bias, "out_bias": bias, "scale": 1.0, "qk_norm": per_head(norm)}
    values, residual = {"v_norm": {**norm, "weight": False}}, {"rank": config.size("laurel_rank")}
    activation = config.activation("hidden_activation")
    of_share, of_width = _words(shares), {f"width{width}": width for width in widths}

    def layer_of(word: str, made: str, share: str, width: str) -> Written:
        own = {**core, **(values if made == MAKES else {}), "window": window if word == SLIDING else None}
        network = {"kind": "gated", "d_ff": of_width[width], "activation": activation, "sparsity": of_share[share]}
        return {
            "norm": norm,
            "norms": "sandwich",
            "positions": positions[word],
            "attention": attention(config, head_dim=head_dim, **own),
            "feed_forward": network,
            "augmented_residual": residual,
        }

    word_of = {share: word for word, share in of_share.items()}
    kinds = [
        (word, made, word_of[share], f"width{width}")
        for word, made, share, width in zip(types, makes, shares, widths, strict=True)
    ]
    layers = lent(layers_by_kind(kinds, layer_of), types, makes)
    return _around(config, whole(config, norm, positions[types[0]], layers, **ends(config)), activation)


def ends(config: Config) -> Written:
    """Rows of the table times the root of the width, and capped logits."""
    return {
        "embedding": {"scale": math.sqrt(config.size("hidden_size"))},
        "head": {"kind": "vocabulary", "softcap": config.number_or_none("final_logit_softcapping")},
    }


def _around(config: Config, written: Written, activation: str) -> Written:
    """The states, and the table of what each layer has of its own; its gates have the networks' activation."""
    states, active = config.size("altup_num_inputs"), config.whole("altup_active_idx")
    if not 0 <= active < states or states < 2:
        what = f"`altup_active_idx` {active} of `altup_num_inputs` {states}: there is no such state, or no other one"
        raise config.refusal(what, "change one of the two", "altup_active_idx")
    stack = {
        **written["decoder"],
        "altup": {"inputs": states, "active": active},
        "per_layer_input": per_layer_input(config, activation),
    }
    return {**written, "decoder": stack}


def per_layer_input(config: Config, activation: str) -> Written:
    """The table's rows and its numbers for each layer."""
    rows, width = config.size("vocab_size_per_layer_input"), config.size("hidden_size_per_layer_input")
    return {"vocab_size": rows, "width": width, "activation": activation}


def _sparsities(config: Config, layers: int) -> list[float]:
    """Of each layer the share of a gate's numbers that is made 0."""
    written = config[SPARSITIES]
    if written is None:
        sparse = SPARSE_LAYERS if layers > SPARSE_LAYERS else 0
        return [USUAL_SPARSITY] * sparse + [0.0] * (layers - sparse)
    return [float(share) for share in _by_layer(config, SPARSITIES, layers, "numbers from 0 to below 1", _is_share)]


def _widths(config: Config, layers: int) -> list[int]:
    """Of each layer the width of its network: one for all, or a list."""
    if not isinstance(config[WIDTHS], list):
        return [config.size(WIDTHS)] * layers
    return [int(width) for width in _by_layer(config, WIDTHS, layers, "whole numbers", _is_width)]


def _by_layer(config: Config, key: str, layers: int, what: str, is_one: Callable[[object], bool]) -> list[float]:
    listed = config[key]
    if not isinstance(listed, list) or len(listed) != layers:
        got = f"{len(listed)} entries" if isinstance(listed, list) else shown(listed)
        raise config.refusal(f"`{key}` must be a list of {layers} {what}, got {got}", "one for each layer", key)
    for index, value in enumerate(listed):
        if not is_one(value):
            raise config.refusal(f"`{key}` has {shown(value)}, where it lists {what}", "one for each layer", key, index)
    return listed


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1


def _is_width(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _words(shares: Sequence[float]) -> dict[str, float]:
    """A word for each share: "dense" for 0, "sparse" for another, or with a number where there are several."""
    others = [share for share in dict.fromkeys(shares) if share]
    named = {f"{SPARSE}{n if n else ''}": share for n, share in enumerate(others)}
    return {DENSE: 0.0, **named}


READERS = {"gemma3n_text": read_gemma3n}
CLASSES = {"gemma3n_text": ("Gemma3nForCausalLM",)}
