"""Latent attention in both forms, pass by pass, against one loop over all queries and keys."""

import math

import numpy as np
import pytest

import costcalc
from costcalc.architecture.attention import Latent
from costcalc.reference import Arena, Request, Scope, Tape, forward, rms_norm, rope
from costcalc.reference.latent import latent
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Product

# B=2, T=11, D=13, N=3, R_q=17, R=7, nope=5, rope=4, v=19
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 11, 13)).astype(np.float32)
SIZES = {
    "q": (13, 27),
    "q_down": (13, 17),
    "q_up": (17, 27),
    "kv_down": (13, 11),
    "k_up": (7, 15),
    "v_up": (7, 57),
    "output": (57, 13),
}
GIVEN = {
    **{name: RNG.normal(size=shape) / math.sqrt(shape[0]) for name, shape in SIZES.items()},
    **{f"{name}_bias": RNG.normal(size=SIZES[name][1]) for name in ("q_down", "kv_down", "output")},
    "q_norm": RNG.normal(size=17),
    "kv_norm": RNG.normal(size=7),
}
ROPE = {"kind": "rope", "theta": 7.0, "rotary_dim": None, "frequencies": "rotated"}
FORMS = ("expanded", "absorbed", None)


def fields(**changes):
    """As they are dumped, with what they leave out."""
    sizes = {"heads": 3, "q_rank": 17, "kv_rank": 7, "nope_dim": 5, "rope_dim": 4, "v_dim": 19}
    return Latent(**{**sizes, "norm": {"kind": "rmsnorm", "eps": 0.3}, **changes}).model_dump()


def attended(some, turns=True):
    """The whole text at once, in float64: loops over sequences, heads and queries, keys and values of every token."""

    def turn(rows):
        return rope(rows, np.arange(11), theta=7.0) if turns else rows

    out = np.zeros((2, 11, 13))
    scale = some["scale"] or 1 / 3  # 1 / √(5 + 4)
    for b, text in enumerate(X.astype(float)):
        if some["q_rank"] is None:
            q = text @ GIVEN["q"]
        else:
            q = text @ GIVEN["q_down"] + some["bias"] * GIVEN["q_down_bias"]
            q = rms_norm(q, eps=0.3) * GIVEN["q_norm"] @ GIVEN["q_up"]
        down = text @ GIVEN["kv_down"] + some["bias"] * GIVEN["kv_down_bias"]
        small, shared = rms_norm(down[:, :7], eps=0.3) * GIVEN["kv_norm"], turn(down[:, 7:])
        for t in range(11):
            joined = []
            for n in range(3):
                head = q[:, 9 * n : 9 * n + 9]
                keys, values = (
                    small @ GIVEN["k_up"][:, 5 * n : 5 * n + 5],
                    small @ GIVEN["v_up"][:, 19 * n : 19 * n + 19],
                )
                plain, turned = head[t, :5], turn(head[:, 5:])[t]
                scores = [scale * (sum(plain * keys[s]) + sum(turned * shared[s])) for s in range(t + 1)]
                if some["softcap"]:
                    scores = [some["softcap"] * math.tanh(score / some["softcap"]) for score in scores]
                weights = np.exp(scores) / sum(np.exp(scores))
                joined.extend(sum(w * value for w, value in zip(weights, values[: t + 1], strict=True)))
            out[b, t] = joined @ GIVEN["output"] + some["out_bias"] * GIVEN["output_bias"]
    return out


def passed(here, some, parts=(11,), *, form=None, positions=ROPE):
    """The outputs of all tokens, given in parts to one request."""
    request, out = Request(), []
    for part in np.split(X, np.cumsum(parts)[:-1], axis=1):
        here.tape.parameters.clear()
        sight = Sight(request.past, True, request, latent=form)
        out.append(latent(some, part, here, positions=positions, sight=sight))
        request.past += part.shape[1]
    return np.concatenate(out, axis=1), request


CHANGES = [
    {},
    {"q_rank": None},
    {"bias": True},
    {"bias": True, "q_rank": None},
    {"out_bias": True},
    {"scale": 0.7},
    {"softcap": 0.4},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize("changes", CHANGES)
def test_attention_is_the_loop_over_all_tokens(place, changes, parts, form):
    some = fields(**changes)
    y, _ = passed(place(GIVEN), some, parts, form=form)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, attended(some), rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("form", FORMS)
def test_without_positions_nothing_turns(place, form):
    y, _ = passed(place(GIVEN), fields(), form=form, positions={"kind": "none"})
    np.testing.assert_allclose(y, attended(fields(), turns=False), rtol=1e-4, atol=5e-5)


def test_what_positions_add_to_scores_is_added_in_both_forms(place):
    """Of numbers that fall by 97 a step all weight is the own token's: its value comes back from either side."""
    small = (X.astype(float) @ GIVEN["kv_down"])[..., :7]
    values = rms_norm(small, eps=0.3) * GIVEN["kv_norm"] @ GIVEN["v_up"]
    for form in ("expanded", "absorbed"):
        sight = Sight(request=Request(), latent=form)
        y = latent(fields(), X, place(GIVEN), positions=ROPE, sight=sight, added=nearest)
        np.testing.assert_allclose(y, values @ GIVEN["output"], rtol=1e-4, atol=5e-5)


def nearest(distances):
    return np.broadcast_to(np.float32(97) * distances, (3, len(distances))).astype(np.float32)


@pytest.mark.parametrize("held", [7 * 15, 7 * 57, 7 * 19, 7 * 11, 64])
def test_both_forms_are_the_same_even_with_matrices_that_are_held_in_part(held):
    """Columns that repeat are those of other heads then."""
    arena = Arena(held, deviation=0.4)
    one, other = (passed(Scope(Tape(arena), "here"), fields(), form=form)[0] for form in ("expanded", "absorbed"))
    assert np.abs(one).max() > 0.1
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_expanded_attention_records(place):
    """Keys and values are made of all latents that are seen: of two texts 11 rows each in the step after ten."""
    here = place(GIVEN)
    passed(here, fields(), (10, 1), form="expanded")
    assert {name: here.tape.products[f"here.{name}"] for name in ("k_up", "v_up", "q_up", "output")} == {
        "k_up": [Product(1, 20, 7, 15), Product(1, 22, 7, 15)],
        "v_up": [Product(1, 20, 7, 57), Product(1, 22, 7, 57)],
        "q_up": [Product(1, 20, 17, 27), Product(1, 2, 17, 27)],
        "output": [Product(1, 20, 57, 13), Product(1, 2, 57, 13)],
    }
    assert here.tape.products["here.scores"] == [Product(6, 1, 9, seen) for seen in range(1, 12)]  # nope + rope = 9
    assert here.tape.products["here.values"] == [Product(6, 1, seen, 19) for seen in range(1, 12)]


def test_what_absorbed_attention_records(place):
    """The same matrices times new queries and mixed latents: of three heads two rows each in the step after ten."""
    here = place(GIVEN)
    passed(here, fields(), (10, 1), form="absorbed")
    assert here.tape.products["here.k_up"] == [Product(3, 20, 5, 7), Product(3, 2, 5, 7)]
    assert here.tape.products["here.v_up"] == [Product(3, 20, 7, 19), Product(3, 2, 7, 19)]
    assert here.tape.products["here.scores"] == [Product(2, 3, 11, seen) for seen in range(1, 12)]  # R + rope = 11
    assert here.tape.products["here.values"] == [Product(2, 3, seen, 7) for seen in range(1, 12)]
    assert here.tape.of["here.k_up"] == "here.k_up"
    assert here.tape.of["here.v_up"] == "here.v_up"


def test_the_form_follows_from_what_came_before_unless_it_is_said(place):
    for start, form in ((0, "expanded"), (1, "absorbed"), (97, "absorbed")):
        here, said = place(GIVEN), place(GIVEN)
        for at, latent_form in ((here, None), (said, form)):
            sight = Sight(start, True, Request(past=start), latent=latent_form)
            latent(fields(), X, at, positions=ROPE, sight=sight)
        assert here.tape.products == said.tape.products


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("q_rank", "queries"), [(None, {"q": 351}), (17, {"q_down": 221, "q_norm": 17, "q_up": 459})])
def test_the_parameters(place, q_rank, queries, form):
    here = place(GIVEN)
    passed(here, fields(q_rank=q_rank, bias=True, out_bias=True), form=form)
    biases = {"q_down_bias": 17} if q_rank else {}  # queries that are made of the input have none
    assert here.tape.parameters == {
        f"here.{name}": (elements, "trainable")
        for name, elements in {
            **queries,
            **biases,
            "kv_down": 143,  # 13·(7 + 4)
            "kv_down_bias": 11,
            "kv_norm": 7,
            "k_up": 105,  # 7·3·5
            "v_up": 399,  # 7·3·19
            "output": 741,
            "output_bias": 13,
        }.items()
    }


@pytest.mark.parametrize("form", FORMS)
def test_one_latent_a_token_is_kept_normed_and_turned(place, form):
    _, request = passed(place(GIVEN), fields(), (7, 1, 1, 2), form=form)
    ((path, held),) = request.arrays.items()
    assert (path, held.shape) == ("here.latent_cache", (2, 11, 11))
    down = X @ GIVEN["kv_down"].astype(np.float32)
    np.testing.assert_allclose(held[..., :7], rms_norm(down[..., :7], eps=0.3) * GIVEN["kv_norm"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(held[..., 7:], rope(down[..., 7:], np.arange(11), theta=7.0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_in_an_encoder_all_are_seen_and_nothing_is_kept(place, form):
    here = place(GIVEN)
    latent(fields(), X, here, positions=ROPE, sight=Sight(causal=False, latent=form))
    assert {product.columns for product in here.tape.products["here.scores"]} == {11}


def test_a_token_of_deepseek_v3_by_hand():
    """128 heads of 128 + 64, values of 128, a latent of 512 + 64: a layer keeps 576 numbers of a token.

    In bf16 61 layers keep 70,272 bytes (arXiv 2505.09343, table 1), where keys and values of all heads would be 71
    times as many.
    """
    width, some = 7168, {"heads": 128, "q_rank": 1536, "kv_rank": 512, "nope_dim": 128, "rope_dim": 64, "v_dim": 128}
    here = Scope(Tape(Arena(128 * 128 * width // 4, deviation=0.01)), "here")
    request = Request()
    x = np.random.default_rng(0).normal(size=(1, 1, width)).astype(np.float32)
    latent(fields(**some), x, here, positions=ROPE, sight=Sight(request=request))
    (held,) = request.arrays.values()
    assert held.size * 61 * 2 == 70_272
    assert 128 * (128 + 64 + 128) / held.size == pytest.approx(71, abs=0.2)
    # 7,168·1,536 + 1,536 + 1,536·128·192 + 7,168·576 + 512 + 512·128·256 + 128·128·7,168: 187,107,328 a layer.
    assert sum(elements for elements, _ in here.tape.parameters.values()) == 187_107_328


# A whole model of such layers: V=19, three layers, the middle one without positions.
MODEL = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "positions": "rope",
    "layers": [
        {
            "pattern": [
                {"attention": {**fields(), "norm": "rmsnorm"}, "feed_forward": {"d_ff": 37}, "positions": positions}
                for positions in ("rope", "none", "rope")
            ]
        }
    ],
}
TEXT = np.random.default_rng(1).integers(0, 19, (2, 11))


def logits(form, parts):
    """Of all tokens, given in parts to one request."""
    arch, request, out = costcalc.load(MODEL).model_dump(), Request(), []
    for part in np.split(TEXT, np.cumsum(parts)[:-1], axis=1):
        tape = Tape(Arena(4096, deviation=13**-0.5))
        out.append(forward(arch, part, tape=tape, request=request, latent=form))
    return np.concatenate(out, axis=1)


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
def test_absorbed_logits_are_expanded_ones_in_prefill_and_steps(parts):
    whole = logits("expanded", (11,))
    assert np.abs(whole).max() > 0.1
    for form in FORMS:
        np.testing.assert_allclose(logits(form, parts), whole, rtol=1e-4, atol=1e-5 * np.abs(whole).max())


def test_another_form_is_refused():
    with pytest.raises(ValueError, match=r"^latent attention is .expanded. or .absorbed., not .folded.$"):
        logits("folded", (11,))


@pytest.mark.parametrize("parts", [(11,), (7, 1, 1, 2), (1,) * 11])
@pytest.mark.parametrize("form", FORMS)
def test_a_window_hides_what_is_further_back(place, form, parts):
    """One that holds all is none; of one key all weight is the own token's, whose value comes back."""
    given = {**GIVEN, "rope_norm": np.ones(4)}
    whole, _ = passed(place(given), fields(), parts, form=form)
    wide, _ = passed(place(given), fields(window=11), parts, form=form)
    np.testing.assert_allclose(whole, wide, rtol=1e-5, atol=1e-6)
    small = (X.astype(float) @ GIVEN["kv_down"])[..., :7]
    values = rms_norm(small, eps=0.3) * GIVEN["kv_norm"] @ GIVEN["v_up"]
    own, request = passed(place(given), fields(window=1, rope_norm=True), parts, form=form)
    np.testing.assert_allclose(own, values @ GIVEN["output"], rtol=1e-4, atol=5e-5)
    assert [array.shape for array in request.arrays.values()] == [(2, 1, 11)]
