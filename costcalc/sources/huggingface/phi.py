"""Phi-1, 1.5 and 2 (arXiv 2309.05463): parallel blocks with biases everywhere, in files of two kinds. Phi-3 and
4 (2404.14219): Llama-like.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    dense,
    floor_width_per_head,
    free_head_dim,
    layer_count,
    layer_norm,
    llama_like,
    partial_rotary,
    width_per_head,
)


def read_phi(config: Config) -> Written:
    """One norm for both sublayers, RoPE on a part of each head, and a bias for each word on the head."""
    layers, head_dim = layer_count(config), floor_width_per_head(config)
    norm = layer_norm(config)
    config.expect("head_dim", None, head_dim)  # with another one, `qk_layernorm` would not fit
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        norm=norm,
        attention={
            "bias": True,
            "out_bias": True,
            "qk_norm": {"kind": "per_head", "norm": norm} if config.flag("qk_layernorm") else None,
        },
        feed_forward=dense(config, bias=True),
        block={"parallel": "one_norm"},
    )
    return {**written, "head": {"kind": "vocabulary", "bias": True}}


def read_phi3(config: Config) -> Written:
    """No bias at all; `sliding_window` in every layer, null for none."""
    layers, head_dim = layer_count(config), free_head_dim(config)
    window = config.size_or_none("sliding_window")
    config.layer_types(layers, (FULL if window is None else SLIDING,))
    for key in ("full_attn_mod", "interpolate_factor"):  # of Phi-4-mini's file: at 1 they say nothing
        config.expect(key, None, 1)
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=head_dim,
        windows=[window] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        attention={},
    )


def read_phi_msft(config: Config) -> Written:
    """Phi-1 to 2 as they were first published, under GPT-2's names; `rotary_dim` numbers of each head are turned."""
    config.note("flash_attn", "flash_rotary", "fused_dense", "img_processor", "embd_layer")
    config.expect("tie_word_embeddings", False)
    heads, width, layers = config.size("num_attention_heads"), config.size("hidden_size"), layer_count(config)
    head_dim, turned = width_per_head(config), config.size("rotary_dim")
    if turned > head_dim or turned % 2:
        what = f"RoPE rotates pairs, and `rotary_dim` is {turned} of a head of {head_dim}"
        raise config.refusal(what, "write an even number, up to the head's", "rotary_dim")
    inner = config.size_or_none("n_inner")
    activation = config.activation("activation_function")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("n_head_kv") or heads,
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[{"kind": "rope", "rotary_dim": turned}] * layers,
        norm=layer_norm(config, "layer_norm_epsilon"),
        attention={"bias": True, "out_bias": True},
        feed_forward={"kind": "dense", "d_ff": inner or 4 * width, "activation": activation, "bias": True},
        block={"parallel": "one_norm"},
    )
    return {**written, "head": {"kind": "vocabulary", "bias": True}}


READERS = {"phi": read_phi, "phi-msft": read_phi_msft, "phi3": read_phi3}
CLASSES = {"phi": ("PhiForCausalLM",), "phi-msft": ("PhiForCausalLM",), "phi3": ("Phi3ForCausalLM",)}
CODE = {"phi-msft": ("modeling_phi",)}
