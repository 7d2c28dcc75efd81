"""DeepSeek-V2 (arXiv 2405.04434) and DeepSeek-V3 (2412.19437): latent attention, dense layers first, then mixtures.

Kimi-K2 (2507.20534) is DeepSeek-V3 under a type of its own: its files name DeepSeek's class.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import MOST_LAYERS, Config
from costcalc.sources.huggingface.decoder import Written, layer_count, rms_norm, width_per_head
from costcalc.sources.huggingface.latent import agrees, block, experts, latent, model, rotated_size, two_kinds
from costcalc.sources.huggingface.sparse import corrected_router, count, dense_first, later_tokens

GROUPED = "group_limited_greedy"


def read_deepseek_v2(config: Config) -> Written:
    """Scores by softmax; groups only where `topk_method` says so. `mlp_bias` is not on experts of which some are
    chosen. The class's own `num_experts_per_tok` is null: it can be built then, and not run.
    """
    width_per_head(config)  # the class insists that it divides, although no size follows from it
    config.note("head_dim")  # the class overwrites it
    config.expect("scoring_func", None, "softmax")
    config.expect("topk_method", "greedy", GROUPED)
    config.note("n_group", "topk_group")
    router: Written = {
        "scores": "softmax",
        "normalize": config["norm_topk_prob"] is not None and config.flag("norm_topk_prob"),
        "scale": _scale(config),
    }
    if config["topk_method"] == GROUPED:
        router |= {"groups": config.size("n_group"), "groups_per_token": config.size("topk_group")}
    kinds, attention, bias = _kinds(config), latent(config), config.flag("mlp_bias")
    return model(config, kinds, attention, two_kinds(config, kinds, router, bias=bias, may_be_unknown=True))


def read_deepseek_v3(config: Config) -> Written:
    """Scores by sigmoid, a correction held as a buffer, groups of experts; modules that predict further tokens."""
    agrees(config, "head_dim", rotated_size(config), "`qk_rope_head_dim` numbers of a head are rotated")
    return {**read_without_modules(config), **_modules(config)}


def read_without_modules(config: Config) -> Written:
    """The same class, for checkpoints that are not known to hold such modules."""
    kinds, later = _kinds(config), later_tokens(config, "num_nextn_predict_layers")
    return model(config, kinds, latent(config), two_kinds(config, kinds, sigmoid_router(config)), **later)


def sigmoid_router(config: Config) -> Written:
    """DeepSeek-V3's, whose factor is written or the class's own."""
    return corrected_router(config, scale=_scale(config))


def _scale(config: Config) -> float:
    config.note("routed_scaling_factor")
    return config.number("routed_scaling_factor")


def _kinds(config: Config) -> list[str]:
    """Experts from layer `first_k_dense_replace` on, in each of them: `moe_layer_freq` is read by the code of the
    published files and not by the class, so that both agree on 1 alone.
    """
    key = "first_k_dense_replace"
    config.expect("moe_layer_freq", None, 1)
    config.whole(key)
    return dense_first(layer_count(config), count(config, key))


def _modules(config: Config) -> Written:
    """Modules that predict further tokens, if the file says how many: a checkpoint of this class holds each as one
    more layer with experts, and copies of both tables beside it. With tied tables no such checkpoint is known.
    """
    key = "num_nextn_predict_layers"
    number = count(config, key) if key in config.data else 0
    if not number or config.flag("tie_word_embeddings"):
        return {}
    number = config.size(key, largest=MOST_LAYERS)
    layer = block(config, latent(config), experts(config, router=sigmoid_router(config)))
    return {
        "multi_token": {"repeat": number, "norm": rms_norm(config), "own_tables": True, "layer": layer},
        "not_counted": [],
    }


READERS = {"deepseek_v2": read_deepseek_v2, "deepseek_v3": read_deepseek_v3, "kimi_k2": read_deepseek_v3}
CLASSES = {
    "deepseek_v2": ("DeepseekV2ForCausalLM",),
    "deepseek_v3": ("DeepseekV3ForCausalLM",),
    "kimi_k2": ("DeepseekV3ForCausalLM",),
}
CODE = dict.fromkeys(READERS, ("modeling_deepseek",))
"""Modules of their own that published files name, and that the class was made of."""
