"""Modules that predict further tokens, beside a model's own pass."""

import numpy as np
import pytest

import costcalc
from costcalc.reference import Arena, Given, Request, Tape, forward, rms_norm

# V=19, D=13, B=3, T=7. Layers of the model and of the modules that add nothing, since their matrices are zero.
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 19, (3, 7))
E, OWN = RNG.normal(size=(19, 13)), RNG.normal(size=(2, 19, 13))
JOINS, GAINS = RNG.normal(size=(2, 26, 13)), RNG.normal(size=(3, 2, 13))
NORM = {"kind": "rmsnorm", "eps": 0.3}
HOLLOW = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": {**NORM, "weight": False},
    "tie_embeddings": True,
    "embedding": {"scale": 3.7},
    "layers": [{"feed_forward": {"d_ff": 5}}],
}


def model(*, repeat=1, **module):
    layer = {"norm": {**NORM, "weight": False}, "feed_forward": {"d_ff": 5}}
    return costcalc.load({**HOLLOW, "multi_token": {"repeat": repeat, "norm": NORM, "layer": layer, **module}})


def run(arch, tokens=TOKENS, request=None):
    repeat = arch.multi_token.repeat

    def parts(arrays):
        return arrays[0] if repeat == 1 else arrays

    names = ("hidden_norm", "embedding_norm", "final_norm")
    zeros = {"up": np.zeros((2, 13, 5)), "down": np.zeros((2, 5, 13))}
    arrays = {
        "decoder.embedding": E,
        **{f"decoder.layers.0.feed_forward.{name}": value[0] for name, value in zeros.items()},
        **{f"multi_token.layer.feed_forward.{name}": parts(value) for name, value in zeros.items()},
        **{f"multi_token.{name}": parts(gains) for name, gains in zip(names, GAINS, strict=True)},
        "multi_token.projection": parts(JOINS),
        "multi_token.embedding": parts(OWN),
        "multi_token.head": parts(OWN),
    }
    tape = Tape(Given({path: np.asarray(value, np.float32) for path, value in arrays.items()}))
    return forward(arch.model_dump(), tokens, tape=tape, request=request), tape


def n(x):
    return rms_norm(x, eps=0.3)


def joined(x, words, k=0):
    """Module k of two, on numbers: two norms side by side, one matrix, a norm."""
    parts = np.concatenate([n(x) * GAINS[0, k], n(words) * GAINS[1, k]], axis=-1)
    return n(parts @ JOINS[k]) * GAINS[2, k]


@pytest.mark.parametrize("own", [False, True])
def test_a_module_joins_hidden_states_with_the_next_token(own):
    logits, tape = run(model(own_tables=own))
    hidden, table = n(3.7 * E[TOKENS]), OWN[0] if own else E
    (ahead,) = tape.ahead
    np.testing.assert_allclose(ahead, joined(hidden[:, :-1], 3.7 * table[TOKENS[:, 1:]]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logits, hidden @ E.T, rtol=1e-4, atol=1e-4)  # what the model gives is its own


def test_the_second_module_looks_one_token_further_on_from_the_first():
    _, tape = run(model(repeat=2))
    first = joined(n(3.7 * E[TOKENS])[:, :-1], 3.7 * E[TOKENS[:, 1:]])
    second = joined(first[:, :-1], 3.7 * E[TOKENS[:, 2:]], 1)
    assert [ahead.shape for ahead in tape.ahead] == [(3, 6, 13), (3, 5, 13)]
    np.testing.assert_allclose(tape.ahead[1], second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("repeat", [1, 2])
@pytest.mark.parametrize("own", [False, True])
def test_all_that_modules_hold_is_extra(repeat, own):
    arch = model(repeat=repeat, own_tables=own)
    _, tape = run(arch)
    # Two gains of 13, a matrix 26·13, a network of two matrices 13·5, the last gain; two tables of 19·13.
    held = {"hidden_norm": 13, "embedding_norm": 13, "projection": 338, "final_norm": 13}
    held |= {"layer.feed_forward.up": 65, "layer.feed_forward.down": 65} | (
        {"embedding": 247, "head": 247} if own else {}
    )
    assert {path: told for path, told in tape.parameters.items() if path.startswith("multi_token")} == {
        f"multi_token.{name}": (repeat * elements, "extra") for name, elements in held.items()
    }
    extra = sum(elements for elements, role in tape.parameters.values() if role == "extra")
    assert extra == costcalc.parameters(arch).extra == repeat * (507 + own * 494)


def test_modules_multiply_and_keep_nothing_in_the_pass_itself():
    request = Request()
    _, tape = run(model(repeat=2), request=request)
    assert not [path for path in (*tape.products, *tape.of, *tape.cached, *request.arrays) if "multi_token" in path]


def test_a_pass_that_goes_on_holds_the_weights_and_runs_nothing():
    arch, request = model(repeat=2, own_tables=True), Request()
    _, start = run(arch, request=request)
    _, on = run(arch, TOKENS[:, :1], request=request)
    assert (on.ahead, on.parameters) == ([], start.parameters)


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_text_that_is_too_short_gives_no_rows(tokens):
    _, tape = run(model(repeat=2), TOKENS[:, :tokens])
    assert [ahead.shape for ahead in tape.ahead] == [(3, max(tokens - 1, 0), 13), (3, 0, 13)]
    assert tape.parameters == run(model(repeat=2))[1].parameters


@pytest.mark.parametrize("latent", ["expanded", "absorbed"])
def test_a_whole_layer_is_run(latent):
    """Latent attention and experts with a correction, which is extra too; earlier tokens see nothing of later ones."""
    attention = {"kind": "latent", "heads": 3, "kv_rank": 7, "nope_dim": 5, "rope_dim": 2, "v_dim": 3}
    experts = {"kind": "mixture", "experts": 8, "experts_per_token": 3, "expert": {"kind": "gated", "d_ff": 5}}
    layer = {
        "attention": attention,
        "feed_forward": {**experts, "router": {"correction": "buffer"}},
        "positions": "rope",
    }
    fields = costcalc.load({**HOLLOW, "layers": [layer], "multi_token": {"repeat": 2, "layer": layer}}).model_dump()
    arena, changed = Arena(4096, deviation=0.3), TOKENS.copy()
    changed[:, -1] = (changed[:, -1] + 1) % 19
    tapes = [Tape(arena), Tape(arena)]
    for tape, tokens in zip(tapes, (TOKENS, changed), strict=True):
        forward(fields, tokens, tape=tape, latent=latent)
    assert tapes[0].parameters["multi_token.layer.feed_forward.router_correction"] == (16, "extra")
    assert tapes[0].parameters["multi_token.layer.feed_forward.experts.up"] == (2 * 8 * 13 * 5, "extra")
    for k, (one, other) in enumerate(zip(tapes[0].ahead, tapes[1].ahead, strict=True), 1):
        assert one.shape == (3, 7 - k, 13)
        np.testing.assert_allclose(one[:, :-1], other[:, :-1], rtol=1e-4, atol=1e-5)
        assert (np.abs(one[:, -1] - other[:, -1]).max(axis=-1) > 1e-3).all()  # it ends in the embedding of the last
