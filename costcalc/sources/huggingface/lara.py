"""LaraMiniForCausalLM: Gated DeltaNet, attention in a window with rotations, and attention without either that sees
all; experts in every layer.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, SLIDING, Written, layer_count, rms_norm
from costcalc.sources.huggingface.delta import NAMES_OF_THREE
from costcalc.sources.huggingface.qwen_next import mixer_of
from costcalc.sources.huggingface.recurrent import LINEAR
from costcalc.sources.huggingface.sparse import (
    attention,
    gated,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    whole,
)

PATTERN = (LINEAR, SLIDING, LINEAR, FULL, SLIDING)


def read_lara_mini(config: Config) -> Written:
    """`PATTERN` where `layer_types` is null. An expert for all tokens, without a gate. `attention_bias` is on the
    output as well.
    """
    config.note("intermediate_size")  # of the class that it was made of: no layer is dense
    layers, norm, head_dim, bias = layer_count(config), rms_norm(config), config.size("head_dim"), _bias(config)
    types = config.layer_types(layers, (LINEAR, SLIDING, FULL))
    types = types or [PATTERN[layer % len(PATTERN)] for layer in range(layers)]
    positions, mixer = rotations(config, head_dim, theta=1e4), mixer_of(config)
    windows = {NAMES_OF_THREE[FULL]: None, NAMES_OF_THREE[SLIDING]: config.size("sliding_window")}
    common: Written = {"norm": norm, "feed_forward": _experts(config)}

    def layer_of(word: str) -> Written:
        if word not in windows:
            return {**common, "positions": NO_POSITIONS, "mixer": mixer}
        core = attention(config, head_dim=head_dim, qk_norm=per_head(norm), window=windows[word], **bias)
        return {**common, "positions": positions if windows[word] else NO_POSITIONS, "attention": core}

    return whole(config, norm, positions, layers_by_kind([(NAMES_OF_THREE[word],) for word in types], layer_of))


def _bias(config: Config) -> Written:
    bias = config.flag("attention_bias")
    return {"bias": bias, "out_bias": bias}


def _experts(config: Config) -> Written:
    expert = gated(config, config.size("moe_intermediate_size"))
    shared = gated(config, config.size("shared_expert_intermediate_size"))
    return mixture(config, expert, router={"normalize": config.flag("norm_topk_prob")}, shared=shared)


READERS = {"lara_mini": read_lara_mini}
CLASSES = {"lara_mini": ("LaraMiniForCausalLM",)}
