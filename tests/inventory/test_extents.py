"""Closed forms against loops over every query and key, then against NumPy arrays of the same sizes."""

from itertools import product

import numpy as np
import pytest

from costcalc.inventory import (
    Context,
    CrossPairs,
    Extent,
    Logits,
    Memory,
    Pairs,
    Routed,
    Tokens,
    Workload,
    smaller,
)

SMALL_PASSES = [(past, new) for past in range(9) for new in range(1, 9)]
LIMITS = range(1, 20)  # past + new is at most 16, so a limit binds, just fits, or is out of reach


def attended(past, new, *, window=None, chunk=None):
    """Every query looks at every key: not at a later one, nor too far back, nor into another chunk."""
    return sum(
        (window is None or query - key < window) and (chunk is None or query // chunk == key // chunk)
        for query in range(past, past + new)
        for key in range(query + 1)
    )


def handed(past, new, *, window=None):
    """Every query meets every key that it is handed: the new ones, and the cached ones that a next window needs."""
    cached = [key for key in range(past) if window is None or past - key < window]
    return sum(1 for _query in range(new) for _key in [*cached, *range(past, past + new)])


@pytest.mark.parametrize(("a", "b"), [(3, 7), (7, 3), (5, 5), (0, 2), (1, 10**30)])
def test_smaller_is_min(a, b):
    assert smaller(a, b) == min(a, b)


def test_smaller_is_min_of_arrays():
    assert smaller(np.array([3, 7, 5]), np.array([7, 3, 5])).tolist() == [3, 3, 5]
    assert smaller(np.array([3, 7, 5]), 4).tolist() == [3, 4, 4]


def test_causal_pairs_are_those_of_a_loop():
    for past, new in SMALL_PASSES:
        assert Pairs().of(Workload(new_tokens=new, past_tokens=past)) == attended(past, new), (past, new)


@pytest.mark.parametrize("window", LIMITS)
def test_pairs_in_a_window_are_those_of_a_loop(window):
    for past, new in SMALL_PASSES:
        got = Pairs(window=window).of(Workload(new_tokens=new, past_tokens=past))
        assert got == attended(past, new, window=window), (past, new)


@pytest.mark.parametrize("chunk", LIMITS)
def test_pairs_in_chunks_are_those_of_a_loop(chunk):
    for past, new in SMALL_PASSES:
        got = Pairs(chunk=chunk).of(Workload(new_tokens=new, past_tokens=past))
        assert got == attended(past, new, chunk=chunk), (past, new)


@pytest.mark.parametrize("window", [None, *LIMITS])
def test_the_rectangle_is_what_a_kernel_is_handed(window):
    for past, new in SMALL_PASSES:
        workload = Workload(new_tokens=new, past_tokens=past, counting="rectangle")
        assert Pairs(window=window).of(workload) == handed(past, new, window=window), (past, new)
        # transformers' chunked layers keep what a window of that size would (llama4, attention_chunk_size 8)
        assert Pairs(chunk=window).of(workload) == handed(past, new, window=window), (past, new)


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_without_a_causal_mask_every_query_meets_every_key(counting):
    for past, new in SMALL_PASSES:
        workload = Workload(new_tokens=new, past_tokens=past, counting=counting)
        assert Pairs(causal=False).of(workload) == new * (past + new)


def test_pairs_in_closed_form():
    # T(T+1)/2 = 11 x 12 / 2 = 66; after 7 cached tokens T x past more: 66 + 77 = 143
    assert Pairs().of(Workload(new_tokens=11)) == 66
    assert Pairs().of(Workload(new_tokens=11, past_tokens=7)) == 143
    # window 5: w(w+1)/2 + (T - w)w = 15 + 6 x 5 = 45
    assert Pairs(window=5).of(Workload(new_tokens=11)) == 45
    # chunks of 5: 15 + 15 + 1 = 31
    assert Pairs(chunk=5).of(Workload(new_tokens=11)) == 31
    # the rectangle: 11 x 11, with 7 cached 11 x 18, with a window of 5 only 4 of them: 11 x 15
    rectangle = {"new_tokens": 11, "counting": "rectangle"}
    assert Pairs().of(Workload(**rectangle)) == 121
    assert Pairs().of(Workload(past_tokens=7, **rectangle)) == 198
    assert Pairs(window=5).of(Workload(past_tokens=7, **rectangle)) == 165


@pytest.mark.parametrize("pairs", [Pairs(), Pairs(window=5), Pairs(chunk=5), Pairs(window=1), Pairs(chunk=1)])
def test_a_prefill_attends_to_as_much_as_its_decode_steps(pairs):
    for past, new in SMALL_PASSES:
        steps = sum(pairs.of(Workload(past_tokens=past + step)) for step in range(new))
        assert pairs.of(Workload(new_tokens=new, past_tokens=past)) == steps


def test_long_texts_are_exact_and_take_no_loop():
    # T(T+1)/2 with T = 10^12, beyond what a float holds
    assert Pairs().of(Workload(new_tokens=10**12)) == 500_000_000_000_500_000_000_000
    # w(w+1)/2 + (T - w)w with w = 4,096
    assert Pairs(window=4096).of(Workload(new_tokens=10**12)) == 4_095_999_991_613_440
    assert Context(window=4096).of(Workload(past_tokens=10**12)) == 4096


@pytest.mark.parametrize("window", [None, *LIMITS])
def test_a_cache_holds_the_latest_tokens_up_to_the_window(window):
    for past, new in SMALL_PASSES:
        tokens = list(range(past + new))
        held = tokens if window is None else tokens[-window:]
        assert Context(window=window).of(Workload(new_tokens=new, past_tokens=past)) == len(held), (past, new)


@pytest.mark.parametrize(
    ("extent", "size"),
    [
        (Tokens(), 3 * 11),
        (Logits(), 3 * 11),
        (Context(), 3 * (7 + 11)),
        (Context(window=5), 3 * 5),
        (Pairs(), 3 * 143),
        (Pairs(window=5), 3 * 11 * 5),  # past is longer than the window: each query sees 5
        (Pairs(causal=False), 3 * 11 * 18),
        (Routed(2), 3 * 11 * 2),
        (Memory(), 3 * 23),
        (Memory(once=True), 0),  # the request has started already
        (CrossPairs(), 3 * 11 * 23),
    ],
)
def test_every_extent_counts_the_whole_batch(extent, size):
    assert extent.of(Workload(batch=3, new_tokens=11, past_tokens=7, memory_tokens=23)) == size


def test_memory_is_there_once_when_the_request_starts():
    assert Memory(once=True).of(Workload(batch=3, new_tokens=11, memory_tokens=23)) == 69  # 3 x 23
    assert Memory(once=True).of(Workload(past_tokens=1, memory_tokens=23)) == 0
    assert Memory().of(Workload(past_tokens=1, memory_tokens=23)) == 23


def test_the_last_logits_are_one_row_a_sequence():
    assert Logits().of(Workload(batch=3, new_tokens=11, logits="last")) == 3
    assert Tokens().of(Workload(batch=3, new_tokens=11, logits="last")) == 33


def test_one_expert_a_token_unless_said_otherwise():
    assert Routed().of(Workload(new_tokens=11)) == 11


@pytest.mark.parametrize(
    ("extent", "letters"),
    [
        (Tokens(), "B·T"),
        (Logits(), "B·T"),
        (Context(), "B·S"),
        (Pairs(), "B·P"),
        (Routed(), "B·T·X"),
        (Memory(), "B·M"),
        (CrossPairs(), "B·T·M"),
    ],
)
def test_letters(extent, letters):
    assert extent.letters == letters


@pytest.mark.parametrize("kind", [Tokens, Logits, Context, Pairs, Routed, Memory, CrossPairs])
def test_extents_are_frozen_and_equal_by_value(kind):
    assert kind() == kind()
    assert len({kind(), kind(), Extent}) == 2
    with pytest.raises((AttributeError, TypeError)):  # slots and a frozen dataclass refuse in different words
        kind().letters = "B"


def test_extents_of_different_kinds_or_sizes_differ():
    assert Pairs(window=5) == Pairs(window=5) != Pairs(window=7)
    assert Pairs() != Context()
    assert len({Context(window=5), Context(window=5), Context()}) == 2


def test_an_extent_of_no_kind_has_no_size():
    with pytest.raises(NotImplementedError):
        Extent().of(Workload())


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("limit", ["none", "window", "chunk"])
def test_pairs_of_arrays_are_those_of_one_pass_at_a_time(counting, limit):
    batch, new, past, limits = np.array([1, 3]), np.array([1, 2, 11]), np.array([0, 1, 7, 13]), np.array([1, 5, 23])
    grid = np.meshgrid(batch, new, past, limits, indexing="ij")
    passes = [axis.ravel() for axis in grid]
    swept = Workload(batch=passes[0], new_tokens=passes[1], past_tokens=passes[2], counting=counting)
    got = Pairs(**({} if limit == "none" else {limit: passes[3]})).of(swept)
    one_by_one = [
        Pairs(**({} if limit == "none" else {limit: int(size)})).of(Workload(b, t, p, counting=counting))
        for b, t, p, size in product(batch.tolist(), new.tolist(), past.tolist(), limits.tolist())
    ]
    assert got.tolist() == one_by_one


def test_arrays_of_python_numbers_are_exact_beyond_64_bits():
    lengths = np.array([11, 10**12], dtype=object)
    assert Pairs().of(Workload(new_tokens=lengths)).tolist() == [66, 500_000_000_000_500_000_000_000]
    assert Context(window=13).of(Workload(new_tokens=lengths)).tolist() == [11, 13]


def test_the_other_extents_take_arrays_too():
    sizes = {"batch": [1, 3, 5], "new_tokens": [11, 1, 7], "past_tokens": [0, 13, 2], "memory_tokens": [23, 29, 2]}
    swept = Workload(**{name: np.array(values) for name, values in sizes.items()})
    one_by_one = [Workload(*values) for values in zip(*sizes.values(), strict=True)]
    window, experts = np.array([5, 5, 31]), np.array([2, 3, 4])
    extents = [Tokens(), Logits(), Context(), Memory(), Memory(once=True), CrossPairs()]
    for extent in extents:
        assert extent.of(swept).tolist() == [extent.of(w) for w in one_by_one], extent
    assert Context(window=window).of(swept).tolist() == [5, 15, 45]  # 1 x min(11, 5), 3 x min(14, 5), 5 x min(9, 31)
    assert Routed(experts).of(swept).tolist() == [22, 9, 140]  # 1 x 11 x 2, 3 x 1 x 3, 5 x 7 x 4
