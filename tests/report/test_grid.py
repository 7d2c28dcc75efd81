"""Grids that fit are drawn without rich, to the letter as rich would."""

import random
import subprocess
import sys

import pytest

from costcalc.report import Screen
from costcalc.report.folded import NO_LIMIT, folded_grid, folded_line, narrowest
from costcalc.report.grid import Column, Grid, drawn, styled

GRID = Grid(
    [
        Column("title", ["one", "  of which", "三"], "left", folds=True),
        Column("name", ["1,234\n1.2 K", "", "-"]),
        Column("", ["x 2.00", "x 10.00", ""]),
        Column("share", ["█▌", "", "▏"], "left"),
    ],
    [True, False, False],
)


def test_each_column_is_as_wide_as_its_widest_line():
    """10, 5, 7 and 5 with three gaps of 2; a wide character takes two columns."""
    assert [column.width for column in GRID.columns] == [10, 5, 7, 5]
    assert GRID.width == 33
    assert Column("", ["三四"]).width == 4
    assert Column("no rows", []).width == 7


def test_drawn():
    assert drawn(GRID, Screen()) == (
        "title        name           share\n"
        "one         1,234   x 2.00  █▌\n"
        "            1.2 K\n"
        "  of which         x 10.00\n"
        "三              -           ▏\n"
    )


def test_the_heading_is_dim_and_strong_rows_are_bold():
    lines = drawn(GRID, Screen(colour=True)).splitlines()
    assert lines[0] == "\x1b[2mtitle        name           share\x1b[0m"
    assert lines[1:3] == ["\x1b[1mone         1,234   x 2.00  █▌\x1b[0m", "\x1b[1m            1.2 K\x1b[0m"]
    assert lines[3] == "  of which         x 10.00"


@pytest.mark.parametrize(("line", "style"), [("", "bold"), ("  ", "dim"), ("text ", "")])
def test_what_has_no_style_or_no_words_has_no_codes(line, style):
    assert styled(line, style, Screen(colour=True)) == f"{line.rstrip()}\n"


def test_random_grids_are_what_rich_draws():
    rng = random.Random(3)
    words = ["", "7", "1,234,567", "-", "8.03 B", "a few words", "三四", "é", "two\nlines", "x\n\ny", "[red]"]
    for _ in range(100):
        rows = rng.randrange(4)
        columns = [
            Column(
                rng.choice(words), rng.choices(words, k=rows), rng.choice(["left", "right"]), folds=rng.random() < 0.5
            )
            for _ in range(rng.randrange(1, 5))
        ]
        grid = Grid(columns, rng.choices([True, False], k=rows))
        assert drawn(grid, Screen()) == folded_grid(grid, Screen(), NO_LIMIT), grid
        assert narrowest(grid) <= grid.width


def test_folding_is_between_words_and_at_last_inside_of_them():
    assert folded_line("one two abcdefgh", "bold", Screen(), 7) == "one two\nabcdefg\nh\n"
    assert folded_line("one two", "bold", Screen(colour=True), 3) == "\x1b[1mone\x1b[0m\n\x1b[1mtwo\x1b[0m\n"
    grid = Grid([Column("a title", ["some words"], "left", folds=True), Column("n", ["12"])], [False])
    assert narrowest(grid) == 5 + 2 + 2
    assert folded_grid(grid, Screen(), 9) == "a\ntitle   n\nsome   12\nwords\n"


def test_a_table_that_fits_does_not_load_what_folds():
    """Half of a start would be spent on it."""
    code = (
        "import sys; from costcalc.cli.main import run; assert run(['kv', '8b']) == 0;"
        "assert not {'rich.console', 'rich.table', 'costcalc.report.folded'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
