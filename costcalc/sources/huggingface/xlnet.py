"""XLNetLMHeadModel (arXiv 1906.08237): a text at once, of which all tokens see each other, with sinusoids of distances.

Read is the pass over a text as it is. Permutations, a second stream of queries for predicted places, and hidden states
that are kept of the text before (`mem_len`) come with inputs of their own.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import BARE, MASKED, Names, layer_norm, use_of, whole
from costcalc.sources.huggingface.task_heads import ANSWERS, TEXTS, TOKENS, dense_first

NAMES: dict[str, Names] = {
    "xlnet": {
        MASKED: "XLNetLMHeadModel",
        BARE: "XLNetModel",
        TEXTS: "XLNetForSequenceClassification",
        TOKENS: "XLNetForTokenClassification",
        ANSWERS: "XLNetForQuestionAnsweringSimple",
    }
}
NOTED = """
    mem_len reuse_len use_mems_eval use_mems_train same_length clamp_len start_n_top end_n_top untie_r
    summary_activation
"""
"""Keys about what is kept of the text before, about distances beyond which all are one, and about other classes."""
ONE_ROW = ("first", "last", "mean", "cls_index")


def read_xlnet(config: Config) -> Written:
    """No positions are added and no norm is below or above the layers; a vector for masked tokens is held."""
    config.expect("attn_type", "bi")
    config.expect("bi_data", False)
    config.note(*NOTED.split())
    use, width, heads = use_of(config, NAMES), config.size("d_model"), config.size("n_head")
    if width % heads:
        what = f"`d_model` {width} is not a multiple of `n_head` {heads}"
        raise config.refusal(what, "change one of the two", "d_model")
    if width % 2:
        raise config.refusal(f"half of `d_model` {width} are sines", "write an even number", "d_model")
    config.expect("d_head", None, width // heads)
    norm = layer_norm(config)
    layer: dict[str, Any] = {
        "norm": norm,
        "norms": "post",
        "repeat": layer_count(config, "n_layer"),
        "attention": {"kind": "transformer_xl", "heads": heads, "segments": 2},
        "feed_forward": {
            "kind": "dense",
            "d_ff": config.size("d_inner"),
            "activation": config.activation("ff_activation"),
            "bias": True,
        },
    }
    return whole(
        config,
        use,
        {"norm": norm, "layers": [layer]},
        head={"bias": True},
        texts=_summary(config) if use == TEXTS else {},
        reads_first=True,
        d_model=width,
        embedding={"tables": [{"name": "mask", "rows": 1, "use": "held"}]},
    )


def _summary(config: Config) -> Written:
    """One row of each text, and a dense layer before the labels where `summary_use_proj` says so."""
    config.expect("summary_type", *ONE_ROW)
    if not config.flag("summary_use_proj"):
        return {}
    config.expect("summary_activation", None, "tanh")
    return dense_first("tanh")


READERS = {"xlnet": read_xlnet}
CLASSES = {"xlnet": tuple(NAMES["xlnet"].values())}
