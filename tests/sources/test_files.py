from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from costcalc.errors import CostcalcError
from costcalc.sources.files import config_inside, is_file, read_text

MIB = 2**20


def _stdin(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


def _refused(source: str) -> CostcalcError:
    with pytest.raises(CostcalcError) as caught:
        read_text(source)
    assert caught.value.hint
    return caught.value


def test_reads_utf8_as_it_stands(write):
    assert read_text(write("name: größe\r\n\td: 13\n")) == "name: größe\r\n\td: 13\n"


def test_drops_a_byte_order_mark(write):
    assert read_text(write(b"\xef\xbb\xbfd_model: 13")) == "d_model: 13"


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 690\n"
SCHEMA, EITHER = "costcalc schema describes what to write", "give a YAML file or a config.json"


@pytest.mark.parametrize(
    ("raw", "what", "hint"),
    [
        (b"", "empty", SCHEMA),
        (b" \n\t\r\n ", "empty", SCHEMA),
        (b"\xef\xbb\xbf", "empty", SCHEMA),
        (b"d_model: 13\xff\n", "not UTF-8 text (byte 11)", EITHER),
        ("d_model: 13".encode("utf-16"), "not UTF-8 text (byte 0)", EITHER),
        (b"x" * 1234 + b"\xc3(", "not UTF-8 text (byte 1,234)", EITHER),
        (b"d_model: 13\0", "a binary file, not text", EITHER),
        (b"\0" * 64, "a binary file, not text", EITHER),
        (LFS_POINTER, "a Git LFS pointer, not the file itself", "git lfs pull fetches the file"),
    ],
)
def test_what_is_no_text_is_refused(write, raw, what, hint):
    path = write(raw)
    error = _refused(path)
    assert (error.what, error.where, error.hint) == (what, path, hint)


def test_sixteen_mib_are_read_and_one_byte_more_is_not(write):
    assert len(read_text(write(b"#" * (16 * MIB), "big.yaml"))) == 16 * MIB
    path = write(b"#" * (16 * MIB + 1), "bigger.yaml")
    error = _refused(path)
    assert (error.what, error.where) == ("larger than 16 MiB", path)
    assert "not the weights" in error.hint


def test_a_missing_file(tmp_path):
    path = str(tmp_path / "absent.yaml")
    error = _refused(path)
    assert (error.what, error.where) == ("no such file", path)
    assert error.hint == "costcalc presets lists what is bundled"


def test_a_folder_is_meant_by_the_config_inside_it(tmp_path, write):
    error = _refused(str(tmp_path))
    assert (error.what, error.where) == ("a folder without a config.json", str(tmp_path))
    assert error.hint == "give a YAML file, a config.json or its folder"
    assert config_inside(str(tmp_path)) is None
    inside = write("{}", "config.json")
    assert config_inside(str(tmp_path)) == str(inside)
    assert [config_inside(word) for word in (str(inside), "no/such", "\0")] == [None, None, None]


def test_a_file_taken_for_a_directory(write):
    path = write("d_model: 13") + "/config.json"
    error = _refused(path)
    assert (error.what, error.where) == ("cannot be read: Not a directory", path)
    assert error.hint == "check the path and its permissions"


def test_a_name_too_long_for_the_system():
    error = _refused("x" * 5000 + "/model.yaml")
    assert error.what.startswith("cannot be read: ")


def test_a_null_character_is_no_path():
    error = _refused("a/\0.yaml")
    assert error.what == "cannot be read: not a path"


def test_a_device_that_is_empty():
    if Path("/dev/null").exists():
        assert _refused("/dev/null").what == "empty"


def test_is_file(tmp_path, write):
    assert is_file(write("d_model: 13"))
    for word in (str(tmp_path), str(tmp_path / "absent"), "", "x" * 5000, "a\0b", "\ud800"):
        assert not is_file(word)


def test_standard_input(monkeypatch):
    _stdin(monkeypatch, b"\xef\xbb\xbfd_model: 13\n")
    assert read_text("-") == "d_model: 13\n"


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "empty"),
        (b"\xff", "not UTF-8 text (byte 0)"),
        (b"a\0", "a binary file, not text"),
        (b"#" * (16 * MIB + 1), "larger than 16 MiB"),
    ],
    ids=["empty", "not UTF-8", "binary", "large"],
)
def test_standard_input_that_is_no_text(monkeypatch, raw, what):
    _stdin(monkeypatch, raw)
    error = _refused("-")
    assert (error.what, error.where) == (what, "standard input")


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    error = _refused("-")
    assert (error.what, error.where) == ("closed", "standard input")
    assert error.hint.endswith("costcalc COMMAND -")


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("costcalc.sources.files.LONGEST_WAIT", 0.05)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert _refused(str(tmp_path / "pipe.yaml")).what == "a pipe that nothing comes through"
