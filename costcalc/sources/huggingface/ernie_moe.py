"""Ernie4_5_MoeForCausalLM (ERNIE 4.5): experts in a stretch of the layers, shared ones, a correction for choosing."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    count,
    gated,
    head_size,
    later_tokens,
    layers_by_kind,
    mixture,
    rotations,
    shared_experts,
    whole,
)


def read_ernie4_5_moe(config: Config) -> Written:
    """`use_bias` is on attention, on the networks for all tokens and on the head, never on the routed experts. The
    correction is a parameter that is not trained.
    """
    config.note("moe_capacity", "moe_norm_min", "moe_gate")
    config.expect("moe_use_aux_free", None, True)
    config.expect("use_rmsnorm", None, True)
    layers, bias = layer_count(config), config.flag("use_bias")
    config.layer_types(layers, (FULL,))
    norm, head_dim, width = rms_norm(config), head_size(config), config.size("moe_intermediate_size")
    positions = rotations(config, head_dim, theta=500_000.0)
    networks = {
        DENSE: gated(config, config.size("intermediate_size"), bias=bias),
        SPARSE: mixture(
            config,
            gated(config, width),
            router={"correction": "frozen"},
            shared=shared_experts(config, "moe_num_shared_experts", width, bias=bias),
            experts="moe_num_experts",
            used="moe_k",
        ),
    }

    def layer_of(kind: str) -> Written:
        return {
            "norm": norm,
            "positions": positions,
            "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias),
            "feed_forward": networks[kind],
        }

    kinds = layers_by_kind([(kind,) for kind in _kinds(config, layers)], layer_of)
    head = {"kind": "vocabulary", "bias": bias}
    return {**whole(config, norm, positions, kinds, head=head), **later_tokens(config, "num_nextn_predict_layers")}


def _kinds(config: Config, layers: int) -> list[str]:
    """Experts in every `moe_layer_interval`-th layer from `moe_layer_start_index` to `moe_layer_end_index`; -1 is the
    last layer.
    """
    first, last = count(config, "moe_layer_start_index"), config.whole("moe_layer_end_index")
    every, last = config.size("moe_layer_interval"), layers - 1 if last == -1 else last
    return [SPARSE if first <= layer <= last and (layer + 1) % every == 0 else DENSE for layer in range(layers)]


READERS = {"ernie4_5_moe": read_ernie4_5_moe}
CLASSES = {"ernie4_5_moe": ("Ernie4_5_MoeForCausalLM",)}
