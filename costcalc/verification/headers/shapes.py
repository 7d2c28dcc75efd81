"""Whether a stored shape can be that of a weight with named axes, or of several that are stored as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

Shape = tuple[int, ...]
GROUPED = 3
"""Axes that a product for each group has at least: groups, inputs and outputs of one, and taps of a convolution."""


def fits(axes: Shape, stored: Shape) -> bool:
    """Whether `stored` has the axes in some order, neighbours joined: (D, N, H) is [N·H, D], and [D, N·H].

    Axes of one element may be left out or put in, as the middle one of a convolution. The stored shape may be the one
    that is split: [heads, size] for an axis of heads·size.
    """
    return _fits(_squeezed(axes), _squeezed(stored))


@lru_cache(maxsize=65_536)
def _fits(axes: Shape, stored: Shape) -> bool:
    if prod(axes) != prod(stored):
        return False
    wanted, own = sorted(stored), sorted(axes)
    if stored in _grouped(axes) or any(sorted(joined) == wanted for joined in _joined(axes)):
        return True
    return any(sorted(joined) == own for joined in _joined(stored))


def _grouped(axes: Shape) -> list[Shape]:
    """Products for each group, stored below one another: (groups, ..., outputs) as [groups·outputs, ...]."""
    if len(axes) < GROUPED:
        return []
    first, *middle, last = axes
    return [(first * last, *joined) for turned in (middle, middle[::-1]) for joined in _joined(tuple(turned))]


def together(parts: Sequence[Shape], stored: Shape) -> bool:
    """Whether `stored` is all of `parts` laid side by side along one axis, the others being common to them."""
    dims = _squeezed(stored)
    if sum(map(prod, parts)) != prod(dims):
        return False
    return any(_side_by_side(parts, dims[:at] + dims[at + 1 :], dims[at]) for at in range(len(dims)))


def _side_by_side(parts: Sequence[Shape], common: Shape, along: int) -> bool:
    shared = prod(common)
    widths = [divmod(prod(part), shared) for part in parts]
    if any(rest for _, rest in widths) or sum(width for width, _ in widths) != along:
        return False
    return all(fits(part, (*common, width)) for part, (width, _) in zip(parts, widths, strict=True))


def said(shape: Shape) -> str:
    """'4,096 x 128', or 'scalar'."""
    return " x ".join(f"{size:,}" for size in shape) or "scalar"


def _squeezed(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


@lru_cache(maxsize=4_096)
def _joined(axes: Shape) -> tuple[Shape, ...]:
    """The axes in their order, with any neighbours joined into one."""
    if not axes:
        return ((),)
    found: list[Shape] = []
    for end in range(1, len(axes) + 1):
        found += [(prod(axes[:end]), *rest) for rest in _joined(axes[end:])]
    return tuple(found)
