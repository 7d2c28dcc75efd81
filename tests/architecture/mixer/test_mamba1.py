"""Mamba: 13 wide, 22 channels of 3 states, 5 taps, step sizes of rank 7."""

import pytest
from pydantic import ValidationError

from costcalc.architecture import Architecture
from costcalc.architecture.component import RuleError
from costcalc.architecture.mixer import Mamba1

SMALL = {"d_inner": 22, "d_state": 3, "d_conv": 5, "dt_rank": 7}
PARAMETERS = {
    "input": 13 * 44,
    "conv": 110,
    "conv_bias": 22,
    "selection": 22 * (7 + 3 + 3),
    "dt": 7 * 22,
    "dt_bias": 22,
    "a_log": 22 * 3,
    "d": 22,
    "output": 22 * 13,
}


def test_every_parameter_product_and_state(told):
    mixer = told(Mamba1(**SMALL))
    assert mixer.parameters == PARAMETERS
    assert mixer.products() == {name: PARAMETERS[name] for name in ("input", "selection", "dt", "output")}
    assert mixer.states == {"conv_state": (110, None), "state": (66, "fp32")}


def test_each_token_updates_and_reads_every_number_of_the_state(told):
    for counting in ("attended", "rectangle"):
        scans = told(Mamba1(**SMALL)).scans(batch=3, new_tokens=11, counting=counting)
        del scans["conv"]
        assert scans == {"scan_update": 33 * 66, "scan_read": 33 * 66}


def test_heads_choose_from_their_own_channels(told):
    """Two heads of 11 channels: each its own 11 x 13 matrix, and one of 7 x 11 back to its channels."""
    two = told(Mamba1(**SMALL, heads=2))
    assert two.parameters["selection"] == 2 * 11 * 13
    assert two.parameters["dt"] == 2 * 7 * 11
    assert two.products()["selection"] == 2 * 11 * 13
    assert two.states == told(Mamba1(**SMALL)).states


@pytest.mark.parametrize(
    ("inner_norms", "more"), [(True, {"dt_norm": 7, "b_norm": 3, "c_norm": 3}), ("without_gain", {})]
)
def test_inner_norms(told, inner_norms, more):
    assert told(Mamba1(**SMALL, inner_norms=inner_norms)).parameters == {**PARAMETERS, **more}


def test_biases_of_both_projections(told):
    biased = told(Mamba1(**SMALL, bias=True, conv_bias=False)).parameters
    assert biased == {**{k: v for k, v in PARAMETERS.items() if k != "conv_bias"}, "input_bias": 44, "output_bias": 13}


def test_mamba_of_28_billion():
    """arXiv 2312.00752, table 12's 2.8B: 64 layers of 2,560, twice as wide inside, step sizes of rank 2,560 / 16."""
    mixer = {"kind": "mamba1", "d_inner": 5120, "dt_rank": 160}
    model = {"vocab_size": 50_280, "d_model": 2560, "norm": "rmsnorm", "tie_embeddings": True}
    arch = Architecture.model_validate({**model, "layers": [{"repeat": 64, "mixer": mixer}]})
    assert sum(w.parameters for w in arch.inventory.weights) == 2_768_345_600


def test_what_is_refused():
    with pytest.raises(RuleError, match="d_inner 22 is not a multiple of heads 3"):
        Mamba1(**SMALL, heads=3).check((), 13)
    for wrong in ({"inner_norms": 1}, {"inner_norms": "gains"}, {"state_dtype": "int8"}, {"dt_rank": 0}):
        with pytest.raises(ValidationError):
            Mamba1(**{**SMALL, **wrong})


def test_one_line_for_a_reader():
    assert Mamba1(**SMALL).summary() == "Mamba, 22 channels of 3 states, 5 taps"
    assert Mamba1(**SMALL, heads=2).summary() == "Mamba, 22 channels in 2 heads of 3 states, 5 taps"
