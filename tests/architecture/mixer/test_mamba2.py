"""Mamba-2: 13 wide, 6 heads of 5 channels in 2 groups, 7 states a channel, 3 taps, chunks of 4."""

import pytest

from costcalc.architecture.component import RuleError
from costcalc.architecture.mixer import Mamba2

SMALL = Mamba2(heads=6, head_dim=5, d_state=7, groups=2, d_conv=3, chunk=4)
# z and x of 30 each, B and C of 2 x 7 each, dt of 6: 60 + 28 + 6 = 94; x, B and C are convolved: 30 + 28 = 58
PARAMETERS = {
    "input": 13 * 94,
    "conv": 58 * 3,
    "conv_bias": 58,
    "dt_bias": 6,
    "a_log": 6,
    "d": 6,
    "norm": 30,
    "output": 30 * 13,
}
STATE = 6 * 5 * 7


def test_every_parameter_product_and_state(told):
    mixer = told(SMALL)
    assert mixer.parameters == PARAMETERS
    assert mixer.products() == {name: PARAMETERS[name] for name in ("input", "output")}
    assert mixer.states == {"conv_state": (174, None), "state": (STATE, "fp32")}


def test_each_token_updates_and_reads_every_number_of_the_state(told):
    scans = told(SMALL).scans(batch=3, new_tokens=11)
    assert scans == {"conv": 33 * 174, "scan_update": 33 * STATE, "scan_read": 33 * STATE}


def test_kernels_are_handed_whole_chunks(told):
    """11 tokens in chunks of 4 are 12; each meets the 4 of its chunk, with 7 states a head and 5 channels."""
    scans = told(SMALL).scans(batch=3, new_tokens=11, counting="rectangle")
    del scans["conv"]
    assert scans == {
        "scan_scores": 36 * 4 * 6 * 7,
        "scan_values": 36 * 4 * 6 * 5,
        "scan_update": 36 * STATE,
        "scan_read": 36 * STATE,
    }


def test_without_norm_and_with_biases(told):
    other = told(SMALL.model_copy(update={"gated_norm": False, "bias": True, "out_bias": True, "conv_bias": False}))
    kept = {name: count for name, count in PARAMETERS.items() if name not in ("norm", "conv_bias")}
    assert other.parameters == {**kept, "input_bias": 94, "output_bias": 13}


def test_where_the_norm_stands_costs_nothing(told):
    assert told(SMALL.model_copy(update={"norm_before_gate": True})).records == told(SMALL).records


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"groups": 4}, "heads 6 is not a multiple of groups 4"), ({"norm_before_gate": True}, "needs the `gated_norm`")],
)
def test_what_is_refused(fields, message):
    with pytest.raises(RuleError, match=message):
        Mamba2(heads=6, head_dim=5, **{"gated_norm": "groups" in fields, **fields}).check((), 13)


def test_one_line_for_a_reader():
    assert SMALL.summary() == "Mamba-2, 6 heads in 2 groups of 5 channels of 7 states, 3 taps"
    assert Mamba2(heads=8, head_dim=64).summary() == "Mamba-2, 8 heads of 64 channels of 128 states, 4 taps"
