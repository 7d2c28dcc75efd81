"""Residuals by attention over blocks of layers, loops of layers, and convolved outputs: what they state."""

import pytest

import costcalc
from costcalc.architecture.block_residuals import BlockResiduals, RunAgain
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import DECODER, At
from costcalc.errors import CostcalcError
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers", times=2)
CORE = {"kind": "profiled", "heads": 6, "kv_heads": 2, "head_dim": 5, "profiles": 3, "reach": 7}


def chosen(name, queries, sources):
    path, asked = f"decoder.layers.block_residuals.{name}", {"queries": queries, "D": 13}
    axes = {"B·T": Tokens(), "sources": sources, **asked}
    return [
        Weight(f"{path}.query", asked, 2),
        Matmul(f"{path}.query", axes, 2, f"{path}.query"),
        Matmul(f"{path}.means", axes, 2),
    ]


def records(**fields):
    return list(BlockResiduals(**fields).records(AT, 13, DECODER, RMSNorm()))


def test_every_record():
    """A layer that begins a block ends the one before it: its network finds one source more than its attention."""
    norms = [Weight(f"decoder.layers.attention_{name}_norm", {"D": 13}, 2) for name in ("keys", "values")]
    assert records(sources=2) == [*chosen("attention", 1, 3), *chosen("feed_forward", 1, 3)]
    assert records(sources=2, starts_block=True, inputs="three") == [
        *chosen("attention", 3, 3),
        *norms,
        *chosen("feed_forward", 1, 4),
    ]
    assert records(sources=0, starts_block=True) == chosen("feed_forward", 1, 2)


def layer(sources, *, begins=False, **changes):
    residuals = {"sources": sources, "starts_block": begins, "loop": changes.pop("loop", None)}
    block = {"attention": CORE, "feed_forward": {"d_ff": 37}, "block_residuals": residuals}
    return {**block, **changes}


def small(*layers, **top):
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": list(layers), **top}


def test_layers_that_run_again():
    """Three passes of one layer: twice more all of its products and what it holds, and its weights once.

    Each further pass hears 1 source: 4 queries of 13 and means of them, and 4 pairs of gates, 26·5 + 2·5·13 numbers.
    """
    loop = {"passes": 3, "sources": 1, "rank": 5}
    plain, again = (
        costcalc.load(small(layer(0, begins=True), layer(1, begins=True, **more))) for more in ({}, {"loop": loop})
    )
    alone = costcalc.load(small(layer(0, begins=True)))
    gates = 4 * (26 * 5 + 2 * 5 * 13)
    assert costcalc.parameters(again).total - costcalc.parameters(plain).total == 4 * 13 + gates

    def weights(arch):
        return costcalc.flops(arch, Workload(new_tokens=7)).weights

    once = weights(plain) - weights(alone)
    assert weights(again) - weights(plain) == 2 * (once + 2 * 7 * (2 * 4 * 13 + gates))
    held = [costcalc.kv_cache(arch, 7) for arch in (alone, plain, again)]
    elements = [cache.elements for cache in held]
    assert elements[2] - elements[1] == 2 * (elements[1] - elements[0])
    states = [cache.state_elements for cache in held]
    assert states[2] - states[1] == 2 * (states[1] - states[0])


def test_a_single_pass_hears_nothing():
    rows = [type(record) for record in RunAgain(passes=1, sources=1, rank=5).records(AT, 13, DECODER)]
    assert rows == [Weight] * 13


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (layer(0, norms="sandwich"), "`block_residuals` go with `norms: pre`"),
        (layer(0, residual_scale=0.5), "`block_residuals` go with `norms: pre`"),
        (layer(0, attention={"heads": 6, "head_dim": 5}), "`profiled` attention"),
        ({**layer(0, norms="post", output_conv={"taps": 3}), "block_residuals": None}, "`output_conv` goes with"),
    ],
)
def test_what_they_do_not_go_with(block, message):
    with pytest.raises(CostcalcError, match=message):
        costcalc.load(small(block))


def test_convolved_outputs():
    """Behind each of two sublayers 13 channels of 4 taps, and as many numbers held."""
    block = {"attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"d_ff": 37}, "output_conv": {"taps": 4}}
    arch, plain = costcalc.load(small(block)), costcalc.load(small({**block, "output_conv": None}))
    assert costcalc.parameters(arch).total - costcalc.parameters(plain).total == 2 * 13 * 4
    assert costcalc.kv_cache(arch, 7).state_elements == 2 * 13 * 4
    assert costcalc.flops(arch, Workload(new_tokens=7)).modelled == 2 * 2 * 7 * 13 * 4
