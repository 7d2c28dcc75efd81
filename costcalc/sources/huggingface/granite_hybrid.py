"""GraniteMoeHybridForCausalLM (Granite 4): Mamba-2 or attention in a layer, experts with a network for all tokens
beside them, or that network alone; positions only where they are asked for.
"""

from __future__ import annotations

from costcalc.sources.huggingface.bamba import mamba2
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written, free_head_dim, layer_count, rms_norm
from costcalc.sources.huggingface.recurrent import LINEAR, kinds_of_layers
from costcalc.sources.huggingface.sparse import ROPE_KEYS, attention, gated, mixture, rotations, whole, whole_number


def read_granitemoehybrid(config: Config) -> Written:
    """All layers are recurrent where `layer_types` is null; `attention_bias` is on the output as well."""
    config.note("init_method")
    config.expect("normalization_function", None, "rmsnorm")
    layers, norm, head_dim = layer_count(config), rms_norm(config), free_head_dim(config)
    positions, bias = _positions(config, head_dim), config.flag("attention_bias")
    common: Written = {
        "norm": norm,
        "positions": positions,
        "residual_scale": _constant(config, "residual_multiplier"),
        "feed_forward": _network(config),
    }
    inner = config.size("mamba_expand") * config.size("hidden_size")
    scale = _constant(config, "attention_multiplier")
    core = attention(config, head_dim=head_dim, bias=bias, out_bias=bias, scale=scale)
    made = {
        LINEAR: {"name": "mamba", **common, "mixer": mamba2(config, inner)},
        FULL: {"name": "attention", **common, "attention": core},
    }
    kinds = kinds_of_layers(config, "layer_types", layers, (LINEAR, FULL)) or [LINEAR] * layers
    return whole(
        config,
        norm,
        positions,
        [made[kind] for kind in kinds],
        embedding={"scale": _constant(config, "embedding_multiplier")},
        head={"kind": "vocabulary", "scale": 1 / _constant(config, "logits_scaling")},
    )


def _positions(config: Config, head_dim: int) -> Written:
    """`position_embedding_type` "rope" asks for them."""
    config.expect("position_embedding_type", None, "nope", "rope")
    if config["position_embedding_type"] == "rope":
        return rotations(config, head_dim, theta=1e4)
    config.note(*ROPE_KEYS)
    return NO_POSITIONS


def _network(config: Config) -> Written:
    """`shared_intermediate_size` wide for all tokens; no expert beside where `num_local_experts` is 0."""
    shared = gated(config, config.size("shared_intermediate_size"))
    if whole_number(config, "num_local_experts") == 0:
        config.note("num_experts_per_tok", "intermediate_size")
        return shared
    expert, router = gated(config, config.size("intermediate_size")), {"scores": "softmax_of_chosen"}
    return mixture(config, expert, router=router, shared=shared, experts="num_local_experts")


def _constant(config: Config, key: str) -> float:
    config.note(key)
    return config.number_or_none(key) or 1.0


READERS = {"granitemoehybrid": read_granitemoehybrid}
CLASSES = {"granitemoehybrid": ("GraniteMoeHybridForCausalLM",)}
