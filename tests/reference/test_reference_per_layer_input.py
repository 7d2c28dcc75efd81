"""Per-layer inputs: what layers have of their own for each token, and what they add."""

import numpy as np
import pytest

from costcalc.reference import ACTIVATIONS
from costcalc.reference.kinds import NoReferenceError
from costcalc.reference.per_layer_input import own_numbers, per_layer_input
from costcalc.reference.tape import Product

RNG = np.random.default_rng(0)
FIELDS = {"vocab_size": 17, "width": 7, "activation": "silu"}
NORM = {"kind": "rmsnorm", "eps": 0.3, "weight": True}
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)  # B, T, D
TOKENS = RNG.integers(0, 19, (2, 11))
GIVEN = {
    "per_layer_input.embedding": RNG.normal(size=(17, 35)),
    "per_layer_input.projection": RNG.normal(size=(13, 35)),
    "per_layer_input_norm": RNG.normal(size=7),
}
OF_LAYER = {
    "per_layer_input.gate": RNG.normal(size=(13, 7)) / 3,
    "per_layer_input.projection": RNG.normal(size=(7, 13)) / 3,
    "per_layer_input_norm": RNG.normal(size=13),
}


def normed(x, gain):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 0.3) * gain


def own(here):
    return own_numbers(FIELDS, TOKENS, X, here, norm_of=NORM, layers=5)


def test_a_part_of_a_row_and_of_a_product_for_each_layer(place):
    got = own(place(GIVEN))
    assert (got.shape, got.dtype) == ((2, 11, 5, 7), np.float32)
    for text, token, layer in np.ndindex(2, 11, 5):
        part = slice(7 * layer, 7 * layer + 7)
        row = TOKENS[text, token] if TOKENS[text, token] < 17 else 0
        looked_up = GIVEN["per_layer_input.embedding"][row, part] * 7**0.5
        made = X[text, token] @ GIVEN["per_layer_input.projection"][:, part] / 13**0.5
        wanted = (looked_up + normed(made, GIVEN["per_layer_input_norm"])) / 2**0.5
        np.testing.assert_allclose(got[text, token, layer], wanted, rtol=1e-4, atol=1e-5)


def test_some_tokens_are_beyond_the_table_and_none_of_those_fails():
    assert (TOKENS >= 17).any()


def test_what_is_recorded_below_the_layers(place):
    here = place(GIVEN)
    own(here)
    assert {path: count for path, (count, _) in here.tape.parameters.items()} == {
        "here.per_layer_input.embedding": 17 * 35,
        "here.per_layer_input.projection": 13 * 35,
        "here.per_layer_input_norm": 7,
    }
    assert here.tape.products == {"here.per_layer_input.projection": [Product(1, 22, 13, 35)]}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_layer_adds_a_normed_product_of_its_gated_numbers(place, activation):
    here, numbers = place(OF_LAYER), RNG.normal(size=(2, 11, 7)).astype(np.float32)
    got = per_layer_input({**FIELDS, "activation": activation}, X, numbers, here, norm_of=NORM)
    hidden = ACTIVATIONS[activation](X @ OF_LAYER["per_layer_input.gate"]) * numbers
    wanted = normed(hidden @ OF_LAYER["per_layer_input.projection"], OF_LAYER["per_layer_input_norm"])
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    assert {path: count for path, (count, _) in here.tape.parameters.items()} == {
        "here.per_layer_input.gate": 91,
        "here.per_layer_input.projection": 91,
        "here.per_layer_input_norm": 13,
    }
    assert here.tape.products == {
        "here.per_layer_input.gate": [Product(1, 22, 13, 7)],
        "here.per_layer_input.projection": [Product(1, 22, 7, 13)],
    }


def test_an_activation_that_nobody_knows(place):
    with pytest.raises(NoReferenceError, match=r"^activation of kind newest has no forward pass$"):
        per_layer_input({**FIELDS, "activation": "newest"}, X, X[..., :7], place(OF_LAYER), norm_of=NORM)
