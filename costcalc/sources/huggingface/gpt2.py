"""GPT2LMHeadModel: biases everywhere, learned positions, LayerNorm before each sublayer, multi-head attention."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count


def read_gpt2(config: Config) -> Written:
    """`n_inner` null means four times the width; without `scale_attn_weights` scores stay as they are.

    With `add_cross_attention` the weights are there for an encoder, which is another model's.
    """
    width, positions = config.size("n_embd"), config.size("n_positions")
    d_ff = config.size_or_none("n_inner")
    norm = {"kind": "layernorm", "eps": config.number("layer_norm_epsilon")}
    learned = {"kind": "learned", "length": positions}
    attention: Written = {"kind": "grouped_query", "heads": config.size("n_head"), "bias": True, "out_bias": True}
    if not config.values.get("scale_attn_weights", True):
        attention["scale"] = 1.0
    layer: Written = {
        "norm": norm,
        "positions": learned,
        "repeat": layer_count(config, "n_layer"),
        "attention": attention,
        "feed_forward": {
            "kind": "dense",
            "d_ff": 4 * width if d_ff is None else d_ff,
            "activation": config.activation("activation_function"),
            "bias": True,
        },
    }
    if config.flag("add_cross_attention"):
        layer["cross_attention"] = attention
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": positions,
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {
            "norm": norm,
            "positions": learned,
            "layers": [layer],
        },
    }


READERS = {"gpt2": read_gpt2}
CLASSES = {"gpt2": ("GPT2LMHeadModel",)}
