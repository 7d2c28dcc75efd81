"""Markdown: a bold title, a pipe table for each table, notes as a list."""

import re

import pytest

from costcalc.expression import symbols
from costcalc.report import Formula, Measure, Quantity, Ratio, Report, Row, Screen, Table, render, with_shares


def text_of(*tables, title="title", notes=(), screen=None):
    return render(Report(title, tables, notes, {}), "markdown", screen or Screen())


TOTALS = Table(
    "parameters",
    ("small", "large"),
    (
        Row("total", (Quantity(37, "parameters"), Quantity(8030261248, "parameters")), strong=True),
        Row("none", (Quantity(None, "bytes"), None)),
        Row("ratio", (Ratio(2, 3), Ratio(1, 8, "percent"))),
        Row("kind", ("text", "more text")),
    ),
)


def test_the_whole_page():
    assert text_of(TOTALS, with_shares("by part", "small", {"half": 1, "rest": 1}, "tokens"), notes=("one", "two")) == (
        "**title**\n"
        "\n"
        "| parameters | small | large |\n"
        "| :-- | --: | --: |\n"
        "| total | 37 | 8,030,261,248 (8.03 B) |\n"
        "| none | - |  |\n"
        "| ratio | 0.667 | 12.5% |\n"
        "| kind | text | more text |\n"
        "\n"
        "| by part (exact) | small | share |\n"
        "| :-- | --: | --: |\n"
        "| half | 1 | 50.0% |\n"
        "| rest | 1 | 50.0% |\n"
        "\n"
        "- one\n"
        "- two\n"
    )


def test_what_the_numbers_are_is_in_the_heading_and_marks_rows_that_differ():
    rows = (
        Row("plain", (Quantity(7, "tokens"),)),
        Row("other", (Quantity(5, "tokens"),), status="modelled"),
        Row("same", (Quantity(3, "tokens"),), status="exact"),
    )
    assert text_of(Table("FLOPs", ("m",), rows, status="exact")) == (
        "**title**\n\n| FLOPs (exact, \\* modelled) | m |\n| :-- | --: |\n"
        "| plain | 7 |\n| \\* other | 5 |\n| same | 3 |\n"
    )


def test_without_notes_it_ends_with_the_table():
    assert text_of(TOTALS).endswith("| kind | text | more text |\n")


@pytest.mark.parametrize("name", ["a|b", "*a*", "_a_", "`a`", "<b>", "[a](b)", "a\\", "a||b"])
def test_a_name_can_break_neither_table_nor_text(name):
    """Wherever a name may stand: title, table's title, column, label, cell, note."""
    row = Row(name, (name,))
    text = text_of(Table(name, (name,), (row, row)), title=name, notes=(name,))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    for line in lines:
        cells = re.findall(r"\| ((?:\\.|[^\\|])*) (?=\|)", line)
        assert len(cells) == 2
        assert line.endswith(" |")
    escaped = re.sub(r"([\\|*_`<\[])", r"\\\1", name)
    for line in text.splitlines():
        assert escaped in line or line in ("", "| :-- | --: |")


def test_the_screen_changes_nothing():
    assert text_of(TOTALS, screen=Screen(10, colour=True, unicode=False)) == text_of(TOTALS)


def test_differences_and_ratios_stand_in_the_brackets():
    row = Row(
        "cache", (Quantity(2048, "bytes", signed=True), Quantity(4096, "bytes", versus=2048), Quantity(7, "", versus=2))
    )
    assert "| cache | +2,048 (+2.00 KiB) | 4,096 (4.00 KiB, x 2.00) | 7 (x 3.50) |\n" in text_of(
        Table("t", ("a", "b", "c"), (row,))
    )


def test_formulas_are_code_and_read_from_the_left():
    """Words in the place of a formula are words; a column of measures is one of numbers."""
    layers, width = symbols("L D_model")
    rows = (
        Row("a", (Formula(2 * layers * width), Measure(65.0425, ",.2f"))),
        Row("b", (Formula("sum_of [24] lines"), Measure(None, ",.2f"))),
        Row("c", (Formula(""), None)),
        Row("d", (None, Measure(1.26e-7))),
    )
    assert text_of(Table("t", ("formula", "by"), rows)) == (
        "**title**\n\n"
        "| t | formula | by |\n"
        "| :-- | :-- | --: |\n"
        "| a | `2·L·D_model` | 65.04 |\n"
        "| b | sum\\_of \\[24] lines | - |\n"
        "| c |  |  |\n"
        "| d |  | 1.3e-07 |\n"
    )
