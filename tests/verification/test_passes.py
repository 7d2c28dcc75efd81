"""The three passes: their texts, what is told while they run, and how decoding is judged."""

import numpy as np
import pytest

import costcalc
from costcalc import Workload
from costcalc.reference import Request, Tape, forward
from costcalc.verification import verify
from costcalc.verification.limits import arena_for
from costcalc.verification.passes import Passes, run_passes, texts
from costcalc.verification.properties import distance


@pytest.mark.parametrize("vocab_size", [2, 3, 19])
def test_the_changed_token_is_a_neighbour(small, monkeypatch, vocab_size):
    seen = []

    def pass_(fields, tokens, **more):
        seen.append(tokens.copy())
        return forward(fields, tokens, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)
    verify(small(vocab_size=vocab_size))
    text, changed, step = seen
    assert (text[:, :-1] == changed[:, :-1]).all()
    assert abs(text[0, -1] - changed[0, -1]) == 1
    assert changed.min() >= 0
    assert changed.max() < vocab_size
    assert step == text[:, -1:]


DEEP = {
    "vocab_size": 19,
    "d_model": 64,
    "norm": {"kind": "layernorm", "weight": False, "bias": False},
    "positions": {"kind": "rope", "theta": 100.0},
    "tie_embeddings": True,
    "layers": [
        {
            "repeat": 150,
            "norms": "post",
            "attention": {"heads": 1, "bias": True},
            "feed_forward": {"kind": "gated", "d_ff": 128, "activation": "relu_squared"},
        }
    ],
}


def test_a_deep_model_that_blows_rounding_up_is_judged_layer_by_layer():
    """Left alone, the rounding of the first layers grows to more than the bound of 1e-4: the steps still agree."""
    model = costcalc.load(DEEP)
    fields, arena, (text, _) = model.model_dump(), arena_for(model), texts(11, 19)
    request = Request()
    full = forward(fields, text, tape=Tape(arena))
    for part in (text[:, :-1], text[:, -1:]):
        step = forward(fields, part, tape=Tape(arena), request=request)
    assert distance(step, full[:, -1:], scale=full) > 1e-2
    passes = run_passes(fields, arena, Workload(new_tokens=11), None)
    assert len(passes.errors) == 150 + 1
    assert max(passes.errors) < 1e-5
    assert verify(model).agrees


def test_progress_is_told_layer_by_layer(small):
    told = []
    verify(small(), on_progress=lambda *words: told.append(words))
    labels = ["prefill", "prefill, last token changed", "decode"]
    assert told == [(label, done, 3) for label in labels for done in (1, 2, 3)]


@pytest.mark.parametrize("name", ["full", "other", "step"])
def test_one_number_that_is_none_is_enough(name):
    logits = {other: np.zeros((1, 2, 3), np.float32) for other in ("full", "other", "step")}
    assert Passes(tapes=[], errors=[], overflowed=False, **logits).finite
    logits[name][0, 1, 1] = np.inf
    assert not Passes(tapes=[], errors=[], overflowed=False, **logits).finite


@pytest.mark.parametrize("vocab_size", range(1, 31))
@pytest.mark.parametrize("tokens", [1, 2, 11])
def test_the_texts_differ_in_the_last_word_only_by_one(tokens, vocab_size):
    text, changed = texts(tokens, vocab_size)
    assert text.shape == changed.shape == (1, tokens)
    assert (text[:, :-1] == changed[:, :-1]).all()
    assert abs(text[0, -1] - changed[0, -1]) == (vocab_size > 1)
    for words in (text, changed):
        assert words.min() >= 0
        assert words.max() < vocab_size


def test_the_first_and_the_last_word_both_have_a_neighbour(monkeypatch):
    class Last:
        def integers(self, low, high, size):
            return np.full(size, high - 1)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Last())
    assert [words[0, -1] for words in texts(3, 7)] == [6, 5]
