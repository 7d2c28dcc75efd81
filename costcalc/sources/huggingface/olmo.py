"""OLMo (arXiv 2402.00838): LayerNorms without parameters. OLMo-2 (2501.00656): norms on the outputs of sublayers, and
QK-norm over whole projections. OLMo-3: the same, with a window in all layers but every fourth.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    SLIDING,
    Written,
    free_head_dim,
    layer_count,
    llama_like,
    rms_norm,
    rotary,
    rotary_by_type,
    types_by_period,
    width_per_head,
    windows_by_type,
)

BARE_NORM: Written = {"kind": "layernorm", "eps": 1e-5, "weight": False, "bias": False}
BASES = dict.fromkeys((FULL, SLIDING), ("rope_theta", 500_000.0))
"""Of both types of OLMo-3's layers, the older key of the RoPE base, and the class default."""


OF_HF_OLMO = """
    alibi_bias_max attention_layer_norm_with_affine bias_for_layer_norm block_group_size clip_qkv flash_attention
    init_cutoff_factor init_device init_fn precision rope_full_precision scale_logits
"""
BUILT_BY_HF_OLMO = {
    "activation_type": "swiglu",
    "alibi": False,
    "rope": True,
    "attention_layer_norm": False,
    "block_type": "sequential",
    "include_bias": False,
    "layer_norm_type": "default",
    "layer_norm_with_affine": False,
    "multi_query_attention": False,
}


def read_olmo(config: Config) -> Written:
    """`clip_qkv` bounds the numbers of queries, keys and values, and changes no count."""
    config.note("clip_qkv")
    layers = layer_count(config)
    return _whole(config, [None] * layers, [rotary(config)] * layers, norm=BARE_NORM)


def read_olmo2(config: Config) -> Written:
    """No norm before a sublayer, one on its output."""
    layers = layer_count(config)
    config.layer_types(layers, (FULL,))
    return _whole(config, [None] * layers, [rotary(config)] * layers, norms="output", qk_norm=_over_projections(config))


def read_olmo3(config: Config) -> Written:
    """Raw configs do not spell the pattern out: the class's own is sliding, sliding, sliding, full, ..."""
    types = types_by_period(config, 4, full=-1)
    window = config.size_or_none("sliding_window")
    windows = windows_by_type(config, types, window, why_none="`sliding_window` is null")
    turned = rotary_by_type(config, BASES)
    positions = [turned[word] for word in types]
    return _whole(config, windows, positions, norms="output", qk_norm=_over_projections(config))


def _over_projections(config: Config) -> Written:
    return {"kind": "projection", "norm": rms_norm(config)}


def _whole(
    config: Config,
    windows: list[int | None],
    positions: list[Written],
    *,
    norm: Written | None = None,
    norms: str = "pre",
    qk_norm: Written | None = None,
) -> Written:
    bias = config.flag("attention_bias")
    return llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=free_head_dim(config),
        windows=windows,
        positions=positions,
        norm=norm,
        norms=norms,
        attention={"bias": bias, "out_bias": bias, "qk_norm": qk_norm},
    )


def read_hf_olmo(config: Config) -> Written:
    """OLMo as it was first published, under names of its own: `mlp_hidden_size` counts gate and up together, and
    `embedding_size` rows are held where the vocabulary has fewer.
    """
    config.note(*OF_HF_OLMO.split(), "mlp_ratio")
    for key, built in BUILT_BY_HF_OLMO.items():
        config.expect(key, built)
    heads, width, inner = config.size("num_attention_heads"), config.size("hidden_size"), config["mlp_hidden_size"]
    config.expect("n_kv_heads", None, heads)
    both = config.size("mlp_ratio") * width if inner is None else config.size("mlp_hidden_size")
    rows = config.size_or_none("embedding_size") or config.size("vocab_size")
    if both % 2 or rows < config.size("vocab_size"):
        what = f"`mlp_hidden_size` {both} is halved, and `embedding_size` {rows} holds the vocabulary"
        raise config.refusal(what, "change the one that does not", "mlp_hidden_size")
    layers = layer_count(config)
    written = llama_like(
        config,
        kv_heads=None,
        head_dim=width_per_head(config),
        windows=[None] * layers,
        norm=BARE_NORM,
        attention={},
        feed_forward={"kind": "gated", "d_ff": both // 2, "activation": "silu"},
    )
    return {**written, "vocab_size": rows}


READERS = {"hf_olmo": read_hf_olmo, "olmo": read_olmo, "olmo2": read_olmo2, "olmo3": read_olmo3}
CLASSES = {
    "hf_olmo": ("OLMoForCausalLM", "OLMoModelForCausalLM"),
    "olmo": ("OlmoForCausalLM",),
    "olmo2": ("Olmo2ForCausalLM",),
    "olmo3": ("Olmo3ForCausalLM",),
}
CODE = {"hf_olmo": ("modeling_olmo",)}
