"""Closed forms against loops over every query and key, then against NumPy arrays of the same sizes."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from costcalc.expression import symbols
from costcalc.inventory import (
    Asking,
    Context,
    CrossPairs,
    Extent,
    Logits,
    Memory,
    MemoryPairs,
    PagedContext,
    PagedMemory,
    Pairs,
    Routed,
    Sequences,
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


def around(tokens, window):
    """Every query looks window // 2 places to either side, and at itself."""
    return sum(abs(query - key) <= window // 2 for query in range(tokens) for key in range(tokens))


@pytest.mark.parametrize("window", LIMITS)
def test_a_window_that_looks_both_ways_is_that_of_a_loop(window):
    for tokens in range(1, 17):
        assert Pairs(window=window, causal=False).of(Workload(new_tokens=tokens)) == around(tokens, window)
        assert MemoryPairs(window=window).of(Workload(memory_tokens=tokens)) == around(tokens, window)


def test_a_window_that_looks_both_ways_worked_out():
    # 11 tokens, 2 places either side: 5 x 11 less 2 + 1 at either end = 49; ModernBERT's 128 at 512: 512·129 - 64·65
    assert Pairs(window=5, causal=False).of(Workload(new_tokens=11)) == 49
    assert Pairs(window=128, causal=False).of(Workload(new_tokens=512)) == 61_888
    assert Pairs(window=128, causal=False).of(Workload(new_tokens=512, counting="rectangle")) == 512 * 512


def test_pairs_among_encoder_tokens_are_looked_at_once():
    assert MemoryPairs().of(Workload(batch=3, new_tokens=11, memory_tokens=7)) == 3 * 7 * 7
    assert MemoryPairs().of(Workload(batch=3, past_tokens=11, memory_tokens=7)) == 0
    assert MemoryPairs(window=5).of(Workload(memory_tokens=7, counting="rectangle")) == 7 * 7


def test_new_tokens_ask_only_where_there_is_a_memory():
    assert Asking().of(Workload(batch=3, new_tokens=11, memory_tokens=7)) == 33
    assert Asking().of(Workload(batch=3, past_tokens=5, memory_tokens=7)) == 3
    assert Asking().of(Workload(batch=3, new_tokens=11)) == 0


def test_a_pooler_reads_one_row_of_a_sequence():
    assert Sequences().of(Workload(batch=3, new_tokens=11)) == 3


@pytest.mark.parametrize(("memory", "tokens"), [(0, 0), (1, 16), (16, 16), (17, 32)])
def test_blocks_of_encoder_tokens(memory, tokens):
    assert PagedMemory(16).of(Workload(batch=3, memory_tokens=memory)) == 3 * tokens


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
        (Routed(Tokens(), 2), 3 * 11 * 2),
        (Memory(), 3 * 23),
        (Memory(once=True), 0),  # the request has started already
        (CrossPairs(), 3 * 11 * 23),
        (PagedContext(5), 3 * 4 * 5),  # 18 tokens in 4 blocks
        (PagedContext(5, 7), 3 * 3 * 5),  # 7 tokens touch 3 blocks at most
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
    assert Routed(Tokens(), 1).of(Workload(new_tokens=11)) == 11


@pytest.mark.parametrize(
    ("extent", "letters"),
    [
        (Tokens(), "B·T"),
        (Logits(), "B·T"),
        (Context(), "B·S"),
        (Pairs(), "B·P"),
        (Routed(Tokens(), 2), "B·T·X"),
        (Memory(), "B·M"),
        (CrossPairs(), "B·T·M"),
        (PagedContext(16), "B·S"),
    ],
)
def test_letters(extent, letters):
    assert extent.letters == letters


@pytest.mark.parametrize("kind", [Tokens, Logits, Context, Pairs, Memory, CrossPairs])
def test_extents_are_frozen_and_equal_by_value(kind):
    assert kind() == kind()
    assert len({kind(), kind(), Extent}) == 2
    with pytest.raises((AttributeError, TypeError)):  # slots and a frozen dataclass refuse in different words
        kind().letters = "B"


def test_extents_of_different_kinds_or_sizes_differ():
    assert Pairs(window=5) == Pairs(window=5) != Pairs(window=7)
    assert Pairs() != Context()
    assert len({Context(window=5), Context(window=5), Context()}) == 2
    assert len({PagedContext(5), PagedContext(7), PagedContext(5, 7), PagedContext(5, 7, 2), PagedContext(5)}) == 4
    with pytest.raises((AttributeError, TypeError)):
        PagedContext(5).block = 7


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
    assert Routed(Tokens(), experts).of(swept).tolist() == [22, 9, 140]  # 1 x 11 x 2, 3 x 1 x 3, 5 x 7 x 4


def blocks_touched(tokens, block):
    """How many blocks these tokens lie in, one after another from token 0."""
    return len({token // block for token in tokens})


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 16])
def test_whole_blocks_are_set_aside(block):
    for context in range(1, 40):
        assert PagedContext(block).of(Workload(new_tokens=context)) == block * blocks_touched(range(context), block)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("slots", [0, 1, 3])
def test_a_window_touches_most_blocks_when_it_begins_inside_of_one(block, slots):
    """All that a request may touch on its way to a context: the latest window + slots tokens, wherever they begin."""
    for window in range(1, 16):
        most = 0
        for context in range(1, 40):
            touched = blocks_touched(range(max(0, context - window - slots), context), block)
            most = max(most, block * touched)
            got = PagedContext(block, window, slots).of(Workload(new_tokens=context))
            assert got == most, (window, context)


def test_blocks_in_closed_form():
    # 11 tokens in blocks of 4 are 3 blocks; of a window of 6 the first token may be the last of a block: 1 + 4 + 1
    assert PagedContext(4).of(Workload(new_tokens=11)) == 12
    assert PagedContext(4, 6).of(Workload(new_tokens=100)) == 12  # (ceil(5 / 4) + 1)·4
    assert PagedContext(4, 6, 3).of(Workload(new_tokens=100)) == 12  # 9 tokens: 1 + 4 + 4
    assert PagedContext(4, 6, 4).of(Workload(new_tokens=100)) == 16  # 10 tokens: 1 + 4 + 4 + 1
    assert PagedContext(4, 6).of(Workload(new_tokens=3)) == 4
    # past and new tokens are one context
    assert PagedContext(4).of(Workload(new_tokens=4, past_tokens=7)) == 12
    # vLLM's log for Llama-3-8B: 20,000 tokens take 1,250 blocks of 16
    assert PagedContext(16).of(Workload(new_tokens=20_000)) == 1_250 * 16


def test_blocks_of_one_token_are_the_cache_itself():
    for window in (None, 5):
        for context in range(1, 12):
            workload = Workload(new_tokens=context)
            assert PagedContext(1, window).of(workload) == Context(window).of(workload)


def test_blocks_of_arrays_are_those_of_one_context_at_a_time():
    contexts = [1, 7, 15, 16, 17, 100]
    swept = Workload(new_tokens=np.array(contexts))
    for extent in (PagedContext(5), PagedContext(5, 7, 2), PagedContext(16, 4)):
        assert extent.of(swept).tolist() == [extent.of(Workload(new_tokens=n)) for n in contexts]


B, T, p, M = symbols("B T p M")
EXTENTS = [
    *(Tokens(), Logits(), Routed(Tokens(), 2), Memory(), Memory(once=True), CrossPairs()),
    *(Context(), Context(window=5), PagedContext(4), PagedContext(4, 6, 3)),
    *(Pairs(), Pairs(window=5), Pairs(chunk=5), Pairs(causal=False), Pairs(window=5, causal=False)),
    *(Sequences(), Asking(), MemoryPairs(), MemoryPairs(window=5), PagedMemory(4)),
]


def in_symbols(**changes):
    """What an extent reads of a workload, in symbols."""
    lengths = {"batch": B, "new_tokens": T, "past_tokens": p, "memory_tokens": M}
    return SimpleNamespace(**{**lengths, "counting": "attended", "logits": "all", **changes})


@pytest.mark.parametrize("extent", EXTENTS, ids=repr)
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("logits", ["all", "last"])
def test_an_extent_of_symbols_is_its_formula(extent, counting, logits):
    is_alone = extent == Pairs(window=5, causal=False)  # an encoder's, which has no past
    formula = extent.of(in_symbols(counting=counting, logits=logits, **({"past_tokens": 0} if is_alone else {})))
    for past, new in SMALL_PASSES[: 8 if is_alone else None][0 if is_alone else 8 :]:  # a symbol is not 0
        workload = Workload(3, new, past, 23, counting=counting, logits=logits)
        values = {"B": 3, "T": new, "p": past, "M": 23}
        assert (formula if formula == 0 else formula.value(values)) == extent.of(workload), (past, new)


@pytest.mark.parametrize(
    ("extent", "past", "text"),
    [
        (Tokens(), p, "B·T"),
        (Context(), p, "B·(p + T)"),
        (Context(), 0, "B·T"),
        (Context(window=5), 0, "B·min(T, 5)"),
        (PagedContext(16), 0, "B·ceil(T / 16)·16"),
        (PagedContext(16, 33), 0, "B·min(ceil(T / 16)·16, 48)"),  # (ceil(32 / 16) + 1)·16
        (PagedContext(1), p, "B·(p + T)"),
        (Pairs(), 0, "B·(T·(T + 1) / 2)"),
        (Pairs(), p, "B·(T·p + T·(T + 1) / 2)"),
        (Pairs(window=5), 0, "B·(T·(T + 1) / 2 - max(T - 5, 0)·(max(T - 5, 0) + 1) / 2)"),
        (Pairs(causal=False), p, "B·T·(p + T)"),
        (Pairs(causal=False, window=5), 0, "B·(T·(2·min(2, T - 1) + 1) - min(2, T - 1)·(min(2, T - 1) + 1))"),
        (MemoryPairs(), 0, "B·M·M"),
        (Asking(), p, "B·T"),
        (Sequences(), p, "B"),
        (PagedMemory(16), p, "B·ceil(M / 16)·16"),
        (Routed(Tokens(), 2), p, "B·T·2"),
        (Memory(once=True), 0, "B·M"),
        (CrossPairs(), p, "B·T·M"),
    ],
)
def test_how_the_formula_of_an_extent_reads(extent, past, text):
    assert extent.of(in_symbols(past_tokens=past)).text() == text


def test_nothing_is_said_of_what_is_not_there():
    assert Memory(once=True).of(in_symbols()) == 0  # the request has started already
    assert Logits().of(in_symbols(logits="last")) == B


@pytest.mark.parametrize("chunk", [1, 5, 7, 8, 12, 13, 24])
@pytest.mark.parametrize("slots", [0, 1, 3, 9])
def test_blocks_that_a_chunk_may_touch_are_those_of_a_loop(chunk, slots):
    """The most blocks of 8 that any chunk touches, with `slots` tokens behind it."""
    touched = max((begin + chunk + slots - 1) // 8 - begin // 8 + 1 for begin in range(0, 8 * chunk, chunk))
    assert PagedContext(8, chunk=chunk, slots=slots).of(Workload(batch=3, new_tokens=1000)) == 3 * 8 * touched
    assert PagedContext(8, chunk=chunk, slots=slots).of(Workload(new_tokens=1)) == 8


def test_a_context_holds_one_chunk_at_most():
    assert [Context(chunk=7).of(Workload(batch=3, new_tokens=new)) for new in (1, 7, 8, 100)] == [3, 21, 21, 21]


def test_rows_that_reach_experts():
    handed = Routed(Tokens(), 2, handed=7)
    workload = {"batch": 3, "new_tokens": 11}
    assert handed.of(Workload(**workload)) == Routed(Tokens(), 2).of(Workload(**workload)) == 66
    assert handed.of(Workload(**workload, counting="rectangle")) == 231
    assert Routed(Memory(once=True), 2).of(Workload(memory_tokens=5)) == 10
    assert Routed(Memory(), 2).letters == "B·M·X"
