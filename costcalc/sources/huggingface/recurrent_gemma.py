"""RecurrentGemmaForCausalLM (arXiv 2404.07839; Griffin, 2402.19427): RG-LRU in two layers of three, attention in a
window in the third.
"""

from __future__ import annotations

import math

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    NO_POSITIONS,
    Written,
    floor_width_per_head,
    layer_count,
    rms_norm,
)
from costcalc.sources.huggingface.recurrent import agree
from costcalc.sources.huggingface.sparse import attention, layers_by_kind, rotations, whole

ROTATED = 0.5
MOST_TURNS = 100
"""How often the class repeats `block_types`."""


def read_recurrent_gemma(config: Config) -> Written:
    """Networks of half of `intermediate_size`, with biases; the attention's output always has one."""
    config.note("final_w_init_variance_scale", "logits_soft_cap", "w_init_variance_scale")
    agree(config, embeddings_scale_by_sqrt_dim=True)
    norm, activation, head_dim = rms_norm(config), config.activation("hidden_activation"), floor_width_per_head(config)
    agree(config, head_dim=head_dim)
    positions = rotations(config, head_dim, theta=1e4, part=ROTATED)
    width = max(config.size("intermediate_size") // 2, 1)
    common: Written = {
        "norm": norm,
        "feed_forward": {"kind": "gated", "d_ff": width, "activation": activation, "bias": True},
    }
    window, bias = config.size("attention_window_size"), config.flag("attention_bias")
    core = attention(config, head_dim=head_dim, window=window, bias=bias, out_bias=True)
    mixer = _mixer(config, activation)

    def layer_of(word: str) -> Written:
        if word == "attention":
            return {**common, "positions": positions, "attention": core}
        return {**common, "positions": NO_POSITIONS, "mixer": mixer}

    order = layers_by_kind([(word,) for word in _types(config, layer_count(config))], layer_of)
    return whole(
        config,
        norm,
        positions,
        order,
        embedding={"scale": math.sqrt(config.size("hidden_size"))},
        head={"kind": "vocabulary", "softcap": config.number("logits_soft_cap")},
    )


def _mixer(config: Config, activation: str) -> Written:
    heads, width = config.size("num_attention_heads"), config.size_or_none("lru_width") or config.size("hidden_size")
    if width % heads:
        what = f"the RG-LRU's width {width} is not a multiple of `num_attention_heads` {heads}"
        raise config.refusal(what, "change `lru_width`", "lru_width")
    taps = config.size("conv1d_width")
    return {"kind": "rg_lru", "width": width, "heads": heads, "d_conv": taps, "activation": activation}


def _types(config: Config, layers: int) -> list[str]:
    """`block_types`, over and over."""
    key, known = "block_types", ("recurrent", "attention")
    listed = config[key]
    if not isinstance(listed, list) or not listed or any(word not in known for word in listed):
        what = f"`{key}` must be a list of {' and '.join(known)}, got {shown(listed)}"
        raise config.refusal(what, f'write "{key}": ["recurrent", "recurrent", "attention"]', key)
    if layers > MOST_TURNS * len(listed):
        what = f"`{key}` is repeated {MOST_TURNS} times, which is fewer than {layers} layers"
        raise config.refusal(what, f"write more of `{key}`", key)
    return [listed[layer % len(listed)] for layer in range(layers)]


READERS = {"recurrent_gemma": read_recurrent_gemma}
CLASSES = {"recurrent_gemma": ("RecurrentGemmaForCausalLM",)}
