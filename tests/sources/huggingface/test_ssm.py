"""Importers of state-space models and their hybrids: what each key says, keys that disagree, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import CostcalcError, kv_cache, load, parameters
from costcalc.architecture import Architecture

Config = dict[str, Any]

# V=19, D=22, N=6, K=2, H=10, F=37; Mamba-2 with 4 heads of 11 in 2 groups of 5 states.
COMMON: Config = {
    "vocab_size": 19,
    "hidden_size": 22,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 37,
}
MAMBA2: Config = {
    "mamba_n_heads": 4,
    "mamba_d_head": 11,
    "mamba_n_groups": 2,
    "mamba_d_state": 5,
}
NEMOTRON: Config = {
    **COMMON,
    "model_type": "nemotron_h",
    "hybrid_override_pattern": "M-*EM",
    "mamba_num_heads": 4,
    "mamba_head_dim": 11,
    "n_groups": 2,
    "ssm_state_size": 5,
    "n_routed_experts": 7,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 13,
    "moe_shared_expert_intermediate_size": 17,
}
MAMBA: Config = {"model_type": "mamba", "vocab_size": 19, "hidden_size": 22, "num_hidden_layers": 3}
JAMBA: Config = {
    **COMMON,
    "model_type": "jamba",
    "num_hidden_layers": 5,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "num_experts": 7,
}
BAMBA: Config = {**COMMON, **MAMBA2, "model_type": "bamba", "num_hidden_layers": 3, "attn_layer_indices": [1]}
FALCON: Config = {**COMMON, **MAMBA2, "model_type": "falcon_h1", "num_hidden_layers": 3, "mamba_d_ssm": None}
GRANITE: Config = {**COMMON, **MAMBA2, "model_type": "granitemoehybrid", "num_hidden_layers": 3}
ZAMBA: Config = {**COMMON, "model_type": "zamba", "num_hidden_layers": 5, "attention_head_dim": 10}
ZAMBA2: Config = {
    **COMMON,
    "model_type": "zamba2",
    "num_key_value_heads": 6,
    "num_hidden_layers": 5,
    "layers_block_type": ["mamba", "hybrid", "hybrid", "mamba", "hybrid"],
    "n_mamba_heads": 4,
    "mamba_ngroups": 2,
}
del ZAMBA["head_dim"], ZAMBA2["head_dim"]
# An open case: growth of a cache with 6 layers of attention among 52.
HYBRID_OF_52: Config = {
    "model_type": "nemotron_h",
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
}


def names(model: Architecture) -> list[str]:
    """Of each layer, in order."""
    return [path.rpartition(".")[2] for path in model.inventory.layout["decoder"]]


def block_of(model: Architecture, name: str) -> Any:
    (block,) = [group.block for group in model.groups if group.block.name == name]
    return block


def refused(config: Config, match: str, **changes: Any) -> None:
    with pytest.raises(CostcalcError, match=match):
        load({**config, **changes})


# ------------------------------------------------------------------------------------------------------ Nemotron-H


def test_letters_of_a_pattern_and_words_of_a_list():
    model = load(NEMOTRON)
    assert names(model) == ["mamba", "network", "attention", "experts", "mamba"]
    words = ["mamba", "mlp", "attention", "moe", "mamba"]
    without = {key: value for key, value in NEMOTRON.items() if key != "hybrid_override_pattern"}
    assert load({**without, "layers_block_type": words}).inventory == model.inventory
    assert load({**without, "layer_types": words}).inventory == model.inventory
    assert load({**NEMOTRON, "layers_block_type": words, "num_hidden_layers": 5}).inventory == model.inventory
    assert names(load(without)) == ["mamba", "experts", "attention", "network"]


def test_one_sublayer_and_one_norm_a_layer():
    # M: in 22·(44 + 44 + 20 + 4), convolution 64·5, 3·4, a norm of 44, out 44·22; -: 2·22·37; *: 2·22·(60 + 20);
    # E: 7·2·22·13, router 22·7, shared 2·22·17; five norms and one more; two tables.
    mamba, network, attention = 22 * 112 + 320 + 12 + 44 + 968, 2 * 22 * 37, 2 * 22 * 80
    experts = 7 * 2 * 22 * 13 + 22 * 7 + 2 * 22 * 17
    count = parameters(load(NEMOTRON))
    assert count.total == 2 * mamba + network + attention + experts + 6 * 22 + 2 * 19 * 22
    assert count.buffers == 7  # the routers' correction


def test_experts_on_fewer_numbers():
    """7·2·5·13 in place of 7·2·22·13, and 22·5 down and up again; biases are on those two, and on the shared one."""
    inside = {"moe_latent_size": 5}
    less = parameters(load({**NEMOTRON, **inside})).total - parameters(load(NEMOTRON)).total
    assert less == 7 * 2 * (5 - 22) * 13 + 2 * 22 * 5
    more = parameters(load({**NEMOTRON, **inside, "mlp_bias": True})).total - parameters(load(NEMOTRON)).total
    assert more - less == (37 + 22) + (17 + 22) + (5 + 22)


def test_what_a_state_is_stored_in():
    """Two layers of 4·11·5 numbers of state, and 64 channels with 4 inputs of the convolution."""
    wide, narrow = load(NEMOTRON), load({**NEMOTRON, "mamba_ssm_cache_dtype": "bfloat16"})
    assert kv_cache(wide, 1).state_bytes == 2 * (4 * 11 * 5 * 4 + 64 * 4 * 2)
    assert kv_cache(narrow, 1).state_bytes == 2 * (4 * 11 * 5 * 2 + 64 * 4 * 2)
    assert load({**NEMOTRON, "mamba_ssm_cache_dtype": "torch.float32"}).inventory == wide.inventory
    refused(NEMOTRON, "`mamba_ssm_cache_dtype` 'int4' is not a dtype of states", mamba_ssm_cache_dtype="int4")


def test_a_hybrid_of_52_layers_grows_in_six():
    assert kv_cache(load(HYBRID_OF_52), 1000).bytes_per_token == 6 * 2 * 2 * 128 * 2 == 6144


def test_names_of_older_files():
    plain = {key: value for key, value in NEMOTRON.items() if key not in ("n_groups", "head_dim")}
    assert load({**plain, "mamba_n_groups": 2, "attention_head_dim": 10}).inventory == load(NEMOTRON).inventory
    assert load({**NEMOTRON, "n_groups": 4, "mamba_n_groups": 2}).inventory == load(NEMOTRON).inventory
    refused(NEMOTRON, "`attention_head_dim` is 11, but by the other keys it is 10", attention_head_dim=11)


def test_layers_for_later_tokens_are_not_counted():
    model = load({**NEMOTRON, "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"})
    assert model.not_counted == ("multi-token-prediction layers",)
    assert model.inventory.records == load(NEMOTRON).inventory.records


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"hybrid_override_pattern": "MXM"}, "`hybrid_override_pattern` has 'X'"),
        ({"hybrid_override_pattern": ""}, "must be a letter a layer"),
        ({"hybrid_override_pattern": ["M"]}, "must be a letter a layer"),
        ({"layers_block_type": ["mamba", "mlp", "attention", "moe", "moe"]}, "another list of the layers disagree"),
        ({"layers_block_type": ["mamba", "mlp", "conv", "moe", "mamba"]}, "has 'conv', which is not read"),
        ({"layers_block_type": "M-*EM"}, "must be a list of 1 words"),
        ({"num_hidden_layers": 6}, "`num_hidden_layers` is 6, but 5 layers are listed"),
        ({"n_groups": 3}, "`n_groups` 3 does not divide the 4 heads"),
        ({"n_shared_experts": 2}, "`n_shared_experts`: 2 of a nemotron_h config"),
        ({"attention_bias": True}, "`attention_bias`: true"),
        ({"mamba_proj_bias": True}, "`mamba_proj_bias`: true"),
        ({"sliding_window": 5}, "`sliding_window`: 5"),
        ({"num_key_value_heads": None}, "`num_key_value_heads` must be a whole number"),
        ({"mamba_window": 5}, "`mamba_window`: 5 is not read"),
    ],
)
def test_what_nemotron_h_refuses(changes, match):
    refused(NEMOTRON, match, **changes)


# ------------------------------------------------------------------------------------------ Mamba, Jamba and Bamba


def test_the_width_inside_is_what_is_written():
    """As in Falcon-Mamba 7B, whose `expand` of 16 says something else."""
    by_factor, by_width = load({**MAMBA, "expand": 3}), load({**MAMBA, "expand": 16, "intermediate_size": 66})
    assert by_factor.inventory == by_width.inventory
    assert load(MAMBA).decoder.layers[0].mixer.d_inner == 44


def test_a_rank_of_a_sixteenth_rounded_up():
    assert load(MAMBA).decoder.layers[0].mixer.dt_rank == 2  # 22 / 16
    assert load({**MAMBA, "time_step_rank": "auto"}).inventory == load(MAMBA).inventory


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"d_model": 23}, "`d_model` is 23, but by the other keys it is 22"),
        ({"n_layer": 4}, "`n_layer` is 4"),
        ({"d_inner": 45}, "`d_inner` is 45"),
        ({"rms_norm": False}, "`rms_norm` is false"),
        ({"ssm_cfg": {"d_state": 32}}, "`ssm_cfg`"),
        ({"time_step_rank": "rank"}, "`time_step_rank` must be a whole number"),
        ({"use_bias": None}, "`use_bias` must be true or false"),
    ],
)
def test_what_mamba_refuses(changes, match):
    refused(MAMBA, match, **changes)


def test_periods_of_jamba():
    assert names(load(JAMBA)) == ["mamba", "attention-sparse", "mamba", "mamba-sparse", "attention"]
    words = ["mamba", "attention", "mamba", "mamba", "attention"]
    assert load({**JAMBA, "layers_block_type": words}).inventory == load(JAMBA).inventory
    refused(JAMBA, "another list of the layers disagree", layers_block_type=["mamba"] * 5)


def test_one_expert_is_a_network_like_any_other():
    model = load({**JAMBA, "num_experts": 1})
    assert names(model) == ["mamba", "attention", "mamba", "mamba", "attention"]
    assert {group.block.feed_forward.kind for group in model.groups} == {"gated"}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"attn_layer_offset": 3}, "`attn_layer_offset` 3 must be from 0 to below `attn_layer_period` 3"),
        ({"expert_layer_offset": -1}, "`expert_layer_offset` -1"),
        ({"mamba_inner_layernorms": False}, "`mamba_inner_layernorms`: false"),
        ({"sliding_window": 5}, "`sliding_window`: 5"),
    ],
)
def test_what_jamba_refuses(changes, match):
    refused(JAMBA, match, **changes)


def test_layers_of_bamba():
    assert names(load(BAMBA)) == ["mamba", "attention", "mamba"]
    assert [group.block.name for group in load({**BAMBA, "attn_layer_indices": None}).groups] == ["mamba"]
    assert block_of(load(BAMBA), "attention").positions.rotary_dim == 6  # half of 10, rounded up to pairs
    refused(BAMBA, "`attn_rotary_emb` is 10, but by the other keys it is 6", attn_rotary_emb=10)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"mamba_d_head": 12}, "`mamba_n_heads` 4 of `mamba_d_head` 12 do not come to the width inside, 44"),
        ({"mamba_n_heads": 3, "mamba_d_head": "auto"}, "do not come to the width inside, 44"),
        ({"mamba_n_groups": 3}, "`mamba_n_groups` 3 does not divide the 4 heads"),
        ({"attn_layer_indices": 1}, "must be a list of layers"),
    ],
)
def test_what_bamba_refuses(changes, match):
    refused(BAMBA, match, **changes)


# ---------------------------------------------------------------------------------------------- Falcon-H1, Granite 4


def test_falcon_h1_has_its_mixer_beside_the_attention():
    (group,) = load(FALCON).groups
    assert (group.block.mixer, group.block.mixer_beside.heads, group.block.attention.head_dim) == (None, 4, 10)
    assert group.block.mixer_beside.gated_norm is False
    narrow = load({**FALCON, "mamba_d_ssm": 20, "mamba_d_head": 5})
    assert narrow.groups[0].block.mixer_beside.head_dim == 5
    refused(FALCON, "`attn_layer_indices`", attn_layer_indices=[1])
    refused(FALCON, "`mamba_use_mlp`: false", mamba_use_mlp=False)


def test_multipliers_change_nothing():
    of_model = {"lm_head_multiplier": 0.1, "embedding_multiplier": 5.0, "mlp_multipliers": [0.9, 0.5]}
    of_mixer = {"ssm_multipliers": [0.1] * 5, "ssm_in_multiplier": 1.2, "ssm_out_multiplier": 0.2}
    of_attention = {"key_multiplier": 0.4, "attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9}
    assert load({**FALCON, **of_model, **of_mixer, **of_attention}).inventory == load(FALCON).inventory


def test_granite_with_experts_and_without():
    sparse, dense = load(GRANITE), load({**GRANITE, "num_local_experts": 0, "num_experts_per_tok": 0})
    assert sparse.groups[0].block.feed_forward.kind == "mixture"
    assert dense.groups[0].block.feed_forward.d_ff == 1024  # of the network that is for all tokens in the other
    # 8 experts of 3·22·37 and a router, in three layers.
    assert parameters(sparse).total - parameters(dense).total == 3 * (8 * 3 * 22 * 37 + 22 * 8)


def test_positions_of_granite():
    attending = {**GRANITE, "layer_types": ["mamba", "attention", "mamba"]}
    assert names(load(attending)) == ["mamba", "attention", "mamba"]
    assert block_of(load(attending), "attention").positions.kind == "none"
    assert block_of(load({**attending, "position_embedding_type": "nope"}), "attention").positions.kind == "none"
    turned = {"position_embedding_type": "rope", "rope_theta": 7.0}
    assert block_of(load({**attending, **turned}), "attention").positions.theta == 7.0
    refused(attending, "`position_embedding_type`: 'alibi'", position_embedding_type="alibi")
    refused(attending, "`normalization_function`: 'layernorm'", normalization_function="layernorm")


# ------------------------------------------------------------------------------------------------------------ Zamba


def test_where_zamba_has_its_shared_block():
    assert names(load({**ZAMBA, "num_hidden_layers": 15})) == [
        "hybrid" if layer in (2, 7, 13) else "mamba" for layer in range(15)
    ]
    assert names(load({**ZAMBA, "layers_block_type": ["hybrid", "mamba", "mamba", "mamba", "mamba"]}))[0] == "hybrid"
    refused(ZAMBA, "the class's own pattern begins with 3 layers", num_hidden_layers=2)
    refused(ZAMBA, "`attention_hidden_size` is 22", attention_hidden_size=22)
    refused(ZAMBA, "`n_mamba_heads` 3 does not divide the width inside, 44", n_mamba_heads=3)


def test_blocks_of_zamba2_take_turns():
    assert names(load(ZAMBA2)) == ["mamba", "hybrid", "hybrid", "mamba", "hybrid"]
    assert names(load({**ZAMBA2, "num_mem_blocks": 2})) == ["mamba", "hybrid0", "hybrid1", "mamba", "hybrid0"]
    assert names(load({**ZAMBA2, "num_mem_blocks": 9})) == ["mamba", "hybrid0", "hybrid1", "mamba", "hybrid2"]
    one, two, more = (parameters(load({**ZAMBA2, "num_mem_blocks": n})).total for n in (1, 2, 9))
    # 4 matrices between 44 or 22 and 6 heads of 7, three of 22·37, two norms.
    assert two - one == more - two == 3 * 44 * 42 + 42 * 22 + 3 * 22 * 37 + 44 + 22


def test_adapters_are_of_each_layer():
    """6 heads of 7 do not come to 44 numbers: heads of 22 do."""
    wide = {**ZAMBA2, "num_attention_heads": 2, "num_key_value_heads": 2, "adapter_rank": 3}
    plain, adapted = load(wide), load({**wide, "use_shared_attention_adapter": True})
    assert parameters(adapted).total - parameters(plain).total == 3 * 3 * (44 * 3 + 3 * 44)
    assert parameters(plain).total - parameters(load({**wide, "adapter_rank": 2})).total == 3 * (22 + 2 * 37)
    refused(ZAMBA2, "adapters give 44 numbers", use_shared_attention_adapter=True)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"layers_block_type": None}, "`num_hidden_layers` 5, and no list of them: the class's own is of 54"),
        ({"hybrid_layer_ids": [1, 2]}, "`hybrid_layer_ids` is not what the other keys say"),
        ({"use_conv_bias": False}, "`use_conv_bias`: false"),
        ({"mamba_headdim": 12}, "`mamba_headdim` is 12"),
        ({"n_mamba_heads": 3}, "do not come to the width inside, 44"),
        ({"mamba_ngroups": 3}, "`mamba_ngroups` 3 does not divide the 4 heads"),
        ({"ffn_hidden_size": 38}, "`ffn_hidden_size` is 38"),
        ({"num_query_groups": 3}, "`num_query_groups` is 3"),
        ({"use_mem_rope": True, "attention_head_dim": 7}, "RoPE rotates pairs"),
    ],
)
def test_what_zamba2_refuses(changes, match):
    refused(ZAMBA2, match, **changes)


def test_positions_of_zamba2():
    turned = load({**ZAMBA2, "use_mem_rope": True, "attention_head_dim": 8, "use_long_context": True})
    assert (turned.decoder.positions.kind, turned.context_length) == ("rope", 16_384)
    assert (load(ZAMBA2).decoder.positions.kind, load(ZAMBA2).context_length) == ("none", 4_096)


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({**GRANITE, "num_local_experts": None}, "`num_local_experts` must be"),
        ({**NEMOTRON, "layers_block_type": []}, "`layers_block_type` lists no layer"),
        ({**NEMOTRON, "moe_latent_size": 0}, "`moe_latent_size` must be"),
    ],
)
def test_what_the_class_cannot_be_built_with(config, what):
    with pytest.raises(CostcalcError, match=what):
        load(config)
