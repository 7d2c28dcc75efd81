"""Names and shapes of many tensors in few lines: `layers.#.q.weight` stands for all of its numbers, where all have one
shape.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

Tensors = dict[str, list[int]]
NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def packed(tensors: Tensors) -> list[list[Any]]:
    """[pattern, the numbers of each # in it, shape] of each set of tensors that differ in numbers alone."""
    sets: dict[tuple[str, tuple[int, ...]], list[tuple[int, ...]]] = {}
    for name, shape in tensors.items():
        pattern = NUMBER.sub("#", name)
        sets.setdefault((pattern, tuple(shape)), []).append(tuple(map(int, NUMBER.findall(name))))
    rows: list[list[Any]] = []
    for (pattern, shape), numbers in sets.items():
        axes = [sorted(set(each)) for each in zip(*numbers, strict=True)]
        if sorted(product(*axes)) == sorted(numbers):
            rows.append([pattern, axes, list(shape)])
        else:
            rows += [[pattern, [[each] for each in chosen], list(shape)] for chosen in numbers]
    return rows


def unpacked(rows: list[list[Any]]) -> Tensors:
    """The other way round."""
    tensors: Tensors = {}
    for pattern, axes, shape in rows:
        for numbers in product(*axes):
            tensors[
                "".join(f"{part}{number}" for part, number in zip(pattern.split("#"), [*numbers, ""], strict=True))
            ] = shape
    return tensors
