"""GPT-NeoX (arXiv 2204.06745), Pythia and their kin: RoPE on a quarter of each head, LayerNorms and biases."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    Written,
    dense,
    layer_count,
    layer_norm,
    llama_like,
    partial_rotary,
    width_per_head,
)


def read_gpt_neox(config: Config) -> Written:
    """`use_parallel_residual`: attention and network side by side, a norm before each. The network has its biases in
    any case, the attention with `attention_bias`.
    """
    layers, bias = layer_count(config), config.flag("attention_bias")
    head_dim = width_per_head(config)
    return llama_like(
        config,
        kv_heads=None,
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        norm=layer_norm(config),
        attention={"bias": bias, "out_bias": bias},
        feed_forward=dense(config, bias=True),
        block={"parallel": "two_norms" if config.flag("use_parallel_residual") else False},
    )


def read_gpt_neox_japanese(config: Config) -> Written:
    """In sequence, with one bias in all: on the output of the last layer's attention."""
    layers, width = layer_count(config), config.size("hidden_size")
    head_dim = width_per_head(config)
    network = {
        "kind": "dense",
        "d_ff": width * config.size("intermediate_multiple_size"),
        "activation": config.activation("hidden_act"),
    }
    written = llama_like(
        config,
        kv_heads=None,
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[partial_rotary(config, head_dim)] * layers,
        norm=layer_norm(config),
        attention={},
        feed_forward=network,
    )
    (layer,) = written["decoder"]["layers"]
    last = {**layer, "name": "last", "repeat": 1, "attention": {**layer["attention"], "out_bias": True}}
    before = [{**layer, "repeat": layers - 1}] if layers > 1 else []
    return {**written, "decoder": {**written["decoder"], "layers": [*before, last]}}


READERS = {"gpt_neox": read_gpt_neox, "gpt_neox_japanese": read_gpt_neox_japanese}
CLASSES = {"gpt_neox": ("GPTNeoXForCausalLM",), "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM",)}
