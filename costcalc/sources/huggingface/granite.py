"""Granite: Llama-like, with four multipliers. Granite with windows has sinks besides. HyperCLOVA X has those four too,
and a norm on the output of each sublayer.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    NO_POSITIONS,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rotary,
    types_by_period,
    width_per_head,
    windows_by_type,
)


def read_granite(config: Config) -> Written:
    """Full attention in every layer; logits are divided by `logits_scaling`."""
    layers = layer_count(config)
    return _scaled(
        config,
        head_dim=free_head_dim(config),
        windows=[None] * layers,
        positions=[rotary(config)] * layers,
        attention={"scale": config.number("attention_multiplier")},
        logits=1 / config.number("logits_scaling"),
    )


def read_granite_swa(config: Config) -> Written:
    """Full attention in every fourth layer, the first included; `layer_rope_theta` has a base for each layer, or 0."""
    types = types_by_period(config, 4, full=0)
    window = config.size_or_none("sliding_window")
    return _scaled(
        config,
        head_dim=free_head_dim(config),
        windows=windows_by_type(config, types, window, why_none="`sliding_window` is null"),
        positions=_bases(config, len(types)),
        attention={"scale": config.number("attention_multiplier"), "sinks": True},
        logits=1 / config.number("logits_scaling"),
    )


def read_hyperclovax(config: Config) -> Written:
    """`use_post_norm` puts the norms on the outputs; logits are multiplied by `logits_scaling`."""
    layers, derived = layer_count(config), width_per_head(config)
    return _scaled(
        config,
        head_dim=config.size_or_none("head_dim") or derived,
        windows=[None] * layers,
        positions=[rotary(config)] * layers,
        attention={"scale": config.number_or_none("attention_multiplier")},
        logits=config.number("logits_scaling"),
        norms="sandwich" if config.flag("use_post_norm") else "pre",
    )


def _scaled(
    config: Config,
    *,
    head_dim: int,
    windows: list[int | None],
    positions: list[Written],
    attention: Written,
    logits: float,
    norms: str = "pre",
) -> Written:
    bias = config.flag("attention_bias")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=head_dim,
        windows=windows,
        positions=positions,
        attention={"bias": bias, "out_bias": bias, **attention},
        mlp_bias=config.flag("mlp_bias"),
        norms=norms,
        block={"residual_scale": config.number("residual_multiplier")},
    )
    return {
        **written,
        "embedding": {"scale": config.number("embedding_multiplier")},
        "head": {"kind": "vocabulary", "scale": logits},
    }


def _bases(config: Config, layers: int) -> list[Written]:
    """RoPE of each layer with its base in `layer_rope_theta`; 0 for no positions, null for one base in all layers."""
    key = "layer_rope_theta"
    written, usual = config[key], rotary(config)
    if written is None:
        return [usual] * layers
    is_list = isinstance(written, list) and len(written) == layers
    if not is_list or any(isinstance(theta, bool) or not isinstance(theta, (int, float)) for theta in written):
        what = f"`{key}` must be a list of {layers} numbers, 0 for a layer without RoPE, got {shown(written)}"
        raise config.refusal(what, "one number for each layer", key)
    return [{**usual, "theta": theta} if theta else NO_POSITIONS for theta in written]


READERS = {"granite": read_granite, "granite_swa": read_granite_swa, "hyperclovax": read_hyperclovax}
CLASSES = {
    "granite": ("GraniteForCausalLM",),
    "granite_swa": ("GraniteSWAForCausalLM",),
    "hyperclovax": ("HyperCLOVAXForCausalLM",),
}
