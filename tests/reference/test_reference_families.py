"""Encoders, pairs of stacks and decoders that ask: what they are given, what they keep, what sees what."""

import numpy as np
import pytest

import costcalc
from costcalc.reference import Arena, Given, NoReferenceError, Request, Tape, forward, layer_norm, rms_norm, sinusoidal
from costcalc.reference.head import HEADS
from costcalc.reference.sight import Sight

# V=19, D=13, N=6, K=2, H=5, F=37; B=3 texts of T=11 tokens and sources of M=7
RNG = np.random.default_rng(0)
TEXT, SOURCE = RNG.integers(0, 19, (3, 11)), RNG.integers(0, 19, (3, 7))
MEMORY = RNG.normal(size=(3, 7, 13)).astype(np.float32)
ARENA = Arena(4096, deviation=13**-0.5)
SELF, ASKED = {"heads": 6, "kv_heads": 2, "head_dim": 5}, {"heads": 3, "head_dim": 7}
BELOW = {"repeat": 2, "attention": SELF, "feed_forward": {"d_ff": 37}}
ABOVE = {**BELOW, "repeat": 3, "cross_attention": ASKED}
TOP = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}


def fields(*, encoder=None, decoder=None, **top):
    stacks = {name: {"layers": [layer]} for name, layer in (("encoder", encoder), ("decoder", decoder)) if layer}
    return costcalc.load({**TOP, **stacks, **top}).model_dump()


ENCODER, PAIR, ASKS, DECODER = (
    fields(encoder=BELOW, positions="rope"),
    fields(encoder=BELOW, decoder=ABOVE, positions="relative"),
    fields(decoder=ABOVE, positions="alibi"),
    fields(decoder=BELOW, positions="rope"),
)


def run(model, tokens=TEXT, request=None, **given):
    """The result and the tape."""
    tape = Tape(ARENA)
    return forward(model, tokens, tape=tape, request=request, **given), tape


def apart(some, others):
    return float(np.abs(some - others).max() / np.abs(others).max())


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (PAIR, {}, ValueError, r"an encoder-decoder needs a source, \(B, M\), in the pass that starts a request"),
        (PAIR, {"source": SOURCE[:2]}, ValueError, r"a source has tokens for each of 3 texts, not \(2, 7\)"),
        (PAIR, {"source": SOURCE[:, :0]}, ValueError, r"a source has tokens for each of 3 texts, not \(3, 0\)"),
        (PAIR, {"source": SOURCE[0]}, TypeError, r"a source is whole numbers \(B, M\), not int64 \(7,\)"),
        (PAIR, {"source": SOURCE * 1.0}, TypeError, r"a source is whole numbers \(B, M\), not float64 \(3, 7\)"),
        (PAIR, {"source": SOURCE, "memory": MEMORY}, ValueError, "a memory is for a decoder alone that has cross-att"),
        (DECODER, {"source": SOURCE}, ValueError, "a source is for an encoder-decoder"),
        (ASKS, {"source": SOURCE}, ValueError, "a source is for an encoder-decoder"),
        (ENCODER, {"source": SOURCE}, ValueError, "a source is for an encoder-decoder"),
        (ENCODER, {"memory": MEMORY}, ValueError, "a memory is for a decoder alone that has cross-attention"),
        (DECODER, {"memory": MEMORY}, ValueError, "a memory is for a decoder alone that has cross-attention"),
        (ASKS, {"memory": MEMORY[:2]}, ValueError, r"a memory has tokens for each of 3 texts, not \(2, 7, 13\)"),
        (ASKS, {"memory": MEMORY[..., :5]}, TypeError, r"a memory is numbers \(B, M, 13\), not float32 \(3, 7, 5\)"),
        (ASKS, {"memory": SOURCE}, TypeError, r"a memory is numbers \(B, M, 13\), not int64 \(3, 7\)"),
        (DECODER, {"token_types": TEXT}, ValueError, "this model has no token types"),
        (ENCODER, {"request": Request(past=1)}, ValueError, "an encoder sees all of its tokens at once"),
        (ENCODER, {"request": Request(kept=1)}, ValueError, "an encoder sees all of its tokens at once"),
        (ENCODER, {"request": Request(arrays={"k": TEXT})}, ValueError, "an encoder sees all of its tokens at once"),
        (PAIR, {"request": Request(past=5)}, ValueError, "a request that goes on holds what its source gave"),
        (PAIR, {"request": Request(past=5), "source": SOURCE}, ValueError, "a source is given in the pass that starts"),
        (ASKS, {"request": Request(past=5), "memory": MEMORY}, ValueError, "a memory is given in the pass that starts"),
    ],
)
def test_what_does_not_go_together_is_refused(model, given, error, message):
    with pytest.raises(error, match=f"^{message}"):
        run(model, **given)


def test_token_types_are_as_many_whole_numbers_as_tokens():
    model = fields(encoder=BELOW, embedding={"token_types": 3})
    with pytest.raises(ValueError, match=r"^token types \(3, 7\) are not those of tokens \(3, 11\)$"):
        run(model, token_types=SOURCE)
    with pytest.raises(TypeError, match=r"^token types are whole numbers \(B, T\), not float64 \(3, 11\)$"):
        run(model, token_types=TEXT * 1.0)
    with pytest.raises(IndexError, match=r"^encoder\.token_types has 3 rows, row 3 was asked for$"):
        run(model, token_types=np.full_like(TEXT, 3))


def test_an_encoder_keeps_nothing():
    request = Request()
    logits, tape = run(ENCODER, request=request)
    assert logits.shape == (3, 11, 19)
    assert (request, tape.cached) == (Request(), {})
    np.testing.assert_array_equal(run(ENCODER, request=request)[0], logits)
    last, _ = run(ENCODER, logits="last")
    assert apart(last, logits[:, -1:]) < 1e-5


def test_a_text_begins_at_position_0():
    assert Sight().start == 0


def test_an_encoder_looks_both_ways():
    logits, _ = run(ENCODER)
    for place in (0, 5, 10):
        changed = TEXT.copy()
        changed[:, place] = (changed[:, place] + 1) % 19
        assert (np.abs(run(ENCODER, changed)[0] - logits).max(axis=-1) > 0).all()


@pytest.mark.parametrize(("window", "reach"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 4), (9, 8)])
def test_windows_of_two_layers_reach_twice_their_half(window, reach):
    model = fields(encoder={**BELOW, "attention": {**SELF, "window": window}})
    changed = TEXT.copy()
    changed[:, 5] = (changed[:, 5] + 1) % 19
    moved = np.abs(run(model, changed)[0] - run(model)[0]).max(axis=-1) > 0
    assert moved.tolist() == [[abs(t - 5) <= reach for t in range(11)]] * 3


def test_a_pooler_reads_the_first_token():
    model = fields(encoder=BELOW, pooler=True, head="none")
    states, tape = run(model)
    assert states.shape == (3, 11, 13)
    w, b = ARENA.matrix("pooler.dense", 13, 13), ARENA.array("pooler.dense_bias", (13,))
    np.testing.assert_allclose(tape.pooled, np.tanh(states[:, 0] @ w + b), rtol=1e-5, atol=1e-6)
    assert tape.flops()["pooler.dense"] == 2 * 3 * 13 * 13
    last, tape = run(model, logits="last")
    np.testing.assert_array_equal(tape.pooled, run(model)[1].pooled)
    assert last.shape == (3, 1, 13)
    assert run(ENCODER)[1].pooled is None


def test_a_pair_decoded_in_steps_is_the_whole_pass():
    full, prefill = run(PAIR, source=SOURCE)
    for parts in ([7, 1, 1, 2], [1] * 11):
        request, logits, tapes = Request(), [], []
        for part in np.split(TEXT, np.cumsum(parts)[:-1], axis=1):
            result, tape = run(PAIR, part, request, **({} if request.past else {"source": SOURCE}))
            logits.append(result)
            tapes.append(tape)
        assert apart(np.concatenate(logits, axis=1), full) < 1e-5
        assert tapes[-1].cached == prefill.cached
        assert {path: sum(tape.flops().get(path, 0) for tape in tapes) for path in prefill.products} == prefill.flops()
        for tape in tapes[1:]:
            assert not [path for path in tape.products if path.startswith("encoder")]
            asked = {path.rpartition(".")[2] for path in tape.products if "cross_attention" in path}
            assert asked == {"q", "scores", "values", "output"}
            assert tape.parameters == prefill.parameters  # all are held, whatever flows


def test_cross_keys_and_values_are_held_once():
    request = Request()
    _, tape = run(PAIR, TEXT[:, :7], request, source=SOURCE)
    at = "decoder.layers.2.cross_attention.k_cache"
    held = request.arrays[at]
    assert held.shape == (3, 3, 7, 7)
    assert (tape.cached[at], tape.cached_kinds[at]) == (3 * 3 * 7 * 7, "cross")
    assert tape.cached_kinds["decoder.layers.2.attention.k_cache"] == "kv"
    _, tape = run(PAIR, TEXT[:, 7:], request)
    assert request.arrays[at] is held
    assert (tape.cached[at], tape.cached_kinds[at]) == (441, "cross")
    # A request that starts again has another source.
    request.past = 0
    request.arrays = {path: array for path, array in request.arrays.items() if path in request.cross}
    run(PAIR, TEXT[:, :5], request, source=SOURCE[:, ::-1])
    assert apart(request.arrays[at], held) > 1e-3


def test_cross_attention_is_the_loop_over_all_of_the_memory():
    """One layer that only asks: 3 heads of 7, norm and all, in float64."""
    model = fields(decoder={"cross_attention": ASKED}, head="none", final_norm=False)
    result, _ = run(model, memory=MEMORY)
    at = "decoder.layers.0.cross_attention"
    w = {name: ARENA.matrix(f"{at}.{name}", 13, 21).astype(float) for name in "qkv"}
    out = ARENA.matrix(f"{at}.output", 21, 13).astype(float)
    x = ARENA.table("decoder.embedding", 19, 13)[TEXT].astype(float)
    normed = rms_norm(x) * ARENA.gain("decoder.layers.0.cross_attention_norm", 13)
    expected = x.copy()
    for b, t in np.ndindex(3, 11):
        joined = []
        for n in range(3):
            own = slice(7 * n, 7 * n + 7)
            q = normed[b, t] @ w["q"][:, own]
            e = np.exp([q @ (MEMORY[b, m] @ w["k"][:, own]) / np.sqrt(7) for m in range(7)])
            joined.extend(sum(share * (MEMORY[b, m] @ w["v"][:, own]) for m, share in enumerate(e / e.sum())))
        expected[b, t] += np.array(joined) @ out
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_every_token_sees_every_token_of_the_memory():
    logits, _ = run(ASKS, memory=MEMORY)
    for place in range(7):
        changed = MEMORY.copy()
        changed[:, place] += 1
        assert (np.abs(run(ASKS, memory=changed)[0] - logits).max(axis=-1) > 0).all()


def test_a_decoder_that_asks_nobody_leaves_the_sublayer_out():
    """Its weights are held, and its norm after the residual sum is not there either (BartForCausalLM)."""
    for norms in ("pre", "post", "output", "sandwich"):
        asks, plain = fields(decoder={**ABOVE, "norms": norms}), fields(decoder={**BELOW, "repeat": 3, "norms": norms})
        result, tape = run(asks)
        np.testing.assert_array_equal(result, run(plain)[0])
        assert "decoder.layers.1.cross_attention.q" in tape.parameters
        assert "decoder.layers.1.cross_attention_norm" in tape.parameters
        assert not [path for path in tape.products if "cross_attention" in path]
        request = Request()
        for part in (TEXT[:, :7], TEXT[:, 7:]):
            split, tape = run(asks, part, request)
        assert apart(split, result[:, 7:]) < 1e-5
        assert not [path for path in tape.products if "cross_attention" in path]


def test_memory_of_any_floats_is_taken_as_float32():
    np.testing.assert_array_equal(run(ASKS, memory=MEMORY.astype(float))[0], run(ASKS, memory=MEMORY)[0])


def test_a_request_of_another_batch_is_refused_and_left_as_it_was():
    request = Request()
    run(PAIR, TEXT[:, :7], request, source=SOURCE)
    arrays, cross = dict(request.arrays), request.cross
    with pytest.raises(ValueError, match="of another batch or model"):
        run(PAIR, TEXT[:2, 7:], request)
    assert (request.past, request.cross) == (7, cross)
    assert all(request.arrays[path] is array for path, array in arrays.items())
    assert request.arrays.keys() == arrays.keys()


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_pass_that_is_stopped_in_either_stack_leaves_the_request_as_it_was(stop):
    def interrupt(done, layers, x):
        assert layers == 5
        if done == stop:
            raise KeyboardInterrupt
        return x

    request = Request()
    with pytest.raises(KeyboardInterrupt):
        run(PAIR, request=request, source=SOURCE, on_layer=interrupt)
    assert request == Request()


def test_layers_of_both_stacks_are_told_in_one_count():
    told, request = [], Request()

    def on_layer(done, layers, x):
        told.append((done, layers, x.shape[1]))
        return x

    run(PAIR, TEXT[:, :10], request, source=SOURCE, on_layer=on_layer)
    assert told == [(1, 5, 7), (2, 5, 7), (3, 5, 10), (4, 5, 10), (5, 5, 10)]
    told.clear()
    run(PAIR, TEXT[:, 10:], request, on_layer=on_layer)
    assert told == [(1, 3, 1), (2, 3, 1), (3, 3, 1)]


def test_tables_of_two_stacks():
    tables = {}
    for share, rows in ((True, None), (False, None), (False, 29)):
        model = fields(encoder=BELOW, decoder=ABOVE, share_embeddings=share, encoder_vocab_size=rows)
        _, tape = run(model, source=SOURCE)
        tables[share, rows] = {path: held for path, (held, _) in tape.parameters.items() if "embedding" in path}
    assert tables[True, None] == {"decoder.embedding": 247}
    assert tables[False, None] == {"decoder.embedding": 247, "encoder.embedding": 247}
    assert tables[False, 29] == {"decoder.embedding": 247, "encoder.embedding": 377}
    with pytest.raises(IndexError, match=r"encoder\.embedding has 29 rows, row 29"):
        run(model, source=SOURCE * 0 + 29)


def test_layers_that_share_weights_are_one_layer_again_and_again():
    shared, plain = (fields(encoder={**BELOW, "repeat": 3, "share_weights": share}) for share in (True, False))
    result, tape = run(shared)
    paths = {path for path in tape.parameters if path.startswith("encoder.layers")}
    assert {path.split(".")[2] for path in paths} == {"0"}
    assert tape.of["encoder.layers.2.attention.q"] == "encoder.layers.0.attention.q"
    assert tape.flops() == run(plain)[1].flops()
    given = dict.fromkeys(paths, tape.weights)
    assert len(given) == 8  # q, k, v, output, up, down and two norms

    class Lent:
        """The arena with the first layer's numbers in every layer."""

        def __getattr__(self, sort):
            return lambda path, *size: getattr(ARENA, sort)(
                path.replace("layers.1", "layers.0").replace("layers.2", "layers.0"), *size
            )

    np.testing.assert_array_equal(forward(plain, TEXT, tape=Tape(Lent())), result)


def test_what_stands_below_the_layers_in_order():
    """Rows, positions, types, norm, then the projection; or the projection first. W = 7."""
    hollow = {"feed_forward": {"d_ff": 1}}
    arrays = {
        "encoder.embedding": RNG.normal(size=(19, 7)),
        "encoder.embedding_projection": RNG.normal(size=(7, 13)),
        "encoder.embedding_projection_bias": RNG.normal(size=13),
        "encoder.layers.0.feed_forward.up": np.zeros((13, 1)),
        "encoder.layers.0.feed_forward.down": np.zeros((1, 13)),
        "encoder.layers.0.feed_forward_norm": np.ones(13),
    }
    types = RNG.integers(0, 3, (3, 11))
    e, into, bias = (arrays[f"encoder.embedding{name}"] for name in ("", "_projection", "_projection_bias"))
    for project, width in (("after", 7), ("before", 13)):
        kinds, gain = RNG.normal(size=(3, width)), RNG.normal(size=width)
        given = {**arrays, "encoder.token_types": kinds, "encoder.embedding_norm": gain}
        norm = {"kind": "layernorm", "eps": 0.3, "bias": False}
        embedding = {"width": 7, "bias": True, "project": project, "scale": 3.7, "token_types": 3, "norm": norm}
        model = fields(encoder=hollow, positions="sinusoidal", embedding=embedding, head="none", final_norm=False)
        tape = Tape(Given({path: np.asarray(array, np.float32) for path, array in given.items()}))
        got = forward(model, TEXT, tape=tape, token_types=types)
        x = 3.7 * e[TEXT] if project == "after" else 3.7 * e[TEXT] @ into + bias
        x = layer_norm(x + sinusoidal(np.arange(11), width) + kinds[types], eps=0.3) * gain
        x = x @ into + bias if project == "after" else x
        np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-4)


def test_a_head_scales_transforms_norms_and_adds_a_buffer():
    arrays = {
        "encoder.embedding": RNG.normal(size=(19, 13)),
        "encoder.layers.0.feed_forward.up": np.zeros((13, 1)),
        "encoder.layers.0.feed_forward.down": np.zeros((1, 13)),
        "encoder.layers.0.feed_forward_norm": np.ones(13),
        "head.transform": RNG.normal(size=(13, 13)),
        "head.transform_bias": RNG.normal(size=13),
        "head.norm": RNG.normal(size=13),
        "head_bias": RNG.normal(size=19),
    }
    norm = {"kind": "rmsnorm", "eps": 0.3}
    head = {"transform": True, "activation": "relu", "norm": norm, "bias": "buffer", "scale": 0.7, "softcap": 5.0}
    model = fields(encoder={"feed_forward": {"d_ff": 1}}, head=head, tie_embeddings=True, final_norm=False)
    tape = Tape(Given({path: np.asarray(array, np.float32) for path, array in arrays.items()}))
    got = forward(model, TEXT, tape=tape)
    e = arrays["encoder.embedding"]
    x = np.maximum(0.7 * e[TEXT] @ arrays["head.transform"] + arrays["head.transform_bias"], 0)
    x = rms_norm(x, eps=0.3) * arrays["head.norm"]
    np.testing.assert_allclose(got, 5 * np.tanh((x @ e.T + arrays["head_bias"]) / 5), rtol=1e-4, atol=1e-4)
    assert tape.parameters["head_bias"] == (19, "buffer")


def test_a_second_bias_of_the_head_is_held_and_added_to_nothing():
    once, twice = (run(fields(encoder=BELOW, head={"bias": bias})) for bias in (True, "spare"))
    np.testing.assert_array_equal(once[0], twice[0])
    assert {**once[1].parameters, "head_spare_bias": (19, "trainable")} == twice[1].parameters


@pytest.mark.parametrize(("where", "what"), [("head", "head"), ("cross_attention", "cross-attention")])
def test_a_kind_without_a_pass_is_an_error_in_the_new_places_too(where, what):
    model = fields(encoder=BELOW, decoder=ABOVE)
    (model if where == "head" else model["decoder"]["layers"][0])[where]["kind"] = "newest"
    with pytest.raises(NoReferenceError, match=f"^{what} of kind newest has no forward pass$"):
        run(model, source=SOURCE)
    assert set(HEADS) == {"vocabulary", "classifier", "none"}


def test_a_text_of_one_token_and_a_source_of_one():
    logits, tape = run(PAIR, TEXT[:, :1], source=SOURCE[:, :1])
    assert logits.shape == (3, 1, 19)
    assert tape.row_sum_error == 0
