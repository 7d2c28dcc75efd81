"""RoFormerForMaskedLM (arXiv 2104.09864): BERT that rotates queries and keys, with its sines and cosines in a table."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, width_per_head
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    looks_back,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"roformer": names("RoFormer")}


def read_roformer(config: Config) -> Written:
    """Embeddings of a width of their own where `embedding_size` says so; no class has a pooler."""
    use, width, head_dim = use_of(config, NAMES), config.size("hidden_size"), width_per_head(config)
    is_decoder = looks_back(config, use, NAMES)
    if head_dim % 2:
        raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change the heads", "hidden_size")
    narrow = config.size_or_none("embedding_size") or width
    length, values = config.size("max_position_embeddings"), config.flag("rotary_value")
    positions = {"kind": "rope", "stored": "frozen", "length": length, "width": head_dim, "values": values}
    norm, network, attention = layer_norm(config), dense_network(config), multi_head(config)
    sublayers = {"attention": attention, "feed_forward": network}
    if is_decoder and config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    projection = {} if narrow == width else {"width": narrow, "bias": True, "project": "after"}
    return whole(
        config,
        use,
        equal_layers(config, norm, positions, norms="post", **sublayers),
        is_decoder=is_decoder,
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        texts=dense_first(network["activation"]),
        d_model=width,
        context_length=length,
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm, **projection},
    )


READERS = {"roformer": read_roformer}
CLASSES = {"roformer": tuple(NAMES["roformer"].values())}
