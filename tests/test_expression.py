"""Formulas: what they are written like, and what they come to; at the end, random ones against Python itself."""

import operator
import random
import re
from fractions import Fraction
from math import ceil, floor

import pytest

from costcalc.expression import (
    Expression,
    ceil_log2,
    ceil_quotient,
    exact_quotient,
    positive,
    smaller,
    symbol,
    symbols,
)

a, b, c, d = symbols("a b c d")
B, L, T, N, H = symbols("B L T N H")
VALUES = {"a": 7, "b": 3, "c": 2, "d": 5, "B": 2, "L": 3, "T": 11, "N": 6, "H": 5}

WRITTEN = [
    # expression, text, LaTeX, value with a = 7, b = 3, c = 2, d = 5
    (a, "a", "a", 7),
    (symbol("P_non_embedding"), "P_non_embedding", r"\mathrm{P\_non\_embedding}", None),
    (symbol("next token k"), "next token k", r"\mathrm{next\ token\ k}", None),
    # sums
    (a + b + c, "a + b + c", "a + b + c", 12),
    (a + (b + c), "a + b + c", "a + b + c", 12),
    (a - b - c, "a - b - c", "a - b - c", 2),
    (a - (b - c), "a - (b - c)", "a - (b - c)", 6),
    (a - (b + c), "a - (b + c)", "a - (b + c)", 2),
    (a + (b - c), "a + b - c", "a + b - c", 8),
    (a - b * c, "a - b·c", r"a - b \, c", 1),
    (13 + a, "13 + a", "13 + a", 20),
    (13 - a, "13 - a", "13 - a", 6),
    (0 - a, "0 - a", "0 - a", -7),
    # products
    (2 * a, "2·a", r"2 \, a", 14),
    (a * 2, "a·2", r"a \cdot 2", 14),
    (a * b * c, "a·b·c", r"a \, b \, c", 42),
    (a * (b * c), "a·b·c", r"a \, b \, c", 42),
    ((a + b) * c, "(a + b)·c", r"(a + b) \, c", 20),
    (a * (b - c), "a·(b - c)", r"a \, (b - c)", 7),
    (2 * (3 * a), "2·3·a", r"2 \cdot 3 \, a", 42),
    # quotients
    (a / b, "a / b", r"\frac{a}{b}", Fraction(7, 3)),
    (1 / a, "1 / a", r"\frac{1}{a}", Fraction(1, 7)),
    (a * b / c, "a·b / c", r"\frac{a \, b}{c}", Fraction(21, 2)),
    (a / (b * c), "a / (b·c)", r"\frac{a}{b \, c}", Fraction(7, 6)),
    (a / (b / c), "a / (b / c)", r"\frac{a}{\frac{b}{c}}", Fraction(14, 3)),
    (a / b / c, "a / b / c", r"\frac{\frac{a}{b}}{c}", Fraction(7, 6)),
    ((a + b) / (c + d), "(a + b) / (c + d)", r"\frac{a + b}{c + d}", Fraction(10, 7)),
    (a + b / c, "a + b / c", r"a + \frac{b}{c}", Fraction(17, 2)),
    (a - b / c, "a - b / c", r"a - \frac{b}{c}", Fraction(11, 2)),
    (a / b + c, "a / b + c", r"\frac{a}{b} + c", Fraction(13, 3)),
    (a * (b / c), "a·(b / c)", r"a \, \frac{b}{c}", Fraction(21, 2)),
    ((a / b) * c, "(a / b)·c", r"\frac{a}{b} \, c", Fraction(14, 3)),
    (a / c / d**2, "a / c / d^2", r"\frac{\frac{a}{c}}{d^2}", Fraction(7, 50)),
    (3 * (1 / c), "3·(1 / c)", r"3 \cdot \frac{1}{c}", Fraction(3, 2)),  # or else it would read as 3 and a bit
    # powers
    (a**2, "a^2", "a^2", 49),
    (a**12, "a^12", "a^{12}", 7**12),
    (3 * a**2, "3·a^2", r"3 \, a^2", 147),
    ((3 * a) ** 2, "(3·a)^2", r"(3 \, a)^2", 441),
    ((a + b) ** 2, "(a + b)^2", "(a + b)^2", 100),
    ((a / b) ** 2, "(a / b)^2", r"(\frac{a}{b})^2", Fraction(49, 9)),
    ((a**b) ** c, "(a^b)^c", "(a^b)^c", 7**6),
    (a ** (b**c), "a^(b^c)", "a^{(b^c)}", 7**9),
    (a ** (b + c), "a^(b + c)", "a^{(b + c)}", 7**5),
    (a**2 / b**2, "a^2 / b^2", r"\frac{a^2}{b^2}", Fraction(49, 9)),
    (a - b**2, "a - b^2", "a - b^2", -2),
    # calls
    (a // b, "floor(a / b)", r"\left\lfloor \frac{a}{b} \right\rfloor", 2),
    (ceil_quotient(a, 3), "ceil(a / 3)", r"\left\lceil \frac{a}{3} \right\rceil", 3),
    (ceil_log2(a + 2), "ceil_log2(a + 2)", r"\lceil \log_2(a + 2) \rceil", 4),
    (a % b, "(a mod b)", r"(a \bmod b)", 1),
    (a * b % c, "((a·b) mod c)", r"((a \, b) \bmod c)", 1),
    ((a + b) % (c + d), "((a + b) mod (c + d))", r"((a + b) \bmod (c + d))", 3),
    (a * (b % c), "a·(b mod c)", r"a \, (b \bmod c)", 7),
    (a**2 % d, "(a^2 mod d)", r"(a^2 \bmod d)", 4),
    (smaller(a, b), "min(a, b)", r"\min(a, b)", 3),
    (smaller(a, 13), "min(a, 13)", r"\min(a, 13)", 7),
    (smaller(5, a), "min(5, a)", r"\min(5, a)", 5),
    (positive(a - b), "max(a - b, 0)", r"\max(a - b, 0)", 4),
    (positive(b - a), "max(b - a, 0)", r"\max(b - a, 0)", 0),
    (2 * smaller(a + b, c) ** 2, "2·min(a + b, c)^2", r"2 \, \min(a + b, c)^2", 8),
    # numbers
    (a + 1_234_567, "a + 1,234,567", "a + 1{,}234{,}567", 1_234_574),
    (a * Fraction(17, 2), "a·8.5", r"a \cdot 8.5", Fraction(119, 2)),
    (a * Fraction(1, 3), "a·(1/3)", r"a \cdot 1/3", Fraction(7, 3)),
    (a / Fraction(1, 3), "a / (1/3)", r"\frac{a}{1/3}", 21),
    (a * Fraction(2_113, 512), "a·(2,113/512)", r"a \cdot 2{,}113/512", Fraction(14_791, 512)),
    (
        a * Fraction(24_691, 2),
        "a·(24,691/2)",
        r"a \cdot 24{,}691/2",
        Fraction(172_837, 2),
    ),  # five digits are no decimal
    (a + Fraction(6, 1), "a + 6", "a + 6", 13),
    (a + Fraction(1_234_567), "a + 1,234,567", "a + 1{,}234{,}567", 1_234_574),
    (a - -3, "a - (-3)", "a - (-3)", 10),
    (a * -3, "a·(-3)", r"a \, (-3)", -21),
    (-3 * a, "(-3)·a", r"(-3) \, a", -21),
    (Expression("^", Expression("number", -3), Expression("number", 2)), "(-3)^2", "(-3)^2", 9),
    (
        Expression("^", Expression("number", Fraction(1, 3)), Expression("number", 2)),
        "(1/3)^2",
        "(1/3)^2",
        Fraction(1, 9),
    ),
    # a causal core: 2·3·2·(11·12 / 2)·6·5
    (
        2 * L * B * exact_quotient(T * (T + 1), 2) * N * H,
        "2·L·B·(T·(T + 1) / 2)·N·H",
        r"2 \, L \, B \, \frac{T \, (T + 1)}{2} \, N \, H",
        23_760,
    ),
    # Megatron's parenthesis
    (
        72 * T * L * N**2 * (1 + H / (6 * N)),
        "72·T·L·N^2·(1 + H / (6·N))",
        r"72 \, T \, L \, N^2 \, (1 + \frac{H}{6 \, N})",
        97_416,  # 72·11·3·36·(1 + 5/36) = 85,536 + 11,880
    ),
]


@pytest.mark.parametrize(("expression", "text", "latex", "value"), WRITTEN, ids=[row[1] for row in WRITTEN])
def test_how_a_formula_is_written_and_what_it_comes_to(expression, text, latex, value):
    assert expression.text() == text
    assert expression.latex() == latex
    if value is not None:
        assert expression.value(VALUES) == value


def test_a_whole_quotient_is_an_int_and_any_other_stays_exact():
    assert type((a * c / 7).value(VALUES)) is int  # 14 / 7
    third = (a / 3).value({"a": 10**30 + 1})
    assert (type(third), 3 * third) == (Fraction, 10**30 + 1)
    assert type((a * Fraction(16)).value(VALUES)) is int
    assert type((a / 2 + b / 2).value(VALUES)) is int  # 7/2 + 3/2


def test_zero_and_one_drop_out_where_they_change_nothing():
    for same in (a + 0, 0 + a, a - 0, a * 1, 1 * a, a / 1, a // 1, a * True, ceil_quotient(a, 1)):
        assert same is a
    for nothing in (a * 0, 0 * a, a * False):
        assert nothing == 0
        assert not isinstance(nothing, Expression)
    # what is no number yet stays: only when it is filled in is it known to be 0 or 1
    assert (a + b).filled({"a": 0, "b": 1}).text() == "0 + 1"
    for changed, text in [
        (a + 1, "a + 1"),
        (1 + a, "1 + a"),
        (a - 1, "a - 1"),
        (a * 2, "a·2"),
        (2 * a, "2·a"),
        (a / 2, "a / 2"),
        (1 - a, "1 - a"),
        (0 / a, "0 / a"),
        (a // 2, "floor(a / 2)"),
        (a % 1, "(a mod 1)"),
        (a**1, "a^1"),
        (ceil_quotient(a, 2), "ceil(a / 2)"),
    ]:
        assert changed.text() == text


def test_numbers_in_the_place_of_symbols():
    formula = 2 * L * (T * (T + 1) / 2) * smaller(N, 4)
    filled = formula.filled({"L": 3, "T": 11, "N": 1_000})
    assert filled.text() == "2·3·(11·(11 + 1) / 2)·min(1,000, 4)"
    assert filled.latex() == r"2 \cdot 3 \cdot \frac{11 \, (11 + 1)}{2} \, \min(1{,}000, 4)"
    assert (filled.symbols(), filled.value({})) == ({}, 1_584)  # 6·66·4
    assert formula.symbols() == {"L": None, "T": None, "N": None}  # unchanged
    assert filled.filled({}) == filled


def test_another_formula_in_the_place_of_a_symbol():
    assert (a * b).filled({"a": c + d, "b": 2}).text() == "(c + d)·2"


def test_the_symbols_in_the_order_of_writing_each_once():
    assert list((b * a + smaller(b, c) / d).symbols()) == ["b", "a", "c", "d"]
    assert [part.text() for part in symbols("P V t")] == ["P", "V", "t"]


def test_a_symbol_without_a_value_is_an_error():
    for asked in ((a + b).value, (a + b).filled):
        with pytest.raises(KeyError, match=r"^'b'$"):
            asked({"a": 7})


def test_formulas_are_equal_by_what_they_say():
    assert a * (b + 1) == symbol("a") * (symbol("b") + 1)
    assert hash(a * (b + 1)) == hash(symbol("a") * (symbol("b") + 1))
    assert len({a + b, a + b, b + a, a - b, a}) == 4
    for other in (a + c, a - b, b + a, a + b + c, 0, "a + b"):
        assert a + b != other
    assert smaller(a, b) != Expression("min", a)
    assert Expression("number", 2) == Expression("number", Fraction(2))
    assert symbol("2") != Expression("number", 2)


def test_a_formula_tells_itself_to_a_programmer():
    assert repr(a + b / 2) == "Expression(a + b / 2)"


def test_the_helpers_count_numbers_as_they_write_symbols():
    for one in range(9):
        for other in range(1, 9):
            values = {"a": one, "b": other}
            assert smaller(one, other) == smaller(a, b).value(values) == min(one, other)
            assert positive(one - other) == positive(a - b).value(values) == max(one - other, 0)
            assert ceil_quotient(one, other) == ceil_quotient(a, other).value(values) == ceil(Fraction(one, other))
            product = exact_quotient(a * other, other)
            assert exact_quotient(one * other, other) == product.value(values) == one
    assert exact_quotient(3 * 10**30 + 3, 3) == 10**30 + 1  # no float
    assert ceil_quotient(3 * 10**30 + 1, 3) == 10**30 + 1
    assert smaller(10**30, 10**30 + 1) == positive(10**30) == 10**30


BOTH = {
    # what is done to expressions, and to the Fractions that they stand for
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "/": (operator.truediv, operator.truediv),
    "//": (operator.floordiv, operator.floordiv),
    "mod": (operator.mod, operator.mod),
    "min": (smaller, min),
    "max": (lambda p, q: positive(p - q), lambda x, y: max(x - y, 0)),
    "ceil": (lambda p, q: Expression("ceil", p / q), lambda x, y: ceil(x / y)),
    "^": (lambda p, q: p**2, lambda x, y: x**2),
}


def random_leaf(chance):
    """A symbol or a number; of the numbers some have no decimal form, and none is 0 or 1."""
    n = chance.randint(1, 2_000)
    number = chance.choice([n + 1, Fraction(2 * n + 1, 16), Fraction(3 * n + 1, 9)])
    name = chance.choice("abcd")
    return chance.choice([(symbol(name), Fraction(VALUES[name])), (number, Fraction(number))])


def random_tree(chance, depth):
    """An expression, and its value as Python's own arithmetic has it."""
    if depth == 0 or chance.random() < 0.1:
        return random_leaf(chance)
    (left, x), (right, y) = (random_tree(chance, depth - 1) for _ in "xy")
    name = chance.choice([name for name in BOTH if y or name not in ("/", "//", "mod", "ceil")])
    if not isinstance(left, Expression) and (name == "^" or not isinstance(right, Expression)):
        left = Expression("number", left)
    if name in ("//", "mod") and not isinstance(left, Expression):
        left = Expression("number", left)
    on_expressions, on_numbers = BOTH[name]
    return on_expressions(left, right), Fraction(on_numbers(x, y))


def random_trees():
    chance = random.Random(20)
    made = [random_tree(chance, 4) for _ in range(700)]
    return [(tree, value) for tree, value in made if isinstance(tree, Expression)]


TREES = random_trees()


def evaluated(python):
    """A formula in Python's operators, as Python sees it, every number as a Fraction."""
    exact = re.sub(r"\d+(\.\d+)?(e-\d+)?", r"Fraction('\g<0>')", python)
    whole = {"floor": lambda x: Fraction(floor(x)), "ceil": lambda x: Fraction(ceil(x))}
    names = {**whole, "min": min, "max": max, "Fraction": Fraction}
    return eval(exact, names, {name: Fraction(VALUES[name]) for name in "abcd"})


def from_text(text):
    text = re.sub(r"(?<=\d),(?=\d)", "", text)
    return text.replace("·", "*").replace("^", "**").replace(" mod ", " % ")


def from_latex(latex):
    """Braces become brackets, which is what TeX reads them as; a missing one is an error of Python's syntax."""
    latex = latex.replace("{,}", "").replace(r"\,", "*").replace(r"\cdot", "*").replace(r"\bmod", "%")
    for name in ("floor", "ceil"):
        latex = latex.replace(rf"\left\l{name}", f"{name}(").replace(rf"\right\r{name}", ")")
    latex = re.sub(r"\^(\w)", r"**\1", latex).replace("^", "**").replace(r"\min", "min").replace(r"\max", "max")
    # \frac{x}{y}: (x) and (y) side by side, which only a quotient has
    return latex.replace(r"\frac", "").replace("}{", ")/(").replace("{", "(").replace("}", ")")


def test_random_formulas_are_of_every_kind():
    said = " ".join(tree.text() for tree, _ in TREES)
    assert len(TREES) > 600
    assert all(word in said for word in ("·", " / ", "^2", "floor(", "ceil(", " mod ", "min(", "max(", " - (", "^2)^2"))


def test_a_random_formula_comes_to_what_python_makes_of_it():
    for tree, value in TREES:
        assert tree.value(VALUES) == value, tree
        assert tree.filled(VALUES).value({}) == value, tree


def test_the_text_of_a_random_formula_says_the_same_to_python():
    for tree, value in TREES:
        assert evaluated(from_text(tree.text())) == value, tree
        assert evaluated(from_text(tree.filled(VALUES).text())) == value, tree


def test_the_latex_of_a_random_formula_says_the_same():
    for tree, value in TREES:
        latex = tree.latex()
        assert latex.count("{") == latex.count("}")
        assert evaluated(from_latex(latex)) == value, tree
