import numpy as np
import pytest

from costcalc.reference import Arena, positions
from costcalc.verification import rotations as module
from costcalc.verification.rotations import Rotated, rotary, rotations

# D = 13, N = 6 on K = 3 heads of H = 10.
D_MODEL = 13
ATTENTION = {
    "kind": "grouped_query",
    "heads": 6,
    "kv_heads": 3,
    "head_dim": 10,
    "bias": True,
    "out_bias": False,
    "qk_norm": None,
    "window": None,
    "chunk": None,
    "scale": None,
    "softcap": None,
    "v_dim": None,
    "sinks": False,
    "output_gate": None,
    "gate_activation": "sigmoid",
    "values_from_keys": False,
    "v_norm": None,
    "cache_of": None,
    "keeps_kv_weights": False,
    "key_bias": True,
    "memory_width": None,
    "entity_queries": False,
    "output_norm": None,
}
NORM = {"kind": "rmsnorm", "eps": 1e-6, "weight": True}
ROPE = {"kind": "rope", "theta": 1e4, "rotary_dim": None, "frequencies": "rotated"}
PARTIAL = {"kind": "rope", "theta": 7.0, "rotary_dim": 4, "frequencies": "rotated"}


def measured(*turned, causal=True):
    return rotations(
        [Rotated(*some, causal) for some in turned], d_model=D_MODEL, arena=Arena(D_MODEL * 60, deviation=D_MODEL**-0.5)
    )


@pytest.mark.parametrize("positions", [ROPE, PARTIAL])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"window": 2},
        {"qk_norm": {"kind": "per_head", "norm": NORM}},
        {"qk_norm": {"kind": "projection", "norm": NORM}},
        {"scale": 1e6, "softcap": 1e-3},  # these would blow rounding up
    ],
)
def test_rotations_keep_offsets_and_lengths(positions, changes):
    offsets, lengths = measured((ATTENTION | changes, positions))
    assert 0 < offsets.measured < 1e-5
    assert 0 <= lengths.measured < 1e-6
    assert (offsets.bound, lengths.bound) == (1e-4, 1e-5)


@pytest.mark.parametrize(("theta", "holds"), [(1e-4, True), (1e29, True), (0.99e-4, None), (1e-308, None)])
def test_angles_that_rounding_loses_are_not_measured(theta, holds):
    for item in measured((ATTENTION, ROPE | {"theta": theta})):
        assert (item.holds if item.measured is not None else None) == holds
        assert item.why == ("" if holds else "theta is below 0.0001: rounding loses such angles")
        assert item.bound in (1e-4, 1e-5)
        assert item.holds


def test_attentions_that_are_left_out_are_said():
    found = measured((ATTENTION, ROPE), (ATTENTION, ROPE | {"theta": 1e-30}))
    assert all(item.holds and item.measured is not None for item in found)
    assert {item.why for item in found} == {"but not where theta is below 0.0001: rounding loses such angles"}


def test_without_rotations_nothing_is_measured():
    assert [(item.measured, item.holds, item.why) for item in measured()] == [
        (None, True, "no layer has rotary positions")
    ] * 2


def test_a_head_of_one_number_has_no_pair_to_turn():
    assert [item.measured for item in measured((ATTENTION | {"head_dim": 1}, ROPE))] == [0, 0]


TRUE_ROPE = positions.rope
PLACES = {
    "added": (lambda x, p, **_: (x + p[:, None]).astype(x.dtype), (False, False)),
    "a spiral": (lambda x, p, **f: (TRUE_ROPE(x, p, **f) * (1 + 1e-6 * p[:, None])).astype(x.dtype), (False, False)),
    "not of offsets": (lambda x, p, **f: TRUE_ROPE(x, p**2, **f), (False, True)),
    "nothing": (lambda x, p, **f: x, (False, False)),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("only", [1e4, 7.0])
def test_what_is_no_rotation_is_found_in_the_first_attention_and_in_the_second(monkeypatch, name, only):
    broken, holds = PLACES[name]

    def rope(x, p, **fields):
        return (broken if fields["theta"] == only else TRUE_ROPE)(x, p, **fields)

    monkeypatch.setattr(positions, "rope", rope)
    found = measured((ATTENTION, ROPE), (ATTENTION, PARTIAL))
    assert tuple(item.holds for item in found) == holds
    assert [item.bound for item in found] == [1e-4, 1e-5]
    assert {item.why for item in found} == {"positions change no key" if name == "nothing" else ""}
    assert all(item.holds for item in measured((ATTENTION, PARTIAL if only == 1e4 else ROPE)))


@pytest.mark.parametrize("wrong", module.STARTS)
@pytest.mark.parametrize(("factor", "holds"), [(1.5, (False, False)), (1, (False, True))])
def test_every_place_where_the_text_stands_is_looked_at(monkeypatch, wrong, factor, holds):
    """Each broken law at one start alone: longer by a half, or turned by squares."""

    def rope(x, p, **fields):
        if p[0] != wrong:
            return TRUE_ROPE(x, p, **fields)
        return TRUE_ROPE(factor * x, p if factor > 1 else p**2, **fields)

    monkeypatch.setattr(positions, "rope", rope)
    assert tuple(item.holds for item in measured((ATTENTION, ROPE))) == holds


def test_keys_that_grow_and_shrink_do_not_cancel(monkeypatch):
    """Neighbours trade length: the sum over all keys stays, each key's own does not."""

    def rope(x, p, **fields):
        factors = np.where(np.arange(len(p)) % 2, 1.1, 0.9) if p[0] else np.ones(len(p))
        return (TRUE_ROPE(x, p, **fields) * factors[:, None]).astype(x.dtype)

    monkeypatch.setattr(positions, "rope", rope)
    _, lengths = measured((ATTENTION, ROPE))
    assert lengths.measured > 0.05


@pytest.mark.parametrize("forgotten", ["q", "k"])
def test_an_attention_that_turns_only_one_of_the_two_is_found(monkeypatch, forgotten):
    heads = {"q": 6, "k": 3}[forgotten]
    turned = positions.TURNED["rope"]
    monkeypatch.setitem(positions.TURNED, "rope", lambda f, x, p: x if x.shape[1] == heads else turned(f, x, p))
    assert not all(item.holds for item in measured((ATTENTION, ROPE)))


def test_the_fields_of_the_positions_are_the_ones_that_turn(monkeypatch):
    asked = []
    monkeypatch.setattr(
        positions, "rope", lambda x, p, **fields: asked.append((int(p[0]), fields)) or TRUE_ROPE(x, p, **fields)
    )
    measured((ATTENTION, PARTIAL))
    turns = {"theta": 7.0, "rotary_dim": 4, "of_head": False}
    assert asked == [(start, turns) for start in (0, *module.STARTS) for _ in ("queries", "keys")]


def test_a_number_that_is_none_is_no_rotation(monkeypatch):
    monkeypatch.setattr(positions, "rope", lambda x, p, **_: np.full_like(x, np.nan))
    assert not any(item.holds for item in measured((ATTENTION, ROPE)))


def test_a_rotation_is_told_once_and_with_its_own_attention(small):
    turned = rotary(small().model_dump())
    assert [(some.attention["head_dim"], some.positions["kind"]) for some in turned] == [(5, "rope"), (7, "rope")]
    repeated = small(layers=[{"attention": {"heads": 6, "head_dim": 5}}, {"feed_forward": {"d_ff": 7}}] * 3, block={})
    assert len(rotary(repeated.model_dump())) == 1
    assert rotary(small(positions="none").model_dump()) == []
