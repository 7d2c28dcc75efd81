"""CSV: one header, then every row of every table, exact and ungrouped."""

import csv
import io

import pytest

from costcalc.expression import symbols
from costcalc.report import Formula, Measure, Quantity, Ratio, Report, Row, Screen, Table, render, with_shares


def text_of(*tables, screen=None):
    return render(Report("title", tables, ("a note",), {}), "csv", screen or Screen())


TOTALS = Table(
    "parameters",
    ("small",),
    (
        Row("total", (Quantity(8030261248, "parameters"),)),
        Row("none", (Quantity(None, "bytes"),)),
        Row("kind", ("a, b",)),
        Row("empty", (None,)),
        Row("ratio", (Ratio(2, 3),)),
        Row("percent", (Ratio(1, 8, "percent"),)),
    ),
)


def test_every_row_has_every_column():
    """The table with the most columns names them; a share is a fraction, whatever a table for people shows."""
    shares = with_shares("by part", "small", {"all": 7}, "parameters")
    assert text_of(TOTALS, shares) == (
        "section,quantity,unit,small,share,status\n"
        "parameters,total,parameters,8030261248,,\n"
        "parameters,none,bytes,,,\n"
        'parameters,kind,,"a, b",,\n'
        "parameters,empty,,,,\n"
        "parameters,ratio,,0.666667,,\n"
        "parameters,percent,,0.125000,,\n"
        "by part,all,parameters,7,1.000000,exact\n"
        "note,a note,,,,\n"
    )


def test_a_row_of_several_units_has_none():
    row = Row("mixed", ("text", Quantity(7, "tokens"), Quantity(5, "bytes")))
    assert "section,mixed,,text,7,5,\n" in text_of(Table("section", ("a", "b", "c"), (row,)))


@pytest.mark.parametrize("name", ["a,b", 'say "a"', "[red]a", "a|b", " a ", "模型"])
def test_a_name_comes_back_as_it_was(name):
    table = Table(name, (name,), (Row(name, (name,)),))
    head, row, note = csv.reader(io.StringIO(text_of(table)))
    assert head == ["section", "quantity", "unit", name, "status"]
    assert row == [name, name.strip(), "", name, ""]
    assert note == ["note", "a note", "", "", ""]


def test_indented_labels_lose_their_indent():
    assert "s,of which,tokens,7,\n" in text_of(Table("s", ("a",), (Row("  of which", (Quantity(7, "tokens"),)),)))


def test_the_last_column_says_what_each_row_is():
    """A row's own status beats its table's; nothing is marked, since a column says it."""
    rows = (
        Row("plain", (Quantity(7, "FLOPs"),)),
        Row("own", (Quantity(5, "FLOPs"),), status="modelled"),
        Row("same", (Quantity(3, "FLOPs"),), status="exact"),
    )
    shares = with_shares("parts", "m", {"all": 7}, "bytes", status="estimate")
    assert text_of(
        Table("s", ("m",), rows, status="exact"), Table("no numbers", ("m",), (Row("kind", ("x",)),)), shares
    ) == (
        "section,quantity,unit,m,share,status\n"
        "s,plain,FLOPs,7,,exact\n"
        "s,own,FLOPs,5,,modelled\n"
        "s,same,FLOPs,3,,exact\n"
        "no numbers,kind,,x,,\n"
        "parts,all,bytes,7,1.000000,estimate\n"
        "note,a note,,,,\n"
    )


def test_a_row_has_a_status_in_a_table_without_one():
    row = Row("a", (Quantity(7, "tokens"),), status="measured")
    assert "s,a,tokens,7,measured\n" in text_of(Table("s", ("m",), (row,)))


def test_the_screen_changes_nothing():
    assert text_of(TOTALS, screen=Screen(10, colour=True, unicode=False)) == text_of(TOTALS)


def test_how_many_times_another_number_is_a_row_of_its_own():
    """Digits of both, and the ratio where there is one, below the row that it belongs to."""
    cells = (Quantity(300, "bytes"), Quantity(200, "bytes", versus=300), Quantity(0, "bytes", versus=0), None)
    assert "s,held,bytes,300,200,0,,exact\ns,held,ratio,,0.666667,,,exact\nnote" in text_of(
        Table("s", ("a", "b", "c", "d"), (Row("held", cells),), status="exact")
    )


def test_a_difference_has_no_plus():
    row = Row("more", (Quantity(1234, "bytes", signed=True), Quantity(-1234, "bytes", signed=True)))
    assert "s,more,bytes,1234,-1234,\n" in text_of(Table("s", ("a", "b"), (row,)))


def test_a_formula_is_its_text_and_a_measure_has_all_its_digits():
    layers, width = symbols("L D")
    rows = (
        Row("a", (Formula(3 * (layers + width)), Measure(65.04247123, ",.2f"))),
        Row("b", (Formula("sum of 24 lines"), Measure(None, ",.2f"))),
        Row("c", (Formula(layers - 1_024), Measure(7))),
    )
    assert text_of(Table("s", ("formula", "by"), rows, status="modelled")) == (
        "section,quantity,unit,formula,by,status\n"
        "s,a,,3·(L + D),65.04247123,modelled\n"
        "s,b,,sum of 24 lines,,modelled\n"
        's,c,,"L - 1,024",7,modelled\n'
        "note,a note,,,,\n"
    )


def test_tables_of_different_columns_share_one_header():
    """The widest table names its columns first; each cell stands under its own column's name."""
    narrow = Table("one", ("b", "d"), (Row("x", (Quantity(1, ""), Quantity(2, ""))),))
    wide = Table("two", ("a", "b", "c"), (Row("y", (Quantity(3, ""), Quantity(4, ""), Quantity(5, ""))),))
    assert text_of(narrow, wide) == (
        "section,quantity,unit,a,b,c,d,status\none,x,,,1,,2,\ntwo,y,,3,4,5,,\nnote,a note,,,,,,\n"
    )
