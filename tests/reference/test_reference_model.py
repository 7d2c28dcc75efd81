"""A whole pass: around the layers by hand, and what must hold of any model."""

import copy
import math
import random

import numpy as np
import pytest

import costcalc
from costcalc.inventory import Workload
from costcalc.reference import Arena, Given, Request, Tape, forward, rms_norm, sinusoidal
from costcalc.reference.stack import expanded
from costcalc.verification.faults import compare

# V=19, D=13, W=7, B=3, T=11. One layer that adds nothing, since its matrices are zero: what is left stands around it.
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 19, (3, 11))
E, NARROW, HEAD = RNG.normal(size=(19, 13)), RNG.normal(size=(19, 7)), RNG.normal(size=(19, 13))
INTO, INTO_BIAS, BACK = RNG.normal(size=(7, 13)), RNG.normal(size=13), RNG.normal(size=(13, 7))
HEAD_BIAS, ROWS, GAIN = RNG.normal(size=19), RNG.normal(size=(23, 13)), RNG.normal(size=13)
HOLLOW = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": {"kind": "rmsnorm", "eps": 0.3, "weight": False},
    "final_norm": False,
    "layers": [{"feed_forward": {"d_ff": 37}}],
}


def hollow(given, *, tokens=TOKENS, request=None, logits="all", **changes):
    """Logits of the hollow model with these keys changed, and the tape."""
    fields = costcalc.load({**HOLLOW, **changes}).model_dump()
    zeros = {"up": np.zeros((13, 37)), "down": np.zeros((37, 13))}
    arrays = {f"decoder.layers.{i}.feed_forward.{name}": value for i in range(3) for name, value in zeros.items()}
    tape = Tape(Given({path: np.asarray(value, np.float32) for path, value in {**arrays, **given}.items()}))
    return forward(fields, tokens, tape=tape, request=request, logits=logits), tape


def close(got, expected):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def n(x, eps=0.3):
    return rms_norm(x, eps=eps)


@pytest.mark.parametrize(
    ("changes", "given", "logits"),
    [
        ({}, {"decoder.embedding": E, "head": HEAD}, E[TOKENS] @ HEAD.T),
        ({"tie_embeddings": True}, {"decoder.embedding": E}, E[TOKENS] @ E.T),
        ({"embedding": {"scale": 3.7}}, {"decoder.embedding": E, "head": HEAD}, 3.7 * E[TOKENS] @ HEAD.T),
        (  # the table is scaled where it is looked up, not where it is multiplied by
            {"embedding": {"scale": 3.7}, "tie_embeddings": True},
            {"decoder.embedding": E},
            3.7 * E[TOKENS] @ E.T,
        ),
        (
            {"embedding": {"width": 7}},
            {"decoder.embedding": NARROW, "decoder.embedding_projection": INTO, "head": HEAD},
            NARROW[TOKENS] @ INTO @ HEAD.T,
        ),
        (
            {"embedding": {"width": 7, "bias": True, "scale": 3.7}},
            {
                "decoder.embedding": NARROW,
                "decoder.embedding_projection": INTO,
                "decoder.embedding_projection_bias": INTO_BIAS,
                "head": HEAD,
            },
            (3.7 * NARROW[TOKENS] @ INTO + INTO_BIAS) @ HEAD.T,
        ),
        (
            {"embedding": {"width": 7}, "tie_embeddings": True},
            {"decoder.embedding": NARROW, "decoder.embedding_projection": INTO, "head.projection": BACK},
            NARROW[TOKENS] @ INTO @ BACK @ NARROW.T,
        ),
        (
            {"head": {"bias": True}},
            {"decoder.embedding": E, "head": HEAD, "head_bias": HEAD_BIAS},
            E[TOKENS] @ HEAD.T + HEAD_BIAS,
        ),
        (
            {"head": {"bias": True, "softcap": 2.0}, "tie_embeddings": True},
            {"decoder.embedding": E, "head_bias": HEAD_BIAS},
            2 * np.tanh((E[TOKENS] @ E.T + HEAD_BIAS) / 2),
        ),
        (
            {"positions": {"kind": "learned", "length": 23}, "embedding": {"scale": 3.7}},
            {"decoder.embedding": E, "head": HEAD, "decoder.positions": ROWS},
            (3.7 * E[TOKENS] + ROWS[:11]) @ HEAD.T,
        ),
        (
            {"positions": "sinusoidal"},
            {"decoder.embedding": E, "head": HEAD},
            (E[TOKENS] + sinusoidal(np.arange(11), 13)) @ HEAD.T,
        ),
        ({"final_norm": True}, {"decoder.embedding": E, "head": HEAD}, n(E[TOKENS]) @ HEAD.T),
        ({"final_norm": None}, {"decoder.embedding": E, "head": HEAD}, n(E[TOKENS]) @ HEAD.T),
        (  # the norm on top has its own gain
            {"final_norm": None, "norm": {"kind": "rmsnorm", "eps": 0.3}},
            {
                "decoder.embedding": E,
                "head": HEAD,
                "decoder.final_norm": GAIN,
                "decoder.layers.0.feed_forward_norm": 2 * GAIN,
            },
            n(E[TOKENS]) * GAIN @ HEAD.T,
        ),
    ],
)
def test_what_stands_around_the_layers(changes, given, logits):
    got, tape = hollow(given, **changes)
    close(got, logits)
    assert set(given) <= set(tape.parameters)
    assert tape.row_sum_error is None  # nothing attends


POST, PRE = ({"norms": norms, "feed_forward": {"d_ff": 37}} for norms in ("post", "pre"))


@pytest.mark.parametrize(
    ("layers", "final_norm", "norms"),
    [
        ([PRE], None, 1),
        ([PRE], False, 0),
        ([POST], None, 1),  # its own
        ([POST], True, 2),
        ([POST, PRE], None, 2),
        ([PRE, POST], None, 1),
        ([PRE, {"repeat": 2, "pattern": [POST]}], None, 2),
        ([{"pattern": [{"pattern": [POST, PRE]}]}], None, 2),
    ],
)
def test_the_last_layer_says_whether_a_norm_is_on_top(layers, final_norm, norms):
    """With a large eps a norm of a norm is another one, so their number shows."""
    x = E[TOKENS]
    for _ in range(norms):
        x = n(x)
    close(hollow({"decoder.embedding": E, "head": HEAD}, layers=layers, final_norm=final_norm)[0], x @ HEAD.T)


def test_the_norm_on_top_is_the_stack_s_own():
    layer = {**POST, "norm": {"kind": "rmsnorm", "eps": 0.7, "weight": False}}
    got, _ = hollow({"decoder.embedding": E, "head": HEAD}, layers=[layer], final_norm=True)
    close(got, n(n(E[TOKENS], eps=0.7)) @ HEAD.T)


def test_positions_go_on_where_the_request_ended():
    given = {"decoder.embedding": E, "head": HEAD, "decoder.positions": ROWS}
    some = {"positions": {"kind": "learned", "length": 23}}
    request = Request(past=7)
    got, _ = hollow(given, request=request, **some)
    close(got, (E[TOKENS] + ROWS[7:18]) @ HEAD.T)
    assert request.past == 18
    with pytest.raises(IndexError, match=r"decoder\.positions has 23 rows, row 23 was asked for"):
        hollow(given, request=request, **some)


def test_without_a_request_each_pass_is_a_first_one():
    given = {"decoder.embedding": E, "head": HEAD, "decoder.positions": ROWS}
    first, again = (hollow(given, positions={"kind": "learned", "length": 23})[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("token", [19, -1])
def test_a_token_that_is_not_in_the_vocabulary_is_refused(token):
    tokens = TOKENS.copy()
    tokens[1, 5] = token
    with pytest.raises(IndexError, match=r"decoder\.embedding has 19 rows"):
        hollow({"decoder.embedding": E, "head": HEAD}, tokens=tokens)


def test_layers_are_written_out_in_order():
    a, b, c, d = ({"repeat": repeat, "name": name} for repeat, name in ((1, "a"), (2, "b"), (3, "c"), (1, "d")))
    inner = {"repeat": 2, "pattern": (b, a)}
    entries = ({"repeat": 2, "pattern": (a, inner, d)}, c)
    assert "".join(layer["name"] for layer in expanded(entries)) == "abbabbad" * 2 + "ccc"


def test_each_layer_is_told():
    told = []
    fields = costcalc.load(random_model(0)).model_dump()
    plain = forward(fields, TEXT, tape=Tape(ARENA))

    def on_layer(done, layers, x):
        told.append((done, layers))
        assert x.shape == (3, 5, 13)
        return x if done < layers else 0 * x

    assert np.any(forward(fields, TEXT, tape=Tape(ARENA), on_layer=on_layer) != plain)  # what it gives goes on
    assert told == [(done, len(told)) for done in range(1, len(told) + 1)]
    assert len(told) == costcalc.load(random_model(0)).decoder.depth


# What must hold of any model: some at random. B=3, T=5.
TEXT = RNG.integers(0, 19, (3, 5))
ARENA = Arena(2003, deviation=13**-0.5)
SEEDS = range(7)


def random_layer(choose):
    norm = choose([{"kind": "rmsnorm"}, {"kind": "layernorm"}, {"kind": "layernorm", "bias": False}])
    heads = {
        "heads": 6,
        "kv_heads": choose([1, 2, 3, 6]),
        "head_dim": choose([4, 5]),
        "bias": choose([True, False]),
        "out_bias": choose([True, False]),
        "qk_norm": choose([None, {"kind": "per_head"}, {"kind": "projection", "norm": norm}]),
        "window": choose([None, 1, 2, 3, 4, 5, 11]),
        "scale": choose([None, 0.3]),
        "softcap": choose([None, 2.0]),
    }
    feed_forward = {
        "kind": choose(["dense", "gated"]),
        "d_ff": choose([37, 41]),
        "activation": choose(["silu", "gelu", "relu_squared", "tanh"]),
        "bias": choose([True, False]),
    }
    both = {
        "attention": {key: value for key, value in heads.items() if value is not None},
        "feed_forward": feed_forward,
    }
    shape = choose([*[{"norms": norms} for norms in ("pre", "post", "output", "sandwich")], {"parallel": "one_norm"}])
    return {"repeat": choose([1, 2]), "norm": norm, **shape, **both}


def random_model(seed):
    """The written form of a decoder of two to six layers, the first of which attends."""
    choose = random.Random(seed).choice
    positions = [
        "none",
        "sinusoidal",
        {"kind": "learned", "length": 17},
        {"kind": "rope", "theta": 100.0},
        {"kind": "rope", "rotary_dim": 2},
    ]
    return {
        "vocab_size": 19,
        "d_model": 13,
        "norm": choose(["rmsnorm", "layernorm"]),
        "positions": choose(positions),
        "tie_embeddings": choose([True, False]),
        "embedding": choose([{}, {"width": 7}, {"scale": 2.0}]),
        "head": {"bias": choose([True, False])},
        "layers": [random_layer(choose), {"repeat": choose([1, 2]), "pattern": [random_layer(choose)]}],
    }


@pytest.fixture(params=SEEDS)
def model(request):
    return costcalc.load(random_model(request.param))


def passed(fields, *parts, request=None):
    """The logits of all parts, given one after the other, and the tape of each pass."""
    request, tapes, logits = Request() if request is None else request, [], []
    for part in parts:
        tapes.append(Tape(ARENA))
        logits.append(forward(fields, part, tape=tapes[-1], request=request))
    return np.concatenate(logits, axis=1), tapes


def apart(some, others):
    return float(np.abs(some - others).max() / np.abs(others).max())


def with_windows(value, window):
    """A copy of nested fields with every window replaced."""
    if isinstance(value, dict):
        return {key: window if key == "window" else with_windows(inner, window) for key, inner in value.items()}
    return [with_windows(inner, window) for inner in value] if isinstance(value, list | tuple) else copy.copy(value)


def total(tapes):
    """FLOPs by path, of all passes."""
    return {path: sum(tape.flops()[path] for tape in tapes) for path in tapes[0].products}


def test_what_is_recorded_is_what_is_stated(model):
    _, tapes = passed(model.model_dump(), TEXT[:, :4], TEXT[:, 4:])
    prefill, decode = Workload(batch=3, new_tokens=4), Workload(batch=3, new_tokens=1, past_tokens=4)
    assert compare(model.inventory, prefill, tapes[0], phase="prefill")[1] == []
    assert compare(model.inventory, decode, tapes[1], phase="decode")[1] == []


def test_a_later_token_changes_no_earlier_logit_at_all(model):
    fields = model.model_dump()
    full, _ = passed(fields, TEXT)
    for t in range(1, 5):
        changed = TEXT.copy()
        changed[:, t] = (changed[:, t] + 1) % 19
        moved = np.abs(passed(fields, changed)[0] - full).max(axis=(0, 2))
        assert (moved[:t] == 0).all()
        assert moved[t] > 1e-3


def test_cached_decoding_is_the_full_pass_wherever_it_is_split(model):
    fields = model.model_dump()
    full, _ = passed(fields, TEXT)
    for t in range(1, 5):
        assert apart(passed(fields, TEXT[:, :t], TEXT[:, t:])[0], full) < 1e-5
    assert apart(passed(fields, *np.split(TEXT, 5, axis=1))[0], full) < 1e-5


def test_tokens_that_were_only_tried_leave_nothing_behind(model):
    fields = model.model_dump()
    full, _ = passed(fields, TEXT)
    for kept in range(1, 3):
        request = Request()
        passed(fields, TEXT[:, :2], request=request)
        tried = TEXT[:, 2:].copy()
        tried[:, kept:] = (tried[:, kept:] + 1) % 19
        request.kept = kept
        passed(fields, tried, request=request)
        assert request.past == 2 + kept
        request.kept = None
        assert apart(passed(fields, TEXT[:, 2 + kept :], request=request)[0], full[:, 2 + kept :]) < 1e-5


def test_a_window_as_long_as_the_text_is_none(model):
    fields = model.model_dump()
    full, (tape,) = passed(with_windows(fields, None), TEXT)
    for window in (5, 6, 1009):
        logits, (windowed,) = passed(with_windows(fields, window), TEXT)
        np.testing.assert_array_equal(logits, full)
        assert windowed.flops() == tape.flops()
        assert windowed.cached == tape.cached
    logits, (windowed,) = passed(with_windows(fields, 4), TEXT)
    np.testing.assert_array_equal(logits[:, :4], full[:, :4])
    assert (logits[:, 4] != full[:, 4]).any()
    assert sum(windowed.flops().values()) < sum(tape.flops().values())


def test_rows_of_attention_sum_to_one(model):
    _, (tape,) = passed(model.model_dump(), TEXT)
    assert tape.row_sum_error < 1e-6


def test_twice_the_batch_is_twice_the_work(model):
    once, (tape,) = passed(model.model_dump(), TEXT)
    twice, (doubled,) = passed(model.model_dump(), np.concatenate([TEXT, TEXT[::-1]]))
    assert doubled.flops() == {path: 2 * flops for path, flops in tape.flops().items()}
    assert doubled.cached == {path: 2 * elements for path, elements in tape.cached.items()}
    assert doubled.parameters == tape.parameters
    # No sequence sees another.
    assert apart(twice, np.concatenate([once, once[::-1]])) < 1e-5


def test_prefill_is_the_sum_of_decode_steps(model):
    _, prefill = passed(model.model_dump(), TEXT)
    _, steps = passed(model.model_dump(), *np.split(TEXT, 5, axis=1))
    assert total(steps) == total(prefill)
    assert steps[-1].cached == prefill[0].cached
    assert steps[-1].parameters == prefill[0].parameters


def test_the_last_token_s_logits_alone(model):
    full, (tape,) = passed(model.model_dump(), TEXT)
    last = Tape(ARENA)
    logits = forward(model.model_dump(), TEXT, tape=last, logits="last")
    assert logits.shape == (3, 1, 19)
    assert apart(logits, full[:, -1:]) < 1e-5
    # The head, and the projection before a factorised one, for 3 rows of 15; everything else as it was.
    assert last.flops() == {path: flops // (5 if "head" in path else 1) for path, flops in tape.flops().items()}
    assert last.parameters == tape.parameters


def test_a_random_model_attends_and_stays_in_range():
    """Otherwise the tests above would show little."""
    for seed in SEEDS:
        logits, (tape,) = passed(costcalc.load(random_model(seed)).model_dump(), TEXT)
        assert any(path.endswith("scores") for path in tape.products)
        assert 0.1 < float(logits.std()) < 100
        assert math.isfinite(float(logits.sum()))


def test_another_word_for_the_logits_is_refused():
    with pytest.raises(ValueError, match="logits"):
        forward(costcalc.load(HOLLOW).model_dump(), TOKENS, tape=Tape(ARENA), logits="first")


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        (costcalc.load("gpt2"), [[1, 2]]),
        (costcalc.load("gpt2").model_dump(), [1, 2]),
        (costcalc.load("gpt2").model_dump(), [[1.0, 2.0]]),
    ],
)
def test_what_is_no_model_or_no_text_is_said(fields, tokens):
    with pytest.raises(TypeError, match=r"model\.model_dump\(\), and whole numbers \(B, T\) are needed, not "):
        forward(fields, np.array(tokens), tape=Tape(Arena(7, deviation=1.0)))


class Kept:
    """Random arrays, made when they are first asked for, and kept by path."""

    def __init__(self):
        self.arrays = {}
        self.rng = np.random.default_rng(5)

    def array(self, path, shape):
        made = self.rng.normal(0, 0.3, shape).astype(np.float32)
        return self.arrays.setdefault(path, made)

    def gain(self, path, width):
        return self.array(path, (width,))

    def matrix(self, path, inputs, outputs):
        return self.array(path, (inputs, outputs))

    table = matrix


def plain(arrays, tokens, *, heads, kv_heads, head_dim, layers):
    """The logits of one text, in float64 with a loop for every layer, head, query and key."""
    w = {path: array.astype(float) for path, array in arrays.items()}
    table = w["decoder.embedding"]
    x = [table[token] for token in tokens]
    for index in range(layers):
        at = f"decoder.layers.{index}"
        normed = [rms_norm(row, eps=1e-6) * w[f"{at}.attention_norm"] for row in x]
        mixed = [np.zeros(heads * head_dim) for _ in x]
        for n in range(heads):
            of_query = slice(n * head_dim, (n + 1) * head_dim)
            shared = n // (heads // kv_heads)
            of_key = slice(shared * head_dim, (shared + 1) * head_dim)
            q = [row @ w[f"{at}.attention.q"][:, of_query] for row in normed]
            k = [row @ w[f"{at}.attention.k"][:, of_key] for row in normed]
            v = [row @ w[f"{at}.attention.v"][:, of_key] for row in normed]
            for t in range(len(x)):
                e = [math.exp(q[t] @ k[s] / math.sqrt(head_dim)) for s in range(t + 1)]
                mixed[t][of_query] = sum(share / sum(e) * v[s] for s, share in enumerate(e))
        x = [row + m @ w[f"{at}.attention.output"] for row, m in zip(x, mixed, strict=True)]
        for t, row in enumerate(x):
            y = rms_norm(row, eps=1e-6) * w[f"{at}.feed_forward_norm"]
            gate, up = y @ w[f"{at}.feed_forward.gate"], y @ w[f"{at}.feed_forward.up"]
            x[t] = row + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}.feed_forward.down"]
    return np.array([rms_norm(row, eps=1e-6) * w["decoder.final_norm"] @ w["head"].T for row in x])


@pytest.mark.parametrize(("heads", "kv_heads"), [(17, 17), (22, 11), (36, 12)])
def test_many_heads_and_layers_and_words_against_plain_loops(heads, kv_heads):
    """Sizes beyond which nothing else here goes: a loop that stopped early, or an index that wrapped, would show."""
    model = costcalc.load(
        {
            "vocab_size": 307,
            "d_model": 13,
            "norm": "rmsnorm",
            "layers": [
                {
                    "repeat": 7,
                    "attention": {"heads": heads, "kv_heads": kv_heads, "head_dim": 3},
                    "feed_forward": {"kind": "gated", "d_ff": 41},
                }
            ],
        }
    )
    weights, tokens = Kept(), np.random.default_rng(0).integers(0, 307, (2, 23))
    logits = forward(model.model_dump(), tokens, tape=Tape(weights))
    expected = [plain(weights.arrays, t, heads=heads, kv_heads=kv_heads, head_dim=3, layers=7) for t in tokens]
    assert logits == pytest.approx(np.array(expected), abs=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_pass_that_is_stopped_leaves_the_request_as_it_was(stop, error):
    model = costcalc.load(
        {
            "vocab_size": 19,
            "d_model": 13,
            "norm": "rmsnorm",
            "positions": "rope",
            "layers": [{"repeat": 3, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}}],
        }
    )
    fields, arena = model.model_dump(), Arena(13 * 30, deviation=0.3)
    tokens = np.arange(11)[None]
    request, undisturbed = Request(), Request()
    for one in (request, undisturbed):
        forward(fields, tokens[:, :7], tape=Tape(arena), request=one)

    def interrupt(done, layers, x):
        if done == stop:
            raise error
        return x

    with pytest.raises(error):
        forward(fields, tokens[:, 7:], tape=Tape(arena), request=request, on_layer=interrupt)
    assert request.past == 7
    logits = [forward(fields, tokens[:, 7:], tape=Tape(arena), request=one) for one in (request, undisturbed)]
    assert (logits[0] == logits[1]).all()


def test_a_request_that_failed_may_be_tried_again():
    model = costcalc.load("gpt2")
    request = Request(kept=1)
    with pytest.raises(IndexError):
        forward(model.model_dump(), np.array([[1, 50_257]]), tape=Tape(Arena(768, deviation=1.0)), request=request)
    assert (request.past, request.kept, request.arrays) == (0, 1, {})


@pytest.mark.parametrize("counts", [{"past": -1}, {"past": 1.5}, {"kept": 1.5}, {"kept": -1}, {"kept": 3}])
def test_a_request_that_cannot_be_is_refused(counts):
    fields = costcalc.load("gpt2").model_dump()
    with pytest.raises(ValueError, match=r"of 2 tokens cannot be kept, .* before them"):
        forward(fields, np.array([[1, 2]]), tape=Tape(Arena(7, deviation=1.0)), request=Request(**counts))
