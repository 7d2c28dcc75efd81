"""LongT5 (arXiv 2112.07916): T5 with an encoder of windows, or of windows and sums of blocks (transient global)."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.t5 import PARTS, read_t5

LOCAL, TRANSIENT = "local", "transient-global"


def read_longt5(config: Config) -> Written:
    """`encoder_attention_type`; `local_radius` tokens are seen to either side, in blocks of one token more."""
    form = read_t5(config, per_layer=False)
    encoder = form["encoder"]
    config.expect("encoder_attention_type", LOCAL, TRANSIENT)
    radius, block = config.size("local_radius"), config.size("global_block_size")
    (layer,) = encoder["layers"]
    positions, seen = encoder["positions"], {"window": 2 * radius + 1}
    if config["encoder_attention_type"] == TRANSIENT:
        seen |= {"summed": block, "norm": encoder["norm"]}
        positions = {**positions, "of_sums": True}
    layer = {**layer, "positions": positions, "attention": {**layer["attention"], "kind": "local", **seen}}
    return {**form, "encoder": {**encoder, "positions": positions, "layers": [layer]}}


READERS = {"longt5": read_longt5}
CLASSES = {"longt5": tuple(PARTS["longt5"])}
