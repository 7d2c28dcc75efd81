import pytest
from pydantic import TypeAdapter, ValidationError

import costcalc
from costcalc.architecture import Architecture
from costcalc.architecture.component import RuleError
from costcalc.architecture.places import At
from costcalc.architecture.positions import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    Positions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)
from costcalc.inventory import Weight

AT = At("decoder")
TABLE = Weight("decoder.positions", {"length": 11, "D": 13}, table=True)


@pytest.mark.parametrize(
    ("positions", "records"),
    [
        (NoPositions(), []),
        (LearnedPositions(length=11), [TABLE]),
        (SinusoidalPositions(), []),
        (SinusoidalPositions(length=11), []),
        (SinusoidalPositions(stored="frozen", length=11), [TABLE._replace(role="frozen")]),
        (SinusoidalPositions(stored="buffer", length=11), [TABLE._replace(role="buffer")]),
        (RotaryPositions(), []),
        (RotaryPositions(theta=5e5, rotary_dim=4), []),
        (LearnedPositions(length=11, offset=2), [TABLE]),
        (RelativePositions(), []),
        (RelativePositions(per_layer=True), []),
        (AlibiPositions(), []),
    ],
)
def test_what_positions_hold(positions, records):
    assert list(positions.records(AT, {"D": 13})) == records


@pytest.mark.parametrize(
    ("positions", "added"),
    [
        (NoPositions(), False),
        (LearnedPositions(length=11), True),
        (SinusoidalPositions(), True),
        (RotaryPositions(), False),
        (RelativePositions(), False),
        (AlibiPositions(), False),
    ],
)
def test_tables_are_added_below_the_layers_and_rotations_happen_inside_them(positions, added):
    assert positions.added is added


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        (NoPositions(), "none"),
        (LearnedPositions(length=1024), "learned, 1,024 rows"),
        (SinusoidalPositions(), "sinusoidal"),
        (SinusoidalPositions(stored="frozen", length=11), "sinusoidal, stored (frozen)"),
        (SinusoidalPositions(stored="buffer", length=11), "sinusoidal, stored (buffer)"),
        (RotaryPositions(), "RoPE, theta 10,000"),
        (RotaryPositions(theta=5e5, rotary_dim=32), "RoPE, theta 500,000, 32 numbers of each head"),
        (
            RotaryPositions(rotary_dim=32, frequencies="head"),
            "RoPE, theta 10,000, 32 numbers of each head at the whole head's frequencies",
        ),
        (LearnedPositions(length=514, offset=2), "learned, 514 rows, 2 of them unused"),
        (RelativePositions(), "relative, 32 buckets"),
        (RelativePositions(per_layer=True), "relative, 32 buckets in each layer"),
        (AlibiPositions(), "ALiBi"),
    ],
)
def test_one_line_for_a_reader(positions, text):
    assert positions.summary() == text


def test_frequencies_of_a_whole_head_are_for_a_part_of_it():
    RotaryPositions(frequencies="head", rotary_dim=4).check(("here",), 13)
    with pytest.raises(RuleError, match=r"^`frequencies: head` needs a `rotary_dim`$"):
        RotaryPositions(frequencies="head").check(("here",), 13)


def test_a_stored_table_of_sinusoids_needs_its_length(refusal):
    error = refusal(positions={"kind": "sinusoidal", "stored": "frozen"})
    assert str(error) == "a stored table of sinusoids needs its `length`"
    assert error.where == ("decoder", "positions")


@pytest.mark.parametrize("length", [None, 11])
def test_computed_sinusoids_need_no_length(length):
    SinusoidalPositions(length=length).check((), d_model=13)


@pytest.mark.parametrize("theta", [0.0, -1.0, 1e30, float("nan"), float("inf"), True, "1e4", None])
def test_theta_is_a_number_above_zero(theta):
    with pytest.raises(ValidationError):
        RotaryPositions(theta=theta)


def test_theta_may_be_written_as_a_whole_number():
    assert RotaryPositions(theta=500_000).theta == 5e5
    assert RotaryPositions(theta=9.9e29).theta == 9.9e29
    assert RotaryPositions(theta=0.5).theta == 0.5


@pytest.mark.parametrize(
    ("written", "positions"),
    [
        ({"kind": "none"}, NoPositions()),
        ({"kind": "learned", "length": 11}, LearnedPositions(length=11)),
        ({"kind": "sinusoidal"}, SinusoidalPositions(stored="no")),
        ({"kind": "rope"}, RotaryPositions(theta=10_000.0, rotary_dim=None)),
        ({"kind": "relative"}, RelativePositions(buckets=32, max_distance=128, per_layer=False)),
        ({"kind": "alibi"}, AlibiPositions(max_bias=8.0, slope_scale=1.0)),
    ],
)
def test_the_kind_picks_the_positions(written, positions):
    assert TypeAdapter(Positions).validate_python(written) == positions


@pytest.mark.parametrize("written", [{"kind": "learned"}, {"kind": "rope", "offset": 1}, {"kind": "xpos"}])
def test_positions_that_are_refused(written):
    with pytest.raises(ValidationError):
        TypeAdapter(Positions).validate_python(written)


def test_a_stored_table_of_sinusoids_is_held_by_the_model():
    """V·D + length·D with V = 19, length = 11, D = 13, and one layer of 2·13·37: 247 + 143 + 962 + 247 of the head."""
    spec = {"vocab_size": 19, "d_model": 13, "norm": {"kind": "rmsnorm", "weight": False}}
    layers = [{"feed_forward": {"d_ff": 37}}]
    counts = {}
    for stored in ("no", "frozen", "buffer"):
        positions = {"kind": "sinusoidal", "stored": stored, "length": 11}
        counted = costcalc.parameters(costcalc.load({**spec, "positions": positions, "layers": layers}))
        counts[stored] = (counted.total, counted.trainable, counted.buffers)
    assert counts == {"no": (1_456, 1_456, 0), "frozen": (1_599, 1_456, 0), "buffer": (1_456, 1_456, 143)}


def test_a_table_of_biases_has_a_column_for_each_head():
    """32·N for T5, here 7·6 = 42."""
    assert list(RelativePositions(buckets=7).bias_records(AT, 6)) == [
        Weight("decoder.positions", {"buckets": 7, "N": 6}, table=True)
    ]


def test_rows_that_no_position_uses_are_held_but_not_reached():
    assert (LearnedPositions(length=514, offset=2).rows, LearnedPositions(length=514).rows) == (512, 514)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({"kind": "learned", "length": 11, "offset": 11}, "offset 11 leaves no row of 11"),
        ({"kind": "relative", "buckets": 3}, "buckets 3 are fewer than 4"),
        ({"kind": "relative", "max_distance": 16}, "max_distance 16 is not above half the 32 buckets"),
    ],
)
def test_positions_that_cannot_be(refusal, positions, message):
    error = refusal(positions=positions)
    assert str(error) == message
    assert error.where == ("decoder", "positions")


def test_the_fewest_buckets_and_the_nearest_end():
    """4 buckets: two single steps and two growing ones of a decoder; 8 of them need a distance above 4, not above 8."""
    RelativePositions(buckets=4).check((), d_model=13)
    RelativePositions(buckets=8, max_distance=5).check((), d_model=13)


def test_rotations_may_stand_in_a_table(refusal):
    """RoFormer's: one frozen table of length x rotated numbers for all layers."""
    layers = [{"repeat": 2, "attention": {"heads": 3, "head_dim": 4}}]
    stored = {"kind": "rope", "stored": "frozen", "length": 11, "width": 4}
    arch = Architecture(vocab_size=19, d_model=13, norm="rmsnorm", positions=stored, layers=layers)
    assert arch.longest() == 11
    held = [weight for weight in arch.inventory.weights if "positions" in weight.path]
    assert held == [Weight("decoder.positions", {"length": 11, "rotated": 4}, role="frozen", table=True)]
    what = "`length` and `width` are those of a stored table, which needs both"
    for broken in ({**stored, "width": None}, {**stored, "stored": "no"}, {"kind": "rope", "stored": "frozen"}):
        assert str(refusal(positions=broken)) == what


def test_learned_rows_and_relative_numbers_are_two_tables(refusal):
    """MPNet's: length·D = 11·13, and buckets·N = 7·3."""
    both = {"kind": "learned_and_relative", "length": 11, "offset": 2, "buckets": 7, "max_distance": 5}
    layers = [{"repeat": 2, "attention": {"heads": 3, "head_dim": 4}}]
    arch = Architecture(vocab_size=19, d_model=13, norm="rmsnorm", positions=both, encoder={"layers": layers})
    assert arch.longest() == 9
    tables = {weight.path: weight.parameters for weight in arch.inventory.weights if weight.table}
    assert tables == {"encoder.embedding": 247, "encoder.positions": 143, "encoder.distances": 21, "head": 247}
    assert str(refusal(positions={**both, "offset": 11})) == "offset 11 leaves no row of 11"
    assert str(refusal(positions={**both, "buckets": 3})) == "buckets 3 are fewer than 4"
    message = "max_distance 3 is not above half the 7 buckets"
    assert str(refusal(positions={**both, "max_distance": 3})) == message
    assert arch.groups[0].block.positions.summary() == "learned, 11 rows, 2 of them unused, and relative, 7 buckets"
