"""Tables for people, letter by letter on small reports, then on every command at many widths."""

import json
import re
import sys
from collections import Counter
from dataclasses import replace

import pytest
from rich.cells import cell_len

from costcalc.cli.main import run
from costcalc.expression import symbols
from costcalc.report import (
    Formula,
    Measure,
    Quantity,
    Ratio,
    Report,
    Row,
    Screen,
    Table,
    render,
    side_by_side,
    with_shares,
)
from costcalc.report.table import bar


def drawn(report, width=None, **screen):
    return render(report, "table", Screen(width, **screen))


def of(*tables, title="the answer", notes=()):
    return Report(title=title, tables=tables, notes=notes, data={})


TOTALS = Table(
    "parameters",
    ("small", "large"),
    (
        Row("total", (Quantity(8177, "parameters"), Quantity(8030261248, "parameters")), strong=True),
        Row("norms", (Quantity(37, "parameters"), None)),
        Row("share", (Ratio(1, 3, "percent"), Ratio(2, 3))),
        Row("none", (Quantity(None, "parameters"), Quantity(0, "parameters"))),
    ),
    by_model=True,
)


def test_digits_are_right_aligned_with_the_human_unit_beside_them():
    assert drawn(of(TOTALS, notes=("exact", "as published"))) == (
        "the answer\n"
        "\n"
        "parameters  small                  large\n"
        "total       8,177  8.18 K  8,030,261,248  8.03 B\n"
        "norms          37\n"
        "share       33.3%                  0.667\n"
        "none            -                      0\n"
        "\n"
        "note: exact\n"
        "note: as published\n"
    )


def test_human_units_go_below_where_they_do_not_fit_beside():
    """48 columns hold the table as it is, 47 do not."""
    assert drawn(of(TOTALS), 48) == drawn(of(TOTALS))
    assert drawn(of(TOTALS), 47) == (
        "the answer\n"
        "\n"
        "parameters   small          large\n"
        "total        8,177  8,030,261,248\n"
        "            8.18 K         8.03 B\n"
        "norms           37\n"
        "share        33.3%          0.667\n"
        "none             -              0\n"
    )


COMPARED = Table(
    "parameters",
    ("small", "large", "added"),
    (
        Row(
            "total",
            (Quantity(8177, ""), Quantity(16354, "parameters", 8177), Quantity(8177, "parameters", signed=True)),
        ),
        Row("norms", (Quantity(37, ""), Quantity(370, "parameters", 37), Quantity(0, "parameters", signed=True))),
        Row("share", (Ratio(1, 3, "percent"), Ratio(1, 6, "percent"), None)),
    ),
)


def test_ratios_stand_beside_the_human_units_and_go_below_with_them():
    """60 columns hold all beside each other, 59 do not."""
    wide = drawn(of(COMPARED))
    assert wide == (
        "the answer\n"
        "\n"
        "parameters  small   large                     added\n"
        "total       8,177  16,354  16.35 K   x 2.00  +8,177  +8.18 K\n"
        "norms          37     370           x 10.00       0\n"
        "share       33.3%   16.7%\n"
    )
    assert drawn(of(COMPARED), 60) == wide
    assert drawn(of(COMPARED), 59) == (
        "the answer\n"
        "\n"
        "parameters  small            large    added\n"
        "total       8,177           16,354   +8,177\n"
        "                   16.35 K  x 2.00  +8.18 K\n"
        "norms          37              370        0\n"
        "                           x 10.00\n"
        "share       33.3%            16.7%\n"
    )
    assert "  large: 16,354  16.35 K  x 2.00\n" in drawn(
        of(replace(COMPARED, rows=(replace(COMPARED.rows[0], label="a-very-long-label"),))), 34
    )


def test_models_go_below_each_other_where_they_do_not_fit_beside():
    """33 columns hold both models, 32 do not; each part has the labels and its own human units beside again."""
    assert drawn(of(TOTALS), 33) == drawn(of(TOTALS), 47)
    assert drawn(of(TOTALS), 32) == (
        "the answer\n"
        "\n"
        "parameters  small\n"
        "total       8,177  8.18 K\n"
        "norms          37\n"
        "share       33.3%\n"
        "none            -\n"
        "\n"
        "parameters          large\n"
        "total       8,030,261,248\n"
        "                   8.03 B\n"
        "norms\n"
        "share               0.667\n"
        "none                    0\n"
    )


def test_the_first_half_of_an_odd_number_of_models_is_the_larger():
    names = ["a", "b", "c"]
    table = side_by_side("title", names, [{"row": Quantity(10**9, "tokens")}] * 3)
    text = drawn(of(table), 50)
    heads = [line.split() for line in text.splitlines() if line.startswith("title")]
    assert heads == [["title", "(exact)", "a", "b"], ["title", "(exact)", "c"]]


def test_long_labels_are_folded_when_nothing_else_is_left():
    table = Table("a title", ("model",), (Row("a label of many words", (Quantity(8030261248, "bytes"),)),))
    assert drawn(of(table), 24) == (
        "the answer\n\na title            model\na label    8,030,261,248\nof many         7.48 GiB\nwords\n"
    )


def test_text_is_left_aligned_and_folds():
    table = Table("model", ("name",), (Row("source", ("a sentence of several words",)), Row("none", (None,))))
    assert drawn(of(table)) == "the answer\n\nmodel   name\nsource  a sentence of several words\nnone\n"
    assert drawn(of(table), 21) == "the answer\n\nmodel   name\nsource  a sentence of\n        several words\nnone\n"


def test_text_and_nothing_keep_their_place_among_numbers():
    first = Row("number", (Quantity(10**9, "tokens"), Quantity(8_177, "parameters"), Ratio(1, 8), "x"))
    second = Row("other", ("text", None, Ratio(5, 4, "percent"), "yz"))
    assert drawn(of(Table("title", ("one", "two", "ratios", "words"), (first, second)))).splitlines()[2:] == [
        "title             one    two          ratios  words",
        "number  1,000,000,000  8,177  8.18 K   0.125  x",
        "other            text                 125.0%  yz",
    ]


def test_title_and_notes_fold_at_the_width():
    text = drawn(of(title="an answer of many words", notes=("a note of many words",)), 12)
    assert text == "an answer of\nmany words\n\nnote: a note\nof many\nwords\n"


def test_shares_are_bars():
    """Of 16 blocks: 1/2 is 8, 3/8 is 6, 1/8 is 2; the label of a share is right-aligned too."""
    table = with_shares("by part", "model", {"half": 4000, "rest": 3000, "last": 1000}, "parameters")
    assert drawn(of(table)) == (
        "the answer\n"
        "\n"
        "by part (exact)  model          share\n"
        "half             4,000  4.00 K   50.0%  ████████\n"
        "rest             3,000  3.00 K   37.5%  ██████\n"
        "last             1,000  1.00 K   12.5%  ██\n"
    )
    assert drawn(of(table), unicode=False) == drawn(of(table)).replace("█", "#")


@pytest.mark.parametrize(
    ("share", "blocks", "ascii_blocks"),
    [
        (1, "█" * 16, "#" * 16),
        (0, "", ""),
        (0.5, "█" * 8, "#" * 8),
        (1 / 128, "▏", "#"),  # an eighth of a block
        (1e-9, "▏", "#"),  # something is never shown as nothing
        (3 / 128, "▍", "#"),
        (7 / 128, "▉", "#"),
        (9 / 128, "█▏", "#"),
        (0.9, "█" * 14 + "▍", "#" * 14),  # 115.2 eighths
    ],
)
def test_a_bar(share, blocks, ascii_blocks):
    assert bar(share, unicode=True) == blocks
    assert bar(share, unicode=False) == ascii_blocks


def test_shares_of_nothing_are_nothing():
    assert drawn(of(with_shares("by part", "m", {"none": 0}, "parameters"))).splitlines()[-1].split() == [
        "none",
        "0",
        "0.0%",
    ]


def test_colour_marks_title_heads_and_strong_rows():
    lines = drawn(of(TOTALS, notes=("exact",)), 80, colour=True).splitlines()
    assert lines[0] == "\x1b[1mthe answer\x1b[0m"
    assert lines[2].startswith("\x1b[2mparameters")
    assert lines[3].startswith("\x1b[1mtotal")
    assert lines[4].startswith("norms  ")
    assert lines[-1] == "\x1b[2mnote: exact\x1b[0m"


def test_without_colour_there_are_no_codes():
    assert "\x1b" not in drawn(of(TOTALS, notes=("exact",)), 80)


@pytest.mark.parametrize("name", ["[red]a[/red]", "a|b", ":smile:", "*a*", "[bold", "a\\[b]", "模型é", "{0}", "1_000"])
def test_a_name_is_shown_as_it_is(name):
    report = of(replace(TOTALS, columns=(name, "large"), title=name), title=f"{name}: 1", notes=(name,))
    for width in (None, 80, 40):
        text = drawn(report, width)
        assert text.splitlines()[0] == f"{name}: 1"
        assert text.splitlines()[-1] == f"note: {name}"
        assert text.splitlines()[2].split()[:2] == [name, name]


@pytest.mark.parametrize(("character", "times"), [("n", 61), ("n", 90), ("n", 300), ("模", 80)])
def test_a_long_name_costs_neither_labels_nor_digits(character, times):
    """A checkpoint's folder often has such a name, and nothing is ever cut."""
    text = drawn(of(replace(TOTALS, columns=(character * times, "large"))), 80)
    assert max(map(cell_len, text.splitlines())) <= 80
    for part in ("parameters", "total", "norms", "8,177", "8,030,261,248"):
        assert part in text
    heads = text.partition("total")[0].replace("answer", "")
    assert heads.count(character) == times


def test_no_limit_means_no_limit():
    table = side_by_side("title", [f"model {i}" for i in range(50)], [{"row": Quantity(10**30, "FLOPs")}] * 50)
    lines = drawn(of(table, title="t" * 5_000)).splitlines()
    assert len(lines) == 4
    assert lines[0] == "t" * 5_000
    assert lines[3].count(f"{10**30:,}") == 50


COMMANDS = {
    "show": [
        *("total_parameters", "embedding_parameters", "non_embedding_parameters", "context", "next_token_flops"),
        *("next_token_weight_flops", "next_token_attention_flops", "sequence_forward_flops", "sequence_train_flops"),
        *("kv_cache_bytes", "kv_bytes_per_token"),
    ],
    "params": ["total_parameters", "embedding_parameters", "non_embedding_parameters"],
    "params --by layer": ["total_parameters"],
    "flops --seq-len 1M": ["forward_flops", "weight_flops", "attention_flops", "train_flops"],
    "attention --contexts 8k": [],
    "train --tokens 15T --seq-len 8k": ["train_flops"],
    "weights --memory 80GiB": [],
    "fits --memory 9000GiB --context 8k": ["memory_bytes", "weight_bytes", "pool_bytes"],
    "kv --context 1M --batch 1k": ["context", "kv_cache_elements", "kv_cache_bytes", "kv_bytes_per_token"],
}


@pytest.fixture
def on_screen(capsys, monkeypatch):
    """What a command line shows on a terminal of `width` columns, or through a pipe for None."""
    monkeypatch.setenv("NO_COLOR", "1")

    def call(words, width):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: width is not None)
        assert run(words) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("models", [["8b"], ["7b", "8b", "gpt2", "gpt2-xl", "llama-3.1-405b"]], ids=len)
@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_fits_every_screen_and_shows_every_number_whole(on_screen, line, models):
    command, *options = line.split()
    rows = json.loads(on_screen([command, *models, *options, "--json"], None))
    rows = rows if isinstance(rows, list) else [rows]
    numbers = {row[key] for row in rows for key in COMMANDS[line]}
    numbers |= {number for row in rows for number in row.get("rule_of_thumb", {}).values()}
    for width in {"kv": (40, 80, 200, None), "show": (80,)}.get(command, (80, 200)):
        text = on_screen([command, *models, *options], width)
        assert max(map(cell_len, text.splitlines())) <= (width or 100_000)
        assert "…" not in text
        shown = {int(digits.replace(",", "")) for digits in re.findall(r"(?<![\w.,])\d[\d,]*(?![\w.])", text)}
        assert numbers <= shown


@pytest.mark.parametrize(
    ("line", "width"), [("presets", 40), ("presets", 80), ("presets", 200), ("schema --format table", 80)]
)
def test_lists_fit_every_screen(on_screen, line, width):
    text = on_screen(line.split(), width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    if line == "presets":
        assert "405,853,388,800" in text


def test_where_labels_have_no_room_each_row_is_a_list():
    """Beside labels stand 13 + 2, 3 + 2 and 1 + 2 characters; with 14 + 2 for labels that makes 39."""
    rows = (
        Row("  layers.attention.key", (Quantity(8030261248, "bytes"), "a b", None), strong=True),
        Row("none", (Quantity(7, "bytes"), "", Measure(None))),
    )
    report = of(Table("a title", ("model", "why", ""), rows))
    listed = """\
the answer

a title
  layers.attention.key
  model: 8,030,261,248  7.48 GiB
  why: a b
none
  model: 7
  -
"""
    assert drawn(report, 38) == drawn(report, 32) == listed
    assert drawn(report, 39).splitlines()[3].split() == ["layers.attenti", "8,030,261,248", "a", "b"]
    for width in range(20, 60):
        text = drawn(report, width)
        assert max(map(len, text.splitlines())) <= width
        assert "8,030,261,248" in text


MIXED = Table(
    "FLOPs",
    ("model", "why"),
    (
        Row("matrices", (Quantity(8030261248, "FLOPs"), "a b"), strong=True),
        Row("layers.activations", (Quantity(7, "FLOPs"), None), status="modelled"),
        Row("tables", (Quantity(5, "FLOPs"), None), status="exact"),
    ),
    status="exact",
)


def test_what_the_numbers_are_is_in_the_heading_and_marks_rows_that_differ():
    assert drawn(of(MIXED)) == (
        "the answer\n"
        "\n"
        "FLOPs (exact, * modelled)          model              why\n"
        "matrices                   8,030,261,248  8.03 GFLOP  a b\n"
        "* layers.activations                   7\n"
        "tables                                 5\n"
    )


def test_a_list_has_the_same_heading_and_marks():
    """Beside labels stand 13 + 2 and 3 + 2 characters; with 14 + 2 for labels that makes 36."""
    listed = """\
the answer

FLOPs (exact, * modelled)
matrices
  model: 8,030,261,248  8.03 GFLOP
  why: a b
* layers.activations
  model: 7
tables
  model: 5
"""
    assert drawn(of(MIXED), 35) == drawn(of(MIXED), 34) == listed
    assert drawn(of(MIXED), 36) != listed


def test_each_half_of_a_split_table_says_what_its_numbers_are():
    """Also the half in which the marked row is empty."""
    rows = (
        Row("a", (Quantity(10**9, "FLOPs"), Quantity(10**9, "FLOPs"))),
        Row("b", (Quantity(7, "FLOPs"), None), status="estimate"),
    )
    table = Table("FLOPs", ("one", "two"), rows, by_model=True, status="exact")
    lines = drawn(of(table), 42).splitlines()
    assert [line.split() for line in lines if "FLOPs" in line] == [
        ["FLOPs", "(exact,", "~", "estimate)", "one"],
        ["FLOPs", "(exact,", "~", "estimate)", "two"],
    ]
    assert [line.split() for line in lines if line.startswith("~")] == [["~", "b", "7"], ["~", "b"]]


def test_a_table_without_numbers_has_its_title_alone():
    table = Table("model", ("name",), (Row("source", ("words",)),))
    assert drawn(of(table)).splitlines()[2] == "model   name"


A, B = symbols("A B")
FORMULAS = Table(
    "number",
    ("formula", "with numbers", "value", "by"),
    (
        Row(
            "a",
            (Formula(2 * A * B), Formula((2 * A * B).filled({"A": 7, "B": 1_024})), Quantity(14_336, "bytes"), None),
        ),
        Row(
            "sum",
            (Formula("sum of 24 lines"), Formula(""), Quantity(5, "bytes"), Measure(65.0425, ",.2f")),
            strong=True,
        ),
    ),
    status="exact",
)


def test_formulas_read_from_the_left():
    assert drawn(of(FORMULAS)) == (
        "the answer\n"
        "\n"
        "number (exact)  formula          with numbers   value                by\n"
        "a               2·A·B            2·7·1,024     14,336  14.00 KiB\n"
        "sum             sum of 24 lines                     5             65.04\n"
    )


def test_a_formula_folds_and_nothing_of_it_is_cut():
    first, second, third = symbols(
        "decoder.layers.attention.k_0 decoder.layers.attention.k_1 decoder.layers.attention.k_2"
    )
    row = Row("total", (Formula(first + second + third), Quantity(8_030_261_248, "bytes")))
    table = Table("number", ("formula", "value"), (row,))
    whole = Counter("".join(drawn(of(table)).split()))
    for width in range(30, 90):
        text = drawn(of(table), width)
        assert max(map(cell_len, text.splitlines())) <= width
        assert "8,030,261,248" in text
        assert not whole - Counter("".join(text.split()))


def test_in_a_list_a_formula_stands_behind_its_columns_name():
    text = drawn(of(FORMULAS), 30)
    assert "a\n  formula: 2·A·B\n  with numbers: 2·7·1,024\n  value: 14,336  14.00 KiB\n" in text
    assert "sum\n  formula: sum of 24 lines\n  value: 5\n  by: 65.04\n" in text


def test_measures_are_right_aligned_as_their_spec_says():
    rows = (Row("a", (Measure(65.0425, ",.4f"),)), Row("b", (Measure(-1_234.5, ",.4f"),)), Row("c", (Measure(None),)))
    lines = drawn(of(Table("t", ("m",), rows))).splitlines()[2:]
    assert lines == ["t            m", "a      65.0425", "b  -1,234.5000", "c            -"]
