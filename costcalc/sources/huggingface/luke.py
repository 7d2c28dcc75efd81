"""LukeForMaskedLM (arXiv 2010.01057): RoBERTa whose tokens may be entities beside words.

Read is what it does with a text without entities; what it holds for them are parameters like any other.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    BARE,
    MASKED,
    after_padding,
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
from costcalc.sources.huggingface.task_heads import TEXTS

NAMES = {"luke": names("Luke", causal=None)}


def read_luke(config: Config) -> Written:
    """The words' head is never tied, the entities' is; both classes have a pooler."""
    use, norm, network = use_of(config, NAMES), layer_norm(config), dense_network(config)
    config.expect("is_decoder", None, False)
    positions = learned(config, offset=after_padding(config))
    attention = {**multi_head(config), "entity_queries": config.flag("use_entity_aware_attention")}
    token_types, tied = config.size("type_vocab_size"), config.flag("tie_word_embeddings")
    entities = {
        "rows": config.size("entity_vocab_size"),
        "width": config.size("entity_emb_size"),
        "length": positions["length"],
        "token_types": token_types,
        "norm": norm,
        "predicts": ("tied" if tied else "own") if use == MASKED else False,
    }
    written = whole(
        config,
        use,
        equal_layers(config, norm, positions, norms="post", attention=attention, feed_forward=network),
        head=transform_head(norm, "gelu", bias=True if tied else "spare"),
        d_model=config.size("hidden_size"),
        context_length=positions["length"] - positions["offset"],
        embedding={"token_types": token_types, "norm": norm},
    )
    return {**written, "tie_embeddings": False, "pooler": use in (MASKED, BARE, TEXTS), "entities": entities}


READERS = {"luke": read_luke}
CLASSES = {"luke": tuple(NAMES["luke"].values())}
