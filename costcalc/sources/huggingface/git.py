"""GitForCausalLM (arXiv 2205.14100): BERT-like layers that look back, over the tokens of an image and of a text."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import dense_network, equal_layers, layer_norm, learned, multi_head, whole

PARTS = {"vision_config": "vision tower"}


def read_git(config: Config) -> Written:
    """Norms after the sums, positions in a table, a norm below the layers, a bias for each word on the head.

    `num_image_with_embedding` is about frames of a video, of the part that is left out.
    """
    config.note(*PARTS, "num_image_with_embedding")
    norm, positions = layer_norm(config), learned(config)
    sublayers = {"attention": multi_head(config), "feed_forward": dense_network(config)}
    stack = equal_layers(config, norm, positions, norms="post", **sublayers)
    written = whole(
        config,
        "causal",
        stack,
        is_decoder=True,
        head={"bias": True},
        d_model=config.size("hidden_size"),
        context_length=positions["length"],
        embedding={"norm": norm},
    )
    return {**written, "not_counted": list(PARTS.values())}


READERS = {"git": read_git}
CLASSES = {"git": ("GitForCausalLM",)}
