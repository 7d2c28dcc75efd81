"""Every command in every format: it succeeds, it parses, and the exact numbers are in it."""

import csv
import io
import json
import re

import pytest

from costcalc.cli import emit
from costcalc.cli import main as root
from costcalc.report import STATUSES, Measure, Quantity, Ratio, render

# Command line -> a number that every format of it holds. The tiny ones are worked out in conftest.py and below.
COMMANDS = {
    "show 8b": 8_030_261_248,
    "show 7b gpt2 --context 1k --dtype fp8": 124_439_808,
    "params 8b": 8_030_261_248,
    "params 8b --by component": 1_050_673_152,  # the embedding and the head, 128,256·4,096 each
    "params 8b --by layer": 6_979_588_096,
    "params 8b --by tensor": 1_879_048_192,  # gate: 32·4096·14336
    "params gemma-2-9b --by layer": 198_195_200,
    "params 7b 8b gpt2 --by layer": 6_738_415_616,
    "flops 8b": 140_550_657_277_952,
    "flops 8b --seq-len 48 --counting rectangle": 721_655_169_024,
    "flops 8b --seq-len 8k --logits last --batch 3": 3 * 131_944_593_489_920,
    "flops 8b --seq-len 1 --past-tokens 8191": 19_304_284_160,
    "flops 7b 8b gpt2 --seq-len 1k": 272_339_828_736,
    "kv 8b": 1_073_741_824,
    "kv 7b 8b --context 8k --batch 32 --dtype bf16": 34_359_738_368,
    "kv 8b --context 8k --dtype q8_0": 570_425_344,  # 536,870,912 elements of 34/32 bytes
    "attention 8b --contexts 1k,8k": 17_594_333_528_064,
    "attention 7b gpt2 --contexts 1k": 19_346_227_200,
    "train 8b --tokens 1T --seq-len 8k": 48_181_567_488_000_000_000_000,  # 6·8,030,261,248·10^12
    "train gpt2 7b --tokens 15M --seq-len 1k": 11_199_582_720_000_000,  # 6·124,439,808·15·10^6
    "weights 8b": 16_060_522_496,
    "weights 7b gpt2 --bits 3 --memory 8GiB": 248_879_616,
    "fits 8b --memory 80GiB --context 8k": 69_838_823_424,
    "fits 7b 8b --memory 80GB --kv-dtype q8_0 --context 2k": 136 * 2**20,  # 2,048 tokens of 8b, 65,536 values each
    "kv 8b --explain": 536_870_912,
    "explain 8b kv_cache total_parameters": 8_030_261_248,
    "explain 8b": 1_050_673_152,
    "compare gpt2 7b 8b": 15_644_686_811_136,
    "compare 7b 8b --context 8k --baseline 8b": 3_221_225_472,  # 32 heads instead of 8 hold 3 GiB more
    "presets": 405_853_388_800,
}


@pytest.mark.parametrize(("line", "number"), COMMANDS.items())
def test_table(fine, line, number):
    text = fine(*line.split())
    assert f"{number:,}" in text
    assert "…" not in text
    assert "\x1b" not in text
    assert text.endswith("\n")
    assert not [row for row in text.splitlines() if row != row.rstrip()]


@pytest.mark.parametrize(("line", "number"), COMMANDS.items())
def test_json(fine, line, number):
    text = fine(*line.split(), "--format", "json")
    json.loads(text)
    assert str(number) in re.findall(r"\d+", text)
    assert text.isascii()


@pytest.mark.parametrize(("line", "number"), COMMANDS.items())
def test_csv(fine, line, number):
    rows = list(csv.reader(io.StringIO(fine(*line.split(), "--format", "csv"))))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0][:3] == ["section", "quantity", "unit"]
    assert rows[0][-1] == "status"
    assert len(set(rows[0])) == len(rows[0])
    assert [row for row in rows if str(number) in row]


@pytest.mark.parametrize(("line", "number"), COMMANDS.items())
def test_markdown(fine, line, number):
    text = fine(*line.split(), "--format", "markdown")
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        lines = table.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in lines}) == 1
        assert re.fullmatch(r"\| :-- (\| (:--|--:) )+\|", lines[1])
    assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", text)


# Command -> its modes, of which each has tables of its own; MODEL and OTHER are the small ones of conftest.py.
MODES = {
    "show": ["MODEL", "MODEL OTHER --context 7", "MODEL --dtype q8_0"],
    "params": [
        *("MODEL", "MODEL OTHER", "MODEL --by layer", "MODEL --by tensor", "MODEL OTHER --by layer"),
        "MODEL OTHER --by tensor",
    ],
    "flops": ["MODEL", "MODEL OTHER --seq-len 7", "MODEL --seq-len 1 --past-tokens 5", "MODEL --logits last"],
    "kv": ["MODEL", "MODEL OTHER --context 7 --batch 2"],
    "attention": ["MODEL", "MODEL OTHER --contexts 5,7", "MODEL --explain"],
    "train": ["MODEL --tokens 77", "MODEL OTHER --tokens 77 --seq-len 5", "MODEL --tokens 77 --explain"],
    "experts": ["MODEL", "MODEL OTHER --batch 5", "MODEL --explain"],
    "weights": ["MODEL", "MODEL OTHER --bits 3.5 --memory 80MB", "MODEL --explain"],
    "fits": ["MODEL --memory 1MB", "MODEL OTHER --blocks 7 --context 7", "MODEL --memory 1MB --explain"],
    "explain": ["MODEL", "MODEL kv_cache palm"],
    "compare": ["MODEL OTHER", "MODEL MODEL", "MODEL OTHER MODEL --context 7", "MODEL OTHER --explain"],
    "verify": ["MODEL", "MODEL OTHER"],
    "models": ["", "--family encoder-only"],
    "presets": [""],
    "schema": [""],
}


def test_every_command_has_modes():
    assert set(MODES) == set(root.COMMANDS) - {"import"}, "give a new command its modes above"  # import has no tables


@pytest.mark.parametrize("line", [f"{command} {mode}".strip() for command, modes in MODES.items() for mode in modes])
def test_every_table_with_numbers_says_what_they_are(fine, tiny, windowed, monkeypatch, line):
    reports = []

    def kept(report, form, screen):
        reports.append(report)
        return render(report, form, screen)

    monkeypatch.setattr(emit, "render", kept)
    paths = {"MODEL": str(tiny), "OTHER": str(windowed)}
    fine(*(paths.get(word, word) for word in line.split()), "--format", "table")
    (report,) = reports
    assert report.tables
    for table in report.tables:
        if any(isinstance(cell, Quantity | Ratio | Measure) for row in table.rows for cell in row.cells):
            assert table.status in STATUSES, table.title
        assert {row.status for row in table.rows} <= {"", *STATUSES}, table.title


def test_schema_is_json_unless_another_format_is_asked_for(fine):
    assert fine("schema") == fine("schema", "--json") == fine("schema", "--format", "json")
    assert "GroupedQuery.kv_heads" in fine("schema", "--format", "table")
    assert "GroupedQuery.kv_heads" in fine("schema", "--format", "csv")
    assert "\n### GroupedQuery\n" in fine("schema", "--format", "markdown")


def test_schema_in_columns_has_equal_rows(fine):
    rows = list(csv.reader(io.StringIO(fine("schema", "--format", "csv"))))
    assert {len(row) for row in rows} == {6}
    lines = [line for line in fine("schema", "--format", "markdown").splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {5}


@pytest.mark.parametrize(
    "command",
    ["show gpt2", "params gpt2", "flops gpt2", "kv gpt2", "compare gpt2 8b", "verify gpt2", "presets", "schema"],
)
def test_json_and_another_format_exclude_each_other(refused, command):
    for form in ("csv", "table") if command == "kv gpt2" else ("csv",):
        what, _ = refused(*command.split(), "--json", "--format", form)
        assert "--json" in what
        assert form in what


def test_json_twice_is_json(fine):
    assert fine("params", "gpt2", "--json", "--format", "json") == fine("params", "gpt2", "--json")


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_only_tables_are_coloured_or_fitted_to_the_screen(fine, terminal, monkeypatch, form):
    piped = fine("kv", "8b", "7b", "--format", form)
    terminal(40)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert fine("kv", "8b", "7b", "--format", form) == piped


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("jsn", "--format json"),
        ("markdwon", "--format markdown"),
        ("tabel", "--format table"),
        ("xlsx", "table, json, csv, markdown"),
        ("", "table, json, csv, markdown"),
    ],
)
def test_an_unknown_format_is_refused_with_the_nearest(refused, word, hint):
    what, told = refused("params", "gpt2", "--format", word)
    assert repr(word) in what
    assert hint in told
