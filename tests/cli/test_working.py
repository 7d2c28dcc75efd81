"""The promise of `--explain` and `costcalc explain`: any number of any report, and formulas that come to it."""

import json
import re
from fractions import Fraction
from importlib import import_module
from inspect import signature
from math import ceil, floor

import pytest

from costcalc import load
from costcalc.calculators.figure import ESTIMATE, MODELLED, Figure, given, whole
from costcalc.calculators.weights import weight_format
from costcalc.cli import known as known_numbers
from costcalc.cli.main import COMMANDS, MODULES
from costcalc.cli.memory import asked_of_memory, fit_figures, fit_of
from costcalc.cli.models import explain_numbers
from costcalc.cli.working import Explained, explained, stated, value_cell
from costcalc.dtypes import canonical_dtype
from costcalc.expression import Expression, symbol
from costcalc.inventory import Workload
from costcalc.inventory.letters import LETTERS
from costcalc.report import Measure, Quantity
from costcalc.report.latex import escaped

# A report, and the options with which `explain` is asked for the numbers of it. Those of PLAIN are tried on every
# shape, the others on a few of them, that differ most.
PLAIN = {
    "show M": "",
    "params M --by layer": "",
    "flops M": "",
    "kv M": "",
    "attention M --contexts 5000": "--context 5000",
    "train M --tokens 1M": "--tokens 1M",  # with a shorter sequence at the end
    "experts M": "",
    "weights M --memory 7GiB --bits 4.82": "--memory 7GiB --weights 4.82bits",
    "fits M --memory 80GiB": "--memory 80GiB",
}
OTHERS = {
    "show M --context 77 --dtype q8_0": "--context 77 --dtype q8_0",
    "params M": "",
    "flops M --seq-len 11 --batch 3 --counting rectangle": "--seq-len 11 --batch 3 --counting rectangle",
    "flops M --seq-len 1 --past-tokens 5000 --batch 7": "--seq-len 1 --past-tokens 5000 --batch 7",
    "flops M --seq-len 11 --logits last": "--seq-len 11 --logits last",
    "experts M --batch 77": "--batch 77",
    "kv M --context 5000 --batch 3 --dtype q4_0": "--context 5000 --batch 3 --dtype q4_0",
    "attention M --contexts 7 --counting rectangle --dtype fp32": "--context 7 --counting rectangle --dtype fp32",
    "train M --tokens 5 --seq-len 7": "--tokens 5 --seq-len 7",  # a shorter sequence alone
    "train M --tokens 3T --seq-len 1k": "--tokens 3T --seq-len 1k",
    "weights M": "",
    "fits M --memory 80GiB --context 77 --weights q4_k_m --kv-dtype q8_0 --reserve 2GB": (
        "--memory 80GiB --context 77 --weights q4_k_m --dtype q8_0 --reserve 2GB"
    ),
    "fits M --memory 1KB": "--memory 1KB",  # the pool is negative
    "fits M --blocks 1478 --context 5000 --block-size 17 --window-slots 5": (
        "--blocks 1478 --context 5000 --block-size 17 --window-slots 5"
    ),
    "fits M --blocks 7 --window-slots all": "--blocks 7 --window-slots all",
}
SHAPES = ("gpt2", "llama-3-8b", "gemma-2-9b", "mistral-7b-v0.1", "deepseek-v2-lite", "gpt-oss-20b", "gemma-3n-e2b")
"""One preset of each shape: the others are the same records in other sizes."""
ENCODERS = ("albert-base-v2", "modernbert-base")
PAIRS = ("t5-small", "bart-base")
ASK_PAIRS = " --memory-tokens 77"
WITHOUT = ("params", "weights", "experts")
"""Commands that ask nothing of a workload."""
DIFFERENT = ("gpt2", "gemma-2-9b", "mistral-7b-v0.1")
GIVEN = {
    # What the question or the model says, and no report works out: keys of objects, or of objects in these lists.
    *("published_parameters", "context", "batch", "memory_tokens", "tokens", "seq_len", "blocks", "block_size"),
    *("reserve_bytes", "memory_bytes"),
    *("window_slots", "workload", "components/axes", "components/times", "layers/layer", "contexts/context"),
    "formats/bits_per_weight",
    *("mixtures/layers", "mixtures/experts", "mixtures/experts_per_token"),
}


def numbers_of(data):
    """Every number of a report's JSON that is worked out, by the key under which `explain` knows it."""
    for key, value in data.items():
        if key in GIVEN:
            continue
        if isinstance(value, dict):
            yield from ((f"{key}.{below}", number) for below, number in numbers_of(value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for entry in value:
                for below, number in entry.items():
                    if f"{key}/{below}" not in GIVEN and is_number(number):
                        yield IN_LISTS[key](entry, below), number
        elif is_number(value):
            yield key, value


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


IN_LISTS = {
    "components": lambda entry, key: entry["path"] if key == "parameters" else f"{entry['path']}.{key}",
    "layers": lambda entry, key: entry["group"] if key == "parameters" else f"{entry['group']}.{key}",
    "conventions": lambda entry, key: entry["name"] if key == "train_flops" else f"{entry['name']}.{key}",
    "formats": lambda entry, key: f"{key}_{entry['format'].replace(' ', '_')}",
    "contexts": lambda entry, key: key,
    "mixtures": lambda entry, key: f"{key}.{entry['path']}",
}
"""How a number in a list of the JSON is called: by what its entry is about."""


@pytest.fixture
def data_of(cli):
    def call(line):
        code, out, err = cli(*line.split(), "--json")
        assert (code, err) in ((0, ""), (1, ""))
        return json.loads(out)

    return call


def test_a_number_that_nobody_knows_is_seen_wherever_it_stands():
    """What the tests below would do for a new key."""
    data = {"a": 7, "context": 5, "b": {"c": 1.5, "d": None, "e": True}, "f": "x", "workload": {"batch": 3}, "g": []}
    assert dict(numbers_of(data)) == {"a": 7, "b.c": 1.5}
    formats = [{"format": "4.5 bits", "weight_bytes": 3, "new": 0, "bits_per_weight": 4.5}]
    assert dict(numbers_of({"formats": formats})) == {"weight_bytes_4.5_bits": 3, "new_4.5_bits": 0}
    layers = [{"stack": "decoder", "layer": 0, "group": "decoder.layers", "parameters": 3, "new": 5}]
    assert dict(numbers_of({"layers": layers})) == {"decoder.layers": 3, "decoder.layers.new": 5}
    with pytest.raises(KeyError):
        dict(numbers_of({"new": [{"name": "x", "number": 7}]}))


def test_every_command_with_explain_is_among_them():
    takes_it = {command for command in COMMANDS if "explain" in signature(module(command).run).parameters}
    takes_it.remove("compare")  # several models in one object: tests/cli/test_cli_compare.py
    assert {line.split()[0] for line in PLAIN} == takes_it


def module(command):
    return import_module(f"costcalc.cli.{MODULES.get(command, command)}")


@pytest.mark.parametrize(
    ("model", "line"),
    [
        *((model, line) for model in (*SHAPES, *ENCODERS, *PAIRS) for line in PLAIN),
        *((m, line) for m in DIFFERENT for line in OTHERS),
    ],
)
def test_any_number_of_any_report_is_explained(data_of, model, line):
    """By `explain`, all at once; and by `--explain` on the report itself, but for those that are 0."""
    asked = {**PLAIN, **OTHERS}[line]
    if model in PAIRS:
        asked += ASK_PAIRS
        line += "" if line.startswith(WITHOUT) else ASK_PAIRS
    wanted = dict(numbers_of(data_of(line.replace("M", model, 1))))
    assert bool(wanted) is not (model in ENCODERS and line == "kv M")
    answer = data_of(" ".join(["explain", model, *wanted, asked])) if wanted else {"explained": [], "numbers": []}
    assert list(dict.fromkeys(answer["explained"])) == [*wanted]
    said = [(entry["name"], entry["value"]) for entry in answer["numbers"]]  # a path has parameters, and may have FLOPs
    assert [pair for pair in wanted.items() if pair not in said] == []
    beside = {entry["name"]: entry["value"] for entry in data_of(f"{line.replace('M', model, 1)} --explain")["numbers"]}
    assert {key: beside.get(key) for key, value in wanted.items() if value} == {k: v for k, v in wanted.items() if v}


def figures_of(model, *, batch, counting="attended"):
    """Every figure of `explain`, with what goes into each, of a model at a context beyond most windows."""
    architecture = load(model)
    memory = 77 if architecture.inventory.takes_memory else 0
    past = 4_099 if architecture.inventory.has_cache else 0
    workload = Workload(batch, 5_003, memory_tokens=memory, counting=counting)
    known = known_numbers.of_question(
        architecture, known_numbers.Question(workload, 5_003, canonical_dtype("q8_0"), 1_000_003)
    )
    known |= known_numbers.of_weights(architecture, weight_format("4.82bits"), 80 * 10**9 + 7)
    asked = asked_of_memory("80GB", None, "1GB", "q4_k_m", "q8_0", "17", "5")
    known.update(fit_figures(fit_of(architecture, 5_003, memory, asked)))
    later = Workload(batch, 1, past, memory)
    step = known_numbers.of_question(architecture, known_numbers.Question(later, 7, "bf16", None))
    for figures in (known, step):
        yield from {(line.name, line.unit): line for each in figures.values() for line in each.lineage()}.values()


WORDS = r"given|no terms|the S from which on [a-z_]+ >= (1|1/2) x [a-z_]+|the largest S whose cache fits into the pool"
NAMES = {"min": min, "max": max, "floor": floor, "ceil": ceil, "F": Fraction}


def evaluated(text, values=None):
    """The text of a formula, as a reader would type it into Python: names first, then digits, then operations."""
    if values:
        names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
        text = re.sub(rf"(?<![\w.])({names})(?![\w.])", lambda match: f"F('{Fraction(values[match[0]])}')", text)
    parts = re.split(r"(F\('[^']*'\))", re.sub(r"(?<=\d),(?=\d{3})", "", text))
    parts[::2] = [re.sub(r"(?<![\w.])\d+(\.\d+)?", r"F('\g<0>')", part) for part in parts[::2]]
    python = "".join(parts).replace("·", " * ").replace("^", "**").replace(" mod ", " % ")
    return eval(python, {"__builtins__": {}, **NAMES})


def test_how_formulas_are_evaluated():
    assert evaluated("12·1·1,024·min(1,024, 7)") == 12 * 1024 * 7
    assert evaluated("ceil(1,000·4.5 / 8)") == 563
    assert evaluated("2·(5·(5 + 1) / 2 + 3^2) - (17 mod 5)") == 46
    assert evaluated("a.b (next) + a.b·6nd", {"a.b (next)": 100, "a.b": 7, "6nd": 3}) == 121
    assert evaluated("D^2 / 3", {"D": 2}) == Fraction(4, 3)


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("model", [*SHAPES, *ENCODERS, *PAIRS])
def test_every_formula_comes_to_its_number(model, counting):
    kinds = set()
    for line in figures_of(model, batch=3, counting=counting):
        values = {**line.values, **{term.name: term for term in line.terms}}
        values = {name: each.exact_value if isinstance(each, Figure) else each for name, each in values.items()}
        if isinstance(line.formula, Expression):
            kinds.add("formula")
            numbers = line.numbers.text()
            assert evaluated(numbers) == evaluated(line.formula.text(), values) == line.exact_value, line.name
            assert set(re.findall(r"[A-Za-z_]\w*", numbers)) <= {"min", "max", "floor", "ceil", "mod"}
            letters = [name for name in line.formula.symbols() if not isinstance(line.values.get(name), Figure)]
            below = {term.name for term in line.terms}
            assert [name for name in letters if name not in LETTERS and name not in below] == []
        elif match := re.fullmatch(r"sum of ([\d,]+) lines", line.formula):
            kinds.add("sum")
            assert int(match[1].replace(",", "")) == len(line.terms)
            assert line.exact_value == sum(term.exact_value for term in line.terms)
        else:
            kinds.add("words")
            assert re.fullmatch(WORDS, line.formula), line.formula
            assert line.formula != "no terms" or line.exact_value == 0
    assert kinds == {"formula", "sum", "words"}


@pytest.mark.parametrize(
    "line", ["show gemma-2-9b", "kv phi-2 --dtype q8_0", "fits gpt2 --memory 1GB", "train 8b --tokens 1M"]
)
def test_markdown_latex_csv_and_table_hold_every_formula(cli, data_of, line):
    numbers = data_of(f"{line} --explain")["numbers"]
    text = {
        form: cli(*line.split(), "--explain", "--format", form)[1] for form in ("markdown", "latex", "csv", "table")
    }
    for entry in numbers:
        name, formula = entry["name"], entry["formula"]
        cells = {"markdown": f"| `{formula}` |", "latex": f"${entry['latex']}$"}
        if entry["latex"] is None:
            cells = {"markdown": f"| {formula} |", "latex": escaped(formula)}
            assert entry["with_numbers"] is None
        else:
            assert f"| `{entry['with_numbers']}` |" in text["markdown"]
            assert entry["with_numbers"] in text["table"]
        for form, cell in {**cells, "csv": formula, "table": formula}.items():
            assert cell in text[form], (form, name)
        assert name in text["csv"]
        assert f"{entry['value']:,}" in text["markdown"]


def test_the_whole_working_of_a_cache(fine, tiny):
    """7 tokens of 3 layers with 2 heads of 5: 210 keys and as many values of 2 bytes; conftest.py has the model."""
    title, _, heading, *rows, _, letters, heads, stored, adds = fine(
        *("kv", tiny, "--context", "7", "--explain")
    ).splitlines()
    assert title == "tiny: 3 numbers, and where they come from"
    assert heading.split() == ["number", "(exact)", "formula", "with", "numbers", "value"]
    assert [re.split("  +", row) for row in rows] == [
        [K, "L·B·S·K·H", "3·1·7·2·5", "210"],
        [V, "L·B·S·K·H", "3·1·7·2·5", "210"],
        ["kv_cache_elements", f"{K} + {V}", "210 + 210", "420"],
        ["kv_cache_bytes", "kv_cache_elements·2", "420·2", "840"],
        [f"{K} (next token)", "L·B·S·K·H", "3·1·8·2·5", "240"],
        [f"{V} (next token)", "L·B·S·K·H", "3·1·8·2·5", "240"],
        ["kv_cache_elements_next", f"{K} (next token) + {V} (next token)", "240 + 240", "480"],
        ["kv_cache_bytes_next", "kv_cache_elements_next·2", "480·2", "960"],
        ["kv_bytes_per_token", "kv_cache_bytes_next - kv_cache_bytes", "960 - 840", "120"],
    ]
    assert letters == (
        "note: B sequences of a batch; S tokens of a sequence (its context); L layers that the line stands for; "
        "K key/value heads; H head size"
    )
    assert heads.startswith("note: kv_cache_elements, kv_cache_elements_next: keys and values of each kv head: ")
    assert stored == "note: kv_cache_bytes, kv_cache_bytes_next: bf16: 16 bits a value"
    assert adds.startswith("note: kv_bytes_per_token: the curve one token further on")


K, V = (f"decoder.layers.attention.{letter}_cache" for letter in "kv")


def of(name, unit="FLOPs", expression=None, status="exact", source="", **values):
    return Figure(name, unit, expression, values, status=status, source=source)


def test_a_line_is_listed_once_however_many_numbers_need_it():
    base = of("base", expression=3 * symbol("T"), T=7)
    twice = of("twice", expression=2 * symbol("base"), base=base)
    thrice = of("thrice", expression=3 * symbol("base"), base=base)
    lines = Explained("m", (twice, thrice)).lines
    assert [(line.name, line.value) for line in lines] == [("base", 21), ("twice", 42), ("thrice", 63)]


def test_one_name_for_two_numbers_is_our_bug():
    with pytest.raises(AssertionError, match="base is 21 and 15"):
        _ = Explained(
            "m", (of("base", expression=3 * symbol("T"), T=7), of("base", expression=3 * symbol("T"), T=5))
        ).lines


def test_the_same_name_in_another_unit_is_another_number():
    head = of("head", "parameters", expression=symbol("D"), D=7)
    assert len(Explained("m", (head, of("head", expression=symbol("D"), D=5))).lines) == 2


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        (of("a", "bytes", 3 * symbol("T"), T=1_024), "m: a = 3,072 bytes (3.00 KiB), exact"),
        (of("a", "FLOPs", 3 * symbol("T"), T=1_000), "m: a = 3,000 (3.00 kFLOP), exact"),
        (of("a", "tokens", 3 * symbol("T"), T=1_000), "m: a = 3,000 tokens, exact"),
        (of("a", "", 3 * symbol("T"), T=1_000), "m: a = 3,000, exact"),
        (of("a", "", symbol("T") / 7, T=5), "m: a = 0.714286, exact"),
        (of("a", "", symbol("T") / 7, T=14), "m: a = 2, exact"),
        (of("a", "FLOPs", symbol("T") / 2, T=15_000_001), "m: a = 7,500,001 (7.50 MFLOP), exact"),  # a half up
        (of("a", "FLOPs", 1 * symbol("T"), ESTIMATE, T=1_000), "m: a = 1,000 (1.00 kFLOP), estimate"),
    ],
)
def test_the_title_says_the_number(figure, title):
    assert explained({"m": [figure]}).title == title


def test_several_numbers_and_models_are_counted():
    figures = [of(name, expression=symbol("T") * 2, T=7) for name in "ab"]
    report = explained({"m": figures, "n": figures[:1]})
    assert report.title == "m: 2 numbers, and where they come from; n: a = 14 (14 FLOP), exact"
    assert [table.title for table in report.tables] == ["m: number", "n: number"]
    assert [entry["model"] for entry in report.data] == ["m", "n"]


def test_rows_say_what_was_asked_for_and_what_each_is():
    base = of("base", expression=3 * symbol("T"), status=MODELLED, T=7)
    report = explained({"m": [of("asked", expression=2 * symbol("base"), base=base)]})
    (table,) = report.tables
    assert [(row.label, row.strong, row.status) for row in table.rows] == [
        ("base", False, "modelled"),
        ("asked", True, "modelled"),
    ]
    assert table.heading == "number (exact, * modelled)"


def test_notes_are_the_letters_in_use_then_each_source_once():
    a = of("a", expression=symbol("V") * symbol("B"), source="one", V=7, B=5)
    b = of("b", expression=symbol("a") + symbol("T"), source="two", a=a, T=3)
    c = of("c", expression=symbol("a") - symbol("T"), source="one", a=a, T=3)
    report = explained({"m": [b, c]})
    assert report.notes == (
        "B sequences of a batch; T new tokens of a sequence; V vocabulary",
        "a, c: one",
        "b: two",
    )


def test_nothing_to_explain_has_no_empty_note():
    assert explained({"m": [given("memory_bytes", "bytes", 7)]}).notes == ()


def test_the_json_of_a_line():
    half = of("half", "", symbol("T") / 8, source="s", T=3)
    data = explained({"m": [of("a", expression=symbol("half") + 1, half=half)]}).data
    assert list(data) == ["schema", "costcalc_version", "model", "explained", "numbers"]
    assert (data["schema"], data["model"], data["explained"]) == ("costcalc.explain/1", "m", ["a"])
    assert data["numbers"] == [
        {
            "name": "half",
            "unit": "",
            "value": 0.375,
            "status": "exact",
            "formula": "T / 8",
            "latex": r"\frac{T}{8}",
            "with_numbers": "3 / 8",
            "inputs": [],
            "source": "s",
        },
        {
            "name": "a",
            "unit": "FLOPs",
            "value": 1,
            "status": "exact",
            "formula": "half + 1",
            "latex": r"\mathrm{half} + 1",
            "with_numbers": "0.375 + 1",
            "inputs": ["half"],
            "source": None,
        },
    ]


@pytest.mark.parametrize(
    ("figure", "number", "cell"),
    [
        (of("a", "", symbol("T") / 7, T=5), 0.714286, Measure(0.714286, ",.6f")),
        (of("a", "", symbol("T") / 7, T=7), 1, Quantity(1, "")),
        (of("a", "bytes", symbol("T") / 7, T=5), 1, Quantity(1, "bytes")),
        (of("a", "", symbol("T") / 3, T=20_000), 6_666.666667, Measure(6_666.666667, ",.6f")),
    ],
)
def test_only_a_ratio_is_not_whole(figure, number, cell):
    assert (stated(figure), value_cell(figure)) == (number, cell)
    assert isinstance(stated(figure), type(number))
    assert figure.value == whole(figure.exact_value)


def test_a_report_asks_for_its_own_numbers_that_are_not_0():
    figures = {name: of(name, expression=symbol("T") * 1, T=7) for name in ("a", "b.c", "unasked")}
    figures["zero"] = of("zero")
    report = explain_numbers(["m"], [figures], [{"b": {"c": 7}, "a": 7, "zero": 0, "words": "x", "none": None}])
    assert report.data["explained"] == ["b.c", "a"]


def test_a_working_that_comes_to_another_number_is_our_bug():
    figures = {"a": of("a", expression=symbol("T") * 1, T=7)}
    with pytest.raises(AssertionError, match="a is 8, but its working gives 7"):
        explain_numbers(["m"], [figures], [{"a": 8}])
