"""OLMo (arXiv 2402.00838): LayerNorms without parameters. OLMo-2 (2501.00656): norms on the outputs of sublayers, and
QK-norm over whole projections. OLMo-3: the same, with a window in all layers but every fourth.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rms_norm,
    rotary,
    rotary_by_type,
    types_by_period,
    windows_by_type,
)

BARE_NORM: Written = {"kind": "layernorm", "eps": 1e-5, "weight": False, "bias": False}
BASES = dict.fromkeys((FULL, SLIDING), ("rope_theta", 500_000.0))
"""Of both types of OLMo-3's layers, the older key of the RoPE base, and the class default."""


def read_olmo(config: Config) -> Written:
    """`clip_qkv` bounds the numbers of queries, keys and values, and changes no count."""
    config.note("clip_qkv")
    layers = layer_count(config)
    return _whole(config, [None] * layers, [rotary(config)] * layers, norm=BARE_NORM)


def read_olmo2(config: Config) -> Written:
    """No norm before a sublayer, one on its output."""
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return _whole(config, [None] * layers, [rotary(config)] * layers, norms="output", qk_norm=_over_projections(config))


def read_olmo3(config: Config) -> Written:
    """Raw configs do not spell the pattern out: the class's own is sliding, sliding, sliding, full, ..."""
    types = types_by_period(config, 4, full=-1)
    window = config.size_or_none("sliding_window")
    windows = windows_by_type(config, types, window, why_none="`sliding_window` is null")
    turned = rotary_by_type(config, BASES)
    positions = [turned[word] for word in types]
    return _whole(config, windows, positions, norms="output", qk_norm=_over_projections(config))


def _over_projections(config: Config) -> Written:
    return {"kind": "projection", "norm": rms_norm(config)}


def _whole(
    config: Config,
    windows: list[int | None],
    positions: list[Written],
    *,
    norm: Written | None = None,
    norms: str = "pre",
    qk_norm: Written | None = None,
) -> Written:
    bias = config.flag("attention_bias")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows,
        positions=positions,
        norm=norm,
        norms=norms,
        attention={"bias": bias, "out_bias": bias, "qk_norm": qk_norm},
    )


READERS = {"olmo": read_olmo, "olmo2": read_olmo2, "olmo3": read_olmo3}
CLASSES = {"olmo": ("OlmoForCausalLM",), "olmo2": ("Olmo2ForCausalLM",), "olmo3": ("Olmo3ForCausalLM",)}
