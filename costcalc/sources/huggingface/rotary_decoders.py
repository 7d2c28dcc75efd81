"""Decoders with RoPE and LayerNorms: StableLM 2, Persimmon, Jais 2, Nemotron and StarCoder2."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    dense,
    floor_width_per_head,
    gated,
    layer_count,
    layer_norm,
    llama_like,
    partial_rotary,
    rotary,
    width_per_head,
)


def read_stablelm(config: Config) -> Written:
    """`qk_layernorm` gives each head its own gains; with `use_parallel_residual` one norm is for both sublayers."""
    head_dim = width_per_head(config)
    own_norm = {"kind": "each_head", "norm": layer_norm(config, bias=False)}
    return _whole(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=head_dim,
        positions=partial_rotary(config, head_dim),
        attention={
            "bias": config.flag("use_qkv_bias"),
            "qk_norm": own_norm if config.flag("qk_layernorm") else None,
        },
        feed_forward=gated(config),
        block={"parallel": "one_norm" if config.flag("use_parallel_residual") else False},
    )


def read_persimmon(config: Config) -> Written:
    """Biases everywhere, and with `qk_layernorm` a LayerNorm of each head's numbers, its bias included."""
    head_dim, norm = width_per_head(config), layer_norm(config)
    return _whole(
        config,
        kv_heads=None,
        head_dim=head_dim,
        positions=partial_rotary(config, head_dim),
        attention={
            "bias": True,
            "out_bias": True,
            "qk_norm": {"kind": "per_head", "norm": norm} if config.flag("qk_layernorm") else None,
        },
        feed_forward=dense(config, bias=True),
    )


def read_jais2(config: Config) -> Written:
    """`attention_bias` and `mlp_bias`, true where they are not written, put biases everywhere."""
    bias, derived = config.flag("attention_bias"), width_per_head(config)
    return _whole(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        positions=rotary(config),
        attention={"bias": bias, "out_bias": bias},
        feed_forward=dense(config, bias=config.flag("mlp_bias")),
    )


def read_nemotron(config: Config) -> Written:
    """RoPE on half of each head, where the file does not say."""
    bias = config.flag("attention_bias")
    head_dim = config.size_or_none("head_dim") or floor_width_per_head(config)
    return _whole(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=head_dim,
        positions=partial_rotary(config, head_dim),
        attention={"bias": bias, "out_bias": bias},
        feed_forward=dense(config, bias=config.flag("mlp_bias")),
        eps="norm_eps",
    )


def read_starcoder2(config: Config) -> Written:
    """`use_bias` puts biases everywhere; `sliding_window` in every layer, null for none."""
    bias, window = config.flag("use_bias"), config.size_or_none("sliding_window")
    config.note("scale_attention_softmax_in_fp32")  # a remark of the code before it
    config.expect("mlp_type", None, "default")
    config.expect("norm_type", None, "layer_norm")
    config.layer_types(layer_count(config), (FULL if window is None else SLIDING,))
    return _whole(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        positions=rotary(config),
        attention={"bias": bias, "out_bias": bias},
        feed_forward=dense(config, bias=bias),
        eps="norm_epsilon",
        window=window,
    )


def _whole(
    config: Config,
    *,
    kv_heads: int | None,
    head_dim: int,
    positions: Written,
    attention: Written,
    feed_forward: Written,
    block: Written | None = None,
    eps: str = "layer_norm_eps",
    window: int | None = None,
) -> Written:
    layers = layer_count(config)
    return llama_like(
        config,
        kv_heads=kv_heads,
        head_dim=head_dim,
        windows=[window] * layers,
        positions=[positions] * layers,
        norm=layer_norm(config, eps),
        attention=attention,
        feed_forward=feed_forward,
        block=block,
    )


READERS = {
    "jais2": read_jais2,
    "nemotron": read_nemotron,
    "persimmon": read_persimmon,
    "stablelm": read_stablelm,
    "starcoder2": read_starcoder2,
}
CLASSES = {
    "jais2": ("Jais2ForCausalLM",),
    "nemotron": ("NemotronForCausalLM",),
    "persimmon": ("PersimmonForCausalLM",),
    "stablelm": ("StableLmForCausalLM",),
    "starcoder2": ("Starcoder2ForCausalLM",),
}
