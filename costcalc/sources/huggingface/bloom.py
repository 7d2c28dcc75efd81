"""BloomForCausalLM (arXiv 2211.05100): ALiBi, a norm on the embeddings, biases everywhere, multi-head attention."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count

FUSED = ("bias_dropout_fusion", "masked_softmax_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi")
"""Switches of its training code's kernels: the same sums in another order."""


def read_bloom(config: Config) -> Written:
    """The network is four times as wide as the model, whatever the file says."""
    width, inner = config.size("hidden_size"), config.size_or_none("n_inner")
    if inner not in (None, 4 * width):
        what = f"`n_inner` {inner} is not 4 x `hidden_size`, which is what the class builds"
        raise config.refusal(what, 'write "n_inner": null', "n_inner")
    config.expect("apply_residual_connection_post_layernorm", False)
    config.note("slow_but_exact", *FUSED)
    norm: Written = {"kind": "layernorm", "eps": config.number("layer_norm_epsilon")}
    layer: Written = {
        "norm": norm,
        "positions": {"kind": "alibi"},
        "repeat": layer_count(config, "n_layer"),
        "attention": {"kind": "grouped_query", "heads": config.size("n_head"), "bias": True, "out_bias": True},
        "feed_forward": {"kind": "dense", "d_ff": 4 * width, "activation": "gelu_tanh", "bias": True},
    }
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": config.size_or_none("seq_length"),
        "embedding": {"norm": norm},
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {"norm": norm, "positions": {"kind": "alibi"}, "layers": [layer]},
    }


READERS = {"bloom": read_bloom}
CLASSES = {"bloom": ("BloomForCausalLM",)}
