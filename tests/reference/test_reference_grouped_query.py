"""Attention with shared key heads, pass by pass, against one loop over all queries and keys."""

import math

import numpy as np
import pytest

from costcalc.architecture.attention import GroupedQuery
from costcalc.reference import Request, layer_norm, rms_norm, rope
from costcalc.reference.grouped_query import QK_NORMS, grouped_query, join_heads, mixed_values, split_heads
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=3, T=11, D=13, N=6, H=5
RNG = np.random.default_rng(0)
ROPE = {"kind": "rope", "theta": 7.0, "rotary_dim": None, "frequencies": "rotated"}
X = RNG.normal(size=(3, 11, 13)).astype(np.float32)


def fields(**changes):
    """As they are dumped, with what they leave out."""
    return GroupedQuery(**{"heads": 6, "kv_heads": 2, "head_dim": 5, **changes}).model_dump()


def given(d_model, q_width, kv_width):
    """Matrices, biases and gains of one attention."""
    rng = np.random.default_rng(q_width + kv_width)
    matrices = {
        "q": (d_model, q_width),
        "k": (d_model, kv_width),
        "v": (d_model, kv_width),
        "output": (q_width, d_model),
    }
    return {
        **{name: rng.normal(size=shape) / math.sqrt(shape[0]) for name, shape in matrices.items()},
        **{f"{name}_bias": rng.normal(size=shape[1]) for name, shape in matrices.items()},
    }


def attended(x, weights, fields, turn=lambda rows: rows, norm=lambda rows, name: rows):
    """The whole text at once, in float64: loops over sequences, heads and queries. x: (B, T, D)."""
    heads, head_dim = fields["heads"], fields["head_dim"] or x.shape[2] // fields["heads"]
    group = heads // (fields["kv_heads"] or heads)
    scale = fields["scale"] or 1 / math.sqrt(head_dim)
    out = np.zeros_like(x, float)
    for b, text in enumerate(x.astype(float)):
        q, k, v = (text @ weights[name] + fields["bias"] * weights[f"{name}_bias"] for name in "qkv")
        q, k = norm(q, "q_norm"), norm(k, "k_norm")
        q, k, v = (np.split(rows, rows.shape[1] // head_dim, axis=1) for rows in (q, k, v))  # heads of (T, H) each
        q, k = [turn(rows) for rows in q], [turn(rows) for rows in k]
        for t in range(len(text)):
            first = 0 if fields["window"] is None else max(0, t - fields["window"] + 1)
            joined = []
            for n in range(heads):
                scores = [scale * sum(q[n][t] * k[n // group][s]) for s in range(first, t + 1)]
                if fields["softcap"]:
                    scores = [fields["softcap"] * math.tanh(score / fields["softcap"]) for score in scores]
                weight = np.exp(scores) / sum(np.exp(scores))
                joined.extend(sum(w * row for w, row in zip(weight, v[n // group][first : t + 1], strict=True)))
            out[b, t] = joined @ weights["output"] + fields["out_bias"] * weights["output_bias"]
    return out


def passed(here, some, parts=(11,), positions=None, x=X):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(x, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request)
        out.append(grouped_query(some, part, here, positions=positions or {"kind": "none"}, sight=sight))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


def close(got, expected):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kv_heads": 1},
        {"kv_heads": 3},
        {"kv_heads": 6},
        {"kv_heads": None},
        {"bias": True},
        {"out_bias": True},
        {"window": 1},
        {"window": 3},
        {"window": 10},
        {"window": 11},
        {"window": 97},
        {"scale": 0.3},
        {"softcap": 0.7},
        {"kv_heads": 3, "bias": True, "out_bias": True, "window": 5, "scale": 1.3, "softcap": 2.0},
    ],
)
def test_attention_is_the_loop_over_all_tokens(place, changes, parts):
    some = fields(**changes)
    weights = given(13, 30, 5 * (some["kv_heads"] or 6))
    close(passed(place(weights), some, parts)[0], attended(X, weights, some))


def test_the_size_of_a_head_is_the_width_shared_among_heads(place):
    """D = 42, N = 6: heads of 7."""
    x, some = RNG.normal(size=(3, 11, 42)).astype(np.float32), fields(kv_heads=3, head_dim=None)
    weights = given(42, 42, 21)
    close(passed(place(weights), some, x=x)[0], attended(x, weights, some))


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2)])
@pytest.mark.parametrize("rotary_dim", [None, 2])
def test_queries_and_keys_turn_by_where_they_stand(place, rotary_dim, parts):
    some, weights = fields(window=7), given(13, 30, 10)
    positions = {"kind": "rope", "theta": 7.0, "rotary_dim": rotary_dim, "frequencies": "rotated"}

    def turn(rows):
        return rope(rows, np.arange(11), theta=7.0, rotary_dim=rotary_dim)

    close(passed(place(weights), some, parts, positions)[0], attended(X, weights, some, turn=turn))


@pytest.mark.parametrize(
    "norm",
    [{"kind": "rmsnorm", "eps": 0.3, "weight": True}, {"kind": "layernorm", "eps": 0.3, "weight": True, "bias": True}],
)
@pytest.mark.parametrize("kind", QK_NORMS)
def test_queries_and_keys_are_normed_before_they_turn(place, kind, norm):
    some, widths = fields(qk_norm={"kind": kind, "norm": norm}), {"q_norm": 30, "k_norm": 10}
    size = widths if kind == "projection" else dict.fromkeys(widths, 5)  # what is normed together
    own = dict.fromkeys(widths, 5) if kind == "per_head" else widths  # numbers with gains of their own
    gains = {name: RNG.normal(size=own[name]) for name in widths}
    biases = {f"{name}_bias": RNG.normal(size=own[name]) for name in widths}
    weights = given(13, 30, 10) | gains | (biases if norm["kind"] == "layernorm" else {})

    def normed(rows, name):
        rows = rows.reshape(len(rows), -1, size[name])
        rows = (rms_norm if norm["kind"] == "rmsnorm" else layer_norm)(rows, eps=0.3)
        rows = rows * gains[name].reshape(-1, size[name])  # (T, heads, H) * (heads or 1, H)
        if norm["kind"] == "layernorm":
            rows = rows + biases[f"{name}_bias"].reshape(-1, size[name])
        return rows.reshape(len(rows), -1)

    def turn(rows):
        return rope(rows, np.arange(11), theta=7.0)

    here = place(weights)
    positions = ROPE
    got, _ = passed(here, some, positions=positions)
    close(got, attended(X, weights, some, turn=turn, norm=normed))
    assert {path: elements for path, (elements, _) in here.tape.parameters.items() if "norm" in path} == {
        f"here.{name}": weights[name].size for name in weights if "norm" in name
    }


def test_heads_are_split_and_joined():
    """Number h of head n of a token is number 5·n + h of its row."""
    x = np.arange(2 * 3 * 10).reshape(2, 3, 10)
    split = split_heads(x, 2)
    assert split.shape == (2, 2, 3, 5)
    for b, n, t, h in np.ndindex(2, 2, 3, 5):
        assert split[b, n, t, h] == x[b, t, 5 * n + h]
    np.testing.assert_array_equal(join_heads(split), x)
    np.testing.assert_array_equal(split_heads(x, 1)[:, 0], x)


@pytest.mark.parametrize("window", [None, 1, 5, 11, 97])
def test_a_query_meets_only_the_keys_that_it_may_see(place, window):
    here = place(given(13, 30, 10))
    _, request = passed(here, fields(window=window))
    # One product a query: B·K = 6 matrices of G = 3 rows, against as many keys as it sees.
    seen = [min(t + 1, window or 97) for t in range(11)]
    assert here.tape.products["here.scores"] == [Product(6, 3, 5, s) for s in seen]
    assert here.tape.products["here.values"] == [Product(6, 3, s, 5) for s in seen]
    assert here.tape.row_sum_error < 1e-6
    assert "here.scores" not in here.tape.of
    assert {path: held.shape for path, held in request.arrays.items()} == dict.fromkeys(
        ["here.k_cache", "here.v_cache"], (3, 2, min(11, window or 97), 5)
    )


def test_keys_are_cached_after_they_turned_and_values_as_they_are(place):
    weights = given(13, 30, 10)
    _, request = passed(place(weights), fields(), positions=ROPE)
    k, v = (split_heads(X @ weights[name].astype(np.float32), 2) for name in "kv")
    close(request.arrays["here.k_cache"], rope(k, np.arange(11), theta=7.0))
    close(request.arrays["here.v_cache"], v)


def test_the_mean_of_one_value_is_that_value(place):
    """With a window of 1 each query sees its own key only."""
    q, k, v = RNG.normal(size=(3, 6, 7, 5)), RNG.normal(size=(3, 2, 11, 5)), RNG.normal(size=(3, 2, 11, 5))
    q, k, v = q.astype(np.float32), k.astype(np.float32), v.astype(np.float32)
    mixed = mixed_values(q, k, v, place({}), window=1, scale=0.3, softcap=None)
    for n in range(6):
        np.testing.assert_array_equal(mixed[:, n], v[:, n // 3, 4:])


def test_heads_of_other_shapes_are_refused():
    for shape, heads in (((3, 30), 5), ((2, 3, 30), 7), ((2, 3, 30), 0)):
        with pytest.raises(ValueError, match=r"\(B, T, heads·H\) is needed, with . heads"):
            split_heads(np.ones(shape), heads)
    with pytest.raises(ValueError, match=r"\(B, heads, T, H\) is needed, not \(2, 3, 30\)"):
        join_heads(np.ones((2, 3, 30)))
