"""Attention that meets chosen blocks of keys: its records, MiniMax-M3's published sizes, and what it cannot be."""

import pytest

import costcalc
from costcalc.architecture.attention.block_choice import BlockChoice
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import BlockPairs, Cached, Context, Matmul, Pairs, Tokens, Weight, Workload

AT = At("decoder.layers.attention.block_choice", times=3)
SMALL = BlockChoice(heads=2, head_dim=7, block=5, blocks=3)
CHOICE = {"heads": 2, "head_dim": 7, "block": 5, "blocks": 3}


def path(name):
    return f"{AT.path}.{name}"


def small(*, attention=(), layer=(), **top):
    some = {"heads": 6, "kv_heads": 2, "head_dim": 11, "block_choice": CHOICE, **dict(attention)}
    block = {"repeat": 3, "attention": some, "feed_forward": {"d_ff": 37}, **dict(layer)}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": "rope", "layers": [block], **top}


def test_every_record():
    queries = {"N_index": 2, "H_index": 7}
    assert list(SMALL.records(AT, {"D": 13}, DECODER)) == [
        Weight(path("q"), {"D": 13, **queries}, 3),
        Matmul(path("q"), {"B·T": Tokens(), "D": 13, **queries}, 3, path("q")),
        Weight(path("k"), {"D": 13, "H_index": 7}, 3),
        Matmul(path("k"), {"B·T": Tokens(), "D": 13, "H_index": 7}, 3, path("k")),
        Weight(path("q_norm"), {"H_index": 7}, 3),
        Weight(path("k_norm"), {"H_index": 7}, 3),
        Matmul(path("scores"), {"B·P": Pairs(), **queries}, 3, None, "scores"),
        Cached(path("k_cache"), {"B·S": Context(), "H_index": 7}, 3),
    ]


def test_the_attention_meets_chosen_blocks():
    arch = costcalc.load({**small(), "positions": {"kind": "rope", "rotary_dim": 4}})
    cores = {m.path: m.axes["B·P"] for m in arch.inventory.matmuls if "B·P" in m.axes}
    assert cores == {
        "decoder.layers.attention.scores": BlockPairs(5, 3),
        "decoder.layers.attention.values": BlockPairs(5, 3),
        "decoder.layers.attention.block_choice.scores": Pairs(),
    }


def test_minimax_m3():
    """One layer of MiniMax-M3: what it adds to 109,052,160 numbers of attention, at 64 + 2·4 heads of 128 on 6,144.

    Four query heads and one key of 128: 6,144·5·128 + 2·128 = 3,932,416. In a decode step at 1,048,576 tokens it meets
    2,048 keys with 64 heads, and all of them with 4 of its own: 2·4·128 FLOPs each.
    """
    choice = {"heads": 4, "head_dim": 128}
    written = small(attention={"heads": 64, "kv_heads": 4, "head_dim": 128, "block_choice": choice}, d_model=6_144)
    plain = small(attention={"heads": 64, "kv_heads": 4, "head_dim": 128, "block_choice": None}, d_model=6_144)
    with_choice, without = costcalc.load(written), costcalc.load(plain)
    added = costcalc.parameters(with_choice).total - costcalc.parameters(without).total
    assert added == 3 * 3_932_416
    last = Workload(past_tokens=2**20 - 1)
    assert costcalc.flops(with_choice, last).attention == 3 * (4 * 64 * 128 * 2_048 + 2 * 4 * 128 * 2**20)
    assert costcalc.flops(without, last).attention == 3 * 4 * 64 * 128 * 2**20
    assert costcalc.kv_cache(with_choice, 100).elements == 3 * 100 * (2 * 4 * 128 + 128)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (small(attention={"block_choice": {**CHOICE, "heads": 4}}), "heads 6 is not a multiple of 4 heads"),
        (small(attention={"block_choice": {**CHOICE, "local": 4}}), "`local` 4 of 3 blocks"),
        (small(attention={"window": 5}), "`block_choice` goes without `window`"),
        (small(attention={"sinks": True}), "`block_choice` goes without `window`"),
        (small(attention={"v_dim": 3}), "`block_choice` goes without `window`"),
        (small(positions="alibi"), "rotary positions or none of its own, not alibi"),
        (small(layer={"cross_attention": {"heads": 2, "head_dim": 3, "block_choice": CHOICE}}), "`cross_attention`"),
        ({**small(), "layers": None, "encoder": {"layers": small()["layers"]}}, "are for a decoder"),
    ],
)
def test_what_cannot_be(written, message):
    with pytest.raises(CostcalcError, match=message):
        costcalc.load({key: value for key, value in written.items() if value is not None})


def test_its_line():
    arch = costcalc.load({**small(), "positions": {"kind": "rope", "rotary_dim": 4}})
    attention = arch.groups[0].block.attention
    assert attention.summary(13).endswith("3 blocks of 5 keys, chosen by 2 heads of 7")
