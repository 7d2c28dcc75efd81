"""Decoders out of fairseq: OPT (arXiv 2205.01068), XGLM (2112.10668) and BioGPT (2210.10341).

Biases everywhere, multi-head attention; position tables begin with two rows that no position uses.
"""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count

OFFSET = 2
NORM: Written = {"kind": "layernorm", "eps": 1e-5}
"""What the classes build: no key holds the eps."""


def read_opt(config: Config) -> Written:
    """Rows of `word_embed_proj_dim` where that is not the width are projected to it, and back before the head (350m).

    `do_layer_norm_before` false: norms after the residual sums, and none on top. `_remove_final_layer_norm`: no norm on
    top in any case. `enable_bias` and `layer_norm_elementwise_affine` may leave all biases out, or the norms' numbers.
    """
    config.expect("output_projection", None, True)  # a remark in published files
    before, bias = config.flag("do_layer_norm_before"), config.flag("enable_bias")
    has_top = not config.flag("_remove_final_layer_norm")
    has_numbers = config.flag("layer_norm_elementwise_affine")
    norm = {**NORM, "weight": has_numbers, "bias": has_numbers}
    width, positions = config.size("hidden_size"), config.size("max_position_embeddings")
    narrow = config.size_or_none("word_embed_proj_dim")
    written = _whole(
        config,
        width=width,
        heads=config.size("num_attention_heads"),
        d_ff=config.size("ffn_dim"),
        activation=config.activation("activation_function"),
        layers=layer_count(config),
        norm=norm,
        positions={"kind": "learned", "length": positions + OFFSET, "offset": OFFSET},
        bias=bias,
        norms="pre" if before else "post",
    )
    written["decoder"]["final_norm"] = before and has_top
    if narrow in (None, width):
        return written
    if not written["tie_embeddings"]:
        what = f"a head of its own over `word_embed_proj_dim` {narrow} is not read"
        raise config.refusal(what, 'write "tie_word_embeddings": true', "tie_word_embeddings")
    return {**written, "embedding": {"width": narrow, "project": "before"}}


def read_xglm(config: Config) -> Written:
    """Sinusoids, which no checkpoint holds; `scale_embedding` multiplies the rows by the root of the width."""
    config.expect("add_cross_attention", False)
    width = config.size("d_model")
    written = _whole(
        config,
        width=width,
        heads=config.size("attention_heads"),
        d_ff=config.size("ffn_dim"),
        activation=config.activation("activation_function"),
        layers=layer_count(config, "num_layers"),
        norm=NORM,
        positions={"kind": "sinusoidal"},
    )
    return {**written, "embedding": {"scale": math.sqrt(width) if config.flag("scale_embedding") else 1.0}}


def read_biogpt(config: Config) -> Written:
    """A learned table of positions; rows of words times the root of the width, as in XGLM."""
    width, positions = config.size("hidden_size"), config.size("max_position_embeddings")
    written = _whole(
        config,
        width=width,
        heads=config.size("num_attention_heads"),
        d_ff=config.size("intermediate_size"),
        activation=config.activation("hidden_act"),
        layers=layer_count(config),
        norm=NORM,
        positions={"kind": "learned", "length": positions + OFFSET, "offset": OFFSET},
    )
    return {**written, "embedding": {"scale": math.sqrt(width) if config.flag("scale_embedding") else 1.0}}


def _whole(
    config: Config,
    *,
    width: int,
    heads: int,
    d_ff: int,
    activation: str,
    layers: int,
    norm: Written,
    positions: Written,
    bias: bool = True,
    norms: str = "pre",
) -> Written:
    layer: Written = {
        "norm": norm,
        "norms": norms,
        "positions": positions,
        "repeat": layers,
        "attention": {"kind": "grouped_query", "heads": heads, "bias": bias, "out_bias": bias},
        "feed_forward": {"kind": "dense", "d_ff": d_ff, "activation": activation, "bias": bias},
    }
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": width,
        "context_length": config.size("max_position_embeddings"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "decoder": {"norm": norm, "positions": positions, "layers": [layer]},
    }


READERS = {"biogpt": read_biogpt, "opt": read_opt, "xglm": read_xglm}
CLASSES = {
    "biogpt": ("BioGptForCausalLM",),
    "opt": ("OPTForCausalLM",),
    "xglm": ("XGLMForCausalLM",),
}
