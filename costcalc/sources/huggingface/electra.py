"""ElectraForMaskedLM (arXiv 2003.10555): the generator, BERT with embeddings of a width of their own."""

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
from costcalc.sources.huggingface.task_heads import REPLACED, dense_first

NAMES = {"electra": {**names("Electra"), REPLACED: "ElectraForPreTraining"}}


def read_electra(config: Config) -> Written:
    """A projection stands above the embeddings only where `embedding_size` is not the model's; no class has a pooler.

    The head goes back to `embedding_size`; its activation is GELU, whatever `hidden_act` says.
    """
    use, width, narrow = use_of(config, NAMES), config.size("hidden_size"), config.size("embedding_size")
    is_decoder = looks_back(config, use, NAMES)
    norm, positions, attention = layer_norm(config), learned(config), multi_head(config)
    sublayers = {"attention": attention, "feed_forward": dense_network(config)}
    if config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    projection = {} if narrow == width else {"width": narrow, "bias": True, "project": "after"}
    return whole(
        config,
        use,
        equal_layers(config, norm, positions, norms="post", **sublayers),
        is_decoder=is_decoder,
        head=transform_head(norm, "gelu"),
        texts=dense_first("gelu"),
        tokens=dense_first(str(sublayers["feed_forward"]["activation"])) if use == REPLACED else {},
        d_model=width,
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm, **projection},
    )


READERS = {"electra": read_electra}
CLASSES = {"electra": tuple(NAMES["electra"].values())}
