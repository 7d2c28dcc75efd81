"""What is suggested for a command or an option that does not exist."""

import pytest

from costcalc.cli.main import COMMANDS
from costcalc.cli.meant import COMMAND_SYNONYMS, OPTION_SYNONYMS, command_hint, option_hint


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("param", "params"), ("parameter", "params"), ("parameters", "params"), ("PARAMS", "params"),
        ("flop", "flops"), ("FLOPS", "flops"), ("kv-cache", "kv"), ("kv_cache", "kv"), ("KVCache", "kv"),
        ("cache", "kv"), ("memory", "kv"), ("diff", "compare"), ("vs", "compare"), ("info", "show"),
        ("check", "verify"),
        ("formula", "explain"), ("fit", "fits"), ("training", "train"), ("quantize", "weights"),
        ("list", "presets"), ("shema", "schema"), ("version", "--version"), ("help", "--help"),
    ],
)  # fmt: skip
def test_a_command_of_another_name_is_known(refused, word, command):
    assert refused(word, "8b") == (f"no command is called {word!r}", f"did you mean costcalc {command}?")


def test_every_synonym_leads_to_a_command_and_is_none():
    for name, synonyms in COMMAND_SYNONYMS.items():
        assert name in COMMANDS or name in ("--version", "--help")
        assert not set(synonyms.split()) & set(COMMANDS)


def test_a_synonym_of_a_command_that_is_not_there_is_not_suggested():
    assert command_hint("cache", ["show"]) == "costcalc has: show"


@pytest.mark.parametrize("word", ["8b", "GPT2", "llama-3-8b"])
def test_a_model_in_the_place_of_a_command_gets_one(refused, word):
    assert refused(word)[1] == f"costcalc show {word}"


def test_a_file_in_the_place_of_a_command_gets_one(refused, tiny, monkeypatch):
    monkeypatch.chdir(tiny.parent)
    assert refused("tiny.yaml", "--json")[1] == "costcalc show tiny.yaml"
    assert refused("other.yaml")[1].startswith("costcalc has: ")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("flops gpt2 --context 8k", "--seq-len"), ("kv gpt2 --seq-len 8k", "--context"),
        ("flops gpt2 --ctx 8k", "--seq-len"), ("kv gpt2 --ctx 8k", "--context"), ("kv gpt2 --seqlen 8k", "--context"),
        ("flops gpt2 --seqlen 8k", "--seq-len"), ("flops gpt2 --tokens 8k", "--seq-len"),
        ("kv gpt2 --precision fp8", "--dtype"), ("params gpt2 -j", "--json"), ("params gpt2 --Json", "--json"),
        ("params gpt2 --out x", "--output"), ("--verison", "--version"), ("kv gpt2 --data-type fp8", "--dtype"),
    ],
)  # fmt: skip
def test_an_option_of_another_name_is_known(refused, line, option):
    assert refused(*line.split())[1] == f"did you mean {option}?"


@pytest.mark.parametrize("line", ["params gpt2 --context 8k", "params gpt2 --xyzzy"])
def test_an_option_that_a_command_has_under_no_name_is_left_to_its_help(refused, line):
    assert refused(*line.split())[1] == "costcalc params --help"


def test_what_means_the_same_goes_before_what_is_spelled_alike():
    assert option_hint("--context", ["--counting"], ["--counting", "--seq-len"]) == "did you mean --seq-len?"
    assert option_hint("--context", ["--counting"], ["--counting"]) == "did you mean --counting?"
    assert option_hint("--context", [], ["--counting"]) is None
    assert all(name.startswith("-") for name in OPTION_SYNONYMS)
