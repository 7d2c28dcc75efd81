"""AlbertForMaskedLM (arXiv 1909.11942): layers that share their weights, and embeddings of a width of their own."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import (
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

NAMES = {"albert": names("Albert", causal=None)}


def read_albert(config: Config) -> Written:
    """The projection is there also where both widths are equal; the head goes back to `embedding_size`."""
    config.expect("is_decoder", None, False)
    norm, positions, network = layer_norm(config), learned(config), dense_network(config)
    layer = {
        "norm": norm,
        "positions": positions,
        "norms": "post",
        "share_weights": True,
        "attention": multi_head(config),
        "feed_forward": network,
    }
    narrow = {"width": config.size("embedding_size"), "bias": True, "project": "after"}
    return whole(
        config,
        use_of(config, NAMES),
        {"norm": norm, "positions": positions, "layers": _entries(config, layer)},
        pooler=True,
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=config.size("hidden_size"),
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm, **narrow},
    )


def _entries(config: Config, layer: Written) -> list[Written]:
    """One entry for the consecutive layers of a group, or for its `inner_group_num` layers that run one by one."""
    inner = config.size("inner_group_num", largest=MOST_LAYERS)
    layers, groups = layer_count(config), config.size("num_hidden_groups", largest=MOST_LAYERS)
    # As the class does it, in floating point: layer i is of group i / (layers / groups), rounded down.
    times = {group: len(list(same)) for group, same in groupby(range(layers), lambda i: int(i / (layers / groups)))}
    if list(times) != list(range(groups)):
        raise config.refusal(
            f"`num_hidden_groups` {groups} of {layers} layers leaves groups that no layer uses",
            "change one of the two",
            "num_hidden_groups",
        )

    def named(name: str) -> dict[str, Any]:
        return layer if groups * inner == 1 else {"name": name, **layer}

    if inner == 1:
        return [{**named(f"group_{group}"), "repeat": count} for group, count in times.items()]
    return [
        {"repeat": count, "pattern": [named(f"group_{group}_{index}") for index in range(inner)]}
        for group, count in times.items()
    ]


READERS = {"albert": read_albert}
CLASSES = {"albert": tuple(NAMES["albert"].values())}
