"""ZambaForCausalLM (arXiv 2405.16712) and Zamba2ForCausalLM (arXiv 2411.15242): Mamba in every layer, and in front of
some a transformer block whose weights they share; Zamba-2 has several such blocks in turn, with adapters.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import NO_POSITIONS, Written, gated, layer_count, rms_norm
from costcalc.sources.huggingface.mamba import check_groups, check_heads, rank
from costcalc.sources.huggingface.recurrent import HYBRID, LINEAR, agree, kinds_of_layers
from costcalc.sources.huggingface.sparse import ROPE_KEYS, attention, rotations, whole

FIRST = [LINEAR, LINEAR, HYBRID]
"""How a Zamba begins, before its period does."""

USUAL = (6, 12, 18, 24, 30, 36, 42, 47, 51)
"""Layers of the class's 54 that have a shared block where nothing says which (Zamba2-2.7B)."""

LONG_CONTEXT = 16_384


def read_zamba(config: Config) -> Written:
    """One shared block: by `layers_block_type`, or else in one layer of each period from the fourth layer on."""
    _check_tie(config)
    layers, norm, width, head_dim = layer_count(config), rms_norm(config), config.size("hidden_size"), _head_dim(config)
    agree(config, attention_hidden_size=2 * width)
    config.note("attn_layer_period", "attn_layer_offset")  # void beside a list of the layers
    kinds = kinds_of_layers(config, "layers_block_type", layers, (LINEAR, HYBRID)) or _by_period(config, layers)
    kv_heads, scale = config.size("num_key_value_heads"), (head_dim / 2) ** -0.5
    core = attention(config, head_dim=head_dim, kv_heads=kv_heads, scale=scale)
    common: Written = {"norm": norm, "positions": NO_POSITIONS, "mixer": _mamba1(config)}
    shared = {
        "weights": "shared",
        "attention": core,
        "feed_forward": gated(config),
        "attention_adapter_rank": None,
        "feed_forward_adapter_rank": None,
    }
    made = {
        LINEAR: {"name": "mamba", **common},
        HYBRID: {"name": "hybrid", **common, "shared_block": shared},
    }
    return whole(config, norm, NO_POSITIONS, [made[kind] for kind in kinds])


def _check_tie(config: Config) -> None:
    """With a head of its own the library does not share the blocks either, which no published model has."""
    config.expect("tie_word_embeddings", True)


def _by_period(config: Config, layers: int) -> list[str]:
    period, offset = config.size("attn_layer_period"), config.whole("attn_layer_offset")
    if layers < len(FIRST):
        what = f"`num_hidden_layers` {layers}: the class's own pattern begins with {len(FIRST)} layers"
        raise config.refusal(what, "write `layers_block_type`", "num_hidden_layers")
    return FIRST + [HYBRID if layer % period == offset else LINEAR for layer in range(layers - len(FIRST))]


def _mamba1(config: Config) -> Written:
    inner, heads = config.size("mamba_expand") * config.size("hidden_size"), config.size("n_mamba_heads")
    if inner % heads:
        what = f"`n_mamba_heads` {heads} does not divide the width inside, {inner}"
        raise config.refusal(what, "change one of the two", "n_mamba_heads")
    return {
        "kind": "mamba1",
        "d_inner": inner,
        "d_state": config.size("mamba_d_state"),
        "d_conv": config.size("mamba_d_conv"),
        "dt_rank": rank(config, "mamba_dt_rank"),
        "conv_bias": config.flag("mamba_conv_bias"),
        "bias": config.flag("mamba_proj_bias"),
        "inner_norms": False,
        "heads": heads,
        "activation": config.activation("hidden_mamba_act"),
        "state_dtype": "fp32",
    }


def read_zamba2(config: Config) -> Written:
    """`num_mem_blocks` shared blocks take turns; adapters of `adapter_rank` on their networks, and where
    `use_shared_attention_adapter` says so on queries, keys and values; `add_bias_linear` is for networks and mixers.
    """
    _check_tie(config)
    norm, kinds, positions = rms_norm(config), _listed(config), _positions(config)
    block, common = _shared_block(config), {"norm": norm, "positions": positions, "mixer": _mamba2(config)}
    mixing, blocks = {"name": "mamba", **common}, config.size("num_mem_blocks")
    turns = [""] if blocks == 1 else [str(number) for number in range(min(blocks, len(kinds)))]
    sharing = [
        {"name": f"hybrid{turn}", **common, "shared_block": {"weights": f"shared{turn}", **block}} for turn in turns
    ]
    order, before = [], 0
    for kind in kinds:
        order.append(sharing[before % len(sharing)] if kind == HYBRID else mixing)
        before += kind == HYBRID
    written = whole(config, norm, positions, order)
    context = LONG_CONTEXT if config.flag("use_long_context") else written["context_length"]
    return {**written, "context_length": context}


def _listed(config: Config) -> list[str]:
    layers = layer_count(config)
    kinds = kinds_of_layers(config, "layers_block_type", layers, (LINEAR, HYBRID))
    if kinds is None:
        if layers != 54:
            what = f"`num_hidden_layers` {layers}, and no list of them: the class's own is of 54"
            raise config.refusal(what, "write `layers_block_type`", "num_hidden_layers")
        kinds = [HYBRID if layer in USUAL else LINEAR for layer in range(layers)]
    agree(config, hybrid_layer_ids=[layer for layer, kind in enumerate(kinds) if kind == HYBRID])
    return kinds


def _positions(config: Config) -> Written:
    """Rotary ones of the whole head where `use_mem_rope` says so."""
    if config.flag("use_mem_rope"):
        return rotations(config, _head_dim(config), theta=1e4)
    config.note(*ROPE_KEYS)
    return NO_POSITIONS


def _head_dim(config: Config) -> int:
    """Heads of twice the width together, unless it is written."""
    derived = max(2 * config.size("hidden_size") // config.size("num_attention_heads"), 1)
    return config.size_or_none("attention_head_dim") or derived


def _shared_block(config: Config) -> Written:
    """A null `intermediate_size` is four times the width."""
    width, heads, head_dim = config.size("hidden_size"), config.size("num_attention_heads"), _head_dim(config)
    inner = config.size_or_none("intermediate_size") or 4 * width
    agree(
        config,
        attention_hidden_size=2 * width,
        kv_channels=width // heads,
        num_query_groups=heads,
        ffn_hidden_size=inner,
    )
    rank_of_adapters, adapts = config.size("adapter_rank"), config.flag("use_shared_attention_adapter")
    core = attention(config, head_dim=head_dim, scale=(head_dim / 2) ** -0.5)
    if adapts and (core["kv_heads"] not in (None, heads) or heads * head_dim != 2 * width):
        what = f"adapters give {2 * width} numbers for queries, keys and values, but the heads have others"
        raise config.refusal(what, "change `num_key_value_heads`", "use_shared_attention_adapter")
    network = {
        "kind": "gated",
        "d_ff": inner,
        "activation": config.activation("hidden_act"),
        "bias": config.flag("add_bias_linear"),
    }
    return {
        "attention": core,
        "feed_forward": network,
        "attention_adapter_rank": rank_of_adapters if adapts else None,
        "feed_forward_adapter_rank": rank_of_adapters,
    }


def _mamba2(config: Config) -> Written:
    """`add_bias_linear` is on both projections; the convolution always has a bias."""
    config.expect("use_conv_bias", None, True)
    inner, heads = config.size("mamba_expand") * config.size("hidden_size"), config.size("n_mamba_heads")
    head_dim, groups = max(inner // heads, 1), config.size("mamba_ngroups")
    check_heads(config, inner, heads=("n_mamba_heads", heads), head_dim=("mamba_headdim", head_dim))
    check_groups(config, heads, groups=("mamba_ngroups", groups))
    agree(config, mamba_headdim=head_dim)
    bias = config.flag("add_bias_linear")
    return {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": head_dim,
        "d_state": config.size("mamba_d_state"),
        "groups": groups,
        "d_conv": config.size("mamba_d_conv"),
        "conv_bias": True,
        "bias": bias,
        "out_bias": bias,
        "gated_norm": True,
        "norm_before_gate": False,
        "chunk": config.size("chunk_size"),
        "activation": "silu",
        "state_dtype": "fp32",
    }


READERS = {"zamba": read_zamba, "zamba2": read_zamba2}
CLASSES = {"zamba": ("ZambaForCausalLM",), "zamba2": ("Zamba2ForCausalLM",)}
