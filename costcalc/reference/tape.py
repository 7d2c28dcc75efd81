"""What a pass really did: every parameter array, matmul and cached array, by path, under real layer indices.

The pass asks a `Scope` (a place in the model) for its parameters and its products, and the `Tape` writes down what it
was asked for; products from the shapes of the arrays themselves. The tape refuses anything but float32.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import numpy as np

from costcalc.reference.arrays import FLOAT, Array
from costcalc.reference.weights import Weights


class Product(NamedTuple):
    """`batch` products of (rows, inner) x (inner, columns)."""

    batch: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """A multiply-add is two."""
        return 2 * self.batch * self.rows * self.inner * self.columns


@dataclass(frozen=True, slots=True)
class Member:
    """Number `index` of `count` equal parts, such as experts."""

    index: int
    count: int


@dataclass(slots=True)
class Tape:
    """The records of one pass.

    parameters: path -> (elements, role). products: path -> the products made there, in order. of: path of a product ->
    path of the parameter it multiplied by. cached: path -> elements held after the pass. cached_kinds: path -> "kv",
    "cross" for what was made of an encoder's tokens, or "state". row_sum_error: the largest distance from 1 of the sum
    of any row of attention weights, None if there was none. Beside the result of the pass, pooled: what a pooler gave,
    (B, D); ahead: what modules gave that predict further tokens, (B, T - k, D) of number k = 1, 2, ...
    """

    weights: Weights
    parameters: dict[str, tuple[int, str]] = field(default_factory=dict)
    products: dict[str, list[Product]] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)
    cached: dict[str, int] = field(default_factory=dict)
    cached_kinds: dict[str, str] = field(default_factory=dict)
    row_sum_error: float | None = None
    pooled: Array | None = None
    ahead: list[Array] = field(default_factory=list)

    def flops(self) -> dict[str, int]:
        """FLOPs by path."""
        return {path: sum(product.flops for product in products) for path, products in self.products.items()}

    def allocated(self, path: str, elements: int, role: str) -> None:
        """Write down a parameter array; one path has one array."""
        if path in self.parameters:
            raise ValueError(f"{path} is allocated twice in one pass")
        self.parameters[path] = (elements, role)

    def borrowed(self, path: str, elements: int) -> None:
        """A parameter array that was written down before, used again; ValueError where there is none of that size."""
        if self.parameters.get(path, (0, ""))[0] != elements:
            raise ValueError(f"{path} is shared by parts that differ, or that come before it")

    def multiplied(self, path: str, product: Product, of: str | None = None) -> None:
        """Write down a product, and the parameter it multiplied by; of no rows there is none."""
        if product.flops == 0:
            return
        self.products.setdefault(path, []).append(product)
        if of is not None:
            self.of[path] = of

    def watch_rows(self, attention_weights: Array) -> None:
        """Measure how far rows of attention weights are from summing to 1. attention_weights: (..., S)."""
        error = float(np.abs(attention_weights.sum(axis=-1) - 1).max())
        self.row_sum_error = float(np.maximum(self.row_sum_error or 0.0, error))  # what is no number stays none


@dataclass(frozen=True, slots=True)
class Table:
    """A vocabulary or position table of (rows, width), looked up or multiplied by; `held` repeats to fill its rows."""

    tape: Tape
    path: str
    held: Array
    length: int

    def rows(self, indices: Array) -> Array:
        """The rows at these indices: (...) -> (..., width)."""
        for row in indices[(indices < 0) | (indices >= self.length)]:
            raise IndexError(f"{self.path} has {self.length} rows, row {row} was asked for")
        looked_up: Array = self.held[indices % len(self.held)]
        return looked_up

    def product(self, path: str, x: Array) -> Array:
        """x with every row, in blocks of what is held: (..., width) -> (..., rows)."""
        out = np.empty((*x.shape[:-1], self.length), FLOAT)
        for start in range(0, self.length, len(self.held)):
            block = self.held[: self.length - start]  # (rows of the block, width)
            out[..., start : start + len(block)] = _checked(path, x) @ block.T
        self.tape.multiplied(path, Product(1, prod(x.shape[:-1]), x.shape[-1], self.length), of=self.path)
        return out


@dataclass(frozen=True, slots=True)
class Scope:
    """A place in the model, such as decoder.layers.7.attention, where parameters and products have names.

    lender: the place whose parameters these are, where layers share one set of weights (ALBERT, arXiv 1909.11942,
    section 3.1) and this is not the first of them. member: which of several equal parts, such as experts, this is:
    their parameters are written down as one array, in which each has numbers of its own.
    """

    tape: Tape
    path: str = ""
    lender: str | None = None
    member: Member | None = None

    def under(self, name: str) -> Scope:
        """The place one step further down."""
        return replace(self, path=self.named(name), lender=None if self.lender is None else f"{self.lender}.{name}")

    def one_of(self, index: int, count: int) -> Scope:
        """Number `index` of `count` equal parts that stand here, in each of the parts that this is one of."""
        outer = Member(0, 1) if self.member is None else self.member
        return replace(self, member=Member(outer.index * count + index, outer.count * count))

    def named(self, name: str) -> str:
        """The path of something here."""
        return f"{self.path}.{name}" if self.path else name

    def parameter(self, name: str, *shape: int, role: str = "trainable") -> Array:
        """A parameter array of this shape."""
        path = self._held(name, prod(shape), role)
        return _checked(path, self._numbers.array(path, shape))

    def gain(self, name: str, width: int, *, role: str = "trainable") -> Array:
        """The gain of a norm, one number a channel, or another factor around 1."""
        path = self._held(name, width, role)
        return _checked(path, self._numbers.gain(path, width))

    def table(self, name: str, length: int, width: int, *, role: str = "trainable") -> Table:
        """A table of (length, width)."""
        path = self._held(name, length * width, role)
        return Table(self.tape, path, _checked(path, self._numbers.table(path, length, width)), length)

    def grouped(self, name: str, x: Array, outputs: int, *, bias: bool, groups: int) -> Array:
        """x W + b in equal groups, each of which makes its part of the outputs: (B, T, inputs) -> (B, T, outputs)."""
        batch, tokens, inputs = x.shape
        parts = x.reshape(batch, tokens, groups, inputs // groups).transpose(0, 2, 1, 3)
        made = self.each(name, parts, outputs // groups).transpose(0, 2, 1, 3)
        out: Array = made.reshape(batch, tokens, outputs)
        return out + self.parameter(f"{name}_bias", outputs) if bias else out

    def linear(self, name: str, x: Array, outputs: int, *, bias: bool, groups: int | None = None) -> Array:
        """x W, or x W + b: (..., inputs) -> (..., outputs), in blocks of the columns that are held.

        groups: in so many equal parts, where there are several.
        """
        if groups is not None:
            return self.grouped(name, x, outputs, bias=bias, groups=groups)
        inputs = x.shape[-1]
        path, held = self._matrix(name, inputs, outputs)
        flat = _checked(path, x.reshape(-1, inputs))  # (rows, inputs)
        if held.shape[1] == outputs:
            out: Array = flat @ held  # (rows, inputs) x (inputs, outputs)
        else:
            out = np.empty((len(flat), outputs), FLOAT)
            for start in range(0, outputs, held.shape[1]):
                block = held[:, : outputs - start]  # (inputs, columns of the block)
                out[:, start : start + block.shape[1]] = flat @ block
        self.tape.multiplied(self.named(name), Product(1, len(flat), inputs, outputs), of=path)
        if bias:
            out = out + self.parameter(f"{name}_bias", outputs)  # (rows, outputs) + (outputs)
        return out.reshape(*x.shape[:-1], outputs)

    def linear_of(self, other: str, x: Array, outputs: int, *, bias: bool, called: str) -> Array:
        """x W + b with the weight and the bias of another product of this place, under a name of its own."""
        place = self.path if self.lender is None else self.lender
        lent = Tape(self.tape.weights, dict(self.tape.parameters))
        out = Scope(lent, self.path, place, self.member).linear(other, x, outputs, bias=bias)
        (product,) = lent.products[self.named(other)]
        self.tape.multiplied(self.named(called), product, of=lent.of[self.named(other)])
        return out

    def by_head(self, name: str, x: Array, outputs: int, *, width: int, back: bool) -> Array:
        """Each head's rows x with its own columns of a matrix W of (inner, N·width).

        x: (B, N, T, inner) -> (B, N, T, width); back, with those columns as rows, (B, N, T, width) -> (B, N, T, inner).
        outputs: what a row becomes, `width` or, back, inner.
        """
        batch, heads, tokens, _ = x.shape
        inner = outputs if back else x.shape[-1]
        path, held = self._matrix(name, inner, heads * width)
        out = np.empty((batch, heads, tokens, outputs), FLOAT)
        for head in range(heads):
            columns = held[:, np.arange(head * width, (head + 1) * width) % held.shape[1]]  # (inner, width)
            out[:, head] = _checked(path, x[:, head]) @ (columns.T if back else columns)
        self.tape.multiplied(self.named(name), Product(heads, batch * tokens, x.shape[-1], outputs), of=path)
        return out

    def each(self, name: str, x: Array, outputs: int) -> Array:
        """Each of P parts of the rows with a matrix of its own: (..., P, rows, inner) x (P, inner, outputs)."""
        *_, parts, rows, inner = x.shape
        shape = parts, inner, outputs
        path = self._held(name, prod(shape))
        out: Array = _checked(path, x) @ _checked(path, self._numbers.array(path, shape))
        self.tape.multiplied(self.named(name), Product(prod(out.shape[:-2]), rows, inner, outputs), of=path)
        return out

    def elementwise(self, name: str, a: Array, b: Array) -> Array:
        """a * b of two activations, number by number: a multiply-add for each number of the result."""
        path = self.named(name)
        out: Array = _checked(path, a) * _checked(path, b)
        self.tape.multiplied(path, Product(out.size, 1, 1, 1))
        return out

    def product(self, name: str, a: Array, b: Array) -> Array:
        """a b of two activations: (..., rows, inner) x (..., inner, columns)."""
        path = self.named(name)
        out: Array = _checked(path, a) @ _checked(path, b)
        self.tape.multiplied(path, Product(prod(out.shape[:-2]), a.shape[-2], a.shape[-1], b.shape[-1]))
        return out

    @property
    def _numbers(self) -> Weights:
        weights, member = self.tape.weights, self.member
        return weights if member is None else weights.one_of(member.index, member.count)

    def _matrix(self, name: str, inputs: int, outputs: int) -> tuple[str, Array]:
        """A matrix's path, and so many of its columns as are held."""
        path = self._held(name, inputs * outputs)
        return path, _checked(path, self._numbers.matrix(path, inputs, outputs))

    def _held(self, name: str, elements: int, role: str = "trainable") -> str:
        """The path of a parameter of this place, or of its lender, written down with all equal parts."""
        path = self.named(name) if self.lender is None else f"{self.lender}.{name}"
        is_there = self.lender is not None or (self.member is not None and path in self.tape.parameters)
        if self.member is not None:
            elements *= self.member.count
        if is_there:
            self.tape.borrowed(path, elements)
        else:
            self.tape.allocated(path, elements, role)
        return path


def _checked(path: str, array: Array) -> Array:
    if array.dtype != FLOAT:
        raise TypeError(f"{path}: {array.dtype} in a pass of float32")
    return array
