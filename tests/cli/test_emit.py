"""Where a report goes: standard output, as it can be shown there, or a file, whole or not at all."""

import errno
import io
import json
import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PARAMS_GPT2 = "gpt2: 124,439,808 parameters (124.44 M)"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def without_codes(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("report.json", '{\n  "schema": "costcalc.params/1"'),
        ("report.JSON", '{\n  "schema": "costcalc.params/1"'),
        ("report.csv", "section,quantity,unit,gpt2,share,status\n"),
        ("report.md", f"**{PARAMS_GPT2}**"),
        ("report.txt", f"{PARAMS_GPT2}\n"),
        ("report", f"{PARAMS_GPT2}\n"),
    ],
)
def test_the_suffix_of_the_file_picks_the_format(fine, tmp_path, name, begins):
    assert fine("params", "gpt2", "--output", tmp_path / name) == ""
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert files(tmp_path) == [name]


def test_text_is_a_table_for_schema_too(fine, tmp_path):
    fine("schema", "--output", tmp_path / "keys.txt")
    assert (tmp_path / "keys.txt").read_text(encoding="utf-8").startswith("keys of a YAML file\n")
    fine("schema", "--output", tmp_path / "keys")
    json.loads((tmp_path / "keys").read_text(encoding="utf-8"))


@pytest.mark.parametrize("options", [["--json"], ["--format", "json"]], ids=str)
def test_an_option_beats_the_suffix(fine, tmp_path, options):
    fine("params", "gpt2", *options, "-o", tmp_path / "report.csv")
    assert json.loads((tmp_path / "report.csv").read_text(encoding="utf-8"))["model"] == "gpt2"


@pytest.mark.parametrize("command", ["kv gpt2", "presets", "schema"])
def test_a_file_holds_what_a_pipe_would(fine, tmp_path, command):
    fine(*command.split(), "--output", tmp_path / "report")
    assert (tmp_path / "report").read_text(encoding="utf-8") == fine(*command.split())


def test_a_file_is_never_coloured_nor_fitted(fine, tmp_path, terminal, monkeypatch):
    piped = fine("kv", "7b", "8b", "gpt2")
    terminal(80)
    monkeypatch.setenv("FORCE_COLOR", "1")
    fine("kv", "7b", "8b", "gpt2", "-o", tmp_path / "page.txt")
    assert (tmp_path / "page.txt").read_text(encoding="utf-8") == piped


def test_a_dash_is_standard_output(fine):
    assert fine("params", "gpt2", "--output", "-") == fine("params", "gpt2")


def test_a_file_is_utf_8_whatever_the_terminal_is(fine, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    fine("params", "gpt2", "-o", tmp_path / "report.txt")
    assert "█" in (tmp_path / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("output", ["missing/report.json", "report.json/below", "folder", "folder/", "\0", "n" * 300])
def test_a_file_that_cannot_be_written_is_refused(refused, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "report.json").write_text("kept")
    what, hint = refused("params", "gpt2", "--output", output)
    assert "cannot be written" in what
    assert "folder" in hint
    assert (tmp_path / "report.json").read_text() == "kept"
    assert files(tmp_path) == ["folder", "report.json"]
    assert files(tmp_path / "folder") == []


@pytest.mark.parametrize(("output", "reason"), [("missing/report", "No such file"), ("\0", "not a path")])
def test_the_reason_is_said(refused, tmp_path, monkeypatch, output, reason):
    monkeypatch.chdir(tmp_path)
    assert f"cannot be written: {reason}" in refused("params", "gpt2", "--output", output)[0]


def test_a_full_disk_leaves_the_file_as_it_was(refused, tmp_path):
    """As far as a process can tell: files of more than 100 bytes are refused, and `params gpt2` has 600."""
    resource = pytest.importorskip("resource")
    report = tmp_path / "report.txt"
    report.write_text("what was there")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        what, _ = refused("params", "gpt2", "--output", report)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be written" in what
    assert report.read_text() == "what was there"
    assert files(tmp_path) == ["report.txt"]


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(errno.ENOSPC, "No space left on device"), 2)], ids=repr
)
@pytest.mark.parametrize("step", ["chmod", "replace"])
def test_what_stops_the_writing_leaves_no_half_file(cli, tmp_path, monkeypatch, step, error, code):
    def stopped(*arguments):
        raise error

    monkeypatch.setattr(Path, step, stopped)
    ended, out, err = cli("params", "gpt2", "--output", tmp_path / "report.json")
    assert (ended, out) == (code, "")
    assert "stopped" in err or "No space left on device" in err
    assert files(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(refused, tmp_path):
    tmp_path.chmod(0o500)
    what, _ = refused("params", "gpt2", "--output", tmp_path / "report.json")
    tmp_path.chmod(0o700)
    assert "Permission denied" in what


@pytest.mark.parametrize(
    "line", ["params nosuch", "params gpt2 --by qqq", "kv gpt2 --context 0", "params gpt2 --format qq"]
)
def test_a_command_that_fails_leaves_the_file_as_it_was(refused, tmp_path, line):
    report = tmp_path / "report.json"
    report.write_text("what was there")
    refused(*line.split(), "--output", report)
    assert report.read_text() == "what was there"
    assert files(tmp_path) == ["report.json"]


def test_a_bug_leaves_the_file_as_it_was(cli, tmp_path, monkeypatch):
    def broken(*arguments):
        raise RuntimeError

    report = tmp_path / "report.json"
    report.write_text("what was there")
    monkeypatch.setattr("costcalc.cli.params.parameters", broken)
    assert cli("params", "gpt2", "--output", report)[0] == 3
    assert report.read_text() == "what was there"


def test_an_existing_file_is_replaced_with_its_permissions(fine, tmp_path):
    report = tmp_path / "report.json"
    report.write_text("x" * 100_000)
    report.chmod(0o640)
    fine("params", "gpt2", "--output", report)
    assert json.loads(report.read_text())["model"] == "gpt2"
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    assert files(tmp_path) == ["report.json"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_gets_the_permissions_that_a_new_file_gets(fine, tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        fine("params", "gpt2", "--output", tmp_path / "report.json")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == mode


def test_a_link_is_followed(fine, tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    fine("params", "gpt2", "--output", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["model"] == "gpt2"


def test_a_file_is_never_half_written(fine, tmp_path):
    """The old file is not written into but replaced: under a second name it is still whole."""
    report, second_name = tmp_path / "report.json", tmp_path / "second name"
    report.write_text("what was there")
    second_name.hardlink_to(report)
    fine("params", "gpt2", "--output", report)
    assert second_name.read_text() == "what was there"
    assert json.loads(report.read_text())["model"] == "gpt2"


def test_a_pipe_is_written_to_and_stays_one(fine, tmp_path):
    """So does a device; but a test that could replace one, run as root, might take it from the whole machine."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert fine("params", "gpt2", "--output", pipe) == ""
    text = os.read(reading, 1_000_000)
    os.close(reading)
    assert json.loads(text)["model"] == "gpt2"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert files(tmp_path) == ["pipe.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="see above")
def test_the_null_device_takes_everything(fine):
    assert fine("params", "gpt2", "--output", os.devnull) == ""


def test_a_file_of_a_relative_name_goes_to_the_current_folder(fine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fine("params", "gpt2", "-o", "report.json")
    assert files(tmp_path) == ["report.json"]


def test_a_pipe_is_not_coloured(fine):
    assert "\x1b" not in fine("params", "gpt2")


@pytest.mark.parametrize(
    ("variables", "is_terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # no-color.org: only if it is not empty
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm"}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
    ids=str,
)
def test_colour(fine, terminal, monkeypatch, variables, is_terminal, coloured):
    plain = fine("kv", "gpt2")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if is_terminal:
        terminal(120)
    text = fine("kv", "gpt2")
    assert ("\x1b[" in text) == coloured
    assert [line.rstrip() for line in without_codes(text).splitlines()] == plain.splitlines()


def test_forced_colour_through_a_pipe_has_no_width(fine, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    assert "\n" not in without_codes(fine("params", "7b", "8b", "gpt2")).partition("\n\n")[0]


@pytest.mark.parametrize(("columns", "width"), [("57", 57), ("40", 40), ("39", 40), ("-3", 80), ("wide", 80)])
def test_the_width_is_that_of_the_terminal(fine, terminal, columns, width):
    """The longest line is a title that needs more than one: it is folded at the width, 40 at least, 80 if unknown."""
    terminal(columns)
    title = without_codes(fine("kv", "7b", "8b", "gpt2", "gpt2-xl")).partition("\n\n")[0].splitlines()
    assert len(title) > 1
    assert max(map(len, title)) <= width
    # A word of the next line would have fitted on no line: the longest word has 15 characters.
    assert min(map(len, title[:-1])) > width - 16


@pytest.mark.parametrize(("columns", "width"), [(57, 57), (0, 80)])
def test_without_columns_the_terminal_itself_is_asked(cli, monkeypatch, columns, width):
    """One end of a pseudo-terminal, on which somebody has set the width; 0 is what one says that does not know."""
    termios = pytest.importorskip("termios")
    fcntl = pytest.importorskip("fcntl")
    reading, writing = os.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setenv("NO_COLOR", "1")
    with os.fdopen(writing, "w", encoding="utf-8") as end:
        monkeypatch.setattr(sys, "stdout", end)
        assert cli("kv", "7b", "8b", "gpt2", "gpt2-xl") == (0, "", "")
        monkeypatch.undo()
    title = os.read(reading, 1_000_000).decode().partition("\r\n\r\n")[0].splitlines()
    os.close(reading)
    assert width - 16 < max(map(len, title)) <= width


@pytest.mark.parametrize(
    ("encoding", "bar", "not_bar"),
    [("utf-8", "█", "#"), ("ascii", "#", "█"), ("latin-1", "#", "█"), ("cp437", "█", "#")],
)
def test_bars_are_drawn_with_what_the_terminal_has(monkeypatch, cli, encoding, bar, not_bar):
    """cp437 has the full block but not the eighths."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert cli("params", "gpt2") == (0, "", "")
    text = sys.stdout.buffer.getvalue().decode(encoding)
    if encoding == "cp437":
        bar, not_bar = not_bar, bar
    assert bar in text
    assert not_bar not in text
    assert "124,439,808" in text


@pytest.mark.parametrize("command", ["show", "params", "flops", "kv"])
def test_an_ascii_terminal_shows_no_question_marks(monkeypatch, cli, command):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cli(command, "gpt2") == (0, "", "")
    assert b"?" not in sys.stdout.buffer.getvalue()


def test_a_name_that_the_terminal_cannot_show_does_not_stop_the_answer(monkeypatch, cli, tiny):
    tiny.write_text(tiny.read_text(encoding="utf-8").replace("name: tiny", "name: 模型"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert cli("params", tiny) == (0, "", "")
    assert b"??: 8,177 parameters" in sys.stdout.buffer.getvalue()


def test_an_output_without_a_name_is_refused(refused):
    assert refused("params", "gpt2", "--output", "")[0] == "--output has no name"


def test_a_format_in_capitals_is_the_same(fine):
    assert fine("params", "gpt2", "--format", "JSON") == fine("params", "gpt2", "--json")
    assert fine("params", "gpt2", "--json", "--format", "Json") == fine("params", "gpt2", "--json")


def test_a_full_disk_and_a_closed_output_are_two_lines_and_exit_2():
    """By a shell, since they are states of file descriptor 1; /dev/full is Linux's disk without room."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    for redirection, reason in ((">/dev/full", "cannot be written: No space left"), (">&-", "closed")):
        line = f"{sys.executable} -m costcalc params gpt2 {redirection}"
        ended = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
        assert ended.returncode == 2
        assert len(ended.stderr.splitlines()) == 2
        assert f"error: standard output: {reason}" in ended.stderr
