"""The root command: help, versions, what it does not know, and the exit codes."""

import errno
import io
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import costcalc
from costcalc.cli import main
from costcalc.cli.main import COMMANDS, MODULES, run

EVERYTHING = tuple(COMMANDS)
CLI = Path(main.__file__).parent


def python(*arguments, **options):
    """A process of its own, for what cannot be tried inside this one."""
    return subprocess.run([sys.executable, *arguments], stderr=subprocess.PIPE, text=True, check=False, **options)


def test_each_module_with_a_run_is_a_command():
    modules = {
        file.stem for file in CLI.glob("*.py") if re.search(r"^def run\(", file.read_text("utf-8"), re.MULTILINE)
    }
    assert {MODULES.get(command, command) for command in COMMANDS} == modules - {"main"}
    assert set(COMMANDS) >= {"show", "params", "flops", "kv", "verify", "presets", "schema"}


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]], ids=str)
def test_help_lists_every_command(fine, words):
    text = fine(*words)
    assert "Usage: costcalc [OPTIONS]" in text
    for command in EVERYTHING:
        assert f" {command} " in text
    assert "standard input" in text


def test_the_root_page_says_the_first_sentence_of_each_command(fine):
    page = " ".join(fine("--help").split())
    for command, line in COMMANDS.items():
        paragraph = " ".join(
            import_module(f"costcalc.cli.{MODULES.get(command, command)}").run.__doc__.partition("\n\n")[0].split()
        )
        assert line == re.match(r".*?\.(?= |$)", paragraph)[0]
        assert f" {command} {line} " in page


@pytest.mark.parametrize("words", [["--help"], *([command, "--help"] for command in EVERYTHING)], ids=str)
def test_help_is_plain_text_that_fits_80_columns_and_breaks_no_word(fine, words):
    text = fine(*words)
    for line in text.splitlines():
        assert len(line) <= 80
        assert line.isascii()
        assert line == line.rstrip()
    assert "--past-\n" not in text


def test_costcalc_alone_prints_the_help(fine):
    assert fine() == fine("--help")


@pytest.mark.parametrize("command", EVERYTHING)
def test_each_command_has_help(fine, command):
    text = fine(command, "-h")
    assert f"costcalc {command} [OPTIONS]" in text
    formats = () if command == "import" else ("--format", "--json")  # a YAML file has one
    for name in (*formats, "--output", "-o", "--version", "--debug", "-h"):
        assert name in text


def test_the_help_of_a_command_names_its_options_and_defaults(fine):
    text = " ".join(fine("flops", "-h").split())
    for part in ("--seq-len", "--batch", "--past-tokens", "attended|rectangle", "all|last", "default: attended"):
        assert part in text
    assert "component|layer|tensor" in fine("params", "-h")
    assert "--dtype" in fine("kv", "-h")
    assert "--context" in fine("show", "-h")


@pytest.mark.parametrize("words", [[], *([command] for command in EVERYTHING), ["params", "nosuch"]], ids=str)
def test_version(fine, words):
    assert fine(*words, "--version") == f"costcalc {costcalc.__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("parms", "costcalc params"),
        ("param", "costcalc params"),
        ("flop", "costcalc flops"),
        ("Show", "costcalc show"),
        ("preset", "costcalc presets"),
        ("xyzzy", ", ".join(EVERYTHING)),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest(refused, word, hint):
    what, told = refused(word, "8b")
    assert repr(word) in what
    assert hint in told


@pytest.mark.parametrize(
    ("line", "near", "hint"),
    [
        ("params gpt2 --formt json", "--formt", "did you mean --format?"),
        ("kv gpt2 --contxt 8k", "--contxt", "did you mean --context?"),
        ("flops gpt2 --seqlen 8k", "--seqlen", "did you mean --seq-len?"),
        ("params gpt2 --xyzzy", "--xyzzy", "costcalc params --help"),
        ("--xyzzy", "--xyzzy", "costcalc --help"),
        (
            "params gpt2 --context 8k",
            "--context",
            "costcalc params --help",
        ),  # an option that this command does not read
        ("presets gpt2", "gpt2", "costcalc presets --help"),
        ("params", "MODEL", "costcalc params --help"),
        ("kv", "MODEL", "costcalc kv --help"),
        ("flops gpt2 --seq-len", "--seq-len", "costcalc flops --help"),
    ],
)
def test_an_unknown_or_missing_word_is_refused(refused, line, near, hint):
    what, told = refused(*line.split())
    assert near in what
    assert hint in told


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("lama-3-8b", "llama-3-8b"),
        ("llama_3_8b", "llama-3-8b"),
        ("gpt-2", "gpt2"),
        ("xyzzy", "costcalc presets"),
        ("", "costcalc presets"),
        ("./nothing.yaml", "costcalc presets"),
        ("gemma-2-9", "gemma-2-9b"),
        ("qwen2.5-7", "qwen2.5-7b"),  # a dot makes it a path
    ],
)
def test_an_unknown_model_is_refused_with_the_nearest(refused, word, hint):
    what, told = refused("params", "gpt2", word)
    assert word in what
    assert hint in told


@pytest.mark.parametrize("word", ["n" * 10_000, "./" + "n" * 10_000, "a\nb", "\x1b[31mred", "./\r.yaml"])
def test_a_model_that_is_no_word_makes_two_short_lines(refused, word):
    """What was typed comes back in a form that a terminal can show."""
    for line in refused("params", word):
        assert len(line) <= 500
        assert line.isprintable()


def test_one_bad_model_leaves_no_partial_answer(refused):
    refused("kv", "8b", "7b", "nosuch")


@pytest.mark.parametrize(
    ("command", "module", "name"),
    [
        ("show", "costcalc.cli.show", "flops"),
        ("params", "costcalc.cli.params", "parameters"),
        ("flops", "costcalc.cli.flops", "flops"),
        ("kv", "costcalc.cli.kv", "kv_cache"),
    ],
)
def test_our_own_bug_is_one_line_and_exit_code_3(cli, monkeypatch, command, module, name):
    def broken(*arguments, **options):
        raise RuntimeError("the sum\ncame out wrong")

    monkeypatch.setattr(f"{module}.{name}", broken)
    code, out, err = cli(command, "gpt2")
    assert (code, out) == (3, "")
    assert len(err.splitlines()) == 1
    for part in ("costcalc", "internal error", "RuntimeError", "the sum came out wrong", "--debug"):
        assert part in err
    with pytest.raises(RuntimeError, match="came out wrong"):
        run([command, "gpt2", "--debug"])
    with pytest.raises(RuntimeError, match="came out wrong"):
        run(["--debug", command, "gpt2"])


def test_a_bug_that_says_a_great_deal_is_cut_to_a_line(cli, monkeypatch):
    def broken(*arguments):
        raise ValueError("x" * 10_000)

    monkeypatch.setattr("costcalc.cli.params.parameters", broken)
    code, out, err = cli("params", "gpt2")
    assert (code, out) == (3, "")
    assert len(err) < 300


def test_debug_changes_nothing_where_all_is_well(fine, refused):
    assert fine("params", "gpt2", "--debug") == fine("params", "gpt2")
    assert refused("params", "nosuch", "--debug") == refused("params", "nosuch")


def test_an_interrupt_is_quiet(cli, monkeypatch):
    """130 = 128 + SIGINT, as shells have it."""

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("costcalc.cli.params.parameters", interrupted)
    code, out, err = cli("params", "gpt2")
    assert (code, out, err) == (130, "", "\ncostcalc: stopped\n")


def test_a_real_interrupt_is_quiet(tmp_path):
    program = (
        "import signal, sys; from costcalc.cli import main, params;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # a shell's background job ignores it
        "params.parameters = lambda inventory: signal.raise_signal(signal.SIGINT);"
        "sys.exit(main.run(['params', 'gpt2', '-o', sys.argv[1]]))"
    )
    ended = python("-c", program, str(tmp_path / "report.json"))
    assert (ended.returncode, ended.stderr) == (130, "\ncostcalc: stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_gone_is_no_error():
    """As in `costcalc kv 8b | head -1`: 1 would mean that the answer is no. A short text still waits to be written."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = python("-m", "costcalc", "kv", "gpt2", stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("line", ["--help", "", "kv --help", "--version", "presets", "kv gpt2 --json", "schema"])
def test_a_full_disk_is_two_lines_whatever_was_to_be_written(line):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        ended = python("-m", "costcalc", *line.split(), stdout=full)
    assert ended.returncode == 2
    assert "error: standard output: cannot be written: No space left on device\n hint: make room" in ended.stderr
    assert len(ended.stderr.splitlines()) == 2


def test_another_os_error_is_our_bug(cli, monkeypatch):
    def broken(*arguments):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("costcalc.cli.params.parameters", broken)
    assert cli("params", "gpt2")[0] == 3


@pytest.mark.parametrize("line", ["presets --json", "params 8b --by layer", "schema", "--help", "kv --help"])
def test_a_reader_that_has_gone_is_no_error_of_any_command(line):
    reading, writing = os.pipe()
    os.close(reading)
    ended = python("-m", "costcalc", *line.split(), stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_file_name_of_bytes_that_are_no_text(tiny):
    """A name that is no UTF-8 reaches Python as a surrogate, which no stream can encode."""
    path = os.fsencode(tiny.parent) + b"/\xff.yaml"
    try:
        Path(os.fsdecode(path)).write_text(tiny.read_text("utf-8").replace("  - rep", "  - rpe"), "utf-8")
    except OSError:
        pytest.skip("no such names here")
    ended = python("-m", "costcalc", "params", path, stdout=subprocess.PIPE)
    assert ended.returncode == 2
    assert "?.yaml:8:5: unknown key `rpeeat`" in ended.stderr.splitlines()[0]


def test_an_error_that_standard_error_cannot_show_is_still_two_lines(cli, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True))
    assert cli("params", "模型")[:2] == (2, "")
    assert len(sys.stderr.buffer.getvalue().splitlines()) == 2


def test_an_error_of_a_file_shows_its_line_with_a_caret(cli, tiny):
    tiny.write_text(tiny.read_text(encoding="utf-8").replace("heads: 6", "\n      模型_kv_heads: 6"), encoding="utf-8")
    assert cli("params", tiny) == (
        2,
        "",
        f"error: {tiny}:10:7: unknown key `模型_kv_heads` in decoder.layers[0].attention (and 1 more)\n"
        "  10 |       模型_kv_heads: 6, kv_heads: 2, head_dim: 5}\n"
        "     |       ^^^^^^^^^^^^^\n"
        " hint: did you mean `kv_heads`?\n",
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_carets_count_the_columns_of_what_standard_error_shows(cli, tiny, monkeypatch, encoding):
    """Two columns for 模, but one for the question mark in its place."""
    tiny.write_text("模型: {文: 1}", encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True))
    assert cli("params", tiny)[0] == 2
    lines = sys.stderr.buffer.getvalue().decode(encoding).splitlines()
    assert lines[1:3] == ["   1 | ??: {?: 1}", "     | ^^"]


def test_an_error_of_standard_input_shows_its_line():
    ended = python("-m", "costcalc", "params", "-", input="vocab_siz: 19\r\n", stdout=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[1:3] == ["   1 | vocab_siz: 19", "     | ^^^^^^^^^"]


def test_light_commands_load_nothing_heavy():
    """JSON needs no rich; help and --version not even pydantic; NumPy waits for something that needs it."""
    program = (
        "import sys; from costcalc.cli.main import run;"
        "heavy = lambda: print('loaded', *sorted({'numpy', 'pydantic', 'rich', 'yaml'} & {*sys.modules}));"
        "run(['--version']); run(['--help']); run([]); heavy();"
        "run(['kv', '--help']); heavy(); run(['kv', 'gpt2', '--format', 'csv']); heavy()"
    )
    ended = python("-c", program, stdout=subprocess.PIPE)
    loaded = [line for line in ended.stdout.splitlines() if line.startswith("loaded")]
    assert loaded == ["loaded", "loaded pydantic", "loaded pydantic yaml"]
