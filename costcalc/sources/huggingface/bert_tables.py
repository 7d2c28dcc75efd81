"""BERTs with further tables under their layers: RoCBertForMaskedLM (ACL 2022, paper 65), LayoutLMForMaskedLM (arXiv
1912.13318) and TapasForMaskedLM (arXiv 2004.02349).
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    Names,
    bert_bias,
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
from costcalc.sources.huggingface.task_heads import TEXTS

NAMES: dict[str, Names] = {
    "roc_bert": names("RoCBert"),
    "layoutlm": names("LayoutLM", causal=None),
    "tapas": names("Tapas", causal=None, tasks=(TEXTS,)),
}
BOXES = ("x", "y", "height", "width")
"""LayoutLM's tables: left and right edges are rows of the first, upper and lower ones of the second."""
MOST_TABLES = 100


def read_roc_bert(config: Config) -> Written:
    """Rows of sounds and shapes are joined to a token's row, and projected to the width of the model.

    Without `concat_input` they are added after the norm instead, where a text comes with them; a table that is switched
    off is held all the same.
    """
    use = use_of(config, NAMES)
    is_decoder = looks_back(config, use, NAMES, pooler=True)
    joins, width = config.flag("concat_input"), config.size("hidden_size")
    tables = []
    for name in ("shape", "pronunciation"):
        rows, own = config.size(f"{name}_vocab_size"), config.size(f"{name}_embed_dim")
        is_joined = config.flag(f"enable_{name}") and joins
        tables.append({"name": name, "rows": rows, "width": own, "use": "joined" if is_joined else "held"})
    projection = {"width": width, "bias": True} if joins else {}
    more = {"token_types": config.size("type_vocab_size"), "tables": tables, **projection}
    return _like_bert(config, use, more, is_decoder=is_decoder)


def read_layoutlm(config: Config) -> Written:
    """Four tables of places on a page, and BERT's; a text that comes without boxes has the first row of each.

    The pooler is beside every head.
    """
    rows = config.size("max_2d_position_embeddings")
    tables = [{"name": name, "rows": rows} for name in BOXES]
    more = {"token_types": config.size("type_vocab_size"), "tables": tables}
    return {**_like_bert(config, use_of(config, NAMES), more), "pooler": True}


def read_tapas(config: Config) -> Written:
    """A table for each entry of `type_vocab_sizes`, which say where in a table a token stands."""
    sizes = config["type_vocab_sizes"]
    if not _are_sizes(sizes):
        what = f"`type_vocab_sizes` must be a list of at least three whole numbers, got {shown(sizes)}"
        raise config.refusal(what, "write [3, 256, 256, 2, 256, 256, 10]", "type_vocab_sizes")
    config.expect("is_decoder", False)
    config.expect("add_cross_attention", False)
    config.note(*OF_ANSWERS.split())
    tables = [{"name": f"token_types_{index}", "rows": rows} for index, rows in enumerate(sizes)]
    return _like_bert(config, use_of(config, NAMES), {"tables": tables})


OF_ANSWERS = """
    positive_label_weight num_aggregation_labels aggregation_loss_weight use_answer_as_supervision
    answer_loss_importance use_normalized_answer_loss huber_loss_delta aggregation_temperature use_gumbel_for_cells
    use_gumbel_for_aggregation average_approximation_function cell_selection_preference answer_loss_cutoff max_num_rows
    max_num_columns average_logits_per_cell select_one_column allow_empty_column_selection
    init_cell_selection_weights_to_zero reset_position_index_per_cell disable_per_token_loss aggregation_labels
    no_aggregation_label_index
"""
"""Keys of TAPAS that are about answers in cells, and about which row of a table a token has."""


def _are_sizes(sizes: Any) -> bool:
    """Columns and rows of a cell are the second and third."""
    return (
        isinstance(sizes, list)
        and 3 <= len(sizes) <= MOST_TABLES
        and all(type(size) is int and size > 0 for size in sizes)
    )


def _like_bert(config: Config, use: str, embedding: Written, *, is_decoder: bool = False) -> Written:
    """BERT's layers, pooler and head, over embeddings that end in a norm."""
    norm, positions, network, attention = (
        layer_norm(config),
        learned(config),
        dense_network(config),
        multi_head(config),
    )
    sublayers = {"attention": attention, "feed_forward": network}
    if is_decoder and config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    return whole(
        config,
        use,
        equal_layers(config, norm, positions, norms="post", **sublayers),
        is_decoder=is_decoder,
        pooler=True,
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=config.size("hidden_size"),
        context_length=positions["length"],
        embedding={**embedding, "norm": norm},
    )


READERS = {"roc_bert": read_roc_bert, "layoutlm": read_layoutlm, "tapas": read_tapas}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}
