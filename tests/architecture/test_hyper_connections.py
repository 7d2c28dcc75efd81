"""Hyper-connections: their records, DeepSeek-V4's sizes, and what they cannot go with."""

import pytest

import costcalc
from costcalc.architecture.block import Block
from costcalc.architecture.hyper_connections import HyperConnections
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers", times=2)
CORE = {"kind": "grouped_query", "heads": 6, "head_dim": 5}
NORM = {"kind": "rmsnorm"}


def small(*, layer=(), **top):
    block = {"repeat": 2, "attention": CORE, "feed_forward": {"d_ff": 37}, **dict(layer)}
    written = {
        "vocab_size": 19,
        "d_model": 13,
        "norm": "rmsnorm",
        "hyper_connections": {"streams": 3},
        "layers": [block],
    }
    return {**written, **top}


def test_every_record_of_a_layer():
    """Three parts: 15 factors of each token for a sublayer, 3 that it reads with, 3 that it gives to, 9 that mix."""
    block = Block(norm=NORM, attention=CORE, feed_forward={"kind": "dense", "d_ff": 37})
    wanted = []
    for name in ("attention", "feed_forward"):
        path = f"decoder.layers.hyper_connections.{name}"
        axes = {"streams": 3, "D": 13, "factors": 15}
        wanted += [
            Weight(f"{path}.factors", axes, 2),
            Matmul(f"{path}.factors", {"B·T": Tokens(), **axes}, 2, f"{path}.factors"),
            Weight(f"{path}.added", {"factors": 15}, 2),
            Weight(f"{path}.gains", {"gains": 3}, 2),
            Matmul(f"{path}.mixing", {"B·T": Tokens(), "streams": 3, "streams_out": 3, "D": 13}, 2),
        ]
    assert list(HyperConnections(streams=3).layer_records(AT, 13, DECODER, block)) == wanted


def test_what_they_add():
    """Of each of two layers twice 15·(3·13) + 15 + 3, and above them 3·(3·13) + 3 + 1."""
    with_parts, without = (costcalc.load(small(**more)) for more in ({}, {"hyper_connections": None}))
    added = costcalc.parameters(with_parts).total - costcalc.parameters(without).total
    assert added == 2 * 2 * (15 * 39 + 18) + 3 * 39 + 4
    more = costcalc.flops(with_parts, Workload()).weights - costcalc.flops(without, Workload()).weights
    assert more == 2 * (2 * 2 * (39 * 15 + 3 * 3 * 13) + 39 * 3)


def test_deepseek_v4_flash():
    """Four parts of 4,096: 24·16,384 + 27 numbers of a sublayer, 43 layers; 4·16,384 + 5 above them."""
    written = small(d_model=4_096, hyper_connections={"streams": 4}, layer={"repeat": 43})
    with_parts, without = (costcalc.load({**written, **more}) for more in ({}, {"hyper_connections": None}))
    added = costcalc.parameters(with_parts).total - costcalc.parameters(without).total
    assert added == 43 * 2 * (24 * 16_384 + 27) + 4 * 16_384 + 5


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (small(layer={"norms": "sandwich"}), "go with `norms: pre`"),
        (small(layer={"parallel": "one_norm"}), "go with `norms: pre`"),
        (small(layer={"residual_scale": 0.5}), "factors of sums"),
        (small(layer={"residual_affine": True}), "factors of sums"),
        (small(layer={"layer_scale": "buffer"}), "factors of sums"),
        (small(layer={"augmented_residual": {"rank": 3}}), "augmented_residual"),
        (small(altup={"inputs": 2}), "go without `altup`"),
        (small(hyper_connections={"streams": 0}), "streams"),
    ],
)
def test_what_they_do_not_go_with(written, message):
    with pytest.raises(CostcalcError, match=message):
        costcalc.load(written)


def test_they_are_for_a_decoder():
    layers = small()["layers"]
    stack = {"layers": layers, "hyper_connections": {"streams": 3}}
    with pytest.raises(CostcalcError, match="`hyper_connections` is for a decoder"):
        costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "encoder": stack})


def test_parts_that_are_not_mixed():
    """Hy4: of each sublayer 2·3 factors of 3·13 numbers, as many added, two gains; no matrix and no product of it."""
    layer = {"attention": {"heads": 1, "head_dim": 6}, "feed_forward": {"d_ff": 37}}
    plain = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [layer]}
    apart = costcalc.load({**plain, "hyper_connections": {"streams": 3, "mixing": "none"}})
    added = costcalc.parameters(apart).total - costcalc.parameters(costcalc.load(plain)).total
    assert added == 2 * (6 * 3 * 13 + 6 + 2) + 3 * 3 * 13 + 3 + 1
    assert not [matmul for matmul in apart.inventory.matmuls if matmul.path.endswith("mixing")]
    assert "adds to" in apart.decoder.hyper_connections.summary()
