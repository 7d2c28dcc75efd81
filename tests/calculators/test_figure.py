from fractions import Fraction

import pytest

from costcalc.calculators.figure import ESTIMATE, EXACT, MODELLED, Figure, given, whole
from costcalc.expression import symbol, symbols

a, b = symbols("a b")


def number(name, value, *, unit="FLOPs", status=EXACT):
    return Figure(name, unit, symbol("n"), {"n": value}, status=status)


def test_an_expression_over_numbers():
    area = Figure("area", "tokens", a * (b + 1) / 2, {"a": 11, "b": 6})
    assert area.exact_value == Fraction(77, 2)
    assert area.value == 39  # 38.5, a half up
    assert area.formula == a * (b + 1) / 2
    assert area.numbers.text() == "11·(6 + 1) / 2"
    assert (area.inputs, area.nature) == ([], "exact")


def test_an_expression_over_other_figures():
    low, high = number("low", 7), number("high", Fraction(47, 2))
    formula = symbol("high") - 3 * symbol("low") + symbol("c")
    top = Figure("top", "FLOPs", formula, {"high": high, "low": low, "c": 5})
    assert top.exact_value == Fraction(15, 2)  # 23.5 - 21 + 5
    assert top.numbers.text() == "23.5 - 3·7 + 5"
    assert top.inputs == [high, low]  # in the order of the values, 5 is no figure


def test_the_sum_of_terms():
    few = Figure("few", "FLOPs", terms=(number("x", 7), number("y", 13), number("z", 29)))
    assert (few.exact_value, few.formula.text(), few.numbers.text()) == (49, "x + y + z", "7 + 13 + 29")
    one = Figure("one", "FLOPs", terms=(number("x", 7),))
    assert (one.value, one.formula.text(), one.numbers.text()) == (7, "x", "7")
    none = Figure("none", "FLOPs")
    assert (none.value, none.formula, none.numbers) == (0, "no terms", "")
    assert few.inputs == list(few.terms)


def test_many_terms_are_written_in_words():
    many = Figure("many", "FLOPs", terms=tuple(number(f"x{n}", n) for n in range(5)))
    assert (many.value, many.formula, many.numbers) == (10, "sum of 5 lines", "")
    thousands = Figure("thousands", "FLOPs", terms=tuple(number(f"x{n}", 1) for n in range(1_234)))
    assert thousands.formula == "sum of 1,234 lines"


@pytest.mark.parametrize(("terms", "in_a_row"), [(3, True), (4, False)])
def test_so_many_terms_stand_in_a_row(terms, in_a_row):
    figure = Figure("sum", "FLOPs", terms=tuple(number(f"x{n}", n) for n in range(terms)))
    assert isinstance(figure.formula, str) is not in_a_row


def test_what_was_found_by_trying_is_told_in_words_and_is_not_added_up():
    pool = number("pool", 1_000, unit="bytes")
    found = Figure("longest", "tokens", terms=(pool,), words="the largest S that fits", found=31)
    assert (found.value, found.formula, found.numbers) == (31, "the largest S that fits", "")
    assert [figure.name for figure in found.lineage()] == ["pool", "longest"]
    assert Figure("nothing", "tokens", words="was found").value == 0


def test_a_given_number():
    memory = given("memory", "bytes", 80 * 10**9)
    assert (memory.name, memory.unit, memory.value) == ("memory", "bytes", 80_000_000_000)
    assert (memory.formula, memory.numbers, memory.inputs, memory.nature) == ("given", "", [], EXACT)
    assert given("share", "", Fraction(9, 10)).exact_value == Fraction(9, 10)


@pytest.mark.parametrize(
    ("exact", "nearest"),
    [
        *((0, 0), (7, 7), (-7, -7)),
        *((Fraction(7, 2), 4), (Fraction(5, 2), 3), (Fraction(-5, 2), -2)),  # a half up, to even it would be 2
        *((Fraction(10, 3), 3), (Fraction(11, 3), 4), (Fraction(-10, 3), -3)),
        (10**30 + Fraction(1, 3), 10**30),
    ],
)
def test_to_the_nearest_whole_number(exact, nearest):
    assert whole(exact) == nearest
    assert type(whole(exact)) is int
    assert number("x", exact).value == nearest


def test_the_least_exact_of_what_goes_into_it():
    def made_of(*below, status=EXACT):
        return Figure("top", "FLOPs", terms=below, status=status).nature

    exact, modelled = number("e", 7), number("m", 5, status=MODELLED)
    estimate = number("r", 3, status=ESTIMATE)
    assert made_of() == made_of(exact) == EXACT
    assert made_of(exact, modelled) == made_of(modelled) == MODELLED
    assert made_of(estimate, modelled, exact) == made_of(modelled, estimate) == ESTIMATE
    assert made_of(exact, status=MODELLED) == MODELLED
    assert made_of(modelled, status=ESTIMATE) == made_of(estimate, status=MODELLED) == ESTIMATE
    deep = Figure("deep", "FLOPs", terms=(Figure("middle", "FLOPs", terms=(exact, modelled)),))
    assert deep.nature == MODELLED
    by_formula = Figure("twice", "FLOPs", 2 * symbol("m"), {"m": modelled})
    assert by_formula.nature == MODELLED


def test_the_words_for_how_exact_a_number_is():
    assert (EXACT, MODELLED, ESTIMATE) == ("exact", "modelled", "estimate")
    assert Figure("x", "FLOPs").status == EXACT


def test_nothing_comes_of_nothing():
    """A model without recurrent layers has no modelled FLOPs, so its forward pass is exact."""
    none = Figure("modelled_flops", "FLOPs", terms=(number("scan", 0, status=MODELLED),))
    forward = Figure("forward", "FLOPs", terms=(number("weights", 7), none))
    assert forward.nature == EXACT
    below_zero = number("debt", -1, status=MODELLED)
    assert Figure("forward", "FLOPs", terms=(below_zero,)).nature == MODELLED


def test_inputs_come_before_what_they_go_into_and_each_once():
    x, y = number("x", 7), number("y", 5)
    left = Figure("left", "FLOPs", terms=(x, y))
    right = Figure("right", "FLOPs", symbol("y") * symbol("x"), {"y": y, "x": x})
    top = Figure("top", "FLOPs", symbol("right") - symbol("left"), {"left": left, "right": right})
    assert [figure.name for figure in top.lineage()] == ["x", "y", "left", "right", "top"]
    assert [figure.name for figure in right.lineage()] == ["y", "x", "right"]
    # the same name in another unit is another number
    as_bytes = Figure("x", "bytes", 2 * symbol("x"), {"x": x})
    assert [(figure.name, figure.unit) for figure in as_bytes.lineage()] == [("x", "FLOPs"), ("x", "bytes")]


def test_a_long_chain_has_a_lineage_without_recursion():
    chain = number("x0", 1)
    for n in range(1, 3_000):
        chain = Figure(f"x{n}", "FLOPs", words="one more", found=n, terms=(chain,))
    assert [figure.name for figure in chain.lineage()] == [f"x{n}" for n in range(3_000)]


def test_the_same_figure_under_another_name():
    figure = number("x", 7, status=MODELLED)
    renamed = figure.named("y")
    assert (renamed.name, renamed.value, renamed.unit, renamed.status) == ("y", 7, "FLOPs", MODELLED)
    assert figure.name == "x"
    assert figure.of("next token").name == "x (next token)"
    assert figure.of("next token").value == 7
    assert figure.of("") is figure


def test_a_figure_is_frozen():
    with pytest.raises(AttributeError):
        number("x", 7).name = "y"
