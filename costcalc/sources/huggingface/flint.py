"""FlintForCausalLM and Kolibri1ForCausalLM: many small experts and a shared one, windows with rotations in most layers,
layers without positions that see all; Flint with sinks, Kolibri with four norms a layer.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    layer_count,
    rms_norm,
    types_by_period,
    windows_by_type,
)
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    numbered,
    per_head,
    rotations,
    whole,
)


def read_flint(config: Config) -> Written:
    """Where `layer_types` is null: full in the first two layers, in every fourth from the second on, and in the last.
    Dense in the first two where `mlp_only_layers` is null. `attention_bias` is on the output as well.
    """
    layers, bias = layer_count(config), config.flag("attention_bias")
    full = {0, 1, layers - 1, *range(1, layers, 4)}
    types = config.layer_types(layers, (FULL, SLIDING))
    types = types or [FULL if layer in full else SLIDING for layer in range(layers)]
    step = config.size("decoder_sparse_step")
    dense = {0, 1} if config["mlp_only_layers"] is None else numbered(config, "mlp_only_layers", layers)
    kinds = [DENSE if layer in dense or (layer + 1) % step else SPARSE for layer in range(layers)]
    router = {"scores": "sigmoid", "normalize": config.flag("norm_topk_prob")}
    networks = {DENSE: gated(config, config.size("intermediate_size")), SPARSE: _mixture(config, router)}
    core = {"bias": bias, "out_bias": bias, "sinks": True}
    return _read(config, types, kinds, networks, core)


def read_kolibri1(config: Config) -> Written:
    """Where `layer_types` is null every fifth layer sees all. The correction is added before the sigmoid, which changes
    no count. All layers are rotated where `sliding_window` is null.
    """
    config.note("intermediate_size")  # no layer is dense
    layers, normalize = layer_count(config), config.flag("norm_topk_prob")
    types = types_by_period(config, 5, full=-1)
    router = {"correction": "buffer", "scores": "sigmoid", "normalize": normalize}
    networks = {SPARSE: _mixture(config, router)}
    turned = config["sliding_window"] is None
    return _read(config, types, [SPARSE] * layers, networks, {}, norms="sandwich", turned=turned)


def _mixture(config: Config, router: Written) -> Written:
    shared = gated(config, config.size("shared_expert_intermediate_size"))
    return mixture(config, gated(config, config.size("moe_intermediate_size")), router=router, shared=shared)


def _read(
    config: Config,
    types: list[str],
    kinds: list[str],
    networks: dict[str, Written],
    core: Written,
    *,
    norms: str = "pre",
    turned: bool = False,
) -> Written:
    """QK-norm per head; `turned`: whether layers that see all are rotated as well."""
    window, norm, head_dim = config.size_or_none("sliding_window"), rms_norm(config), head_size(config)
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    positions = rotations(config, head_dim, theta=1e4)

    def layer_of(word: str, kind: str) -> Written:
        slides = word == SLIDING
        reach = window if slides else None
        return {
            "norm": norm,
            "norms": norms,
            "positions": positions if slides or turned else NO_POSITIONS,
            "attention": attention(config, head_dim=head_dim, qk_norm=per_head(norm), window=reach, **core),
            "feed_forward": networks[kind],
        }

    return whole(config, norm, positions, layers_by_kind(list(zip(types, kinds, strict=True)), layer_of))


READERS = {"flint": read_flint, "kolibri1": read_kolibri1}
CLASSES = {"flint": ("FlintForCausalLM",), "kolibri1": ("Kolibri1ForCausalLM",)}
