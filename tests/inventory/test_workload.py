from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from costcalc.errors import CostcalcError
from costcalc.inventory import Workload

SIZES = ("batch", "new_tokens", "past_tokens", "memory_tokens")
LEAST = {"batch": 1, "new_tokens": 1, "past_tokens": 0, "memory_tokens": 0}


def test_the_plainest_workload_is_one_token_of_one_sequence():
    w = Workload()
    assert (w.batch, w.new_tokens, w.past_tokens, w.memory_tokens) == (1, 1, 0, 0)
    assert (w.counting, w.logits, w.latent) == ("attended", "all", None)


def test_tokens_are_those_of_the_whole_batch():
    assert Workload(batch=3, new_tokens=11, past_tokens=7).tokens == 33  # 3 x 11: cached ones are not new


def test_workloads_are_frozen_and_equal_by_value():
    assert Workload(batch=3) == Workload(batch=3) != Workload(batch=5)
    assert hash(Workload(batch=3)) == hash(Workload(batch=3))
    with pytest.raises(FrozenInstanceError):
        Workload().batch = 2


@pytest.mark.parametrize("name", SIZES)
def test_a_size_may_be_as_small_as_its_least_and_as_large_as_its_largest(name):
    for value in (LEAST[name], 10**15, np.int64(LEAST[name]), np.int64(10**15)):
        assert getattr(Workload(**{name: value}), name) == value


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, 10**15 + 1, 10**400])
def test_a_size_out_of_its_bounds_is_refused(name, value):
    with pytest.raises(CostcalcError) as caught:
        Workload(**{name: value})
    assert caught.value.what.startswith(f"{name} must be between {LEAST[name]} and 1,000,000,000,000,000, got ")
    assert caught.value.hint == f"{name}=1"


@pytest.mark.parametrize("name", ["batch", "new_tokens"])
def test_a_batch_and_new_tokens_may_not_be_zero(name):
    with pytest.raises(CostcalcError, match=rf"^{name} must be between 1 and 1,000,000,000,000,000, got 0$"):
        Workload(**{name: 0})


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "true"), (1.0, "1.0"), (0.5, "0.5"), (float("nan"), "nan"), ("8k", "'8k'"), (None, "nothing")],
)
def test_a_size_that_is_no_whole_number_is_refused(name, value, shown):
    with pytest.raises(CostcalcError) as caught:
        Workload(**{name: value})
    assert caught.value.what == f"{name} must be a whole number, got {shown}"
    assert caught.value.hint == f"{name}=1"


@pytest.mark.parametrize("value", [[2], (2,), {"tokens": 2}, Fraction(5, 2), 2j, object(), np.float64(2.5)])
def test_a_size_of_a_strange_type_is_refused_as_well(value):
    with pytest.raises(CostcalcError, match=r"^batch must be a whole number, got "):
        Workload(batch=value)


def test_a_numpy_whole_number_is_judged_like_any_other():
    assert Workload(batch=np.int64(3)).tokens == 3
    with pytest.raises(CostcalcError, match=r"^batch must be between 1 and "):
        Workload(batch=np.int64(-3))


@pytest.mark.parametrize("name", SIZES)
def test_a_numpy_whole_number_becomes_one_without_an_end(name):
    """Kept as 64 bits, the FLOPs of 10 million tokens of an 8B model wrap round to a wrong number, with no error."""
    size = getattr(Workload(**{name: np.int64(10**7)}), name)
    assert (type(size), size) == (int, 10**7)


def test_an_array_of_a_sweep_passes():
    w = Workload(batch=np.array([2, 3]), new_tokens=np.array([5, 7]))
    assert w.tokens.tolist() == [10, 21]


@pytest.mark.parametrize(
    ("name", "word", "hint"),
    [
        ("counting", "atended", "did you mean attended?"),
        ("counting", "rectangles", "did you mean rectangle?"),
        ("counting", "banana", "one of: attended, rectangle"),
        ("logits", "lsat", "did you mean last?"),
        ("logits", 7, "one of: all, last"),
        ("latent", "absorb", "did you mean absorbed?"),
        ("latent", "banana", "one of: expanded, absorbed"),
        ("latent", "", "one of: expanded, absorbed"),
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest(name, word, hint):
    with pytest.raises(CostcalcError) as caught:
        Workload(**{name: word})
    assert (caught.value.what, caught.value.hint) == (f"unknown {name} {word!r}", hint)


@pytest.mark.parametrize(("name", "word"), [("counting", "rectangle"), ("logits", "last"), ("latent", "expanded")])
def test_a_known_word_is_kept(name, word):
    assert getattr(Workload(**{name: word}), name) == word
