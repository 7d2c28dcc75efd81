"""A number that knows how it came about: its formula, the numbers put in, the figures below it, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor

from costcalc.expression import Expression, Number, symbol

EXACT, MODELLED, ESTIMATE = "exact", "modelled", "estimate"
"""What a figure is: counted to the last unit, from a model of behaviour, or by a rule of thumb."""
MOST_IN_A_ROW = 3
"""A sum of more parts than this is written as a sum of lines."""


@dataclass(frozen=True)
class Figure:
    """A named number, by an expression over `values`, as the sum of `terms`, or found otherwise, which `words` say.

    values: what each symbol of the expression stands for, a number or another figure.
    source: where the formula comes from. status: EXACT, MODELLED or ESTIMATE, of this formula alone: see `nature`.
    found: the number that `words` describe; `terms` are then what it was found from, not added up.
    """

    name: str
    unit: str
    expression: Expression | None = None
    values: Mapping[str, Figure | Number] = field(default_factory=dict)
    terms: tuple[Figure, ...] = ()
    source: str = ""
    status: str = EXACT
    words: str = ""
    found: Number = 0

    @cached_property
    def exact_value(self) -> Number:
        """The number as the formula has it, a Fraction where it is not whole."""
        if self.words:
            return self.found
        if self.expression is None:
            return sum(term.exact_value for term in self.terms)
        return self.expression.value(self._numbers)

    @property
    def value(self) -> int:
        """The number, to the nearest whole one."""
        return whole(self.exact_value)

    @property
    def inputs(self) -> list[Figure]:
        """The figures right below this one."""
        return [*self.terms, *(value for value in self.values.values() if isinstance(value, Figure))]

    @property
    def nature(self) -> str:
        """The least exact status of all that goes into it; of nothing, nothing comes."""
        below = [figure.nature for figure in self.inputs if figure.exact_value]
        return next((status for status in (ESTIMATE, MODELLED) if status in (self.status, *below)), EXACT)

    @property
    def formula(self) -> Expression | str:
        """In symbols; in words where many terms are added up, or where it was found by trying."""
        if self.words:
            return self.words
        if self.expression is not None:
            return self.expression
        if not self.terms:
            return "no terms"
        if len(self.terms) > MOST_IN_A_ROW:
            return f"sum of {len(self.terms):,} lines"
        first, *others = (symbol(term.name) for term in self.terms)
        return sum(others, first)

    @property
    def numbers(self) -> Expression | str:
        """The formula with the numbers put in."""
        formula = self.formula
        if isinstance(formula, str):
            return ""
        return formula.filled({**self._numbers, **{term.name: term.exact_value for term in self.terms}})

    @property
    def _numbers(self) -> dict[str, Number]:
        return {name: value.exact_value if isinstance(value, Figure) else value for name, value in self.values.items()}

    def lineage(self) -> Iterator[Figure]:
        """Every figure below this one and itself, each once, inputs before what they go into."""
        seen: set[tuple[str, str]] = set()
        waiting: list[tuple[Figure, bool]] = [(self, False)]
        while waiting:
            figure, is_done = waiting.pop()
            if is_done:
                yield figure
            elif (figure.name, figure.unit) not in seen:
                seen.add((figure.name, figure.unit))
                waiting.append((figure, True))
                waiting.extend((below, False) for below in reversed(figure.inputs))

    def of(self, what: str) -> Figure:
        """The same figure, told apart from others of its name: `decoder.layers.attention.q (next token)`."""
        return replace(self, name=f"{self.name} ({what})") if what else self

    def named(self, name: str) -> Figure:
        """The same figure under another name."""
        return replace(self, name=name)


def given(name: str, unit: str, value: Number) -> Figure:
    """A number that the user or the model gives."""
    return Figure(name, unit, words="given", found=value)


def whole(number: Number) -> int:
    """To the nearest whole number, a half up: what `flops.per_token` does, too."""
    return floor(number + Fraction(1, 2))
