"""EXAONE 3 (arXiv 2408.03541), which is Llama's architecture, and EXAONE 4 (2507.11407): norms on the outputs of
sublayers, QK-norm, and a window with RoPE in all layers but every fourth, which has neither.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rms_norm,
    rotary,
    types_by_period,
    windows_by_type,
)
from costcalc.sources.huggingface.llama import read_llama

LETTERS = {"L": SLIDING, "G": FULL}
PATTERN = "sliding_window_pattern"


def read_exaone4(config: Config) -> Written:
    """`sliding_window` null switches the windows off, and then all layers have RoPE."""
    window = config.size_or_none("sliding_window")
    types = _types(config, window)
    windows = windows_by_type(config, types, window, why_none="`sliding_window` is null")
    turned = rotary(config)
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows,
        positions=[NO_POSITIONS if window is not None and word == FULL else turned for word in types],
        norms="output",
        attention={"qk_norm": {"kind": "per_head", "norm": rms_norm(config)}},
    )


def _types(config: Config, window: int | None) -> list[str]:
    """`layer_types`, or from `sliding_window_pattern`: a period (4: every fourth is full), or its letters ("LLLG").

    The class writes the pattern beside any list, and reads the list.
    """
    layers, pattern = layer_count(config), config[PATTERN]
    types = config.layer_types(layers, (FULL, SLIDING))
    if types is not None:
        return types
    if window is None:
        return [FULL] * layers
    if not isinstance(pattern, str):
        return types_by_period(config, 4, full=-1, key=PATTERN)
    if not pattern or set(pattern) - LETTERS.keys():
        what = f"`{PATTERN}` {shown(pattern)} has other letters than L and G"
        raise config.refusal(what, f'write "{PATTERN}": "LLLG"', PATTERN)
    return [LETTERS[pattern[layer % len(pattern)]] for layer in range(layers)]


READERS = {"exaone": read_llama, "exaone4": read_exaone4}
CLASSES = {"exaone": ("ExaoneForCausalLM", "LlamaForCausalLM"), "exaone4": ("Exaone4ForCausalLM",)}
