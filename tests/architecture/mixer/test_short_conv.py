"""A gated short convolution: 13 wide, 5 taps."""

from costcalc.architecture.mixer import ShortConv

PARAMETERS = {"input": 13 * 39, "conv": 13 * 5, "output": 13 * 13}


def test_every_parameter_product_and_state(told):
    mixer = told(ShortConv(d_conv=5))
    assert mixer.parameters == PARAMETERS
    assert mixer.products() == {"input": 13 * 39, "output": 13 * 13}
    assert mixer.states == {"conv_state": (65, None)}
    assert mixer.scans(batch=3, new_tokens=11) == {"conv": 33 * 65}


def test_biases(told):
    more = {"input_bias": 39, "conv_bias": 13, "output_bias": 13}
    assert told(ShortConv(d_conv=5, bias=True)).parameters == {**PARAMETERS, **more}


def test_a_layer_of_lfm2(told):
    """LFM2-1.2B: 2,048 wide, 3 taps: 2,048 x 6,144 + 2,048 x 3 + 2,048 x 2,048."""
    assert sum(told(ShortConv(), 2048).parameters.values()) == 16_783_360


def test_one_line_for_a_reader():
    assert ShortConv(d_conv=5).summary() == "gated short convolution of 5 taps"
    assert ShortConv(bias=True).summary() == "gated short convolution of 3 taps, biases"
