"""FNetForMaskedLM (arXiv 2105.03824): BERT with a Fourier transform in the place of each attention.

The embeddings go through a square matrix before the first layer. All classes hold a pooler, that of the masked language
model too.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    names,
    transform_head,
    use_of,
    whole,
)

NAMES = {"fnet": names("FNet", causal=None)}


def read_fnet(config: Config) -> Written:
    """`use_tpu_fourier_optimizations` multiplies with whole matrices of one length of text: that is not read."""
    config.expect("use_tpu_fourier_optimizations", False)
    config.note("tpu_short_seq_length")  # void without it
    config.expect("is_decoder", None, False)
    norm, network, positions = layer_norm(config), dense_network(config), learned(config)
    width = config.size("hidden_size")
    made = whole(
        config,
        use_of(config, NAMES),
        equal_layers(config, norm, positions, norms="post", mixer={"kind": "fourier"}, feed_forward=network),
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=width,
        context_length=positions["length"],
        embedding={
            "token_types": config.size("type_vocab_size"),
            "norm": norm,
            **{"width": width, "bias": True, "project": "after"},
        },
    )
    return {**made, "pooler": True}


READERS = {"fnet": read_fnet}
CLASSES = {"fnet": tuple(NAMES["fnet"].values())}
