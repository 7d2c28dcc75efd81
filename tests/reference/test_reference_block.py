"""Where the norms of a layer stand, on numbers that can be followed by hand."""

import numpy as np
import pytest

from costcalc.reference import rms_norm
from costcalc.reference.block import ATTENTION, CROSS_ATTENTION, NORM_PLACES, PARALLEL, bare, block
from costcalc.reference.feed_forward import FEED_FORWARD
from costcalc.reference.sight import Sight

SIGHT = Sight(start=7)
TWO = np.array([[[2.0]]])


def squares(asked):
    """A norm that squares, and for the feed-forward multiplies by 7; it notes the names that were asked for."""

    def normed(x, name):
        asked.append(name)
        return {"feed_forward_norm": 7}.get(name, 1) * x**2

    return normed


@pytest.mark.parametrize(
    ("norms", "result", "names"),
    [
        ("pre", 14, ["part_norm"]),  # 2 + 3·(2²)
        ("post", 64, ["part_norm"]),  # (2 + 3·2)²
        ("output", 38, ["part_norm"]),  # 2 + (3·2)²
        ("sandwich", 146, ["part_norm", "part_output_norm"]),  # 2 + (3·(2²))²
    ],
)
def test_a_sublayer_and_its_norms(norms, result, names):
    asked = []
    assert NORM_PLACES[norms](TWO, lambda y: 3 * y, squares(asked), "part").item() == result
    assert asked == names


@pytest.mark.parametrize(
    ("parallel", "result", "names"),
    [
        ("one_norm", 34, ["norm"]),  # 2 + 3·(2²) + 5·(2²)
        ("two_norms", 154, ["attention_norm", "feed_forward_norm"]),  # 2 + 3·(2²) + 5·7·(2²)
    ],
)
def test_parallel_sublayers_and_their_norms(parallel, result, names):
    asked = []
    assert PARALLEL[parallel](TWO, lambda y: 3 * y, lambda y: 5 * y, squares(asked)).item() == result
    assert asked == names


@pytest.mark.parametrize(
    ("norms", "result"),
    [
        ("pre", 8),  # 2 + 3·(2²) / 2
        ("post", 25),  # (2 + 3·2 / 2)²
        ("output", 20),  # 2 + (3·2)² / 2
        ("sandwich", 74),  # 2 + (3·(2²))² / 2
    ],
)
def test_what_a_sublayer_adds_is_scaled_last(norms, result):
    joined = []

    def halved(x, y, name):
        joined.append(name)
        return x + y / 2

    assert NORM_PLACES[norms](TWO, lambda y: 3 * y, squares([]), "part", halved).item() == result
    assert joined == ["part"]


def test_a_sublayer_without_a_norm_is_joined_too():
    assert bare(TWO, lambda y: 3 * y, squares([]), "part", lambda x, y, name: x + y / 2).item() == 5  # 2 + 3·2 / 2
    assert bare(TWO, lambda y: 3 * y, squares([]), "part").item() == 8


@pytest.mark.parametrize(("parallel", "result"), [("one_norm", 18), ("two_norms", 78)])  # 2 + 32 / 2, 2 + 152 / 2
def test_both_of_two_parallel_sublayers_are_scaled(parallel, result):
    assert PARALLEL[parallel](TWO, lambda y: 3 * y, lambda y: 5 * y, squares([]), 0.5).item() == result


# A whole layer of D=13 whose attention trebles and whose feed-forward takes the sine, with one gain a norm.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 11, 13)).astype(np.float32)
GAINS = {
    "norm": 2.0,
    "attention_norm": 3.0,
    "attention_output_norm": 5.0,
    "feed_forward_norm": 7.0,
    "feed_forward_output_norm": 11.0,
    "cross_attention_norm": 13.0,
    "cross_attention_output_norm": 17.0,
}
AFFINE = {
    "attention_residual": (0.7, 0.2),
    "attention_output": (1.3, -0.3),
    "feed_forward_residual": (0.9, 0.5),
    "feed_forward_output": (-1.1, 0.4),
    "cross_attention_residual": (1.9, -0.6),
    "cross_attention_output": (0.4, 0.8),
}
WHICH = ("gain", "shift")
GATES = {"attention": 0.3, "cross_attention": -0.7, "feed_forward": 1.1}


@pytest.fixture
def layer(monkeypatch, place):
    """layer(norms=..., ...) -> the output for X, the place, and where the sublayers were run."""
    places = []

    def treble(fields, x, at, *, positions, sight, added, name):
        places.append((at.path, positions, sight, added, name))
        return 3 * x

    def sine(fields, x, at):
        places.append(at.path)
        return np.sin(x)

    def square(fields, x, at, *, sight):
        places.append((at.path, sight))
        return x**2

    monkeypatch.setitem(ATTENTION, "treble", treble)
    monkeypatch.setitem(CROSS_ATTENTION, "square", square)
    monkeypatch.setitem(FEED_FORWARD, "sine", sine)

    def run(sight=SIGHT, **changes):
        fields = {
            "name": "local",
            "residual_scale": 1.0,
            "residual_affine": False,
            "residual_gain": False,
            "sublayer_gates": False,
            "norm_gate": None,
            "residual_mean": False,
            "shortcut": None,
            "needs_memory": False,
            "conditioned": None,
            "norms": "pre",
            "parallel": False,
            "norm": {"kind": "rmsnorm", "eps": 0.3, "weight": True},
            "positions": {"kind": "none"},
            "attention": {"kind": "treble", "heads": 1},
            "attention_norm": True,
            "mixer": None,
            "mixer_beside": None,
            "cross_attention": None,
            "feed_forward": {"kind": "sine"},
            "feed_forward_beside": None,
            "augmented_residual": None,
            **changes,
        }
        pairs = {
            f"{name}_{which}": number for name, two in AFFINE.items() for which, number in zip(WHICH, two, strict=True)
        }
        gates = {f"{name}_gate": np.array([gate]) for name, gate in GATES.items()}
        here = place({**{name: np.full(13, gain) for name, gain in {**GAINS, **pairs}.items()}, **gates})
        return block(fields, X, here, sight=sight), here, places

    return run


def n(x, name):
    return rms_norm(x, eps=0.3) * GAINS[name]


def pre_attention(x):
    return x + 3 * n(x, "attention_norm")


def pre_feed_forward(x):
    return x + np.sin(n(x, "feed_forward_norm"))


def post(x):
    x = n(x + 3 * x, "attention_norm")
    return n(x + np.sin(x), "feed_forward_norm")


def output(x):
    x = x + n(3 * x, "attention_norm")
    return x + n(np.sin(x), "feed_forward_norm")


def sandwich(x):
    x = x + n(3 * n(x, "attention_norm"), "attention_output_norm")
    return x + n(np.sin(n(x, "feed_forward_norm")), "feed_forward_output_norm")


@pytest.mark.parametrize(
    ("changes", "formula"),
    [
        ({}, lambda x: pre_feed_forward(pre_attention(x))),
        ({"norms": "post"}, post),
        ({"norms": "output"}, output),
        ({"norms": "sandwich"}, sandwich),
        ({"parallel": "one_norm"}, lambda x: x + 3 * n(x, "norm") + np.sin(n(x, "norm"))),
        (
            {"parallel": "two_norms"},
            lambda x: x + 3 * n(x, "attention_norm") + np.sin(n(x, "feed_forward_norm")),
        ),
        (
            {"residual_scale": 0.3},
            lambda x: (
                0.3 * pre_feed_forward(0.3 * pre_attention(x) + 0.7 * x) + 0.7 * (0.3 * pre_attention(x) + 0.7 * x)
            ),
        ),
        (
            {"residual_scale": 0.3, "parallel": "one_norm"},
            lambda x: x + 0.9 * n(x, "norm") + 0.3 * np.sin(n(x, "norm")),
        ),
        ({"residual_scale": 0.3, "attention_norm": False, "feed_forward": None}, lambda x: 1.9 * x),
        ({"feed_forward": None}, pre_attention),
        ({"attention": None}, pre_feed_forward),
    ],
)
def test_a_layer_is_its_formula(layer, changes, formula):
    np.testing.assert_allclose(layer(**changes)[0], formula(X.astype(float)), rtol=2e-5, atol=1e-5)


def test_the_parts_of_a_layer_stand_at_their_places(layer):
    _, here, (attention, feed_forward) = layer()
    assert attention == ("here.attention", {"kind": "none"}, SIGHT, None, "local")
    assert feed_forward == "here.feed_forward"
    assert here.tape.parameters == dict.fromkeys(["here.attention_norm", "here.feed_forward_norm"], (13, "trainable"))


ASKS = {"cross_attention": {"kind": "square"}}
ASKED = {
    "pre": lambda x: x + n(x, "cross_attention_norm") ** 2,
    "post": lambda x: n(x + x**2, "cross_attention_norm"),
    "output": lambda x: x + n(x**2, "cross_attention_norm"),
    "sandwich": lambda x: x + n(n(x, "cross_attention_norm") ** 2, "cross_attention_output_norm"),
}


@pytest.mark.parametrize("norms", ASKED)
def test_cross_attention_stands_between_the_two_others_with_norms_of_its_own(layer, norms):
    result, here, places = layer(sight=Sight(asks=True), norms=norms, **ASKS)
    parts = [place[0] if isinstance(place, tuple) else place for place in places]
    assert parts == ["here.attention", "here.cross_attention", "here.feed_forward"]
    x = layer(norms=norms, feed_forward=None)[0].astype(float)
    x = ASKED[norms](x).astype(np.float32)
    assert {name.split("_norm")[0] for name in here.tape.parameters} >= {"here.cross_attention"}
    expected = {
        "pre": pre_feed_forward,
        "post": lambda x: n(x + np.sin(x), "feed_forward_norm"),
        "output": lambda x: x + n(np.sin(x), "feed_forward_norm"),
        "sandwich": lambda x: x + n(np.sin(n(x, "feed_forward_norm")), "feed_forward_output_norm"),
    }[norms](x)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("norms", ASKED)
def test_with_nobody_to_ask_only_the_weights_are_there(layer, norms):
    result, here, places = layer(sight=Sight(asks=False), norms=norms, **ASKS)
    np.testing.assert_array_equal(result, layer(norms=norms)[0])
    assert places[1] == ("here.cross_attention", Sight(asks=False))
    assert here.tape.parameters["here.cross_attention_norm"] == (13, "trainable")


def test_what_is_asked_is_scaled_too(layer):
    alone = {"attention": None, "feed_forward": None, **ASKS}
    result = layer(sight=Sight(asks=True), residual_scale=0.3, **alone)[0]
    np.testing.assert_allclose(result, 0.7 * X + 0.3 * ASKED["pre"](X.astype(float)), rtol=2e-5, atol=1e-5)


def test_what_a_sublayer_gives_is_multiplied_by_the_tanh_of_its_gate(layer):
    result, here, _ = layer(sight=Sight(asks=True), sublayer_gates=True, residual_scale=0.5, **ASKS)
    x = X.astype(float)
    for name, part in (("attention", lambda y: 3 * y), ("cross_attention", lambda y: y**2), ("feed_forward", np.sin)):
        x = x + 0.5 * np.tanh(GATES[name]) * part(n(x, f"{name}_norm"))
    np.testing.assert_allclose(result, x, rtol=1e-3, atol=1e-3)
    assert {f"here.{name}_gate" for name in GATES} <= here.tape.parameters.keys()


@pytest.mark.parametrize("norms", ASKED)
def test_a_layer_that_needs_a_memory_does_nothing_without_one(layer, norms):
    alone = {"attention": None, "norms": norms, **ASKS}
    result, here, _ = layer(sight=Sight(asks=False), needs_memory=True, **alone)
    np.testing.assert_array_equal(result, X)
    assert here.tape.parameters["here.feed_forward_norm"] == (13, "trainable")
    asked, plain = (layer(sight=Sight(asks=True), needs_memory=needs, **alone)[0] for needs in (True, False))
    np.testing.assert_array_equal(asked, plain)


def test_the_norm_before_the_attention_may_be_left_out(layer):
    result, here, _ = layer(attention_norm=False)
    np.testing.assert_allclose(result, pre_feed_forward(4 * X.astype(float)), rtol=2e-5, atol=1e-5)  # x + 3x
    assert "here.attention_norm" not in here.tape.parameters


def shifted(x, name):
    gain, shift = AFFINE[name]
    return (x + shift) * gain


@pytest.mark.parametrize("norms", ["pre", "post", "output", "sandwich"])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_both_parts_of_each_sum_are_shifted_and_then_scaled(layer, norms, scale):
    """And what is added is scaled once more, by one number, where a layer does that."""

    def joined(x, y, name):
        return shifted(x, f"{name}_residual") + scale * shifted(y, f"{name}_output")

    x = X.astype(float)
    for name, part in (("attention", lambda y: 3 * y), ("cross_attention", lambda y: y**2), ("feed_forward", np.sin)):
        y = part(n(x, f"{name}_norm") if norms in ("pre", "sandwich") else x)
        if norms in ("output", "sandwich"):
            y = n(y, f"{name}_{'norm' if norms == 'output' else 'output_norm'}")
        x = joined(x, y, name)
        x = n(x, f"{name}_norm") if norms == "post" else x
    given = {"residual_affine": True, "residual_scale": scale, "norms": norms, **ASKS}
    result, here, _ = layer(sight=Sight(asks=True), **given)
    np.testing.assert_allclose(result, x, rtol=1e-3, atol=1e-3)
    held = {path for path in here.tape.parameters if path.endswith(WHICH)}
    assert held == {f"here.{name}_{which}" for name in AFFINE for which in WHICH}


def test_without_a_norm_before_it_a_sublayer_is_joined_the_same_way(layer):
    result = layer(residual_affine=True, attention_norm=False, feed_forward=None)[0]
    wanted = shifted(X, "attention_residual") + shifted(3 * X, "attention_output")
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
