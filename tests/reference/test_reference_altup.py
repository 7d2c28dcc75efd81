"""AltUp: states that are made, predicted, corrected and brought together, number by number."""

from dataclasses import replace

import numpy as np

from costcalc.reference.altup import as_long_as, gathered, spread, updated
from costcalc.reference.tape import Product

RNG = np.random.default_rng(0)
FIELDS = {"inputs": 3, "active": 1}
NORM = {"kind": "rmsnorm", "eps": 0.3, "weight": True}
STATES = RNG.normal(size=(3, 2, 7, 13)).astype(np.float32)  # A, B, T, D
X = STATES[0]
SQUARES = RNG.normal(size=(2, 13, 13)) / 3
GIVEN = {
    "router_norm": RNG.normal(size=13),
    "router": RNG.normal(size=(13, 3)) * 4,
    "prediction": RNG.normal(size=(3, 9)),
    "correction": RNG.normal(size=(3, 3)),
    "output_scale": RNG.normal(size=13),
}


def close(got, wanted):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def length(x):
    return np.sqrt(np.mean(x * x, axis=-1, keepdims=True))


def routes(x):
    """Of one token: (D) -> (A)."""
    normed = x / np.sqrt(np.mean(x * x) + 0.3) * GIVEN["router_norm"]
    return np.tanh(normed / 13 @ GIVEN["router"])


def test_the_other_states_are_products_as_long_as_the_embeddings(place):
    here = place({"below": SQUARES})
    got = spread(FIELDS, X, here)
    made = [X @ square for square in SQUARES]
    close(got, np.stack([X, *(y * length(X) / length(y) for y in made)]))
    np.testing.assert_allclose(length(got[1:]), np.broadcast_to(length(X), (2, 2, 7, 1)), rtol=1e-5)
    assert here.tape.parameters == {"here.below": (2 * 13 * 13, "trainable")}
    assert here.tape.products == {"here.below": [Product(1, 14, 13, 13)] * 2}
    assert here.tape.of == {"here.below": "here.below"}


def test_above_the_layers_the_mean_of_all_as_long_as_the_first(place):
    here = place({"above": SQUARES})
    made = [STATES[i + 1] @ SQUARES[i] for i in range(2)]
    close(gathered(FIELDS, STATES, here), (X + sum(y * length(X) / length(y) for y in made)) / 3)
    assert here.tape.products == {"here.above": [Product(1, 14, 13, 13)] * 2}


def test_nothing_is_made_of_a_state_of_zeros():
    """A mean square below 1e-5 counts as that."""
    assert not as_long_as(X, np.zeros_like(X)).any()
    small = np.full((1, 1, 13), 1e-3, np.float32)  # a mean square of 1e-6
    np.testing.assert_allclose(as_long_as(np.ones_like(small), small), small / np.sqrt(1e-5), rtol=1e-5)


def by_token(sublayers):
    """The corrected states, and what a per-layer input reads, token by token."""
    corrected, read = np.zeros(STATES.shape), np.zeros(STATES.shape[1:])
    for text in range(2):
        for token in range(7):
            states = STATES[:, text, token].astype(float)  # (A, D)
            numbers = (routes(states[1]) @ GIVEN["prediction"]).reshape(3, 3)  # (to, from)
            predicted = states + numbers @ states
            computed = sublayers(predicted[1])
            factors = 1 + routes(computed) @ GIVEN["correction"]
            corrected[:, text, token] = predicted + factors[:, None] * (computed - predicted[1])
            read[text, token] = corrected[1, text, token] * GIVEN["output_scale"]
    return corrected, read


def test_a_layer_predicts_computes_one_and_corrects_all(place):
    corrected, read = updated(FIELDS, STATES, place(GIVEN), norm_of=NORM, sublayers=np.sin)
    wanted = by_token(np.sin)
    close(corrected, wanted[0])
    close(read, wanted[1])


def test_what_a_layer_records(place):
    """The router runs twice, with one set of weights."""
    here = place(GIVEN)
    updated(FIELDS, STATES, here, norm_of=NORM, sublayers=np.sin)
    assert {path: count for path, (count, _) in here.tape.parameters.items()} == {
        "here.router_norm": 13,
        "here.router": 39,
        "here.prediction": 27,
        "here.correction": 9,
        "here.output_scale": 13,
    }
    assert here.tape.products == {
        "here.router": [Product(1, 14, 13, 3)] * 2,
        "here.prediction": [Product(1, 14, 3, 9)],
        "here.mixing": [Product(14, 13, 3, 3)],
        "here.correction": [Product(1, 14, 3, 3)],
    }
    assert "here.mixing" not in here.tape.of


def test_a_layer_that_borrows_its_weights_borrows_these(place):
    first = place(GIVEN, path="first")
    second = replace(first, path="second", lender="first")
    one, _ = updated(FIELDS, STATES, first, norm_of=NORM, sublayers=np.sin)
    other, _ = updated(FIELDS, STATES, second, norm_of=NORM, sublayers=np.sin)
    np.testing.assert_array_equal(one, other)
    assert all(path.startswith("first.") for path in first.tape.parameters)
    assert set(first.tape.of.values()) == {f"first.{name}" for name in ("router", "prediction", "correction")}
