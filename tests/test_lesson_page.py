"""docs/lesson.md: its blocks print what stands under them, and the numbers are those that the lesson printed."""

import ast
import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import costcalc.reference

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "lesson.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CODE = [code for code, _ in BLOCKS]
WEIGHTS, SCALING, POSITIONS, COSTS, FURTHER, HEADS, WHOLE, WAYS, PAIR, LONG, PIECES = [text for _, text in BLOCKS]
NUMBER = r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?"

# What the lesson prints, copied.
LESSON_WEIGHTS = """\
[[1.   0.   0.   0.   0.  ]
 [0.19 0.81 0.   0.   0.  ]
 [0.22 0.04 0.74 0.   0.  ]
 [0.2  0.49 0.13 0.19 0.  ]
 [0.08 0.02 0.65 0.23 0.01]]
"""
LESSON_ROW_SUMS = "[1. 1. 1. 1. 1.]"
LESSON_SHAPE = "(5, 8)"
LESSON_MOVED = ["0.0", "6.83"]
LESSON_SCALING = """\
   16          3.9           0.571            0.103
   64          8.0           0.776            0.105
  256         16.1           0.877            0.106
 1024         32.2           0.949            0.109
"""
LESSON_SINUSOIDAL = ["5.5431", "5.5431", "5.5431"]
LESSON_ROPE = [
    ("5", "2", "3", "2.7754"),
    ("105", "102", "3", "2.7754"),
    ("1005", "1002", "3", "2.7754"),
    ("5", "4", "1", "2.5418"),
]
LESSON_LENGTH = "3.674"
LESSON_COSTS = {
    "gpt2": """\
0.12 B parameters (0.08 B in layers, 0.04 B embeddings)
   forward FLOPs per token ~ 0.2 GFLOP; KV cache 36 KiB per token, 0.04 GiB for 1024 tokens
""",
    "llama-2-7b": """\
6.74 B parameters (6.48 B in layers, 0.26 B embeddings)
   forward FLOPs per token ~ 13.0 GFLOP; KV cache 512 KiB per token, 2.00 GiB for 4096 tokens
""",
    "llama-3-8b": """\
8.03 B parameters (6.98 B in layers, 1.05 B embeddings)
   forward FLOPs per token ~ 14.0 GFLOP; KV cache 128 KiB per token, 1.00 GiB for 8192 tokens
""",
}


def numbers(text: str) -> list[str]:
    return re.findall(NUMBER, text)


def whole(text: str) -> list[int]:
    """The exact counts of a text: whole numbers with commas."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d{1,3}(?:,\d{3})+", text)]


def test_every_block_is_followed_by_what_it_prints() -> None:
    assert len(BLOCKS) == PAGE.count("```python") == PAGE.count("```text")


@pytest.mark.parametrize(("code", "shown"), BLOCKS, ids=[f"block {number}" for number in range(1, len(BLOCKS) + 1)])
def test_a_block_prints_what_stands_under_it(code: str, shown: str) -> None:
    """Each with nothing but its own names, as a reader who pastes it has it; NumPy's print options are left alone."""
    before, printed = np.get_printoptions(), io.StringIO()
    with np.printoptions(), contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/lesson.md", "exec"), {"__name__": "lesson"})
        assert np.get_printoptions() == before
    assert printed.getvalue() == shown


@pytest.mark.parametrize("code", CODE, ids=[f"block {number}" for number in range(1, len(BLOCKS) + 1)])
def test_a_block_imports_public_names_only(code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            assert node.module == "costcalc.reference"
            assert {alias.name for alias in node.names} <= set(costcalc.reference.__all__)
        elif isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= {"costcalc", "json", "numpy", "subprocess", "sys"}


def test_causal_weights_and_the_leak() -> None:
    assert WEIGHTS.startswith(LESSON_WEIGHTS)
    sums, moved = WEIGHTS.removeprefix(LESSON_WEIGHTS).splitlines()
    assert sums == f"row sums {LESSON_ROW_SUMS} output {LESSON_SHAPE}"
    assert re.findall(r"by (\S+?)(?:,|$)", moved) == LESSON_MOVED


def test_spread_and_saturation() -> None:
    assert [line.split() for line in SCALING.splitlines()[1:]] == [line.split() for line in LESSON_SCALING.splitlines()]


def test_positions() -> None:
    sinusoids, closed_form, *scores, length = POSITIONS.splitlines()
    assert sinusoids.rpartition(": ")[2].split() == LESSON_SINUSOIDAL
    assert closed_form.rpartition(": ")[2] == LESSON_SINUSOIDAL[0]
    assert [tuple(numbers(score)) for score in scores] == LESSON_ROPE
    assert numbers(length) == [LESSON_LENGTH] * (1 + len(LESSON_ROPE))


def test_costs_by_the_rule() -> None:
    """Model by model, the seven numbers in the lesson's order."""
    said = dict(re.findall(r"^(\S+) by the rule: (.*?)^exactly:", COSTS, re.DOTALL | re.MULTILINE))
    assert {model: numbers(text) for model, text in said.items()} == {
        model: numbers(text) for model, text in LESSON_COSTS.items()
    }
    assert {len(numbers(text)) for text in said.values()} == {7}


# Worked by hand: parameters, how many more than the rule's; FLOPs of the last token: head 2·D·V, attention 4·L·D·S.
EXACT = {
    "gpt2": (124_439_808, 1_024 * 768 + 25 * 2 * 768 + 12 * (4 * 768 + 3_072 + 768), 2 * 768 * 50_257, 12, 768, 1_024),
    "llama-2-7b": (6_738_415_616, 65 * 4_096, 2 * 4_096 * 32_000, 32, 4_096, 4_096),
    "llama-3-8b": (8_030_261_248, 65 * 4_096, 2 * 4_096 * 128_256, 32, 4_096, 8_192),
}


@pytest.mark.parametrize("model", EXACT)
def test_costs_exactly(model: str) -> None:
    text = COSTS.partition(f"{model} by the rule: ")[2].partition("exactly: ")[2].partition(" by the rule")[0]
    total, more, cache, context, held, forward, rule, head, attention = whole(text)
    assert (total, more, head) == EXACT[model][:3]
    layers, width, tokens = EXACT[model][3:]
    assert (attention, context) == (4 * layers * width * tokens, tokens)
    assert forward == rule + head + attention
    assert cache == context * held


def test_the_sum_in_the_prose_is_the_count() -> None:
    prose = re.search(r"(\S+) = (\S+) positions \+ (.*?) in norms \+ (.*?) biases", PAGE.replace("\n", " "))
    assert prose is not None
    total, *terms = (eval(term.replace("·", "*").replace(",", "")) for term in prose.groups())
    assert total == sum(terms) == EXACT["gpt2"][1]


def test_one_step_further() -> None:
    """Nothing is apart in twelve digits; in a window of 2 the last query sees the last two tokens only."""
    assert re.findall(r"(\S+) apart$", FURTHER, re.MULTILINE) == [f"{0:.12f}"] * 3
    five, two = (re.search(rf"window {window}: last row ([\d. ]+);", FURTHER) for window in (5, 2))
    assert five is not None
    assert two is not None
    assert two[1].split()[:3] == ["0.00"] * 3
    # The window takes weights away and lets the others share the rest: their ratio stays.
    ratio = [float(found[1].split()[3]) / float(found[1].split()[4]) for found in (five, two)]
    assert ratio[0] == pytest.approx(ratio[1], rel=0.1)
    assert "0.00" not in five[1].split()


def test_heads_cost_nothing_and_shared_ones_less() -> None:
    """A key/value head of 64 fewer saves 2 layers x 2 matrices x 2·2,048·768·64 FLOPs, and 2·2·2,048·64·2 bytes."""
    rows = [numbers(line) for line in HEADS.splitlines()[:-1]]
    one, twelve, four, single = [tuple(int(number.replace(",", "")) for number in row) for row in rows]
    assert one[2:] == twelve[2:]
    for kv_heads, row in ((4, four), (1, single)):
        assert row[:2] == (12, kv_heads)
        saved = 12 - kv_heads
        assert twelve[2] - row[2] == saved * 2 * 2 * 2 * 2_048 * 768 * 64
        assert twelve[3] - row[3] == saved * 2 * 2 * 2_048 * 64 * 2
    assert HEADS.splitlines()[-1] == "the last one verified: True"


def test_a_whole_model() -> None:
    """GPT-2's 12 layers of 12·768² weights and the head; scores and values over 1 + ... + 6 keys, then over 7."""
    prompt, step, apart, scores = WHOLE.splitlines()
    weights = 12 * 12 * 768**2 + 768 * 50_257
    for line, tokens, pairs, held in ((prompt, 6, 21, 6), (step, 1, 7, 7)):
        flops = 2 * tokens * weights + 12 * 4 * 768 * pairs
        assert whole(line) == [flops, flops, 2 * 12 * 768 * held]
        assert line.startswith(f"(1, {tokens}, 50257): ")
    assert apart == "decoded and whole: 0.0000 apart"
    assert scores.endswith("[Product(batch=12, rows=1, inner=64, columns=7)]")


def test_who_notices_a_changed_token() -> None:
    """The fourth of seven: in a decoder it and those after it, in an encoder all."""
    assert WAYS == "decoder-only: [0 0 0 1 1 1 1]\nencoder-only: [1 1 1 1 1 1 1]\n"


def test_an_encoder_runs_once() -> None:
    """Base of 2017, M = 11: encoder 6 layers of 4·D^2 + 2·D·F, keys and values of cross-attention 6·2·D^2; D = 512."""
    source = 6 * (4 + 2 * 4 + 2) * 512**2 * 11
    token = 6 * (4 + 2 + 2 * 4) * 512**2 + 37_000 * 512
    for step, line in enumerate(PAIR.splitlines()):
        core = 6 * 2 * 512 * (step + 1 + 11 + (11 * 11 if step == 0 else 0))
        flops = 2 * (token + (source if step == 0 else 0) + core)
        assert whole(line) == [flops, flops]
        assert line.endswith(f"{{'kv': {6 * 2 * 512 * (step + 1)}, 'cross': {6 * 2 * 512 * 11}}} numbers held")


def test_what_recurrent_layers_hold_and_cost_at_long_contexts():
    """MiB in bf16: 2·32·4,096·S numbers; Jamba 4 layers of 2·1,024·S beside a state; Mamba 64·5,120·(4·2 + 16·4) B."""
    lines = [line.split() for line in LONG.splitlines()]
    mib = 2**20
    state = 28 * 8192 * (4 * 2 + 16 * 4) / mib
    held = {
        "llama-2-7b": lambda s: 2 * 2 * 32 * 4096 * s / mib,
        "jamba-v0.1": lambda s: 2 * 2 * 4 * 1024 * s / mib + state,
        "mamba-2.8b": lambda s: 64 * 5120 * (4 * 2 + 16 * 4) / mib,
    }
    for name, tokens, _, said, *_ in lines:
        assert said == f"{held[name](int(tokens.replace(',', ''))):,.1f}"
    constant = {name: line[5] for name, *line in lines}
    assert constant == {"llama-2-7b": "0.0", "jamba-v0.1": f"{state:.1f}", "mamba-2.8b": "22.5"}
    steps = {(line[0], line[1]): float(line[-2]) for line in lines}
    assert steps["mamba-2.8b", "4,096"] == steps["mamba-2.8b", "262,144"]
    assert steps["llama-2-7b", "262,144"] > 9 * steps["llama-2-7b", "4,096"]


def test_a_text_in_pieces_leaves_the_same_state():
    """24 layers of 1,536 channels hold 16 numbers of state and 4 inputs each."""
    *runs, last = PIECES.splitlines()
    assert [line.split(": ")[0] for line in runs] == ["1 pieces", "2 pieces", "7 pieces"]
    assert all("(1, 1536, 16), 0.000000 from" in line for line in runs)
    assert whole(last) == [24 * 1536 * 20] * 2
