"""Gemma-4's importers: sums, heads by kind of layer, experts beside the network, wrappers, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.positions import NoPositions, RotaryPositions

Config = dict[str, Any]

S, F = "sliding_attention", "full_attention"
# V=19, D=23, N=6, F=37; six layers, of which the last sees everything: heads of 10 and, there, of 14; K=2
SMALL: Config = {
    "model_type": "gemma4_text",
    "vocab_size": 19,
    "hidden_size": 23,
    "intermediate_size": 37,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "global_head_dim": 14,
    "sliding_window": 5,
    "hidden_size_per_layer_input": 0,
    "max_position_embeddings": 71,
}
EXPERTS: Config = {"enable_moe_block": True, "num_experts": 7, "top_k_experts": 3, "moe_intermediate_size": 13}


def small(**changes: Any) -> Architecture:
    return load({**SMALL, **changes})


def names(model: Architecture) -> list[str]:
    """Of each layer, in order."""
    return [path.rpartition(".")[2] for path in model.inventory.layout["decoder"]]


def attention_of(model: Architecture, name: str) -> Any:
    (block,) = [group.block for group in model.groups if group.path.endswith(f".{name}")]
    return block.attention


def layer(heads: int, kv: int, size: int, *, same: bool = False) -> int:
    """Norms 4·23, q and output, keys and values (or one for both), norms of q and k, a network of 3·23·37."""
    return 92 + 2 * 23 * heads * size + (1 if same else 2) * 23 * kv * size + 2 * size + 2_553


def test_parameters_by_hand() -> None:
    count = parameters(small())
    assert count.total == 5 * layer(6, 2, 10) + layer(6, 2, 14) + 19 * 23 + 23
    assert count.buffers == 6  # a scale for each layer


def test_keys_that_are_values_too() -> None:
    """No weights of values in full layers, but both are cached; there alone heads of their number are meant."""
    same = small(attention_k_eq_v=True, num_global_key_value_heads=3)
    assert parameters(same).total == 5 * layer(6, 2, 10) + layer(6, 3, 14, same=True) + 19 * 23 + 23
    assert kv_cache(same, 23).elements == 5 * 40 * 5 + 2 * 3 * 14 * 23
    assert kv_cache(small(num_global_key_value_heads=3), 23).elements == 5 * 40 * 5 + 2 * 2 * 14 * 23


def test_experts_beside_the_network() -> None:
    # Three norms of 23 more; a router 23·7 with 23 and 7 numbers; 7 experts of 3·23·13, of which a token uses 3.
    plain, mixed = parameters(small()), parameters(small(**EXPERTS))
    assert mixed.total - plain.total == 6 * (69 + 161 + 30 + 7 * 897)
    assert mixed.total - mixed.active == 6 * 4 * 897
    rows = Workload(new_tokens=11)
    more = flops(small(**EXPERTS), rows).forward - flops(small(), rows).forward
    assert more == 6 * 2 * 11 * (161 + 3 * 897)


def test_the_router_reads_the_stream_and_has_a_norm_and_scales() -> None:
    for group in small(**EXPERTS).groups:
        router = group.block.feed_forward_beside.router  # type: ignore[union-attr]
        assert (router.reads, router.norm.weight, router.input_scale, router.expert_scale) == (
            "residual",
            False,
            True,
            True,
        )


def test_per_layer_inputs() -> None:
    """A table of 17·6·11, 23·66 and a norm of 11; in each layer 2·23·11 and a norm of 23."""
    own = small(hidden_size_per_layer_input=11, vocab_size_per_layer_input=17)
    assert parameters(own).total - parameters(small()).total == 1_122 + 1_518 + 11 + 6 * (506 + 23)


def test_layers_that_share_keys_may_be_twice_as_wide() -> None:
    types = [S, F, S, S, F, F]
    shared, wide = (
        small(layer_types=types, num_kv_shared_layers=3, use_double_wide_mlp=wide) for wide in (False, True)
    )
    assert names(shared) == ["local", "global", "local", "local_shared", "global_shared", "global_shared"]
    assert parameters(wide).total - parameters(shared).total == 3 * 2_553
    assert kv_cache(wide, 23).elements == 2 * 40 * 5 + 56 * 23
    assert attention_of(wide, "local_shared").cache_of == "local"
    assert attention_of(wide, "global_shared").cache_of == "global"
    assert parameters(small(use_double_wide_mlp=True)).total == parameters(small()).total


def test_the_last_layer_sees_everything_whatever_is_written() -> None:
    assert names(small(layer_types=[S] * 6)) == names(small()) == ["local"] * 5 + ["global"]
    assert names(small(num_hidden_layers=8)) == ["local"] * 5 + ["global", "local", "global"]


@pytest.mark.parametrize("form", ["05", "5"])
def test_sizes_by_the_number_of_a_layer(form: str) -> None:
    """As newer files say it; then the older keys count for nothing."""
    sizes = {form: {"head_dim": 18, "num_key_value_heads": 3}}
    made = small(per_layer_config=sizes, global_head_dim=None, num_global_key_value_heads=6)
    assert parameters(made).total == 5 * layer(6, 2, 10) + layer(6, 3, 18) + 19 * 23 + 23
    assert parameters(small(per_layer_config={})).total == 6 * layer(6, 2, 10) + 19 * 23 + 23


def positions(model: Architecture, name: str) -> Any:
    (block,) = [group.block for group in model.groups if group.path.endswith(f".{name}")]
    return block.positions


def rope(full: Config) -> Config:
    return {"rope_parameters": {F: full, S: {"rope_type": "default", "rope_theta": 20.0}}, "global_head_dim": 40}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # 0.25 of 40 numbers are 10: five pairs, at the frequencies of 20
        ({"global_head_dim": 40}, RotaryPositions(theta=1e6, rotary_dim=10, frequencies="head")),
        # 0.25 of 14 are 3: one pair
        ({}, RotaryPositions(theta=1e6, rotary_dim=2, frequencies="head")),
        (rope({"rope_type": "proportional", "rope_theta": 70.0}), RotaryPositions(theta=70.0)),
        (rope({"rope_type": "proportional", "partial_rotary_factor": 0.01}), NoPositions()),
        (
            rope({"rope_type": "default", "partial_rotary_factor": 0.25, "rope_theta": 70.0}),
            RotaryPositions(theta=70.0),
        ),
    ],
)
def test_which_numbers_of_a_head_are_rotated(changes: Config, expected: Any) -> None:
    made = small(**changes)
    assert positions(made, "global") == expected
    assert positions(made, "local") == RotaryPositions(theta=20.0 if "rope_parameters" in changes else 1e4)


def wrapped(wrapper: str, text: Config, **parts: Any) -> Config:
    return {"model_type": wrapper, "text_config": text, "image_token_id": 258880, "eoa_token_index": 258883, **parts}


@pytest.mark.parametrize(
    ("parts", "not_counted"),
    [
        ({}, ()),
        ({"vision_config": {"hidden_size": 5}, "audio_config": None}, ("vision tower",)),
        ({"vision_config": {"hidden_size": 5}, "audio_config": {"hidden_size": 5}}, ("vision tower", "audio tower")),
    ],
)
def test_the_text_model_of_a_published_file(parts: Config, not_counted: tuple[str, ...]) -> None:
    made = load(wrapped("gemma4", {**SMALL, "use_bidirectional_attention": "vision"}, **parts))
    assert made.inventory.records == small().inventory.records
    assert made.not_counted == not_counted


def test_the_unified_sibling_has_neither_experts_nor_per_layer_inputs() -> None:
    text = {key: value for key, value in SMALL.items() if "per_layer_input" not in key}
    text["model_type"] = "gemma4_unified_text"
    parts = {"vision_config": {"hidden_size": 5}, "audio_config": {"hidden_size": 5}}
    made = load(wrapped("gemma4_unified", text, **parts))
    assert made.inventory.records == load(text).inventory.records == small().inventory.records
    assert made.not_counted == ("vision embedder", "audio embedder")
    with pytest.raises(CostcalcError, match="`enable_moe_block`: true is not read for gemma4_unified_text"):
        load({**text, **EXPERTS})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"use_bidirectional_attention": "all"}, "`use_bidirectional_attention`: 'all'"),
        ({"num_kv_shared_layers": 5}, "`num_kv_shared_layers` 5 of 6 layers leaves none of full_attention"),
        ({"num_kv_shared_layers": 6}, "leaves none of full_attention and sliding_attention"),
        ({"head_dim": 9}, "RoPE rotates pairs, and a head of 9 is odd"),
        ({"global_head_dim": 9}, "RoPE rotates pairs, and a head of 9 is odd"),
        ({"global_head_dim": None}, "`global_head_dim` must be a whole number"),
        ({**EXPERTS, "top_k_experts": 8}, "`top_k_experts` 8 of `num_experts` 7"),
        ({**EXPERTS, "num_experts": None}, "`num_experts` must be a whole number"),
        ({"per_layer_config": []}, "`per_layer_config` must hold layers by number"),
        ({"per_layer_config": {"6": {"head_dim": 14}}}, "`per_layer_config` has '6'"),
        ({"per_layer_config": {"x": {"head_dim": 14}}}, "`per_layer_config` has 'x'"),
        ({"per_layer_config": {"5": {"intermediate_size": 14}}}, "may have head_dim and num_key_value_heads"),
        ({"per_layer_config": {"5": {"head_dim": 0}}}, "`per_layer_config` has 0, which is no size"),
        ({"per_layer_config": {"5": {"head_dim": True}}}, "`per_layer_config` has true, which is no size"),
        ({"per_layer_config": {"0": {"head_dim": 14}}}, "`per_layer_config` makes layers of one type differ"),
        (rope({"rope_type": "proportional", "partial_rotary_factor": 1.5}), "`partial_rotary_factor` must be a number"),
        (
            rope({"rope_type": "proportional", "partial_rotary_factor": True}),
            "`partial_rotary_factor` must be a number",
        ),
    ],
)
def test_what_is_refused(changes: Config, words: str) -> None:
    with pytest.raises(CostcalcError) as caught:
        small(**changes)
    assert words in str(caught.value)
    assert caught.value.hint


def test_a_null_of_per_layer_config_overrides_nothing():
    """`Gemma4UnifiedForCausalLM` of this config, built by the library (5.24.0): 299,104 parameters."""
    sizes = {"vocab_size": 503, "hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 2, "head_dim": 24}
    sizes |= {"num_attention_heads": 8, "num_key_value_heads": 1, "sliding_window": 8, "pad_token_id": 0}
    config = {"model_type": "gemma4_unified_text", **sizes}
    none, empty = (load({**config, "per_layer_config": value}) for value in (None, {}))
    assert parameters(none).total == parameters(empty).total == 299_104
    assert parameters(load(config)).total > 299_104  # full layers have heads of 512 where nobody says otherwise
