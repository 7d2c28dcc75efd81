from __future__ import annotations

import math
import time

import pytest

from costcalc.errors import CostcalcError
from costcalc.sources.json_text import read_json

LABEL = "config.json"


def _refused(text: str) -> CostcalcError:
    with pytest.raises(CostcalcError) as caught:
        read_json(text, LABEL)
    assert caught.value.hint
    assert str(caught.value).isprintable()
    return caught.value


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": {"b": [1, 2.5, true, null, "x"]}}', {"a": {"b": [1, 2.5, True, None, "x"]}}),
        ("[]", []),
        ("13", 13),
        (' \n{"a": 4096.0}\n', {"a": 4096.0}),
        ('{"a": {"k": 1}, "b": {"k": 1}}', {"a": {"k": 1}, "b": {"k": 1}}),
        ('{"a": 1e400}', {"a": math.inf}),  # refused where a size is asked for
        ('{"a": ' + "9" * 400 + "}", {"a": 10**400 - 1}),
    ],
)
def test_plain_data(text, data):
    assert read_json(text, LABEL).data == data


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('{"n": 1, "m": 2, "n": 1}', 18),
        ('{"a": [{"n": 1, "n": 2}]}', 17),
        ('{"n": 1, "\\u006e": 2}', 10),
        ('{"a": {"n": 1}, "b": "n, {", "n": [2, {"n": 3}], "n": 1, "n": {', 50),
    ],
)
def test_a_key_written_twice(text, column):
    if text.endswith("{"):
        text += "}}"
    error = _refused(text)
    assert (error.what, error.where) == ("the key 'n' is written twice", f"{LABEL}:1:{column}")
    assert error.excerpt is not None
    assert error.excerpt.column == column
    assert error.hint == "keep one of the two"


def test_what_is_no_number():
    error = _refused('{"rope_theta": NaN}')
    assert (error.what, error.where) == ("NaN is not a number", f"{LABEL}:1:16")
    assert error.excerpt == (1, '{"rope_theta": NaN}', 16, 3)
    assert error.hint == "write a number, or null"


def test_open_bounds_as_python_writes_them():
    """`time_step_limit` of Mamba-2; no size and no factor can be one, as `test_load.py` shows."""
    read = read_json('{"time_step_limit": [0.0, Infinity], "low": -Infinity}', LABEL).data
    assert read == {"time_step_limit": [0.0, math.inf], "low": -math.inf}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1', "config.json:1:8"),
        ('{\n "a": 1,\n "b": [1, 2\n', "config.json:4:1"),
        ('{"a": 1,}', "config.json:1:"),
        ("{'a': 1}", "config.json:1:2"),
        ('{"a" 1}', "config.json:1:6"),
        ('{"a": nan}', "config.json:1:7"),
        ('{"a": 1} {"b": 2}', "config.json:1:10"),
        ('{"a": 01}', "config.json:1:8"),
        ('{"a": "\n"}', "config.json:1:8"),
        ("# no comments\n{}", "config.json:1:1"),
        ("", "config.json:1:1"),
    ],
)
def test_broken_json(text, where):
    error = _refused(text)
    assert error.what.startswith("not JSON: ")
    assert error.where.startswith(where)
    assert error.hint == "check the brackets, commas and quotes"


@pytest.mark.parametrize("text", ["[" * 20_000, '{"a":' * 20_000, "[" * 200_000 + "]" * 200_000])
def test_hostile_nesting(text):
    assert _refused(text).where == LABEL


def test_a_number_that_python_will_not_read():
    error = _refused('{"a": ' + "9" * 5000 + "}")
    assert (error.what, error.where) == ("a number of thousands of digits", f"{LABEL}:1:7")
    assert error.hint == "write a number below 10^12"


def test_a_duplicate_among_many_keys_is_found_at_once():
    # 20,000 distinct keys, 0.2 MiB: looking each one up among all the others would take 8 seconds.
    keys = ", ".join(f'"k{n}": 1' for n in range(20_000))
    began = time.process_time()
    assert _refused(f'{{{keys}, "z": 1, "z": 1}}').what == "the key 'z' is written twice"
    assert time.process_time() - began < 1


def test_marks_say_where_each_key_and_item_stands():
    text = '{"a": 1,\n "b": [\n\t{"c\\"": 2, "d": [3, 4]},\r\n "e", {"f": "}]"}, []],\n"g": {"h": {"i": null}}}'
    assert read_json(text, LABEL).origin.marks == {
        (): (1, 2),
        ("a",): (1, 2),
        ("b",): (2, 2),
        ("b", 0): (3, 2),
        ("b", 0, 'c"'): (3, 3),
        ("b", 0, "d"): (3, 13),
        ("b", 0, "d", 0): (3, 19),
        ("b", 0, "d", 1): (3, 22),
        ("b", 1): (4, 2),
        ("b", 2): (4, 7),
        ("b", 2, "f"): (4, 8),
        ("b", 3): (4, 20),
        ("g",): (5, 1),
        ("g", "h"): (5, 7),
        ("g", "h", "i"): (5, 13),
    }
    assert read_json("13", LABEL).origin.marks == {}


def test_marks_of_a_large_text_are_found_at_once():
    text = "{" + ",\n".join(f'"k{n}": [{n}]' for n in range(50_000)) + "}"
    began = time.process_time()
    assert read_json(text, LABEL).origin.marks[("k49999", 0)] == (50_000, 12)
    assert time.process_time() - began < 2
