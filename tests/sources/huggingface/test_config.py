from __future__ import annotations

import json
import math

import pytest

from costcalc import load, parameters
from costcalc.errors import CostcalcError
from costcalc.sources.huggingface.activations import ACTIVATIONS
from costcalc.sources.huggingface.config import DEFAULTS, MOST_LAYERS, Config
from costcalc.sources.origin import Origin

MODEL_TYPES = sorted(path.stem for path in DEFAULTS.glob("*.json"))
SIZE = "a whole number from 1 to 1,000,000,000,000"


def _config(data: dict, model_type: str = "llama") -> Config:
    return Config(data, model_type=model_type, origin=Origin("folder/config.json"))


@pytest.fixture
def refused():
    """The refusal of a call; it names the file and says what to write."""

    def _refused(ask, *args: object, **named: object) -> CostcalcError:
        with pytest.raises(CostcalcError) as caught:
            ask(*args, **named)
        assert caught.value.where == "folder/config.json"
        assert caught.value.hint
        return caught.value

    return _refused


# -------------------------------------------------------------------------------------------------------- one value


def test_a_value_is_what_is_written_else_the_class_default_else_nothing():
    config = _config({"vocab_size": 19, "head_dim": None, "hidden_act": None})
    assert config["vocab_size"] == 19
    assert config["hidden_size"] == 4096
    assert config["hidden_act"] is None  # a null stays a null, whatever the default is
    assert config["rope_theta"] is None


@pytest.mark.parametrize(("written", "size"), [(13, 13), (1, 1), (10**12, 10**12), (4096.0, 4096), (1e6, 1_000_000)])
def test_size(written, size):
    got = _config({"hidden_size": written}).size("hidden_size")
    assert got == size
    assert type(got) is int


@pytest.mark.parametrize(
    ("written", "got"),
    [
        (0, "0"), (-13, "-13"), (2.5, "2.5"), (True, "true"), ("13", "'13'"), (None, "nothing"), ([13], "a list"),
        ({}, "a mapping"), (10**12 + 1, "1000000000001"), (1e13, "10000000000000"), (math.nan, "nan"),
        (math.inf, "inf"), (10**400 - 1, "a number of about 400 digits"),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_size_refuses(refused, written, got):
    config = _config({"hidden_size": written})
    error = refused(config.size, "hidden_size")
    assert error.what == f"`hidden_size` must be {SIZE}, got {got}"
    assert error.hint == 'write "hidden_size": 32'
    if written is not None:
        assert refused(config.size_or_none, "hidden_size").what == error.what


def test_size_with_a_bound_of_its_own(refused):
    assert _config({"n": MOST_LAYERS}).size("n", largest=MOST_LAYERS) == 100_000
    error = refused(_config({"n": 100_001}).size, "n", largest=MOST_LAYERS)
    assert error.what == "`n` must be a whole number from 1 to 100,000, got 100001"


def test_size_or_none():
    config = _config({"head_dim": None, "num_key_value_heads": 2.0})
    assert config.size_or_none("head_dim") is None
    assert config.size_or_none("num_key_value_heads") == 2
    assert config.size_or_none("sliding_window") is None
    assert _config({}, "mistral").size_or_none("sliding_window") == 4096


@pytest.mark.parametrize("written", [28, 0, -1, 10**12])
def test_whole(written):
    assert _config({"max_window_layers": written}).whole("max_window_layers") == written


@pytest.mark.parametrize("written", [2.5, "28", None, True, [], math.nan, math.inf])
def test_whole_refuses(refused, written):
    error = refused(_config({"max_window_layers": written}).whole, "max_window_layers")
    assert error.what.startswith("`max_window_layers` must be a whole number, got ")


def test_flag(refused):
    assert _config({"mlp_bias": True}).flag("mlp_bias") is True
    assert _config({"mlp_bias": False}).flag("mlp_bias") is False
    assert _config({}, "gpt2").flag("tie_word_embeddings") is True
    for written in (0, 1, "true", None, [], 1.0):
        error = refused(_config({"mlp_bias": written}).flag, "mlp_bias")
        assert error.what.startswith("`mlp_bias` must be true or false, got ")


@pytest.mark.parametrize(("written", "name"), ACTIVATIONS.items())
def test_activation(written, name):
    assert _config({"hidden_act": written}).activation("hidden_act") == name


@pytest.mark.parametrize(
    ("written", "hint"), [("gelu_ew", 'did you mean "gelu_new"?'), ("xielu", ""), (7, "one of: gelu, "), (None, "")]
)
def test_activation_refuses(refused, written, hint):
    error = refused(_config({"hidden_act": written}).activation, "hidden_act")
    assert error.what.endswith(" is not an activation that is read")
    assert error.hint.startswith(hint)


def test_expect_takes_equal_values_of_the_same_type(refused):
    config = _config({"a": False, "b": 0, "c": None, "d": [], "e": 1.0})
    config.expect("a", False)
    config.expect("b", 7, 0)
    config.expect("c", None)
    config.expect("d", [])
    config.expect("absent", None)
    for key, allowed in (("a", 0), ("b", False), ("c", False), ("d", None), ("e", 1), ("e", True), ("a", None)):
        assert refused(config.expect, key, allowed).what.startswith(f"`{key}`: ")
    error = refused(config.expect, "a", True)
    assert error.what == "`a`: false of a llama config is not read"


# ------------------------------------------------------------------------------------------------------- layer types

F, S = "full_attention", "sliding_attention"


def test_layer_types():
    assert _config({}).layer_types(3, (F,)) is None
    assert _config({"layer_types": None}).layer_types(3, (F,)) is None
    assert _config({"layer_types": [F, S, F]}).layer_types(3, (F, S)) == [F, S, F]


@pytest.mark.parametrize(
    ("types", "what", "hint"),
    [
        ([F, F], "`layer_types` must be a list of 3 words, got 2 entries", "one word for each layer"),
        ([F] * 4, "`layer_types` must be a list of 3 words, got 4 entries", "one word for each layer"),
        ([], "`layer_types` must be a list of 3 words, got 0 entries", "one word for each layer"),
        ("full", "`layer_types` must be a list of 3 words, got 'full'", "one word for each layer"),
        ({}, "`layer_types` must be a list of 3 words, got a mapping", "one word for each layer"),
        ([F, F, "local"], "`layer_types` has 'local', which llama does not build", f"one of: {F}, {S}"),
        ([F, None, F], "`layer_types` has nothing, which llama does not build", f"one of: {F}, {S}"),
        ([[F], F, F], "`layer_types` has a list, which llama does not build", f"one of: {F}, {S}"),
    ],
)
def test_layer_types_refuses(refused, types, what, hint):
    error = refused(_config({"layer_types": types}).layer_types, 3, (F, S))
    assert (error.what, error.hint) == (what, hint)


# ---------------------------------------------------------------------------------------------------------- two names


def test_names_of_a_class_of_its_own_are_renamed():
    config = _config({"hidden_size": 42, "n_layer": 3}, "gpt2")
    assert (config["n_embd"], config["n_layer"], config["n_head"]) == (42, 3, 12)
    assert config.data == {"n_embd": 42, "n_layer": 3}


def test_two_names_of_one_field(refused):
    assert _config({"n_embd": 42, "hidden_size": 42}, "gpt2")["n_embd"] == 42
    error = refused(_config, {"n_embd": 42, "hidden_size": 43}, "gpt2")
    assert error.what == "`hidden_size` and another name of `n_embd` disagree"
    error = refused(_config, {"hidden_size": 42, "n_embd": None}, "gpt2")
    assert error.what == "`n_embd` and another name of `n_embd` disagree"


def test_the_data_handed_over_stays_as_it_was():
    data = {"hidden_size": 42}
    _config(data, "gpt2")
    assert data == {"hidden_size": 42}


# -------------------------------------------------------------------------------------------------------- what is left


def test_a_key_that_is_read_noted_or_harmless_is_not_refused():
    config = _config({"model_type": "llama", "architectures": [], "a": 1, "b": 2, "torch_dtype": "x", "c": None})
    assert config["a"] == 1
    config.note("b")
    config.refuse_unread()


@pytest.mark.parametrize("value", [1, 0, False, "", [], {}, math.nan])
def test_a_key_that_nobody_read_is_refused(refused, value):
    error = refused(_config({"odd_key": value}).refuse_unread)
    assert error.what.startswith("`odd_key`: ")
    assert error.what.endswith(" is not read for llama and might change a cost")


def test_a_null_of_a_field_with_a_default_is_refused(refused):
    """It may switch the default off; a null of a key that the class does not have switches nothing on."""
    refused(_config({"vocab_size": None}).refuse_unread)
    _config({"odd_key": None}).refuse_unread()


@pytest.mark.parametrize(("value", "fine"), [(False, True), (None, True), (True, False), ("x", False), ([], False)])
def test_a_key_that_is_harmless_only_while_it_is_off(refused, value, fine):
    config = _config({"qk_norm": value})
    if fine:
        config.refuse_unread()
    else:
        refused(config.refuse_unread)


def test_the_first_unread_key_of_the_file_is_named():
    """Every time the same one, also from one process to the next."""
    keys = [f"odd_{letter}" for letter in "qwertyuiopasdfgh"]
    for start in range(len(keys)):
        turned = keys[start:] + keys[:start]
        with pytest.raises(CostcalcError) as caught:
            _config(dict.fromkeys(turned, 1)).refuse_unread()
        assert caught.value.what.startswith(f"`{turned[0]}`: ")


def test_a_refusal_names_the_nearest_key_that_is_read(refused):
    config = _config({"hidden_sise": 42})
    assert config["hidden_size"] == 4096
    assert refused(config.refuse_unread).what.endswith("(did you mean `hidden_size`?)")


@pytest.mark.parametrize("key", ["a\nb", "\ud800", "x" * 5000, "`"])
def test_an_unread_key_of_any_text_makes_one_short_line(refused, key):
    error = refused(_config({key: 1}).refuse_unread)
    assert str(error).isprintable()
    assert len(str(error)) < 200


# ------------------------------------------------------------------------------------------------------------ defaults


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_defaults_say_where_they_come_from(model_type):
    text = (DEFAULTS / f"{model_type}.json").read_text(encoding="utf-8")
    source = json.loads(text)["_provenance"]
    assert source.startswith("transformers 5.24.0 ") or "published beside" in source
    assert "_provenance" not in _config({}, model_type).defaults
    assert "_aliases" not in _config({}, model_type).defaults


@pytest.mark.parametrize("model_type", ["bailing_hybrid", "kimi_linear", "mllama", "moshi", "nemotron_h", "xlstm"])
def test_a_class_that_ties_nothing_has_two_tables_whatever_a_file_says(model_type):
    """Built with both: the library's classes hold as many parameters (transformers 5.24.0, meta device)."""
    tied, apart = (load({"model_type": model_type, "tie_word_embeddings": tie}) for tie in (True, False))
    assert tied.tie_embeddings is False
    assert parameters(tied).total == parameters(apart).total
