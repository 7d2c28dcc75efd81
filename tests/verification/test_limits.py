"""How much of a model is run, and what is too large."""

import pytest

from costcalc import CostcalcError, Workload
from costcalc.reference.weights import ALIGNED, SHIFTS
from costcalc.verification import limits, verify
from costcalc.verification.limits import arena_for, binding, refuse_too_large, tokens_for


def test_wide_windows_are_made_to_bind(small):
    layers = [
        {"attention": {"heads": 6, "head_dim": 5, "window": window}} for window in (4096, 11, 10, 7, 128, 1, None)
    ]
    model = small(layers=layers, block={})
    fields, replaced = binding(model.model_dump(), Workload(new_tokens=11))
    assert replaced == {11: 5, 128: 5, 4096: 5}
    assert [layer["attention"]["window"] for layer in fields["decoder"]["layers"]] == [5, 5, 10, 7, 5, 1, None]
    assert model.decoder.layers[0].attention.window == 4096
    result = verify(model)
    assert result.agrees
    assert result.replaced == {11: 5, 128: 5, 4096: 5}


def test_windows_inside_patterns_are_made_to_bind(small):
    block = {"attention": {"heads": 6, "head_dim": 5}}
    inner = {"repeat": 2, "pattern": [{"attention": {"window": 512}}, {}]}
    model = small(layers=None, block=None, decoder={"block": block, "layers": [{"repeat": 3, "pattern": [inner, {}]}]})
    result = verify(model)
    assert result.agrees
    assert result.replaced == {512: 5}
    assert len(set(model.inventory.layout["decoder"])) == 2


def test_windows_bind_in_a_short_text_too(small):
    layers = [{"attention": {"heads": 6, "head_dim": 5, "window": 4096}}]
    result = verify(small(positions={"kind": "learned", "length": 3}, layers=layers, block={}))
    assert result.agrees
    assert result.replaced == {4096: 2}
    assert (
        result.phases[0].compared[1].recorded
        < verify(
            small(
                positions={"kind": "learned", "length": 3},
                layers=[{"attention": {"heads": 6, "head_dim": 5}}],
                block={},
            )
        )
        .phases[0]
        .compared[1]
        .recorded
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 10**12},
        {"d_model": 10**9},
        {"block": {"feed_forward": {"d_ff": 10**10}}},
        {"block": {"repeat": 10**4, "feed_forward": {"d_ff": 10**9}}},
    ],
)
def test_a_model_that_does_not_fit_here_is_refused_at_once(small, changes):
    with pytest.raises(CostcalcError, match="too large to run here") as caught:
        verify(small(**changes))
    assert caught.value.hint


def test_a_large_matrix_is_multiplied_in_blocks(small, monkeypatch):
    """An arena of 100 numbers: q has 13·30, in blocks of 7 columns; the table of 19·13 in blocks of 7 rows."""
    whole = verify(small())
    monkeypatch.setattr("costcalc.verification.limits.LARGEST_ARENA", 100)
    blocks = verify(small())
    assert blocks.agrees
    assert blocks.phases == whole.phases
    assert blocks.arena_bytes < whole.arena_bytes


def test_a_window_in_a_text_of_two_tokens_is_made_one(small):
    layers = [{"attention": {"heads": 6, "head_dim": 5, "window": 4096}}]
    result = verify(small(positions={"kind": "learned", "length": 2}, layers=layers, block={}))
    assert result.agrees
    assert result.replaced == {4096: 1}


@pytest.mark.parametrize(("length", "tokens"), [(None, 11), (1, 1), (7, 7), (11, 11), (1024, 11)])
def test_as_many_tokens_as_the_table_has_rows(small, length, tokens):
    positions = "none" if length is None else {"kind": "learned", "length": length}
    assert tokens_for(small(positions=positions)) == tokens


@pytest.mark.parametrize(("limit", "reached"), [("MOST_FLOPS", 221_400), ("LARGEST_ACTIVATIONS", 462)])
def test_a_model_at_a_limit_is_run_and_one_beyond_it_is_refused(small, monkeypatch, limit, reached):
    """Matrices 2·11·8,892 and cores 4·(900 + 5,544), see test_verification_run.py; 11 tokens of 6·7 = 42 numbers."""
    monkeypatch.setattr(limits, limit, reached)
    refuse_too_large(small())
    monkeypatch.setattr(limits, limit, reached - 1)
    with pytest.raises(CostcalcError, match=r"221,400 FLOPs for 11 tokens, 42 numbers for each"):
        refuse_too_large(small())


@pytest.mark.parametrize(
    ("changes", "widest"),
    [
        ({"vocab_size": 53}, 53),
        ({"block": {"feed_forward": {"kind": "gated", "d_ff": 59}}}, 59),
        ({"d_model": 61}, 61),
        ({"embedding": {"width": 67}}, 67),
        ({"positions": {"kind": "learned", "length": 71}}, 42),  # looked up, never multiplied
    ],
)
def test_the_widest_side_of_any_matrix(small, monkeypatch, changes, widest):
    monkeypatch.setattr(limits, "LARGEST_ACTIVATIONS", 11 * widest)
    refuse_too_large(small(**changes))
    monkeypatch.setattr(limits, "LARGEST_ACTIVATIONS", 11 * widest - 1)
    with pytest.raises(CostcalcError, match=f" {widest} numbers for each"):
        refuse_too_large(small(**changes))


@pytest.mark.parametrize(
    ("changes", "largest"),
    [
        ({}, 13 * 42),  # q of the global layers
        ({"block": {"feed_forward": {"kind": "gated", "d_ff": 59}}}, 13 * 59),
        ({"vocab_size": 509}, 509 * 13),
        ({"vocab_size": 100_003}, 512 * 13),
        ({"positions": {"kind": "learned", "length": 521}}, 512 * 13),
    ],
)
def test_the_arena_holds_the_largest_matrix_or_some_rows_of_a_table(small, changes, largest):
    arena = arena_for(small(**changes))
    assert arena.size == largest
    assert arena.numbers.size == largest + SHIFTS * ALIGNED
    assert arena.numbers.std() == pytest.approx(13**-0.5, rel=0.02)


def test_the_arena_is_bounded(small, monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_ARENA", 500)
    assert arena_for(small()).size == 500
