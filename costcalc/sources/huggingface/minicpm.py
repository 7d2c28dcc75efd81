"""MiniCPM3ForCausalLM (arXiv 2404.06395): DeepSeek-V2's attention, one network a layer, and three factors."""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, width_per_head
from costcalc.sources.huggingface.latent import latent, model, network
from costcalc.sources.huggingface.sparse import DENSE

FACTORS = ("dim_model_base", "scale_depth", "scale_emb")


def read_minicpm3(config: Config) -> Written:
    """Where `v_head_dim` is null, a value head has the width over the heads. Embeddings times `scale_emb`; each
    sublayer's output times `scale_depth` over the root of the depth; logits of states that are divided by the width
    over `dim_model_base`. Nulls of the last two mean 1.
    """
    config.note("head_dim", *FACTORS)  # the first is overwritten by the class
    layers, width, per_head = layer_count(config), config.size("hidden_size"), width_per_head(config)
    depth, base = config.number_or_none("scale_depth"), config.number_or_none("dim_model_base")
    return {
        **model(
            config,
            [DENSE] * layers,
            latent(config, v_dim=config.size_or_none("v_head_dim") or per_head),
            {DENSE: network(config, bias=config.flag("mlp_bias"))},
            residual_scale=1.0 if depth is None else depth / math.sqrt(layers),
        ),
        "embedding": {"scale": config.number("scale_emb")},
        "head": {"kind": "vocabulary", "scale": 1.0 if base is None else base / width},
    }


READERS = {"minicpm3": read_minicpm3}
CLASSES = {"minicpm3": ("MiniCPM3ForCausalLM",)}
CODE = {"minicpm3": ("modeling_minicpm",)}
"""The module of its own that the published file names, and that the class was made of."""
