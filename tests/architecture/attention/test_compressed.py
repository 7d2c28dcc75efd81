"""Compressed attention: its records, DeepSeek-V4's published sizes, and what it cannot be."""

import pytest

import costcalc
from costcalc.architecture.attention import Compressed
from costcalc.architecture.attention.compression import Compression, EntryChoice
from costcalc.architecture.block import is_recurrent
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import (
    Cached,
    Context,
    Entries,
    EntryPairs,
    Matmul,
    Overlapping,
    Pairs,
    Tokens,
    Waiting,
    Weight,
    Workload,
)

AT = At("decoder.layers.attention", times=3)
SIZES = {"heads": 6, "head_dim": 5, "q_rank": 17, "window": 4, "out_groups": 2, "out_rank": 7}
SMALL = Compressed(**SIZES)
ALL, SOME = Compression(rate=11), Compression(rate=3, overlap=True, choice=EntryChoice(heads=2, head_dim=19, entries=8))


def path(name):
    return f"{AT.path}.{name}"


def weight(name, axes):
    return Weight(path(name), axes, 3)


def linear(name, axes):
    return [weight(name, axes), Matmul(path(name), {"B·T": Tokens(), **axes}, 3, path(name))]


def core(name, pairs, axes):
    return Matmul(path(name), {"B·P": pairs, **axes}, 3, None, name.rpartition(".")[2])


def held(name, size, axes):
    return Cached(path(name), {size.letters: size, **axes}, 3)


def records(**changes):
    return list(SMALL.model_copy(update=changes).records(AT, 13, DECODER))


QUERIES = {"N": 6, "H": 5}
PLAIN = [
    *linear("q_down", {"D": 13, "R_q": 17}),
    weight("q_norm", {"R_q": 17}),
    *linear("q_up", {"R_q": 17, **QUERIES}),
    *linear("kv", {"D": 13, "H": 5}),
    weight("kv_norm", {"H": 5}),
    weight("sinks", {"N": 6}),
    core("scores", Pairs(4), QUERIES),
    core("values", Pairs(4), QUERIES),
    held("kv_cache", Context(4), {"H": 5}),
]
OUTPUT = [
    *linear("output_down", {"groups": 2, "block_in": 15, "R_out": 7}),
    *linear("output_up", {"groups": 2, "R_out": 7, "D": 13}),
]


def test_every_record_of_a_window():
    assert records() == [*PLAIN, *OUTPUT]
    assert records(held_twice=True)[-6:-4] == [held(name, Context(4), {"H": 5}) for name in ("k_cache", "v_cache")]


def of_entries(where, rate, numbers, *, overlap):
    each = {"series": 2, **numbers} if overlap else numbers
    yield from linear(f"{where}.kv", {"D": 13, **each})
    yield from linear(f"{where}.weights", {"D": 13, **each})
    yield weight(f"{where}.places", {"rate": rate, **each})
    yield weight(f"{where}.norm", numbers)
    yield held(f"{where}.entries", Entries(rate), numbers)
    for name in ("kv", "weights"):
        yield held(f"{where}.waiting_{name}", Waiting(rate), each)
        if overlap:
            yield held(f"{where}.overlapping_{name}", Overlapping(rate), numbers)


def test_every_record_of_entries():
    met = [core(f"compression.{name}", EntryPairs(11), QUERIES) for name in ("scores", "values")]
    entries = of_entries("compression", 11, {"H": 5}, overlap=False)
    assert records(compression=ALL) == [*PLAIN, *entries, *met, *OUTPUT]


def test_every_record_of_chosen_entries():
    asked = {"N_index": 2, "H_index": 19}
    assert records(compression=SOME) == [
        *PLAIN,
        *of_entries("compression", 3, {"H": 5}, overlap=True),
        *of_entries("compression.choice", 3, {"H_index": 19}, overlap=True),
        *linear("compression.choice.q_up", {"R_q": 17, **asked}),
        *linear("compression.choice.head_weights", {"D": 13, "N_index": 2}),
        core("compression.choice.scores", EntryPairs(3), asked),
        *(core(f"compression.{name}", EntryPairs(3, 8), QUERIES) for name in ("scores", "values")),
        *OUTPUT,
    ]


def written(*, positions="rope", **changes):
    layer = {"repeat": 3, "attention": {"kind": "compressed", **SIZES, "head_dim": 8, **changes}}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": positions, "layers": [layer]}


def test_deepseek_v4_flash():
    """What a layer holds at 1,048,576 tokens: 128 tokens of 512 numbers, and 8,192 entries of a heavy one; of a sparse
    one 262,144 entries of 512 and of 128, and of each twice four tokens more.
    """
    sizes = {"heads": 64, "head_dim": 512, "q_rank": 1_024, "window": 128, "out_groups": 8, "out_rank": 1_024}
    sparse = {"rate": 4, "overlap": True, "choice": {"heads": 64, "head_dim": 128, "entries": 512}}
    heavy, both = (
        costcalc.kv_cache(costcalc.load(written(**sizes, compression=some)), 2**20).elements
        for some in ({"rate": 128}, sparse)
    )
    assert heavy == 3 * 512 * (128 + 8_192)
    assert both == 3 * (512 * (128 + 262_144 + 2 * 4) + 128 * (262_144 + 2 * 4))


def test_a_step_meets_a_window_and_entries():
    """At 100 tokens: 4 of a window, 9 entries of 11 tokens; 2·2·6·8 FLOPs each."""
    arch = costcalc.load(written(compression={"rate": 11}))
    assert costcalc.flops(arch, Workload(past_tokens=99)).attention == 3 * 4 * 6 * 8 * (4 + 9)
    assert is_recurrent(arch.groups[0].block)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out_groups": 5}, "heads 6 x head_dim 8 is not a multiple of out_groups 5"),
        ({"window": None}, "window"),
        ({"compression": {"rate": 0}}, "rate"),
        ({"positions": {"kind": "rope", "rotary_dim": 10}}, "rotary_dim 10 is more than head_dim 8"),
    ],
)
def test_what_cannot_be(changes, message):
    with pytest.raises(CostcalcError, match=message):
        costcalc.load(written(**changes))


def test_it_is_for_a_decoder():
    layers = written()["layers"]
    with pytest.raises(CostcalcError, match="looks back only"):
        costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "encoder": {"layers": layers}})


def test_its_line():
    line = SMALL.model_copy(update={"compression": SOME}).summary(13)
    assert line == (
        "6 query heads of 5 on one array of keys and values, window 4, one entry for 3 tokens, of twice as many,"
        " of which 8 are chosen by 2 heads of 19, output of rank 2 x 7"
    )
