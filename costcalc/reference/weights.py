"""Where a pass takes its numbers from: a random arena that all parameters share, or given arrays."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from math import prod
from typing import Protocol
from zlib import crc32

import numpy as np

from costcalc.reference.arrays import FLOAT, Array


class Weights(Protocol):
    """Where the numbers come from."""

    def array(self, path: str, shape: tuple[int, ...]) -> Array:
        """A float32 parameter array of this shape, whole."""

    def gain(self, path: str, width: int) -> Array:
        """A float32 vector that a normalised activation is multiplied by."""

    def matrix(self, path: str, inputs: int, outputs: int) -> Array:
        """A float32 matrix (inputs, outputs), or so many of its columns as are held: the rest repeats them."""

    def table(self, path: str, rows: int, width: int) -> Array:
        """A float32 table (rows, width), or so many of its rows as are held: the rest repeats them."""

    def one_of(self, index: int, count: int) -> Weights:
        """Where number `index` of `count` equal parts, that are one array a path, takes its numbers from."""


SHIFTS = 4096
ALIGNED = 16
"""Views begin at one of SHIFTS places, ALIGNED numbers apart, so that two matrices of one shape differ."""


class Arena:
    """One random array; every parameter is a view into it, so that any model fits into the memory of a matrix.

    size: elements of the largest view. A matrix that is larger gives as many of its columns as fit, a table as many of
    its rows; what is left repeats them. deviation: the standard deviation of the numbers, 1 / √D keeps a pass in range.
    """

    def __init__(self, size: int, *, deviation: float, seed: int = 0) -> None:
        self.size = size
        self.part = ""
        numbers = np.random.default_rng(seed).random(size + SHIFTS * ALIGNED, dtype=FLOAT)
        numbers -= FLOAT(0.5)
        numbers *= FLOAT(deviation * 12**0.5)  # uniform numbers of width 1 deviate by 1 / √12
        self.numbers = numbers

    def array(self, path: str, shape: tuple[int, ...]) -> Array:
        """A view of this shape; ValueError where it does not fit."""
        elements = prod(shape)
        start = crc32((path + self.part).encode()) % SHIFTS * ALIGNED
        if start + elements > len(self.numbers):
            raise ValueError(f"{path} has {elements:,} numbers, the arena {self.size:,}")
        return self.numbers[start : start + elements].reshape(shape)

    def gain(self, path: str, width: int) -> Array:
        """A view and 1: around 1, so that a norm does its work."""
        return 1 + self.array(path, (width,))

    def matrix(self, path: str, inputs: int, outputs: int) -> Array:
        """(inputs, outputs), or the columns that fit."""
        return self.array(path, (inputs, max(min(outputs, self.size // inputs), 1)))

    def table(self, path: str, rows: int, width: int) -> Array:
        """(rows, width), or the rows that fit."""
        return self.array(path, (max(min(rows, self.size // width), 1), width))

    def one_of(self, index: int, count: int) -> Arena:
        """The same numbers, from which this part has views of its own."""
        del count
        one = copy.copy(self)
        one.part = f".{index}"
        return one


class Given:
    """Arrays by path, such as a checkpoint's; a matrix is (inputs, outputs), those of equal parts (parts, ...)."""

    def __init__(self, arrays: Mapping[str, Array], *, part: tuple[int, int] | None = None) -> None:
        self.arrays = arrays
        self.part = part

    def array(self, path: str, shape: tuple[int, ...]) -> Array:
        """The array of this path, which must have this shape."""
        if path not in self.arrays:
            raise KeyError(f"{path} is not among the given arrays")
        given = self.arrays[path]
        index, parts = (None, ()) if self.part is None else (self.part[0], self.part[1:])
        if given.shape != (*parts, *shape):
            raise ValueError(f"{path} is {given.shape}, the pass wants {(*parts, *shape)}")
        return given if index is None else given[index]

    def gain(self, path: str, width: int) -> Array:
        """(width)."""
        return self.array(path, (width,))

    def matrix(self, path: str, inputs: int, outputs: int) -> Array:
        """(inputs, outputs)."""
        return self.array(path, (inputs, outputs))

    def table(self, path: str, rows: int, width: int) -> Array:
        """(rows, width)."""
        return self.array(path, (rows, width))

    def one_of(self, index: int, count: int) -> Given:
        """The same arrays, of each of which this part has number `index` of `count`."""
        return Given(self.arrays, part=(index, count))
