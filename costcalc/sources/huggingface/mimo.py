"""MiMoV2FlashForCausalLM (Xiaomi's MiMo-V2-Flash): layers with a window have sinks and twice the key/value heads of
those without one; value heads have a size of their own; a mixture after the first layer.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    agreed,
    attention,
    corrected_router,
    dense_first,
    gated,
    head_size,
    layers_by_kind,
    marked,
    mixture,
    rotations,
    whole,
    words,
)

PART = 0.334
"""Of a head that is rotated: 64 of 192 numbers."""


def read_mimo_v2_flash(config: Config) -> Written:
    """Published files spell out under older names what the class builds: patterns as lists of 0 and 1, sizes with
    `swa_` for layers with a window. `attention_bias` is not on the output. Values are multiplied by a constant.
    """
    config.note("attention_value_scale")
    config.expect("n_shared_experts", None, 0)
    config.expect("add_swa_attention_sink_bias", None, True)
    config.expect("add_full_attention_sink_bias", None, False)
    layers = layer_count(config)
    eps = "layernorm_epsilon" if "layernorm_epsilon" in config.data else "rms_norm_eps"
    config.note("layernorm_epsilon")
    norm: Written = {"kind": "rmsnorm", "eps": config.number(eps)}
    positions = {word: _rotary(config, word) for word in (FULL, SLIDING)}
    attentions = {word: _attention(config, word) for word in (FULL, SLIDING)}
    expert = gated(config, config.size("moe_intermediate_size"))
    networks = {
        DENSE: gated(config, config.size("intermediate_size")),
        SPARSE: mixture(config, expert, router=corrected_router(config), experts="n_routed_experts"),
    }

    def layer_of(word: str, kind: str) -> Written:
        return {
            "norm": norm,
            "positions": positions[word],
            "attention": attentions[word],
            "feed_forward": networks[kind],
        }

    kinds = list(zip(_types(config, layers), _sparse(config, layers), strict=True))
    return whole(config, norm, positions[FULL], layers_by_kind(kinds, layer_of))


def _attention(config: Config, word: str) -> Written:
    head_dim, v_dim, bias = head_size(config), config.size("v_head_dim"), config.flag("attention_bias")
    common = {"bias": bias, "v_dim": v_dim}
    if word == FULL:
        return attention(config, head_dim=head_dim, window=None, **common)
    heads, kv_heads = config.size("num_attention_heads"), 2 * config.size("num_key_value_heads")
    built = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "v_head_dim": v_dim}
    named = {"heads": "num_attention_heads", "kv_heads": "num_key_value_heads"}
    for part, size in built.items():
        config.expect(f"swa_{named.get(part, part)}", None, size)
    common |= {"window": _window(config), "sinks": True}
    return {**attention(config, head_dim=head_dim, **common), "kv_heads": kv_heads}


def _window(config: Config) -> int:
    """`sliding_window` tokens, the query's own included; the older `sliding_window_size` does not include it."""
    before = config.size_or_none("sliding_window_size")
    config.expect("attention_chunk_size", None, before)  # a third name in published files, for a kernel
    config.note("sliding_window")
    return config.size("sliding_window") if before is None else before + 1


def _rotary(config: Config, word: str) -> Written:
    """Bases of 5,000,000 and, with a window, 10,000, which the older files hold in `swa_rope_theta`."""
    config.note("swa_rope_theta")
    head_dim = head_size(config)
    written = rotations(config, head_dim, theta=5e6 if word == FULL else 1e4, part=PART, word=word)
    old = config.values.get("swa_rope_theta")
    nested = config.values.get("rope_parameters") or config.values.get("rope_scaling")
    if word == FULL or (isinstance(nested, dict) and word in nested):
        return written
    return {**written, "theta": 1e4 if old is None else old}


def _types(config: Config, layers: int) -> list[str]:
    """`layer_types` or `hybrid_layer_pattern`, else every sixth layer and the first without a window."""
    written = config.layer_types(layers, (FULL, SLIDING))
    old = marked(config, "hybrid_layer_pattern", layers, off=FULL, on=SLIDING)
    counted = [SLIDING if layer and (layer + 1) % 6 else FULL for layer in range(layers)]
    return agreed(config, written, old, "hybrid_layer_pattern") or counted


def _sparse(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types` or `moe_layer_freq`, else all but the first."""
    written = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    old = marked(config, "moe_layer_freq", layers, off=DENSE, on=SPARSE)
    return agreed(config, written, old, "moe_layer_freq") or dense_first(layers, 1)


READERS = {"mimo_v2_flash": read_mimo_v2_flash}
CLASSES = {"mimo_v2_flash": ("MiMoV2FlashForCausalLM",)}
