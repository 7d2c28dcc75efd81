"""Networks in front of routers, what they carry from layer to layer, and choices that are no experts."""

import math

import numpy as np
import pytest

from costcalc.architecture.feed_forward import Mixture
from costcalc.reference.mixture import mixture, routed
from costcalc.reference.router_network import through_network
from costcalc.reference.sight import Sight

# 21 rows of D=13, R=5, E=10, F=17
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(21, 13)).astype(np.float32)
GIVEN = {
    "router_down": RNG.normal(size=(13, 5)) / 3,
    "router_down_bias": RNG.normal(size=5),
    "router_carried_gain": RNG.normal(size=5),
    "router_norm": RNG.normal(size=5),
    "router_inner1": RNG.normal(size=(5, 5)),
    "router_inner1_bias": RNG.normal(size=5),
    "router_inner2": RNG.normal(size=(5, 5)),
    "router_inner2_bias": RNG.normal(size=5),
}
NORM = {"kind": "rmsnorm", "eps": 0.3, "weight": True}
EARLIER = RNG.normal(size=(21, 5)).astype(np.float32)


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2


def expected(*, earlier=None):
    """(what is carried on, what scores are made of), in float64."""
    inside = ROWS @ GIVEN["router_down"] + GIVEN["router_down_bias"]
    if earlier is not None:
        inside = inside + earlier * GIVEN["router_carried_gain"]
    y = inside / np.sqrt((inside**2).mean(axis=-1, keepdims=True) + 0.3) * GIVEN["router_norm"]
    for name in ("router_inner1", "router_inner2"):
        y = gelu(y @ GIVEN[name] + GIVEN[f"{name}_bias"])
    return inside, y


def run(place, sight, *, carried):
    here = place(GIVEN)
    return through_network({"width": 5, "carried": carried, "norm": NORM}, ROWS, here, sight), here


@pytest.mark.parametrize("held", [{}, {5: EARLIER}, {7: np.zeros((21, 7), np.float32)}])
@pytest.mark.parametrize("carried", [False, True])
def test_a_network_adds_what_the_one_before_it_made(place, carried, held):
    sight = Sight(carried=dict(held))
    y, here = run(place, sight, carried=carried)
    inside, wanted = expected(earlier=EARLIER if carried and 5 in held else None)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sight.carried[5], inside, rtol=1e-4, atol=1e-5)
    assert set(sight.carried) == {5, *held}
    names = [name for name in GIVEN if carried or name != "router_carried_gain"]
    assert set(here.tape.parameters) == {f"here.{name}" for name in names}
    rows = {"here.router_down": 65, "here.router_inner1": 25, "here.router_inner2": 25}
    assert here.tape.flops() == {path: 2 * 21 * elements for path, elements in rows.items()}


def test_what_is_carried_is_not_changed_by_those_who_read_it(place):
    before = EARLIER.copy()
    run(place, Sight(carried={5: EARLIER}), carried=True)
    np.testing.assert_array_equal(before, EARLIER)


EXPERTS = {
    "router": RNG.normal(size=(13, 12)) / 2,
    "router_bias": RNG.normal(size=12),
    "router_correction": RNG.normal(size=12) / 9,
    "router_expert_scale": RNG.normal(size=10),
    "experts.up": RNG.normal(size=(10, 13, 17)) / 3,
    "experts.up_bias": RNG.normal(size=(10, 17)),
    "experts.down": RNG.normal(size=(10, 17, 13)) / 4,
    "experts.down_bias": RNG.normal(size=(10, 13)),
}
DENSE = {"kind": "dense", "d_ff": 17, "activation": "relu", "bias": True}


def fields(chosen, **router):
    """Ten experts, and two choices that are none."""
    return Mixture(experts=10, experts_per_token=chosen, expert=DENSE, router={"skips": 2, **router}).model_dump()


def looped(chosen, *, normalize=True, scaled=False):
    """Of each token the chosen experts' outputs, but nothing for a choice that is none; and how many were none."""
    out, none = np.zeros((21, 13)), 0
    for token, row in enumerate(ROWS.astype(float)):
        logits = row @ EXPERTS["router"] + EXPERTS["router_bias"]
        scores = np.exp(logits) / np.exp(logits).sum()
        best = np.argsort(-(scores + EXPERTS["router_correction"]))[:chosen]
        for choice in best:
            if choice >= 10:
                none += 1
                continue
            weight = scores[choice] / (scores[best].sum() if normalize else 1)
            weight *= EXPERTS["router_expert_scale"][choice] if scaled else 1
            hidden = np.maximum(row @ EXPERTS["experts.up"][choice] + EXPERTS["experts.up_bias"][choice], 0)
            out[token] += weight * (hidden @ EXPERTS["experts.down"][choice] + EXPERTS["experts.down_bias"][choice])
    return out, none


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("chosen", [1, 2, 3, 10])
def test_a_choice_that_is_no_expert_gives_nothing(place, chosen, normalize, scaled):
    """And takes its share of what is normalised."""
    some = fields(chosen, bias=True, correction="buffer", normalize=normalize, expert_scale=scaled)
    here = place(EXPERTS)
    wanted, none = looped(chosen, normalize=normalize, scaled=scaled)
    assert none > 1
    np.testing.assert_allclose(mixture(some, ROWS[None], here)[0], wanted, rtol=1e-4, atol=1e-4)
    # as stated, and as the library does: every choice is multiplied, those of none with the first expert
    for name in ("up", "down"):
        assert sum(product.rows for product in here.tape.products[f"here.experts.{name}"]) == 21 * chosen
    assert here.tape.parameters["here.router"] == (13 * 12, "trainable")
    assert here.tape.parameters["here.router_correction"] == (12, "buffer")


def test_all_choices_are_among_the_experts(place):
    weights, chosen = routed(fields(10, bias=True), ROWS, place(EXPERTS))
    assert (weights.dtype, weights.shape) == (np.float32, (21, 10))
    assert chosen.min() == 0
    assert chosen.max() == 9
    assert (weights[chosen > 0] > 0).all()


def test_scores_are_made_of_what_the_network_gives(place):
    given = {**GIVEN, **EXPERTS, "router": RNG.normal(size=(5, 12))}
    some = fields(3, network={"width": 5, "carried": True, "norm": NORM})
    sight = Sight(carried={5: EARLIER})
    y = mixture(some, ROWS[None], place(given), sight=sight)
    _, read = expected(earlier=EARLIER)
    chosen = routed(fields(3), read.astype(np.float32), place(given))
    here = place(given)
    wanted = mixture(some, ROWS[None], here, sight=Sight(carried={5: EARLIER}))
    np.testing.assert_array_equal(y, wanted)
    logits = read @ given["router"]
    best = np.argsort(-logits, axis=-1)[:, :3]
    np.testing.assert_array_equal(np.where(best < 10, best, 0), chosen[1])
    assert here.tape.products["here.router"][0][1:] == (21, 5, 12)
    np.testing.assert_allclose(sight.carried[5], expected(earlier=EARLIER)[0], rtol=1e-4, atol=1e-5)
    assert np.abs(mixture(some, ROWS[None], place(given)) - y).max() > 0.01  # with nothing carried
