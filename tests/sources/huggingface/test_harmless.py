from __future__ import annotations

import pytest

from costcalc import CostcalcError, load
from costcalc.sources.huggingface.harmless import HARMLESS, HARMLESS_IF

SIZES = {"vocab_size": 19, "hidden_size": 42, "num_attention_heads": 6, "num_hidden_layers": 3}
LIKE_LLAMA = {**SIZES, "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 37, "tie_word_embeddings": False}
SMALL = {
    "gpt2": {**SIZES, "n_inner": 37, "n_positions": 11},
    "llama": {**LIKE_LLAMA, "attention_bias": False, "mlp_bias": False},
    "mistral": {**LIKE_LLAMA, "sliding_window": 5},
    "qwen2": {**LIKE_LLAMA, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    "qwen3": {**LIKE_LLAMA, "use_sliding_window": True, "sliding_window": 5, "attention_bias": True},
    "gemma2": {**LIKE_LLAMA, "sliding_window": 5},
}

# Constants that change no count, but that the forward pass needs: a reader takes them, so they must be numbers.
CONSTANTS_READ = {
    "layer_norm_epsilon": ("gpt2",),
    "rms_norm_eps": ("llama", "mistral", "qwen2", "qwen3", "gemma2"),
    "query_pre_attn_scalar": ("gemma2",),
    "attn_logit_softcapping": ("gemma2",),
    "final_logit_softcapping": ("gemma2",),
}
# Keys that are harmless, but that a reader still looks at.
LOOKED_AT = {"rope_theta", "rope_parameters", *CONSTANTS_READ}

# Switches that some classes read; the others only make sure that they are off.
READ_BY = {
    "attention_bias": ("llama", "qwen3", "gemma2"),
    "mlp_bias": ("llama",),
    "use_sliding_window": ("mistral", "qwen2", "qwen3", "gemma2"),
    "hidden_act": ("llama", "mistral", "qwen2", "qwen3"),
    "add_cross_attention": ("gpt2",),
}

# Keys that decide a cost in at least one class, collected from transformers and from public configs.
COSTS = """
    vocab_size hidden_size n_embd n_layer n_head n_inner n_positions max_position_embeddings num_hidden_layers
    num_attention_heads intermediate_size num_key_value_heads head_dim tie_word_embeddings attention_bias mlp_bias
    qkv_bias bias use_bias attention_out_bias sliding_window sliding_window_size use_sliding_window
    max_window_layers layer_types sliding_window_pattern attention_chunk_size num_kv_shared_layers per_layer_config
    block_configs num_nextn_predict_layers mtp_num_hidden_layers medusa_num_heads draft_vocab_size
    target_hidden_size dflash_config eagle_config v_head_dim qk_norm use_qk_norm qk_layernorm attention_head_type
    multi_query multi_query_group_num kv_channels num_experts num_local_experts num_experts_per_tok
    moe_intermediate_size n_routed_experts n_shared_experts decoder_sparse_step mlp_only_layers vision_config
    audio_config text_config embedding_size word_embed_proj_dim padded_vocab_size n_special type_vocab_size
    pruned_heads add_cross_attention is_encoder_decoder dim n_layers n_heads n_kv_heads multiple_of
    ffn_dim_multiplier architectures model_type hidden_act hidden_activation activation_function num_loops lora_rank
    peft_config auto_map is_causal use_bidirectional_attention is_decoder position_embedding_type
    num_hidden_groups inner_group_num local_attention global_attn_every_n_layers norm_bias decoder_bias
    classifier_bias sinusoidal_pos_embds sparse_prediction
"""


def test_no_key_that_decides_a_cost_is_harmless_whatever_it_holds():
    assert not HARMLESS & set(COSTS.split())


def test_a_key_is_harmless_or_harmless_while_it_is_off():
    assert not HARMLESS & HARMLESS_IF.keys()


def test_the_words_are_keys():
    assert all(word.replace(".", "").isidentifier() for word in HARMLESS | HARMLESS_IF.keys())
    assert len(HARMLESS) > 150


@pytest.mark.parametrize("model_type", SMALL)
def test_a_harmless_key_changes_nothing_whatever_it_holds(model_type):
    config = {"model_type": model_type, **SMALL[model_type]}
    inventory = load(config).inventory
    for key in HARMLESS - LOOKED_AT:
        for value in ("x", 7):
            assert load({**config, key: value}).inventory == inventory, key
    for value in (True, None, 0.5, [7], {"a": [7]}):
        assert load({**config, **dict.fromkeys(HARMLESS - LOOKED_AT, value)}).inventory == inventory


@pytest.mark.parametrize(("model_type", "key"), [(t, key) for key, types in CONSTANTS_READ.items() for t in types])
def test_a_constant_changes_no_count_but_must_be_a_number_above_zero(model_type, key):
    config = {"model_type": model_type, **SMALL[model_type]}
    for value in (7, 0.25, 1e-12):
        loaded = load({**config, key: value})
        assert loaded.inventory == load(config).inventory
        assert loaded.source == load(config).source  # not among the class defaults that a count was read from
    for value in ("x", 0, -1.0, True, [7], float("inf"), float("nan")):
        with pytest.raises(CostcalcError, match=f"`{key}` must be a number above 0"):
            load({**config, key: value})


@pytest.mark.parametrize("model_type", SMALL)
def test_a_constant_that_a_class_does_not_know_is_not_read(model_type):
    config = {"model_type": model_type, **SMALL[model_type]}
    for key, types in CONSTANTS_READ.items():
        if model_type not in types:
            assert load({**config, key: "x"}) == load(config)


@pytest.mark.parametrize("model_type", SMALL)
def test_a_rotary_base_changes_nothing(model_type):
    config = {"model_type": model_type, **SMALL[model_type]}
    assert (
        load({**config, "rope_theta": 7.0, "rope_parameters": {"rope_theta": 5e5}}).inventory == load(config).inventory
    )


@pytest.mark.parametrize("model_type", SMALL)
def test_a_key_that_is_off_changes_nothing_and_one_that_is_on_is_refused(model_type):
    config = {"model_type": model_type, **SMALL[model_type]}
    inventory = load(config).inventory
    for key, values in HARMLESS_IF.items():
        if model_type in READ_BY.get(key, ()):
            continue
        for value in values:
            assert load({**config, key: value}).inventory == inventory, key
        for value in ("x", 7, [7], {"a": 1}):
            with pytest.raises(CostcalcError):
                load({**config, key: value})


@pytest.mark.parametrize(("model_type", "key"), [(name, key) for key, names in READ_BY.items() for name in names])
def test_a_key_that_a_class_reads_is_judged_by_its_reader(model_type, key):
    with pytest.raises(CostcalcError) as caught:
        load({"model_type": model_type, **SMALL[model_type], key: "x"})
    assert "might change a cost" not in caught.value.what


@pytest.mark.parametrize("model_type", [name for name in SMALL if name != "gpt2"])
def test_a_base_inside_rope_scaling_comes_first(model_type):
    """As the classes take it: `rope_scaling` stands for `rope_parameters`, and a base inside beats the one beside."""
    inside, other = {"rope_type": "default", "rope_theta": 7.0}, {"rope_type": "default", "rope_theta": 9.0}
    config = {"model_type": model_type, **SMALL[model_type], "rope_theta": 50.0}
    thetas = [
        load({**config, **more}).decoder.positions.theta
        for more in ({}, {"rope_parameters": other}, {"rope_scaling": inside, "rope_parameters": other})
    ]
    assert thetas == [50.0, 9.0, 7.0]
