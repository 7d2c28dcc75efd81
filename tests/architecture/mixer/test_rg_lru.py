"""RG-LRU: 13 wide, 22 channels in 2 blocks, 5 taps."""

import pytest

from costcalc.architecture.component import RuleError
from costcalc.architecture.mixer import RGLRU

SMALL = RGLRU(width=22, heads=2, d_conv=5)
MATRICES = {
    "input": 286,
    "gate": 286,
    "input_gate": 2 * 121,
    "recurrence_gate": 2 * 121,
    "output": 286,
}  # 286 = 13 · 22


def test_every_parameter_product_and_state(told):
    mixer = told(SMALL)
    biases = {"output_bias": 13, **{f"{name}_bias": 22 for name in (*MATRICES, "conv") if name != "output"}}
    assert mixer.parameters == {**MATRICES, **biases, "conv": 110, "a": 22}
    assert mixer.products() == MATRICES
    assert mixer.states == {"conv_state": (22 * 4, None), "state": (22, "fp32")}  # `RecurrentGemmaRecurrentBlock`


def test_one_multiply_add_a_channel(told):
    assert told(SMALL).scans(batch=3, new_tokens=11) == {"conv": 33 * 110, "scan_update": 33 * 22}


@pytest.mark.parametrize(
    ("fields", "message"), [({"heads": 3}, "width 22 is not a multiple"), ({"d_conv": 1}, "least 2")]
)
def test_what_is_refused(fields, message):
    with pytest.raises(RuleError, match=message):
        RGLRU(**{"width": 22, "heads": 2, **fields}).check((), 13)


def test_one_line_for_a_reader():
    assert SMALL.summary() == "RG-LRU, 22 channels in 2 blocks, 5 taps"
