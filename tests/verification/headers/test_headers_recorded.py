"""Checkpoints that the library wrote, of many classes: every tensor is explained, and none is left out."""

from math import prod

import pytest
from written_headers import as_read, recorded

import costcalc
from costcalc.calculators.stored import stored
from costcalc.verification.headers import compare_headers

CASES = recorded()
BY_SHAPE = {"olmo2", "glm4", "nemotron_h", "olmo_hybrid", "minimax"}
"""Norms of one shape, whose words mean another place in most models."""


def checked(config, tensors):
    return compare_headers(costcalc.load(dict(config)).inventory, as_read(tensors))


@pytest.mark.parametrize("name", CASES)
def test_config_and_headers_agree(name):
    config, tensors = CASES[name]
    model = costcalc.load(dict(config))
    check = compare_headers(model.inventory, as_read(tensors))
    assert (check.missing, check.unexplained, check.differing, check.untold) == ((), (), (), ())
    assert check.agrees
    matched = [each for match in check.matches for tensor in match.tensors for each in tensor.names]
    beside = [*check.buffers, *check.scales, *(each for tensor in check.copies for each in tensor.names)]
    assert sorted([*matched, *beside]) == sorted(tensors)
    stated = [leaf for match in check.matches for leaf in match.leaves]
    assert len(stated) == len(set(stated))
    for match in check.matches:
        assert sum(prod(leaf.axes) for leaf in match.leaves) == sum(prod(each.shape) for each in match.tensors)
        assert match.how != "shape" or name in BY_SHAPE, match
    total = sum(prod(leaf.axes) for leaf in [*stated, *check.lacking] if not leaf.path.startswith("multi_token"))
    count = costcalc.parameters(model)
    assert total == count.total + count.buffers


@pytest.mark.parametrize("name", ["llama", "bert", "t5", "qwen2_moe", "gpt2"])
def test_the_headers_count_what_the_config_counts(name):
    config, tensors = CASES[name]
    assert stored(as_read(tensors)).parameters == costcalc.parameters(costcalc.load(dict(config))).total


def told(config, tensors, *, copy=None):
    """Of a case: names of what is missing, unexplained and of another shape."""
    check = checked(config, tensors)
    assert not check.agrees
    return (
        [leaf.path for leaf in check.missing],
        [name for tensor in check.unexplained for name in tensor.names],
        [([leaf.path for leaf in each.leaves], each.tensor.names[0]) for each in check.differing],
    )


FAULTS = {
    # case, tensor -> the stated weights that it is, or those that it is fused of
    ("llama", "model.layers.1.self_attn.q_proj.weight"): ["decoder.layers.1.attention.q"],
    ("llama", "model.layers.2.mlp.gate_proj.weight"): ["decoder.layers.2.feed_forward.gate"],
    ("llama", "model.norm.weight"): ["decoder.final_norm"],
    ("llama", "lm_head.weight"): ["head"],
    ("gpt2", "transformer.h.0.attn.c_attn.weight"): [f"decoder.layers.0.attention.{each}" for each in "qkv"],
    ("gpt2", "transformer.h.2.mlp.c_proj.bias"): ["decoder.layers.2.feed_forward.down_bias"],
    ("bert", "bert.encoder.layer.1.attention.output.dense.weight"): ["encoder.layers.1.attention.output"],
    ("bert", "bert.embeddings.token_type_embeddings.weight"): ["encoder.token_types"],
    ("t5", "decoder.block.1.layer.1.EncDecAttention.k.weight"): ["decoder.layers.1.cross_attention.k"],
    ("qwen2_moe", "model.layers.1.mlp.gate.weight"): ["decoder.layers.1.feed_forward.router"],
    ("gpt_oss", "model.layers.1.self_attn.sinks"): ["decoder.layers.1.attention.sinks"],
    ("jamba", "model.layers.0.mamba.conv1d.weight"): ["decoder.layers.0.mixer.conv"],
    ("deepseek_v3", "model.layers.2.self_attn.kv_a_proj_with_mqa.weight"): ["decoder.layers.2.attention.kv_down"],
}


@pytest.mark.parametrize(("name", "tensor"), FAULTS)
def test_a_tensor_that_is_not_there_is_missing(name, tensor):
    config, tensors = CASES[name]
    assert told(config, {each: shape for each, shape in tensors.items() if each != tensor}) == (
        FAULTS[name, tensor], [], []
    )  # fmt: skip


@pytest.mark.parametrize(("name", "tensor"), FAULTS)
def test_a_tensor_of_another_shape_is_told_as_one_difference(name, tensor):
    config, tensors = CASES[name]
    for axis, size in enumerate(tensors[tensor]):
        other = [*tensors[tensor][:axis], size + 1, *tensors[tensor][axis + 1 :]]
        assert told(config, {**tensors, tensor: other}) == ([], [], [(FAULTS[name, tensor], tensor)])


@pytest.mark.parametrize(("name", "tensor"), FAULTS)
def test_a_tensor_too_many_is_unexplained(name, tensor):
    config, tensors = CASES[name]
    more = tensor.replace(".weight", "_more.weight").replace(".bias", "_more.bias").replace("sinks", "sinks_more")
    assert told(config, {**tensors, more: tensors[tensor]}) == ([], [more], [])


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "albert_groups"])
def test_a_layer_too_many_or_too_few_is_told(name):
    config, tensors = CASES[name]
    container = {"llama": "model.layers", "gpt2": "transformer.h", "t5": "decoder.block"}.get(
        name, "albert.encoder.albert_layer_groups"
    )
    numbers = sorted({int(each[len(container) + 1 :].split(".")[0]) for each in tensors if each.startswith(container)})
    last = f"{container}.{numbers[-1]}."
    of_last = {each: shape for each, shape in tensors.items() if each.startswith(last)}
    missing, unexplained, _ = told(config, {each: shape for each, shape in tensors.items() if each not in of_last})
    assert (len(missing) >= len(of_last), unexplained) == (True, [])
    further = {each.replace(last, f"{container}.{numbers[-1] + 1}."): shape for each, shape in of_last.items()}
    missing, unexplained, differing = told(config, {**tensors, **further})
    assert (missing, sorted(unexplained), differing) == ([], sorted(further), [])


def test_an_expert_that_is_not_there_is_one_difference():
    config, tensors = CASES["mixtral"]
    lost = "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    missing, unexplained, differing = told(config, {each: shape for each, shape in tensors.items() if each != lost})
    assert (missing, unexplained) == ([], [])
    assert [paths for paths, _ in differing] == [["decoder.layers.1.feed_forward.experts.down"]]


def test_swapped_names_of_two_shapes_are_told():
    config, tensors = CASES["llama"]
    one, other = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"
    swapped = {**tensors, one: tensors[other], other: tensors[one]}
    assert len(told(config, swapped)[2]) == 2


def test_another_config_is_told_in_few_lines():
    config, tensors = CASES["llama"]
    missing, unexplained, differing = told({**config, "num_key_value_heads": 1}, tensors)
    assert (missing, unexplained) == ([], [])
    assert sorted(paths[0].rpartition(".")[2] for paths, _ in differing) == ["k", "k", "k", "v", "v", "v"]


def test_copies_of_tied_tables_may_be_stored():
    config, tensors = CASES["gpt2"]
    copied = checked(config, {**tensors, "lm_head.weight": tensors["transformer.wte.weight"]})
    assert copied.agrees
    assert [each.names for each in copied.copies] == [("lm_head.weight",)]
    assert not checked(config, {**tensors, "lm_head.weight": [97, 47]}).agrees
    config, tensors = CASES["llama"]
    assert not checked(config, {**tensors, "model.embed_out.weight": tensors["lm_head.weight"]}).agrees


def test_buffers_are_known_as_such():
    config, tensors = CASES["gpt2"]
    check = checked(config, {**tensors, "transformer.h.0.attn.bias": [1, 1, 64, 64], "x.rotary_emb.inv_freq": [6]})
    assert check.agrees
    assert check.buffers == ("transformer.h.0.attn.bias", "x.rotary_emb.inv_freq")


def test_further_modules_may_be_there_or_not():
    config, tensors = CASES["deepseek_v3"]
    of_last = {each: shape for each, shape in tensors.items() if each.startswith("model.layers.2.")}
    further = {each.replace("layers.2", "layers.3"): shape for each, shape in of_last.items()}
    own = {"enorm.weight": [48], "hnorm.weight": [48], "eh_proj.weight": [48, 96], "shared_head.norm.weight": [48]}
    own |= {"embed_tokens.weight": [97, 48], "shared_head.head.weight": [97, 48]}
    whole = {**tensors, **further, **{f"model.layers.3.{each}": shape for each, shape in own.items()}}
    assert not checked(config, whole).agrees
    config = {**config, "num_nextn_predict_layers": 1}
    check = checked(config, whole)
    assert check.agrees
    assert checked(config, tensors).agrees
    assert len(check.lacking) == 0
    config, tensors = CASES["llama"]  # says so by its name, as those of Qwen3-Next do, whose config says nothing
    check = checked(config, {**tensors, "mtp.layers.0.fc.weight": [48, 96]})
    assert check.agrees
    assert [each.names for each in check.further] == [("mtp.layers.0.fc.weight",)]


def test_a_layer_too_many_is_no_further_module():
    """Of three layers and one module, read as two layers and one: the third layer has no matrix that joins two rows."""
    config, tensors = CASES["deepseek_v3"]
    assert config["num_hidden_layers"] == 3
    fewer = {**config, "num_hidden_layers": 2, "num_nextn_predict_layers": 1}
    missing, unexplained, differing = told(fewer, tensors)
    assert "multi_token.0.projection" in missing
    assert differing == []
    too_many = {**tensors, "model.layers.3.input_layernorm.weight": [48], "model.layers.4.input_layernorm.weight": [48]}
    _, unexplained, _ = told({**config, "num_nextn_predict_layers": 1}, too_many)
    assert unexplained == ["model.layers.4.input_layernorm.weight"]


def test_a_buffer_that_one_layer_lacks_alone_is_missing():
    config, tensors = CASES["deepseek_v3"]
    held = [name for name in tensors if name.endswith("e_score_correction_bias")]
    assert len(held) == 2
    assert told(config, {name: shape for name, shape in tensors.items() if name != held[1]}) == (
        ["decoder.layers.2.feed_forward.router_correction"], [], []
    )  # fmt: skip
    check = checked(config, {name: shape for name, shape in tensors.items() if name not in held})
    assert check.agrees
    assert len(check.lacking) == 2


def test_modules_that_are_only_named_are_no_tower():
    config, tensors = CASES["deepseek_v3"]
    model = costcalc.load({**config, "num_nextn_predict_layers": 1, "architectures": ["DeepseekV3Model"]})
    assert model.not_counted == ("multi-token-prediction layers",)
    bare = {name: shape for name, shape in tensors.items() if name != "lm_head.weight"}
    check = compare_headers(model.inventory, as_read({**bare, "visual.proj.weight": [48, 48]}))
    assert [tensor.names for tensor in check.unexplained] == [("visual.proj.weight",)]


GGUF = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers.": "blk.",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def test_words_of_gguf_are_known_too():
    config, tensors = CASES["llama"]
    renamed = {}
    for name, shape in tensors.items():
        for word, other in GGUF.items():
            name = name.replace(word, other)  # noqa: PLW2901
        renamed[name] = shape
    check = checked(config, {**renamed, "rope_freqs.weight": [10]})
    assert check.agrees
    assert {match.how for match in check.matches} == {"name"}
