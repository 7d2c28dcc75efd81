"""LongformerForMaskedLM (arXiv 2004.05150): RoBERTa with windows, and a second set of projections in each attention.

Which tokens see all is said with each text, not in the config: none, unless a class says so itself.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import (
    after_padding,
    bert_bias,
    dense_network,
    layer_norm,
    learned,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import TEXTS, TOKENS, dense_first

NAMES = {"longformer": names("Longformer", causal=None, tasks=(TEXTS, TOKENS))}
"""Of the ends of an answer not: there all tokens of a question see all, and how many those are is said by the text."""


def read_longformer(config: Config) -> Written:
    """A window for all layers or one for each; texts are filled up to a multiple of the widest."""
    config.expect("is_decoder", None, False)
    config.note("onnx_export")  # another way to cut the same chunks
    norm, network = layer_norm(config), dense_network(config)
    positions = learned(config, offset=after_padding(config))
    plain = multi_head(config)
    layer = {"norm": norm, "positions": positions, "norms": "post", "feed_forward": network}
    windows, use = attention_windows(config, layer_count(config)), use_of(config, NAMES)
    attention = {**plain, "kind": "sliding", "first": 1 if use == TEXTS else 0}  # the token that a class of texts reads
    stack = {"norm": norm, "positions": positions, **windowed(layer, attention, windows)}
    return whole(
        config,
        use,
        stack,
        pooler=True,
        texts=dense_first(),
        head=transform_head(norm, "gelu", bias=bert_bias(config)),
        d_model=config.size("hidden_size"),
        context_length=positions["length"] - positions["offset"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm},
    )


def attention_windows(config: Config, layers: int) -> list[int]:
    """`attention_window`: an even number of tokens, or one for each layer."""
    said: Any = config["attention_window"]
    windows = said if isinstance(said, list) else [said] * layers
    if len(windows) != layers:
        what = f"`attention_window` must be a number or a list of {layers}, got {entries(windows)}"
        raise config.refusal(what, "one window for each layer", "attention_window")
    for window in windows:
        if type(window) is not int or window < 1 or window % 2:
            what = f"`attention_window` must be of even numbers above 0, got {shown(window)}"
            raise config.refusal(what, 'write "attention_window": 512', "attention_window")
    widest = max(windows)
    if any(widest % window for window in windows):
        what = "`attention_window`: texts are filled up to a multiple of the widest, which the others have to divide"
        raise config.refusal(what, "write windows that divide the widest one", "attention_window")
    return windows


def windowed(layer: Written, attention: Written, windows: list[int]) -> Written:
    """Consecutive layers of one window together; what their kernels are handed is a multiple of the widest."""
    made = []
    for window, same in groupby(windows):
        made.append({**layer, "repeat": len(list(same)), "attention": {**attention, "window": window}})
    return {"padding": {"multiple": max(windows)}, "layers": made}


READERS = {"longformer": read_longformer}
CLASSES = {"longformer": tuple(NAMES["longformer"].values())}
