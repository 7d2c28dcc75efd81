"""The Gemma family: head size apart from the width, rows of the table times the root of the width.

Gemma (arXiv 2403.08295) is Llama-like. Gemma-2 (2408.00118) has four norms a layer, soft-capping, and a window in every
other layer, the first included; VaultGemma (2510.15001) the same without the norms on the outputs. Gemma-3 (2503.19786)
has QK-norm, and a window in all layers but every sixth, with a RoPE base of each kind's own.
"""

from __future__ import annotations

import math

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    gated,
    layer_count,
    llama_like,
    rms_norm,
    rotary_by_type,
    types_by_period,
    width_per_head,
    windows_by_type,
)

OLD_BASES = {FULL: ("rope_theta", 1_000_000.0), SLIDING: ("rope_local_base_freq", 10_000.0)}
"""Of each type of Gemma-3's layers, the older key of its RoPE base, and the class default."""
OLD_PATTERN, REMARK = "sliding_window_pattern", "_sliding_window_pattern"


def read_gemma(config: Config) -> Written:
    """An activation "gelu" means its tanh form in this family; `hidden_activation` is an older key, which wins."""
    key = "hidden_act" if config["hidden_activation"] is None else "hidden_activation"
    network, bias = gated(config, key), config.flag("attention_bias")
    written = llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=config.size("head_dim"),
        windows=[None] * layer_count(config),
        attention={"bias": bias, "out_bias": bias},
        feed_forward={**network, "activation": "gelu_tanh"} if network["activation"] == "gelu" else network,
    )
    return {**written, "embedding": {"scale": math.sqrt(written["d_model"])}}


def read_gemma2(config: Config) -> Written:
    """Raw configs do not spell the pattern out: the class's own is sliding, full, sliding, full, ..."""
    config.expect("sliding_window_size", None, config["sliding_window"])  # an older name, which real files write too
    types = types_by_period(config, 2, full=-1)
    return with_windows(config, types, norms="sandwich")


def read_vaultgemma(config: Config) -> Written:
    """Sliding, full, sliding, full, ..., as in Gemma-2."""
    return with_windows(config, types_by_period(config, 2, full=-1), norms="pre")


def read_gemma3(config: Config) -> Written:
    """Raw configs do not spell the pattern out, or say `sliding_window_pattern: 6`: every sixth layer sees all."""
    layers = layer_count(config)
    if config["layer_types"] is None and config[OLD_PATTERN] is None:
        config.expect(REMARK, None, 6)  # written beside `layer_types` by the class, which never reads it
    else:
        config.note(REMARK)
    types = types_by_period(config, 6, full=-1, key=OLD_PATTERN)
    rotary = rotary_by_type(config, OLD_BASES)
    written = with_windows(
        config,
        types,
        norms="sandwich",
        attention={"qk_norm": {"kind": "per_head", "norm": rms_norm(config)}},
        positions=[rotary[types[layer]] for layer in range(layers)],
    )
    return _looking_both_ways(config, written) if config["use_bidirectional_attention"] else written


def _looking_both_ways(config: Config, written: Written) -> Written:
    """EmbeddingGemma (arXiv 2509.20354): the same layers as an encoder, a window w of w // 2 tokens to each side.

    Only the bare model: a language model that sees what it predicts is none.
    """
    config.expect("use_bidirectional_attention", True)
    named = config.data.get("architectures") or [config.model_class]
    if config.model_class in named:
        what = (
            f"`use_bidirectional_attention`: true of a {config.model_class} is not read: it would see what it predicts"
        )
        raise config.refusal(what, 'write "architectures": ["Gemma3TextModel"]', "use_bidirectional_attention")
    return {key: value for key, value in written.items() if key != "decoder"} | {"encoder": written["decoder"]}


def with_windows(
    config: Config,
    types: list[str],
    *,
    norms: str,
    attention: Written | None = None,
    positions: list[Written] | None = None,
) -> Written:
    """What Gemma-2 and later have in common."""
    width_per_head(config)  # the class insists that it divides, although head_dim is free
    bias, window = config.flag("attention_bias"), config.size_or_none("sliding_window")
    config.expect("use_sliding_window", None, True)  # engines differ on whether it beats the size in this family
    head_dim, divisor = config.size("head_dim"), config.number("query_pre_attn_scalar")
    core = {
        "scale": None if divisor == head_dim else divisor**-0.5,
        "softcap": config.number_or_none("attn_logit_softcapping"),
    }
    written = llama_like(
        config,
        kv_heads=config.size("num_key_value_heads"),
        head_dim=head_dim,
        windows=windows_by_type(config, types, window, why_none="`sliding_window` is null"),
        attention={"bias": bias, "out_bias": bias, **core, **(attention or {})},
        activation="hidden_activation",
        norms=norms,
        positions=positions,
    )
    return {
        **written,
        "embedding": {"scale": math.sqrt(written["d_model"])},
        "head": {"kind": "vocabulary", "softcap": config.number_or_none("final_logit_softcapping")},
    }


READERS = {
    "gemma": read_gemma,
    "gemma2": read_gemma2,
    "gemma3_text": read_gemma3,
    "vaultgemma": read_vaultgemma,
}
CLASSES = {
    "gemma": ("GemmaForCausalLM",),
    "gemma2": ("Gemma2ForCausalLM",),
    "gemma3_text": ("Gemma3ForCausalLM",),
    "vaultgemma": ("VaultGemmaForCausalLM",),
}
