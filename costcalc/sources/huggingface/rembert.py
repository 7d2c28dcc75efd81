"""RemBertForMaskedLM (arXiv 2010.12821): embeddings of one width below the layers, and of another above them."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    looks_back,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)

NAMES = {"rembert": names("RemBert")}


def read_rembert(config: Config) -> Written:
    """Tables of `input_embedding_size`, projected above their norm; a head of `output_embedding_size` that is not tied,
    whatever `tie_word_embeddings` says.
    """
    use = use_of(config, NAMES)
    is_decoder = looks_back(config, use, NAMES, pooler=True)
    norm, positions, network, attention = (
        layer_norm(config),
        learned(config),
        dense_network(config),
        multi_head(config),
    )
    sublayers = {"attention": attention, "feed_forward": network}
    if is_decoder and config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    narrow = {"width": config.size("input_embedding_size"), "bias": True, "project": "after"}
    written = whole(
        config,
        use,
        equal_layers(config, norm, positions, norms="post", **sublayers),
        is_decoder=is_decoder,
        pooler=True,
        head={**transform_head(norm, network["activation"]), "width": config.size("output_embedding_size")},
        d_model=config.size("hidden_size"),
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm, **narrow},
    )
    return {**written, "tie_embeddings": False}


READERS = {"rembert": read_rembert}
CLASSES = {"rembert": tuple(NAMES["rembert"].values())}
