"""Gemma-3n's importer: sums, names of layers, dialects, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture

Config = dict[str, Any]

S, F = "sliding_attention", "full_attention"
# V=19, D=24, N=4, K=2, H=6, F=37; 7 layers of which the last two read keys; A=3, R=5, V_own=17, W=11
SMALL: Config = {
    "model_type": "gemma3n_text",
    "vocab_size": 19,
    "hidden_size": 24,
    "intermediate_size": 37,
    "num_hidden_layers": 7,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "sliding_window": 5,
    "vocab_size_per_layer_input": 17,
    "hidden_size_per_layer_input": 11,
    "altup_num_inputs": 3,
    "laurel_rank": 5,
    "num_kv_shared_layers": 2,
    "max_position_embeddings": 71,
}


def small(**changes: Any) -> Architecture:
    return load({**SMALL, **changes})


def names(model: Architecture) -> list[str]:
    """Of each layer, in order."""
    return [path.rpartition(".")[2] for path in model.inventory.layout["decoder"]]


def test_parameters_by_hand() -> None:
    # A layer: norms 4·24, q and output 2·24·24, a norm of heads 6; AltUp: 2·24, 24·3, 3·9, 3·3; residual 2·24·5 + 24;
    # its own inputs 2·24·11 + 24; network 3·24·37. Of 7 layers 5 have keys and values, 2·24·12, and a norm of 6.
    layer = 96 + 1_152 + 6 + (48 + 72 + 27 + 9) + 264 + 552 + 2_664
    # Outside: a table 19·24 and a last norm; 17·7·11, 24·77 and a norm of 11; 2·2 matrices of 24².
    outside = 19 * 24 + 24 + 1_309 + 1_848 + 11 + 4 * 576
    assert parameters(small()).total == 7 * layer + 5 * (576 + 6) + outside


def test_flops_by_hand() -> None:
    """11 tokens: a causal layer sees 66 pairs, one with a window of 5 sees 45."""
    layer = 1_152 + (2 * 72 + 27 + 24 * 9 + 9) + 240 + 528 + 2_664
    a_row = 7 * layer + 5 * 576 + 24 * 77 + 4 * 576 + 24 * 19
    counted = flops(small(), Workload(new_tokens=11))
    assert counted.weights == 2 * 11 * a_row
    assert counted.attention == 2 * 2 * 4 * 6 * (66 + 6 * 45)  # of 7 layers only the fifth has no window


def test_layers_that_read_keys_keep_none() -> None:
    """Four layers with a window of 5, one without: 2·2·6 numbers a token."""
    assert kv_cache(small(), 23).elements == 24 * (4 * 5 + 23)
    assert kv_cache(small(num_kv_shared_layers=0), 23).elements == 24 * (6 * 5 + 23)


def test_which_layer_is_which() -> None:
    assert names(small()) == [*["local"] * 4, "global", *["local_shared"] * 2]
    sparse = ["local_sparse"] * 4 + ["global_sparse"]
    made = small(num_hidden_layers=13, num_kv_shared_layers=2)
    assert names(made) == [*sparse, *sparse, "local", "local_shared", "local_shared"]
    # Where just those are sparse that make keys, one of the two tells them apart.
    made = small(num_hidden_layers=13, num_kv_shared_layers=3)
    assert names(made) == [*(["local"] * 4 + ["global"]) * 2, *["local_shared"] * 3]


def test_the_last_layer_of_a_type_that_makes_keys_lends_them() -> None:
    made = small(layer_types=[S, F, S, S, S, F, S], activation_sparsity_pattern=[0.9, 0.9, 0.9, 0.0, 0.9, 0.0, 0.0])
    assert names(made) == [
        *("local_sparse", "global_sparse", "local_sparse", "local", "local_sparse"),
        *("global_shared", "local_shared"),
    ]
    lent = [g.block.attention.cache_of for g in made.groups if g.block.attention and g.block.attention.cache_of]
    assert lent == ["global_sparse", "local_sparse"]


def test_layers_of_one_kind_have_no_name_unless_another_reads_them() -> None:
    alike: Config = {"layer_types": [F] * 7, "activation_sparsity_pattern": [0.0] * 7}
    assert set(names(small(**alike, num_kv_shared_layers=0))) == {"layers"}
    assert names(small(**alike)) == [*["own"] * 5, *["shared"] * 2]


@pytest.mark.parametrize(
    ("pattern", "shares"),
    [
        (None, [0.0] * 7),
        ([0.95] * 2 + [0.0] * 5, [0.95] * 2 + [0.0] * 5),
        ([0.95, 0.5, 0, 0.5, 0.95, 0.0, 0.0], [0.95, 0.5, 0.0, 0.5, 0.95, 0.0, 0.0]),
    ],
)
def test_which_layers_are_sparse(pattern: list[float] | None, shares: list[float]) -> None:
    made = small(activation_sparsity_pattern=pattern)
    of_path = {group.path: getattr(group.block.feed_forward, "sparsity", None) for group in made.groups}
    assert [of_path[path] for path in made.inventory.layout["decoder"]] == shares
    assert parameters(made).total == parameters(small()).total


def test_of_more_than_ten_layers_the_first_ten_are_sparse() -> None:
    for layers, sparse in ((10, 0), (11, 10), (13, 10)):
        made = small(num_hidden_layers=layers)
        of_path = {group.path: getattr(group.block.feed_forward, "sparsity", None) for group in made.groups}
        found = [of_path[path] for path in made.inventory.layout["decoder"]]
        assert found == [0.95] * sparse + [0.0] * (layers - sparse)


def test_widths_may_differ_by_layer() -> None:
    widths = [37, 37, 41, 37, 29, 37, 41]
    extra = sum(3 * 24 * (width - 37) for width in widths)
    assert parameters(small(intermediate_size=widths)).total == parameters(small()).total + extra


@pytest.mark.parametrize(
    ("key", "base"),
    [
        ({"rope_theta": 50.0, "rope_local_base_freq": 20.0}, (20.0, 50.0)),
        ({"rope_parameters": {S: {"rope_theta": 20.0}, F: {"rope_theta": 50.0}}}, (20.0, 50.0)),
        ({}, (10_000.0, 1_000_000.0)),
    ],
)
def test_both_dialects_of_rotations(key: Config, base: tuple[float, float]) -> None:
    thetas = {group.block.positions.theta for group in small(**key).groups if group.block.positions.kind == "rope"}
    assert thetas == set(base)


WRAPPED: Config = {
    "model_type": "gemma3n",
    "architectures": ["Gemma3nForConditionalGeneration"],
    "text_config": {**SMALL, "altup_lr_multiplier": 1.0, "query_pre_attn_scalar": 256},
    "audio_config": {"hidden_size": 5},
    "audio_soft_tokens_per_image": 188,
    "vision_soft_tokens_per_image": 256,
}


def test_the_text_model_of_a_published_file() -> None:
    made = load(WRAPPED)
    assert made.inventory.records == small().inventory.records
    assert made.not_counted == ("vision tower", "audio tower")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_kv_shared_layers": 6}, "`num_kv_shared_layers` 6 of 7 layers leaves none of full_attention"),
        ({"num_kv_shared_layers": 7}, "leaves none of full_attention and sliding_attention"),
        ({"num_kv_shared_layers": 8}, "leaves none of full_attention and sliding_attention"),
        ({"num_kv_shared_layers": -1}, "`num_kv_shared_layers` must be at least 0"),
        ({"layer_types": [S] * 6 + [F], "num_kv_shared_layers": 1}, "leaves none of full_attention"),
        ({"activation_sparsity_pattern": [0.5]}, "must be a list of 7 numbers from 0 to below 1, got 1 entries"),
        ({"activation_sparsity_pattern": 0.5}, "must be a list of 7 numbers from 0 to below 1, got 0.5"),
        ({"activation_sparsity_pattern": [1.0] * 7}, "`activation_sparsity_pattern` has 1.0"),
        ({"activation_sparsity_pattern": [True] * 7}, "`activation_sparsity_pattern` has true"),
        ({"intermediate_size": [37] * 6}, "must be a list of 7 whole numbers, got 6 entries"),
        ({"intermediate_size": [37] * 6 + [0]}, "`intermediate_size` has 0"),
        ({"altup_active_idx": 3}, "`altup_active_idx` 3 of `altup_num_inputs` 3"),
        ({"altup_active_idx": -1}, "`altup_active_idx` -1 of `altup_num_inputs` 3"),
        ({"altup_num_inputs": 1}, "`altup_active_idx` 0 of `altup_num_inputs` 1"),
        ({"altup_correct_scale": False}, "`altup_correct_scale`: false"),
        ({"hidden_size": 25}, "`hidden_size` 25 is not a multiple of `num_attention_heads` 4"),
        ({"head_dim": 5}, "RoPE rotates pairs, and a head of 5 is odd"),
        ({"hidden_size_per_layer_input": 0}, "`hidden_size_per_layer_input` must be a whole number from 1"),
        ({"enable_moe_block": True}, "`enable_moe_block`: true is not read"),
    ],
)
def test_what_is_refused(changes: Config, words: str) -> None:
    with pytest.raises(CostcalcError) as caught:
        small(**changes)
    assert words in str(caught.value)
    assert caught.value.hint
