"""What a request holds from one pass to the next."""

import numpy as np
import pytest

import costcalc
from costcalc.reference import Arena, Request, Tape, forward

# Keys of two heads of H=5: token p is a row of p's.
TOKENS = np.broadcast_to(np.arange(23.0)[:, None], (3, 2, 23, 5))


def positions(array):
    """Which tokens these are."""
    assert array.shape[:2] == (3, 2)
    assert array.shape[3] == 5
    return array[0, 0, :, 0].astype(int).tolist()


def test_a_new_request_holds_nothing():
    assert (Request().past, Request().kept, Request().arrays) == (0, None, {})
    assert Request().arrays is not Request().arrays


def test_new_tokens_come_after_those_that_are_held():
    request = Request()
    assert positions(request.extended("k", TOKENS[:, :, :7], window=None)) == list(range(7))
    assert positions(request.extended("k", TOKENS[:, :, 7:8], window=None)) == list(range(8))
    assert positions(request.extended("k", TOKENS[:, :, 8:11], window=None)) == list(range(11))
    assert positions(request.arrays["k"]) == list(range(11))


def test_each_path_has_its_own():
    request = Request()
    request.extended("k", TOKENS[:, :, :7], window=None)
    assert positions(request.extended("v", TOKENS[:, :, 3:5], window=None)) == [3, 4]
    assert set(request.arrays) == {"k", "v"}


@pytest.mark.parametrize(
    ("window", "held", "seen"),
    [
        (1, [6], [6, 7, 8]),
        (3, [4, 5, 6], [4, 5, 6, 7, 8]),
        (6, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7, 8]),
        (7, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (8, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (97, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_the_latest_tokens_of_a_window_are_held(window, held, seen):
    request = Request()
    assert positions(request.extended("k", TOKENS[:, :, :7], window=window)) == list(range(7))
    assert positions(request.arrays["k"]) == held
    assert positions(request.extended("k", TOKENS[:, :, 7:9], window=window)) == seen
    assert positions(request.arrays["k"]) == list(range(9))[-window:]


@pytest.mark.parametrize(
    ("kept", "window", "held"),
    [
        (None, None, [0, 1, 2, 3, 4, 5, 6]),
        (7, None, [0, 1, 2, 3, 4, 5, 6]),
        (6, None, [0, 1, 2, 3, 4, 5]),
        (1, None, [0]),
        (0, None, []),
        (6, 3, [3, 4, 5]),
        (2, 3, [0, 1]),
    ],
)
def test_only_the_kept_tokens_stay(kept, window, held):
    request = Request(kept=kept)
    assert positions(request.extended("k", TOKENS[:, :, :7], window=window)) == list(range(7))
    assert positions(request.arrays["k"]) == held


def test_what_was_held_before_stays_when_new_tokens_do_not():
    request = Request()
    request.extended("k", TOKENS[:, :, :5], window=3)
    request.kept = 1
    assert positions(request.extended("k", TOKENS[:, :, 5:9], window=3)) == [2, 3, 4, 5, 6, 7, 8]
    assert positions(request.arrays["k"]) == [3, 4, 5]


@pytest.mark.parametrize("shape", [(23, 5), (2, 23, 5), (3, 2, 2, 23, 5)])
def test_whatever_stands_before_tokens_and_numbers(shape):
    tokens = np.broadcast_to(np.arange(23.0)[:, None], shape)
    request = Request()
    request.extended("k", tokens[..., :7, :], window=3)
    request.kept = 1
    seen = request.extended("k", tokens[..., 7:9, :], window=3)
    np.testing.assert_array_equal(seen, tokens[..., 4:9, :])
    np.testing.assert_array_equal(request.arrays["k"], tokens[..., 5:8, :])


@pytest.mark.parametrize("kept", [-1, 12])
def test_more_tokens_than_there_are_cannot_be_kept(kept):
    fields = costcalc.load(
        {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 5}}]}
    ).model_dump()
    with pytest.raises(ValueError, match=f"{kept} of 11 tokens cannot be kept"):
        forward(fields, np.zeros((1, 11), int), tape=Tape(Arena(300, deviation=0.1)), request=Request(kept=kept))


def test_what_is_kept_is_said_for_one_pass():
    fields = costcalc.load(
        {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"feed_forward": {"d_ff": 5}}]}
    ).model_dump()
    request = Request(kept=7)
    for expected in (7, 18):
        forward(fields, np.zeros((1, 11), int), tape=Tape(Arena(300, deviation=0.1)), request=request)
        assert request.past == expected
        assert request.kept is None


@pytest.mark.parametrize("shape", [(5, 3, 1, 7), (2, 5, 1, 7), (2, 3, 1, 5), (3, 1, 7)])
def test_a_request_of_another_batch_or_model_is_refused(shape):
    request = Request()
    request.extended("k_cache", np.ones((2, 3, 11, 7)), window=None)
    with pytest.raises(ValueError, match=r"k_cache holds \(2, 3, 11, 7\), and .* is of another batch or model"):
        request.extended("k_cache", np.ones(shape), window=None)


def test_what_was_made_of_an_encoder_s_tokens_is_made_once():
    request = Request()
    first, none = TOKENS[:, :, :7], TOKENS[:, :, :0]
    assert request.once("k", first) is first
    assert (request.cross, request.kind("k"), request.kind("v")) == ({"k"}, "cross", "kv")
    request.past = 5
    assert request.once("k", none) is first
    assert request.once("v", none).shape == (3, 2, 0, 5)  # nothing was made of it
    assert request.cross == {"k", "v"}
    request.past = 0
    assert request.once("k", TOKENS[:, :, 3:5]).shape == (3, 2, 2, 5)  # another start


@pytest.mark.parametrize("shape", [(5, 2, 0, 5), (3, 1, 0, 5), (3, 2, 0, 7)])
def test_what_an_encoder_gave_to_another_batch_is_refused(shape):
    request = Request()
    request.once("k", TOKENS[:, :, :7])
    request.past = 5
    with pytest.raises(ValueError, match=r"^k holds \(3, 2, 7, 5\), and .* is of another batch or model$"):
        request.once("k", np.ones(shape))


def test_requests_do_not_share_what_they_hold():
    one, other = Request(), Request()
    one.once("k", TOKENS[:, :, :7])
    assert (other.cross, other.arrays) == (frozenset(), {})
