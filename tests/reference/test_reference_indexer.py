"""Attention over chosen keys, pass by pass, against one loop over all queries and keys."""

import math

import numpy as np
import pytest

from costcalc.architecture.attention import Latent
from costcalc.reference import Request, layer_norm, rms_norm, rope
from costcalc.reference.indexer import largest
from costcalc.reference.latent import latent
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=2, T=11, D=13, N=3, R_q=17, R=7, nope=5, rope=4, v=19; an indexer of 2 heads of 6, which choose 3 keys
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
SIZES = {
    "q_down": (13, 17),
    "q_up": (17, 27),
    "kv_down": (13, 11),
    "k_up": (7, 15),
    "v_up": (7, 57),
    "output": (57, 13),
    "indexer.q": (17, 12),
    "indexer.k": (13, 6),
    "indexer.weights": (13, 2),
}
GIVEN = {
    **{name: RNG.normal(size=shape) / math.sqrt(shape[0]) for name, shape in SIZES.items()},
    "q_norm": RNG.normal(size=17),
    "kv_norm": RNG.normal(size=7),
    "indexer.k_norm": RNG.normal(size=6),
    "indexer.k_norm_bias": RNG.normal(size=6),
}
ROPE = {"kind": "rope", "theta": 7.0, "rotary_dim": None, "frequencies": "rotated"}
PARTS = [(11,), (7, 1, 1, 2), (1,) * 11]


def fields(rotates="first", **changes):
    """As they are dumped, with what they leave out."""
    sizes = {"heads": 3, "q_rank": 17, "kv_rank": 7, "nope_dim": 5, "rope_dim": 4, "v_dim": 19, "top_k": 3}
    norms = {"norm": {"kind": "rmsnorm", "eps": 0.3}}
    indexer = {"heads": 2, "head_dim": 6, "rotates": rotates, "norm": {"kind": "layernorm", "eps": 0.2}}
    return Latent(**{**sizes, **norms, "indexer": indexer, **changes}).model_dump()


def turned(rows, first):
    """(11, H), of which four numbers are rotated."""
    return np.concatenate([rows[:, :first], rope(rows[:, first:], np.arange(11), theta=7.0, rotary_dim=4)], axis=1)


def chosen(text, small, first, top_k):
    """For each token of one text the keys that its indexer scores highest, in float64."""
    k = layer_norm(text @ GIVEN["indexer.k"], eps=0.2) * GIVEN["indexer.k_norm"] + GIVEN["indexer.k_norm_bias"]
    k, q, w = turned(k, first), small @ GIVEN["indexer.q"], text @ GIVEN["indexer.weights"]
    heads = [turned(q[:, 6 * n : 6 * n + 6], first) for n in range(2)]
    best = []
    for t in range(11):
        scores = [sum(w[t, n] * max(heads[n][t] @ k[s], 0) for n in range(2)) for s in range(t + 1)]
        best.append(sorted(sorted(range(t + 1), key=lambda s, of=scores: (-of[s], s))[:top_k]))
    return best


def attended(first=0, top_k=3):
    """The whole text at once: loops over sequences, heads and queries, and the keys that are chosen."""
    out = np.zeros((2, 11, 13))
    for b, text in enumerate(X.astype(float)):
        small_q = rms_norm(text @ GIVEN["q_down"], eps=0.3) * GIVEN["q_norm"]
        q, down = small_q @ GIVEN["q_up"], text @ GIVEN["kv_down"]
        small = rms_norm(down[:, :7], eps=0.3) * GIVEN["kv_norm"]
        shared = rope(down[:, 7:], np.arange(11), theta=7.0)
        for t, met in enumerate(chosen(text, small_q, first, top_k)):
            joined = []
            for n in range(3):
                head = q[:, 9 * n : 9 * n + 9]
                keys, values = (small @ GIVEN[name][:, w * n : w * n + w] for name, w in (("k_up", 5), ("v_up", 19)))
                mine = rope(head[:, 5:], np.arange(11), theta=7.0)[t]
                scores = np.array([(head[t, :5] @ keys[s] + mine @ shared[s]) / 3 for s in met])
                weights = np.exp(scores) / np.exp(scores).sum()
                joined.extend(sum(w * values[s] for w, s in zip(weights, met, strict=True)))
            out[b, t] = joined @ GIVEN["output"]
    return out


def passed(here, some, parts=(11,), form=None):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, latent=form)
        out.append(latent(some, part, here, positions=ROPE, sight=sight))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


@pytest.mark.parametrize("form", ["expanded", "absorbed", None])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(("rotates", "first"), [("first", 0), ("last", 2)])
def test_attention_is_the_loop_over_chosen_keys(place, rotates, first, parts, form):
    y, _ = passed(place(GIVEN), fields(rotates), parts, form)
    np.testing.assert_allclose(y, attended(first), rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("top_k", [1, 5, 11, 97])
def test_other_numbers_of_keys(place, top_k):
    y, _ = passed(place(GIVEN), fields(top_k=top_k))
    np.testing.assert_allclose(y, attended(top_k=top_k), rtol=1e-4, atol=5e-5)


def test_what_is_recorded(place):
    """All keys up to the own one are scored; heads meet at most three."""
    here = place(GIVEN)
    _, request = passed(here, fields(), (10, 1))
    assert here.tape.products["here.indexer.scores"] == [Product(2, 2, 6, seen) for seen in range(1, 12)]
    assert here.tape.products["here.indexer.values"] == [Product(2, 1, 2, seen) for seen in range(1, 12)]
    assert [product.columns for product in here.tape.products["here.scores"]] == [1, 2, *[3] * 9]
    held = {path: array.shape for path, array in request.arrays.items()}
    assert held == {"here.latent_cache": (2, 11, 11), "here.indexer.k_cache": (2, 11, 6)}


def test_a_layer_without_an_indexer_meets_what_was_chosen_before(place):
    """Of the same input, so that the choice is the same, and so is all else."""
    here, sight = place(GIVEN), Sight(request=Request())
    y = latent(fields(), X, here, positions=ROPE, sight=sight)
    assert [len(rows[0]) for rows in sight.chosen] == [1, 2, *[3] * 9]
    follows = place(GIVEN)
    again = latent(fields(indexer=None), X, follows, positions=ROPE, sight=Sight(chosen=sight.chosen))
    np.testing.assert_array_equal(y, again)
    assert not [path for path in follows.tape.parameters if "indexer" in path]
    with pytest.raises(ValueError, match="an earlier layer chose, and none did"):
        latent(fields(indexer=None), X, place(GIVEN), positions=ROPE, sight=Sight())


def test_of_equal_scores_the_first_are_taken():
    scores = np.array([[0, 2, 2, -1, 2], [0, 0, 0, 0, 0]], np.float32)
    assert largest(scores, 2).tolist() == [[1, 2], [0, 1]]
    assert largest(scores, 9).tolist() == [[0, 1, 2, 3, 4]] * 2
