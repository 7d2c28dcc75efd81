import numpy as np
import pytest

from costcalc import load
from costcalc.calculators.kv_cache import (
    NO_CACHE,
    KVCache,
    LayerCache,
    held_bytes,
    kv_cache,
    layer_caches,
    without_windows,
)
from costcalc.errors import CostcalcError
from costcalc.inventory import Cached, Context, Inventory, Memory, Workload

KV = Cached("decoder.layers.attention.k_cache", {"B·S": Context(), "K": 2, "H": 5}, times=3)
CROSS = Cached("decoder.layers.cross.k_cache", {"B·M": Memory(), "K": 2, "H": 7}, times=3, kind="cross")
ONCE = Context(window=1)  # one row a sequence, however long it is
STATE = Cached("decoder.layers.mixer.state", {"B": ONCE, "D": 13, "state": 17}, times=3, kind="state", dtype="fp32")


def test_a_cache_worked_out(small):
    cache = kv_cache(small(), 11)
    assert cache.elements == 660  # keys and values of 11 tokens, 3 layers, K x H = 10: 2 x 11 x 3 x 10
    assert (cache.bytes, cache.bytes_per_token) == (1_320, 120)  # bf16: two bytes each
    assert (cache.cross_elements, cache.state_elements, cache.state_bytes) == (0, 0, 0)


def test_every_sequence_of_a_batch_holds_its_own(small):
    one, three = kv_cache(small(), 11), kv_cache(small(), 11, batch=3)
    assert (three.elements, three.bytes) == (3 * one.elements, 3 * one.bytes)
    assert three.bytes_per_token == 3 * one.bytes_per_token == 360


@pytest.mark.parametrize(
    ("dtype", "size", "next_token"),
    [
        # 660 elements, and 60 more
        ("fp64", 5_280, 480),
        ("fp32", 2_640, 240),
        ("fp16", 1_320, 120),
        ("bf16", 1_320, 120),
        ("fp8", 660, 60),
        ("int8", 660, 60),
        ("int4", 330, 30),
        ("q8_0", 702, 63),  # 660 x 34 / 32 = 701.25; 720 x 34 / 32 = 765
        ("q5_1", 495, 45),  # 660 x 24 / 32
        ("q5_0", 454, 41),  # 453.75; 495
        ("q4_1", 413, 37),  # 412.5; 450
        ("q4_0", 372, 33),  # 371.25; 405
        ("mxfp8", 681, 62),  # 680.625; 742.5
        ("mxfp4", 351, 32),  # 350.625; 382.5
        ("float8_e4m3fn", 660, 60),
        ("BFloat16", 1_320, 120),
    ],
)
def test_bytes_in_every_dtype_are_rounded_up_once(small, dtype, size, next_token):
    cache = kv_cache(small(), 11, dtype=dtype)
    assert (cache.elements, cache.bytes, cache.bytes_per_token) == (660, size, next_token)


def test_an_unknown_dtype_is_refused(small):
    with pytest.raises(CostcalcError, match=r"^unknown dtype 'int3'$"):
        kv_cache(small(), 11, dtype="int3")


@pytest.mark.parametrize(
    ("context", "elements", "bytes_per_token"),
    # a window of 7: 60 elements a token until 7 are held
    [(1, 60, 120), (6, 360, 120), (7, 420, 0), (8, 420, 0), (1_000, 420, 0)],
)
def test_a_window_stops_growing(small, context, elements, bytes_per_token):
    cache = kv_cache(small(attention={"window": 7}), context)
    assert (cache.elements, cache.bytes, cache.bytes_per_token) == (elements, 2 * elements, bytes_per_token)


def test_windowed_layers_stop_growing_and_the_others_do_not(small):
    attention = {"heads": 6, "kv_heads": 2, "head_dim": 5}
    local = {"repeat": 2, "name": "local", "attention": {**attention, "window": 7}}
    mixed = small(layers=[local, {"name": "whole", "attention": attention}])
    # a layer holds 20 elements a token; 2 layers hold at most 7 tokens
    grown = [(kv_cache(mixed, n).elements, kv_cache(mixed, n).bytes_per_token) for n in (6, 7, 8, 100)]
    assert grown == [(360, 120), (420, 40), (440, 40), (2_280, 40)]


def test_the_next_token_adds_the_difference_of_two_caches(small):
    inventory = small(attention={"window": 7})
    for dtype in ("bf16", "q8_0", "int4"):
        for context in range(1, 17):
            now, then = (kv_cache(inventory, n, dtype=dtype, batch=3) for n in (context, context + 1))
            assert now.bytes_per_token == then.bytes - now.bytes


def test_a_window_as_long_as_the_context_holds_all_of_it(small):
    assert kv_cache(small(attention={"window": 12}), 11) == kv_cache(small(), 11)
    assert kv_cache(small(attention={"window": 11}), 11).bytes == kv_cache(small(), 11).bytes


def test_as_many_key_heads_as_query_heads_hold_three_times_two(small):
    assert kv_cache(small(attention={"kv_heads": 6}), 11) == kv_cache(small(attention={"kv_heads": None}), 11)
    assert kv_cache(small(attention={"kv_heads": 6}), 11).elements == 3 * kv_cache(small(), 11).elements


def test_cross_attention_holds_the_encoders_tokens_and_grows_no_more():
    cache = kv_cache(Inventory((KV, CROSS), {}), 11, batch=2, memory_tokens=23)
    assert cache.elements == 660  # 2 x 11 x 10 x 3
    assert cache.cross_elements == 1_932  # 2 x 23 x 14 x 3
    assert (cache.bytes, cache.bytes_per_token) == (5_184, 120)


def test_a_state_keeps_its_own_dtype_and_its_size():
    for dtype, kv_bytes in (("bf16", 1_320), ("fp8", 660)):
        cache = kv_cache(Inventory((KV, STATE), {}), 11, batch=2, dtype=dtype)
        assert (cache.elements, cache.state_elements) == (660, 1_326)  # 2 x 13 x 17 x 3
        assert cache.state_bytes == 5_304  # 4 bytes each, whatever --dtype says
        assert cache.bytes == kv_bytes + 5_304
        assert cache.bytes_per_token == kv_bytes // 11


def test_a_state_without_a_dtype_follows_the_option():
    cache = kv_cache(Inventory((STATE._replace(dtype=None),), {}), 11, dtype="fp8")
    assert (cache.state_elements, cache.state_bytes, cache.bytes) == (663, 663, 663)


def test_elements_of_one_dtype_are_put_together_before_they_are_rounded():
    # 3 x 11 x 10 = 330 for keys, as many for values: 701.25 together, and not twice 350.625
    values = KV._replace(path="decoder.layers.attention.v_cache")
    assert kv_cache(Inventory((KV, values), {}), 11, dtype="q8_0").bytes == 702
    pinned = values._replace(dtype="q8_0")
    assert kv_cache(Inventory((KV, pinned), {}), 11, dtype="q8_0").bytes == 702
    assert kv_cache(Inventory((KV, pinned), {}), 11, dtype="bf16").bytes == 660 + 351


def test_an_encoder_of_no_tokens_leaves_nothing_to_hold():
    assert kv_cache(Inventory((KV, CROSS), {}), 11).cross_elements == 0


def test_an_answer_is_frozen(small):
    with pytest.raises(AttributeError):
        kv_cache(small(), 11).bytes = 0


def test_nothing_holds_nothing():
    cache = kv_cache(Inventory((), {}), 11)
    assert (cache.elements, cache.bytes, cache.bytes_per_token) == (0, 0, 0)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (0, "context must be between 1 and 1,000,000,000,000,000, got 0"),
        (-1, "context must be between 1 and 1,000,000,000,000,000, got -1"),
        (1.5, "context must be a whole number, got 1.5"),
        (True, "context must be a whole number, got true"),
        ("8k", "context must be a whole number, got '8k'"),
    ],
)
def test_a_context_that_is_no_length_is_refused(small, context, said):
    with pytest.raises(CostcalcError) as caught:
        kv_cache(small(), context)
    assert caught.value.what == said


def test_a_batch_that_is_no_length_is_refused(small):
    with pytest.raises(CostcalcError, match=r"^batch must be between 1 and "):
        kv_cache(small(), 11, batch=0)


@pytest.mark.parametrize(
    ("model", "context", "per_token", "size"),
    [
        ("gpt2", 1_024, 36 * 2**10, 36 * 2**20),  # 2 x 12 layers x 768 x 2 bytes
        ("7b", 4_096, 512 * 2**10, 2 * 2**30),  # 2 x 32 x 32 x 128 x 2
        ("8b", 8_192, 128 * 2**10, 2**30),  # 2 x 32 x 8 x 128 x 2
        ("llama-3.1-405b", 1_000, 516_096, 516_096_000),  # arXiv 2505.09343, table 1
    ],
)
def test_published_caches_in_16_bits(model, context, per_token, size):
    cache = kv_cache(load(model).inventory, context)
    assert (cache.bytes_per_token, cache.bytes) == (per_token, size)


def test_the_cache_of_llama_3_8b_in_q8_0():
    cache = kv_cache(load("8b").inventory, 8_192, dtype="q8_0")
    assert (cache.bytes, cache.bytes_per_token) == (570_425_344, 69_632)  # 2^29 x 34 / 32, 2^16 x 34 / 32


def test_arrays_of_contexts_and_batches_give_the_numbers_of_one_at_a_time(small):
    inventory, contexts, batches = small(attention={"window": 7}), [1, 6, 7, 64], [1, 2, 3, 5]
    swept = kv_cache(inventory, np.array(contexts), batch=np.array(batches), dtype="q8_0")
    for index, (context, batch) in enumerate(zip(contexts, batches, strict=True)):
        one = kv_cache(inventory, context, batch=batch, dtype="q8_0")
        for name in ("elements", "bytes", "bytes_per_token"):
            assert getattr(swept, name)[index] == getattr(one, name)


def test_an_encoder_alone_keeps_nothing_which_is_not_zero(pair):
    cache = kv_cache(pair(decoder=None), 11)
    assert cache == NO_CACHE
    assert {getattr(cache, name) for name in KVCache.__slots__} == {None}
    assert held_bytes(pair(decoder=None), 11) == 0


def test_a_pair_keeps_what_it_wrote_and_once_what_it_read(pair):
    """2·3·11·2·5 = 660 and 2·3·7·5·7 = 1,470; the next token adds 60."""
    cache = kv_cache(pair(), 11, memory_tokens=7)
    assert (cache.elements, cache.cross_elements, cache.bytes, cache.bytes_per_token) == (660, 1_470, 4_260, 120)
    assert held_bytes(pair(), 11, memory_tokens=7) == 4_260
    assert kv_cache(pair(), 1, memory_tokens=7).cross_elements == 1_470


def test_a_pair_is_asked_with_its_encoder_tokens(pair, small):
    with pytest.raises(CostcalcError, match="reads encoder tokens, and none are given"):
        kv_cache(pair(), 11)
    with pytest.raises(CostcalcError, match="nothing reads memory_tokens"):
        kv_cache(small(), 11, memory_tokens=7)
    with pytest.raises(CostcalcError, match="nothing reads memory_tokens"):
        kv_cache(pair(decoder=None), 11, memory_tokens=7)


HEADS = {"heads": 6, "kv_heads": 2, "head_dim": 5}
LAYERED = [
    {"name": "chunked", "repeat": 2, "attention": {**HEADS, "chunk": 7}},
    {"name": "local", "attention": {**HEADS, "window": 5, "v_dim": 3}},
    {"name": "reads", "repeat": 3, "attention": {**HEADS, "window": 5, "v_dim": 3, "cache_of": "local"}},
]


def test_what_layers_hold_where_they_differ(small):
    """11 tokens of 3 sequences: 2 layers of 7 on 2·(5 + 5), one of 5 on 2·(5 + 3), three that hold nothing."""
    held = layer_caches(small(layers=LAYERED), Workload(batch=3, new_tokens=11))
    assert held == {
        "decoder.layers.chunked": LayerCache(layers=2, tokens=7, elements=3 * 2 * 7 * 20),
        "decoder.layers.local": LayerCache(layers=1, tokens=5, elements=3 * 5 * 16),
        "decoder.layers.reads": LayerCache(layers=3, tokens=0, elements=0),
    }
    whole = kv_cache(small(layers=LAYERED), 11, batch=3)
    assert sum(each.elements for each in held.values()) == whole.elements


MAMBA = {"kind": "mamba1", "d_inner": 22, "d_state": 3, "d_conv": 5, "dt_rank": 7}


def test_what_layers_hold_that_have_a_state(small):
    """3 sequences of 11 tokens: 2 layers of 110 inputs and 66 numbers, one of 20 a token, one of both."""
    layers = [
        {"name": "mamba", "repeat": 2, "mixer": MAMBA},
        {"name": "attention", "attention": HEADS},
        {"name": "both", "attention": {**HEADS, "window": 5}, "mixer_beside": MAMBA},
    ]
    held = layer_caches(small(layers=layers), Workload(batch=3, new_tokens=11))
    assert held == {
        "decoder.layers.mamba": LayerCache(layers=2, tokens=0, elements=3 * 352, state_elements=3 * 352),
        "decoder.layers.attention": LayerCache(layers=1, tokens=11, elements=3 * 220),
        "decoder.layers.both": LayerCache(layers=1, tokens=5, elements=3 * (100 + 176), state_elements=3 * 176),
    }
    whole = kv_cache(small(layers=layers), 11, batch=3)
    assert sum(each.elements for each in held.values()) == whole.elements + whole.state_elements
    assert sum(each.state_elements for each in held.values()) == whole.state_elements


def test_layers_that_hold_the_same_are_not_told_apart(small):
    same = [{"attention": HEADS}, {"attention": HEADS, "feed_forward": {"d_ff": 37}}]
    assert layer_caches(small(layers=same), Workload(new_tokens=11)) == {}
    state = Inventory((STATE._replace(axes={"D": 13}), KV), {"decoder": ("decoder.layers",) * 3})
    assert layer_caches(state, Workload(new_tokens=11)) == {}


def test_without_windows_every_layer_holds_the_whole_context(small):
    # 11 tokens: 2 layers on 2·(5 + 5), one on 2·(5 + 3)
    assert kv_cache(without_windows(small(layers=LAYERED)), 11).elements == 11 * (2 * 20 + 16)
    assert without_windows(small()) == small()
