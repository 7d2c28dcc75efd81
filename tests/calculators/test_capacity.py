from itertools import count, takewhile

import pytest

from costcalc import load
from costcalc.calculators.capacity import LEDGER, PAGING, Paging, capacity, ledger, paged, pool_of_blocks
from costcalc.calculators.figure import MODELLED, given
from costcalc.calculators.kv_cache import kv_cache
from costcalc.errors import CostcalcError
from costcalc.inventory import Cached, Context, Inventory, Memory, PagedContext, PagedMemory

ATTENTION = {"heads": 6, "kv_heads": 2, "head_dim": 5}
WHOLE = {"repeat": 3, "name": "whole", "attention": ATTENTION}
LOCAL = {"repeat": 2, "name": "local", "attention": {**ATTENTION, "window": 7}}
STATE = Cached("s", {"B": Context(window=1), "D": 13}, times=3, kind="state", dtype="fp32")


def pool(size):
    return given("pool_bytes", "bytes", size)


def fit(inventory, size, context, *, dtype="bf16", paging=None):
    """(conversations, longest context) as numbers."""
    found = capacity(inventory, pool(size), context, dtype=dtype, paging=paging)
    return tuple(figure and figure.value for figure in (found.conversations, found.longest_context))


def by_trying(held, size, context, dtype):
    """The same, one after another: `held(tokens)` bytes are what a single conversation takes."""
    conversations = len(list(takewhile(lambda n: n * held(context, dtype) <= size, count(1))))
    return conversations, len(list(takewhile(lambda tokens: held(tokens, dtype) <= size, range(1, 200))))


def test_a_capacity_worked_out(small):
    # 2 x 3 layers x 10 x 2 bytes are 120 a token; 11 tokens are 1,320
    found = capacity(small(), pool(10_000), 11, dtype="bf16")
    assert (found.conversation.value, found.conversations.value, found.longest_context.value) == (1_320, 7, 83)
    assert found.concurrency == 10_000 / 1_320
    assert found.pool.value == 10_000
    # to the byte: 7 x 1,320 and 83 x 120
    assert (fit(small(), 9_240, 11)[0], fit(small(), 9_239, 11)[0]) == (7, 6)
    assert (fit(small(), 9_960, 11)[1], fit(small(), 9_959, 11)[1]) == (83, 82)


@pytest.mark.parametrize("dtype", ["bf16", "q8_0", "int4"])
@pytest.mark.parametrize("layers", [[WHOLE], [WHOLE, LOCAL]])
def test_conversations_and_longest_context_are_those_of_a_loop(small, dtype, layers):
    inventory = small(layers=layers)

    def held(tokens, dtype):
        elements = sum(20 * layer["repeat"] * min(tokens, layer["attention"].get("window", tokens)) for layer in layers)
        return {"bf16": 2 * elements, "q8_0": -(-elements * 34 // 32), "int4": -(-elements // 2)}[dtype]

    for size in (0, 29, 59, 60, 120, 1_000, 1_319, 1_320, 1_321, 5_003):
        for context in (1, 6, 7, 8, 11):
            assert fit(inventory, size, context, dtype=dtype) == by_trying(held, size, context, dtype), (size, context)


def test_each_conversation_is_rounded_up_by_itself():
    # one token: 2 x 5 elements, 10.625 bytes in q8_0, so 11; in 106 bytes there are 9 of them and not 9.98
    keys = Cached("k", {"B·S": Context(), "K": 2, "H": 5})
    assert fit(Inventory((keys,), {}), 106, 1, dtype="q8_0") == (9, 9)  # 9 tokens together are 95.6 up to 96
    assert fit(Inventory((keys,), {}), 107, 1, dtype="q8_0") == (9, 10)  # 10 tokens together are 106.25 up to 107


def test_the_cache_is_a_curve_and_no_rate(small):
    mixed = small(layers=[WHOLE, LOCAL])
    # 200 bytes a token up to 7, then 120: 1,400 + 120·(S - 7) <= 13,400 holds to S = 107, where pool / 200 is 67
    assert fit(mixed, 13_400, 7) == (9, 107)
    assert fit(mixed, 13_399, 7) == (9, 106)


def test_a_cache_that_stops_growing_has_no_longest_context(small):
    windowed = small(attention={"window": 7})
    assert fit(windowed, 839, 11) == (0, 6)  # 7 x 120 = 840
    assert fit(windowed, 840, 11) == (1, None)
    assert fit(windowed, 10**6, 11) == (1_190, None)


@pytest.mark.parametrize("size", [-1, -10_000])
def test_nothing_fits_into_less_than_nothing(small, size):
    found = capacity(small(), pool(size), 11, dtype="bf16")
    assert (found.conversations.value, found.longest_context.value) == (0, 0)
    assert found.concurrency == size / 1_320 < 0


def test_what_holds_nothing_has_no_number_of_conversations(small):
    nothing = capacity(Inventory((), {}), pool(1_000), 11, dtype="bf16")
    assert (nothing.conversations, nothing.longest_context, nothing.concurrency) == (None, None, 0.0)
    assert nothing.conversation.value == 0


def test_a_ledger_worked_out():
    memory, kept, weights = (
        given(name, "bytes", size) for name, size in [("memory_bytes", 1_009), ("kept", 101), ("weights", 691)]
    )
    left = ledger(memory, kept, weights)
    assert (left.name, left.unit, left.value) == ("pool_bytes", "bytes", 217)
    assert left.formula.text() == "memory_bytes - kept - weights"
    assert left.numbers.text() == "1,009 - 101 - 691"
    assert [figure.name for figure in left.inputs] == ["memory_bytes", "kept", "weights"]
    assert ledger(weights, kept, memory).value == -419  # 691 - 101 - 1,009
    assert left.source == LEDGER


def test_states_are_part_of_a_conversation_and_no_blocks_of_tokens(small):
    """A layer of Mamba keeps 110 inputs of 2 bytes and 66 numbers of 4; one of attention 40 bytes a token."""
    mamba = {"kind": "mamba1", "d_inner": 22, "d_state": 3, "d_conv": 5, "dt_rank": 7}
    hybrid = small(layers=[{"repeat": 2, "mixer": mamba}, {"attention": ATTENTION}])
    state = 2 * (110 * 2 + 66 * 4)
    for paging, tokens, way in ((None, 11, "architectural"), (Paging(), 16, "engine_reserved")):
        found = capacity(hybrid, pool(100_000), 11, dtype="bf16", paging=paging)
        assert (found.state.value, found.conversation.value) == (state, state + 40 * tokens)
        assert found.state.name == f"{way}.state_bytes_per_conversation"
        assert found.longest_context.value == (100_000 - state) // 40 // (16 if paging else 1) * (16 if paging else 1)
    assert capacity(small(), pool(100_000), 11, dtype="bf16").state.value == 0
    with pytest.raises(CostcalcError, match="recurrent layers hold states"):
        pool_of_blocks(hybrid, 7, paging=Paging(), dtype="bf16")


def test_the_working_of_a_capacity(small):
    found = capacity(small(), pool(10_000), 11, dtype="bf16")
    assert found.conversation.name == "architectural.bytes_per_conversation"
    assert found.conversation.numbers.text() == "660·2"
    name = "architectural.conversations"
    assert (found.conversations.name, found.conversations.unit, found.conversations.source) == (name, "", LEDGER)
    written = "max(floor(pool_bytes / architectural.bytes_per_conversation), 0)"
    assert found.conversations.formula.text() == written
    assert found.conversations.numbers.text() == "max(floor(10,000 / 1,320), 0)"
    longest = found.longest_context
    assert (longest.name, longest.unit, longest.source) == ("architectural.longest_context", "tokens", LEDGER)
    assert longest.formula == "the largest S whose cache fits into the pool"
    # 60 elements a token in 2 bytes: 83 tokens take 9,960 bytes, and one more would add 120.
    assert [(below.name, below.value) for below in longest.inputs] == [
        ("pool_bytes", 10_000),
        ("longest_architectural_kv_cache_bytes", 9_960),
        ("longest_architectural_kv_bytes_per_token", 120),
    ]
    reserved = capacity(small(), pool(10_000), 11, dtype="bf16", paging=Paging())
    assert reserved.conversation.name == "engine_reserved.bytes_per_conversation"
    assert reserved.conversations.name == "engine_reserved.conversations"
    assert reserved.longest_context.name == "engine_reserved.longest_context"
    assert reserved.conversations.source == reserved.longest_context.source == PAGING


def test_what_goes_into_the_pool_goes_into_the_answers(small):
    weights = given("weights", "bytes", 7)
    modelled = type(weights)("weights", "bytes", weights.expression, found=7, words="a mix", status=MODELLED)
    left = ledger(given("memory", "bytes", 10_007), given("kept", "bytes", 0), modelled)
    found = capacity(small(), left, 11, dtype="bf16")
    assert (found.conversations.value, found.conversations.nature, found.longest_context.nature) == (
        7,
        MODELLED,
        MODELLED,
    )


def blocks_at_worst(context, window, slots, block):
    """The most blocks that the latest window + slots tokens lie in, on the way to this context."""
    return max(len({t // block for t in range(max(0, n - window - slots), n)}) for n in range(1, context + 1))


@pytest.mark.parametrize("block", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("slots", [0, 3])
@pytest.mark.parametrize("honours_windows", [True, False])
def test_blocks_are_those_that_a_loop_counts(small, block, slots, honours_windows):
    paging = Paging(block, slots, honours_windows)
    inventory = small(layers=[WHOLE, LOCAL])
    for context in (1, 2, 6, 7, 8, 9, 11, 16, 17, 31):
        whole = len({t // block for t in range(context)})
        local = blocks_at_worst(context, 7, slots, block) if honours_windows else whole
        found = capacity(inventory, pool(50_000), context, dtype="bf16", paging=paging)
        held = 2 * 20 * block * (3 * whole + 2 * local)
        assert found.conversation.value == held
        assert found.conversations.value == 50_000 // held
    longest = fit(inventory, 5_003, 1, paging=paging)[1]
    fits = [kv_cache(paged(inventory, paging), tokens).bytes <= 5_003 for tokens in range(1, 200)]
    assert fits == [True] * longest + [False] * (199 - longest)


def test_paging_worked_out(small):
    # blocks of 16: 11 tokens take one, 17 two; 120 bytes a token
    found = capacity(small(), pool(10_000), 17, dtype="bf16", paging=Paging())
    assert (found.conversation.value, found.conversations.value, found.longest_context.value) == (3_840, 2, 80)
    # a window of 7 in blocks of 4 touches ceil(6 / 4) + 1 = 3 of them, with 3 in flight still 4
    windowed = small(attention={"window": 7})
    assert capacity(windowed, pool(0), 99, dtype="bf16", paging=Paging(4)).conversation.value == 1_440
    assert capacity(windowed, pool(0), 99, dtype="bf16", paging=Paging(4, 3)).conversation.value == 1_920
    assert fit(windowed, 1_440, 99, paging=Paging(4)) == (1, None)
    whole = Paging(4, honours_windows=False)
    assert capacity(windowed, pool(0), 99, dtype="bf16", paging=whole).conversation.value == 12_000  # 25 blocks


CROSS = Cached("x", {"B·M": Memory(), "K": 2, "H": 5}, kind="cross")


def test_what_does_not_grow_with_the_text_is_not_paged():
    inventory = Inventory((STATE,), {})
    assert paged(inventory, Paging()) == inventory
    assert paged(Inventory((STATE._replace(kind="kv"),), {}), Paging(5, 2)).records[0].axes == {
        "B": PagedContext(5, 1, 2),
        "D": 13,
    }


def test_encoder_tokens_are_set_aside_in_blocks_as_well():
    """M = 23 tokens take two blocks of 16: 2 x 16 x 2 x 5 numbers of 2 bytes."""
    record = paged(Inventory((CROSS,), {}), Paging(16, 5)).records[0]
    assert record.axes == {"B·M": PagedMemory(16), "K": 2, "H": 5}
    found = capacity(Inventory((CROSS,), {}), pool(1_000), 11, dtype="bf16", memory_tokens=23, paging=Paging(16))
    assert (found.conversation.value, found.conversations.value) == (640, 1)
    assert capacity(Inventory((CROSS,), {}), pool(1_000), 11, dtype="bf16", memory_tokens=23).conversation.value == 460


@pytest.mark.parametrize(
    ("inventory", "why"),
    [
        (Inventory((CROSS,), {}), "hold decoder tokens or encoder tokens"),
        (Inventory((), {"encoder": ("encoder.layers",)}), "are not for an encoder, which has none"),
    ],
)
def test_blocks_say_nothing_where_they_hold_different_things_or_none(inventory, why):
    with pytest.raises(CostcalcError, match=f"^blocks of a cache {why}$"):
        pool_of_blocks(inventory, 7, paging=Paging(), dtype="bf16")


def test_blocks_of_an_engine(small):
    # a block of 16 tokens: 1,920 bytes in three layers
    found = pool_of_blocks(small(), 229, paging=Paging(), dtype="bf16")
    assert (found.name, found.unit, found.value, found.source) == ("pool_bytes", "bytes", 439_680, PAGING)
    assert found.formula.text() == "blocks·block_bytes"
    assert found.numbers.text() == "229·1,920"
    assert pool_of_blocks(small(), 3, paging=Paging(5), dtype="q8_0").value == 957  # 300·34 / 32 = 318.75, up, thrice
    # a block has room for all its tokens in a layer whose window is shorter
    assert pool_of_blocks(small(attention={"window": 7}), 229, paging=Paging(), dtype="bf16").value == 439_680


def test_the_working_of_blocks_tells_its_cache_from_that_of_a_conversation(small, values_by_name):
    size = pool_of_blocks(small(), 29, paging=Paging(), dtype="bf16")
    found = [capacity(small(), size, 17, dtype="bf16", paging=paging) for paging in (None, Paging())]
    values = values_by_name(figure for each in found for figure in (each.conversations, each.longest_context))
    assert values["block_kv_cache_elements", "elements"] == 960  # 16 x 60
    assert values["conversation_kv_cache_elements", "elements"] == 1_020  # 17 x 60
    assert values["engine_kv_cache_elements", "elements"] == 1_920  # 32 x 60


@pytest.mark.parametrize(
    ("model", "dtype", "blocks", "tokens", "context", "concurrency"),
    [
        # vLLM's log: so many GPU blocks of 16 tokens, and concurrency for so many tokens a request: tokens / context
        ("llama-3-8b", "bf16", 1_952, 31_232, 20_000, 1.5616),
        ("llama-3-8b", "bf16", 1_478, 23_648, 29_000, 0.8154),
        ("llama-2-7b", "fp16", 229, 3_664, 4_096, 0.8945),
    ],
)
def test_published_logs_of_engines(model, dtype, blocks, tokens, context, concurrency):
    inventory = load(model).inventory
    size = pool_of_blocks(inventory, blocks, paging=Paging(), dtype=dtype)
    found = capacity(inventory, size, context, dtype=dtype)
    assert round(found.concurrency, 4) == concurrency
    assert (found.longest_context.value, found.conversations.value) == (tokens, int(concurrency))
    reserved = capacity(inventory, size, context, dtype=dtype, paging=Paging())
    assert reserved.longest_context.value == tokens
    assert round(reserved.concurrency, 4) == round(blocks / -(-context // 16), 4)  # 29,000 tokens take 1,813 blocks


def test_the_memory_of_a_published_pool():
    """229 blocks of Llama-2-7B in fp16: 3,664 x 512 KiB."""
    size = pool_of_blocks(load("7b").inventory, 229, paging=Paging(), dtype="fp16").value
    assert size / 2**30 == 1.7890625


def test_more_memory_never_holds_less(small):
    inventory = small(layers=[WHOLE, LOCAL])
    for paging in (None, Paging(5), Paging(5, 2, honours_windows=False)):
        fits = [fit(inventory, size, 11, paging=paging) for size in range(0, 6_000, 293)]
        assert fits == sorted(fits)
        plain = [fit(inventory, size, 11) for size in range(0, 6_000, 293)]
        assert all(reserved <= needed for reserved, needed in zip(fits, plain, strict=True))


def test_answers_are_frozen(small):
    with pytest.raises(AttributeError):
        capacity(small(), pool(1), 11, dtype="bf16").pool = pool(2)
    with pytest.raises(AttributeError):
        Paging().block = 4
    assert Paging() == Paging(16, 0, True)
