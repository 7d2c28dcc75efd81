"""Where the numbers of a pass come from: one arena for all, or given arrays."""

import numpy as np
import pytest

from costcalc.reference import Arena, Given
from costcalc.reference.weights import ALIGNED, SHIFTS

ARENA = Arena(481, deviation=0.3)  # 13·37


def test_the_numbers_of_an_arena_deviate_as_they_should():
    numbers = Arena(100_003, deviation=0.3).numbers
    assert numbers.dtype == np.float32
    assert len(numbers) == 100_003 + SHIFTS * ALIGNED
    assert abs(numbers.mean()) < 0.003
    assert numbers.std() == pytest.approx(0.3, rel=0.01)
    assert np.abs(numbers).max() == pytest.approx(0.3 * 3**0.5, rel=0.001)  # uniform


def test_one_seed_gives_the_same_numbers_and_another_others():
    np.testing.assert_array_equal(ARENA.numbers, Arena(481, deviation=0.3, seed=0).numbers)
    assert (ARENA.numbers != Arena(481, deviation=0.3, seed=1).numbers).mean() > 0.99


def test_an_array_of_an_arena_is_a_view_of_its_own_place():
    q = ARENA.array("decoder.layers.0.attention.q", (13, 37))
    assert (q.shape, q.dtype) == ((13, 37), np.float32)
    assert np.shares_memory(q, ARENA.numbers)
    np.testing.assert_array_equal(q, ARENA.array("decoder.layers.0.attention.q", (13, 37)))
    others = [f"decoder.layers.{layer}.attention.{name}" for layer in range(3) for name in "kv"]
    assert all((ARENA.array(path, (13, 37)) != q).mean() > 0.99 for path in others)


def test_arrays_begin_at_places_of_their_own():
    """At multiples of ALIGNED numbers, all over the arena, so that arrays of one shape are rarely the same."""
    views = [ARENA.array(f"decoder.layers.{layer}.attention.q", (481,)) for layer in range(101)]
    first = ARENA.numbers.__array_interface__["data"][0]
    starts = [(view.__array_interface__["data"][0] - first) // ARENA.numbers.itemsize for view in views]
    assert all(start % ALIGNED == 0 for start in starts)
    assert len(set(starts)) > 90
    assert max(starts) > SHIFTS * ALIGNED * 0.9


def test_every_path_has_room_for_the_largest_array():
    for layer in range(1009):
        assert ARENA.array(f"decoder.layers.{layer}.attention.q", (481,)).shape == (481,)


def test_a_gain_is_around_one():
    gain = ARENA.gain("decoder.final_norm", 481)
    np.testing.assert_array_equal(gain, 1 + ARENA.array("decoder.final_norm", (481,)))
    assert gain.dtype == np.float32
    assert gain.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("inputs", "outputs", "columns"),
    [
        (13, 37, 37),  # just fits
        (13, 38, 37),
        (37, 17, 13),
        (481, 7, 1),
        (7, 5, 5),
        (487, 5, 1),  # a column is held even if it is longer
    ],
)
def test_a_matrix_has_the_columns_that_fit(inputs, outputs, columns):
    assert ARENA.matrix("q", inputs, outputs).shape == (inputs, columns)


@pytest.mark.parametrize(
    ("rows", "width", "held"), [(37, 13, 37), (38, 13, 37), (97, 37, 13), (7, 481, 1), (5, 7, 5), (5, 487, 1)]
)
def test_a_table_has_the_rows_that_fit(rows, width, held):
    assert ARENA.table("head", rows, width).shape == (held, width)


def test_equal_parts_have_views_of_their_own():
    parts = [ARENA.one_of(index, 7) for index in range(7)]
    matrices = [part.matrix("experts.up", 13, 37) for part in parts]
    assert all(np.shares_memory(matrix, ARENA.numbers) for matrix in matrices)
    assert len({matrix.tobytes() for matrix in matrices}) == 7
    np.testing.assert_array_equal(ARENA.one_of(3, 7).matrix("experts.up", 13, 37), matrices[3])
    assert all((part.gain("norm", 13) != ARENA.gain("norm", 13)).any() for part in parts)
    np.testing.assert_array_equal(
        ARENA.matrix("experts.up", 13, 37), Arena(481, deviation=0.3).matrix("experts.up", 13, 37)
    )


STACKED = {
    "here.up": np.arange(5 * 13 * 37, dtype=np.float32).reshape(5, 13, 37),
    "here.bias": np.eye(5, dtype=np.float32),
}


def test_equal_parts_of_given_arrays_lie_behind_one_another():
    for index in range(5):
        part = Given(STACKED).one_of(index, 5)
        np.testing.assert_array_equal(part.matrix("here.up", 13, 37), STACKED["here.up"][index])
        assert part.array("here.bias", (5,)).tolist() == [float(index == number) for number in range(5)]


@pytest.mark.parametrize(("count", "shape"), [(7, (13, 37)), (5, (37, 13))])
def test_parts_of_another_number_or_shape_are_refused(count, shape):
    with pytest.raises(ValueError, match=r"^here\.up is \(5, 13, 37\), the pass wants "):
        Given(STACKED).one_of(0, count).matrix("here.up", *shape)
    with pytest.raises(ValueError, match=r"^here\.up is \(5, 13, 37\), the pass wants \(13, 37\)$"):
        Given(STACKED).matrix("here.up", 13, 37)


GIVEN = Given({"here.q": np.ones((13, 37), np.float32), "here.norm": np.ones(13, np.float32)})


def test_what_is_given_is_what_comes():
    q, gain = GIVEN.arrays["here.q"], GIVEN.arrays["here.norm"]
    assert GIVEN.array("here.q", (13, 37)) is GIVEN.matrix("here.q", 13, 37) is GIVEN.table("here.q", 13, 37) is q
    assert GIVEN.gain("here.norm", 13) is GIVEN.array("here.norm", (13,)) is gain


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GIVEN.matrix("here.q", 37, 13), r"here\.q is \(13, 37\), the pass wants \(37, 13\)"),
        (lambda: GIVEN.table("here.q", 13, 38), r"here\.q is \(13, 37\), the pass wants \(13, 38\)"),
        (lambda: GIVEN.array("here.q", (481,)), r"here\.q is \(13, 37\), the pass wants \(481,\)"),
        (lambda: GIVEN.gain("here.norm", 37), r"here\.norm is \(13,\), the pass wants \(37,\)"),
    ],
)
def test_another_shape_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


def test_what_is_not_given_is_named():
    with pytest.raises(KeyError, match=r"here\.k"):
        GIVEN.matrix("here.k", 13, 37)
