"""A Fourier transform over 13 channels and 11 tokens: no parameters, no products with any."""

import pytest

from costcalc.architecture.mixer import Fourier
from costcalc.architecture.places import SOURCE, At
from costcalc.inventory import Workload
from costcalc.sources.load import load


def test_it_holds_nothing_and_multiplies_no_weight(told):
    mixer = told(Fourier())
    assert (mixer.parameters, mixer.products(), mixer.states) == ({}, {}, {})


def test_a_multiply_add_for_each_number_and_stage(told):
    """13 numbers take 4 stages (8 < 13 <= 16), 11 tokens 4, 17 tokens 5."""
    assert told(Fourier()).scans(batch=3, new_tokens=11) == {"scan_channels": 33 * 13 * 4, "scan_tokens": 33 * 13 * 4}
    assert told(Fourier()).scans(batch=1, new_tokens=17)["scan_tokens"] == 17 * 13 * 5


def test_the_encoder_of_a_pair_transforms_its_own_text():
    (_, tokens) = Fourier().records(At("mixer"), 13, SOURCE)
    assert tokens.flops(Workload(new_tokens=2, memory_tokens=17)) == 2 * 17 * 13 * 5
    assert tokens.flops(Workload(new_tokens=2, past_tokens=1, memory_tokens=17)) == 0


def test_one_line_for_a_reader():
    assert Fourier().summary() == "Fourier transform over tokens and channels"


def test_it_is_for_an_encoder():
    written = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"mixer": "fourier"}]}
    with pytest.raises(Exception, match="reads all of the text at once: it is for an encoder"):
        load(written)
