"""YoutuForCausalLM (Youtu-LLM, arXiv 2512.24618): DeepSeek-V3's attention, and one network a layer without biases."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.latent import agrees, latent, model, network, rotated_size
from costcalc.sources.huggingface.sparse import DENSE


def read_youtu(config: Config) -> Written:
    """Every layer alike."""
    agrees(config, "head_dim", rotated_size(config), "`qk_rope_head_dim` numbers of a head are rotated")
    config.note("embedding_initializer_range")
    return model(config, [DENSE] * layer_count(config), latent(config), {DENSE: network(config)})


READERS = {"youtu": read_youtu}
CLASSES = {"youtu": ("YoutuForCausalLM",)}
