"""Latent attention over the keys that an indexer chooses (DeepSeek-V3.2, arXiv 2512.02556): DeepseekV32ForCausalLM, and
GlmMoeDsaForCausalLM (GLM-5), of which layers may meet the keys that an earlier one chose (arXiv 2603.12201).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm, rotary
from costcalc.sources.huggingface.latent import TRAINING, block, latent, two_kinds
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    corrected_router,
    count,
    dense_first,
    later_tokens,
    layers_by_kind,
    whole,
    words,
)

INDEXED = "indexed_attention"
TYPES = (INDEXED, "deepseek_sparse_attention")
"""Words of `layer_types`, of which the second is an older one."""
OWN, SHARED = "full", "shared"
"""Words of `indexer_types`: a layer with an indexer, and one that meets what the layer before it met."""
LETTERS = {"F": OWN, "S": SHARED}
"""Of `index_topk_pattern`."""
KERNELS = ("index_share_for_mtp_iteration", "indexer_rope_interleave", "mlp_bias")
"""Keys of published files about other modules, and which numbers of a head make a pair; and one that no class reads."""


def read_deepseek_v32(config: Config) -> Written:
    """`mlp_layer_types`, else `first_k_dense_replace` dense layers; an indexer in every layer."""
    layers = layer_count(config)
    return indexed(config, feed_forward_kinds(config, layers), [OWN] * layers)


def read_glm_moe_dsa(config: Config) -> Written:
    """The same, with a word for each layer's indexer."""
    layers = layer_count(config)
    return indexed(config, feed_forward_kinds(config, layers), indexer_kinds(config, layers))


def indexed(config: Config, kinds: list[str], indexers: list[str]) -> Written:
    """The full form; of each layer, which network it has, and whether it has an indexer."""
    checked_types(config, len(kinds))
    config.size("num_key_value_heads")
    config.note(*TRAINING, *KERNELS)
    of_both = config.data.get("num_experts"), config["num_experts"]
    if of_both[0] is not None:  # an older name, which stands in for the class's own
        config.values["n_routed_experts"] = of_both[1]
    router = plain_corrected_router(config)
    networks, own = two_kinds(config, kinds, router), chosen(config, latent(config, overwritten=True))

    def layer_of(network: str, indexer: str) -> Written:
        return block(config, own if indexer == OWN else without_indexer(own), networks[network])

    return of_layers(config, list(zip(kinds, indexers, strict=True)), layer_of)


def of_layers(config: Config, kinds: Sequence[tuple[str, ...]], layer_of: Callable[..., Written]) -> Written:
    """The whole of such layers, and modules that predict further tokens, not counted, where a file has some."""
    later = later_tokens(config, "num_nextn_predict_layers", "num_mtp_layers")
    return whole(config, rms_norm(config), rotary(config), layers_by_kind(kinds, layer_of), **later)


def chosen(config: Config, attention: Written, **more: Any) -> Written:
    """The attention, over the `index_topk` keys that an indexer scores highest."""
    if attention["q_rank"] is None:
        what = "`q_lora_rank` is null: an indexer's queries are made of the latent of queries"
        raise config.refusal(what, 'write "q_lora_rank": 1536', "q_lora_rank")
    heads, head_dim, turned = config.size("index_n_heads"), config.size("index_head_dim"), attention["rope_dim"]
    if turned > head_dim:
        what = f"`index_head_dim` {head_dim}, of which `qk_rope_head_dim` {turned} are rotated"
        raise config.refusal(what, f'write "index_head_dim": {turned}, or more', "index_head_dim")
    indexer = {"heads": heads, "head_dim": head_dim, **more}
    return {**attention, "top_k": config.size("index_topk"), "indexer": indexer}


def without_indexer(attention: Written) -> Written:
    """The same in a layer that meets the keys that an earlier one chose."""
    return {key: value for key, value in attention.items() if key != "indexer"}


def checked_types(config: Config, layers: int) -> None:
    """Every layer of `layer_types` is an indexed one."""
    config.layer_types(layers, TYPES)


def feed_forward_kinds(config: Config, layers: int) -> list[str]:
    """`mlp_layer_types`, else `first_k_dense_replace` dense layers first; `moe_layer_freq` is not read by the class."""
    config.expect("moe_layer_freq", None, 1)
    config.note("first_k_dense_replace")
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE))
    return kinds or dense_first(
        layers, config.whole("first_k_dense_replace") and count(config, "first_k_dense_replace")
    )


def plain_corrected_router(config: Config) -> Written:
    """DeepSeek-V3's router in classes that are not built with nulls."""
    for key in ("n_group", "topk_group", "num_experts_per_tok"):
        config.size(key)
    config.flag("norm_topk_prob")
    return corrected_router(config, scale=config.number("routed_scaling_factor"))


def indexer_kinds(config: Config, layers: int) -> list[str]:
    """`indexer_types`; else `index_topk_pattern`, a letter or a word for each layer; else one in `index_topk_freq`
    layers, behind the first `index_skip_topk_offset` less one.
    """
    for key in ("index_topk_pattern", "index_topk_freq", "index_skip_topk_offset"):
        config.note(key)
    kinds, pattern = words(config, "indexer_types", layers, (OWN, SHARED)), config["index_topk_pattern"]
    key = "indexer_types"
    if kinds is None and pattern is not None:
        key = "index_topk_pattern"
        if isinstance(pattern, str):
            config.values[key] = [LETTERS.get(letter, letter) for letter in pattern]
        kinds = words(config, key, layers, (OWN, SHARED))
    if kinds is None:
        key = "index_topk_freq"
        period, offset = (_whole_or(config, name, usual) for name, usual in ((key, 1), ("index_skip_topk_offset", 2)))
        past = [max(layer - offset + 1, 0) for layer in range(layers)]
        kinds = [SHARED if number % max(period, 1) else OWN for number in past]
    first_chooses(config, kinds, key)
    return kinds


def first_chooses(config: Config, kinds: list[str], key: str) -> None:
    """Refuse layers of which the first meets what an earlier one chose."""
    if kinds[0] != OWN:
        what = f"the first layer of `{key}` is {shown(SHARED)}: no layer before it chose any keys"
        raise config.refusal(what, f'write "{OWN}" for it', key)


def _whole_or(config: Config, key: str, usual: int) -> int:
    return config.whole(key) if key in config.data else usual


READERS = {"deepseek_v32": read_deepseek_v32, "glm_moe_dsa": read_glm_moe_dsa}
CLASSES = {"deepseek_v32": ("DeepseekV32ForCausalLM",), "glm_moe_dsa": ("GlmMoeDsaForCausalLM",)}
