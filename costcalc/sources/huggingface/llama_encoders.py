"""Encoders that are Llamas looking both ways: EsmcForMaskedLM (ESM Cambrian, proteins) and UltrabertForMaskedLM."""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    layer_count,
    llama_like,
    rotary,
    width_per_head,
)
from costcalc.sources.huggingface.encoder import names, transform_head, use_of, whole
from costcalc.sources.huggingface.task_heads import TEXTS, TOKENS, dense_first

NAMES = {"esmc": names("Esmc", causal=None, tasks=(TEXTS, TOKENS)), "ultrabert": names("Ultrabert", causal=None)}
LAYER_NORM: Written = {"kind": "layernorm", "eps": 1e-5, "bias": True}
"""ESMC's: the class has no key for it."""
THETA = {FULL: 2_560_000.0, SLIDING: 10_000.0}
"""Ultrabert's, where neither `rope_parameters` nor `rope_theta` says."""
EVERY = 3
"""The last of so many layers sees everything."""


def read_esmc(config: Config) -> Written:
    """LayerNorm, also over whole queries and keys; what sublayers give is divided by sqrt(layers / 36)."""
    layers, derived = layer_count(config), width_per_head(config)
    config.expect("num_key_value_heads", None, config.size("num_attention_heads"))
    config.expect("head_dim", None, derived)  # the norms of queries and keys have the model's width
    bias, bare = config.flag("attention_bias"), {**LAYER_NORM, "bias": False}
    written = llama_like(
        config,
        kv_heads=None,
        head_dim=derived,
        windows=[None] * layers,
        positions=[{"theta": 10_000.0, **rotary(config)}] * layers,
        attention={"bias": bias, "out_bias": bias, "qk_norm": {"kind": "projection", "norm": bare}},
        mlp_bias=config.flag("mlp_bias"),
        norm=LAYER_NORM,
        block={"residual_scale": (36 / layers) ** 0.5},
    )
    stack = {**written.pop("decoder"), "norm": bare}
    made = whole(config, use_of(config, NAMES), stack, head=transform_head(LAYER_NORM, "gelu"), texts=dense_first())
    return {**written, **made, "tie_embeddings": False}


def read_ultrabert(config: Config) -> Written:
    """`sliding_window` is how far a token sees to either side; two matrices stand before the head's table."""
    layers, derived = layer_count(config), width_per_head(config)
    types, reach = _types_and_reach(config, layers)
    positions, bias = _positions(config, types), config.flag("attention_bias")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        windows=[2 * reach + 1 if word == SLIDING else None for word in types],
        positions=[positions[word] for word in types],
        attention={"bias": bias, "out_bias": bias},
        mlp_bias=config.flag("mlp_bias"),
    )
    inner = config.size("prediction_head_size")
    head = {"transform": True, "transform_bias": False, "activation": "gelu_tanh", "norm": None, "inner": inner}
    stack = written.pop("decoder")
    return {**written, **whole(config, use_of(config, NAMES), stack, head=head, reads_first=True)}


def _types_and_reach(config: Config, layers: int) -> tuple[list[str], int]:
    """The type of each layer, and how far the sliding ones see; older files have `attention_windows`, one a layer."""
    types, old = config.layer_types(layers, (FULL, SLIDING)), config["attention_windows"]
    if old is None:
        counted = [SLIDING if (index + 1) % EVERY else FULL for index in range(layers)]
        return types or counted, config.size("sliding_window")
    if not _are_windows(old, layers):
        what = f"`attention_windows` must be a list of {layers} windows, got {shown(old)}"
        raise config.refusal(what, "one for each layer, 0 for none", "attention_windows")
    found = [SLIDING if window else FULL for window in old]
    windows = {window for window in old if window} or {config.size("sliding_window")}
    if len(windows) > 1 or types not in (None, found):
        what = "`attention_windows` has several windows, or other layers than `layer_types`"
        raise config.refusal(what, "write `sliding_window` and `layer_types`", "attention_windows")
    config.note("sliding_window")
    return found, windows.pop()


def _are_windows(old: Any, layers: int) -> bool:
    is_list = isinstance(old, list) and len(old) == layers
    return is_list and all(window is None or (type(window) is int and window >= 0) for window in old)


def _positions(config: Config, types: list[str]) -> dict[str, Written]:
    """RoPE of each type of layer: in `rope_parameters`, or in `rope_theta`, one number a layer."""
    new, old = config["rope_parameters"], config["rope_theta"]
    found = dict(THETA)
    if isinstance(new, dict):
        own = {word: new.get(word) for word in THETA}
        found |= {word: each["rope_theta"] for word, each in own.items() if isinstance(each, dict)}
    elif isinstance(old, list) and len(old) == len(types):
        found |= dict(zip(types, old, strict=True))
    return {word: {"kind": "rope", "theta": float(theta)} for word, theta in found.items()}


READERS = {"esmc": read_esmc, "ultrabert": read_ultrabert}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}
