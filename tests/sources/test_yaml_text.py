from __future__ import annotations

import math
import time

import pytest
import yaml

from costcalc.errors import CostcalcError
from costcalc.sources.yaml_text import read_yaml

LABEL = "model.yaml"


def _read(text: str) -> object:
    return read_yaml(text, LABEL).data


def _refused(text: str) -> CostcalcError:
    with pytest.raises(CostcalcError) as caught:
        read_yaml(text, LABEL)
    assert caught.value.hint
    assert str(caught.value).isprintable()
    return caught.value


@pytest.fixture(params=["libyaml", "pure Python"])
def parser(request, monkeypatch):
    """Both parsers that PyYAML may come with."""
    if request.param == "libyaml":
        pytest.importorskip("yaml.cyaml")
    else:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return request.param


# ---------------------------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("13", 13),
        ("+13", 13),
        ("-13", -13),
        ("50_257", 50257),
        ("8_030_261_248", 8030261248),
        ("1__0", 10),
        ("1_", 1),
        ("1_._5", 1.5),
        ("1e6", 1e6),
        ("5e5", 5e5),
        ("5E5", 5e5),
        ("1e+6", 1e6),
        ("1e-6", 1e-6),
        ("-1e6", -1e6),
        ("1_0e6", 1e7),
        ("1.5e3", 1500.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1_0.5", 10.5),
        ("010.5", 10.5),
        ("1e400", math.inf),
        (".inf", math.inf),
        ("+.Inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("NULL", None),
        ("", None),
    ],
)
def test_numbers_and_words(text, value):
    got = _read(f"key: {text}")
    assert got == {"key": value}
    assert type(got["key"]) is type(value)


def test_not_a_number_is_a_float():
    assert math.isnan(_read("key: .NaN")["key"])


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No", "NO", "off", "yes", "on", "y", "n"),  # booleans in YAML 1.1
        *("010", "-010", "0x10", "0o17", "0b11", "1:30", "2024-01-02"),  # 8, -8, 16, 15, 3, 90 and a date in YAML 1.1
        *(
            "1e",
            "1e5_0",
            "e5",
            "1.2.3",
            "1e1e1",
            "1e1234567",
            "_1",
            "1,000",
            "50,257",
            "8k",
            "174.6B",
            "7b",
            "--1",
            ".",
        ),
        *("nan", "inf", "none", "rope", "größe", "١٢"),
    ],
)
def test_text_stays_text(text):
    assert _read(f"key: {text}") == {"key": text}


@pytest.mark.parametrize("quoted", ['"{}"', "'{}'"])
@pytest.mark.parametrize("text", ["13", "1e6", "true", "null", "~", ".inf", ""])
def test_quoted_is_always_text(quoted, text):
    assert _read("key: " + quoted.format(text)) == {"key": text}
    assert _read("- " + quoted.format(text)) == [text]


def test_blocks_of_text_are_text():
    assert _read("a: |\n  13\nb: >-\n  13\n") == {"a": "13\n", "b": "13"}


def test_keys_are_never_converted():
    assert _read("1: a\ntrue: b\nnull: c\n1e6: d\n010: e\n? f\n: 7") == {
        "1": "a",
        "true": "b",
        "null": "c",
        "1e6": "d",
        "010": "e",
        "f": 7,
    }


def test_a_thousand_digits_are_a_number_and_one_more_is_refused():
    assert _read("key: " + "9" * 1000) == {"key": 10**1000 - 1}
    error = _refused("key: " + "9" * 1001)
    assert (error.what, error.where) == ("a number of 1,001 digits", "model.yaml:1:6")
    assert error.hint == "write a number below 10^12"
    assert _read("key: " + "x" * 1001) == {"key": "x" * 1001}


# ------------------------------------------------------------------------------------------------------- structures


def test_structures_nest_in_any_style(parser):
    text = "# a comment\na:\n  - {b: [1, 2], c: {}}\n  -\n    d: []\n  - - 3\n    - 4\ne:\n"
    assert _read(text) == {"a": [{"b": [1, 2], "c": {}}, {"d": []}, [3, 4]], "e": None}


@pytest.mark.parametrize(
    ("text", "data"),
    [("13", 13), ("rope", "rope"), ("[1, 2]", [1, 2]), ("- 1", [1]), ("", None), ("# only\n# comments\n", None)],
)
def test_a_document_may_be_anything(text, data):
    assert _read(text) == data


@pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n...\n", "%YAML 1.1\n---\na: 1\n", "\ufeffa: 1\n", "a: 1\r\n"])
def test_one_document_in_any_dress(text, parser):
    assert _read(text) == {"a": 1}


def test_a_second_document_is_refused(parser):
    error = _refused("a: 1\n---\nb: 2\n")
    assert (error.what, error.where) == ("a second document begins here", "model.yaml:2:1")
    assert error.hint == "keep one model in a file"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb: 2\na: 3\n", "model.yaml:3:1"),
        ("{a: 1, b: 2, a: 3}", "model.yaml:1:14"),
        ("x:\n  - a: 1\n    a: 1\n", "model.yaml:3:5"),
        ('"a": 1\na: 2\n', "model.yaml:2:1"),
    ],
)
def test_a_key_written_twice(text, where, parser):
    error = _refused(text)
    assert (error.what, error.where, error.hint) == ("`a` is written twice", where, "keep one of the two")


def test_equal_keys_of_different_mappings_are_fine():
    assert _read("a: {a: 1}\nb: {a: 2}\n") == {"a": {"a": 1}, "b": {"a": 2}}


@pytest.mark.parametrize(
    "text", ["[a]: 1", "{a: 1}: 1", "? [a]\n: 1", "x: &x y\n*x : 1", "? {a: 1}\n: 2", "{[a, b]: c}", "? &x [a]\n: 1"]
)
def test_a_key_that_is_no_word(text, parser):
    error = _refused(text)
    assert error.what == "a key must be a word, not a list, a mapping or an alias"
    assert error.hint == "write `key: value`"
    assert error.where.startswith("model.yaml:")


# ---------------------------------------------------------------------------------------------- aliases, merges, tags


def test_aliases_repeat_what_they_name(parser):
    text = "a: &a {b: 1}\nc: *a\nd: [*a, &e 7, *e]\nf: &f [1, 2]\ng: *f\n"
    assert _read(text) == {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, 7, 7], "f": [1, 2], "g": [1, 2]}


def test_an_anchor_may_be_written_anew():
    assert _read("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: *b", "model.yaml:1:4"),
        ("a: &a [1, *a]", "model.yaml:1:11"),
        ("a: &a {b: *a}", "model.yaml:1:11"),
        ("&a [*a]", "model.yaml:1:5"),
        ("a: *b\nc: &b 1\n", "model.yaml:1:4"),
    ],
)
def test_an_alias_before_the_end_of_its_anchor(text, where, parser):
    error = _refused(text)
    assert error.what.endswith("has no finished anchor before it")
    assert error.where == where


def test_merge_keys(parser):
    # What is written beats what is merged, wherever `<<` stands; of several merged mappings the first wins.
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n"
    text += "one: {y: 5, <<: *b}\nboth: {<<: [*b, *m]}\nfirst: {<<: *m, q: 0}\n"
    assert _read(text) == {
        "base": {"x": 1, "y": 2},
        "more": {"y": 3, "z": 4},
        "one": {"x": 1, "y": 5},
        "both": {"x": 1, "y": 2, "z": 4},
        "first": {"y": 3, "z": 4, "q": 0},
    }


def test_a_merged_mapping_stays_as_it_was():
    data = _read("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: {<<: {z: 3}}\n")
    assert data == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"z": 3}}


@pytest.mark.parametrize("merged", ["5", "x", "[1]", "", "[[]]", "[{a: 1}, 2]"])
def test_a_merge_of_what_is_no_mapping(merged, parser):
    error = _refused(f"k: 1\n<<: {merged}\n")
    assert (error.what, error.hint) == ("`<<` takes a mapping", "write `<<: *name` of a mapping")
    assert error.where.startswith("model.yaml:2:") or not merged  # an empty value stands at the end of its line


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system", "!!python/name:os.system", "!!str", "!!int", "!!binary", "!mine", "!<x:y>"],
)
@pytest.mark.parametrize("value", ["[echo]", "{a: 1}", "'1'", "1"])
def test_tags_are_refused(tag, value, parser):
    error = _refused(f"a: 1\nb: {tag} {value}\n")
    assert error.what.startswith("the YAML tag '")
    assert (error.where, error.hint) == ("model.yaml:2:4", "remove the tag")


def test_the_tag_that_says_nothing_is_read_over(parser):
    assert _read("a: ! rope\nb: ! [13]\n") == {"a": "rope", "b": [13]}


def test_a_tag_on_a_key_or_on_the_document():
    assert _refused("!!str a: 1").what.startswith("the YAML tag")
    assert _refused("!!python/object/new:os.system [x]").where == "model.yaml:1:1"


def test_a_tag_runs_nothing(tmp_path):
    target = tmp_path / "made"
    _refused(f"a: !!python/object/apply:os.mkdir ['{target}']\n")
    assert not target.exists()


# ----------------------------------------------------------------------------------------------------------- bounds


def test_ten_thousand_values_and_one_more():
    # 10,000 = the mapping, its key, its list and 9,997 items.
    assert len(_read("a: [" + "1," * 9997 + "]")["a"]) == 9997
    error = _refused("a: [" + "1," * 9998 + "]")
    assert error.what == "more than 10,000 values, aliases expanded"
    assert error.where == f"model.yaml:1:{5 + 2 * 9997}"
    assert error.hint == "use `repeat:` for equal layers"


def test_aliases_count_as_what_they_expand_to():
    # mapping 1; key and list 2 + 9 items = 11; key 1, list 1, then each alias is worth 1 + 9 = 10.
    text = "a: &a [1,2,3,4,5,6,7,8,9]\nb: [{}]\n"
    fits = (10_000 - 1 - 11 - 2) // 10
    assert len(_read(text.format(",".join(["*a"] * fits)))["b"]) == fits
    assert "more than 10,000" in _refused(text.format(",".join(["*a"] * (fits + 1)))).what
    # An alias of one value is worth one: the mapping, its key, its list, 7 and 9,996 more of it.
    assert len(_read("a: [&a 7" + ",*a" * 9996 + "]")["a"]) == 9997
    assert "more than 10,000" in _refused("a: [&a 7" + ",*a" * 9997 + "]").what


def test_an_alias_bomb(parser):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    began = time.process_time()
    assert "more than 10,000 values" in _refused("\n".join(lines)).what
    assert time.process_time() - began < 1


def test_a_bomb_of_merges():
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{b{n}: {{<<: *a{n - 1}}}, c{n}: {{<<: *a{n - 1}}}}}" for n in range(1, 40)]
    assert "more than 10,000 values" in _refused("\n".join(lines)).what


def test_sixty_levels_and_one_more(parser):
    data = _read("[" * 60 + "7" + "]" * 60)
    for _ in range(60):
        assert isinstance(data, list)
        data = data[0]
    assert data == 7
    error = _refused("[" * 61 + "]" * 61)
    assert (error.what, error.where) == ("nested deeper than 60 levels", "model.yaml:1:61")
    assert error.hint == "write it flatter"


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "{a: " * 20_000, "- " * 20_000, "[" * 20_000 + "]" * 20_000, "? " * 20_000]
)
def test_twenty_thousand_brackets(text, parser):
    began = time.process_time()
    error = _refused(text)
    assert time.process_time() - began < 5
    assert "nest" in error.what  # libyaml gives up at 1,000 levels, in its own words
    assert error.where.startswith("model.yaml:1:")


# ---------------------------------------------------------------------------------------------------- broken, places


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1, 2\nb: 3\n", "model.yaml:2:"),
        ("a: {b: 1\n", "model.yaml:2:1"),
        ("a: 1\n\tb: 2\n", "model.yaml:2:1"),
        ("a:\n  b: 1\n c: 2\n", "model.yaml:3:2"),
        ('a: "open\n', "model.yaml:2:1"),
        ("a: b: c\n", "model.yaml:1:5"),
        ("a: @x\n", "model.yaml:1:4"),
        ("a: 1\n]\n", "model.yaml:2:1"),
        ('a: "\\q"\n', "model.yaml:1:"),
        ("%YAML 9.0\n---\na: 1\n", "model.yaml:1:"),
    ],
)
def test_broken_text(text, where, parser):
    error = _refused(text)
    assert error.what.startswith("not YAML: ")
    assert error.where.startswith(where)
    assert error.hint == "check the indentation, brackets and quotes"


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\ud800", "\ufffe"])
def test_characters_that_no_text_has(character, parser):
    error = _refused(f"a: {character}\n")
    assert error.what.startswith("not YAML: ")
    assert error.hint == "check that it is a text file in YAML"


def test_marks_say_where_each_key_and_item_stands(parser):
    text = "a: 1\n\nb:\n  - c: 2\n    d: [3, 4]\n  - e\n  - {f: 5}\n'g': {h: {i: 6}}\nj: [[7]]\n"
    assert read_yaml(text, LABEL).origin.marks == {
        (): (1, 1),
        ("a",): (1, 1),
        ("b",): (3, 1),
        ("b", 0): (4, 5),
        ("b", 0, "c"): (4, 5),
        ("b", 0, "d"): (5, 5),
        ("b", 0, "d", 0): (5, 9),
        ("b", 0, "d", 1): (5, 12),
        ("b", 1): (6, 5),
        ("b", 2): (7, 5),
        ("b", 2, "f"): (7, 6),
        ("g",): (8, 1),
        ("g", "h"): (8, 7),
        ("g", "h", "i"): (8, 11),
        ("j",): (9, 1),
        ("j", 0): (9, 5),
        ("j", 0, 0): (9, 6),
    }


def test_columns_count_characters(parser):
    assert read_yaml("{größe: 1, 名: 2, z: 3}", LABEL).origin.marks[("z",)] == (1, 18)


def test_what_an_alias_brings_has_the_place_of_the_alias(parser):
    marks = read_yaml("a: &a {b: 1}\nc: *a\nd:\n  - *a\n  - x: *a\n", LABEL).origin.marks
    assert marks[("a", "b")] == (1, 8)
    assert marks[("c",)] == (2, 1)
    assert marks[("d", 0)] == (4, 5)
    assert ("c", "b") not in marks
    assert ("d", 0, "b") not in marks
