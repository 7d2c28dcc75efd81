import numpy as np
import pytest

import costcalc
from costcalc.verification.properties import (
    Property,
    cached_equals_full,
    earlier_unchanged,
    not_finite,
    prefill_is_decode,
    rotations,
    rows_sum_to_one,
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
    assert rows_sum_to_one([]).measured is None


def test_a_pass_without_rows_misses_all_of_it():
    assert rows_sum_to_one([0.0, None, 0.0]).measured == 1


def test_earlier_logits_must_be_exactly_the_same():
    changed = FULL.copy()
    changed[0, 2, 0] = 7
    assert earlier_unchanged(FULL, changed) == Property("a later token changes earlier logits", 0.0, 0)
    changed[0, 1, 1] = 4.25
    leak = earlier_unchanged(FULL, changed)
    assert leak.measured == 0.25
    assert not leak.holds


def test_a_change_that_changes_nothing_shows_nothing():
    assert earlier_unchanged(FULL, FULL.copy()).measured is None
    assert earlier_unchanged(FULL[:, :1], 2 * FULL[:, :1]).measured is None


def test_cached_decoding_is_compared_with_the_last_token_of_the_full_pass():
    assert cached_equals_full(FULL, FULL[:, 2:]).measured == 0
    # |6 - 5.25| / 6
    off = cached_equals_full(FULL, np.array([[[-5.0, 5.25]]], np.float32))
    assert off.measured == pytest.approx(0.125)
    assert not off.holds
    assert cached_equals_full(0 * FULL, 0 * FULL[:, 2:]).measured == 0


def test_numbers_out_of_range_are_not_measured():
    assert not_finite(Property("p", float("inf"), 0)) == [Property("p", None, 0, "the random numbers overflow float32")]


def test_prefill_against_steps():
    inventory = costcalc.load("gpt2").inventory
    # Matrices: 12·12·768² + the head; cores: 2·2·768 for 1 + 2 + 3 keys in 12 layers.
    exact = 3 * 2 * (12 * 12 * 768**2 + 50_257 * 768) + 12 * 2 * 2 * 768 * 6
    assert prefill_is_decode(inventory, exact, 3).measured == 0
    assert prefill_is_decode(inventory, exact - 7, 3).measured == 7
    assert not prefill_is_decode(inventory, exact + 1, 3).holds


@pytest.mark.parametrize("fields", [{"theta": 1e4, "rotary_dim": None}, {"theta": 7.0, "rotary_dim": 4}])
def test_rotations_keep_offsets_and_lengths(fields):
    offsets, lengths = rotations([(fields, 10)])
    assert 0 < offsets.measured < 1e-12
    assert 0 <= lengths.measured < 1e-12


def test_without_rotations_nothing_is_measured():
    assert [item.measured for item in rotations([])] == [None, None]


@pytest.mark.parametrize(
    ("broken", "holds"),
    [
        (lambda x, positions, **fields: x + positions[0], (False, False)),  # positions added
        (lambda x, positions, **fields: x * (1 + 1e-7 * positions[0]), (False, False)),  # a spiral
        (lambda x, positions, **fields: np.roll(x, positions[0] ** 2, axis=-1), (False, True)),  # lengths stay
    ],
)
def test_what_is_no_rotation_is_found(monkeypatch, broken, holds):
    monkeypatch.setattr("costcalc.verification.properties.rope", broken)
    assert tuple(item.holds for item in rotations([({"theta": 1e4, "rotary_dim": None}, 10)])) == holds
