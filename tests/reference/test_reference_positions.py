"""Rotations against complex numbers, sinusoids against the formula, and what each kind does inside a model."""

import cmath
import math

import numpy as np
import pytest

from costcalc.reference import rope, sinusoidal
from costcalc.reference.on_scores import ON_SCORES
from costcalc.reference.positions import ADDED, TURNED

RNG = np.random.default_rng(0)
AT = np.array([0, 1, 2, 5, 11, 101, 8191])


def turned(row, position, theta, rotated, pairs):
    """One vector: number i of a pair is the real part, the other the imaginary part, of a number that is turned."""
    out = list(row)
    for i in range(rotated // 2):
        a, b = {"halves": (i, i + rotated // 2), "adjacent": (2 * i, 2 * i + 1)}[pairs]
        z = complex(row[a], row[b]) * cmath.exp(1j * position * theta ** (-2 * i / rotated))
        out[a], out[b] = z.real, z.imag
    return out


@pytest.mark.parametrize("pairs", ["halves", "adjacent"])
@pytest.mark.parametrize("theta", [10_000.0, 7.0])
@pytest.mark.parametrize(
    ("head_dim", "rotary_dim", "rotated"),
    [(10, None, 10), (10, 10, 10), (10, 4, 4), (10, 2, 2), (5, None, 4), (7, 4, 4), (1, None, 0), (2, None, 2)],
)
def test_rope_turns_complex_numbers(head_dim, rotary_dim, rotated, theta, pairs):
    x = RNG.normal(size=(2, 3, 7, head_dim))
    expected = [
        [[turned(row, p, theta, rotated, pairs) for row, p in zip(rows, AT, strict=True)] for rows in heads]
        for heads in x.tolist()
    ]
    got = rope(x, AT, theta=theta, rotary_dim=rotary_dim, pairs=pairs)
    np.testing.assert_allclose(got, expected, atol=1e-11)
    np.testing.assert_array_equal(got[..., rotated:], x[..., rotated:])


def test_rope_by_hand():
    # Base 100 and four numbers: the first pair turns by p, the second by p / 10.
    half_turn = rope(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([10 * math.pi]), theta=100.0)
    np.testing.assert_allclose(half_turn, [[1, -2, 3, -4]], atol=1e-14)
    quarter = rope(np.array([[1.0, 3.0]]), np.array([math.pi / 2]))  # 1 + 3i times i
    np.testing.assert_allclose(quarter, [[-3, 1]], atol=1e-15)


def test_scores_from_outside():
    """Printed by the lesson's own rotation, of neighbours, for vectors of 16."""
    q, k = np.random.default_rng(0).normal(size=(2, 1, 16))

    def score(at, to):
        ends = rope(q, np.array([at]), pairs="adjacent"), rope(k, np.array([to]), pairs="adjacent")
        return round(float((ends[0] @ ends[1].T).item()), 4)

    assert [score(5, 2), score(105, 102), score(1005, 1002), score(5, 4)] == [2.7754, 2.7754, 2.7754, 2.5418]
    assert round(float(np.linalg.norm(rope(q, np.array([77]), pairs="adjacent"))), 4) == 3.674


def test_rope_unless_said_otherwise():
    x = RNG.normal(size=(7, 10))
    np.testing.assert_array_equal(rope(x, AT), rope(x, AT, theta=10_000.0, rotary_dim=10, pairs="halves"))


@pytest.mark.parametrize("pairs", ["halves", "adjacent"])
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(10, None), (10, 4), (5, None)])
def test_scores_depend_on_offsets_and_lengths_stay(head_dim, rotary_dim, pairs):
    q, k = RNG.normal(size=(2, 1, head_dim))

    def at(x, position):
        return rope(x, np.array([position]), rotary_dim=rotary_dim, pairs=pairs)[0]

    scores = [at(q, p + 3) @ at(k, p) for p in (0, 2, 102, 8191)]
    np.testing.assert_allclose(scores, scores[0], rtol=1e-10)
    assert abs(at(q, 4) @ at(k, 0) - scores[0]) > 1e-3
    np.testing.assert_allclose([np.linalg.norm(at(q, p)) for p in AT], np.linalg.norm(q), rtol=1e-12)


def test_the_two_pairings_are_one_order_of_the_numbers_apart():
    x = RNG.normal(size=(7, 10))
    order = [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]  # number i and i + 5 become neighbours
    np.testing.assert_allclose(rope(x[:, order], AT, pairs="adjacent"), rope(x, AT)[:, order], atol=1e-13)
    assert np.abs(rope(x, AT, pairs="adjacent") - rope(x, AT)).max() > 0.1


def test_rope_of_float32_has_angles_in_float64():
    """At 100,003 an angle of float32 is off by 4e-3."""
    x, far = RNG.normal(size=(7, 10)), np.arange(100_003, 100_010)
    single = rope(x.astype(np.float32), far)
    assert (single.dtype, rope(x, far).dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, rope(x, far), atol=2e-6)


def test_one_position_or_one_vector():
    """One position for all vectors; one vector at each position."""
    x = RNG.normal(size=(7, 10))
    np.testing.assert_array_equal(rope(x, 5), rope(x, np.full(7, 5)))
    np.testing.assert_array_equal(rope(x[0], AT), rope(np.tile(x[0], (7, 1)), AT))
    np.testing.assert_array_equal(rope(x[0], 5), rope(x, AT * 0 + 5)[0])
    np.testing.assert_array_equal(sinusoidal(5, 13), sinusoidal([5], 13)[0])


def test_whole_numbers_turn_as_floats_do():
    np.testing.assert_array_equal(rope(np.arange(10), 5), rope(np.arange(10.0), 5))


def test_another_pairing_is_refused():
    with pytest.raises(ValueError, match='"halves" or "adjacent", not \'half\''):
        rope(RNG.normal(size=(7, 10)), AT, pairs="half")


def test_the_input_is_left_alone():
    x = RNG.normal(size=(7, 10))
    kept = x.copy()
    rope(x, AT)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("width", [1, 2, 13, 16])
def test_sinusoids_are_those_of_the_paper(width):
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i + 1) = cos(p / 10000^(2i/D))."""
    expected = [
        [(math.cos if j % 2 else math.sin)(p / 10_000 ** ((j - j % 2) / width)) for j in range(width)] for p in AT
    ]
    table = sinusoidal(AT, width)
    assert (table.shape, table.dtype) == ((7, width), np.float64)
    np.testing.assert_allclose(table, expected, atol=1e-12)


def test_sinusoids_from_outside():
    """Printed by the lesson for a width of 16; sin(1), cos(1), sin(1/100), cos(1/100) for a width of 4."""
    pairs = [round(float(sinusoidal([p], 16)[0] @ sinusoidal([p + 3], 16)[0]), 4) for p in (0, 10, 50)]
    assert pairs == [5.5431, 5.5431, 5.5431]
    np.testing.assert_allclose(sinusoidal([1], 4), [[0.84147098, 0.54030231, 0.00999983, 0.99995000]], atol=5e-9)


def test_sinusoids_have_one_length():
    np.testing.assert_allclose(np.linalg.norm(sinusoidal(AT, 16), axis=1), math.sqrt(8), rtol=1e-14)


# Inside a model: B=3 sequences of T=7, D=13; tables of 11 rows.
X = RNG.normal(size=(3, 7, 13)).astype(np.float32)
TABLE = RNG.normal(size=(11, 13)).astype(np.float32)
THESE = np.arange(4, 11)


@pytest.mark.parametrize("kind", ["none", "rope", "relative", "alibi"])
def test_what_is_not_added(place, kind):
    here = place({"positions": TABLE})
    assert ADDED[kind]({"kind": kind, "stored": "no"}, X, THESE, here) is X
    assert here.tape.parameters == {}


@pytest.mark.parametrize(
    ("fields", "role"),
    [
        ({"kind": "learned", "length": 11, "offset": 0}, "trainable"),
        ({"kind": "sinusoidal", "stored": "frozen", "length": 11}, "frozen"),
        ({"kind": "sinusoidal", "stored": "buffer", "length": 11}, "buffer"),
    ],
)
def test_rows_of_a_table_are_added(place, fields, role):
    here = place({"positions": TABLE})
    added = ADDED[fields["kind"]](fields, X, THESE, here)
    for t in range(7):
        np.testing.assert_array_equal(added[:, t], X[:, t] + TABLE[4 + t])
    assert here.tape.parameters == {"here.positions": (11 * 13, role)}


@pytest.mark.parametrize(
    "fields", [{"kind": "learned", "length": 11, "offset": 0}, {"kind": "sinusoidal", "stored": "frozen", "length": 11}]
)
def test_there_is_no_row_beyond_the_table(place, fields):
    with pytest.raises(IndexError, match="positions has 11 rows, row 11 was asked for"):
        ADDED[fields["kind"]](fields, X, THESE + 1, place({"positions": TABLE}))


def test_the_first_rows_may_belong_to_no_position(place):
    """Two in RoBERTa, BART and OPT: position 4 has row 6, and of 11 rows the last is for position 8."""
    fields = {"kind": "learned", "length": 11, "offset": 2}
    added = ADDED["learned"](fields, X[:, :5], THESE[:5], place({"positions": TABLE}))
    for t in range(5):
        np.testing.assert_array_equal(added[:, t], X[:, t] + TABLE[6 + t])
    with pytest.raises(IndexError, match="positions has 11 rows, row 11 was asked for"):
        ADDED["learned"](fields, X, THESE, place({"positions": TABLE}))


def test_sinusoids_that_are_not_stored_are_added(place):
    here = place({})
    added = ADDED["sinusoidal"]({"kind": "sinusoidal", "stored": "no", "length": None}, X, THESE, here)
    assert added.dtype == np.float32
    np.testing.assert_allclose(added, X + sinusoidal(THESE, 13), atol=1e-6)
    assert here.tape.parameters == {}


def test_only_rope_turns():
    x = RNG.normal(size=(3, 2, 7, 10)).astype(np.float32)
    for kind in ("none", "learned", "sinusoidal", "relative", "alibi"):
        assert TURNED[kind]({"kind": kind}, x, THESE) is x
    fields = {"kind": "rope", "theta": 7.0, "rotary_dim": 4, "frequencies": "rotated"}
    np.testing.assert_array_equal(TURNED["rope"](fields, x, THESE), rope(x, THESE, theta=7.0, rotary_dim=4))
    fields["frequencies"] = "head"
    turned = rope(x, THESE, theta=7.0, rotary_dim=4, of_head=True)
    np.testing.assert_array_equal(TURNED["rope"](fields, x, THESE), turned)


def test_of_a_whole_head_the_first_pairs_turn_at_its_own_frequencies():
    """Of 10 numbers 4: numbers 0 and 5 turn by p, 1 and 6 by p / 7^(2/10), the others not at all."""
    x = RNG.normal(size=(7, 10))
    turned = rope(x, THESE, theta=7.0, rotary_dim=4, of_head=True)
    for pair, slow in ((0, 1.0), (1, 7**0.2)):
        cos, sin = np.cos(THESE / slow), np.sin(THESE / slow)
        np.testing.assert_allclose(turned[:, pair], x[:, pair] * cos - x[:, pair + 5] * sin)
        np.testing.assert_allclose(turned[:, pair + 5], x[:, pair] * sin + x[:, pair + 5] * cos)
    np.testing.assert_array_equal(turned[:, [2, 3, 4, 7, 8, 9]], x[:, [2, 3, 4, 7, 8, 9]])
    whole = rope(x, THESE, theta=7.0, rotary_dim=10, of_head=True)
    np.testing.assert_array_equal(whole, rope(x, THESE, theta=7.0))


def test_every_kind_is_in_all_tables():
    kinds = {"none", "learned", "sinusoidal", "rope", "relative", "alibi", "learned_and_relative", "relative_rows"}
    assert set(ADDED) == set(TURNED) == set(ON_SCORES) == kinds


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rotary_dim": 8}, "of 7 numbers 8 cannot turn"),
        ({"rotary_dim": 0}, "of 7 numbers 0 cannot turn"),
        ({"theta": 0}, "theta is above 0, not 0"),
        ({"theta": -7.5}, "theta is above 0, not -7.5"),
    ],
)
def test_a_rotation_that_cannot_be_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        rope(np.ones((3, 7)), np.arange(3), **fields)
