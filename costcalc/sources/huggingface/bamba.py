"""BambaForCausalLM: Mamba-2 (arXiv 2405.21060) in all layers but a few with attention, a gated network in each."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, free_head_dim, gated, layer_count, rms_norm
from costcalc.sources.huggingface.mamba import check_groups, check_heads
from costcalc.sources.huggingface.recurrent import agree
from costcalc.sources.huggingface.sparse import attention, numbered, rotations, whole

ROTATED = 0.5
"""The part of each head that is rotated: the class has no other."""


def read_bamba(config: Config) -> Written:
    """`attn_layer_indices` are the layers with attention; `attention_bias` is on its output as well."""
    layers, norm, head_dim = layer_count(config), rms_norm(config), free_head_dim(config)
    positions = rotations(config, head_dim, theta=1e4, part=ROTATED)
    agree(config, attn_rotary_emb=positions["rotary_dim"])
    bias = config.flag("attention_bias")
    common: Written = {
        "norm": norm,
        "positions": positions,
        "feed_forward": gated(config, bias=config.flag("mlp_bias")),
    }
    inner = config.size("mamba_expand") * config.size("hidden_size")
    mixing = {"name": "mamba", **common, "mixer": mamba2(config, inner)}
    core = attention(config, head_dim=head_dim, bias=bias, out_bias=bias)
    attending = {"name": "attention", **common, "attention": core}
    there = numbered(config, "attn_layer_indices", layers)
    return whole(config, norm, positions, [attending if layer in there else mixing for layer in range(layers)])


def mamba2(config: Config, inner: int, *, out_bias: bool | None = None, **more: bool) -> Written:
    """The mixer of the classes that write its sizes as `mamba_*`, of the width inside that they have.

    out_bias: None where `mamba_proj_bias` is for both projections.
    """
    heads, groups, auto = config.size("mamba_n_heads"), config.size("mamba_n_groups"), config["mamba_d_head"] == "auto"
    head_dim = max(inner // heads, 1) if auto else config.size("mamba_d_head")
    check_heads(config, inner, heads=("mamba_n_heads", heads), head_dim=("mamba_d_head", head_dim))
    check_groups(config, heads, groups=("mamba_n_groups", groups))
    bias = config.flag("mamba_proj_bias")
    return {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": head_dim,
        "d_state": config.size("mamba_d_state"),
        "groups": groups,
        "d_conv": config.size("mamba_d_conv"),
        "conv_bias": config.flag("mamba_conv_bias"),
        "bias": bias,
        "out_bias": bias if out_bias is None else out_bias,
        "gated_norm": True,
        "norm_before_gate": False,
        "chunk": config.size("mamba_chunk_size"),
        "activation": config.activation("hidden_act"),
        "state_dtype": "fp32",
        **more,
    }


READERS = {"bamba": read_bamba}
CLASSES = {"bamba": ("BambaForCausalLM",)}
