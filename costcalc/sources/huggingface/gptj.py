"""GPT-J and CodeGen (arXiv 2203.13474): parallel blocks with one norm, RoPE on part of a head, a bias on the output."""

from __future__ import annotations

from functools import partial

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, layer_norm

SHARDS = 4
"""CodeGen's fused projection is laid out for so many devices, which the width has to divide among."""


def _read(config: Config, shards: int) -> Written:
    """No bias in the attention, two in the network; `n_inner` null is four times the width.

    `rotary_dim` numbers of each head are rotated; null would turn all of them, by angles of another size.
    """
    width, heads, context = config.size("n_embd"), config.size("n_head"), config.size("n_positions")
    inner, turned = config.size_or_none("n_inner"), config.size("rotary_dim")
    for key in ("rotary", "scale_attn_weights"):  # of GPT-J's file; the class does both
        config.expect(key, None, True)
    if width % shards:
        what = f"`n_embd` {width} is not a multiple of {shards}, for which the class lays its projection out"
        raise config.refusal(what, "change `n_embd`", "n_embd")
    norm = layer_norm(config, "layer_norm_epsilon")
    positions = {"kind": "rope", "rotary_dim": turned}
    layer: Written = {
        "norm": norm,
        "parallel": "one_norm",
        "positions": positions,
        "repeat": layer_count(config, "n_layer"),
        "attention": {"kind": "grouped_query", "heads": heads},
        "feed_forward": {
            "kind": "dense",
            "d_ff": 4 * width if inner is None else inner,
            "activation": config.activation("activation_function"),
            "bias": True,
        },
    }
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": context,
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "head": {"kind": "vocabulary", "bias": True},
        "decoder": {"norm": norm, "positions": positions, "layers": [layer]},
    }


READERS = {"codegen": partial(_read, shards=SHARDS), "gptj": partial(_read, shards=1)}
CLASSES = {"codegen": ("CodeGenForCausalLM",), "gptj": ("GPTJForCausalLM",)}
