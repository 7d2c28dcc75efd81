"""MPNetForMaskedLM (arXiv 2004.09297): RoBERTa without token types, with relative positions beside its learned ones."""

from __future__ import annotations

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
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"mpnet": names("MPNet", causal=None)}
BUCKETS, FIRST = 32, 2
"""Buckets that the class counts with, and the first position, whatever the config says."""


def read_mpnet(config: Config) -> Written:
    """One table of relative positions for all layers, of which a row more than the class counts with is never used."""
    config.expect("is_decoder", None, False)
    config.note("pad_token_id")
    norm, network, buckets = layer_norm(config), dense_network(config), config.size("relative_attention_num_buckets")
    if buckets < BUCKETS:
        what = f"`relative_attention_num_buckets` {buckets}: the class looks up {BUCKETS} rows"
        raise config.refusal(what, f"write {BUCKETS}", "relative_attention_num_buckets")
    positions = {**learned(config, offset=FIRST), "kind": "learned_and_relative", "buckets": buckets}
    positions["max_distance"] = max(128, buckets // 2 + 1)
    return whole(
        config,
        use_of(config, NAMES),
        equal_layers(config, norm, positions, norms="post", attention=multi_head(config), feed_forward=network),
        pooler=True,
        head=transform_head(norm, "gelu", bias=bert_bias(config)),
        texts=dense_first(),
        d_model=config.size("hidden_size"),
        context_length=positions["length"] - FIRST,
        embedding={"norm": norm},
    )


READERS = {"mpnet": read_mpnet}
CLASSES = {"mpnet": tuple(NAMES["mpnet"].values())}
