"""JambaForCausalLM (arXiv 2403.19887): Mamba with norms inside, attention in one layer of a period and experts in one
of another, no positions.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written, free_head_dim, layer_count, rms_norm
from costcalc.sources.huggingface.mamba import rank
from costcalc.sources.huggingface.recurrent import LINEAR, kinds_of_layers
from costcalc.sources.huggingface.sparse import DENSE, SPARSE, agreed, attention, gated, mixture, whole

NAMES = {
    (LINEAR, DENSE): "mamba",
    (LINEAR, SPARSE): "mamba-sparse",
    (FULL, DENSE): "attention",
    (FULL, SPARSE): "attention-sparse",
}


def read_jamba(config: Config) -> Written:
    """Experts' weights are not divided by their sum. One expert is a network like any other."""
    config.expect("mamba_inner_layernorms", None, True)
    config.expect("sliding_window", None)
    layers, norm = layer_count(config), rms_norm(config)
    mixers = _every(config, "attn_layer", layers, FULL, LINEAR)
    agreed(config, mixers, kinds_of_layers(config, "layers_block_type", layers, (LINEAR, FULL)), "layers_block_type")
    networks = _every(config, "expert_layer", layers, SPARSE, DENSE)
    network = gated(config, config.size("intermediate_size"))
    sparse = network
    if config.size("num_experts") > 1:
        sparse = mixture(config, network, router={"scores": "softmax", "normalize": False})
    else:
        config.note("num_experts_per_tok")
        networks = [DENSE] * layers
    kv_heads = config.size("num_key_value_heads")  # the class has no other meaning for a null
    made = {
        LINEAR: {"mixer": _mixer(config)},
        FULL: {"attention": attention(config, head_dim=free_head_dim(config), kv_heads=kv_heads)},
        DENSE: {"feed_forward": network},
        SPARSE: {"feed_forward": sparse},
    }
    common = {"norm": norm, "positions": NO_POSITIONS}
    of_kind = {kind: {"name": name, **common, **made[kind[0]], **made[kind[1]]} for kind, name in NAMES.items()}
    order = [of_kind[kind] for kind in zip(mixers, networks, strict=True)]
    return whole(config, norm, NO_POSITIONS, order)


def _mixer(config: Config) -> Written:
    return {
        "kind": "mamba1",
        "d_inner": config.size("mamba_expand") * config.size("hidden_size"),
        "d_state": config.size("mamba_d_state"),
        "d_conv": config.size("mamba_d_conv"),
        "dt_rank": rank(config, "mamba_dt_rank"),
        "conv_bias": config.flag("mamba_conv_bias"),
        "bias": config.flag("mamba_proj_bias"),
        "inner_norms": True,
        "heads": 1,
        "activation": config.activation("hidden_act"),
        "state_dtype": "fp32",
    }


def _every(config: Config, key: str, layers: int, word: str, other: str) -> list[str]:
    """`word` for the layer at `_offset` of every `_period` layers, and `other` for the rest."""
    period, offset = config.size(f"{key}_period"), config.whole(f"{key}_offset")
    if not 0 <= offset < period:
        what = f"`{key}_offset` {offset} must be from 0 to below `{key}_period` {period}"
        raise config.refusal(what, "change one of the two", f"{key}_offset")
    return [word if layer % period == offset else other for layer in range(layers)]


READERS = {"jamba": read_jamba}
CLASSES = {"jamba": ("JambaForCausalLM",)}
