"""Mamba-2 in both of its forms, in pieces and whole, against loops over texts, tokens and heads."""

import numpy as np
import pytest

import costcalc
from costcalc.architecture.mixer import Mamba2
from costcalc.reference import Arena, Request, Tape, forward
from costcalc.reference.mamba2 import mamba2
from costcalc.reference.sight import Sight

# B=2, T=11, D=13; N=6 heads of P=5 in G=3 groups, S=7 numbers of state for each channel, 4 taps.
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
GIVEN = {
    "input": RNG.normal(size=(13, 108)) / 4,  # 2·30 + 2·3·7 + 6
    "input_bias": RNG.normal(size=108),
    "conv": RNG.normal(size=(72, 4, 1)),
    "conv_bias": RNG.normal(size=72),
    "dt_bias": RNG.normal(size=6),
    "a_log": RNG.normal(size=6),
    "d": RNG.normal(size=6),
    "norm": RNG.normal(size=30),
    "output": RNG.normal(size=(30, 13)) / 5,
    "output_bias": RNG.normal(size=13),
}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11, (2, 9), (0, 6, 5)]
CHANGES = [
    {},
    {"bias": True},
    {"out_bias": True},
    {"conv_bias": False},
    {"activation": "relu"},
    {"gated_norm": False},
    {"norm_before_gate": True},
]


def fields(**changes):
    return Mamba2(**{"heads": 6, "head_dim": 5, "d_state": 7, "groups": 3, "chunk": 4, **changes}).model_dump()


def silu(x):
    return x / (1 + np.exp(-x))


def normed(some, y, gate):
    """Ten numbers of each group together."""
    if not some["gated_norm"]:
        return y * silu(gate)
    y = y if some["norm_before_gate"] else y * silu(gate)
    groups = [group / np.sqrt(np.mean(group**2) + 0.3) for group in np.split(y, 3)]
    y = np.concatenate(groups) * GIVEN["norm"]
    return y * silu(gate) if some["norm_before_gate"] else y


def looped(some):
    """(outputs, last states) in float64: h = a h + dt x B^T and y = h C, head by head."""
    out, states = np.zeros((2, 11, 13)), np.zeros((2, 6, 5, 7))
    act = silu if some["activation"] == "silu" else lambda x: np.maximum(x, 0)
    for b, text in enumerate(X.astype(float)):
        made = text @ GIVEN["input"] + some["bias"] * GIVEN["input_bias"]
        for t in range(11):
            gate, dt = made[t, :30], np.log(1 + np.exp(made[t, 102:] + GIVEN["dt_bias"]))
            mixed = some["conv_bias"] * GIVEN["conv_bias"]
            for back in range(min(t, 3) + 1):
                mixed = mixed + GIVEN["conv"][:, 3 - back, 0] * made[t - back, 30:102]
            x, enters, leaves = np.split(act(mixed), [30, 51])
            y = np.zeros(30)
            for n in range(6):
                group, mine = slice(7 * (n // 2), 7 * (n // 2) + 7), slice(5 * n, 5 * n + 5)
                states[b, n] *= np.exp(-dt[n] * np.exp(GIVEN["a_log"][n]))
                states[b, n] += dt[n] * np.outer(x[mine], enters[group])
                y[mine] = states[b, n] @ leaves[group] + GIVEN["d"][n] * x[mine]
            out[b, t] = normed(some, y, gate) @ GIVEN["output"] + some["out_bias"] * GIVEN["output_bias"]
    return out, states


def passed(here, some, parts=(11,), *, chunked=False):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, chunked=chunked)
        out.append(mamba2(some, part, here, sight=sight, eps=0.3))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("changes", CHANGES)
def test_it_is_the_loop(place, changes, chunked):
    some = fields(**changes)
    y, request = passed(place(GIVEN), some, chunked=chunked)
    out, states = looped(some)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, out, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(request.arrays["here.state"], states, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("chunk", [None, 1, 3, 4, 5, 11, 17])
def test_in_any_pieces_and_chunks_it_is_the_same(place, chunk, parts):
    """Whole and token by token is what is compared with; chunks that end inside, at the end of and behind a piece."""
    whole, end = passed(place(GIVEN), fields())
    some = fields(chunk=chunk or 4)
    y, request = passed(place(GIVEN), some, parts, chunked=chunk is not None)
    np.testing.assert_allclose(y, whole, rtol=1e-5, atol=1e-5)
    assert {path: held.shape for path, held in request.arrays.items()} == {
        "here.conv_state": (2, 4, 72),
        "here.state": (2, 6, 5, 7),
    }
    assert request.arrays.keys() == request.states
    for path, held in request.arrays.items():
        assert held.dtype == np.float32
        np.testing.assert_allclose(held, end.arrays[path], rtol=1e-5, atol=1e-5)


def test_decays_of_any_size_stay_numbers(place):
    """Of heads that forget all at once and heads that forget nothing, in both forms."""
    given = {**GIVEN, "a_log": np.array([9.0, -30.0, 9.0, 5.0, -9.0, 0.0])}
    one, _ = passed(place(given), fields(chunk=5))
    other, _ = passed(place(given), fields(chunk=5), chunked=True)
    assert np.isfinite(one).all()
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


SIZES = {"input": 13 * 108, "conv": 72 * 4, "output": 30 * 13}
MORE = {"dt_bias": 6, "a_log": 6, "d": 6}


@pytest.mark.parametrize("tokens", [0, 11])
@pytest.mark.parametrize("changes", CHANGES)
def test_what_it_records(place, changes, tokens):
    """2·tokens rows, and 6·5·7 numbers of state for each, twice."""
    some, here = fields(**changes), place(GIVEN)
    y = mamba2(some, X[:, :tokens], here, sight=Sight(), eps=0.3)
    assert y.shape == (2, tokens, 13)
    more = {"norm": 30} if some["gated_norm"] else {}
    more |= {"input_bias": 108} if some["bias"] else {}
    more |= {"output_bias": 13} if some["out_bias"] else {}
    more |= {"conv_bias": 72} if some["conv_bias"] else {}
    sizes = {**SIZES, **MORE, **more}
    assert here.tape.parameters == {f"here.{name}": (size, "trainable") for name, size in sizes.items()}
    done = {**SIZES, "scan_update": 210, "scan_read": 210} if tokens else {}
    assert here.tape.flops() == {f"here.{name}": 2 * 22 * size for name, size in done.items()}
    assert here.tape.of == {path: path for path in here.tape.products if "scan" not in path}


def test_what_it_records_chunk_by_chunk(place):
    """Eleven tokens are three chunks of four: 2·12 rows, each against four keys of 6·7 and four values of 6·5."""
    here = place(GIVEN)
    mamba2(fields(), X, here, sight=Sight(chunked=True), eps=0.3)
    scans = {"scan_scores": 4 * 42, "scan_values": 4 * 30, "scan_update": 210, "scan_read": 210}
    assert here.tape.flops() == {
        **{f"here.{name}": 2 * 22 * size for name, size in SIZES.items()},
        **{f"here.{name}": 2 * 24 * size for name, size in scans.items()},
    }


def test_a_decode_step_is_not_chunked(place):
    here = place(GIVEN)
    sight = Sight(start=5, request=Request(past=5), chunked=True)
    mamba2(fields(), X[:, :1], here, sight=sight, eps=0.3)
    assert "here.scan_scores" not in here.tape.products
    assert here.tape.flops()["here.scan_update"] == 2 * 2 * 210


def model():
    """A decoder of two such layers. V=19, D=13."""
    block = {"repeat": 2, "mixer": fields(), "feed_forward": {"d_ff": 17}}
    return costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [block]}).model_dump()


TEXT = RNG.integers(0, 19, (2, 11))
ARENA = Arena(4096, deviation=13**-0.5)


def test_a_whole_model_gives_the_same_in_both_forms():
    tapes = [Tape(ARENA), Tape(ARENA)]
    one, other = (forward(model(), TEXT, tape=tape, chunked=bool(n)) for n, tape in enumerate(tapes))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    paths = {path.rpartition(".")[2] for path in tapes[1].products} - {
        path.rpartition(".")[2] for path in tapes[0].products
    }
    assert paths == {"scan_scores", "scan_values"}
    assert tapes[0].parameters == tapes[1].parameters
    # Of two texts and two layers: 4·72 inputs and 6·5·7 numbers of state each.
    states = {path: size for path, size in tapes[0].cached.items() if tapes[0].cached_kinds[path] == "state"}
    assert sorted(states.values()) == [2 * 210] * 2 + [2 * 288] * 2
    assert tapes[0].cached == states == tapes[1].cached


def test_chunk_by_chunk_all_tokens_are_kept():
    with pytest.raises(ValueError, match="all tokens of such a pass are kept"):
        forward(model(), TEXT, tape=Tape(ARENA), request=Request(kept=3), chunked=True)


def test_only_tried_tokens_leave_no_trace_in_states():
    """As in speculative decoding: of the last six tokens two are kept."""
    request, whole = Request(), forward(model(), TEXT, tape=Tape(ARENA))
    forward(model(), TEXT[:, :5], tape=Tape(ARENA), request=request)
    request.kept = 2
    forward(model(), TEXT[:, 5:], tape=Tape(ARENA), request=request)
    y = forward(model(), TEXT[:, 7:], tape=Tape(ARENA), request=request)
    np.testing.assert_allclose(y, whole[:, 7:], rtol=1e-4, atol=1e-5)


def test_a_pass_that_fails_leaves_states_as_they_were():
    request = Request()
    forward(model(), TEXT[:, :5], tape=Tape(ARENA), request=request)
    before, states = dict(request.arrays), request.states

    def fails(done, layers, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forward(model(), TEXT[:, 5:], tape=Tape(ARENA), request=request, on_layer=fails)
    assert all(request.arrays[path] is before[path] for path in before)
    assert (request.arrays.keys(), request.states) == (before.keys(), states)
