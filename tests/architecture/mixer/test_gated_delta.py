"""The gated delta rule: 13 wide, 6 value heads of 7 on 2 key heads of 5, 3 taps, chunks of 4."""

import pytest
from pydantic import ValidationError

from costcalc.architecture.component import RuleError
from costcalc.architecture.mixer import GatedDelta

SMALL = GatedDelta(heads=6, key_heads=2, key_dim=5, value_dim=7, d_conv=3, chunk=4)
KIMI = GatedDelta(heads=6, key_dim=5, value_dim=7, d_conv=3, decay="per_channel", decay_rank=3, gate_rank=11, chunk=4)
PARAMETERS = {
    "q": 13 * 10,
    "k": 13 * 10,
    "v": 13 * 42,
    "gate": 13 * 42,
    "beta": 13 * 6,
    "decay": 13 * 6,
    "dt_bias": 6,
    "a_log": 6,
    "conv": (10 + 10 + 42) * 3,
    "norm": 7,
    "output": 42 * 13,
}
OF_KIMI = {
    "q": 13 * 30,
    "k": 13 * 30,
    "v": 13 * 42,
    "gate_down": 13 * 11,
    "gate_up": 11 * 42,
    "beta": 13 * 6,
    "decay_down": 13 * 3,
    "decay_up": 3 * 30,
    "dt_bias": 30,
    "a_log": 6,
    "conv": (30 + 30 + 42) * 3,
    "norm": 7,
    "output": 42 * 13,
}
HELD_ALONE = {"dt_bias", "a_log", "conv", "norm"}
STATE = 6 * 5 * 7


@pytest.mark.parametrize(("mixer", "parameters"), [(SMALL, PARAMETERS), (KIMI, OF_KIMI)])
def test_every_parameter_product_and_state(told, mixer, parameters):
    mixer = told(mixer)
    assert mixer.parameters == parameters
    assert mixer.products() == {name: count for name, count in parameters.items() if name not in HELD_ALONE}
    assert mixer.states == {"conv_state": (parameters["conv"], None), "state": (STATE, "fp32")}


def test_decays_of_channels_in_one_matrix(told):
    """Ling-3: D -> heads x key_dim without a rank between."""
    plain = told(KIMI.model_copy(update={"decay_rank": None, "gate_rank": None})).parameters
    assert (plain["decay"], plain["gate"]) == (13 * 30, 13 * 42)


def test_each_token_recalls_corrects_and_reads(told):
    scans = told(SMALL).scans(batch=3, new_tokens=11)
    assert scans == {"conv": 33 * 186, **dict.fromkeys(("scan_recall", "scan_update", "scan_read"), 33 * STATE)}


def test_kernels_are_handed_whole_chunks(told):
    """11 tokens in chunks of 4 are 12; with keys of 5: two products, and what solves them; with values of 7: two."""
    scans = told(SMALL).scans(batch=3, new_tokens=11, counting="rectangle")
    del scans["conv"]
    key, value = 36 * 4 * 6 * 5, 36 * 4 * 6 * 7
    assert scans == {
        "scan_overlaps": key,
        "scan_solved_keys": key,
        "scan_solved_values": value,
        "scan_scores": key,
        "scan_values": value,
        **dict.fromkeys(("scan_recall", "scan_update", "scan_read"), 36 * STATE),
    }


def test_what_changes_numbers_changes_no_count(told):
    other = {"double_beta": True, "gate_activation": "sigmoid", "activation": "relu", "decay_floor": -5.0}
    assert told(SMALL.model_copy(update=other)).records == told(SMALL).records


def test_as_many_key_heads_as_heads(told):
    written = KIMI.model_copy(update={"key_heads": 6})
    assert told(written).records == told(KIMI).records
    assert KIMI.left_out(13) == {"key_heads": (6, "heads")}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key_heads": 4}, "heads 6 is not a multiple of key_heads 4"),
        ({"key_heads": 2, "decay": "per_channel"}, "as many key heads as heads"),
        ({"decay_rank": 3}, "`decay_rank` goes with `decay: per_channel`"),
        ({"decay_floor": 5.0}, "`decay_floor` is the lowest logarithm of a decay"),
        ({"decay_floor": 0.0}, "`decay_floor` is the lowest logarithm of a decay"),
    ],
)
def test_what_is_refused(fields, message):
    with pytest.raises(RuleError, match=message):
        GatedDelta(heads=6, key_dim=5, value_dim=7, **fields).check((), 13)


def test_words_that_are_none():
    for wrong in ({"decay": "none"}, {"gate_activation": "gelu"}, {"chunk": 0}):
        with pytest.raises(ValidationError):
            GatedDelta(heads=6, key_dim=5, value_dim=7, **wrong)


def test_one_line_for_a_reader():
    assert SMALL.summary() == "gated delta rule, 6 heads on 2 key heads of 5 x 7, decay per head, 3 taps"
    assert KIMI.summary() == "gated delta rule, 6 heads of 5 x 7, decay per channel, 3 taps"
