"""The parts of a report, its formats, and the JSON that it carries."""

import json
import math
from dataclasses import FrozenInstanceError

import pytest

from costcalc.errors import CostcalcError
from costcalc.expression import symbols
from costcalc.report import (
    FORMATS,
    SUFFIXES,
    Formula,
    Measure,
    Quantity,
    Ratio,
    Report,
    Row,
    Screen,
    Table,
    known_format,
    render,
    side_by_side,
    with_shares,
)
from costcalc.report.report import MARKS, STATUSES


def test_a_ratio_of_nothing_is_nothing():
    assert Ratio(1, 4).value == 0.25
    assert Ratio(7, 0).value == 0.0


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        (Quantity(8_030_261_248, "parameters"), "8,030,261,248 (8.03 B)"),
        (Quantity(447, "bytes"), "447 (447 B)"),
        (Quantity(447, "parameters"), "447"),
        (Quantity(None, "bytes"), "-"),
        (Quantity(1_310_720, "bytes", signed=True), "+1,310,720 (+1.25 MiB)"),
        (Quantity(-1_310_720, "bytes", signed=True), "-1,310,720 (-1.25 MiB)"),
        (Quantity(7, "parameters", signed=True), "+7"),
        (Quantity(-7, "parameters", signed=True), "-7"),
        (Quantity(0, "parameters", signed=True), "0"),
        (Quantity(None, "bytes", signed=True), "-"),
        (Quantity(119, "parameters", versus=100), "119 (x 1.19)"),
        (Quantity(1_234_567, "parameters", versus=1_000), "1,234,567 (1.23 M, x 1,234.57)"),
        (Quantity(1, "parameters", versus=10), "1 (x 0.10)"),
        (Quantity(1, "parameters", versus=54), "1 (x 0.019)"),
        (Quantity(0, "parameters", versus=54), "0 (x 0)"),
        (Quantity(54, "parameters", versus=0), "54"),  # so many times nothing
        (Quantity(None, "parameters", versus=54), "-"),
    ],
)
def test_a_quantity_on_one_line(quantity, said):
    assert quantity.said == said


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        (Measure(None), "-"),
        (Measure(None, ",.2f"), "-"),
        (Measure(0), "0"),
        (Measure(0.0), "0"),
        (Measure(1_234), "1,234"),
        (Measure(1.26e-7), "1.3e-07"),
        (Measure(65.0425, ",.4f"), "65.0425"),
        (Measure(-1234.5678, ",.2f"), "-1,234.57"),
        (Measure(16.0, ".6g"), "16"),
        (Measure(4.126953125, ".6g"), "4.12695"),
        (Measure(0, ",.4f"), "0.0000"),
    ],
)
def test_a_measure_for_a_reader(measure, said):
    """Two digits, or what its spec says; a whole number has all of its digits."""
    assert measure.said == said


def test_a_formula_on_one_line():
    length, width = symbols("L D")
    assert Formula(3 * length * width**2).said == "3·L·D^2"
    assert Formula("sum of 24 lines").said == "sum of 24 lines"
    assert Formula("").said == ""


def test_side_by_side_keeps_the_order_in_which_rows_appear():
    first, second = {"a": "1", "b": "2"}, {"c": "3", "b": "4", "a": "5", "d": "6"}
    table = side_by_side("title", ["one", "two"], [first, second], strong="b")
    assert [(row.label, row.cells, row.strong) for row in table.rows] == [
        ("a", ("1", "5"), False),
        ("d", (None, "6"), False),  # behind the row that it is behind
        ("b", ("2", "4"), True),
        ("c", (None, "3"), False),
    ]
    assert (table.title, table.columns, table.by_model) == ("title", ("one", "two"), True)


def test_with_shares_are_of_the_sum():
    table = with_shares("title", "one", {"a": 3, "b": 5}, "bytes")
    assert table.columns == ("one", "share")
    assert not table.by_model
    assert [row.cells for row in table.rows] == [
        (Quantity(3, "bytes"), Ratio(3, 8, "bar")),
        (Quantity(5, "bytes"), Ratio(5, 8, "bar")),
    ]


def test_the_statuses():
    assert STATUSES == ("exact", "modelled", "estimate", "measured")


def test_tables_are_exact_unless_said_otherwise():
    sheet = {"a": Quantity(7, "bytes")}
    assert side_by_side("t", ["one"], [sheet]).status == with_shares("t", "one", {"a": 3}, "bytes").status == "exact"
    assert side_by_side("t", ["one"], [sheet], status="estimate").status == "estimate"
    assert with_shares("t", "one", {"a": 3}, "bytes", status="modelled").status == "modelled"
    assert Table("t", (), ()).status == Row("a", ()).status == ""


@pytest.mark.parametrize(
    ("status", "of_rows", "heading", "labels"),
    [
        ("exact", ["", ""], "t (exact)", ["0", "1"]),
        ("exact", ["exact", ""], "t (exact)", ["0", "1"]),
        ("exact", ["modelled", ""], "t (exact, * modelled)", ["* 0", "1"]),
        ("exact", ["modelled", "exact", "modelled"], "t (exact, * modelled)", ["* 0", "1", "* 2"]),
        ("exact", ["modelled", "estimate"], "t (exact, ~ estimate, * modelled)", ["* 0", "~ 1"]),
        ("estimate", ["exact", "estimate"], "t (estimate, = exact)", ["= 0", "1"]),
        ("", ["", ""], "t", ["0", "1"]),
        ("", ["", "measured"], "t (^ measured)", ["0", "^ 1"]),
        ("measured", [], "t (measured)", []),
    ],
)
def test_the_heading_says_what_the_numbers_are_and_rows_that_differ_are_marked(status, of_rows, heading, labels):
    rows = tuple(Row(str(index), (), status=own) for index, own in enumerate(of_rows))
    table = Table("t", (), rows, status=status)
    assert table.heading == heading
    assert [table.marked(row) for row in rows] == labels
    assert [table.is_marked(row) for row in rows] == [label[0] in MARKS.values() for label in labels]
    assert [row.label for row in rows] == [str(index) for index in range(len(rows))]


@pytest.mark.parametrize(
    "part",
    [
        Quantity(1, "bytes"),
        Ratio(1, 2),
        Measure(1.5, ",.2f"),
        Formula("given"),
        side_by_side("t", [], []),
        Row("a", ("1",), status="exact"),
        Report("title", (), (), {}),
        Screen(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_report_cannot_be_changed(part):
    for name in part.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(part, name, None)


def test_the_formats():
    assert list(FORMATS) == ["table", "json", "csv", "markdown", "latex"]
    assert set(SUFFIXES.values()) <= set(FORMATS)
    for form in FORMATS:
        assert known_format(form) == form
        report = Report("title", (side_by_side("t", ["one"], [{"a": Quantity(7, "bytes")}]),), (), {"a": 7})
        assert render(report, form, Screen()).endswith("\n")


def test_an_unknown_format_is_refused_with_the_nearest():
    with pytest.raises(CostcalcError, match="unknown format 'cvs'") as caught:
        known_format("cvs")
    assert caught.value.hint == "did you mean --format csv?"
    with pytest.raises(CostcalcError) as caught:
        known_format("pdf")
    assert caught.value.hint == "--format takes one of: table, json, csv, markdown, latex"


def test_json_is_the_data_and_nothing_else():
    data = [{"model": "模型", "total": 10**30, "none": None, "part": {"b": 1, "a": 2}}]
    text = render(Report("title", (), ("note",), data), "json", Screen(10, colour=True))
    assert json.loads(text) == data
    assert text.isascii()
    assert text.startswith('[\n  {\n    "model"')
    assert text.endswith("]\n")
    assert text.index('"b"') < text.index('"a"')


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        render(Report("title", (), (), {"a": math.nan}), "json", Screen())


@pytest.mark.parametrize(
    ("suffix", "form"), [("md", "markdown"), ("MD", "markdown"), ("tex", "latex"), ("txt", "table")]
)
def test_a_suffix_in_the_place_of_a_format_gets_the_format(suffix, form):
    with pytest.raises(CostcalcError) as caught:
        known_format(suffix)
    assert caught.value.hint == f"did you mean --format {form}?"
