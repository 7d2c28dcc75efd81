"""LAuReL: two matrices of low rank beside the attention, and where they may stand."""

import pytest

from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.augmented_residual import AugmentedResidual
from costcalc.architecture.block import Block
from costcalc.architecture.component import RuleError
from costcalc.architecture.feed_forward import Dense
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers", times=5)
ROWS = {"B·T": Tokens()}


def layer(**fields):
    parts = {"attention": GroupedQuery(heads=6, kv_heads=2, head_dim=5), "feed_forward": Dense(d_ff=37)}
    return Block(**{"norm": RMSNorm(), "augmented_residual": AugmentedResidual(rank=3), **parts, **fields})


def test_two_matrices_and_a_norm():
    """13·3 and 3·13, and 13: 91 parameters; 78 products a row."""
    path = "decoder.layers.augmented_residual"
    made = list(AugmentedResidual(rank=3).records(AT, 13, DECODER, RMSNorm()))
    assert made == [
        Weight(f"{path}.down", {"D": 13, "R_own": 3}, 5),
        Matmul(f"{path}.down", {**ROWS, "D": 13, "R_own": 3}, 5, f"{path}.down"),
        Weight(f"{path}.up", {"R_own": 3, "D": 13}, 5),
        Matmul(f"{path}.up", {**ROWS, "R_own": 3, "D": 13}, 5, f"{path}.up"),
        Weight("decoder.layers.augmented_residual_norm", {"D": 13}, 5),
    ]
    assert sum(r.parameters for r in made if type(r) is Weight) == 5 * 91
    assert sum(r.flops(Workload(new_tokens=11)) for r in made if type(r) is Matmul) == 5 * 2 * 11 * 78


def test_it_stands_behind_the_attention_and_before_the_network():
    names = [r.path.removeprefix("decoder.layers.").partition(".")[0] for r in layer().records(AT, 13, DECODER)]
    assert list(dict.fromkeys(names)) == [
        "attention_norm",
        "attention",
        "augmented_residual",
        "augmented_residual_norm",
        "feed_forward_norm",
        "feed_forward",
    ]


@pytest.mark.parametrize("norms", ["pre", "sandwich"])
def test_with_norms_before_the_attention(norms):
    layer(norms=norms).check(("here",), 13)


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": None},
        {"norms": "post"},
        {"norms": "output"},
        {"attention_norm": False},
        {"parallel": "one_norm"},
        {"parallel": "two_norms"},
    ],
)
def test_nothing_that_it_could_read(changes):
    with pytest.raises(RuleError) as caught:
        layer(**changes).check(("here",), 13)
    expected = "`augmented_residual` reads what the attention reads: it needs one with a norm before it"
    assert (str(caught.value), caught.value.where) == (expected, ("here",))


def test_one_line_for_a_reader():
    assert AugmentedResidual(rank=64).summary() == "augmented residual of rank 64"
