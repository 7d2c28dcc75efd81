"""What relative positions and ALiBi make of distances, by hand, by loops and from outside."""

import math

import numpy as np
import pytest

from costcalc.reference.alibi import alibi_numbers, alibi_slopes
from costcalc.reference.on_scores import ON_SCORES
from costcalc.reference.relative import relative_bucket, relative_numbers
from costcalc.reference.sight import Sight

# Distances are those of the key: -3 is three tokens back. Recorded from T5's own class with 32 buckets up to 128.
FROM_OUTSIDE = {
    True: (
        [0, -1, -15, -16, -17, -20, -32, -64, -100, -127, -128, -1000, 1, 50],
        [0, 1, 15, 16, 16, 17, 21, 26, 30, 31, 31, 31, 0, 0],
    ),
    False: (
        [0, -1, -7, -8, -9, -12, -16, -32, -64, -127, -128, 1, 7, 8, 12, 16, 128],
        [0, 1, 7, 8, 8, 9, 10, 12, 14, 15, 15, 17, 23, 24, 25, 26, 31],
    ),
}


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_are_those_of_the_real_class(causal):
    distances, buckets = FROM_OUTSIDE[causal]
    assert relative_bucket(np.array(distances), causal=causal).tolist() == buckets


def one_bucket(distance, *, buckets, max_distance, causal):
    """Section 2.1 with whole numbers: of the growing half, bucket e + i begins where (d / e)^n reaches (max / e)^i."""
    later, count = 0, buckets
    if not causal:
        count //= 2
        later = count if distance > 0 else 0
    steps = max(-distance, 0) if causal else abs(distance)
    single = count // 2
    if steps < single:
        return later + steps
    growing = count - single
    reached = [i for i in range(growing) if steps**growing >= max_distance**i * single ** (growing - i)]
    return later + single + max(reached)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (4, 3), (7, 11), (8, 11), (9, 128), (18, 128), (54, 64)]
)
def test_buckets_against_whole_numbers(buckets, max_distance, causal):
    """9 and 18 buckets up to 128 begin at 8, 16 and 64 exactly, where logarithms fall short of whole numbers."""
    how = {"buckets": buckets, "max_distance": max_distance, "causal": causal}
    distances = np.arange(-200, 201)
    found = relative_bucket(distances, **how)
    assert found.tolist() == [one_bucket(int(distance), **how) for distance in distances]
    assert found.min() >= 0
    assert found.max() < buckets


def test_relative_numbers_are_columns_of_the_table(place):
    """Of 8 buckets and 3 heads; looking both ways the key at -2 is in bucket 2, the one at +1 in 4 + 1."""
    rows = np.arange(24).reshape(8, 3)
    fields = {"buckets": 8, "max_distance": 11}
    table = place({"positions": rows}).table("positions", 8, 3)
    numbers = relative_numbers(fields, table, np.array([-2, -1, 0, 1]), causal=False)
    np.testing.assert_array_equal(numbers, rows[[2, 1, 0, 5]].T)
    assert numbers.shape == (3, 4)
    numbers = relative_numbers(fields, table, np.array([-3, -1, 0]), causal=True)
    np.testing.assert_array_equal(numbers, rows[[3, 1, 0]].T)


def test_slopes_of_the_paper():
    """Section 3: of 8 heads 1/2, 1/4, ..., 1/256; of 16 the roots between them too."""
    assert alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    np.testing.assert_allclose(alibi_slopes(16), [2 ** (-n / 2) for n in range(1, 17)], rtol=1e-15)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),  # of 2, and the first of 4: 2, 4, 6, 8
        (5, [2, 4, 6, 8, 1]),
        (6, [2, 4, 6, 8, 1, 3]),
        (7, [2, 4, 6, 8, 1, 3, 5]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_slopes_of_other_numbers_of_heads(heads, exponents):
    np.testing.assert_allclose(alibi_slopes(heads), [2.0**-e for e in exponents], rtol=1e-15)


@pytest.mark.parametrize("heads", range(1, 40))
def test_slopes_as_the_other_class_orders_them(heads):
    """MPT takes the power of two above: every second slope first, from the second on, then the others, and cuts."""
    above = 2 ** math.ceil(math.log2(heads))
    all_of = 2.0 ** (-8 * np.arange(1, above + 1) / above)
    ordered = all_of if above == heads else np.concatenate([all_of[1::2], all_of[::2]])[:heads]
    np.testing.assert_allclose(alibi_slopes(heads), ordered, rtol=1e-15)


def test_alibi_falls_with_the_distance_to_either_side():
    numbers = alibi_numbers(2, np.array([-3, -1, 0, 2]), max_bias=4.0, slope_scale=0.5)
    # slopes 2^-2 and 2^-4, halved: 1/8 and 1/32
    assert numbers.tolist() == [[-3 / 8, -1 / 8, 0, -2 / 8], [-3 / 32, -1 / 32, 0, -2 / 32]]
    assert numbers.dtype == np.float32


def test_a_table_of_the_stack_is_taken_and_one_of_the_layer_made(place):
    fields = {"kind": "relative", "buckets": 8, "max_distance": 11, "per_layer": False}
    here = place({"positions": np.arange(24).reshape(8, 3)})
    shared = here.table("positions", 8, 3)
    before = dict(here.tape.parameters)
    added = ON_SCORES["relative"](fields, 3, here, Sight(table=shared))
    assert added(np.array([-1])).tolist() == [[3], [4], [5]]
    assert here.tape.parameters == before
    own = place({"positions": np.arange(24).reshape(8, 3)}, path="layer")
    ON_SCORES["relative"]({**fields, "per_layer": True}, 3, own, Sight(table=shared))
    assert own.tape.parameters == {"layer.positions": (24, "trainable")}


@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal", "rope"])
def test_other_kinds_add_nothing_to_scores(place, kind):
    here = place({})
    assert ON_SCORES[kind]({"kind": kind}, 3, here, Sight()) is None
    assert here.tape.parameters == {}
