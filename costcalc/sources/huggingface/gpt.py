"""The first GPT (2018) and CTRL (arXiv 1909.05858); GPT-SW3 (2305.12987), which is GPT-2's class under its own name."""

from __future__ import annotations

import math

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, layer_norm
from costcalc.sources.huggingface.gpt2 import read_gpt2

OWN_NAMES = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
"""What `afn` may say: in this class "gelu" is the approximation with tanh."""


def read_openai_gpt(config: Config) -> Written:
    """Norms after the residual sums, so that none is on top, and a network of four times the width."""
    width, positions, named = config.size("n_embd"), config.size("n_positions"), config["afn"]
    if named not in OWN_NAMES:
        raise config.refusal(
            f"`afn` {shown(named)} is not an activation of the class", f"one of: {', '.join(OWN_NAMES)}", "afn"
        )
    norm = layer_norm(config, "layer_norm_epsilon")
    learned = {"kind": "learned", "length": positions}
    network = {"kind": "dense", "d_ff": 4 * width, "activation": OWN_NAMES[named], "bias": True}
    return _whole(config, norm, learned, network, "post")


def read_ctrl(config: Config) -> Written:
    """Sinusoids, which no checkpoint holds; rows times the root of the width; a bias for each word on the head."""
    width, positions = config.size("n_embd"), {"kind": "sinusoidal", "length": config.size("n_positions")}
    network = {"kind": "dense", "d_ff": config.size("dff"), "activation": "relu", "bias": True}
    norm = {"kind": "layernorm", "eps": 1e-6, "bias": True}  # the layers'; the one on top has the file's eps
    written = _whole(config, norm, positions, network, "pre")
    written["decoder"]["norm"] = layer_norm(config, "layer_norm_epsilon")
    return {**written, "embedding": {"scale": math.sqrt(width)}, "head": {"kind": "vocabulary", "bias": True}}


def _whole(config: Config, norm: Written, positions: Written, network: Written, norms: str) -> Written:
    layer: Written = {
        "norm": norm,
        "norms": norms,
        "positions": positions,
        "repeat": layer_count(config, "n_layer"),
        "attention": {"kind": "grouped_query", "heads": config.size("n_head"), "bias": True, "out_bias": True},
        "feed_forward": network,
    }
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("n_embd"),
        "context_length": config.size("n_positions"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {"norm": norm, "positions": positions, "layers": [layer]},
    }


READERS = {"ctrl": read_ctrl, "gpt-sw3": read_gpt2, "openai-gpt": read_openai_gpt}
CLASSES = {
    "ctrl": ("CTRLLMHeadModel",),
    "gpt-sw3": ("GPT2LMHeadModel",),
    "openai-gpt": ("OpenAIGPTLMHeadModel",),
}
