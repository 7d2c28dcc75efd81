"""Apertus (arXiv 2509.14233): QK-norm, and a network of two matrices with xIELU, which learns two numbers.

Apertus 1.5 has images and sounds as tokens of one vocabulary, and a head that may have rows for its beginning only.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, free_head_dim, layer_count, llama_like, rms_norm

XIELU = "xielu"


def read_apertus(config: Config) -> Written:
    """`attention_bias` is on all four products of the attention; the network has none, whatever `mlp_bias` says."""
    config.note("mlp_bias")
    layers, bias = layer_count(config), config.flag("attention_bias")
    config.layer_types(layers, (FULL,))
    own = config["hidden_act"] == XIELU
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=[None] * layers,
        attention={"bias": bias, "out_bias": bias, "qk_norm": {"kind": "per_head", "norm": rms_norm(config)}},
        feed_forward={
            "kind": "dense",
            "d_ff": config.size("intermediate_size"),
            "activation": XIELU if own else config.activation("hidden_act"),
        },
    )


def read_apertus1p5_text(config: Config) -> Written:
    """`output_vocab_size`: rows of the head, where those are fewer; the library cannot tie such a head."""
    written, rows, every = read_apertus(config), config.size_or_none("output_vocab_size"), config.size("vocab_size")
    if rows is None or rows == every:
        return written
    if rows > every:
        what = f"`output_vocab_size` {rows} is more than `vocab_size` {every}"
        raise config.refusal(what, "change one of the two", "output_vocab_size")
    if written["tie_embeddings"]:
        what = "`output_vocab_size` leaves rows out of a head that `tie_word_embeddings` ties"
        raise config.refusal(what, 'write "tie_word_embeddings": false', "output_vocab_size")
    return {**written, "head": {"kind": "vocabulary", "rows": rows}}


READERS = {"apertus": read_apertus, "apertus1p5_text": read_apertus1p5_text}
CLASSES = {"apertus": ("ApertusForCausalLM",), "apertus1p5_text": ("Apertus1p5TextForCausalLM",)}
