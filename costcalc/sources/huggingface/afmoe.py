"""AfmoeForCausalLM (Arcee's Trinity): four norms a layer, the heads' outputs behind a gate, windows with rotations in
three layers of four and layers without positions that see all.
"""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    NO_POSITIONS,
    SLIDING,
    Written,
    layer_count,
    rms_norm,
    windows_by_type,
)
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    count,
    dense_first,
    gated,
    head_size,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    shared_experts,
    whole,
)


def read_afmoe(config: Config) -> Written:
    """`attention_bias` is on the output as well, never on the gate. `mup_enabled` multiplies the embeddings by the root
    of the width.
    """
    config.note("num_expert_groups", "num_limited_groups", "use_grouped_mm")
    layers, bias, window = layer_count(config), config.flag("attention_bias"), config.size_or_none("sliding_window")
    types = _types(config, layers)
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    norm, head_dim, networks = rms_norm(config), head_size(config), _networks(config)
    positions = rotations(config, head_dim, theta=1e4)
    core = {"bias": bias, "out_bias": bias, "qk_norm": per_head(norm), "output_gate": "per_channel"}

    def layer_of(word: str, kind: str) -> Written:
        slides = word == SLIDING
        return {
            "norm": norm,
            "norms": "sandwich",
            "positions": positions if slides else NO_POSITIONS,
            "attention": attention(config, head_dim=head_dim, window=window if slides else None, **core),
            "feed_forward": networks[kind],
        }

    kinds = list(zip(types, dense_first(layers, count(config, "num_dense_layers")), strict=True))
    written = whole(config, norm, positions, layers_by_kind(kinds, layer_of))
    scaled = config["mup_enabled"] is not None and config.flag("mup_enabled")
    return {**written, "embedding": {"scale": math.sqrt(written["d_model"])}} if scaled else written


def _networks(config: Config) -> dict[str, Written]:
    """The correction is a parameter that is not trained."""
    config.expect("score_func", None, "sigmoid")
    config.expect("route_norm", None, True)
    config.expect("n_group", None, 1)
    config.expect("topk_group", None, 1)
    width, scale = config.size("moe_intermediate_size"), config.number_or_none("route_scale") or 1.0
    shared = shared_experts(config, "num_shared_experts", width)
    router = {"correction": "frozen", "scores": "sigmoid", "scale": scale}
    return {
        DENSE: gated(config, config.size("intermediate_size")),
        SPARSE: mixture(config, gated(config, width), router=router, shared=shared),
    }


def _types(config: Config, layers: int) -> list[str]:
    """`layer_types`, else every `global_attn_every_n_layers`-th sees all; the class writes both: the list counts."""
    types, every = config.layer_types(layers, (FULL, SLIDING)), config.size("global_attn_every_n_layers")
    return types or [SLIDING if (layer + 1) % every else FULL for layer in range(layers)]


READERS = {"afmoe": read_afmoe}
CLASSES = {"afmoe": ("AfmoeForCausalLM",)}
