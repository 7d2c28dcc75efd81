from __future__ import annotations

import random

import pytest

from costcalc.sources.layers import merged_layers

A, B, C = {"window": 5}, {"window": None}, {"window": 7}


def _expanded(entries: list[dict]) -> list[dict]:
    """The layers that entries stand for, one by one."""
    layers = []
    for entry in entries:
        inside = (
            _expanded(entry["pattern"]) if "pattern" in entry else [{k: v for k, v in entry.items() if k != "repeat"}]
        )
        layers += inside * entry["repeat"]
    return layers


@pytest.mark.parametrize(
    ("layers", "entries"),
    [
        ([A], [{"window": 5, "repeat": 1}]),
        ([A] * 7, [{"window": 5, "repeat": 7}]),
        ([A, B], [{"repeat": 1, **A}, {"repeat": 1, **B}]),
        ([A, A, B], [{"repeat": 2, **A}, {"repeat": 1, **B}]),
        ([A, B, A], [{"repeat": 1, **A}, {"repeat": 1, **B}, {"repeat": 1, **A}]),
        ([A, B] * 3, [{"repeat": 3, "pattern": [{"repeat": 1, **A}, {"repeat": 1, **B}]}]),
        ([A, B] * 2 + [A], [{"repeat": 2, "pattern": [{"repeat": 1, **A}, {"repeat": 1, **B}]}, {"repeat": 1, **A}]),
        ([A, A, B] * 2, [{"repeat": 2, "pattern": [{"repeat": 2, **A}, {"repeat": 1, **B}]}]),
        ([A, A, B, A, A], [{"repeat": 2, **A}, {"repeat": 1, **B}, {"repeat": 2, **A}]),
        (
            [A, B, C, A, B],
            [{"repeat": 1, **A}, {"repeat": 1, **B}, {"repeat": 1, **C}, {"repeat": 1, **A}, {"repeat": 1, **B}],
        ),
    ],
)
def test_equal_layers_become_repeats_and_patterns(layers, entries):
    assert merged_layers(layers) == entries


def test_equal_layers_need_not_be_the_same_object():
    assert merged_layers([dict(A), dict(A), dict(B)]) == [{"repeat": 2, **A}, {"repeat": 1, **B}]


def test_a_hundred_alternating_layers_are_two_blocks():
    (pattern,) = merged_layers([A, B] * 50)
    assert (pattern["repeat"], len(pattern["pattern"])) == (50, 2)


@pytest.mark.parametrize(("period", "entries"), [(64, 1), (65, 130)])
def test_the_longest_period_that_is_looked_for(period, entries):
    layers = [{"window": n + 1} for n in range(period)] * 2
    merged = merged_layers(layers)
    assert len(merged) == entries
    assert _expanded(merged) == layers


def test_the_layers_handed_over_stay_as_they_were():
    layers = [dict(A), dict(B)] * 3
    merged_layers(layers)
    assert layers == [A, B] * 3


def test_any_order_expands_back_to_itself():
    for seed in range(300):
        rng = random.Random(seed)
        period = [rng.choice([A, B, C]) for _ in range(rng.randint(1, 7))]
        layers = (period * rng.randint(1, 5))[: rng.randint(1, 31)]
        layers = [dict(layer) if rng.random() < 0.3 else layer for layer in layers]
        assert _expanded(merged_layers(layers)) == layers, seed
