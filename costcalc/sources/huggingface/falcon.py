"""FalconForCausalLM (arXiv 2311.16867): RoPE or ALiBi, one, several or all key/value heads, in parallel or in sequence.

falcon-7b has one key/value head and one norm for both sublayers; falcon-40b (`new_decoder_architecture`)
`num_kv_heads` of them and two norms; falcon-rw is of GPT-3's kind, with ALiBi. Their first files call themselves
RefinedWebModel and, where they are of the new architecture, RefinedWeb.
"""

from __future__ import annotations

from typing import Literal

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, outline, rotary, width_per_head

Parallel = Literal[False, "one_norm", "two_norms"]


def read_falcon(config: Config) -> Written:
    """`bias` puts biases on all matrices of a layer; `ffn_hidden_size` null means four times the width."""
    config.expect("apply_residual_connection_post_layernorm", None, False)
    config.expect("ff_factor", None, 4)  # a remark beside `ffn_hidden_size` in falcon-11B's file
    width, head_dim = config.size("hidden_size"), width_per_head(config)
    inner, bias = config.size_or_none("ffn_hidden_size"), config.flag("bias")
    norm: Written = {"kind": "layernorm", "eps": config.number("layer_norm_epsilon")}
    positions = _positions(config, head_dim)
    layer: Written = {
        "norm": norm,
        "parallel": _parallel(config),
        "positions": positions,
        "repeat": layer_count(config),
        "attention": {
            "kind": "grouped_query",
            "heads": config.size("num_attention_heads"),
            "kv_heads": _kv_heads(config),
            "bias": bias,
            "out_bias": bias,
        },
        "feed_forward": {
            "kind": "dense",
            "d_ff": 4 * width if inner is None else inner,
            "activation": config.activation("activation"),
            "bias": bias,
        },
    }
    return {**outline(config), "decoder": {"norm": norm, "positions": positions, "layers": [layer]}}


def _positions(config: Config, head_dim: int) -> Written:
    """Under ALiBi the sum of score and bias is scaled, so the slopes are as well."""
    if config.flag("alibi"):
        return {"kind": "alibi", "slope_scale": head_dim**-0.5}
    if head_dim % 2:
        raise config.refusal(f"RoPE rotates pairs, and a head of {head_dim} is odd", "change one size", "hidden_size")
    return rotary(config)


def _kv_heads(config: Config) -> int | None:
    """Outside the new architecture `num_kv_heads` says nothing, and is as many as heads in published files."""
    heads, kv_heads = config.size("num_attention_heads"), config.size_or_none("num_kv_heads")
    multi_query = config.flag("multi_query")
    if config.flag("new_decoder_architecture"):
        return kv_heads
    built = 1 if multi_query else None
    if kv_heads not in (None, heads, built):
        says = "one key/value head" if multi_query else "as many key/value heads as heads"
        raise config.refusal(
            f"`num_kv_heads` {kv_heads}, but `multi_query` is {str(multi_query).lower()}: {says}",
            'write "num_kv_heads": null, or "new_decoder_architecture": true',
            "num_kv_heads",
        )
    return built


def _parallel(config: Config) -> Parallel:
    """`num_ln_in_parallel_attn` norms before both sublayers; two by default in the new architecture, else one."""
    new, norms = config.flag("new_decoder_architecture"), config.size_or_none("num_ln_in_parallel_attn")
    if not config.flag("parallel_attn"):
        if new:
            what, hint = "`new_decoder_architecture` is of parallel layers", 'write "parallel_attn": true'
            raise config.refusal(what, hint, "parallel_attn")
        return False
    if norms not in ((None, 1, 2) if new else (None, 1)):
        what = f"`num_ln_in_parallel_attn` {norms} is not what the class can run"
        raise config.refusal(what, 'write "num_ln_in_parallel_attn": null', "num_ln_in_parallel_attn")
    return "two_norms" if new and norms != 1 else "one_norm"


READERS = {"RefinedWeb": read_falcon, "RefinedWebModel": read_falcon, "falcon": read_falcon}
CLASSES = {
    "RefinedWeb": ("RWForCausalLM",),
    "RefinedWebModel": ("RWForCausalLM",),
    "falcon": ("FalconForCausalLM",),
}
CODE = dict.fromkeys(("RefinedWeb", "RefinedWebModel"), ("modelling_rw", "modeling_falcon"))
