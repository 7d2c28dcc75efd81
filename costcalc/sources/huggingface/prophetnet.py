"""ProphetNet (arXiv 2001.04063): BART's kin, whose decoder has a main stream of a text and streams that look ahead.

All streams go through every layer, and the head multiplies all but the main one. Positions begin behind padding's.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.pair import BARE, CAUSAL, NORM, WHOLE, Classes

PARTS: Classes = {
    "ProphetNetForConditionalGeneration": WHOLE,
    "ProphetNetModel": BARE,
    "ProphetNetForCausalLM": CAUSAL,
}


def read_prophetnet(config: Config) -> Written:
    """Untied, each stack and the head have a table, and one is looked up by nobody."""
    parts = PARTS[config.model_class]
    config.note("disable_ngram_loss", "eps", "is_decoder")
    if parts == CAUSAL:
        config.note("is_encoder_decoder", "num_encoder_layers", "encoder_ffn_dim", "num_encoder_attention_heads")
    else:
        config.expect("is_encoder_decoder", True)
        config.expect("add_cross_attention", True)
    tied, is_pair = config.flag("tie_word_embeddings"), parts != CAUSAL
    positions = _positions(config)
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("hidden_size"),
        "context_length": config.size("max_position_embeddings"),
        "embedding": {"norm": NORM},
        "tie_embeddings": tied and parts.head,
        "share_embeddings": tied and is_pair,
        "spare_table": not tied,
        "head": {"kind": "vocabulary"} if parts.head else {"kind": "none"},
        **{side: _stack(config, side, positions) for side in parts.stacks},
    }


def _positions(config: Config) -> Written:
    """A table whose first rows, up to that of padding, no position uses."""
    padding = config.whole("pad_token_id")
    return {"kind": "learned", "length": config.size("max_position_embeddings"), "offset": padding + 1}


def _stack(config: Config, side: str, positions: Written) -> Written:
    plain: Written = {"heads": config.size(f"num_{side}_attention_heads"), "bias": True, "out_bias": True}
    asking: Written = {"kind": "grouped_query", **plain}
    layer: Written = {
        "repeat": layer_count(config, f"num_{side}_layers"),
        "norm": NORM,
        "norms": "post",
        "positions": positions,
        "attention": asking if side == "encoder" else _ahead(config, plain),
        "feed_forward": {
            "kind": "dense",
            "d_ff": config.size(f"{side}_ffn_dim"),
            "activation": config.activation("activation_function"),
            "bias": True,
        },
    }
    if side == "decoder" and config.flag("add_cross_attention"):
        layer["cross_attention"] = asking
    return {"norm": NORM, "positions": positions, "layers": [layer]}


def _ahead(config: Config, plain: Written) -> Written:
    """A matrix makes the numbers of the buckets of distances."""
    return {
        "kind": "ngram",
        **plain,
        "streams": config.size("ngram"),
        "buckets": config.size("num_buckets"),
        "max_distance": config.size("relative_max_distance"),
    }


READERS = {"prophetnet": read_prophetnet}
CLASSES = {"prophetnet": tuple(PARTS)}
