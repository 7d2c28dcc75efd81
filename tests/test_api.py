"""The Python API: what `import costcalc` offers, and what it refuses."""

import copy
import pathlib
import subprocess
import sys

import pytest

import costcalc

# As tests/cli/conftest.py counts it: 8,177 parameters.
TINY = {
    "name": "tiny",
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "positions": {"kind": "learned", "length": 11},
    "layers": [
        {
            "repeat": 3,
            "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5},
            "feed_forward": {"kind": "gated", "d_ff": 37},
        }
    ],
}
CONFIG = {
    "model_type": "llama",
    "vocab_size": 19,
    "hidden_size": 78,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 37,
    "rope_scaling": None,
    "max_position_embeddings": 11,
}


def new_python(program):
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_costcalc_and_naming_its_parts_loads_nothing_heavy():
    program = (
        "import sys, costcalc; print(*dir(costcalc)); print(*{'pydantic', 'numpy', 'rich', 'typer'} & {*sys.modules})"
    )
    names, heavy = new_python(program).splitlines()
    assert set(costcalc.__all__) <= set(names.split())
    assert heavy == ""


def test_all_of_it_can_be_had():
    assert set(costcalc.__all__) == {
        "Architecture",
        "CostcalcError",
        "Workload",
        "flops",
        "experts",
        "kv_cache",
        "load",
        "parameters",
        "verify",
    }
    for name in costcalc.__all__:
        assert getattr(costcalc, name).__name__ == name
        assert getattr(costcalc, name).__doc__


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'costcalc' has no attribute 'paramters'"):
        _ = costcalc.paramters
    assert not hasattr(costcalc, "annotations_of_nothing")


def test_the_version_is_text():
    assert costcalc.__version__.count(".") == 2


def test_parameters():
    """As tests/cli/conftest.py works it out; looked up only: embedding 247 and positions 143."""
    count = costcalc.parameters(costcalc.load(TINY))
    assert (count.total, count.embedding, count.non_embedding) == (8_177, 247 + 143 + 247, 7_540)
    assert (count.active, count.trainable, count.buffers, count.extra) == (8_177, 8_177, 0, 0)
    assert (count.active_without_input_table, count.active_without_tables) == (8_177 - 247 - 143, 7_540)
    assert sum(part.parameters for part in count.components) == 8_177
    assert count.not_counted == ()


def test_flops():
    """Weights 2·(3·(1,040 + 1,443) + 247) = 15,392 a token; attention 3·2·6·(5 + 5)·28 pairs = 10,080; 7 tokens."""
    done = costcalc.flops(costcalc.load(TINY), costcalc.Workload(new_tokens=7))
    assert (done.forward, done.weights, done.attention, done.modelled) == (117_824, 107_744, 10_080, 0)
    assert (done.train, done.per_token) == (353_472, 16_832)


def test_flops_without_a_training_pass():
    arch = costcalc.load(TINY)
    assert costcalc.flops(arch, costcalc.Workload(new_tokens=1, past_tokens=6)).train is None
    assert costcalc.flops(arch, costcalc.Workload(new_tokens=7, logits="last")).train is None


def test_experts():
    moe = {"kind": "mixture", "experts": 7, "experts_per_token": 2, "expert": {"d_ff": 11}}
    arch = costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"feed_forward": moe}]})
    path = "decoder.layers.feed_forward.experts"
    assert costcalc.experts(arch).distinct == {path: 2}
    assert costcalc.experts(arch, 3).distinct == {path: pytest.approx(218 / 49)}  # 7·(1 - (5/7)^3)


def test_kv_cache():
    """2·3·2·5 = 60 elements a token; in q8_0 420 of them take 420·34/32 = 446.25 bytes, 480 take 510."""
    arch = costcalc.load(TINY)
    held = costcalc.kv_cache(arch, 7)
    assert (held.elements, held.cross_elements, held.state_elements) == (420, 0, 0)
    assert (held.bytes, held.state_bytes, held.bytes_per_token) == (840, 0, 120)
    held = costcalc.kv_cache(arch, 7, dtype="q8_0")
    assert (held.bytes, held.bytes_per_token) == (447, 63)
    assert costcalc.kv_cache(arch, 7, batch=2).bytes == 1_680


def test_every_number_is_an_int():
    arch = costcalc.load(TINY)
    results = [
        costcalc.parameters(arch),
        costcalc.flops(arch, costcalc.Workload(new_tokens=7)),
        costcalc.kv_cache(arch, 7),
    ]
    for result in results:
        numbers = {
            name: getattr(result, name) for name in result.__slots__ if name not in ("components", "not_counted")
        }
        assert {type(value) for value in numbers.values()} == {int}, numbers


def test_results_cannot_be_changed():
    count = costcalc.parameters(costcalc.load(TINY))
    with pytest.raises(AttributeError):
        count.total = 1
    with pytest.raises(AttributeError):
        costcalc.Workload().batch = 2


@pytest.mark.parametrize(
    "source", ["llama-3-8b", "8b", "8B", pathlib.Path(costcalc.__file__).parents[1] / "presets/models/llama-3-8b.yaml"]
)
def test_load_takes_a_preset_an_alias_and_a_path(source):
    arch = costcalc.load(source)
    assert isinstance(arch, costcalc.Architecture)
    assert costcalc.parameters(arch).total == 8_030_261_248


def test_load_takes_text_that_is_a_path(tmp_path):
    (tmp_path / "gpt.yaml").write_text(
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n"
    )
    arch = costcalc.load(str(tmp_path / "gpt.yaml"))
    assert arch.name == "gpt"
    # embedding and head 247 each, a norm before the layer and one after all of them, 2·13·37
    assert costcalc.parameters(arch).total == 2 * 247 + 2 * 13 + 962


@pytest.mark.parametrize("mapping", [TINY, CONFIG, {**TINY, "name": None}])
def test_load_leaves_a_mapping_as_it_was(mapping):
    written = {key: value for key, value in mapping.items() if value is not None or key != "name"}
    before = copy.deepcopy(written)
    first, second = costcalc.load(written), costcalc.load(written)
    assert written == before
    assert list(written) == list(before)
    assert first == second


def test_load_takes_a_config_json_as_a_mapping():
    """q and output 78·6·10 each, k and v 78·2·10 each, three of 78·37, two norms: 21,294 a layer."""
    assert costcalc.parameters(costcalc.load(CONFIG)).total == 3 * 21_294 + 2 * 19 * 78 + 78


@pytest.mark.parametrize(
    "values",
    [
        {"batch": 0},
        {"batch": -1},
        {"batch": "3"},
        {"batch": True},
        {"batch": 2.0},
        {"batch": None},
        {"batch": 10**15 + 1},
        {"new_tokens": 0},
        {"new_tokens": "7"},
        {"new_tokens": False},
        {"past_tokens": -1},
        {"past_tokens": 0.5},
        {"memory_tokens": -1},
        {"counting": "atended"},
        {"counting": None},
        {"logits": "first"},
        {"latent": "expand"},
    ],
    ids=str,
)
def test_a_workload_refuses_what_it_cannot_count(values):
    (name,) = values
    with pytest.raises(costcalc.CostcalcError, match=name) as caught:
        costcalc.Workload(**values)
    assert caught.value.hint


def test_a_workload_takes_its_bounds():
    assert costcalc.Workload(batch=10**12, new_tokens=10**12, past_tokens=10**12).tokens == 10**24
    assert costcalc.Workload().tokens == 1


@pytest.mark.parametrize("context", [0, -1, "3", True, 7.0, None, 10**15 + 1])
def test_kv_cache_refuses_a_context_that_is_no_length(context):
    with pytest.raises(costcalc.CostcalcError, match="context"):
        costcalc.kv_cache(costcalc.load(TINY), context)


def test_kv_cache_refuses_a_batch_of_nothing():
    with pytest.raises(costcalc.CostcalcError, match="batch"):
        costcalc.kv_cache(costcalc.load(TINY), 7, batch=0)


def test_kv_cache_refuses_an_unknown_dtype_with_the_nearest():
    with pytest.raises(costcalc.CostcalcError, match="bf17") as caught:
        costcalc.kv_cache(costcalc.load(TINY), 7, dtype="bf17")
    assert (
        caught.value.hint
        == "one of: fp64, fp32, fp16, bf16, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, mxfp8, mxfp4"
    )


def test_two_numbers_cannot_be_swapped():
    with pytest.raises(TypeError):
        costcalc.kv_cache(costcalc.load(TINY), 7, 2)


def test_an_error_holds_its_evidence():
    with pytest.raises(costcalc.CostcalcError) as caught:
        costcalc.load("./no-such-file.yaml")
    assert (caught.value.where, caught.value.what) == ("./no-such-file.yaml", "no such file")
    assert str(caught.value) == "./no-such-file.yaml: no such file"
    assert caught.value.hint


@pytest.mark.parametrize(
    "call",
    [
        costcalc.parameters,
        lambda arch: costcalc.flops(arch, costcalc.Workload(new_tokens=7)),
        lambda arch: costcalc.kv_cache(arch, 7),
        costcalc.verify,
    ],
)
def test_a_name_is_no_architecture(call):
    with pytest.raises(TypeError, match=r"^an Architecture is needed, not str: costcalc\.load\(\.\.\.\) gives one$"):
        call("gpt2")
