"""Softmax, masks and attention against loops over queries and keys."""

import math

import numpy as np
import pytest

from costcalc.reference import attention, attention_weights, soft_cap, softmax, visible
from costcalc.reference.scaled_dot_product import seen_from

# B=3, N=2 heads, T=7 queries, S=11 keys of H=5, values of 3 numbers
RNG = np.random.default_rng(0)
Q, K, V = RNG.normal(size=(3, 2, 7, 5)), RNG.normal(size=(3, 2, 11, 5)), RNG.normal(size=(3, 2, 11, 3))


def sees(query, key, causal, window):
    if causal:
        return key <= query and (window is None or query - key < window)
    return window is None or abs(query - key) <= window // 2


def attended(q, k, v, *, causal=False, window=None, scale=None, softcap=None):
    """One head by the formula of the paper: q (T, H), k (S, H), v (S, any)."""
    out, weights = np.zeros((len(q), v.shape[1])), np.zeros((len(q), len(k)))
    for t, query in enumerate(q):
        at = len(k) - len(q) + t
        for s, key in enumerate(k):
            if sees(at, s, causal, window):
                score = sum(a * b for a, b in zip(query, key, strict=True))
                score *= 1 / math.sqrt(len(query)) if scale is None else scale
                weights[t, s] = math.exp(score if softcap is None else softcap * math.tanh(score / softcap))
        weights[t] /= weights[t].sum()
        out[t] = sum(weight * value for weight, value in zip(weights[t], v, strict=True))
    return out, weights


def test_softmax():
    """Outside: e, e², e³ over their sum, to 50 digits."""
    np.testing.assert_allclose(
        softmax(np.array([1.0, 2.0, 3.0])), [0.09003057317038046, 0.24472847105479765, 0.66524095577482189], rtol=1e-14
    )
    x = RNG.normal(size=(3, 7, 11))
    rows = [[[math.exp(a) / sum(map(math.exp, row)) for a in row] for row in some] for some in x.tolist()]
    np.testing.assert_allclose(softmax(x), rows, rtol=1e-12)
    np.testing.assert_allclose(softmax(x).sum(axis=-1), 1, rtol=1e-14)
    np.testing.assert_allclose(softmax(x + 7), softmax(x), rtol=1e-12)


def test_softmax_of_what_is_large_or_out_of_sight():
    np.testing.assert_array_equal(softmax(np.array([[1e30, 0, 1e30, -1e30]], np.float32)), [[0.5, 0, 0.5, 0]])
    np.testing.assert_allclose(softmax(np.array([0.0, -np.inf, math.log(3)])), [0.25, 0, 0.75], rtol=1e-14)


def test_soft_cap():
    x = np.array([-1e4, -2.0, 0.0, 1e-3, 1.0, 2.0, 1e4])
    assert soft_cap(x, None) is x
    np.testing.assert_allclose(soft_cap(x, 2.0), [2 * math.tanh(a / 2) for a in x], rtol=1e-14)
    # tanh(1) = 0.7616
    assert soft_cap(np.array([1.0]), 1.0)[0] == pytest.approx(0.761594155955764888, rel=1e-15)
    assert soft_cap(x, 50.0)[3] == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize(
    ("window", "causal", "first", "last"),
    [
        (None, True, 0, 7),
        (3, True, 5, 7),  # 5, 6 and 7
        (7, True, 1, 7),
        (8, True, 0, 7),
        (9, True, 0, 7),
        (None, False, 0, 10),
        (1, False, 7, 7),
        (3, False, 6, 8),  # one to either side
        (4, False, 5, 9),  # two, since 4 // 2 = 2
        (5, False, 5, 9),
        (7, False, 4, 10),
        (9, False, 3, 10),  # beyond the last there is none
        (97, False, 0, 10),
    ],
)
def test_the_first_and_last_key_that_position_7_of_11_sees(window, causal, first, last):
    assert seen_from(7, 11, causal=causal, window=window) == slice(first, last + 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 5, 10, 11, 12, 97])
@pytest.mark.parametrize(("queries", "keys"), [(11, 11), (7, 11), (1, 11), (1, 1)])
def test_who_sees_whom(queries, keys, window, causal):
    expected = [[sees(keys - queries + t, s, causal, window) for s in range(keys)] for t in range(queries)]
    seen = visible(queries, keys, causal=causal, window=window)
    assert seen.tolist() == expected
    for t in range(queries):
        sliced = np.zeros(keys, bool)
        sliced[seen_from(keys - queries + t, keys, causal=causal, window=window)] = True
        assert sliced.tolist() == expected[t]


@pytest.mark.parametrize("chunk", [1, 2, 5, 7, 11, 97])
@pytest.mark.parametrize(("queries", "keys"), [(11, 11), (7, 11), (1, 11), (1, 1)])
def test_chunks_begin_at_multiples_of_their_length(queries, keys, chunk):
    """Of chunks of five of 11 keys the third has one token; causal, position 7 sees 5, 6 and 7."""
    for causal in (True, False):
        seen = visible(queries, keys, causal=causal, chunk=chunk)
        for t, s in np.ndindex(queries, keys):
            place = keys - queries + t
            assert seen[t, s] == (s // chunk == place // chunk and (s <= place or not causal))
    q, k = RNG.normal(size=(queries, 5)), RNG.normal(size=(keys, 5))
    _, weights = attention(q, k, k, causal=True, chunk=chunk)
    np.testing.assert_array_equal(weights > 0, visible(queries, keys, causal=True, chunk=chunk))


@pytest.mark.parametrize(("queries", "keys"), [(7, 11), (11, 7), (1, 1)])
def test_everyone_sees_everyone_unless_said_otherwise(queries, keys):
    assert visible(queries, keys).tolist() == [[True] * keys] * queries


@pytest.mark.parametrize(
    ("queries", "keys", "how", "message"),
    [
        (11, 7, {"causal": True}, "11 queries cannot be the last of 7 positions"),
        (8, 7, {"causal": True}, "8 queries cannot be the last of 7 positions"),
        (8, 7, {"window": 3}, "8 queries cannot be the last of 7 positions"),
        (7, 11, {"window": 0}, "a window is a whole number of at least 1: 0"),
        (8, 7, {"chunk": 3}, "8 queries cannot be the last of 7 positions"),
        (7, 11, {"causal": True, "chunk": 0}, "a chunk is a whole number of at least 1: 0"),
        (7, 11, {"chunk": 2.5}, "a chunk is a whole number of at least 1: 2.5"),
        (
            7,
            11,
            {"causal": True, "window": 0},
            "a window is a whole number of at least 1: 0",
        ),
        (
            7,
            11,
            {"causal": True, "window": 1.5},
            "a window is a whole number of at least 1: 1.5",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(queries, keys, how, message):
    """A query that sees no key would have weights of 0 / 0."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        visible(queries, keys, **how)
    with pytest.raises(ValueError, match=f"^{message}$"):
        attention(RNG.normal(size=(queries, 5)), RNG.normal(size=(keys, 5)), RNG.normal(size=(keys, 3)), **how)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"causal": True},
        {"causal": True, "window": 3},
        {"causal": True, "window": 11},
        {"scale": 0.3},
        {"scale": 1.0, "softcap": 2.0},
        {"causal": True, "window": 5, "scale": 0.7, "softcap": 1.5},
    ],
)
def test_attention_is_the_formula_of_the_paper(how):
    out, weights = attention(Q, K, V, **how)
    assert (out.shape, weights.shape) == ((3, 2, 7, 3), (3, 2, 7, 11))
    for b in range(3):
        for n in range(2):
            expected, expected_weights = attended(Q[b, n], K[b, n], V[b, n], **how)
            np.testing.assert_allclose(weights[b, n], expected_weights, rtol=1e-12)
            np.testing.assert_allclose(out[b, n], expected, rtol=1e-10)


def test_weights_from_outside():
    """Printed by the lesson's own ten lines of NumPy for tokens of width 16 and heads of 8."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (5, 16))
    q, k, v = (x @ rng.normal(0, 0.25, (16, 8)) for _ in range(3))
    _, weights = attention(q, k, v, causal=True)
    printed = [
        [1.00, 0.00, 0.00, 0.00, 0.00],
        [0.19, 0.81, 0.00, 0.00, 0.00],
        [0.22, 0.04, 0.74, 0.00, 0.00],
        [0.20, 0.49, 0.13, 0.19, 0.00],
        [0.08, 0.02, 0.65, 0.23, 0.01],
    ]
    np.testing.assert_allclose(weights, printed, atol=0.00501)


def test_outputs_from_outside():
    """The first of 5 numbers of each output of torch 2.13.0's scaled_dot_product_attention(q, k, v, is_causal=True)."""
    counted = np.arange(1.0, 31).reshape(1, 2, 3, 5)
    out, _ = attention(np.sin(counted), np.cos(counted), np.sqrt(counted), causal=True)
    expected = [[1.0000000000, 2.0277256349, 2.3693856163], [4.0000000000, 4.4021988130, 4.7638980105]]
    np.testing.assert_allclose(out[0, :, :, 0], expected, atol=6e-11)


def test_query_heads_share_keys_by_broadcasting():
    """Six query heads on two key heads: (K, G, T, H) against (K, 1, S, H) is each key head repeated three times."""
    q, k, v = RNG.normal(size=(6, 7, 5)), RNG.normal(size=(2, 11, 5)), RNG.normal(size=(2, 11, 3))
    shared, _ = attention(q.reshape(2, 3, 7, 5), k[:, None], v[:, None], causal=True)
    whole, _ = attention(q, np.repeat(k, 3, axis=0), np.repeat(v, 3, axis=0), causal=True)
    np.testing.assert_allclose(shared.reshape(6, 7, 3), whole, rtol=1e-12)


def test_scores_to_weights():
    scores = RNG.normal(size=(2, 7, 11))
    seen = visible(7, 11, causal=True, window=3)
    weights = attention_weights(scores, scale=0.3, softcap=2.0, seen=seen)
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(seen, weights.shape))
    capped = np.exp(2 * np.tanh(0.3 * scores / 2)) * seen
    np.testing.assert_allclose(weights, capped / capped.sum(axis=-1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(attention_weights(scores, scale=1.0), softmax(scores), rtol=1e-14)


def test_what_attention_keeps():
    out, weights = attention(Q, K, V, causal=True, window=3)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-14)
    assert (weights > 0).sum() == 3 * 2 * 7 * 3
    # Means lie between the values; equal values are their own mean.
    assert V.min() <= out.min() <= out.max() <= V.max()
    np.testing.assert_allclose(attention(Q, K, np.ones_like(V))[0], 1, rtol=1e-14)
    # Without mask the order of keys is of no account.
    order = RNG.permutation(11)
    np.testing.assert_allclose(attention(Q, K[..., order, :], V[..., order, :])[0], attention(Q, K, V)[0], rtol=1e-10)


def test_a_later_key_changes_nothing_before_it_and_everything_after():
    k, v = K.copy(), V.copy()
    k[..., 8, :] += 5
    v[..., 8, :] -= 5
    moved = np.abs(attention(Q, k, v, causal=True)[0] - attention(Q, K, V, causal=True)[0]).max(axis=(0, 1, 3))
    # Queries stand at 4 to 10.
    assert (moved[:4] == 0).all()
    assert (moved[4:] > 0.1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_stays(dtype):
    q, k, v = Q.astype(dtype), K.astype(dtype), V.astype(dtype)
    out, weights = attention(q, k, v, causal=True, window=3, softcap=2.0)
    assert out.dtype == weights.dtype == dtype
    assert softmax(q).dtype == soft_cap(q, 2.0).dtype == attention_weights(q, scale=0.3).dtype == dtype


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((5, 7), (5, 11), (5, 3)),  # two head sizes
        ((5, 7), (5, 7), (3, 7)),  # fewer values than keys
        ((7,), (5, 7), (5, 7)),
        ((2, 5, 7), (2, 7), (2, 5, 7)),  # one key
        ((6, 5, 7), (2, 5, 7), (2, 5, 7)),  # six query heads on two key heads, without an axis of their own
        ((5, 7), (0, 7), (0, 7)),
    ],
)
def test_shapes_that_do_not_fit_are_said(q, k, v):
    with pytest.raises(ValueError) as raised:
        attention(np.ones(q), np.ones(k), np.ones(v))
    assert str(raised.value) == f"(..., T, H), (..., S, H) and (..., S, any) are needed, not q {q}, k {k}, v {v}"


@pytest.mark.parametrize("cap", [0, -1.5, math.nan, math.inf])
def test_a_cap_that_is_none(cap):
    with pytest.raises(ValueError, match="a cap is a number above 0"):
        soft_cap(np.ones(3), cap)
