"""Curves read backwards: the first context that something holds at, the last that fits."""

from __future__ import annotations

from collections.abc import Callable

LARGEST = 10**12
"""What no context exceeds: a curve that has not arrived by then never will."""


def first_true(holds: Callable[[int], bool]) -> int | None:
    """The smallest n from 1 on at which `holds(n)`, which stays true once it is; None if it is nowhere."""
    high = 1
    while not holds(high):
        if high >= LARGEST:
            return None
        high = min(2 * high, LARGEST)
    low = high // 2  # does not hold there, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def last_true(holds: Callable[[int], bool]) -> int | None:
    """The largest n at which `holds(n)`, which stays false once it is; 0 if it is nowhere, None if it has no end."""
    first_false = first_true(lambda n: not holds(n))
    return None if first_false is None else first_false - 1
