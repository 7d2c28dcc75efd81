"""What lineages with a gated delta rule share: the mixers of Gated DeltaNet (arXiv 2412.06464) and of Kimi Delta
Attention (2510.26692) as the classes build them, and layers of a mixer or an attention each.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written
from costcalc.sources.huggingface.recurrent import LINEAR
from costcalc.sources.huggingface.sparse import agreed

CHUNK = 64
"""Tokens that the kernels of these classes take at once; no key says otherwise."""

NAMES = {LINEAR: "linear", FULL: "attention"}
NAMES_OF_THREE = {LINEAR: "linear", FULL: "global", SLIDING: "local"}
"""What layers are called."""


def delta_net(config: Config, *, heads: int, key_heads: int, key_dim: int, value_dim: int, **more: Any) -> Written:
    """Gated DeltaNet: a decay of each head, full matrices for it and for the gate of the output."""
    if heads % key_heads:
        what = f"`linear_num_value_heads` {heads} is not a multiple of `linear_num_key_heads` {key_heads}"
        raise config.refusal(what, "change one of the two", "linear_num_key_heads")
    sizes = {"heads": heads, "key_heads": key_heads, "key_dim": key_dim, "value_dim": value_dim}
    return _mixer(config, config.size("linear_conv_kernel_dim"), **sizes, decay="per_head", **more)


def kimi_delta(config: Config, *, heads: int, head_dim: int, taps: int, **more: Any) -> Written:
    """Kimi Delta Attention: keys and values of one size, a decay of each of a key's numbers, a sigmoid as the gate."""
    sizes = {"heads": heads, "key_dim": head_dim, "value_dim": head_dim}
    return _mixer(config, taps, **sizes, decay="per_channel", gate_activation="sigmoid", **more)


def _mixer(config: Config, taps: int, **more: Any) -> Written:
    activation = config.activation("hidden_act")
    return {"kind": "gated_delta", "d_conv": taps, "activation": activation, "chunk": CHUNK, **more}


def by_interval(config: Config, layers: int, every: int) -> list[str]:
    """`layer_types`, else attention in the last of each so many layers, as `full_attention_interval` may say; where
    both are written, they agree.
    """
    key = "full_attention_interval"
    is_written = config[key] is not None
    every = config.size(key) if is_written else every
    counted = [LINEAR if (layer + 1) % every else FULL for layer in range(layers)]
    listed = config.layer_types(layers, (LINEAR, FULL))
    return (agreed(config, listed, counted, key) if is_written else listed) or counted
