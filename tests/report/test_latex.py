"""LaTeX: a fragment that compiles: braces, dollars and cells in balance, and no character of a name a command."""

import re

import pytest

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
from costcalc.report.latex import escaped


def text_of(*tables, title="title", notes=(), screen=None):
    return render(Report(title, tables, notes, {}), "latex", screen or Screen())


L, D, F, S = symbols("L D F S")
TOTALS = Table(
    "parameters",
    ("small", "large", "formula"),
    (
        Row("total", (Quantity(37, "parameters"), Quantity(8030261248, "parameters"), Formula(L * D * F)), strong=True),
        Row("  none", (Quantity(None, "bytes"), None, None)),
        Row("ratio", (Ratio(2, 3), Ratio(1, 8, "percent"), Formula("sum of 24 lines"))),
        Row("part", (Measure(4.5, ".6g"), Ratio(1, 8, "bar"), Formula((S + 1) / 2))),
    ),
)


def test_the_whole_page():
    assert text_of(TOTALS, notes=("one", "two")) == (
        "\\noindent\\textbf{title}\n"
        "\n"
        "\\begin{tabular}{lrrl}\n"
        "\\hline\n"
        "parameters & small & large & formula \\\\\n"
        "\\hline\n"
        "\\textbf{total} & \\textbf{37} & \\textbf{8,030,261,248 (8.03 B)} & \\textbf{$L \\, D \\, F$} \\\\\n"
        "none & -- &  &  \\\\\n"
        "ratio & 0.667 & 12.5\\% & sum of 24 lines \\\\\n"
        "part & 4.5 & 12.5\\% & $\\frac{S + 1}{2}$ \\\\\n"
        "\\hline\n"
        "\\end{tabular}\n"
        "\n"
        "\\begin{itemize}\n"
        "\\item one\n"
        "\\item two\n"
        "\\end{itemize}\n"
    )


def test_without_notes_there_is_no_list():
    assert text_of(TOTALS).endswith("\\end{tabular}\n")
    assert "itemize" not in text_of(TOTALS)


def test_an_empty_cell_of_a_strong_row_is_empty():
    table = Table("t", ("a", "b"), (Row("sum", (None, ""), strong=True),))
    assert "\\textbf{sum} &  &  \\\\" in text_of(table)


def test_what_the_numbers_are_is_in_the_heading_and_marks_rows_that_differ():
    rows = tuple(Row(status, (Quantity(7, "tokens"),), status=status) for status in ("exact", "modelled", "estimate"))
    lines = text_of(Table("FLOPs", ("m",), rows, status="exact")).splitlines()
    assert lines[4] == "FLOPs (exact, \\textasciitilde{} estimate, * modelled) & m \\\\"
    assert lines[6:9] == ["exact & 7 \\\\", "{}* modelled & 7 \\\\", "\\textasciitilde{} estimate & 7 \\\\"]


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("100%", r"100\%"),
        ("a_b", r"a\_b"),
        ("#1 & $2", r"\#1 \& \$2"),
        ("{x}", r"\{x\}"),
        ("\\", r"\textbackslash{}"),
        ("\\{", r"\textbackslash{}\{"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("a >= b < c", r"a \textgreater{}= b \textless{} c"),
        ("a|b", r"a\textbar{}b"),
        ("6·N·D", r"6$\cdot$N$\cdot$D"),
        ("--memory", "-{}-memory"),
        ("---", "-{}-{}-"),
        ("a-b", "a-b"),
        ("模型 é", "模型 é"),
        ("", ""),
    ],
)
def test_no_character_is_a_command(text, tex):
    assert escaped(text) == tex


@pytest.mark.parametrize("word", ["*", "[", "[x]", "* q4"])
def test_a_row_or_a_note_may_begin_with_what_belongs_to_a_command(word):
    r"""\\ takes a star and a bracket behind it, \item a bracket."""
    text = text_of(Table(word, ("a",), (Row(word, ("b",)), Row("c", (word,)))), notes=(word,))
    lines = text.splitlines()
    assert lines[4] == f"{{}}{word} & a \\\\"
    assert lines[6:8] == [f"{{}}{word} & b \\\\", f"c & {word} \\\\"]
    assert lines[-2] == f"\\item {{}}{word}"


NAMES = [
    *("a%b", "a_b", "#1", "a & b", "~", "^", "{", "}", "}{", "\\", "\\begin{x}", "$", "$x$", "a\\", "*", "[a]", "--"),
    *("模型é", "a|b", "<b>", "50% of_#1 & {~^\\} $"),
]


def balanced(text):
    """Braces are closed as often as opened and never before; dollars come in pairs on each line."""
    depth = 0
    plain = re.sub(r"\\[\\{}$&%#_]", "", text)  # what is escaped counts for nothing
    for character in plain:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert all(line.count("$") % 2 == 0 for line in plain.splitlines())
    assert not re.search(r"[%#~]", plain)
    mathematics = re.findall(r"\$(.*?)\$", plain)
    outside = re.sub(r"\$.*?\$", "", plain)
    assert "_" not in outside
    assert "^" not in outside
    return mathematics


def cells(line):
    """How many cells a row has: one more than ampersands that are none of a name."""
    return len(re.findall(r"(?<!\\)&", line)) + 1


def check(text):
    """By eye, in a way: every tabular has as many cells in each row as columns."""
    balanced(text)
    tabulars = re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL)
    assert tabulars
    for columns, body in tabulars:
        lines = body.splitlines()
        assert lines[0] == lines[2] == lines[-1] == "\\hline"
        for line in lines:
            if line != "\\hline":
                assert line.endswith(" \\\\")
                assert cells(line) == len(columns)
    assert text.count("\\begin{") == text.count("\\end{")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_can_break_nothing(name):
    """Wherever a name may stand: title, table's title, column, label, cell, note."""
    row = Row(name, (name, Formula(name)), strong=name > "a")
    text = text_of(Table(name, (name, name), (row, row)), title=name, notes=(name,))
    check(text)
    assert text.count(escaped(name)) >= 9


def test_models_and_shares():
    check(text_of(side_by_side("t", ["a_b", "c%"], [{"x": Quantity(7, "bytes")}, {"y_z": Quantity(5, "bytes")}])))
    check(text_of(with_shares("by part", "small", {"half": 1, "rest": 1}, "tokens")))


@pytest.mark.parametrize(
    "line",
    [
        *("show 8b", "show 7b gpt2 --context 1k", "params gemma-2-9b --by layer", "params gpt2 --by tensor --explain"),
        *("flops 8b", "flops 8b --explain", "kv 8b", "kv gemma-2-9b --dtype q8_0 --explain", "attention 8b"),
        *("attention gemma-2-9b --explain", "train 8b --tokens 15T", "train gemma-2-9b --tokens 1M --explain"),
        *(
            "weights 8b --memory 8GB",
            "weights gpt2 --explain",
            "fits 8b --memory 80GiB --explain",
            "fits 8b --memory 80GiB",
        ),
        *("explain 8b", "explain 8b palm.ratio_to_exact chinchilla", "presets", "schema"),
    ],
)
def test_every_command_writes_what_compiles(capsys, line):
    assert run([*line.split(), "--format", "latex"]) == 0
    text = capsys.readouterr().out
    check(text)
    for formula in balanced(text):
        for command in re.findall(r"\\([a-zA-Z]+)", formula):
            assert command in (
                "cdot",
                "frac",
                "mathrm",
                "left",
                "right",
                "lfloor",
                "rfloor",
                "lceil",
                "rceil",
                "bmod",
                "min",
                "max",
            )


def test_the_screen_changes_nothing():
    assert text_of(TOTALS, screen=Screen(10, colour=True, unicode=False)) == text_of(TOTALS)
