"""AXK1ForCausalLM (A.X-K1): DeepSeek-V3's attention and experts, and a norm of what the experts of a layer give."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm
from costcalc.sources.huggingface.deepseek import sigmoid_router
from costcalc.sources.huggingface.latent import agrees, latent, model, rotated_size, two_kinds
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, agreed, count, dense_first, later_tokens, words


def read_axk1(config: Config) -> Written:
    """`mlp_layer_types`, else `first_k_dense_replace` dense layers, one where neither is written."""
    layers, key = layer_count(config), "first_k_dense_replace"
    config.expect("moe_layer_freq", None, 1)
    agrees(config, "head_dim", rotated_size(config), "`qk_rope_head_dim` numbers of a head are rotated")
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    if kinds is None:
        kinds = dense_first(layers, 1 if config[key] is None else count(config, key))
    elif config[key] is not None:
        kinds = agreed(config, kinds, dense_first(layers, count(config, key)), key) or kinds
    networks = two_kinds(config, kinds, sigmoid_router(config))
    if SPARSE in networks:
        networks[SPARSE] = {**networks[SPARSE], "norm": rms_norm(config)}
    later = later_tokens(config, "num_nextn_predict_layers", "num_mtp_layers")
    return model(config, kinds, latent(config), networks, **later)


READERS = {"axk1": read_axk1}
CLASSES = {"axk1": ("AXK1ForCausalLM",)}
