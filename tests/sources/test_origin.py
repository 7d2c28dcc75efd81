from __future__ import annotations

import pytest

from costcalc.sources import load
from costcalc.sources.origin import Origin
from costcalc.sources.yaml_text import BREAKS

LAYER = "layers:\n  - {attention: {heads: 6, head_dim: 5}, feed_forward: {d_ff: 37}}\n"
LLAMA = '{\n  "model_type": "llama",\n  "hidden_size": 128,\n  "intermediate_size": 37,\n  "num_attention_heads": 4'


def test_a_source_that_is_no_text_has_no_place():
    error = Origin("the mapping").refusal("wrong", "mend it", [("decoder",), ()])
    assert (str(error), error.hint, error.excerpt) == ("the mapping: wrong", "mend it", None)


def test_the_first_path_that_is_written_is_the_place():
    marks = {(): (1, 1), ("decoder",): (3, 3), ("norm",): (2, 1)}
    origin = Origin("m.yaml", "a: 1\nnorm: x\n  decoder: {}\n", find_marks=lambda: marks)
    assert origin.refusal("", "", [("norm", "kind"), ("norm",), ("decoder",)]).excerpt == (2, "norm: x", 1, 4)
    assert origin.refusal("", "", [("decoder",)]).where == "m.yaml:3:3"
    assert origin.refusal("", "", [("x",)]).where == "m.yaml"
    assert origin.refusal("", "").where == "m.yaml"


def test_marks_are_found_only_when_an_error_asks():
    def never():
        raise AssertionError

    assert Origin("m.yaml", "a: 1", find_marks=never).refusal("", "").where == "m.yaml"


@pytest.mark.parametrize(
    ("line", "column", "length"),
    [
        ("attention: {head: 32}", 13, 4),
        ('{"a \\" key": 1}', 2, 10),
        ("'a key': 1", 1, 7),
        ("a: !tag x", 4, 4),
        ("a: *alias-1", 4, 8),
        ("kv-heads.x: 1", 1, 10),
        ("a: [1, 2", 9, 1),
        ("文字: 1", 1, 2),
        ("a: ]", 4, 1),
    ],
)
def test_the_word_at_the_place_is_underlined(line, column, length):
    assert Origin("x", line).refusal_at("", "", (1, column)).excerpt == (1, line, column, length)


@pytest.mark.parametrize("text", ["a: [1,\n\n  \n", "a: [1,\n", "a: [1,"])
def test_an_error_at_the_end_of_the_text_shows_the_end_of_the_last_line(text):
    lines = text.count("\n") + 1
    error = Origin("x", text).refusal_at("", "", (lines, 1 if lines > 1 else 7))
    assert error.where.startswith(f"x:{lines}:")
    assert error.excerpt == (1, "a: [1,", 7, 1)


def test_a_blank_text_has_no_line_to_show():
    assert Origin("x", "\n \n").refusal_at("", "", (2, 1)).excerpt is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_lines_end_where_the_reader_of_yaml_says(write, refusal, end):
    error = refusal(write(end.join(["vocab_size: 19", "d_model: 13", "norms: rmsnorm", "x: 1"])))
    assert error.where.endswith(":3:1")
    assert error.excerpt == (3, "norms: rmsnorm", 1, 5)


def test_offsets_become_lines_and_columns():
    origin = Origin("x", "ab\r\nc\rd", BREAKS)
    assert [origin.mark(offset) for offset in (0, 1, 4, 6)] == [(1, 1), (1, 2), (2, 1), (3, 1)]


YAML_ERRORS = {
    "unknown key": ("vocab_size: 19\nd_modle: 13\n" + LAYER, (2, "d_modle: 13", 1, 7)),
    "missing key": ("# a comment\nvocab_size: 19\n" + LAYER, (2, "vocab_size: 19", 1, 10)),
    "missing below": (
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers:\n  - attention: {head_dim: 5}\n",
        (5, "  - attention: {head_dim: 5}", 5, 9),
    ),
    "wrong kind": ("vocab_size: 19\nd_model: 13\nnorm: batchnorm\n" + LAYER, (3, "norm: batchnorm", 1, 4)),
    "wrong value": ("vocab_size: many\nd_model: 13\nnorm: rmsnorm\n" + LAYER, (1, "vocab_size: many", 1, 10)),
    "broken rule": (
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers:\n  - attention: {heads: 6}\n",
        (5, "  - attention: {heads: 6}", 5, 9),
    ),
    "syntax": ("vocab_size: 19\nd_model: [13\n", (2, "d_model: [13", 13, 1)),
    "control character": ("vocab_size: 19\nd_model: \x07\n", (2, "d_model: \x07", 10, 1)),
    "duplicate": ("vocab_size: 19\nd_model: 13\nvocab_size: 19\n", (3, "vocab_size: 19", 1, 10)),
    "tag": ("vocab_size: !!int 19\n", (1, "vocab_size: !!int 19", 13, 1)),
    "byte order mark": ("\ufeffvocab_siz: 19\n", (1, "vocab_siz: 19", 1, 9)),
}


@pytest.mark.parametrize(("text", "excerpt"), YAML_ERRORS.values(), ids=YAML_ERRORS)
def test_every_error_of_a_yaml_file_has_its_line(write, refusal, text, excerpt):
    error = refusal(write(text))
    assert error.excerpt == excerpt
    assert "^" in str(error.excerpt)


CONFIG_ERRORS = {
    "unread key": (LLAMA + ',\n  "hiden_size": 3}', (6, '  "hiden_size": 3}', 3, 12)),
    "wrong value": (LLAMA + ',\n\t"head_dim": "x"}', (6, '\t"head_dim": "x"}', 2, 10)),
    "rule of the class": (LLAMA.replace("128", "129") + "}", (3, '  "hidden_size": 129,', 3, 13)),
    "word of a list": (
        LLAMA + ',\n "num_hidden_layers": 2, "layer_types": ["full_attention", "full"]}',
        (6, ' "num_hidden_layers": 2, "layer_types": ["full_attention", "full"]}', 60, 6),
    ),
    "unknown model_type": ('{"a": 1,\n "model_type": "lama"}', (2, ' "model_type": "lama"}', 2, 12)),
    "no model_type": ('\n{\n  "hidden_size": 128}', (3, '  "hidden_size": 128}', 3, 13)),
    "another head": (LLAMA + ',\n "architectures": ["X"]}', (6, ' "architectures": ["X"]}', 2, 15)),
    "another name": (
        '{"model_type": "gpt2", "hidden_size": 3.5}',
        (1, '{"model_type": "gpt2", "hidden_size": 3.5}', 24, 13),
    ),
    "two names": (
        '{"model_type": "gpt2", "n_embd": 3, "hidden_size": 4}',
        (1, '{"model_type": "gpt2", "n_embd": 3, "hidden_size": 4}', 37, 13),
    ),
}


@pytest.mark.parametrize(("text", "excerpt"), CONFIG_ERRORS.values(), ids=CONFIG_ERRORS)
def test_every_error_of_a_config_has_its_line(write, refusal, text, excerpt):
    path = write(text, "config.json")
    error = refusal(path)
    assert error.excerpt == excerpt
    assert error.where == f"{path}:{excerpt[0]}:{excerpt[2]}"


def test_what_a_config_leaves_to_its_class_has_no_place(write, refusal):
    path = write('{"model_type": "llama", "num_attention_heads": 3}', "config.json")
    assert refusal(path).where == path


def test_a_good_file_is_read_once(write, monkeypatch):
    """Positions in JSON are looked up only for an error."""
    monkeypatch.setattr("costcalc.sources.json_text._places", None)
    load(write('{"model_type": "gpt2"}', "config.json"))
