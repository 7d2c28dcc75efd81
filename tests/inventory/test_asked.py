"""Which workloads a model can be asked for: encoder tokens where some layer reads them, a past where tokens follow."""

import numpy as np
import pytest

from costcalc.calculators.flops import flops
from costcalc.calculators.kv_cache import kv_cache
from costcalc.calculators.parameters import parameters
from costcalc.calculators.rule_of_thumb import rule_of_thumb
from costcalc.errors import CostcalcError
from costcalc.inventory import Cached, Inventory, Memory, Unstated, Weight, Workload, check_asked

CROSS = Cached("decoder.layers.cross_attention.k_cache", {"B·M": Memory(), "K": 2, "H": 5}, kind="cross")
DECODER = Inventory((), {"decoder": ("decoder.layers",)})
ENCODER = Inventory((), {"encoder": ("encoder.layers",)})
PAIR = Inventory((CROSS,), {"encoder": ("encoder.layers",), "decoder": ("decoder.layers",)})
LONE = Inventory((CROSS,), {"decoder": ("decoder.layers",)})


@pytest.mark.parametrize(
    ("inventory", "workload"),
    [
        (DECODER, Workload()),
        (DECODER, Workload(past_tokens=7)),
        (ENCODER, Workload(new_tokens=11)),
        (PAIR, Workload(memory_tokens=7)),
        (PAIR, Workload(past_tokens=11, memory_tokens=7)),
        (LONE, Workload()),
        (LONE, Workload(memory_tokens=7)),
        (PAIR, Workload(memory_tokens=np.array([7, 11]))),
    ],
)
def test_what_can_be_asked(inventory, workload):
    check_asked(inventory, workload)


@pytest.mark.parametrize(
    ("inventory", "workload", "what", "hint"),
    [
        (PAIR, Workload(new_tokens=11), "reads encoder tokens, and none are given", "--memory-tokens 512"),
        (DECODER, Workload(memory_tokens=7), "nothing reads memory_tokens", "memory_tokens=0"),
        (ENCODER, Workload(memory_tokens=7), "nothing reads memory_tokens", "memory_tokens=0"),
        (ENCODER, Workload(past_tokens=7), "has no past", "past_tokens=0"),
    ],
)
def test_what_cannot(inventory, workload, what, hint):
    with pytest.raises(CostcalcError) as caught:
        check_asked(inventory, workload)
    assert what in caught.value.what
    assert hint in caught.value.hint


@pytest.mark.parametrize("of", ["flops", "cache"])
def test_what_is_not_stated_is_refused_with_the_reason(of):
    missing = Unstated("decoder.layers.attention", of, "its keys are drawn by a hash")
    inventory = Inventory((missing,), {"decoder": ("decoder.layers",)})
    with pytest.raises(
        CostcalcError, match=r"^decoder.layers.attention: .* cannot be told: its keys are drawn"
    ) as caught:
        check_asked(inventory, Workload(), of=of)
    assert caught.value.hint.endswith("costcalc params")
    check_asked(inventory, Workload(), of="cache" if of == "flops" else "flops")


def test_each_calculator_asks_for_what_it_tells():
    axes = {"V": 7, "D": 13}
    told = (Weight("decoder.embedding", axes, table=True), Unstated("decoder.layers", "flops", "it is not known"))
    inventory = Inventory(
        (*told, Unstated("decoder.layers", "cache", "it is not known")), {"decoder": ("decoder.layers",)}
    )
    assert parameters(inventory).total == 91  # 7·13
    for ask in (
        lambda: flops(inventory, Workload()),
        lambda: kv_cache(inventory, 11),
        lambda: rule_of_thumb(inventory),
    ):
        with pytest.raises(CostcalcError, match="cannot be told: it is not known"):
            ask()
