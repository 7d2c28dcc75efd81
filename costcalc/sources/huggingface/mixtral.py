"""MixtralForCausalLM (arXiv 2401.04088): Mistral with a mixture in every layer, no biases; PhimoeForCausalLM
(Phi-3.5-MoE, arXiv 2404.14219): the same with LayerNorms and, where the file says so, biases.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, SLIDING, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    attention,
    gated,
    head_size,
    mixture,
    rotations,
    whole,
)


def read_mixtral(config: Config) -> Written:
    """Scores of all experts by softmax; those of the chosen are divided by their sum."""
    return _read(config, rms_norm(config), router={"scores": "softmax"})


def read_phimoe(config: Config) -> Written:
    """`attention_bias` is on the output as well. Its SparseMixer (arXiv 2409.12136) masks scores that are far below the
    largest before the softmax, once for each of two experts: a routing of its own, which changes no count.
    """
    bias = config.flag("attention_bias")
    config.expect("num_experts_per_tok", 2)
    written = _read(
        config,
        {"kind": "layernorm", "eps": config.number("rms_norm_eps")},
        router={"scores": "softmax", "normalize": False},
        bias=bias,
        out_bias=bias,
    )
    return {**written, "head": {"kind": "vocabulary", "bias": config.flag("lm_head_bias")}}


def _read(config: Config, norm: Written, *, router: Written, **biases: bool) -> Written:
    """One sliding window for every layer, null for none."""
    layers, window, head_dim = layer_count(config), config.size_or_none("sliding_window"), head_size(config)
    config.layer_types(layers, (FULL if window is None else SLIDING,))
    positions = rotations(config, head_dim, theta=1e6)
    expert = gated(config, config.size("intermediate_size"))
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "attention": attention(config, head_dim=head_dim, window=window, **biases),
        "feed_forward": mixture(config, expert, experts="num_local_experts", router=router),
    }
    return whole(config, norm, positions, [layer] * layers)


READERS = {"mixtral": read_mixtral, "phimoe": read_phimoe}
CLASSES = {"mixtral": ("MixtralForCausalLM",), "phimoe": ("PhimoeForCausalLM", "PhiMoEForCausalLM")}
