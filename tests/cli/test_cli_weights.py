"""`costcalc weights` on the models of conftest.py: tiny has 8,177 parameters, 91 of them in norms."""

import csv
import io
import json
import re

import pytest

# Each format's bits, and 8,177 of them in bytes, rounded up: 8,177·8.5 / 8 = 8,688.06
WORKED = {
    "fp64": (64.0, 65_416),
    "fp32": (32.0, 32_708),
    "fp16": (16.0, 16_354),
    "bf16": (16.0, 16_354),
    "q8_0": (8.5, 8_689),  # 34 bytes for 32
    "mxfp8": (8.25, 8_433),  # 33 for 32
    "fp8": (8.0, 8_177),
    "int8": (8.0, 8_177),
    "q6_k": (6.5625, 6_708),  # 210 for 256
    "q5_1": (6.0, 6_133),
    "q5_k_m": (5.68, 5_806),
    "q5_k_s": (5.52, 5_643),
    "q5_0": (5.5, 5_622),
    "q5_k": (5.5, 5_622),
    "q4_1": (5.0, 5_111),
    "q4_k_m": (4.84, 4_948),
    "q4_k_s": (4.58, 4_682),
    "q4_0": (4.5, 4_600),
    "q4_k": (4.5, 4_600),
    "iq4_nl": (4.5, 4_600),
    "nvfp4": (4.5, 4_600),  # 9 for 16
    "nf4": (4.5, 4_600),
    "mxfp4": (4.25, 4_345),
    "iq4_xs": (4.25, 4_345),
    "gptq_g128": (4.15625, 4_249),  # 4 + (16 + 4) / 128
    "awq_g128": (4.15625, 4_249),
    "nf4_double": (4.126953125, 4_219),  # 4 + 8/64 + 32/(64·256)
    "int4": (4.0, 4_089),  # 4,088.5
    "q3_k_m": (3.91, 3_997),
    "q3_k": (3.4375, 3_514),
    "q2_k": (2.625, 2_684),
}
MIXES = {"q5_k_m", "q5_k_s", "q4_k_m", "q4_k_s", "q3_k_m"}


@pytest.fixture
def asked(fine):
    return lambda *words: json.loads(fine("weights", *words, "--json"))


def by_name(data):
    return {form["format"]: form for form in data["formats"]}


def test_every_format_worked_out(asked, tiny):
    data = asked(tiny)
    assert {name: (form["bits_per_weight"], form["weight_bytes"]) for name, form in by_name(data).items()} == WORKED
    assert [form["format"] for form in data["formats"]] == list(WORKED)  # the widest first
    assert {name for name, form in by_name(data).items() if form["status"] == "modelled"} == MIXES
    assert {form["status"] for form in data["formats"]} == {"exact", "modelled"}
    assert (data["total_parameters"], data["memory_bytes"]) == (8_177, None)
    assert {form["left_bytes"] for form in data["formats"]} == {None}


@pytest.mark.parametrize("memory", ["8KB", "0B", "1TiB"])
def test_what_is_left_of_a_memory_may_be_negative(asked, tiny, memory):
    size = {"8KB": 8_000, "0B": 0, "1TiB": 2**40}[memory]
    data = asked(tiny, "--memory", memory)
    assert data["memory_bytes"] == size
    assert {name: form["left_bytes"] for name, form in by_name(data).items()} == {
        name: size - bytes_ for name, (_, bytes_) in WORKED.items()
    }


@pytest.mark.parametrize(
    ("bits", "name", "size"),
    [
        ("4.82", "4.82 bits", 4_927),  # 8,177·4.82 / 8 = 4,926.6
        ("4", "4 bits", 4_089),
        ("4.82bits", "4.82 bits", 4_927),
        ("4.82 bpw", "4.82 bits", 4_927),
        ("0.5", "0.5 bits", 512),  # 511.06
        ("128", "128 bits", 130_832),
        ("1.58", "1.58 bits", 1_615),  # 1,614.96
    ],
)
def test_bits_of_your_own_come_first(asked, tiny, bits, name, size):
    data = asked(tiny, "--bits", bits)
    assert data["formats"][0] == {
        "format": name,
        "bits_per_weight": float(name.split()[0]),
        "weight_bytes": size,
        "left_bytes": None,
        "status": "exact",
    }
    assert len(data["formats"]) == len(WORKED) + 1


def test_several_bits_of_your_own_stand_in_the_order_of_typing_each_once(asked, tiny):
    data = asked(tiny, "--bits", "3", "--bits", "5", "--bits", "3")
    assert [form["format"] for form in data["formats"]][:3] == ["3 bits", "5 bits", "fp64"]


def test_the_rows(fine, tiny):
    rows = list(csv.reader(io.StringIO(fine("weights", tiny, "--memory", "8KB", "--bits", "3", "--format", "csv"))))
    assert rows[0] == ["section", "quantity", "unit", "bits a weight", "bytes", "GB", "left", "status"]
    assert rows[1] == ["weights in", "3 bits", "bytes", "3.0", "3067", "3.067e-06", "4933", "exact"]
    assert rows[5] == ["weights in", "bf16", "bytes", "16.0", "16354", "1.6354e-05", "-8354", "exact"]
    assert rows[12] == ["weights in", "q5_k_m", "bytes", "5.68", "5806", "5.806e-06", "2194", "modelled"]
    assert len(rows) == 1 + 1 + len(WORKED) + 2
    without = list(csv.reader(io.StringIO(fine("weights", tiny, "--format", "csv"))))
    assert without[0] == ["section", "quantity", "unit", "bits a weight", "bytes", "GB", "status"]


def test_the_title_the_marks_and_the_notes(fine, tiny):
    lines = fine("weights", tiny).splitlines()
    assert lines[0] == "tiny: 15.97 KiB (16.35 kB) in bf16"
    assert lines[2].split() == ["weights", "in", "(exact,", "*", "modelled)", "bits", "a", "weight", "bytes", "GB"]
    assert {line.split()[1] for line in lines if line.startswith("* ")} == MIXES
    assert lines[-2:] == [
        "note: tiny: 91 parameters of norms and biases, which files often keep wider",
        "note: modelled: files that mix formats tensor by tensor, at the bits measured on Llama-2-7B",
    ]


def test_gb_are_decimal_and_gib_binary(fine):
    text = fine("weights", "8b")
    assert text.startswith("llama-3-8b: 14.96 GiB (16.06 GB) in bf16\n")
    assert ["bf16", "16", "16,060,522,496", "14.96", "GiB", "16.06"] in [line.split() for line in text.splitlines()]


def test_published_files(asked):
    """The sizes in GB that the page of the GGML files of Llama-2-7B-chat lists (localmodels/LLM, llama-2-7b-chat)."""
    forms = by_name(asked("7b"))
    listed = {"q4_0": 3.79, "q4_1": 4.21, "q5_0": 4.63, "q4_k_m": 4.08}
    assert {name: round(forms[name]["weight_bytes"] / 1e9, 2) for name in listed} == listed


@pytest.mark.parametrize("model", ["gpt2", "8b", "gemma-2-9b"])
def test_it_says_what_fits_takes_off_a_memory(cli, asked, model):
    for form in asked(model)["formats"]:
        _, out, _ = cli("fits", model, "--memory", "1TiB", "--weights", form["format"], "--json")
        assert json.loads(out)["weight_bytes"] == form["weight_bytes"]


def test_several_models_have_tables_of_their_own(fine, asked, tiny, windowed):
    """10,647 parameters of windowed."""
    both = asked(tiny, windowed)
    assert [(each["model"], each["total_parameters"]) for each in both] == [("tiny", 8_177), ("windowed", 10_647)]
    assert [by_name(each)["fp8"]["weight_bytes"] for each in both] == [8_177, 10_647]
    text = fine("weights", tiny, windowed)
    assert re.findall(r"^(\w+): weights in", text, re.MULTILINE) == ["tiny", "windowed"]
    assert text.startswith("tiny: 15.97 KiB (16.35 kB) in bf16; windowed: 20.79 KiB (21.29 kB) in bf16\n")


def test_the_same_model_twice_is_told_apart(fine, tiny):
    assert re.findall(r"^(tiny #\d): weights in", fine("weights", tiny, tiny), re.MULTILINE) == ["tiny #1", "tiny #2"]


@pytest.mark.parametrize(
    ("options", "what", "hint"),
    [
        *[
            (f"--bits {word}", f"{word!r} is not a number of bits", "--bits 4.82")
            for word in ("x", "-4", "4,5", "1e2", "bf16", "4.1234567", "q4_k", "4.", "1000")
        ],
        ("--bits=", "'' is not a number of bits", "--bits 4.82"),
        ("--bits 0", "'0' is not between 0 and 128 bits", "4.82"),
        ("--bits 129", "'129' is not between 0 and 128 bits", "4.82"),
        ("--memory 80G", "'80G' is not an amount of memory", "--memory 80GiB"),
        ("--memory 8", "'8' is not an amount of memory", "--memory 80GiB"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_type(refused, options, what, hint):
    said, told = refused("weights", "gpt2", *options.split())
    assert said == what
    assert hint in told


def test_the_working(fine, tiny):
    data = json.loads(fine("weights", tiny, "--memory", "8KB", "--bits", "4.82", "--explain", "--json"))
    lines = {line["name"]: line for line in data["numbers"]}
    assert lines["weight_bytes_4.82_bits"]["with_numbers"] == "ceil(8,177·4.82 / 8)"
    assert lines["weight_bytes_nf4_double"]["value"] == 4_219
    assert lines["left_bytes_bf16"]["with_numbers"] == "8,000 - 16,354"
    assert lines["left_bytes_q4_k_m"]["status"] == "modelled"
    assert len(data["explained"]) == 2 * (len(WORKED) + 1)
    plain = json.loads(fine("weights", tiny, "--explain", "--json"))
    assert plain["explained"] == [f"weight_bytes_{name}" for name in WORKED]


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("line", ["weights 8b gpt2 --memory 24GiB", "weights 8b --explain"])
def test_it_fits_a_narrow_terminal(narrow, columns, line):
    assert "16,060,522,496" in narrow(columns, *line.split())
