"""mLSTM: 13 wide, 6 heads of 5 x 7."""

from costcalc.architecture.mixer import MLSTM

SMALL = MLSTM(heads=6, qk_dim=5, v_dim=7)
MATRICES = {"q": 390, "k": 390, "v": 546, "gate": 546, "input_gate": 78, "forget_gate": 78, "output": 546}
# 13 · 30 = 390, 13 · 42 = 546, 13 · 6 = 78


def test_every_parameter_product_and_state(told):
    mixer = told(SMALL)
    assert mixer.parameters == {**MATRICES, "input_gate_bias": 6, "forget_gate_bias": 6, "norm": 42}
    assert mixer.products() == MATRICES
    assert mixer.states == {"state": (210, "fp32"), "normalizer_state": (30, "fp32"), "maximum_state": (6, "fp32")}


def test_each_token_updates_and_reads_every_number_of_the_memory(told):
    assert told(SMALL).scans(batch=3, new_tokens=11) == {"scan_update": 33 * 210, "scan_read": 33 * 210}


def test_biases(told):
    biases = {"q_bias": 30, "k_bias": 30, "v_bias": 42, "gate_bias": 42, "norm_bias": 42, "output_bias": 13}
    more = set(told(SMALL.model_copy(update={"bias": True})).parameters.items()) - set(told(SMALL).parameters.items())
    assert dict(more) == biases


def test_a_bound_of_gates_costs_nothing(told):
    assert told(SMALL.model_copy(update={"gate_softcap": 15.0})).records == told(SMALL).records


def test_the_state_of_a_layer_of_xlstm_7b(told):
    """8 heads of 256 x 512, 256 and 1: 1,050,632 numbers, 32 layers of which the library's cache holds 33,620,224."""
    states = told(MLSTM(heads=8, qk_dim=256, v_dim=512), 4096).states
    assert 32 * sum(elements for elements, _ in states.values()) == 33_620_224


def test_one_line_for_a_reader():
    assert SMALL.summary() == "mLSTM, 6 heads of 5 x 7"
