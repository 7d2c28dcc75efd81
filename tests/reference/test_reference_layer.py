"""A layer with what its stack puts around it, and two networks or a low-rank product beside its sublayers."""

import numpy as np
import pytest

from costcalc.reference import rms_norm
from costcalc.reference.altup import updated
from costcalc.reference.block import ATTENTION
from costcalc.reference.feed_forward import FEED_FORWARD
from costcalc.reference.layer import layer
from costcalc.reference.per_layer_input import per_layer_input
from costcalc.reference.sight import Sight

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 7, 13)).astype(np.float32)  # B, T, D
STATES = RNG.normal(size=(3, 2, 7, 13)).astype(np.float32)  # A, B, T, D
OWN = RNG.normal(size=(2, 7, 5)).astype(np.float32)  # B, T, W
NORM = {"kind": "rmsnorm", "eps": 0.3, "weight": True}
AROUND = {"altup": {"inputs": 3, "active": 0}, "per_layer_input": {"vocab_size": 17, "width": 5, "activation": "silu"}}
NORMS = (
    *("attention_norm", "attention_output_norm", "feed_forward_norm", "feed_forward_output_norm"),
    *("feed_forward_alone_output_norm", "feed_forward_beside_norm", "feed_forward_beside_output_norm"),
    *("augmented_residual_norm", "per_layer_input_norm", "altup.router_norm"),
)
GIVEN = {
    **{name: RNG.normal(size=13) for name in NORMS},
    "augmented_residual.down": RNG.normal(size=(13, 3)) / 3,
    "augmented_residual.up": RNG.normal(size=(3, 13)),
    "per_layer_input.gate": RNG.normal(size=(13, 5)) / 3,
    "per_layer_input.projection": RNG.normal(size=(5, 13)) / 3,
    "altup.router": RNG.normal(size=(13, 3)) * 4,
    "altup.prediction": RNG.normal(size=(3, 9)),
    "altup.correction": RNG.normal(size=(3, 3)),
    "altup.output_scale": RNG.normal(size=13),
    "layer_scale": np.array([0.7]),
}
FIELDS = {
    "name": None,
    "norms": "pre",
    "parallel": False,
    "norm": NORM,
    "positions": {"kind": "none"},
    "attention": {"kind": "treble", "heads": 1},
    "attention_norm": True,
    "mixer": None,
    "mixer_beside": None,
    "cross_attention": None,
    "feed_forward": {"kind": "sine"},
    "feed_forward_beside": None,
    "augmented_residual": None,
    "layer_scale": False,
    "norm_gate": None,
    "residual_mean": False,
    "shortcut": None,
    "residual_scale": 1.0,
    "residual_affine": False,
    "residual_gain": False,
    "sublayer_gates": False,
    "needs_memory": False,
    "conditioned": None,
}
BARE = {"altup": None, "per_layer_input": None}


@pytest.fixture(autouse=True)
def _simple_sublayers(monkeypatch):
    monkeypatch.setitem(ATTENTION, "treble", lambda fields, x, at, **others: 3 * x)
    monkeypatch.setitem(FEED_FORWARD, "sine", lambda fields, x, at: np.sin(x))
    monkeypatch.setitem(FEED_FORWARD, "square", lambda fields, x, at: x**2)


def run(place, x=X, around=BARE, own=None, **changes):
    here = place(GIVEN)
    return layer({**FIELDS, **changes}, x, here, sight=Sight(), around=around, own=own), here


def n(x, name):
    return rms_norm(x, eps=0.3) * GIVEN[name]


def close(got, wanted):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def sublayers(x):
    x = x + 3 * n(x, "attention_norm")
    return x + np.sin(n(x, "feed_forward_norm"))


def added(x, own, place):
    return per_layer_input(AROUND["per_layer_input"], x.astype(np.float32), own, place(GIVEN), norm_of=NORM)


def test_with_nothing_around_a_layer_is_its_sublayers(place):
    close(run(place)[0], sublayers(X.astype(float)))


def test_its_scale_multiplies_all_that_comes_out(place):
    result, here = run(place, layer_scale="buffer")
    close(result, 0.7 * sublayers(X.astype(float)))
    assert here.tape.parameters["here.layer_scale"] == (1, "buffer")


def test_a_per_layer_input_reads_and_joins_what_the_sublayers_gave(place):
    around, y = {**BARE, "per_layer_input": AROUND["per_layer_input"]}, sublayers(X.astype(float))
    close(run(place, around=around, own=OWN)[0], y + added(y, OWN, place))
    close(run(place, around=around, own=OWN, layer_scale="buffer")[0], 0.7 * (y + added(y, OWN, place)))


def test_of_several_states_the_sublayers_get_one(place):
    here = place({name.removeprefix("altup."): values for name, values in GIVEN.items() if name.startswith("altup.")})
    wanted, _ = updated(
        AROUND["altup"], STATES, here, norm_of=NORM, sublayers=lambda x: sublayers(x).astype(np.float32)
    )
    close(run(place, STATES, around={**AROUND, "per_layer_input": None})[0], wanted)


def test_a_per_layer_input_joins_all_states_but_the_first(place):
    here = place({name.removeprefix("altup."): values for name, values in GIVEN.items() if name.startswith("altup.")})
    states, read = updated(
        AROUND["altup"], STATES, here, norm_of=NORM, sublayers=lambda x: sublayers(x).astype(np.float32)
    )
    more = added(read, OWN, place)
    result = run(place, STATES, around=AROUND, own=OWN)[0]
    close(result, np.stack([states[0], states[1] + more, states[2] + more]))


@pytest.mark.parametrize("norms", ["pre", "sandwich"])
def test_an_augmented_residual_hears_what_the_attention_hears(place, norms):
    heard = n(X.astype(float), "attention_norm")
    attended = 3 * heard if norms == "pre" else n(3 * heard, "attention_output_norm")
    low = heard @ GIVEN["augmented_residual.down"] @ GIVEN["augmented_residual.up"]
    wanted = (X + attended + heard + n(low, "augmented_residual_norm")) / 2**0.5
    result, here = run(place, norms=norms, augmented_residual={"rank": 3}, feed_forward=None)
    close(result, wanted)
    assert here.tape.parameters["here.augmented_residual.down"] == (39, "trainable")
    assert here.tape.flops() == dict.fromkeys(
        ["here.augmented_residual.down", "here.augmented_residual.up"], 2 * 14 * 39
    )


def test_two_networks_read_one_stream_through_norms_of_their_own(place):
    first = n(np.sin(n(X.astype(float), "feed_forward_norm")), "feed_forward_alone_output_norm")
    second = n(n(X.astype(float), "feed_forward_beside_norm") ** 2, "feed_forward_beside_output_norm")
    wanted = X + n(first + second, "feed_forward_output_norm")
    close(run(place, norms="sandwich", attention=None, feed_forward_beside={"kind": "square"})[0], wanted)
    wanted = X + 0.3 * n(first + second, "feed_forward_output_norm")
    changes = {"norms": "sandwich", "attention": None, "residual_scale": 0.3}
    close(run(place, **changes, feed_forward_beside={"kind": "square"})[0], wanted)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("reads", ["input", "residual"])
def test_a_router_may_read_what_comes_into_its_part(monkeypatch, place, reads, beside):
    """After the attention, and before any norm."""
    told = []

    def noted(fields, x, at, *, residual=None):
        told.append((at.path, x, residual))
        return x

    monkeypatch.setitem(FEED_FORWARD, "noted", noted)
    mixed = {"kind": "noted", "router": {"reads": reads}}
    changes = {"feed_forward_beside": mixed} if beside else {"feed_forward": mixed}
    run(place, norms="sandwich", **changes)
    [(path, x, residual)] = told
    stream = X + n(3 * n(X.astype(float), "attention_norm"), "attention_output_norm")
    name = "feed_forward_beside" if beside else "feed_forward"
    assert path == f"here.{name}"
    close(x, n(stream, f"{name}_norm"))
    if reads == "residual":
        close(residual, stream)
    else:
        assert residual is None
