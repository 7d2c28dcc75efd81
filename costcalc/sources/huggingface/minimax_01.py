"""MiniMaxForCausalLM (MiniMax-01, arXiv 2501.08313): lightning attention, and attention over all in some layers;
experts in every layer. Each sublayer's input is normed before its residual branches off.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.recurrent import LINEAR, either
from costcalc.sources.huggingface.sparse import (
    agreed,
    attention,
    gated,
    head_size,
    layers_by_kind,
    marked,
    mixture,
    rotations,
    whole,
)

NAMES = {LINEAR: "lightning", FULL: "attention"}
BLOCK = 256
"""Tokens that the published code takes at once, which has no key for it."""


def read_minimax(config: Config) -> Written:
    """`layer_types`, or the older `attn_type_list`, with a 1 for attention; every other layer attends, the first
    included, where neither is there.
    """
    config.expect("postnorm", None, True)
    layers, old = layer_count(config), "attn_type_list"
    listed = marked(config, old, layers, off=LINEAR, on=FULL)
    types = agreed(config, config.layer_types(layers, (LINEAR, FULL)), listed, old)
    types = types or [LINEAR if layer % 2 else FULL for layer in range(layers)]
    factors = {"attention": "full_attn_{}_factor", "lightning": "linear_attn_{}_factor", "mlp": "mlp_{}_factor"}
    return _read(config, types, factors, chunk=config.size("block_size"))


def read_minimax_text_01(config: Config) -> Written:
    """The files of the published code: 1 in `attn_type_list` is attention, `layernorm_*` are the residuals' factors.

    `shared_intermediate_size` 0 is no expert for all tokens.
    """
    config.note("shared_moe_mode")
    config.expect("postnorm", True)
    config.expect("shared_intermediate_size", None, 0)
    layers = layer_count(config)
    types = marked(config, "attn_type_list", layers, off=LINEAR, on=FULL)
    if types is None:
        what = "`attn_type_list` says which layers attend, and nothing stands in for it"
        raise config.refusal(what, "write a 0 or a 1 for each layer", "attn_type_list")
    factors = {
        "attention": "layernorm_full_attention_{}",
        "lightning": "layernorm_linear_attention_{}",
        "mlp": "layernorm_mlp_{}",
    }
    return _read(config, types, factors, chunk=BLOCK)


def _read(config: Config, types: list[str], factors: dict[str, str], *, chunk: int) -> Written:
    """What the layers do, x <- alpha·norm(x) + beta·f(norm(x)), and a norm on top, is a norm of the embeddings and one
    after each sum. `rotary_dim` numbers of a head are rotated where it is written, all of them otherwise.
    """
    config.expect("sliding_window", None)
    norm, head_dim = rms_norm(config), head_size(config)
    turned = config.size_or_none("rotary_dim")
    positions = rotations(config, head_dim, theta=1e6, part=1.0 if turned is None else turned / head_dim)
    expert = gated(config, config.size("intermediate_size"))
    network = mixture(config, expert, router={"scores": "softmax"}, experts="num_local_experts")
    heads, activation = config.size("num_attention_heads"), config.activation("hidden_act")
    sizes = {"heads": heads, "head_dim": head_dim, "chunk": chunk, "activation": activation}
    mixer: Written = {"kind": "lightning", **sizes, "state_dtype": "fp32"}
    kv_heads = config.size("num_key_value_heads")  # a null has no meaning to the class
    core = attention(config, head_dim=head_dim, kv_heads=kv_heads)
    scales = {name: _ratio(config, key) for name, key in factors.items()}

    def layer_of(word: str) -> Written:
        mixed = either(attends=word == NAMES[FULL], attention=core, mixer=mixer, positions=positions)
        return {
            "norm": norm,
            "norms": "post",
            "residual_scale": scales[word] if scales[word] == scales["mlp"] else 1.0,
            **mixed,
            "feed_forward": network,
        }

    order = layers_by_kind([(NAMES[word],) for word in types], layer_of)
    return whole(config, norm, positions, order, embedding={"norm": norm})


def _ratio(config: Config, key: str) -> float:
    """What a sublayer is multiplied by before it is added: beta / alpha, for a norm comes after the sum."""
    alpha, beta = key.format("alpha"), key.format("beta")
    config.note(alpha, beta)
    return (config.number_or_none(beta) or 1.0) / (config.number_or_none(alpha) or 1.0)


READERS = {"minimax": read_minimax, "minimax_m1": read_minimax_text_01, "minimax_text_01": read_minimax_text_01}
CLASSES = {
    "minimax": ("MiniMaxForCausalLM",),
    "minimax_m1": ("MiniMaxM1ForCausalLM",),
    "minimax_text_01": ("MiniMaxText01ForCausalLM",),
}
