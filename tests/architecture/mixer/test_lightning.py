"""Lightning attention: 13 wide, 6 heads of 5, blocks of 4."""

from costcalc.architecture.mixer import Lightning

SMALL = Lightning(heads=6, head_dim=5, chunk=4)
MATRIX = 13 * 30
STATE = 6 * 5 * 5


def test_every_parameter_product_and_state(told):
    mixer = told(SMALL)
    matrices = dict.fromkeys(("q", "k", "v", "gate", "output"), MATRIX)
    assert mixer.parameters == {**matrices, "norm": 30}
    assert mixer.products() == matrices
    assert mixer.states == {"state": (STATE, "fp32")}


def test_each_token_updates_and_reads_every_number_of_the_state(told):
    assert told(SMALL).scans(batch=3, new_tokens=11) == {"scan_update": 33 * STATE, "scan_read": 33 * STATE}


def test_kernels_are_handed_blocks_that_are_not_padded(told):
    """11 tokens in blocks of 4, 4 and 3: 16 + 16 + 9 = 41 pairs of 30 numbers each way."""
    scans = told(SMALL).scans(batch=3, new_tokens=11, counting="rectangle")
    assert scans == {
        "scan_scores": 3 * 41 * 30,
        "scan_values": 3 * 41 * 30,
        "scan_update": 33 * STATE,
        "scan_read": 33 * STATE,
    }


def test_one_line_for_a_reader():
    assert SMALL.summary() == "lightning attention, 6 heads of 5"
