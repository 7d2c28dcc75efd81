"""Formulas as small trees, so that one statement gives the text, the LaTeX, the numbers put in, and the value.

Arithmetic on a symbol builds the tree: `3 * (symbol("P") + symbol("V")) * symbol("t")`. Since records and extents are
plain arithmetic without branches, the same code that counts a model also writes its formula when it is handed symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

Number = int | Fraction
Operand = Any
"""An Expression or a Number: what arithmetic mixes."""

SUM, PRODUCT, POWER, ATOM = range(4)
"""How tightly a form binds, loosest first: a part that binds more loosely than its whole is put in brackets."""
TIGHTNESS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "^": POWER}
LARGEST_DENOMINATOR = 10**9
"""Of a fraction that is written as one: a longer one is written to six places."""
MOST_STAGES = 50
"""2^50 is beyond any length."""
CALLS = ("min", "max", "floor", "ceil", "mod", "ceil_log2")


class Expression:
    """A symbol, a number, or an operation on other expressions; immutable."""

    __slots__ = ("operation", "parts")

    def __init__(self, operation: str, *parts: Any) -> None:
        self.operation = operation
        self.parts = parts

    def __add__(self, other: Operand) -> Expression:
        return self if _is(other, 0) else _node("+", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return self if _is(other, 0) else _node("+", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return self if _is(other, 0) else _node("-", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return _node("-", other, self)

    def __mul__(self, other: Operand) -> Any:
        return self if _is(other, 1) else 0 if _is(other, 0) else _node("*", self, other)

    def __rmul__(self, other: Operand) -> Any:
        return self if _is(other, 1) else 0 if _is(other, 0) else _node("*", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return self if _is(other, 1) else _node("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _node("/", other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return self if _is(other, 1) else Expression("floor", _node("/", self, other))

    def __mod__(self, other: Operand) -> Expression:
        return _node("mod", self, other)

    def __pow__(self, other: Operand) -> Expression:
        return _node("^", self, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and (other.operation, other.parts) == (self.operation, self.parts)

    def __hash__(self) -> int:
        return hash((self.operation, self.parts))

    def __repr__(self) -> str:
        return f"Expression({self.text()})"

    def text(self) -> str:
        """`3·(P + V)·t`."""
        return _written(self, _TEXT)

    def latex(self) -> str:
        r"""`3 \, (P + V) \, t`, to stand between dollars."""
        return _written(self, _LATEX)

    def filled(self, values: Mapping[str, Number]) -> Expression:
        """The same formula with numbers in the place of symbols."""
        if self.operation == "symbol":
            return _expression(values[self.parts[0]])
        if self.operation == "number":
            return self
        return Expression(self.operation, *(part.filled(values) for part in self.parts))

    def value(self, values: Mapping[str, Number]) -> Number:
        """What it comes to: exact, a Fraction only where a quotient is not whole. KeyError: a symbol has no value."""
        if self.operation == "symbol":
            return values[self.parts[0]]
        if self.operation == "number":
            number: Number = self.parts[0]
            return number
        result = _EVALUATED[self.operation](*(part.value(values) for part in self.parts))
        return result.numerator if result.denominator == 1 else result

    def symbols(self) -> dict[str, None]:
        """The names of its symbols, in the order of writing."""
        if self.operation == "symbol":
            return {self.parts[0]: None}
        if self.operation == "number":
            return {}
        return {name: None for part in self.parts for name in part.symbols()}


def symbol(name: str) -> Expression:
    """A letter or a name that stands for a number."""
    return Expression("symbol", name)


def symbols(names: str) -> list[Expression]:
    """Several at once, their names between spaces."""
    return [symbol(name) for name in names.split()]


def smaller(a: Operand, b: Operand) -> Any:
    """min(a, b) without a branch, for ints, arrays and expressions."""
    if isinstance(a, Expression) or isinstance(b, Expression):
        return _node("min", a, b)
    return (a + b - abs(a - b)) // 2


def positive(a: Operand) -> Any:
    """max(a, 0) without a branch, for ints, arrays and expressions."""
    return _node("max", a, 0) if isinstance(a, Expression) else (a + abs(a)) // 2


def exceeds(a: Operand, b: int) -> Any:
    """1 where a is above b, and 0 elsewhere, for whole numbers, arrays and expressions."""
    return smaller(positive(a - b), 1)


def exact_quotient(a: Operand, b: int) -> Any:
    """The quotient where b divides a; what is given may be ints, arrays or expressions."""
    return a / b if isinstance(a, Expression) else a // b


def ceil_quotient(a: Operand, b: int) -> Any:
    """The quotient, rounded up to a whole number; a may be an int, an array or an expression."""
    if isinstance(a, Expression):
        return a if b == 1 else Expression("ceil", a / b)
    return -(-a // b)


def ceil_log2(a: Operand) -> Any:
    """The exponent of the smallest power of two that is not below a; a may be an int, an array or an expression."""
    if isinstance(a, Expression):
        return Expression("ceil_log2", a)
    return (a - 1).bit_length() if isinstance(a, int) else sum(a > 2**power for power in range(MOST_STAGES))


def _is(value: Operand, number: int) -> bool:
    """Whether a literal 0 or 1 leaves a term out; an Expression never does, since it equals no number."""
    return bool(value == number)


def _expression(value: Operand) -> Expression:
    return value if isinstance(value, Expression) else Expression("number", value)


def _node(operation: str, a: Operand, b: Operand) -> Expression:
    return Expression(operation, _expression(a), _expression(b))


_EVALUATED: dict[str, Callable[..., Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: Fraction(a) / b,
    "^": lambda a, b: a**b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "floor": lambda a: a.__floor__(),
    "ceil": lambda a: a.__ceil__(),
    "ceil_log2": lambda a: (int(a) - 1).bit_length(),
}


class _Style:
    """How one notation writes symbols, numbers, products, quotients and calls."""

    times = "·"
    slash = True
    """Whether quotients stand on one line."""
    digits_apart = "·"
    """What stands before a digit: side by side, two numbers would read as one."""

    def symbol(self, name: str) -> str:
        return name

    def number(self, value: Number) -> str:
        if value.denominator == 1:
            return f"{value.numerator:,}"
        decimal = float(value)
        if Fraction(f"{decimal:.4g}") == value:
            return f"{decimal:,.4g}"
        if value.denominator > LARGEST_DENOMINATOR:
            return f"{decimal:,.6f}"
        return f"{value.numerator:,}/{value.denominator:,}"

    def quotient(self, a: str, b: str) -> str:
        return f"{a} / {b}"

    def power(self, a: str, b: str) -> str:
        return f"{a}^{b}"


class _Latex(_Style):
    times = r" \, "
    slash, digits_apart = False, r" \cdot "

    def symbol(self, name: str) -> str:
        return name if len(name) == 1 else rf"\mathrm{{{name}}}".replace("_", r"\_").replace(" ", r"\ ")

    def number(self, value: Number) -> str:
        return super().number(value).replace(",", "{,}")

    def quotient(self, a: str, b: str) -> str:
        return rf"\frac{{{a}}}{{{b}}}"

    def power(self, a: str, b: str) -> str:
        return f"{a}^{b}" if len(b) == 1 else f"{a}^{{{b}}}"


_TEXT, _LATEX = _Style(), _Latex()


def _written(whole: Expression, style: _Style) -> str:
    operation, parts = whole.operation, whole.parts
    if operation in ("symbol", "number"):
        return style.symbol(parts[0]) if operation == "symbol" else style.number(parts[0])
    if operation in CALLS:
        least = POWER if operation == "mod" else SUM
        return _call(operation, [_bracketed(part, least, style) for part in parts], style)
    return _OPERATED[operation](parts[0], parts[1], style)


def _sum(a: Expression, b: Expression, style: _Style) -> str:
    return f"{_written(a, style)} + {_written(b, style)}"


def _difference(a: Expression, b: Expression, style: _Style) -> str:
    """The brackets of a - (b + c) stay."""
    return f"{_written(a, style)} - {_bracketed(b, PRODUCT, style)}"


def _product(a: Expression, b: Expression, style: _Style) -> str:
    """A quotient among factors keeps its brackets on one line: a·(b / 2)·c."""
    left, right = (
        _bracketed(part, POWER if style.slash and part.operation in ("/", "number") else PRODUCT, style)
        for part in (a, b)
    )
    between = style.digits_apart if right.replace(r"\frac{", "")[0].isdigit() else style.times
    return f"{left}{between}{right}"


def _quotient(a: Expression, b: Expression, style: _Style) -> str:
    if isinstance(style, _Latex):
        return style.quotient(_written(a, style), _written(b, style))
    return style.quotient(_bracketed(a, PRODUCT, style), _bracketed(b, POWER, style))


def _power(a: Expression, b: Expression, style: _Style) -> str:
    return style.power(_bracketed(a, ATOM, style), _bracketed(b, ATOM, style))


_OPERATED = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "^": _power}


def _bracketed(part: Expression, least: int, style: _Style) -> str:
    text = _written(part, style)
    return f"({text})" if _tightness(part, text) < least else text


def _tightness(part: Expression, text: str) -> int:
    """Of a number, that of the operation that its text looks like."""
    if part.operation == "number":
        return SUM if text.startswith("-") else PRODUCT if "/" in text else ATOM
    return TIGHTNESS.get(part.operation, ATOM)


def _call(name: str, arguments: list[str], style: _Style) -> str:
    if isinstance(style, _Latex):
        if name in ("floor", "ceil"):
            return rf"\left\l{name} {arguments[0]} \right\r{name}"
        if name == "ceil_log2":
            return rf"\lceil \log_2({arguments[0]}) \rceil"
        if name == "mod":
            return rf"({arguments[0]} \bmod {arguments[1]})"
        return rf"\{name}({', '.join(arguments)})"
    return f"({arguments[0]} mod {arguments[1]})" if name == "mod" else f"{name}({', '.join(arguments)})"
