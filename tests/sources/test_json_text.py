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
    assert read_json(text, LABEL) == data


@pytest.mark.parametrize("text", ['{"n": 1, "m": 2, "n": 1}', '{"a": [{"n": 1, "n": 2}]}', '{"n": 1, "\\u006e": 2}'])
def test_a_key_written_twice(text):
    error = _refused(text)
    assert (error.what, error.where) == ("the key 'n' is written twice", LABEL)
    assert error.hint == "keep one of the two"


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_are_no_numbers(name):
    error = _refused(f'{{"rope_theta": {name}}}')
    assert (error.what, error.where) == (f"{name} is not a number", LABEL)
    assert error.hint == "write a number, or null"


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
    assert (error.what, error.where) == ("a number of thousands of digits", LABEL)
    assert error.hint == "write a number below 10^12"


def test_a_duplicate_among_many_keys_is_found_at_once():
    # 20,000 distinct keys, 0.2 MiB: looking each one up among all the others would take 8 seconds.
    keys = ", ".join(f'"k{n}": 1' for n in range(20_000))
    began = time.process_time()
    assert _refused(f'{{{keys}, "z": 1, "z": 1}}').what == "the key 'z' is written twice"
    assert time.process_time() - began < 1
