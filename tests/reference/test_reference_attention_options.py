"""What attention may have beside heads and a window: chunks, sinks, gates, values of their own, another's keys."""

import math

import numpy as np
import pytest

from costcalc.architecture.attention import GroupedQuery
from costcalc.reference import ACTIVATIONS, Request, Scope, Tape, attention_weights, rms_norm, rope
from costcalc.reference.grouped_query import cross_grouped_query, grouped_query
from costcalc.reference.scaled_dot_product import back_to
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product
from costcalc.reference.weights import Given

# B=3, T=11, D=13, N=6, K=2, H=5, v=7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 11, 13)).astype(np.float32)
SIZES = {"q": (13, 30), "k": (13, 10), "v": (13, 10), "wide": (13, 14), "output": (30, 13), "from wide": (42, 13)}
MATRICES = {name: RNG.normal(size=shape) / math.sqrt(shape[0]) for name, shape in SIZES.items()}
NUMBERS = {
    "sinks": RNG.normal(size=6),
    "per_head": RNG.normal(size=(13, 6)),
    "per_channel": RNG.normal(size=(13, 30)),
    "per_channel wide": RNG.normal(size=(13, 42)),
    "v_norm": RNG.normal(size=5),
    "v_norm wide": RNG.normal(size=7),
    "v_norm_bias": RNG.normal(size=5),
    "k_norm": RNG.normal(size=5),
    "q_norm": RNG.normal(size=5),
}
ROPE = {"kind": "rope", "theta": 7.0, "rotary_dim": None, "frequencies": "rotated"}
RMS = {"kind": "rmsnorm", "eps": 0.3, "weight": True}


def fields(**changes):
    """As they are dumped, with what they leave out."""
    return GroupedQuery(**{"heads": 6, "kv_heads": 2, "head_dim": 5, **changes}).model_dump()


def given(some):
    """The arrays of an attention, under the names that the pass asks for."""
    wide, gate = some["v_dim"] == 7, some["output_gate"]
    weights = {
        "q": MATRICES["q"],
        "k": MATRICES["k"],
        "v": MATRICES["wide" if wide else "v"],
        "output": MATRICES["from wide" if wide else "output"],
        "sinks": NUMBERS["sinks"],
        "v_norm": NUMBERS["v_norm wide" if wide else "v_norm"],
        **{name: NUMBERS[name] for name in ("q_norm", "k_norm", "v_norm_bias")},
    }
    if gate:
        weights["gate"] = NUMBERS[f"{gate} wide" if wide and gate == "per_channel" else gate]
    return weights


def attended(some, weights, x=X):
    """The whole text at once, in float64: loops over sequences, heads and queries. (B, T, D)."""
    out, v_dim, turn = np.zeros(x.shape), some["v_dim"] or 5, lambda rows: rope(rows, np.arange(len(rows)), theta=7.0)
    for b, text in enumerate(x.astype(float)):
        q, k = text @ weights["q"], text @ weights["k"]
        v = k if some["values_from_keys"] else text @ weights["v"]
        q, k, v = np.split(q, 6, axis=1), np.split(k, 2, axis=1), np.split(v, 2, axis=1)
        if some["qk_norm"]:
            q, k = (
                [rms_norm(head, eps=0.3) * weights[name] for head in heads]
                for name, heads in (("q_norm", q), ("k_norm", k))
            )
        q, k = [turn(head) for head in q], [turn(head) for head in k]
        v = [rms_norm(head, eps=0.3) * weights["v_norm"] for head in v] if some["v_norm"] else v
        for t, row in enumerate(text):
            joined = np.zeros((6, v_dim))
            for n in range(6):
                seen = [
                    s
                    for s in range(t + 1)
                    if (some["window"] is None or t - s < some["window"])
                    and (some["chunk"] is None or s // some["chunk"] == t // some["chunk"])
                ]
                shares = np.exp([q[n][t] @ k[n // 3][s] / math.sqrt(5) for s in seen])
                whole = shares.sum() + (np.exp(weights["sinks"][n]) if some["sinks"] else 0)
                joined[n] = sum(share / whole * v[n // 3][s] for share, s in zip(shares, seen, strict=True))
            if some["output_gate"]:
                gate = ACTIVATIONS[some["gate_activation"]](row @ weights["gate"])
                joined = joined * gate.reshape(6, -1)
            out[b, t] = joined.reshape(-1) @ weights["output"]
    return out


def passed(here, some, parts=(11,), *, name=None):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request)
        out.append(grouped_query(some, part, here, positions=ROPE, sight=sight, name=name))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


CHANGES = [
    *({"chunk": chunk} for chunk in (1, 2, 3, 5, 7, 11, 12, 97)),
    {"v_dim": 7},
    {"sinks": True},
    {"sinks": True, "window": 3},
    {"sinks": True, "chunk": 3},
    {"output_gate": "per_head"},
    {"output_gate": "per_channel"},
    {"output_gate": "per_channel", "v_dim": 7, "gate_activation": "silu"},
    {"values_from_keys": True},
    {"values_from_keys": True, "qk_norm": {"kind": "per_head", "norm": RMS}},
    {"values_from_keys": True, "v_norm": RMS, "qk_norm": {"kind": "per_head", "norm": RMS}},
    {"v_norm": RMS},
    {"v_norm": RMS, "v_dim": 7, "chunk": 5, "sinks": True, "output_gate": "per_head", "gate_activation": "tanh"},
]


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_attention_is_the_loop_over_all_tokens(place, changes, parts):
    some = fields(**changes)
    weights = given(some)
    y, _ = passed(place(weights), some, parts)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, attended(some, weights), rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize(
    ("position", "window", "chunk", "keys"),
    [
        (7, None, None, None),
        (7, 5, None, 5),
        (7, None, 5, 3),
        (0, None, 5, 1),
        (4, None, 5, 5),
        (5, None, 5, 1),
        (7, None, 97, 8),
    ],
)
def test_how_far_back_a_query_sees(position, window, chunk, keys):
    """Of chunks of five the second begins at position 5: from 7 three keys are seen."""
    assert back_to(position, window=window, chunk=chunk) == keys


@pytest.mark.parametrize("chunk", [1, 3, 5, 11, 97])
def test_a_query_meets_the_keys_of_its_chunk_and_as_many_tokens_are_kept(place, chunk):
    here = place(given(fields()))
    _, request = passed(here, fields(chunk=chunk), (7, 1, 1, 2))
    seen = [t % chunk + 1 for t in range(11)]
    assert here.tape.products["here.scores"] == [Product(6, 3, 5, s) for s in seen]
    assert here.tape.products["here.values"] == [Product(6, 3, s, 5) for s in seen]
    assert {held.shape for held in request.arrays.values()} == {(3, 2, min(11, chunk), 5)}


def test_a_chunk_counts_from_the_first_token_whatever_is_held(place):
    """With nothing held of 7 tokens, the next three of a chunk of five begin at position 7, and end at 9."""
    here = place(given(fields()))
    sight = Sight(7, True, Request(past=7))
    grouped_query(fields(chunk=5), X[:, :4], here, positions=ROPE, sight=sight)
    # Positions 7, 8, 9 and 10: of 7 none before it is held, and 10 begins another chunk.
    assert [product.columns for product in here.tape.products["here.scores"]] == [1, 2, 3, 1]


def test_what_values_of_another_size_record(place):
    here = place(given(fields(v_dim=7)))
    _, request = passed(here, fields(v_dim=7))
    assert here.tape.parameters["here.v"] == (13 * 14, "trainable")
    assert here.tape.parameters["here.output"] == (42 * 13, "trainable")
    assert request.arrays["here.k_cache"].shape == (3, 2, 11, 5)
    assert request.arrays["here.v_cache"].shape == (3, 2, 11, 7)
    flops = here.tape.flops()
    # 11·12 / 2 = 66 pairs of three texts and six heads
    assert (flops["here.scores"], flops["here.values"]) == (2 * 3 * 66 * 6 * 5, 2 * 3 * 66 * 6 * 7)


def test_values_from_keys_have_no_matrix_and_are_both_kept(place):
    here = place(given(fields()))
    _, request = passed(here, fields(values_from_keys=True))
    assert set(here.tape.parameters) == {"here.q", "here.k", "here.output"}
    assert set(here.tape.products) == {f"here.{name}" for name in ("q", "k", "scores", "values", "output")}
    turned, plain = request.arrays["here.k_cache"], request.arrays["here.v_cache"]
    np.testing.assert_allclose(turned, rope(plain, np.arange(11), theta=7.0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("gate", "width"), [("per_head", 6), ("per_channel", 30)])
def test_a_gate_is_a_matrix_without_a_bias(place, gate, width):
    some = fields(output_gate=gate, bias=True, out_bias=True)
    biases = {f"{name}_bias": np.zeros(size) for name, size in {"q": 30, "k": 10, "v": 10, "output": 13}.items()}
    here = place({**given(some), **biases})
    passed(here, some)
    assert here.tape.parameters["here.gate"] == (13 * width, "trainable")
    assert here.tape.products["here.gate"] == [Product(1, 33, 13, width)]
    assert "here.gate_bias" not in here.tape.parameters


def test_a_gate_of_zeros_halves_what_a_sigmoid_lets_through(place):
    some = fields(output_gate="per_head")
    y, _ = passed(place({**given(some), "gate": np.zeros((13, 6))}), some)
    np.testing.assert_allclose(2 * y, passed(place(given(fields())), fields())[0], rtol=1e-5, atol=1e-6)


def test_a_sink_takes_weight_from_all_keys_alike(place):
    """The weights of one query with scores 0, log 2 and log 4 and a sink of log 3: 1, 2 and 4 of 10, and 3 for it."""
    weights = attention_weights(np.log([[1.0, 2, 4]]), scale=1.0, sinks=np.log([3.0]))
    np.testing.assert_allclose(weights, [[0.1, 0.2, 0.4, 0.3]], rtol=1e-12)
    here = place(given(fields()))
    passed(here, fields(sinks=True))
    assert here.tape.parameters["here.sinks"] == (6, "trainable")
    assert here.tape.row_sum_error < 1e-6  # with what goes to the sink
    # A sink meets no key and no value: the core's products are those without it.
    assert here.tape.products["here.values"] == [Product(6, 3, t + 1, 5) for t in range(11)]


def test_a_sink_that_is_far_below_changes_nothing(place):
    some = fields(sinks=True)
    y, _ = passed(place({**given(some), "sinks": np.full(6, -97.0)}), some)
    np.testing.assert_allclose(y, passed(place(given(fields())), fields())[0], rtol=1e-5, atol=1e-6)


# Another layer's keys.


def two_layers(reach, parts, *, keeps=False, reads=True):
    """The outputs of a second layer, given the same text as the first, and the last part's tape and the request."""
    request, out = Request(), []
    makes = fields(qk_norm={"kind": "per_head", "norm": RMS}, **reach)
    second = {**makes, "cache_of": "makes", "keeps_kv_weights": keeps} if reads else makes
    arrays = {
        f"{at}.{name}": value.astype(np.float32) for at in ("first", "second") for name, value in given(makes).items()
    }
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        tape = Tape(Given(arrays))
        sight = Sight(request.past, True, request)
        grouped_query(makes, part, Scope(tape, "first"), positions=ROPE, sight=sight, name="makes")
        out.append(grouped_query(second, part, Scope(tape, "second"), positions=ROPE, sight=sight, name="reads"))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), tape, request


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize("reach", [{}, {"window": 3}, {"chunk": 3}, {"v_dim": 7}], ids=str)
def test_a_layer_that_reads_another_s_keys_is_as_if_it_made_the_same(reach, parts, keeps):
    """A relation: with equal matrices its own keys and values would be those."""
    np.testing.assert_array_equal(two_layers(reach, parts, keeps=keeps)[0], two_layers(reach, parts, reads=False)[0])


@pytest.mark.parametrize("keeps", [False, True])
def test_a_layer_that_reads_another_s_keys_makes_and_keeps_none(keeps):
    _, tape, request = two_layers({}, (7, 4), keeps=keeps)
    assert set(request.arrays) == {"first.k_cache", "first.v_cache"}
    assert {path for path in tape.products if "second" in path} == {
        f"second.{name}" for name in ("q", "scores", "values", "output")
    }
    held = {path.removeprefix("second.") for path in tape.parameters if "second" in path}
    assert held == {"q", "q_norm", "output"} | ({"k", "k_norm", "v"} if keeps else set())
    assert sum(product.columns for product in tape.products["second.scores"]) == 8 + 9 + 10 + 11


def test_the_nearest_earlier_layer_of_a_name_is_read(place):
    sight = Sight()
    for scale in (1.0, 2.0):
        weights = {**given(fields()), "v": scale * MATRICES["v"]}
        grouped_query(fields(), X, place(weights), positions=ROPE, sight=sight, name="makes")
    y = grouped_query(fields(cache_of="makes"), X, place(given(fields())), positions=ROPE, sight=sight, name="reads")
    expected = attended(fields(), {**given(fields()), "v": 2 * MATRICES["v"]})
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=5e-5)
    assert set(sight.made) == {"makes"}  # one that reads has nothing to give


def test_keys_that_nobody_made_are_an_error(place):
    with pytest.raises(ValueError, match=r"^here looks at the keys of makes, and no earlier layer has made any$"):
        grouped_query(fields(cache_of="makes"), X, place(given(fields())), positions=ROPE, sight=Sight())


@pytest.mark.parametrize(
    "changes",
    [{"sinks": True}, {"v_dim": 7}, {"output_gate": "per_head"}, {"values_from_keys": True}, {"v_norm": RMS}],
    ids=str,
)
def test_cross_attention_has_the_same_options(place, changes):
    """Over itself as a memory of one token, it is self-attention of that token."""
    some = fields(**changes)
    weights = given(some)
    y = cross_grouped_query(some, X[:, :1], place(weights), sight=Sight(request=Request(), memory=X[:, :1]))
    np.testing.assert_allclose(y, attended(some, weights, X[:, :1]), rtol=1e-4, atol=5e-5)
