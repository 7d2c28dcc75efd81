"""RWKV-4's time mixing: 13 wide, 22 channels."""

from costcalc.architecture.mixer import RWKV

MATRICES = dict.fromkeys(("k", "v", "r", "output"), 13 * 22)


def test_every_parameter_product_and_state(told):
    mixer = told(RWKV(width=22))
    mixes = {"mix_k": 13, "mix_v": 13, "mix_r": 13}
    assert mixer.parameters == {"time_decay": 22, "time_first": 22, **mixes, **MATRICES}
    assert mixer.products() == MATRICES
    assert mixer.states == {"shift_state": (13, None), "state": (3 * 22, "fp32")}


def test_two_multiply_adds_a_channel(told):
    assert told(RWKV(width=22)).scans(batch=3, new_tokens=11) == {"scan_update": 33 * 22, "scan_read": 33 * 22}


def test_one_line_for_a_reader():
    assert RWKV(width=22).summary() == "RWKV-4 time mixing, 22 channels"
