"""T5 (arXiv 1910.10683), mT5 and UMT5: RMSNorm, no biases, scores without a scale, relative positions in buckets.

Encoder and decoder look up one table. The head multiplies by it as well, with hidden states scaled by 1 / sqrt(D);
`tie_word_embeddings: false` (T5 1.1, Flan-T5, mT5) is a table of the head's own, as in the published checkpoints
(flan-t5-base has 247,577,856 parameters), although new versions of the library tie it all the same.
"""

from __future__ import annotations

from functools import partial

from costcalc.errors import shown
from costcalc.sources.huggingface.activations import ACTIVATIONS
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.pair import BARE, ENCODER, WHOLE, Classes, Parts, head_of, telling
from costcalc.sources.huggingface.task_heads import ANSWERS, TEXTS, TOKENS


def _classes(stem: str, *more: str) -> Classes:
    whole = (f"{stem}ForConditionalGeneration", *more)
    bare: Classes = {f"{stem}Model": BARE, f"{stem}EncoderModel": ENCODER}
    return {**dict.fromkeys(whole, WHOLE), **bare, **telling(stem, TEXTS, TOKENS, ANSWERS)}


PARTS: dict[str, Classes] = {
    "t5": _classes("T5", "T5WithLMHeadModel"),
    "mt5": _classes("MT5"),
    "umt5": _classes("UMT5"),
    "longt5": _classes("LongT5"),
}


def read_t5(config: Config, *, per_layer: bool) -> Written:
    """`num_decoder_layers` null means as many as the encoder's; per_layer: a table of buckets for each layer (UMT5)."""
    parts = PARTS[config.model_type][config.model_class]
    depth = {"encoder": layer_count(config, "num_layers")}
    own = config.size_or_none("num_decoder_layers")
    depth["decoder"] = depth["encoder"] if own is None else layer_count(config, "num_decoder_layers")
    if len(parts.stacks) > 1:
        config.expect("is_encoder_decoder", True)
        _check_depth(config, own)
    else:
        config.expect("is_decoder", None, False)  # a decoder's layers would have cross-attention
    config.note("is_encoder_decoder")
    config.expect("scalable_attention", None, per_layer)  # UMT5's published files say it
    norm, positions = norm_of(config), {**relative(config), "per_layer": per_layer}
    layer: Written = {"norm": norm, "positions": positions, **_sublayers(config)}
    layers = {"encoder": layer, "decoder": {**layer, "cross_attention": layer["attention"]}}
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": config.size("d_model"),
        "context_length": config.size_or_none("n_positions"),
        "share_embeddings": len(parts.stacks) > 1,
        **_head(config, parts),
        **{
            side: {"norm": norm, "positions": positions, "layers": [{**layers[side], "repeat": depth[side]}]}
            for side in parts.stacks
        },
    }


def norm_of(config: Config) -> Written:
    """RMSNorm."""
    return {"kind": "rmsnorm", "eps": config.number("layer_norm_epsilon")}


def relative(config: Config) -> Written:
    """One table of buckets for all layers of a stack."""
    return {
        "kind": "relative",
        "buckets": config.size("relative_attention_num_buckets"),
        "max_distance": config.size("relative_attention_max_distance"),
    }


def attention(config: Config) -> Written:
    """Heads of `d_kv` numbers, scores without a scale."""
    return {
        "kind": "grouped_query",
        "heads": config.size("num_heads"),
        "head_dim": config.size("d_kv"),
        "scale": 1.0,
    }


def _check_depth(config: Config, own: int | None) -> None:
    """The decoder's depth follows `num_layers` before other names of that are known to the class, so they do not do."""
    if own is None and "num_layers" not in config.written and "num_hidden_layers" in config.written:
        raise config.refusal(
            "`num_hidden_layers` says how many layers the encoder has, and leaves the decoder at its default",
            "write `num_layers` for both, or `num_decoder_layers` beside it",
            "num_layers",
        )


def _head(config: Config, parts: Parts) -> Written:
    """Scaled where it is tied, unless `scale_decoder_outputs` says otherwise."""
    config.expect("tie_word_embeddings", True, False, None)
    tied = config["tie_word_embeddings"] is not False
    scaled = tied if config["scale_decoder_outputs"] is None else config.flag("scale_decoder_outputs")
    vocabulary: Written = {"kind": "vocabulary", "scale": config.size("d_model") ** -0.5 if scaled else 1.0}
    return {"tie_embeddings": tied and parts.head, "head": head_of(config, parts, vocabulary)}


def _sublayers(config: Config) -> Written:
    kind, activation = _network(config)
    return {
        "attention": attention(config),
        "feed_forward": {"kind": kind, "d_ff": config.size("d_ff"), "activation": activation},
    }


def _network(config: Config) -> tuple[str, str]:
    """`feed_forward_proj`: an activation, or "gated-" and one (arXiv 2002.05202); "gated-gelu" is the tanh form."""
    word = config["feed_forward_proj"]
    gate, dash, activation = word.rpartition("-") if isinstance(word, str) else ("", "", "")
    if gate != ("gated" if dash else "") or activation not in ACTIVATIONS:
        raise config.refusal(
            f"`feed_forward_proj` {shown(word)} is not an activation that is read, nor `gated-` and one",
            'write "feed_forward_proj": "gated-gelu"',
            "feed_forward_proj",
        )
    if "is_gated_act" in config.data:
        config.expect("is_gated_act", bool(gate))
    kind = "gated" if gate else "dense"
    if config["dense_act_fn"] is not None:  # what the class derives, and writes beside it
        return kind, config.activation("dense_act_fn")
    return kind, "gelu_new" if word == "gated-gelu" else ACTIVATIONS[activation]


READERS = {
    "t5": partial(read_t5, per_layer=False),
    "mt5": partial(read_t5, per_layer=False),
    "umt5": partial(read_t5, per_layer=True),
}
CLASSES = {model_type: tuple(PARTS[model_type]) for model_type in READERS}
