"""Qwen2MoeForCausalLM (arXiv 2407.10671): biases on q, k and v, an expert for all tokens behind a gate of its own;
Qwen3MoeForCausalLM (arXiv 2505.09388) and the text model of Qwen3-VL-MoE: QK-norm per head, no expert for all tokens.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm, windows_by_type
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


def read_qwen2_moe(config: Config) -> Written:
    """`qkv_bias`; under `use_sliding_window` a window in every other layer of the first `max_window_layers`, the first
    layer included, where `layer_types` is not written.
    """
    layers = layer_count(config)
    shared = gated(config, config.size("shared_expert_intermediate_size"))
    network = mixture(
        config,
        gated(config, config.size("moe_intermediate_size")),
        router={"normalize": config.flag("norm_topk_prob")},
        shared=shared,
        shared_gate=True,
    )
    biases = {"bias": config.flag("qkv_bias")}
    config.note("sliding_window")  # void unless the switch is on: the class itself writes 0 then
    window = config.size_or_none("sliding_window") if config.flag("use_sliding_window") else None
    return _read(config, _types(config, layers), window, network, biases, theta=1e4)


def _types(config: Config, layers: int) -> list[str]:
    slides = config.flag("use_sliding_window")
    reach = config.whole("max_window_layers")
    types = config.layer_types(layers, (FULL, SLIDING) if slides else (FULL,))
    counted = [SLIDING if slides and layer % 2 == 0 and layer < reach else FULL for layer in range(layers)]
    return counted if types is None else types


def read_qwen3_moe(config: Config) -> Written:
    """`attention_bias` is on the output as well. Under `use_sliding_window` every layer has the window."""
    config.note("max_window_layers")  # of the dense siblings: this class does not read it
    config.expect("use_qk_norm", None, True)
    config.expect("shared_expert_intermediate_size", None, 0)
    config.note("sliding_window")  # void unless the switch is on
    layers = layer_count(config)
    window = config.size_or_none("sliding_window") if config.flag("use_sliding_window") else None
    word = FULL if window is None else SLIDING
    config.layer_types(layers, (word,))
    return _read_qwen3(config, [word] * layers, window, normalize=config.flag("norm_topk_prob"), theta=1e4)


def read_qwen3_vl_moe_text(config: Config) -> Written:
    """Full attention; the chosen experts' scores are divided by their sum whatever `norm_topk_prob` says."""
    layers = layer_count(config)
    config.note("norm_topk_prob", "max_window_layers", "sliding_window")
    config.expect("use_sliding_window", None, False)
    config.layer_types(layers, (FULL,))
    return _read_qwen3(config, [FULL] * layers, None, normalize=True, theta=5e5)


def _read_qwen3(config: Config, types: list[str], window: int | None, *, normalize: bool, theta: float) -> Written:
    bias, expert = config.flag("attention_bias"), gated(config, config.size("moe_intermediate_size"))
    more = {"bias": bias, "out_bias": bias, "qk_norm": per_head(rms_norm(config))}
    return _read(config, types, window, mixture(config, expert, router={"normalize": normalize}), more, theta=theta)


def _read(
    config: Config, types: list[str], window: int | None, network: Written, core: Written, *, theta: float
) -> Written:
    """A mixture in every `decoder_sparse_step`-th layer, from the last of the first so many on, unless
    `mlp_only_layers` names the layer; else one network of `intermediate_size`.
    """
    layers, step = len(types), config.size("decoder_sparse_step")
    dense = numbered(config, "mlp_only_layers", layers)
    windows_by_type(config, types, window, why_none="`sliding_window` is null")
    head_dim, norm = head_size(config), rms_norm(config)
    positions = rotations(config, head_dim, theta=theta)
    networks = {SPARSE: network, DENSE: gated(config, config.size("intermediate_size"))}

    def layer_of(word: str, kind: str) -> Written:
        reach = window if word == SLIDING else None
        return {
            "norm": norm,
            "positions": positions,
            "attention": attention(config, head_dim=head_dim, window=reach, **core),
            "feed_forward": networks[kind],
        }

    kinds = [DENSE if layer in dense or (layer + 1) % step else SPARSE for layer in range(layers)]
    return whole(config, norm, positions, layers_by_kind(list(zip(types, kinds, strict=True)), layer_of))


READERS = {
    "qwen2_moe": read_qwen2_moe,
    "qwen3_moe": read_qwen3_moe,
    "qwen3_vl_moe_text": read_qwen3_vl_moe_text,
}
CLASSES = {
    "qwen2_moe": ("Qwen2MoeForCausalLM",),
    "qwen3_moe": ("Qwen3MoeForCausalLM",),
    "qwen3_vl_moe_text": ("Qwen3VLMoeForConditionalGeneration",),
}
