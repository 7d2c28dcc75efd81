"""BigBirdForMaskedLM (arXiv 2007.14062): BERT over blocks that see their neighbours, the outer blocks and a few more.

`attention_type` "original_full", and a decoder that keeps a cache, attend in full. All classes hold a pooler.
"""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import TEXTS, TOKENS, dense_first

NAMES = {"big_bird": names("BigBird", tasks=(TEXTS, TOKENS))}
"""Of the ends of an answer not: that head has a network of its own."""
FULL, SPARSE = "original_full", "block_sparse"


def read_big_bird(config: Config) -> Written:
    """The causal class is one of an encoder as well, unless `is_decoder`."""
    is_decoder = config.flag("is_decoder")
    norm, network, positions = layer_norm(config), dense_network(config), learned(config)
    attention = {**multi_head(config, bias=config.flag("use_bias")), "out_bias": True}
    sublayers: Written = {"attention": attention, "feed_forward": network}
    if config.flag("add_cross_attention"):
        if not is_decoder:
            config.expect("add_cross_attention", False)  # the class refuses it in an encoder as well
        sublayers["cross_attention"] = attention
    blocks = sparse_blocks(config)
    stack = equal_layers(config, norm, positions, norms="post", **sublayers)
    if blocks is not None and not is_decoder:
        stack = over_blocks(stack, attention, blocks)
    width = config.size("hidden_size")
    made = whole(
        config,
        use_of(config, NAMES),
        stack,
        is_decoder=is_decoder,
        texts=dense_first(str(network["activation"])),
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=width,
        context_length=positions["length"],
        embedding={
            "token_types": config.size("type_vocab_size"),
            "norm": norm,
            "scale": math.sqrt(width) if config.flag("rescale_embeddings") else 1.0,
        },
    )
    return {**made, "pooler": True}


def sparse_blocks(config: Config) -> Written | None:
    """Blocks and how many more each sees; None where the attention is full."""
    config.expect("attention_type", FULL, SPARSE)
    block, drawn = config.size("block_size"), config.whole("num_random_blocks")
    if drawn < 0:
        what = f"`num_random_blocks` {drawn} is no number of blocks"
        raise config.refusal(what, 'write "num_random_blocks": 3', "num_random_blocks")
    return None if config["attention_type"] == FULL else {"block": block, "random": drawn}


def over_blocks(stack: Written, attention: Written, blocks: Written) -> Written:
    """The same stack with attention over blocks; a text that is longer than the kernels' least is whole blocks."""
    sparse = {**attention, "kind": "block_sparse", **blocks}
    padding = {"multiple": blocks["block"], "beyond": (5 + 2 * blocks["random"]) * blocks["block"]}
    layers = [{**layer, "attention": sparse} for layer in stack["layers"]]
    return {**stack, "padding": padding, "layers": layers}


READERS = {"big_bird": read_big_bird}
CLASSES = {"big_bird": tuple(NAMES["big_bird"].values())}
