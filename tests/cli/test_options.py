"""Lengths as people type them, on every option that takes one, and what a shell completes."""

import json
import os
import re
import subprocess
import sys

import pytest

from costcalc.cli.main import run

LENGTHS = {"8k": 8_192, "1M": 1_048_576, "1_000": 1_000, "1.5k": 1_536, "1e3": 1_000, "1000000000000": 10**12}
REFUSED = ["0", "-1", "ten", "", "1.3k", "1T", "nan", "10000000000000", "9" * 400, "1e99"]
OPTIONS = [
    "kv gpt2 --context",
    "kv gpt2 --batch",
    "flops gpt2 --seq-len",
    "flops gpt2 --batch",
    "show gpt2 --context",
    "compare gpt2 8b --context",
]


@pytest.mark.parametrize(("text", "length"), LENGTHS.items())
def test_a_length(fine, text, length):
    assert json.loads(fine("kv", "8b", "--context", text, "--json"))["context"] == length


@pytest.mark.parametrize("option", OPTIONS)
def test_every_length_takes_a_suffix(fine, option):
    """2k = 2,048 new tokens, cached tokens or sequences."""
    assert re.search(r"\b2048\b", fine(*option.split(), "2k", "--json"))


def test_past_tokens_take_a_suffix_and_zero(fine):
    for text, length in (("2k", 2_048), ("0", 0)):
        data = json.loads(fine("flops", "8b", "--seq-len", "1", "--past-tokens", text, "--json"))
        assert data["workload"]["past_tokens"] == length


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_length_is_refused(refused, text):
    what, hint = refused("kv", "gpt2", "--context", text)
    assert len(what) < 200
    assert len(hint) < 200


@pytest.mark.parametrize("text", ["-1", "ten", "1e99"])
def test_past_tokens_that_are_no_length_are_refused(refused, text):
    what, hint = refused("flops", "gpt2", "--seq-len", "1", "--past-tokens", text)
    assert "--past-tokens" in what
    assert "--past-tokens" in hint


@pytest.mark.parametrize("text", ["1,5k", "1,5", "10,00"])
def test_a_comma_that_does_not_group_three_digits_is_not_guessed_at(refused, text):
    """Half of the world writes 1.5 as 1,5: `1,5k` must not become 15,360 tokens."""
    refused("kv", "gpt2", "--context", text)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("text", ["0", "-1", "ten"])
def test_the_option_is_named_as_it_was_typed(refused, option, text):
    """Whoever typed --seq-len has never heard of new_tokens."""
    what, hint = refused(*option.split(), text)
    name = re.escape(option.split()[-1])
    assert re.search(rf"{name}\b", what)
    assert re.search(rf"{name}\b", hint)


@pytest.fixture
def shell(monkeypatch, capsys):
    """What a shell is told that asks by these environment variables."""

    def ask(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        try:
            code = run([])
        except SystemExit as stop:  # typer's own way to end a completion
            code = stop.code
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return ask


@pytest.fixture
def complete(shell):
    """What bash is offered for the last word of a line."""

    def ask(line):
        last = str(len(line.split(" ")) - 1)
        return shell(_COSTCALC_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=last).split()

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("costcalc params lla", {"llama-2-7b", "llama-3-8b", "llama-3.1-405b"}),
        ("costcalc kv gpt2 8", {"8b"}),
        ("costcalc show gpt2-", {"gpt2-small", "gpt2-xl"}),
        ("costcalc pa", {"params"}),
        ("costcalc ", {"show", "params", "flops", "kv", "compare", "verify", "presets", "schema"}),
        ("costcalc params 8b --by ", {"component", "layer", "tensor"}),
        ("costcalc params 8b --format m", {"markdown"}),
        ("costcalc kv 8b --dtype q8", {"q8_0"}),
        ("costcalc flops 8b --counting ", {"attended", "rectangle"}),
        ("costcalc flops 8b --logits ", {"all", "last"}),
        ("costcalc flops 8b --seq", {"--seq-len"}),
    ],
)
def test_what_bash_is_offered(complete, line, offered):
    got = complete(line)
    assert offered <= set(got)
    assert all(word.startswith(line.split(" ")[-1]) for word in got)


def test_nothing_is_offered_for_a_command_that_does_not_exist(complete):
    assert complete("costcalc parms ll") == []


def test_completion_in_a_process_of_its_own():
    environment = {
        **os.environ,
        "_COSTCALC_COMPLETE": "complete_bash",
        "COMP_WORDS": "costcalc params lla",
        "COMP_CWORD": "2",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "costcalc"], env=environment, capture_output=True, text=True, check=True
    )
    assert "llama-3-8b" in ended.stdout.split()
    assert ended.stderr == ""


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell, name):
    assert f"_COSTCALC_COMPLETE=complete_{name}" in shell(_COSTCALC_COMPLETE=f"source_{name}")
