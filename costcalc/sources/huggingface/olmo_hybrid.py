"""OlmoHybridForCausalLM: OLMo-3's attention in every fourth layer, with norms on its outputs; Gated DeltaNet in the
others, with norms before it.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    Written,
    free_head_dim,
    gated,
    layer_count,
    rms_norm,
    rope_mapping,
)
from costcalc.sources.huggingface.delta import NAMES, delta_net
from costcalc.sources.huggingface.recurrent import LINEAR
from costcalc.sources.huggingface.sparse import ROPE_KEYS, attention, layers_by_kind, rotations, whole

REMARKS = "linear_a_log_max linear_a_log_min linear_dt_init_floor linear_dt_max linear_dt_min"
"""Of what the weights are drawn from before training."""


def read_olmo_hybrid(config: Config) -> Written:
    """QK-norm over the whole projection; `attention_bias` is on the output as well. A file that writes the base of
    rotations as null has none.
    """
    config.note(*REMARKS.split())
    norm, head_dim, bias = rms_norm(config), free_head_dim(config), config.flag("attention_bias")
    positions = _positions(config, head_dim)
    qk_norm = {"kind": "projection", "norm": norm}
    core = attention(config, head_dim=head_dim, bias=bias, out_bias=bias, qk_norm=qk_norm)
    common: Written = {"norm": norm, "feed_forward": gated(config)}
    mixer = _mixer(config)

    def layer_of(word: str) -> Written:
        if word == NAMES[FULL]:
            return {**common, "norms": "output", "positions": positions, "attention": core}
        return {**common, "norms": "pre", "positions": NO_POSITIONS, "mixer": mixer}

    kinds = [(NAMES[word],) for word in _types(config, layer_count(config))]
    return whole(config, norm, positions, layers_by_kind(kinds, layer_of))


def _types(config: Config, layers: int) -> list[str]:
    """`layer_types`, else every fourth layer attends, or the last one where there are fewer."""
    types = config.layer_types(layers, (LINEAR, FULL))
    if types is None:
        types = [FULL if layer % 4 == 3 else LINEAR for layer in range(layers)]
        types = types if FULL in types else [*types[:-1], FULL]
    if len(set(types)) < 2:
        key = "layer_types" if "layer_types" in config.data else "num_hidden_layers"
        raise config.refusal(f"all layers are {types[0]}: the class wants both kinds", "write two kinds of layers", key)
    return types


def _positions(config: Config, head_dim: int) -> Written:
    key, new = "rope_theta", rope_mapping(config)
    if key in new and new[key] is None and config.values.get(key) is None:
        config.note(*ROPE_KEYS)
        return NO_POSITIONS
    return rotations(config, head_dim, theta=1e4)


def _mixer(config: Config) -> Written:
    """As many heads as the attention has, keys of three quarters of the width over them, values of twice the keys'
    numbers, where the keys of those are null.
    """
    every = config.size("num_attention_heads")
    heads = config.size_or_none("linear_num_value_heads") or every
    key_heads = config.size_or_none("linear_num_key_heads") or every
    key_dim = config.size_or_none("linear_key_head_dim") or max(3 * config.size("hidden_size") // (4 * key_heads), 1)
    value_dim = config.size_or_none("linear_value_head_dim") or 2 * key_dim
    double = config.flag("linear_allow_neg_eigval")
    sizes = {"heads": heads, "key_heads": key_heads, "key_dim": key_dim, "value_dim": value_dim}
    return delta_net(config, **sizes, double_beta=double)


READERS = {"olmo_hybrid": read_olmo_hybrid}
CLASSES = {"olmo_hybrid": ("OlmoHybridForCausalLM",)}
