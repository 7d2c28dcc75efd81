"""SqueezeBertForMaskedLM (arXiv 2006.11316): BERT whose matrices are convolutions of one token, most in groups."""

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

NAMES = {"squeezebert": names("SqueezeBert", causal=None)}
GROUPS = {"q": "q_groups", "k": "k_groups", "v": "v_groups", "output": "post_attention_groups"}
OF_LAYERS: Written = {"kind": "layernorm", "eps": 1e-12}
"""The class has no key for it."""


def read_squeezebert(config: Config) -> Written:
    """Groups have to divide what comes in and what comes out; the embeddings are as wide as the model.

    The pooler is beside every head.
    """
    config.expect("is_decoder", None, False)
    config.expect("embedding_size", config.size("hidden_size"))
    norm, positions = layer_norm(config), learned(config)
    width, inner = config.size("hidden_size"), config.size("intermediate_size")
    attention = {**multi_head(config), "groups": {name: _groups(config, key, width) for name, key in GROUPS.items()}}
    network = {
        **dense_network(config),
        "up_groups": _groups(config, "intermediate_groups", width, inner),
        "down_groups": _groups(config, "output_groups", inner, width),
    }
    stack = equal_layers(config, OF_LAYERS, positions, norms="post", attention=attention, feed_forward=network)
    written = whole(
        config,
        use_of(config, NAMES),
        stack,
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=width,
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm},
    )
    return {**written, "pooler": True}


def _groups(config: Config, key: str, *widths: int) -> int:
    """A number of groups that divides these widths."""
    groups = config.size(key)
    if any(width % groups for width in widths):
        what = f"`{key}` {groups} does not divide {' and '.join(map(str, widths))}"
        raise config.refusal(what, "change one of them", key)
    return groups


READERS = {"squeezebert": read_squeezebert}
CLASSES = {"squeezebert": tuple(NAMES["squeezebert"].values())}
