"""Presets of Gemma-3n and Gemma-4: printed totals, caches, and field by field what is read of their files."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import load, parameters
from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.changes import changes
from costcalc.calculators.capacity import Paging, paged
from costcalc.calculators.kv_cache import kv_cache
from costcalc.units import matches_printed

Config = dict[str, Any]

S, F = "sliding_attention", "full_attention"
THREE_N: Config = {
    "activation_sparsity_pattern": [0.95] * 10 + [0.0] * 25,
    "altup_active_idx": 0,
    "altup_coef_clip": 120.0,
    "altup_correct_scale": True,
    "altup_lr_multiplier": 1.0,
    "altup_num_inputs": 4,
    "attention_bias": False,
    "final_logit_softcapping": 30.0,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2048,
    "hidden_size_per_layer_input": 256,
    "intermediate_size": [16384] * 35,
    "laurel_rank": 64,
    "layer_types": ([S] * 4 + [F]) * 7,
    "max_position_embeddings": 32768,
    "model_type": "gemma3n_text",
    "num_attention_heads": 8,
    "num_hidden_layers": 35,
    "num_key_value_heads": 2,
    "num_kv_shared_layers": 15,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": 512,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 262400,
    "vocab_size_per_layer_input": 262144,
}
FOUR: Config = {
    "attention_bias": False,
    "attention_k_eq_v": True,
    "enable_moe_block": False,
    "final_logit_softcapping": 30.0,
    "global_head_dim": 512,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size_per_layer_input": 0,
    "max_position_embeddings": 262144,
    "model_type": "gemma4_text",
    "num_experts": None,
    "num_kv_shared_layers": 0,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        F: {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
        S: {"rope_theta": 10000.0, "rope_type": "default"},
    },
    "sliding_window": 1024,
    "tie_word_embeddings": True,
    "top_k_experts": None,
    "use_bidirectional_attention": "vision",
    "use_double_wide_mlp": False,
    "vocab_size": 262144,
    "vocab_size_per_layer_input": 262144,
}
SMALL_FOUR: Config = {
    **FOUR,
    "attention_k_eq_v": False,
    "hidden_size_per_layer_input": 256,
    "max_position_embeddings": 131072,
    "num_attention_heads": 8,
    "num_global_key_value_heads": None,
    "sliding_window": 512,
    "use_bidirectional_attention": None,
}
TEXTS: dict[str, Config] = {
    "gemma-3n-e4b": THREE_N,
    "gemma-3n-e2b": {
        **THREE_N,
        "activation_sparsity_pattern": [0.95] * 10 + [0.0] * 20,
        "intermediate_size": [8192] * 30,
        "layer_types": ([S] * 4 + [F]) * 6,
        "num_hidden_layers": 30,
        "num_kv_shared_layers": 10,
    },
    "gemma-4-e2b": {
        **SMALL_FOUR,
        "hidden_size": 1536,
        "intermediate_size": 6144,
        "layer_types": ([S] * 4 + [F]) * 7,
        "num_hidden_layers": 35,
        "num_key_value_heads": 1,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
    },
    "gemma-4-e4b": {
        **SMALL_FOUR,
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "layer_types": ([S] * 5 + [F]) * 7,
        "num_hidden_layers": 42,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 18,
    },
    "gemma-4-26b-a4b": {
        **FOUR,
        "enable_moe_block": True,
        "hidden_size": 2816,
        "intermediate_size": 2112,
        "layer_types": ([S] * 5 + [F]) * 5,
        "moe_intermediate_size": 704,
        "num_attention_heads": 16,
        "num_experts": 128,
        "num_global_key_value_heads": 2,
        "num_hidden_layers": 30,
        "num_key_value_heads": 8,
        "top_k_experts": 8,
    },
    "gemma-4-31b": {
        **FOUR,
        "expert_intermediate_size": None,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "layer_types": ([S] * 5 + [F]) * 10,
        "num_attention_heads": 32,
        "num_global_key_value_heads": 4,
        "num_hidden_layers": 60,
        "num_key_value_heads": 16,
    },
}
WITHOUT_AUDIO = ("gemma-4-26b-a4b", "gemma-4-31b")
# As the library's classes have them (5.24.0), and how many a token uses.
TOTALS = {
    "gemma-3n-e4b": (6_835_235_568, 6_835_235_568),
    "gemma-3n-e2b": (4_435_182_688, 4_435_182_688),
    "gemma-4-e2b": (4_628_569_344, 4_628_569_344),
    "gemma-4-e4b": (7_463_013_376, 7_463_013_376),
    "gemma-4-26b-a4b": (25_233_141_760, 3_822_530_560),
    "gemma-4-31b": (30_697_345_280, 30_697_345_280),
}


def published(name: str) -> Config:
    """A config.json as it lies beside the weights: the text model inside, and other parts."""
    wrapper = "gemma3n" if "3n" in name else "gemma4"
    audio = None if name in WITHOUT_AUDIO else {"hidden_size": 1024}
    return {
        "architectures": [f"{wrapper.capitalize()}ForConditionalGeneration"],
        "audio_config": audio,
        "audio_token_id": 258881,
        "eoa_token_id": 258883,
        "image_token_id": 258880,
        "model_type": wrapper,
        "text_config": TEXTS[name],
        "tie_word_embeddings": True,
        "vision_config": {"hidden_size": 1152},
        "vision_soft_tokens_per_image": 280,
    }


@pytest.mark.parametrize("name", TEXTS)
def test_preset_and_published_config_are_one_model(name: str) -> None:
    preset, read = load(name), load(published(name))
    assert changes(preset, read) == ()
    assert preset.not_counted == read.not_counted
    assert preset.inventory == read.inventory
    count = parameters(preset)
    assert (count.total, count.active) == TOTALS[name]
    assert count.buffers == (0 if "3n" in name else len(TEXTS[name]["layer_types"]))


@pytest.mark.parametrize(("name", "active"), [("gemma-4-26b-a4b", "3.8B"), ("gemma-4-31b", "30.7B")])
def test_what_the_card_prints(name: str, active: str) -> None:
    """Google's model card of Gemma 4: 25.2B parameters of which 3.8B are active, and 30.7B."""
    count, printed = parameters(load(name)), load(name).published_parameters
    assert matches_printed(count.total, str(printed))
    assert matches_printed(count.active, active)


def held_in_vain(name: str) -> int:
    """Keys' and values' weights, and the gain of their norm, of layers that read another's, which files hold too."""
    model, width = load(name), load(name).d_model
    total = 0
    for group in model.groups:
        attention = group.block.attention
        assert isinstance(attention, GroupedQuery)
        if attention.cache_of is not None:
            kv_heads, head_dim = attention.sizes(width)
            total += group.times * (2 * width * kv_heads * head_dim + head_dim)
    return total


@pytest.mark.parametrize(("name", "billions"), [("gemma-3n-e4b", "3.98B"), ("gemma-3n-e2b", "1.91B")])
def test_effective_parameters_as_google_counts_them(name: str, billions: str) -> None:
    """Its list of slices of Gemma 3n (google/gemma3n-slicing-configs): all but tables, unused weights included."""
    assert matches_printed(parameters(load(name)).non_embedding + held_in_vain(name), billions)


def test_e4b_worked_out() -> None:
    # A layer: 4 norms of D, QK-norm of the head, q and output D·N·H each; AltUp 2·D + D·4 + 4·16 + 4·4; the augmented
    # residual 2·D·64 + D; per-layer inputs 2·D·256 + D; a network 3·D·F. Of 35 layers 20 have keys and values, 2·D·K·H,
    # and a norm of keys.
    d, n, k, h, f, layers = 2048, 8, 2, 256, 16_384, 35
    layer = 4 * d + h + 2 * d * n * h + (6 * d + 80) + (128 * d + d) + (512 * d + d) + 3 * d * f
    own = 262_144 * layers * 256 + d * layers * 256 + 256
    states = 2 * 3 * d * d
    total = layers * layer + 20 * (2 * d * k * h + h) + own + states + 262_400 * d + d
    assert parameters(load("gemma-3n-e4b")).total == total


@pytest.mark.parametrize(
    ("name", "whole", "local", "of_whole", "of_local"),
    [
        # Layers that keep everything, and those that keep a window; elements of a token in one of either: 2·K·H.
        ("gemma-3n-e4b", 4, 16, 1024, 1024),
        ("gemma-3n-e2b", 4, 16, 1024, 1024),
        ("gemma-4-e2b", 3, 12, 1024, 512),
        ("gemma-4-e4b", 4, 20, 2048, 1024),
        ("gemma-4-26b-a4b", 5, 25, 2048, 4096),
        ("gemma-4-31b", 10, 50, 4096, 8192),
    ],
)
def test_who_keeps_what(name: str, whole: int, local: int, of_whole: int, of_local: int) -> None:
    window = TEXTS[name]["sliding_window"]
    inventory = load(name).inventory
    for context in (100, 32_768):
        kept = whole * of_whole * context + local * of_local * min(context, window)
        assert kv_cache(inventory, context).elements == kept


def test_cache_of_26b_and_what_an_engine_sets_aside() -> None:
    """131,072 tokens in fp16: 5 layers of 4,096 bytes a token, 25 of 8,192 that keep 1,024, or 1,536 with a batch."""
    inventory = load("gemma-4-26b-a4b").inventory
    assert kv_cache(inventory, 131_072, dtype="fp16").bytes == 5 * 4096 * 131_072 + 25 * 8192 * 1024 == 2_894_069_760
    kept = kv_cache(paged(inventory, Paging(block=1, slots=512)), 131_072, dtype="fp16")
    assert kept.bytes == 5 * 4096 * 131_072 + 25 * 8192 * 1536 == 2_998_927_360


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (
            "gemma-3n-e4b",
            ((("local_sparse",) * 4 + ("global_sparse",)) * 2)
            + ((("local",) * 4 + ("global",)) * 2)
            + ((("local_shared",) * 4 + ("global_shared",)) * 3),
        ),
        ("gemma-4-31b", (("local",) * 5 + ("global",)) * 10),
        (
            "gemma-4-e4b",
            ((("local",) * 5 + ("global",)) * 4) + ((("local_shared",) * 5 + ("global_shared",)) * 3),
        ),
    ],
)
def test_which_layer_is_which(name: str, layout: tuple[str, ...]) -> None:
    order = load(name).inventory.layout["decoder"]
    assert tuple(path.rpartition(".")[2] for path in order) == layout
