"""Mixtures of experts against one loop over all tokens and their experts."""

import math

import numpy as np
import pytest

from costcalc.architecture.feed_forward import Mixture
from costcalc.reference import Arena, Scope, Tape
from costcalc.reference.mixture import largest, mixture, of_best_groups, routed, sent
from costcalc.reference.tape import Product

# B=3, T=7, D=13, E=10, X=3, F=17, shared F=19
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 7, 13)).astype(np.float32)
ROWS = X.reshape(21, 13)
GIVEN = {
    "router": RNG.normal(size=(13, 10)) / 2,
    "router_bias": RNG.normal(size=10),
    "router_correction": RNG.normal(size=10),
    "experts.gate": RNG.normal(size=(10, 13, 17)) / 3,
    "experts.gate_bias": RNG.normal(size=(10, 17)),
    "experts.up": RNG.normal(size=(10, 13, 17)) / 3,
    "experts.up_bias": RNG.normal(size=(10, 17)),
    "experts.down": RNG.normal(size=(10, 17, 13)) / 4,
    "experts.down_bias": RNG.normal(size=(10, 13)),
    "shared.up": RNG.normal(size=(13, 19)) / 3,
    "shared.down": RNG.normal(size=(19, 13)) / 4,
    "shared_gate": RNG.normal(size=(13, 1)),
}
DENSE = {"kind": "dense", "d_ff": 17, "activation": "relu", "bias": False}
GATED = {
    "kind": "gated",
    "d_ff": 17,
    "activation": "relu",
    "bias": False,
    "limit": None,
    "up_shift": 0.0,
    "sparsity": 0.0,
}
SHARED = {**DENSE, "d_ff": 19}


def fields(router=(), **changes):
    """As they are dumped, with what they leave out."""
    some = {"experts": 10, "experts_per_token": 3, "expert": GATED, "router": {"correction": False, **dict(router)}}
    return Mixture(**{**some, **changes}).model_dump()


def chosen_of(row, some):
    """{expert: weight} of one token."""
    how = some["router"]
    logits = row @ GIVEN["router"] + how["bias"] * GIVEN["router_bias"]
    scores = {
        "softmax": np.exp(logits) / sum(np.exp(logits)),
        "sigmoid": 1 / (1 + np.exp(-logits)),
        "softmax_of_chosen": logits,
    }[how["scores"]]
    liked = scores + bool(how["correction"]) * GIVEN["router_correction"]
    size = 10 // how["groups"]
    groups = [range(first, first + size) for first in range(0, 10, size)]
    best = 2 if how["scores"] == "sigmoid" else 1
    groups.sort(key=lambda group: -sum(sorted(liked[expert] for expert in group)[-best:]))
    allowed = [expert for group in groups[: how["groups_per_token"]] for expert in group]
    chosen = sorted(allowed, key=lambda expert: -liked[expert])[: some["experts_per_token"]]
    weights = [scores[expert] for expert in chosen]
    if how["scores"] == "softmax_of_chosen":
        weights = np.exp(weights)
    if how["normalize"] or how["scores"] == "softmax_of_chosen":
        weights = np.array(weights) / sum(weights)
    return {expert: how["scale"] * weight for expert, weight in zip(chosen, weights, strict=True)}


def network(row, some, at, pick=lambda array: array):
    """A ReLU network, gated or not, of one token."""

    def part(name, numbers):
        return numbers @ pick(GIVEN[f"{at}.{name}"]) + (pick(GIVEN[f"{at}.{name}_bias"]) if some["bias"] else 0)

    hidden = np.maximum(part("gate" if some["kind"] == "gated" else "up", row), 0)
    return part("down", hidden * part("up", row) if some["kind"] == "gated" else hidden)


def expected(some):
    out = np.zeros((21, 13))
    for token, row in enumerate(ROWS.astype(float)):
        for expert, weight in chosen_of(row, some).items():
            of_input = some["router"]["weigh"] == "inputs"
            result = network(row * (weight if of_input else 1), some["expert"], "experts", lambda all_: all_[expert])  # noqa: B023
            out[token] += result * (1 if of_input else weight)
        if some["shared"]:
            gate = 1 / (1 + math.exp(-(row @ GIVEN["shared_gate"]).item())) if some["shared_gate"] else 1
            out[token] += gate * network(row, some["shared"], "shared")
    return out.reshape(3, 7, 13)


@pytest.mark.parametrize(
    ("router", "changes"),
    [
        ({}, {}),
        ({}, {"expert": DENSE}),
        ({}, {"expert": {**GATED, "bias": True}}),
        ({}, {"expert": {**DENSE, "bias": True}}),
        ({}, {"experts_per_token": 1}),
        ({}, {"experts_per_token": 10}),
        ({}, {"shared": SHARED}),
        ({}, {"shared": SHARED, "shared_gate": True}),
        ({}, {"dispatch": "all"}),
        ({"bias": True}, {}),
        ({"normalize": False}, {}),
        ({"scale": 2.5}, {}),
        ({"scores": "sigmoid"}, {}),
        ({"scores": "sigmoid", "normalize": False}, {}),
        ({"scores": "softmax_of_chosen"}, {}),
        ({"scores": "softmax_of_chosen", "normalize": False, "bias": True}, {}),
        ({"correction": "buffer"}, {}),
        ({"correction": "trainable", "scores": "sigmoid", "scale": 2.5}, {}),
        ({"groups": 5, "groups_per_token": 2}, {}),
        ({"groups": 2, "groups_per_token": 1}, {}),
        ({"groups": 5, "groups_per_token": 5}, {}),
        ({"groups": 5, "groups_per_token": 3, "scores": "sigmoid", "correction": "buffer"}, {}),
        ({"groups": 2, "groups_per_token": 1, "scores": "sigmoid"}, {}),
        ({"weigh": "inputs", "scores": "sigmoid", "normalize": False}, {"experts_per_token": 1, "shared": SHARED}),
        ({"weigh": "inputs"}, {"expert": {**GATED, "bias": True}}),
    ],
)
def test_a_mixture_is_the_loop_over_tokens_and_their_experts(place, router, changes):
    some = fields(router, **changes)
    y = mixture(some, X, place(GIVEN))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected(some), rtol=1e-4, atol=1e-4)


def test_an_expert_multiplies_the_tokens_that_chose_it_and_no_others(place):
    here = place(GIVEN)
    mixture(fields(shared=SHARED, shared_gate=True), X, here)
    meant = np.bincount([expert for row in ROWS for expert in chosen_of(row.astype(float), fields())], minlength=10)
    assert meant.sum() == 63  # 21 tokens, 3 experts each
    for name, sizes in {"gate": (13, 17), "up": (13, 17), "down": (17, 13)}.items():
        assert here.tape.products[f"here.experts.{name}"] == [Product(1, rows, *sizes) for rows in meant if rows]
        assert here.tape.of[f"here.experts.{name}"] == f"here.experts.{name}"
    assert here.tape.products["here.router"] == [Product(1, 21, 13, 10)]
    assert here.tape.products["here.shared_gate"] == [Product(1, 21, 13, 1)]
    # 2·21·3 rows of three matrices, a router, a shared network of two matrices, and its gate
    assert sum(here.tape.flops().values()) == 126 * 3 * 13 * 17 + 42 * (13 * 10 + 2 * 13 * 19 + 13)


@pytest.mark.parametrize("rows", [21, 1, 0])
def test_all_experts_are_held_once_whoever_is_chosen(place, rows):
    here = place(GIVEN)
    some = fields({"bias": True, "correction": "buffer"}, expert={**GATED, "bias": True})
    assert mixture(some, ROWS[None, :rows], here).shape == (1, rows, 13)
    assert here.tape.parameters == {
        "here.router": (130, "trainable"),
        "here.router_bias": (10, "trainable"),
        "here.router_correction": (10, "buffer"),
        **{f"here.experts.{name}": (10 * 13 * 17, "trainable") for name in ("gate", "up", "down")},
        **{f"here.experts.{name}_bias": (170, "trainable") for name in ("gate", "up")},
        "here.experts.down_bias": (130, "trainable"),
    }
    assert bool(here.tape.products) == bool(rows)


@pytest.mark.parametrize("role", ["buffer", "frozen", "trainable"])
def test_a_correction_chooses_and_weighs_nothing(place, role):
    """With 97 added to three of them those are chosen, each with the score that it has."""
    correction = np.zeros(10)
    correction[[1, 4, 8]] = 97
    here = place({**GIVEN, "router_correction": correction})
    some = fields({"correction": role, "scores": "sigmoid", "normalize": False})
    weights, chosen = routed(some, ROWS, here)
    scores = 1 / (1 + np.exp(-(ROWS @ GIVEN["router"])))
    assert (np.sort(chosen, axis=1) == [1, 4, 8]).all()
    np.testing.assert_allclose(weights, np.take_along_axis(scores, chosen, axis=1), rtol=1e-5)
    assert here.tape.parameters["here.router_correction"] == (10, role)


def test_groups_are_chosen_by_their_best_or_by_their_two_best():
    """Three groups of three: the first has the best expert, the second the best two, the third the best three."""
    liked = np.array([[9.0, 0, 0, 8, 7, 0, 6, 5.5, 5]])
    for scores, best in (("softmax", 0), ("softmax_of_chosen", 0), ("sigmoid", 3)):
        kept = of_best_groups({"groups": 3, "groups_per_token": 1, "scores": scores}, liked)[0]
        assert np.flatnonzero(np.isfinite(kept)).tolist() == [best, best + 1, best + 2]
        assert (kept[best : best + 3] == liked[0, best : best + 3]).all()


def test_of_equal_scores_the_first_are_taken():
    assert largest(np.array([[1.0, 3, 3, 2, 3], [0, 0, 0, 0, 0]]), 2).tolist() == [[1, 2], [0, 1]]
    same = np.arange(1009)[None] % 2  # of so many, a sort that is not stable mixes them up
    assert largest(same.astype(float), 7).tolist() == [[1, 3, 5, 7, 9, 11, 13]]


def test_with_equal_scores_of_all_experts_their_outputs_are_averaged(place):
    """A relation: of a router of zeros and all experts the mean."""
    here = place({**GIVEN, "router": np.zeros((13, 10))})
    mean = sum(network(ROWS.astype(float), GATED, "experts", lambda all_: all_[e]) for e in range(10)) / 10  # noqa: B023
    y = mixture(fields(experts_per_token=10), X, here)
    np.testing.assert_allclose(y.reshape(21, 13), mean, rtol=1e-4, atol=1e-4)


def test_no_memory_is_taken_for_all_experts_at_once():
    """97 experts of 13·17 over an arena of one; each has other numbers."""
    arena = Arena(13 * 17, deviation=0.3)
    here = Scope(Tape(arena), "here")
    some = fields(experts=97)
    mixture(some, X, here)
    assert here.tape.parameters["here.experts.gate"] == (97 * 13 * 17, "trainable")
    experts = [arena.one_of(expert, 97).matrix("here.experts.gate", 13, 17) for expert in range(97)]
    assert all(np.shares_memory(expert, arena.numbers) for expert in experts)
    assert len({expert.tobytes() for expert in experts}) > 90


def test_a_mixture_of_deepseek_v3_by_hand():
    """Of 7,168 numbers: 256 experts of three matrices of 2,048, of which 8 are used, one shared, and the router.

    One token multiplies nine networks of the 257. 58 such layers hold 656,569,532,416 of the model's 671,026,404,352.
    """
    one = {**GATED, "activation": "silu", "d_ff": 2048}
    groups = {"correction": "buffer", "scores": "sigmoid", "groups": 8, "groups_per_token": 4, "scale": 2.5}
    some = fields(groups, experts=256, experts_per_token=8, expert=one, shared=one)
    here = Scope(Tape(Arena(7168 * 2048, deviation=0.01)), "here")
    mixture(some, np.random.default_rng(0).normal(size=(1, 1, 7168)).astype(np.float32), here)
    trainable = sum(elements for elements, role in here.tape.parameters.values() if role == "trainable")
    assert trainable == 257 * 3 * 7168 * 2048 + 7168 * 256 == 656_569_532_416 // 58
    assert sum(here.tape.flops().values()) == 2 * (9 * 3 * 7168 * 2048 + 7168 * 256)


def test_a_router_reads_what_it_is_given_in_place_of_its_input(place):
    """The experts still read theirs."""
    other = RNG.normal(size=X.shape).astype(np.float32)
    chosen = routed(fields(), other.reshape(-1, 13), place(GIVEN))
    rows = X.reshape(-1, 13)
    wanted = sent(fields(), rows, *chosen, place(GIVEN).under("experts")).reshape(X.shape)
    np.testing.assert_array_equal(mixture(fields(), X, place(GIVEN), residual=other), wanted)


def test_what_is_read_is_normed_and_scaled_before_it_is_routed(place):
    router = {"norm": {"kind": "rmsnorm", "eps": 0.3, "weight": True}, "input_scale": True}
    more = {"router_norm": RNG.normal(size=13), "router_input_scale": RNG.normal(size=13)}
    here = place({**GIVEN, **more})
    rows = ROWS.astype(float)
    normed = rows / np.sqrt(np.mean(rows**2, axis=-1, keepdims=True) + 0.3) * more["router_norm"]
    read = (normed * more["router_input_scale"] / 13**0.5).astype(np.float32)
    weights, chosen = routed(fields(router), ROWS, here)
    wanted = routed(fields(), read, place(GIVEN))
    np.testing.assert_allclose(weights, wanted[0], rtol=1e-4)
    np.testing.assert_array_equal(chosen, wanted[1])
    assert (
        here.tape.parameters["here.router_input_scale"] == here.tape.parameters["here.router_norm"] == (13, "trainable")
    )


def test_weights_of_experts_are_scaled_when_all_else_is_done(place):
    scales = {"router_expert_scale": RNG.normal(size=10)}
    here = place({**GIVEN, **scales})
    weights, chosen = routed(fields({"expert_scale": True, "scale": 2.5}), ROWS, here)
    plain, same = routed(fields({"scale": 2.5}), ROWS, place(GIVEN))
    np.testing.assert_array_equal(chosen, same)
    np.testing.assert_allclose(weights, plain * scales["router_expert_scale"][chosen], rtol=1e-5)
    assert here.tape.parameters["here.router_expert_scale"] == (10, "trainable")


def test_a_choice_beyond_the_experts_is_the_token_itself(place):
    """Of two experts and two identities a token takes the best two, weighed by the softmax of all four."""
    rng = np.random.default_rng(7)
    sizes = {"router": (5, 4), "experts.up": (2, 5, 3), "experts.down": (2, 3, 5), "unused.up": (2, 5, 3)}
    given = {name: rng.normal(size=size) for name, size in sizes.items()}
    router = {"skips": 2, "skip_gives": "input", "normalize": False, "scale": 1.5}
    expert = {"kind": "dense", "d_ff": 3, "activation": "relu"}
    some = Mixture(experts=2, experts_per_token=2, expert=expert, router=router, unused=2).model_dump()
    x = rng.normal(size=(1, 11, 5)).astype(np.float32)
    wanted = []
    for row in x[0].astype(float):
        logits = row @ given["router"]
        weights = 1.5 * np.exp(logits) / np.exp(logits).sum()
        of = [np.maximum(row @ given["experts.up"][e], 0) @ given["experts.down"][e] for e in range(2)] + [row, row]
        wanted.append(sum(weights[e] * of[e] for e in np.argsort(-logits)[:2]))
    y = mixture(some, x, place(given))
    np.testing.assert_allclose(y[0], wanted, rtol=1e-4, atol=1e-5)
