"""KimiLinearForCausalLM (arXiv 2510.26692): Kimi Delta Attention, and latent attention without positions in every
fourth layer; DeepSeek-V3's experts.
"""

from __future__ import annotations

from typing import Any

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config, entries
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written, layer_count, rms_norm
from costcalc.sources.huggingface.delta import NAMES, kimi_delta
from costcalc.sources.huggingface.latent import TRAINING, latent, network
from costcalc.sources.huggingface.recurrent import LINEAR, either
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    agreed,
    corrected_router,
    count,
    dense_first,
    gated,
    later_tokens,
    layers_by_kind,
    mixture,
    shared_experts,
    whole,
    whole_number,
    words,
)

INNER = "linear_attn_config"
INNER_SIZES = {
    "head_dim": "linear_head_dim",
    "num_heads": "linear_num_heads",
    "short_conv_kernel_size": "linear_conv_kernel_dim",
}
INNER_LISTS = {"full_attn_layers": FULL, "kda_layers": LINEAR}


def read_kimi_linear(config: Config) -> Written:
    """Published files hold the sizes and the numbers of linear layers in `linear_attn_config`, which wins; what else
    they spell out is what the class builds.
    """
    config.note("head_dim", "rope_scaling", "rope_theta")  # the class overwrites or has no use for them
    config.expect("mla_use_nope", None, True)
    layers, inner = layer_count(config), _inner(config)
    sizes = {name: _size(config, inner, name) for name in INNER_SIZES}
    rank = sizes["head_dim"]
    mixer = kimi_delta(
        config,
        heads=sizes["num_heads"],
        head_dim=rank,
        taps=sizes["short_conv_kernel_size"],
        decay_rank=rank,
        gate_rank=rank,
    )
    types = _types(config, layers, inner)
    dense = count(config, "first_k_dense_replace") if "first_k_dense_replace" in config.data else 1
    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, dense)
    later = later_tokens(config, "num_nextn_predict_layers")
    return hybrid(config, types, kinds, mixer=mixer, attention=latent(config), positions=NO_POSITIONS, **later)


def hybrid(
    config: Config,
    types: list[str],
    kinds: list[str],
    *,
    mixer: Written,
    attention: Written,
    positions: Written,
    **more: Any,
) -> Written:
    """The full form: a mixer or latent attention in each layer, one network or experts. The head's table is its own:
    the classes tie none.
    """
    config.note(*TRAINING)
    config.expect("moe_layer_freq", None, 1)
    config.expect("moe_router_activation_func", None, "sigmoid")
    config.expect("use_grouped_topk", None, True)
    config.overrule("tie_word_embeddings", False)  # the class ties nothing
    norm, networks = rms_norm(config), _networks(config, kinds)

    def layer_of(word: str, kind: str) -> Written:
        mixed = either(attends=word == NAMES[FULL], attention=attention, mixer=mixer, positions=positions)
        return {"norm": norm, **mixed, "feed_forward": networks[kind]}

    order = layers_by_kind(list(zip([NAMES[word] for word in types], kinds, strict=True)), layer_of)
    return whole(config, norm, positions, order, **more)


def _networks(config: Config, kinds: list[str]) -> dict[str, Written]:
    """One network of `intermediate_size`, and experts with those for all tokens, as far as `kinds` has them."""
    config.note("intermediate_size", "moe_intermediate_size", "num_local_experts", "num_experts_per_tok")
    config.note("n_group", "n_shared_experts", "norm_topk_prob", "topk_group")
    made = {DENSE: network(config)} if DENSE in kinds else {}
    if SPARSE in kinds:
        width = config.size("moe_intermediate_size")
        whole_number(config, "n_shared_experts")  # a null has no meaning to the class
        shared, router = shared_experts(config, "n_shared_experts", width), corrected_router(config)
        expert = gated(config, width)
        made[SPARSE] = mixture(config, expert, router=router, shared=shared, experts="num_local_experts")
    return made


def _inner(config: Config) -> Written:
    """What `linear_attn_config` holds; a key of it that is not read is refused."""
    inner = config[INNER]
    if inner is None:
        return {}
    known = (*INNER_SIZES, *INNER_LISTS)
    if not isinstance(inner, dict):
        hint = f'write "{INNER}": {{"head_dim": 128, ...}}'
        raise config.refusal(f"`{INNER}` must hold sizes, got {shown(inner)}", hint, INNER)
    for key in inner:
        if key not in known:
            raise config.refusal(f"`{key}` of `{INNER}` is not read", f"known: {', '.join(known)}", INNER, key)
    return inner


def _size(config: Config, inner: Written, name: str) -> int:
    """A size of the linear layers: in `linear_attn_config`, which wins, or else beside it."""
    beside = config.size(INNER_SIZES[name])
    value = inner.get(name, beside)
    if type(value) is not int or value < 1:
        what = f"`{name}` of `{INNER}` must be a whole number of at least 1, got {shown(value)}"
        raise config.refusal(what, f'write "{name}": {beside}', INNER, name)
    return value


def _types(config: Config, layers: int, inner: Written) -> list[str]:
    """`layer_types`, or the lists of layers by number, from 1; else every fourth from the fifth on attends."""
    listed = _listed(config, layers, inner) if set(INNER_LISTS) <= inner.keys() else None
    types = agreed(config, listed, config.layer_types(layers, (LINEAR, FULL)), "layer_types")
    return types or [FULL if layer and layer % 4 == 0 else LINEAR for layer in range(layers)]


def _listed(config: Config, layers: int, inner: Written) -> list[str]:
    """Each layer stands in one of the two lists."""
    found: dict[int, str] = {}
    for key, word in INNER_LISTS.items():
        numbers = inner[key]
        is_list = isinstance(numbers, list) and all(type(n) is int and 1 <= n <= layers for n in numbers)
        if not is_list or not found.keys().isdisjoint(numbers):
            what = f"`{key}` must be a list of layers from 1 to {layers}, each of them once, got {entries(numbers)}"
            raise config.refusal(what, "write the numbers of layers", INNER, key)
        found |= dict.fromkeys(numbers, word)
    if len(found) < layers:
        what = f"`{INNER}` says of {len(found)} of {layers} layers what they are"
        raise config.refusal(what, f"name each layer in one of {' and '.join(INNER_LISTS)}", INNER)
    return [found[layer] for layer in range(1, layers + 1)]


READERS = {"kimi_linear": read_kimi_linear}
CLASSES = {"kimi_linear": ("KimiLinearForCausalLM",)}
CODE = {"kimi_linear": ("modeling_kimi",)}
"""The module that published files name, which the class was made of."""
