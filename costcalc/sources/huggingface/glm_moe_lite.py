"""Glm4MoeLiteForCausalLM (GLM-4.7-Flash): DeepSeek-V3's attention and experts, with a word for each layer."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.deepseek import sigmoid_router
from costcalc.sources.huggingface.latent import latent, model, two_kinds
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, agreed, count, dense_first, later_tokens, words


def read_glm4_moe_lite(config: Config) -> Written:
    """`mlp_layer_types`, else one dense layer first; an older `first_k_dense_replace` is not read by the class, and has
    to say the same.
    """
    layers, key = layer_count(config), "first_k_dense_replace"
    config.expect("moe_layer_freq", None, 1)
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, 1)
    if config[key] is not None:
        kinds = agreed(config, kinds, dense_first(layers, count(config, key)), key) or kinds
    later = later_tokens(config, "num_nextn_predict_layers", "num_mtp_layers")
    return model(config, kinds, latent(config), two_kinds(config, kinds, sigmoid_router(config)), **later)


READERS = {"glm4_moe_lite": read_glm4_moe_lite}
CLASSES = {"glm4_moe_lite": ("Glm4MoeLiteForCausalLM",)}
