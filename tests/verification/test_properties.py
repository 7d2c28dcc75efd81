import numpy as np
import pytest

import costcalc
from costcalc.verification.properties import (
    Property,
    cached_equals_full,
    distance,
    earlier_unchanged,
    prefill_is_decode,
    rows_sum_to_one,
    tellable,
)

FULL = np.array([[[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0]]], np.float32)


def test_what_holds():
    assert Property("p", 0, 0).holds
    assert Property("p", 1e-6, 1e-5).holds
    assert Property("p", None, 0, "why").holds
    assert not Property("p", 1e-12, 0).holds
    assert not Property("p", 2e-5, 1e-5).holds
    assert not Property("p", float("nan"), 1e-5).holds


def test_rows():
    assert rows_sum_to_one([2.4e-7, 0.0, 1.2e-7]) == Property("sums of attention rows differ from 1", 2.4e-7, 1e-5)
    assert not rows_sum_to_one([1.1e-5, 0.0]).holds
    assert not rows_sum_to_one([0.0, float("nan"), 0.0]).holds
    assert rows_sum_to_one([]) == Property("sums of attention rows differ from 1", None, 1e-5, "no layer has attention")


def test_a_pass_without_rows_misses_all_of_it():
    assert rows_sum_to_one([0.0, None, 0.0]).measured == 1


def test_earlier_logits_must_be_exactly_the_same():
    changed = FULL.copy()
    changed[0, 2, 0] = 7
    assert earlier_unchanged(FULL, changed, tells=True) == Property("a later token changes earlier logits", 0.0, 0)
    changed[0, 1, 1] = 4.25
    leak = earlier_unchanged(FULL, changed, tells=True)
    assert leak.measured == 0.25
    assert not leak.holds


def test_a_change_that_changes_nothing_shows_nothing_and_is_a_failure_where_it_should():
    assert earlier_unchanged(FULL, FULL.copy(), tells=False).holds
    blind = earlier_unchanged(FULL, FULL.copy(), tells=True)
    assert (blind.measured, blind.bound, blind.holds) == (None, 0, False)
    assert blind.why == "the changed token changes nothing, not even its own logits"
    alone = earlier_unchanged(FULL[:, :1], 2 * FULL[:, :1], tells=True)
    assert alone == Property("a later token changes earlier logits", None, 0, "one token has no earlier one")


def test_a_distance_is_a_share_of_the_largest():
    # |6 - 5.25| / 6, and of nothing the difference itself
    assert distance(FULL[:, 2:], np.array([[[-5.0, 5.25]]], np.float32), scale=FULL) == pytest.approx(0.125)
    assert distance(FULL[:, 2:], FULL[:, 2:], scale=FULL) == 0
    assert distance(FULL[:, 2:], 0 * FULL[:, 2:], scale=0 * FULL) == 6
    assert distance(FULL[:, 2:], FULL[:, 2:] + 0.25, scale=0 * FULL) == 0.25


def test_cached_decoding_misses_by_its_worst_layer():
    assert cached_equals_full([1e-6, 9e-5, 0.0]).holds
    assert not cached_equals_full([1e-6, 1.1e-4, 0.0]).holds
    assert not cached_equals_full([1e-6, float("nan"), 0.0]).holds


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize("measured", [float("inf"), float("nan")])
def test_numbers_that_are_none_cannot_be_told_and_fail(measured, finite):
    (told,) = tellable([Property("p", measured, 0.5)], finite=finite)
    assert (told.measured, told.bound, told.holds) == (None, 0.5, False)
    assert told.why == "numbers of the pass are not finite in float32"


def test_a_number_of_a_pass_that_is_not_finite_cannot_be_told():
    holds, does_not_apply = Property("p", 0.0, 0), Property("p", None, 0, "no layer has attention")
    assert tellable([holds, does_not_apply], finite=True) == [holds, does_not_apply]
    told, same = tellable([holds, does_not_apply], finite=False)
    assert not told.holds
    assert same == does_not_apply


def test_prefill_against_steps():
    inventory = costcalc.load("gpt2").inventory
    # Matrices: 12·12·768² + the head; cores: 2·2·768 for 1 + 2 + 3 keys in 12 layers.
    exact = 3 * 2 * (12 * 12 * 768**2 + 50_257 * 768) + 12 * 2 * 2 * 768 * 6
    three = costcalc.Workload(new_tokens=3)
    assert prefill_is_decode(inventory, exact, three).measured == 0
    assert prefill_is_decode(inventory, exact - 7, three).measured == 7
    assert not prefill_is_decode(inventory, exact + 1, three).holds
