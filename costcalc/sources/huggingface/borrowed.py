"""Layers that read the keys and values of an earlier one: the last `num_kv_shared_layers` of Gemma-3n and Gemma-4."""

from __future__ import annotations

import re
from collections.abc import Sequence

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.sparse import DENSE, count

MAKES, READS = "own", "shared"
"""Words for layers with keys and values of their own, and for those that share those of another."""
KEY = "num_kv_shared_layers"
USUAL = rf"_({MAKES}|{DENSE})(?=_|$)"


def sharing(config: Config, types: Sequence[str]) -> list[str]:
    """Which layers make keys and values, and which read: the last so many. Of each type of layer one has to make some,
    and no layer of a type that is not among the others may, as the class insists.
    """
    layers, shared = len(types), count(config, KEY)
    made = set(types[: max(layers - shared, 0)])
    if shared and made != set(types):
        missing = sorted(set(types) - made)
        what = f"`{KEY}` {shared} of {layers} layers leaves none of {' and '.join(missing)} that makes keys and values"
        raise config.refusal(what, f"change `{KEY}` or `layer_types`", KEY)
    return [MAKES] * (layers - shared) + [READS] * shared


def lent(layers: list[Written], types: Sequence[str], words: Sequence[str]) -> list[Written]:
    """The layers, each that reads with the name of the one that it reads: the last of its type that makes.

    `layers` has one entry a layer, the same object for equal ones, and where there are several kinds each has a name,
    of which the words for what is usual are taken out.
    """
    for layer in layers:
        if "name" in layer:
            layer["name"] = re.sub(USUAL, "", layer["name"])
    makers = [(word, layer) for layer, word, makes in zip(layers, types, words, strict=True) if makes == MAKES]
    lenders = {word: layer.get("name") for word, layer in makers}
    for layer, word, makes in zip(layers, types, words, strict=True):
        if makes == READS:
            layer["attention"]["cache_of"] = lenders[word]
    return layers
