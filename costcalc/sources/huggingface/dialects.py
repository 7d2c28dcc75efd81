"""Llama under other names, read from files that name code of their own, for which the library has no class: InternLM,
InternLM2, MiniCPM, Orion, XVERSE, Aquila, Yi, MiMo and the first StableLM.

What differs is stated in fields, as far as the published code and the parameters that each model's page prints agree.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    Written,
    free_head_dim,
    layer_count,
    layer_norm,
    llama_like,
    partial_rotary,
    width_per_head,
)


def _plain(config: Config, *, kv_heads: int | None, **more: object) -> Written:
    """Llama with as many layers as written and full attention; `more` as `llama_like` has it."""
    windows: list[int | None] = [None] * layer_count(config)
    some: Written = {"attention": {}, "head_dim": width_per_head(config), **more}
    return llama_like(config, kv_heads=kv_heads, windows=windows, **some)


def read_grouped(config: Config) -> Written:
    """Aquila and Yi: Llama, key for key, without biases."""
    return _plain(config, kv_heads=config.size_or_none("num_key_value_heads"))


def read_internlm(config: Config) -> Written:
    """`bias` is on all four products of the attention, and all heads have keys of their own. `rotary` holds a base."""
    config.note("rotary")
    bias = config.flag("bias")
    return _plain(config, kv_heads=None, attention={"bias": bias, "out_bias": bias})


def read_internlm2(config: Config) -> Written:
    """`bias` is on all four products of the attention, of which the code holds three as one."""
    config.note("attn_implementation")
    bias = config.flag("bias")
    kv_heads = config.size_or_none("num_key_value_heads")
    return _plain(config, kv_heads=kv_heads, attention={"bias": bias, "out_bias": bias})


def read_minicpm(config: Config) -> Written:
    """MiniCPM (arXiv 2404.06395): Llama with factors on embeddings, sublayers and head, which count nothing.

    Tied unless the file says otherwise. Its mixture, in files of the same type, has other code.
    """
    config.note("scale_emb", "scale_depth", "dim_model_base")
    config.expect("num_experts", None, 0)
    config.expect("sparse_config", None)
    return _plain(config, kv_heads=config.size_or_none("num_key_value_heads"), head_dim=free_head_dim(config))


def read_orion(config: Config) -> Written:
    """LayerNorms, with biases, in the place of RMSNorms; their eps is called `rms_norm_eps` all the same."""
    config.expect("attention_bias", None, False)
    norm = layer_norm(config, "rms_norm_eps")
    return _plain(config, kv_heads=config.size_or_none("num_key_value_heads"), norm=norm)


def read_xverse(config: Config) -> Written:
    """All heads have keys of their own."""
    config.note("max_tokenizer_truncation")
    heads = config.size("num_attention_heads")
    config.expect("num_key_value_heads", None, heads)
    return _plain(config, kv_heads=None)


def read_stablelm_epoch(config: Config) -> Written:
    """LayerNorms, RoPE on a part of each head, biases on q, k and v where `use_qkv_bias` says so."""
    config.expect("num_heads", None, config.size("num_attention_heads"))
    config.note("rotary_scaling_factor")
    head_dim, layers = width_per_head(config), layer_count(config)
    return _plain(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        norm=layer_norm(config, "norm_eps"),
        positions=[partial_rotary(config, head_dim)] * layers,
        attention={"bias": config.flag("use_qkv_bias")},
    )


def read_mimo(config: Config) -> Written:
    """MiMo-7B (arXiv 2505.07608): Qwen2, with biases on q, k and v, and modules that guess further tokens beside it."""
    config.expect("attention_bias", None, True)
    config.expect("use_sliding_window", None, False)
    config.note("sliding_window", "max_window_layers")
    kv_heads, head_dim = config.size_or_none("num_key_value_heads"), free_head_dim(config)
    written = _plain(config, kv_heads=kv_heads, head_dim=head_dim, attention={"bias": True})
    if not config["num_nextn_predict_layers"]:
        return written
    (layer,) = written["decoder"]["layers"]
    one = {**layer, "repeat": 1}
    modules = {"repeat": config.size("num_nextn_predict_layers"), "norm": layer["norm"], "layer": one}
    return {**written, "multi_token": modules}


READERS = {
    "Yi": read_grouped,
    "aquila": read_grouped,
    "internlm": read_internlm,
    "internlm2": read_internlm2,
    "mimo": read_mimo,
    "minicpm": read_minicpm,
    "orion": read_orion,
    "stablelm_epoch": read_stablelm_epoch,
    "xverse": read_xverse,
}
CLASSES = {
    "Yi": ("YiForCausalLM", "LlamaForCausalLM"),
    "aquila": ("AquilaForCausalLM", "AquilaModel"),
    "internlm": ("InternLMForCausalLM",),
    "internlm2": ("InternLM2ForCausalLM",),
    "mimo": ("MiMoForCausalLM",),
    "minicpm": ("MiniCPMForCausalLM",),
    "orion": ("OrionForCausalLM",),
    "stablelm_epoch": ("StableLMEpochForCausalLM",),
    "xverse": ("XverseForCausalLM",),
}
CODE = {"Yi": ("modeling_yi",)}
