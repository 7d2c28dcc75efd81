"""Decoders that are Llama but for a few fields: CWM, Seed-OSS, Arcee, Helium, ERNIE 4.5, Hunyuan, InternLM3,
IQuest-Coder and nanochat.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    Written,
    dense,
    floor_width_per_head,
    free_head_dim,
    layer_count,
    llama_like,
    rms_norm,
    types_by_period,
    width_per_head,
    windows_by_type,
)
from costcalc.sources.huggingface.llama import read_llama


def read_cwm(config: Config) -> Written:
    """A window in all layers but every fourth, the first included; 0 would mean none, but the class builds none such.

    Biases in the network at most (`mlp_bias`).
    """
    derived = width_per_head(config)
    types = types_by_period(config, 4, full=0)
    windows = windows_by_type(config, types, config.size("sliding_window"), why_none="")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        windows=windows,
        attention={},
        mlp_bias=config.flag("mlp_bias"),
    )


def read_seed_oss(config: Config) -> Written:
    """Biases on q, k and v (`attention_bias`), on the output (`attention_out_bias`), in the network (`mlp_bias`)."""
    bias, out_bias = config.flag("attention_bias"), config.flag("attention_out_bias")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=_full(config),
        attention={"bias": bias, "out_bias": out_bias},
        mlp_bias=config.flag("mlp_bias"),
    )


def read_arcee(config: Config) -> Written:
    """Two matrices in the network."""
    bias, derived = config.flag("attention_bias"), width_per_head(config)
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        windows=_full(config),
        attention={"bias": bias, "out_bias": bias},
        feed_forward=dense(config, bias=config.flag("mlp_bias")),
    )


def read_helium(config: Config) -> Written:
    """`attention_bias` is for q, k and v; the output's matrix is square, so the heads have to add up to the width."""
    width, heads, head_dim = config.size("hidden_size"), config.size("num_attention_heads"), config.size("head_dim")
    if heads * head_dim != width:
        what = f"`head_dim` {head_dim} of {heads} heads does not come to `hidden_size` {width}"
        raise config.refusal(what, "change `head_dim`", "head_dim")
    return llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=head_dim,
        windows=_full(config),
        attention={"bias": config.flag("attention_bias")},
        mlp_bias=config.flag("mlp_bias"),
    )


def read_ernie4_5(config: Config) -> Written:
    """`use_bias` puts biases everywhere."""
    bias = config["use_bias"] is not None and config.flag("use_bias")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=_full(config),
        attention={"bias": bias, "out_bias": bias},
        mlp_bias=bias,
    )


def read_hunyuan(config: Config) -> Written:
    """QK-norm, here after positions turn queries and keys, which no count tells from before."""
    bias = config.flag("attention_bias")
    config.expect("use_qk_norm", None, True)
    config.expect("use_cla", None, False)  # layers that share a cache, in other models of this family
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or floor_width_per_head(config),
        windows=_full(config),
        attention={"bias": bias, "out_bias": bias, "qk_norm": {"kind": "per_head", "norm": rms_norm(config)}},
    )


def read_internlm3(config: Config) -> Written:
    """`qkv_bias` and `bias` put biases everywhere, or nowhere: the class has no other."""
    if config.flag("attention_bias") != config.flag("mlp_bias"):
        what = "`qkv_bias` and `bias` differ, and the class has biases everywhere or nowhere"
        raise config.refusal(what, "make the two agree", "attention_bias")
    return read_llama(config)


def read_iquestcoder(config: Config) -> Written:
    """Llama, and no clipped numbers and no windows, which other files of this lineage ask for."""
    config.expect("clip_qkv", None)
    return read_llama(config)


def read_nanochat(config: Config) -> Written:
    """No norm has parameters; there is one on the embeddings, and QK-norm; logits are capped."""
    norm, bias = {**rms_norm(config), "weight": False}, config.flag("attention_bias")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=_full(config),
        norm=norm,
        attention={"bias": bias, "out_bias": bias, "qk_norm": {"kind": "per_head", "norm": norm}},
        feed_forward=dense(config),
    )
    return {
        **written,
        "embedding": {"norm": norm},
        "head": {"kind": "vocabulary", "softcap": config.number_or_none("final_logit_softcapping")},
    }


def _full(config: Config) -> list[int | None]:
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return [None] * layers


READERS = {
    "arcee": read_arcee,
    "cwm": read_cwm,
    "ernie4_5": read_ernie4_5,
    "helium": read_helium,
    "hunyuan_v1_dense": read_hunyuan,
    "internlm3": read_internlm3,
    "iquestcoder": read_iquestcoder,
    "nanochat": read_nanochat,
    "seed_oss": read_seed_oss,
}
CLASSES = {
    "arcee": ("ArceeForCausalLM",),
    "cwm": ("CwmForCausalLM",),
    "ernie4_5": ("Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"),
    "helium": ("HeliumForCausalLM",),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM",),
    "internlm3": ("InternLM3ForCausalLM", "LlamaForCausalLM"),
    "iquestcoder": ("IQuestCoderForCausalLM", "LlamaForCausalLM"),
    "nanochat": ("NanoChatForCausalLM",),
    "seed_oss": ("SeedOssForCausalLM",),
}
