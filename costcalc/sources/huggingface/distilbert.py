"""DistilBertForMaskedLM (arXiv 1910.01108): BERT without token types and without a pooler, under names of its own."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import names, transform_head, use_of, whole
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"distilbert": names("DistilBert", causal=None)}
NORM = {"kind": "layernorm", "eps": 1e-12}
"""The class has no key for it."""


def read_distilbert(config: Config) -> Written:
    """`sinusoidal_pos_embds` only fills the position table at first; versions before 5 did not train it."""
    config.expect("is_decoder", None, False)
    width, heads, length = config.size("dim"), config.size("n_heads"), config.size("max_position_embeddings")
    if width % heads:
        raise config.refusal(f"`dim` {width} is not a multiple of `n_heads` {heads}", "change one of the two", "dim")
    config.flag("sinusoidal_pos_embds")
    activation = config.activation("activation")
    positions: Written = {"kind": "learned", "length": length}
    layer = {
        "norm": NORM,
        "positions": positions,
        "norms": "post",
        "repeat": layer_count(config, "n_layers"),
        "attention": {"kind": "grouped_query", "heads": heads, "bias": True, "out_bias": True},
        "feed_forward": {
            "kind": "dense",
            "d_ff": config.size("hidden_dim"),
            "activation": activation,
            "bias": True,
        },
    }
    return whole(
        config,
        use_of(config, NAMES),
        {"norm": NORM, "positions": positions, "layers": [layer]},
        head=transform_head(NORM, activation),
        texts=dense_first("relu"),
        d_model=width,
        context_length=length,
        embedding={"norm": NORM},
    )


READERS = {"distilbert": read_distilbert}
CLASSES = {"distilbert": tuple(NAMES["distilbert"].values())}
