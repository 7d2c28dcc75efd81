"""Pairs of texts in which a token meets some of the others: closed forms against loops over queries and keys."""

import numpy as np
import pytest

from costcalc.expression import Expression, symbols
from costcalc.inventory import (
    BlocksAndMore,
    BlockSparsePairs,
    ChosenBlocks,
    FirstRows,
    FirstTokens,
    LandmarkPairs,
    LocalPairs,
    SlidingPairs,
    StaggeredRows,
    Summed,
    Text,
    TextRows,
    WithSums,
    Workload,
)

LENGTHS = range(1, 40)


def pairs_of(extent, tokens, counting="attended"):
    return extent.of(Workload(new_tokens=tokens, counting=counting))


@pytest.mark.parametrize("window", [2, 3, 4, 9, 40])
@pytest.mark.parametrize("first", [0, 1, 3, 50])
def test_a_window_and_first_tokens(window, first):
    for tokens in LENGTHS:
        seen = sum(
            abs(query - key) <= window // 2 or query < first or key < first
            for query in range(tokens)
            for key in range(tokens)
        )
        assert pairs_of(SlidingPairs(Text(), window, first), tokens) == seen


@pytest.mark.parametrize("half", [1, 2, 4])
def test_chunks_of_a_window(half):
    """Of 2h tokens each, begun every h tokens; and values of three blocks of h, two of them zeros at the ends."""
    text = Text(multiple=2 * half)
    for tokens in LENGTHS:
        filled = -(-tokens // (2 * half)) * 2 * half
        chunks = range(0, filled - half, half)
        assert pairs_of(SlidingPairs(text, 2 * half), tokens, "rectangle") == len(chunks) * (2 * half) ** 2
        assert pairs_of(SlidingPairs(text, 2 * half, 0, True), tokens, "rectangle") == filled * 3 * half
        beside = pairs_of(SlidingPairs(text, 2 * half, 3), tokens, "rectangle")
        assert beside == len(chunks) * (2 * half) ** 2 + 2 * 3 * filled


@pytest.mark.parametrize(("block", "random"), [(1, 0), (1, 2), (2, 1), (3, 0), (4, 3)])
def test_blocks_with_some_others(block, random):
    text = Text(multiple=block, beyond=(5 + 2 * random) * block)
    extent = BlockSparsePairs(text, block, random)
    for tokens in LENGTHS:
        for filled in (False, True):
            dense = tokens <= (5 + 2 * random) * block
            length = tokens if dense or not filled else -(-tokens // block) * block
            last = (length - 1) // block
            pairs = 0
            for query in range(length):
                own = query // block
                near = sum(
                    dense or key // block in (0, last) or own in (0, last) or abs(key // block - own) <= 1
                    for key in range(length)
                )
                pairs += near + (0 if dense or own in (0, last) else random * block)
            assert pairs_of(extent, tokens, "rectangle" if filled else "attended") == pairs


@pytest.mark.parametrize("radius", [0, 1, 4, 30])
@pytest.mark.parametrize("summed", [None, 1, 3, 16])
def test_windows_and_sums(radius, summed):
    extent = LocalPairs(Text(), 2 * radius + 1, summed)
    for tokens in LENGTHS:
        sums = 0 if summed is None else tokens // summed
        near = sum(abs(query - key) <= radius for query in range(tokens) for key in range(tokens))
        assert pairs_of(extent, tokens) == near + tokens * sums
        blocks = -(-tokens // (radius + 1))
        handed = blocks * (radius + 1) * (3 * (radius + 1) + sums)
        assert pairs_of(extent, tokens, "rectangle") == handed
        if summed is not None:
            assert pairs_of(WithSums(Text(), summed), tokens) == tokens + sums
            assert pairs_of(Summed(Text(), summed), tokens) == (tokens if sums else 0)
            assert pairs_of(Summed(Text(), summed), tokens, "rectangle") == tokens * sums


@pytest.mark.parametrize("block", [1, 2, 4, 5, 12])
@pytest.mark.parametrize("staggered", [False, True])
def test_blocks_and_rows_beside_them(block, staggered):
    text = Text(multiple=block, more=3)
    extent, ahead = BlocksAndMore(text, block, staggered), (block - block // 2) * staggered
    for tokens in LENGTHS:
        within = sum(
            (query + ahead) // block == (key + ahead) // block for query in range(tokens) for key in range(tokens)
        )
        assert pairs_of(extent, tokens) == within + 2 * 3 * tokens + 9
        filled = -(-tokens // block) * block
        rows = filled + 2 * (block // 2) * staggered
        assert pairs_of(extent, tokens, "rectangle") == rows * block + 2 * 3 * rows + 9
        assert pairs_of(TextRows(text), tokens, "rectangle") == filled + 3
        if staggered:
            assert pairs_of(StaggeredRows(text, block), tokens, "rectangle") == rows + 3
            assert pairs_of(StaggeredRows(text, block), tokens) == tokens + 3


def test_chosen_blocks():
    """11 tokens are 3 blocks of 4: 5 of 9 pairs in full, 5·16, and 9 of means; of 4 tokens there is one."""
    assert pairs_of(ChosenBlocks(Text(), 4, 5), 11) == 89
    assert pairs_of(ChosenBlocks(Text(), 4, 5, False), 11) == 80
    assert pairs_of(ChosenBlocks(Text(), 4, 5), 3) == 17


def test_landmarks():
    """Of 11 tokens and 3 landmarks: 33 pairs either way, and 9 of landmarks."""
    assert pairs_of(LandmarkPairs(Text(), 3), 11) == 75
    assert pairs_of(LandmarkPairs(Text(), 3, True), 11) == 66


def test_rows_of_first_tokens():
    assert [pairs_of(FirstRows(Text(), 3), tokens) for tokens in (1, 3, 7)] == [1, 3, 3]
    assert [pairs_of(FirstRows(Text(), 3, others=True), tokens) for tokens in (1, 3, 7)] == [1, 3, 7]
    assert pairs_of(FirstRows(Text(), 0, others=True), 7) == 0


def test_a_text_is_filled_up_only_for_kernels_and_where_it_is_long():
    text = TextRows(Text(multiple=8, beyond=20))
    assert [pairs_of(text, tokens) for tokens in (7, 20, 21, 24)] == [7, 20, 21, 24]
    assert [pairs_of(text, tokens, "rectangle") for tokens in (7, 20, 21, 25)] == [7, 20, 24, 32]


def test_the_pooler_reads_the_first_token_of_each_text():
    assert FirstTokens().of(Workload(batch=3, new_tokens=7)) == 3
    assert FirstTokens().of(Workload(batch=3, new_tokens=7, past_tokens=2)) == 0
    assert FirstTokens().of(Workload(batch=3, new_tokens=7, past_tokens=2, counting="rectangle")) == 3


TEXT = Text(multiple=4, beyond=9, more=2)
EXTENTS = [
    SlidingPairs(TEXT, 4, 3),
    SlidingPairs(TEXT, 4, 3, True),
    BlockSparsePairs(TEXT, 4, 1),
    LocalPairs(TEXT, 5, 3),
    WithSums(TEXT, 3),
    Summed(TEXT, 3),
    BlocksAndMore(TEXT, 4, True),
    StaggeredRows(TEXT, 4),
    TextRows(TEXT),
    FirstRows(TEXT, 3),
    LandmarkPairs(TEXT, 3),
    LandmarkPairs(TEXT, 3, True),
    ChosenBlocks(TEXT, 4, 5),
    ChosenBlocks(TEXT, 4, 5, False),
]


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("counting", ["attended", "rectangle"])
def test_arrays_and_symbols_give_the_numbers_of_one_length_at_a_time(extent, counting):
    tokens = np.arange(1, 40)
    swept = extent.of(Workload(batch=3, new_tokens=tokens, counting=counting))
    single = [extent.of(Workload(batch=3, new_tokens=int(length), counting=counting)) for length in tokens]
    assert swept.tolist() == single
    b, t = symbols("B T")
    written = extent.of(type("Symbols", (), {"batch": b, "new_tokens": t, "counting": counting}))
    assert isinstance(written, Expression)
    assert [written.value({"B": 3, "T": int(length)}) for length in tokens] == single
    assert extent == type(extent)(**{name: getattr(extent, name) for name in type(extent).__dataclass_fields__})


@pytest.mark.parametrize("extent", EXTENTS)
def test_an_encoder_beside_a_decoder_reads_memory_tokens_once(extent):
    made = {name: getattr(extent, name) for name in type(extent).__dataclass_fields__}
    of_source = type(extent)(**{**made, "text": Text(True, 4, 9, 2)})
    for counting in ("attended", "rectangle"):
        alone = extent.of(Workload(batch=3, new_tokens=17, counting=counting))
        assert of_source.of(Workload(batch=3, new_tokens=2, memory_tokens=17, counting=counting)) == alone
        assert of_source.of(Workload(batch=3, past_tokens=1, memory_tokens=17, counting=counting)) == 0
    assert (extent.letters[2], of_source.letters[2]) in (("T", "M"), ("P", "M"))
