"""Decoders whose files use keys of their own, and for which the library has no class: Qwen-1, Baichuan and
ChatGLM2 to GLM-4.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, llama_like, rotary, width_per_head
from costcalc.sources.huggingface.sparse import whole

OF_QWEN = """
    attn_dropout_prob emb_dropout_prob logn_list rotary_emb_base scale_attn_weights softmax_in_fp32
    use_cache_kernel use_cache_quantization use_dynamic_ntk use_logn_attn
"""
OF_CHATGLM = """
    apply_query_key_layer_scaling attention_softmax_in_fp32 bias_dropout_fusion classifier_dropout
    fp32_residual_connection interleaved_qkv rope_ratio
"""
OF_BAICHUAN = ("z_loss_weight", "user_id", "model_max_length")


def read_qwen(config: Config) -> Written:
    """Qwen (arXiv 2309.16609): `intermediate_size` counts gate and up together; biases on q, k and v, and nowhere else
    where `no_bias` says so.
    """
    config.note(*OF_QWEN.split())
    config.expect("rotary_pct", None, 1.0, 1)
    heads, width, inner = (config.size(key) for key in ("num_attention_heads", "hidden_size", "intermediate_size"))
    head_dim, rest = config.size("kv_channels"), not config.flag("no_bias")
    if heads * head_dim != width:
        what = f"`kv_channels` {head_dim} of {heads} heads do not come to `hidden_size` {width}"
        raise config.refusal(what, "change one of the three", "kv_channels")
    if inner % 2:
        what = f"`intermediate_size` {inner} is odd: half of it is the gate"
        raise config.refusal(what, "make it even", "intermediate_size")
    norm: Written = {"kind": "rmsnorm", "eps": config.number("layer_norm_epsilon")}
    written = llama_like(
        config,
        kv_heads=None,
        head_dim=head_dim,
        windows=[None] * layer_count(config),
        norm=norm,
        positions=[{"kind": "rope", "theta": config.number("rotary_emb_base")}] * layer_count(config),
        attention={"bias": True, "out_bias": rest},
        feed_forward={"kind": "gated", "d_ff": inner // 2, "activation": "silu", "bias": rest},
    )
    return {**written, "not_counted": ["vision tower"]} if config["visual"] is not None else written


def read_baichuan(config: Config) -> Written:
    """Baichuan (arXiv 2309.10305): Llama, all heads with keys of their own; the larger models have ALiBi, and say how
    long a text may be under `model_max_length` alone.
    """
    config.note(*OF_BAICHUAN)
    layers, head_dim = layer_count(config), width_per_head(config)
    has_rope = config["max_position_embeddings"] is not None
    where = rotary(config) if has_rope else {"kind": "alibi"}
    written = llama_like(
        config,
        kv_heads=None,
        head_dim=head_dim,
        windows=[None] * layers,
        positions=[where] * layers,
        attention={},
    )
    return written if has_rope else {**written, "context_length": config.size_or_none("model_max_length")}


def read_chatglm(config: Config) -> Written:
    """ChatGLM2, ChatGLM3 and GLM-4 (arXiv 2406.12793): grouped heads where `multi_query_attention` says so, RoPE on
    half of each head. The head is never tied. The first ChatGLM has the same type, other keys, and other layers.
    """
    config.note(*OF_CHATGLM.split(), "layernorm_epsilon")
    for key, built in {"rmsnorm": True, "original_rope": True, "post_layer_norm": True}.items():
        config.expect(key, built)
    config.expect("apply_residual_connection_post_layernorm", False)
    config.expect("pre_seq_len", None)
    config.expect("prefix_projection", None, False)
    config.expect("quantization_bit", None, 0)
    config.expect("tie_word_embeddings", False)
    heads, head_dim = config.size("num_attention_heads"), config.size("kv_channels")
    kv_heads = config.size("multi_query_group_num") if config.flag("multi_query_attention") else heads
    config.note("multi_query_group_num")
    rest = config.flag("add_bias_linear")
    if head_dim % 4:
        what = f"RoPE rotates pairs of half a head, and `kv_channels` is {head_dim}"
        raise config.refusal(what, "make it a multiple of 4", "kv_channels")
    where: Written = {"kind": "rope", "rotary_dim": head_dim // 2}
    norm: Written = {"kind": "rmsnorm", "eps": config.number("layernorm_epsilon")}
    attention = {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    d_ff = config.size("ffn_hidden_size")
    layer = {
        "norm": norm,
        "positions": where,
        "attention": {**attention, "bias": rest or config.flag("add_qkv_bias"), "out_bias": rest},
        "feed_forward": {"kind": "gated", "d_ff": d_ff, "activation": "silu", "bias": rest},
    }
    left_out = {"not_counted": ["vision tower"]} if config["vision_config"] is not None else {}
    return {**whole(config, norm, where, [layer] * layer_count(config)), **left_out}


READERS = {"baichuan": read_baichuan, "chatglm": read_chatglm, "qwen": read_qwen}
CLASSES = {
    "baichuan": ("BaichuanForCausalLM", "BaiChuanForCausalLM"),
    "chatglm": ("ChatGLMForConditionalGeneration", "ChatGLMModel"),
    "qwen": ("QWenLMHeadModel",),
}
