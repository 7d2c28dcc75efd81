"""A model run in its real shapes: what is compared, what is measured, and planted faults that must be found."""

import copy

import numpy as np
import pytest

import costcalc
from costcalc import CostcalcError
from costcalc.reference import block, forward, positions
from costcalc.reference.feed_forward import FEED_FORWARD
from costcalc.verification import verify


def measured(result):
    return {item.name: item.measured for item in result.properties}


def broken(result):
    return [item.name for item in result.properties if not item.holds]


@pytest.fixture
def planted(monkeypatch):
    """planted(before, after): the pass works on changed fields or a changed request, or gives other logits."""

    def plant(before=None, after=None):
        def pass_(fields, tokens, *, tape, request, **more):
            fields = copy.deepcopy(fields)
            if before is not None:
                before(fields, request)
            logits = forward(fields, tokens, tape=tape, request=request, **more)
            return logits if after is None else after(logits, tokens, tape)

        monkeypatch.setattr("costcalc.verification.passes.forward", pass_)

    return plant


def test_a_small_model_agrees_in_prefill_and_decode(small):
    result = verify(small())
    assert result.agrees
    assert result.faults == ()
    prefill, decode = result.phases
    assert (prefill.name, prefill.workload.new_tokens, prefill.workload.past_tokens) == ("prefill", 11, 0)
    assert (decode.name, decode.workload.new_tokens, decode.workload.past_tokens) == ("decode", 1, 10)
    # local: q, output 13·30, k, v 13·10, norms 2·13; global: 13·42 twice, 13·21 twice; gated 3·13·37 = 1,443 each.
    #   (1,040 + 26 + 1,443) + 2·(1,638 + 26 + 1,443) + final norm 13 + two tables of 247 = 2,509 + 6,214 + 507
    for phase in result.phases:
        assert phase.compared[0].stated == phase.compared[0].recorded == 9_230
    # Multiplied: 9,230 - 7 norms of 13 - the input table = 8,892. Cores, N·H = 30 and 42:
    #   prefill, pairs 66, with window 3 1 + 2 + 9·3 = 30: 2·2·(30·30 + 2·42·66); decode, 11 and 3 keys.
    assert prefill.compared[1].recorded == 2 * 11 * 8_892 + 4 * (900 + 5_544)
    assert decode.compared[1].recorded == 2 * 8_892 + 4 * (30 * 3 + 2 * 42 * 11)
    # 2·K·H a token: 20 for 3 tokens, 42 for 11 in two layers.
    assert prefill.compared[2].recorded == decode.compared[2].recorded == 20 * 3 + 2 * 42 * 11


def test_the_public_name(small):
    assert costcalc.verify(small()) == verify(small())


def test_a_second_run_gives_the_same(small):
    assert verify(small()) == verify(small())


@pytest.mark.parametrize("preset", ["gpt2", "llama-3.2-1b", "albert-base-v2", "t5-small"])
def test_presets_in_real_width(preset):
    model = costcalc.load(preset)
    result = verify(model)
    assert result.agrees
    first, last = result.phases[0], result.phases[-1]
    cache = costcalc.kv_cache(model, 11, memory_tokens=first.workload.memory_tokens)
    assert first.compared[0].recorded == costcalc.parameters(model).total
    assert first.compared[1].recorded == costcalc.flops(model, first.workload).forward
    assert last.compared[2].recorded == (cache.elements or 0) + (cache.cross_elements or 0)
    assert all(item.measured is not None for item in result.properties) == (preset == "llama-3.2-1b")


@pytest.mark.parametrize(
    ("before", "where"),
    [
        (lambda fields, request: fields["decoder"]["layers"][1]["attention"].update(kv_heads=6), "global.attention.k"),
        (
            lambda fields, request: fields["decoder"]["layers"][0]["attention"].update(window=4),
            "local.attention.scores",
        ),
        (
            lambda fields, request: fields["decoder"]["layers"][0]["attention"].update(bias=True),
            "local.attention.q_bias",
        ),
        (lambda fields, request: fields["decoder"]["layers"][1].update(repeat=1), "global.feed_forward.up"),
        (lambda fields, request: fields.update(tie_embeddings=True), "head"),
        (lambda fields, request: fields.update(d_model=17), "decoder.embedding"),
        (lambda fields, request: fields["decoder"].update(final_norm=False), "decoder.final_norm"),
    ],
)
def test_a_pass_that_does_something_else_is_found(small, planted, before, where):
    planted(before)
    result = verify(small())
    assert not result.agrees
    assert any(fault.path.endswith(where) for fault in result.faults)
    assert {phase for fault in result.faults for phase in fault.phases} == {"prefill", "decode"}


def test_a_leak_is_found(small, planted):
    """A millionth of the last token in every logit."""
    planted(after=lambda logits, tokens, tape: logits + np.float32(1e-6) * tokens[0, -1])
    result = verify(small())
    assert broken(result) == ["a later token changes earlier logits"]
    assert not result.agrees
    assert result.faults == ()


def test_decoding_at_a_wrong_position_is_found(small, planted):
    def later(fields, request):
        request.past += 1 if request.past else 0

    planted(later)
    assert broken(verify(small())) == ["cached decoding differs from the full pass"]


def test_decoding_from_a_cache_that_lost_a_token_is_found(small, planted):
    def shorter(fields, request):
        request.arrays = {path: held[:, :, 1:] for path, held in request.arrays.items()}

    planted(shorter)
    result = verify(small())
    assert broken(result) == ["cached decoding differs from the full pass"]
    assert {fault.phases for fault in result.faults} == {("decode",)}


def test_weights_that_do_not_sum_to_one_are_found(small, planted):
    def unnormed(logits, tokens, tape):
        tape.row_sum_error = 0.01
        return logits

    planted(after=unnormed)
    assert broken(verify(small())) == ["sums of attention rows differ from 1"]


def test_a_pass_whose_rows_nobody_watched_is_found(small, planted):
    def unwatched(logits, tokens, tape):
        tape.row_sum_error = None
        return logits

    planted(after=unwatched)
    assert broken(verify(small())) == ["sums of attention rows differ from 1"]


def test_work_that_is_done_in_prefill_only_is_found(small, planted):
    """A window of 2 in the pass: prefill is no longer the sum of the stated decode steps."""
    planted(lambda fields, request: fields["decoder"]["layers"][0]["attention"].update(window=2))
    result = verify(small())
    # 30·(30 pairs with a window of 3, 21 with one of 2): 2·2·30·9.
    assert measured(result)["prefill FLOPs differ from the sum of decode steps"] == 1_080
    assert broken(result) == ["prefill FLOPs differ from the sum of decode steps"]


@pytest.mark.parametrize("length", [1, 2, 7, 11, 1024])
def test_a_short_table_of_positions_shortens_the_text(small, length):
    result = verify(small(positions={"kind": "learned", "length": length}))
    assert result.agrees
    assert result.phases[0].workload.new_tokens == min(length, 11)
    assert (measured(result)["a later token changes earlier logits"] is None) == (length == 1)


def test_a_short_stored_table_of_sinusoids_shortens_the_text_too(small):
    result = verify(small(positions={"kind": "sinusoidal", "stored": "buffer", "length": 7}))
    assert result.agrees
    assert result.phases[0].workload.new_tokens == 7


@pytest.mark.parametrize("theta", [1e4, 7.0])
def test_every_rotation_of_a_model_is_measured(small, monkeypatch, theta):
    true = positions.rope

    def rope(x, p, **fields):
        return true(x, p**2 if fields["theta"] == theta else p, **fields)

    monkeypatch.setattr(positions, "rope", rope)
    rotary = {"kind": "rope", "theta": 7.0, "rotary_dim": 4}
    attention = {"heads": 6, "kv_heads": 2, "head_dim": 5}
    layers = [{"attention": attention}, {"attention": attention, "positions": rotary}, {"feed_forward": {"d_ff": 37}}]
    assert broken(verify(small(layers=layers))) == ["attention at the same RoPE offsets differs"]


def test_what_does_not_apply_is_not_measured(small):
    result = verify(small(positions="none", layers=[{"feed_forward": {"d_ff": 37}}], block={}))
    assert result.agrees
    values = measured(result)
    assert values["sums of attention rows differ from 1"] is None
    assert values["RoPE changes lengths of keys"] is None
    assert values["a later token changes earlier logits"] == 0
    assert result.phases[0].compared[2].paths == 0


def test_a_vocabulary_of_one_entry_has_no_other_token(small):
    result = verify(small(vocab_size=1))
    assert result.agrees
    assert measured(result)["a later token changes earlier logits"] is None


def test_a_width_of_one_need_not_tell_words_apart(small):
    """LayerNorm makes every number 0."""
    result = verify(small(d_model=1, norm="layernorm"))
    assert result.agrees
    assert measured(result)["a later token changes earlier logits"] is None


@pytest.mark.parametrize(
    "changes",
    [
        # The largest matrix is smaller than two rows of the vocabulary's table, or holds a multiple of few rows.
        {"vocab_size": 101, "d_model": 16, "layers": [{"attention": {"heads": 1, "head_dim": 1}}]},
        {"vocab_size": 101, "d_model": 256, "layers": [{"feed_forward": {"kind": "gated", "d_ff": 1}}]},
        {"vocab_size": 3, "d_model": 8, "layers": [{"attention": {"heads": 1, "head_dim": 2}}]},
        {"vocab_size": 2, "d_model": 8, "layers": [{"attention": {"heads": 1, "head_dim": 2}}]},
        {"vocab_size": 50_000, "d_model": 17, "layers": [{"attention": {"heads": 1, "head_dim": 1}}]},
    ],
)
def test_words_differ_however_small_the_matrices_are(small, changes):
    result = verify(small(block={}, **changes))
    assert result.agrees
    assert measured(result)["a later token changes earlier logits"] == 0


def test_a_stored_table_of_sinusoids_that_is_a_buffer_is_no_parameter(small):
    """50 rows of 13 numbers."""
    model = small(positions={"kind": "sinusoidal", "stored": "buffer", "length": 50})
    result = verify(model)
    assert result.agrees
    parameters, _, _, buffers, _ = result.phases[0].compared
    assert parameters.recorded == costcalc.parameters(model).total
    assert buffers.stated == buffers.recorded == costcalc.parameters(model).buffers == 650


def test_numbers_that_are_none_are_said_and_warn_of_nothing(small, recwarn):
    """An eps that float32 does not have: a head of one number, centred, is 0 / 0."""
    norm = {"kind": "layernorm", "eps": 1e-300, "bias": False}
    attention = {"heads": 6, "head_dim": 1, "qk_norm": {"kind": "per_head", "norm": norm}}
    result = verify(small(layers=[{"attention": attention}]))
    assert not result.agrees
    assert result.faults == ()
    assert broken(result) == [item.name for item in result.properties[:-1]]
    assert {item.why for item in result.properties[:-1]} == {"numbers of the pass are not finite in float32"}
    assert not recwarn.list


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"vocab_size": 0}, "vocab_size must be a whole number from 1"),
        ({"d_model": 7}, "d_model 7 is not a multiple of heads 2"),
    ],
)
def test_a_copy_that_is_no_valid_model_is_refused(small, changes, why):
    """And loading it says why, as the hint has it."""
    copied = small(d_model=14, layers=[{"attention": {"heads": 2, "window": 4096}}]).model_copy(update=changes)
    with pytest.raises(CostcalcError, match="is no valid model") as caught:
        verify(copied)
    assert caught.value.hint == "costcalc.load(copy.model_dump()) says what is wrong"
    with pytest.raises(CostcalcError, match=why):
        costcalc.load(copied.model_dump())


def test_numbers_that_overflow_are_no_good_sign_and_counts_are_still_compared(small, recwarn):
    layers = [{"norms": "post", "attention": {"heads": 6, "head_dim": 5}}]
    result = verify(small(embedding={"scale": 1e29}, layers=layers, block={}))
    assert result.faults == ()
    assert not result.agrees
    assert not recwarn.list


def test_an_overflow_that_breaks_nothing_is_no_fault(small, planted):
    def overflow(logits, tokens, tape):
        assert np.isinf(np.float32(3e38) * np.float32(10))
        return logits

    planted(after=overflow)
    assert verify(small()).agrees


def test_an_overflow_that_a_norm_makes_nothing_of_is_named(small):
    """The mean square of numbers of 3e19 is infinite, and every row 0: all finite, and none the token's own."""
    result = verify(small(embedding={"scale": 3e19}))
    assert "numbers of the pass are not finite in float32" in {item.why for item in result.properties}
    assert verify(small(embedding={"scale": 1e15})).agrees


@pytest.mark.parametrize("phase", [1, 11])
def test_a_pass_that_gives_no_numbers_is_found(small, planted, phase):
    """In decode only (1 token), or in prefill only."""

    def lost(logits, tokens, tape):
        return logits * np.float32("nan") if tokens.shape[1] == phase else logits

    planted(after=lost)
    result = verify(small())
    assert broken(result) == [item.name for item in result.properties[:3]]
    assert {item.why for item in result.properties[:3]} == {"numbers of the pass are not finite in float32"}


@pytest.mark.parametrize("vocab_size", [2, 3, 19])
def test_a_pass_that_ignores_its_tokens_is_found(small, planted, vocab_size):
    planted(after=lambda logits, tokens, tape: 0 * logits + 1)
    result = verify(small(vocab_size=vocab_size))
    assert broken(result) == ["a later token changes earlier logits"]
    assert measured(result)["a later token changes earlier logits"] is None


def test_a_small_error_of_the_decode_step_is_found(small, planted):
    planted(after=lambda logits, tokens, tape: logits * np.float32(1.001 if tokens.shape[1] == 1 else 1))
    assert broken(verify(small())) == ["cached decoding differs from the full pass"]


def test_rows_are_watched_in_the_prefill_too(small, planted):
    def unnormed(logits, tokens, tape):
        tape.row_sum_error = 0.01 if tokens.shape[1] > 1 else 0.0
        return logits

    planted(after=unnormed)
    assert broken(verify(small())) == ["sums of attention rows differ from 1"]


@pytest.mark.parametrize("place", ["passes.forward", "limits.Arena", "run.rotations", "run.compare"])
def test_memory_that_is_not_there_is_told(small, monkeypatch, place):
    def full(*words, **more):
        raise MemoryError

    monkeypatch.setattr(f"costcalc.verification.{place}", full)
    with pytest.raises(CostcalcError, match="does not fit into memory"):
        verify(small())


def test_a_kind_without_a_pass_is_refused(small, monkeypatch):
    monkeypatch.delitem(FEED_FORWARD, "gated")
    with pytest.raises(
        CostcalcError, match="cannot be verified: feed-forward of kind gated has no forward pass"
    ) as caught:
        verify(small())
    assert caught.value.hint


def test_rotations_are_measured_in_full_width(small, monkeypatch):
    widths = []
    true = block.ATTENTION["grouped_query"]

    def attention(fields, x, at, **more):
        widths.append(x.shape[-1])
        return true(fields, x, at, **more)

    monkeypatch.setitem(block.ATTENTION, "grouped_query", attention)
    assert verify(small()).agrees
    # Three layers in three passes; two attentions where the text stands at four places.
    assert widths == [13] * (3 * 3 + 2 * 4)
