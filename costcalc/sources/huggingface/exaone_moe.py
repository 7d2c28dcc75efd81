"""ExaoneMoeForCausalLM (K-EXAONE): three layers with a window and rotations to one without either, DeepSeek-V3's
experts after the first layer.
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
    windows_by_type,
)
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    corrected_router,
    count,
    dense_first,
    gated,
    head_size,
    later_tokens,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    shared_experts,
    whole,
    words,
)


def read_exaone_moe(config: Config) -> Written:
    """No biases; QK-norm per head. Layers that see all are rotated only where `sliding_window` is null."""
    layers, window = layer_count(config), config.size_or_none("sliding_window")
    types = _types(config, layers, window)
    norm, head_dim, width = rms_norm(config), head_size(config), config.size("moe_intermediate_size")
    positions = rotations(config, head_dim, theta=1e4)
    shared = shared_experts(config, "num_shared_experts", width)
    networks = {
        DENSE: gated(config, config.size("intermediate_size")),
        SPARSE: mixture(config, gated(config, width), router=corrected_router(config), shared=shared),
    }

    def layer_of(word: str, kind: str) -> Written:
        slides = word == SLIDING
        return {
            "norm": norm,
            "positions": positions if slides or window is None else NO_POSITIONS,
            "attention": attention(
                config, head_dim=head_dim, qk_norm=per_head(norm), window=window if slides else None
            ),
            "feed_forward": networks[kind],
        }

    kinds = list(zip(types, _sparse(config, layers), strict=True))
    written = whole(config, norm, positions, layers_by_kind(kinds, layer_of))
    return {**written, **later_tokens(config, "num_nextn_predict_layers")}


def _types(config: Config, layers: int, window: int | None) -> list[str]:
    """`layer_types`, else every `sliding_window_pattern`-th layer sees all; a pattern in letters is a remark then."""
    types = config.layer_types(layers, (FULL, SLIDING))
    config.note("sliding_window_pattern")
    if types is None and window is None:
        return [FULL] * layers
    if types is None:
        every = config.size("sliding_window_pattern")
        types = [SLIDING if (layer + 1) % every else FULL for layer in range(layers)]
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    return types


def _sparse(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, else dense in the first `first_k_dense_replace` layers; published files say it twice."""
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    kinds = kinds or dense_first(layers, count(config, "first_k_dense_replace"))
    config.note("first_k_dense_replace")
    config.expect("is_moe_layer", None, [kind == SPARSE for kind in kinds])
    return kinds


READERS = {"exaone_moe": read_exaone_moe}
CLASSES = {"exaone_moe": ("ExaoneMoeForCausalLM",)}
