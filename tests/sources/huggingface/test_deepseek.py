"""DeepSeek-V2 and V3, and the classes that are near them: worked-out sums, published files, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.calculators import kv_cache as calculators

Config = dict[str, Any]

# V=19, D=35, N=5, R_q=17, R=23, nope=7, rope=6, v=11, F=37 and 13, E=12, X=3, L=4.
V3: Config = {
    "model_type": "deepseek_v3",
    "vocab_size": 19,
    "hidden_size": 35,
    "num_hidden_layers": 4,
    "num_attention_heads": 5,
    "q_lora_rank": 17,
    "kv_lora_rank": 23,
    "qk_nope_head_dim": 7,
    "qk_rope_head_dim": 6,
    "v_head_dim": 11,
    "intermediate_size": 37,
    "moe_intermediate_size": 13,
    "n_routed_experts": 12,
    "n_shared_experts": 1,
    "num_experts_per_tok": 3,
    "n_group": 3,
    "topk_group": 2,
    "first_k_dense_replace": 1,
}
UNGROUPED = {key: value for key, value in V3.items() if key not in ("n_group", "topk_group")}
V2 = {**UNGROUPED, "model_type": "deepseek_v2"}
K2 = {**V3, "model_type": "kimi_k2"}
GLM = {**{key: value for key, value in UNGROUPED.items() if key != "first_k_dense_replace"}, "num_key_value_heads": 5}
GLM["model_type"] = "glm4_moe_lite"
SARVAM = {**UNGROUPED, "model_type": "sarvam_mla"}
YOUTU = {key: value for key, value in UNGROUPED.items() if "expert" not in key and not key.startswith(("first", "moe"))}
YOUTU |= {"model_type": "youtu", "tie_word_embeddings": False}
SMALL = {config["model_type"]: config for config in (V2, V3, K2, GLM, SARVAM, YOUTU)}

TABLES, NORMS, FINAL = 2 * 19 * 35, 2 * 35, 35
# Latents of keys and values D -> R + rope, their norm, R -> N·(nope + v), and N·v -> D.
HELD = 35 * (23 + 6) + 23 + 23 * 5 * (7 + 11) + 5 * 11 * 35
QUERIES = 35 * 17 + 17 + 17 * 5 * (7 + 6)
ATTENTION = QUERIES + HELD
DENSE, EXPERT, ROUTER = 3 * 35 * 37, 3 * 35 * 13, 35 * 12
SPARSE = ROUTER + 12 * EXPERT + EXPERT
LAYERS = 4 * (ATTENTION + NORMS) + DENSE
WHOLE = TABLES + LAYERS + 3 * SPARSE + FINAL


def _total(config: Config) -> int:
    return parameters(load(config)).total


def _router(config: Config) -> dict[str, Any]:
    written = load(config).groups[-1].block.feed_forward.router.model_dump()
    return {key: written[key] for key in ("scores", "correction", "normalize", "scale", "groups", "groups_per_token")}


# ---------------------------------------------------------------------------------------------------- worked-out sums


@pytest.mark.parametrize("config", [V2, V3, K2, SARVAM, GLM])
def test_the_total_worked_out(config):
    assert _total(config) == WHOLE


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        # Queries of the input: D -> N·(nope + rope) in each of four layers.
        ({"q_lora_rank": None}, 4 * (35 * 5 * 13 - QUERIES)),
        # Biases on both matrices that make latents, and on the output.
        ({"attention_bias": True}, 4 * (17 + 29 + 35)),
        ({"attention_bias": True, "q_lora_rank": None}, 4 * (35 * 5 * 13 - QUERIES + 29 + 35)),
        ({"first_k_dense_replace": 0}, SPARSE - DENSE),
        ({"first_k_dense_replace": 3}, 2 * (DENSE - SPARSE)),
        ({"first_k_dense_replace": 4}, 3 * (DENSE - SPARSE)),
        ({"first_k_dense_replace": 9}, 3 * (DENSE - SPARSE)),
        ({"n_shared_experts": 0}, -3 * EXPERT),
        ({"n_shared_experts": None}, -3 * EXPERT),
        ({"n_shared_experts": 2}, 3 * EXPERT),
        ({"tie_word_embeddings": True}, -19 * 35),
        ({"moe_layer_freq": 1}, 0),
    ],
)
@pytest.mark.parametrize("config", [V2, V3, K2, SARVAM])
def test_what_a_key_adds(config, changes, more):
    assert _total({**config, **changes}) == WHOLE + more


def test_the_biases_of_networks():
    """`mlp_bias` in V2: on the dense layer's gate and up F, down D; on what all tokens go to, in three layers."""
    assert _total({**V2, "mlp_bias": True}) == WHOLE + (2 * 37 + 35) + 3 * (2 * 13 + 35)


def test_layers_by_word():
    kinds = ["sparse", "dense", "dense", "sparse"]
    arch = load({**GLM, "mlp_layer_types": kinds})
    assert [path.rpartition(".")[2] for path in arch.inventory.layout["decoder"]] == kinds
    assert parameters(arch).total == WHOLE + DENSE - SPARSE


def test_youtu_has_one_network_a_layer():
    assert _total(YOUTU) == TABLES + LAYERS + 3 * DENSE + FINAL


@pytest.mark.parametrize("config", [V3, K2, GLM, SARVAM])
def test_the_correction_is_a_buffer(config):
    """E numbers in each of three layers, and in no total."""
    assert parameters(load(config)).buffers == 3 * 12


def test_active():
    """Three experts of twelve in three layers; beside it tables, attention and whatever every token goes to."""
    assert parameters(load(V3)).active == WHOLE - 3 * 9 * EXPERT


def test_a_cache_of_latents():
    """R + rope numbers a token and layer, whatever the heads; decompressed nope + rope + v for each of them."""
    assert kv_cache(load(V3), 13).elements == 4 * 13 * (23 + 6)
    decompressed = calculators.kv_cache(load(V3).inventory.decompressed, 13)
    assert decompressed.elements == 4 * 13 * 5 * (7 + 6 + 11)


def test_flops_worked_out():
    """11 tokens, nothing cached: 66 pairs of N·(nope + rope + v) numbers, and every matrix that a token meets."""
    token = 4 * (ATTENTION - 17 - 23) + DENSE + 3 * (ROUTER + 4 * EXPERT) + 19 * 35
    counted = flops(load(V3), Workload(new_tokens=11))
    assert counted.weights == 2 * 11 * token
    assert counted.attention == 4 * 2 * 66 * 5 * (7 + 6 + 11)


# ------------------------------------------------------------------------------------------- modules that look ahead


@pytest.mark.parametrize("config", [V3, K2])
def test_modules_for_further_tokens(config):
    """Beside the total: two norms and the one below the head, 2D -> D, a layer with experts, and both tables."""
    arch = load({**config, "num_nextn_predict_layers": 2})
    one = 3 * 35 + 2 * 35 * 35 + ATTENTION + NORMS + SPARSE + 12 + TABLES
    found = parameters(arch)
    assert (found.total, found.active, found.buffers) == (WHOLE, parameters(load(config)).active, 3 * 12)
    assert found.extra == 2 * one
    assert flops(arch, Workload(new_tokens=11)) == flops(load(config), Workload(new_tokens=11))
    assert kv_cache(arch, 11).elements == kv_cache(load(config), 11).elements


@pytest.mark.parametrize("key", ["num_nextn_predict_layers", "num_mtp_layers"])
def test_modules_by_either_name(key):
    assert load({**V3, key: 1}).multi_token.repeat == 1
    assert load({**V3, key: 0}).multi_token is None


def test_a_module_has_experts_whatever_the_layers_have():
    arch = load({**V3, "first_k_dense_replace": 4, "num_nextn_predict_layers": 1})
    assert arch.multi_token.layer.feed_forward.kind == "mixture"
    assert parameters(arch).total == WHOLE + 3 * (DENSE - SPARSE)


def test_where_no_layout_is_known():
    """Not counted by name: modules of tied tables, and of classes whose checkpoints are not DeepSeek's."""
    tied = {**V3, "tie_word_embeddings": True}
    for config in (tied, GLM, SARVAM):
        arch = load({**config, "num_nextn_predict_layers": 1})
        assert (arch.multi_token, arch.not_counted) == (None, ("multi-token-prediction layers",))
        assert load(config).not_counted == ()
    assert load({**V3, "num_nextn_predict_layers": 1}).not_counted == ()


# ------------------------------------------------------------------------------------------------------------ routing


def test_the_routers():
    sigmoid = {"scores": "sigmoid", "correction": "buffer", "normalize": True, "scale": 2.5}
    assert _router(V3) == {**sigmoid, "groups": 3, "groups_per_token": 2}
    assert _router({**V3, "norm_topk_prob": False, "routed_scaling_factor": 1.5}) == {
        **sigmoid, "normalize": False, "scale": 1.5, "groups": 3, "groups_per_token": 2,
    }  # fmt: skip
    assert _router(GLM) == {**sigmoid, "scale": 1.8, "groups": 1, "groups_per_token": 1}
    assert _router(SARVAM) == {**sigmoid, "groups": 1, "groups_per_token": 1}


def test_the_routers_of_v2():
    """Groups only where `topk_method` says so."""
    plain = {"scores": "softmax", "correction": False, "normalize": False, "scale": 1.0}
    grouped = {**V2, "n_group": 3, "topk_group": 2}
    assert _router(V2) == _router(grouped) == {**plain, "groups": 1, "groups_per_token": 1}
    assert _router({**grouped, "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0}) == {
        **plain, "scale": 16.0, "groups": 3, "groups_per_token": 2,
    }  # fmt: skip
    assert _router({**V2, "norm_topk_prob": True})["normalize"]


def test_what_does_not_show_in_a_total():
    block = load({**V3, "rms_norm_eps": 1e-5, "rope_theta": 5e4, "max_position_embeddings": 29}).groups[0].block
    assert (block.norm.eps, block.attention.norm.eps) == (1e-5, 1e-6)
    assert (block.positions.theta, block.positions.rotary_dim) == (5e4, None)
    assert load({**V3, "max_position_embeddings": 29}).context_length == 29
    assert {group.path.rpartition(".")[2]: group.times for group in load(V3).groups} == {"dense": 1, "sparse": 3}


@pytest.mark.parametrize("model_type", SMALL)
def test_keys_of_published_files(model_type):
    common = {
        "aux_loss_alpha": 0.001,
        "ep_size": 1,
        "pretraining_tp": 1,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "rope_interleave": True,
        "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
        "seq_aux": True,
        "qk_head_dim": 13,
        "partial_rotary_factor": 1.0,
        "num_key_value_heads": 5,
    }
    config = SMALL[model_type]
    assert load({**config, **common}).inventory == load(config).inventory


def test_heads_that_are_not_written():
    """The class default of key/value heads is DeepSeek-V3's own; a file that leaves it out means all heads."""
    assert "num_key_value_heads" not in V3
    assert load({**V3, "num_key_value_heads": None}) == load({**V3, "num_key_value_heads": 5})


def test_old_names():
    for config, old, new in (
        (V2, "num_experts", "n_routed_experts"),
        (V3, "num_local_experts", "n_routed_experts"),
        (SARVAM, "num_experts", "n_routed_experts"),
        (SARVAM, "num_shared_experts", "n_shared_experts"),
        (GLM, "num_local_experts", "n_routed_experts"),
        (GLM, "head_dim", "qk_rope_head_dim"),
    ):
        renamed = {old if key == new else key: value for key, value in config.items()}
        assert load(renamed).inventory == load(config).inventory
    # What a class overwrites: its rotary part in V2, the cached numbers of a token in old files of Sarvam.
    assert load({**V2, "head_dim": 99}).inventory == load(V2).inventory
    assert load({**SARVAM, "head_dim": 29, "q_head_dim": 13}).inventory == load(SARVAM).inventory


# ------------------------------------------------------------------------------------------------------ code and class

AUTO = {"AutoConfig": "configuration_deepseek.DeepseekV3Config", "AutoModel": "modeling_deepseek.DeepseekV3Model"}


@pytest.mark.parametrize("config", [V3, K2])
def test_the_code_that_published_files_name(config):
    named = {"architectures": ["DeepseekV3ForCausalLM"]}
    own = {**AUTO, "AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM"}
    assert load({**config, **named, "auto_map": own}).inventory == load(config).inventory


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"auto_map": {"AutoModelForCausalLM": "modeling_mine.DeepseekV3ForCausalLM"}}, "auto_map"),
        ({"auto_map": {"AutoModel": "x/y--modeling_deepseek.DeepseekV3Model"}}, "auto_map"),
        ({"auto_map": {"AutoModel": 7}}, "auto_map"),
        ({"auto_map": AUTO, "architectures": ["KimiForCausalLM"]}, "auto_map"),
        ({"architectures": ["DeepseekV2ForCausalLM"]}, "architectures"),
        ({"architectures": ["DeepseekV3ForMaskedLM"]}, "architectures"),
    ],
)
@pytest.mark.parametrize("config", [V3, K2])
def test_other_code_is_refused(refusal, config, changes, key):
    named = {"architectures": ["DeepseekV3ForCausalLM"]}
    assert f"`{key}`" in refusal({**config, **named, **changes}).what


# ------------------------------------------------------------------------------------------------------------ wrapper


@pytest.mark.parametrize("model_type", ["kimi_k2", "deepseek_v3"])
def test_kimi_k25_is_its_text_model(model_type):
    text = {**V3, "model_type": model_type, "tie_word_embeddings": False, "auto_map": AUTO}
    text["architectures"] = ["DeepseekV3ForCausalLM"]
    whole = {
        "model_type": "kimi_k25",
        "architectures": ["KimiK25ForConditionalGeneration"],
        "auto_map": {"AutoModel": "modeling_kimi_k25.KimiK25ForConditionalGeneration"},
        "text_config": text,
        "vision_config": {"patch_size": 14},
        "ignore_index": -100,
        "media_placeholder_token_id": 7,
        "tie_word_embeddings": False,
        "use_unified_vision_chunk": True,
        "video_placeholder": "<video>",
    }
    assert load(whole).inventory.records == load(text).inventory.records
    assert load(whole).not_counted == ("vision tower",)


def test_the_code_of_its_text_model(refusal):
    foreign = {"AutoModelForCausalLM": "modeling_mine.DeepseekV3ForCausalLM"}
    whole = {"model_type": "kimi_k25", "text_config": {**V3, "tie_word_embeddings": False, "auto_map": foreign}}
    assert "`auto_map` names code of its own" in refusal({**whole, "tie_word_embeddings": False}).what


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"num_experts_per_tok": 13}, "`num_experts_per_tok` 13 of `n_routed_experts` 12"),
        ({"num_experts_per_tok": 0}, "`num_experts_per_tok` must be"),
        ({"kv_lora_rank": None}, "`kv_lora_rank` must be"),
        ({"q_lora_rank": 0}, "`q_lora_rank` must be"),
        ({"qk_rope_head_dim": None}, "`qk_rope_head_dim` must be"),
        ({"qk_rope_head_dim": 0}, "`qk_rope_head_dim` must be"),
        ({"qk_rope_head_dim": 5}, "`qk_rope_head_dim` 5 is odd"),
        ({"qk_nope_head_dim": 0}, "`qk_nope_head_dim` must be"),
        ({"v_head_dim": None}, "`v_head_dim` must be"),
        ({"num_key_value_heads": 1}, "`num_key_value_heads` 1, but all 5 heads"),
        ({"num_key_value_heads": True}, "`num_key_value_heads` true, but all 5 heads"),
        ({"qk_head_dim": 14}, "`qk_head_dim` 14, but 7 + 6"),
        ({"attention_bias": 1}, "`attention_bias` must be"),
        ({"partial_rotary_factor": 0.5}, "`partial_rotary_factor` 0.5"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "`partial_rotary_factor` 0.5"),
        ({"first_k_dense_replace": -1}, "`first_k_dense_replace`"),
        ({"first_k_dense_replace": 2.5}, "`first_k_dense_replace`"),
        ({"moe_layer_freq": 2}, "`moe_layer_freq`: 2"),
        ({"moe_layer_freq": [0, 1, 1, 1]}, "`moe_layer_freq`"),
        ({"n_shared_experts": -1}, "`n_shared_experts`"),
        ({"routed_scaling_factor": 0}, "`routed_scaling_factor` must be"),
        ({"layer_types": ["indexed_attention"] * 4}, "`layer_types` has 'indexed_attention'"),
        ({"layer_types": ["full_attention"] * 3}, "`layer_types` must be a list of 4"),
        ({"index_topk": 2048}, "`index_topk`: 2048 is not read"),
        ({"sliding_window": 8}, "`sliding_window`: 8 is not read"),
        ({"o_lora_rank": 8}, "`o_lora_rank`: 8 is not read"),
        ({"hidden_act": "xielu"}, "`hidden_act`"),
    ],
)
@pytest.mark.parametrize("config", [V2, V3, K2, SARVAM, GLM])
def test_bad_values(refusal, config, changes, what):
    assert what in refusal({**config, **changes}).what


@pytest.mark.parametrize(
    ("config", "changes", "what"),
    [
        (V3, {"scoring_func": "softmax"}, "`scoring_func`: 'softmax'"),
        (V3, {"scoring_func": "sqrtsoftplus"}, "`scoring_func`: 'sqrtsoftplus'"),
        (V3, {"topk_method": "greedy"}, "`topk_method`: 'greedy'"),
        (V3, {"head_dim": 29}, "`head_dim` 29, but"),
        (V3, {"n_group": 5}, "`n_routed_experts` 12 is not a multiple of 5 groups"),
        (V3, {"topk_group": 4}, "`topk_group` 4, but there are 3 groups"),
        (V3, {"n_group": 12, "topk_group": 12}, "12 groups of `n_routed_experts` 12"),
        (V3, {"topk_group": 1, "num_experts_per_tok": 5}, "`num_experts_per_tok` 5, of 1 groups"),
        (V3, {"num_nextn_predict_layers": -1}, "`num_nextn_predict_layers`"),
        (V3, {"num_nextn_predict_layers": True}, "`num_nextn_predict_layers`"),
        (
            V3,
            {"num_nextn_predict_layers": 10**9},
            "`num_nextn_predict_layers` must be a whole number from 1 to 100,000",
        ),
        (V3, {"num_mtp_layers": 1, "num_nextn_predict_layers": 2}, "disagree"),
        (V2, {"scoring_func": "sigmoid"}, "`scoring_func`: 'sigmoid'"),
        (V2, {"topk_method": "noaux_tc"}, "`topk_method`: 'noaux_tc'"),
        (V2, {"topk_method": None}, "`topk_method`"),
        (V2, {"topk_method": "group_limited_greedy"}, "`n_group` must be"),
        (V2, {"num_attention_heads": 6}, "`hidden_size` 35 is not a multiple"),
        (V2, {"num_nextn_predict_layers": 1}, "`num_nextn_predict_layers`: 1 is not read"),
        (GLM, {"mlp_layer_types": ["dense"]}, "`mlp_layer_types` must be a list of 4"),
        (GLM, {"mlp_layer_types": ["dense", "sparse", "sparse", "moe"]}, "`mlp_layer_types` has 'moe'"),
        (GLM, {"first_k_dense_replace": 2}, "`first_k_dense_replace`"),
        (GLM, {"head_dim": 8}, "`head_dim` and another name"),
        (SARVAM, {"q_head_dim": 12}, "`q_head_dim` 12, but 7 + 6"),
        (YOUTU, {"head_dim": 8}, "`head_dim` 8, but"),
        (YOUTU, {"n_routed_experts": 8}, "`n_routed_experts`: 8 is not read"),
        (YOUTU, {"mlp_bias": True}, "`mlp_bias`: true is not read"),
        (YOUTU, {"v_head_dim": None}, "`v_head_dim` must be"),
    ],
)
def test_bad_values_of_one_type(refusal, config, changes, what):
    assert what in refusal({**config, **changes}).what
