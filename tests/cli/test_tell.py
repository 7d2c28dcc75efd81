"""Lines on standard error, and what the exit code is where they cannot be written."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from costcalc.cli.tell import tell

ROOT = Path(__file__).resolve().parents[2]


def test_a_line_in_the_characters_of_its_stream(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stderr", stream)
    tell("模型 é")
    assert stream.buffer.getvalue() == "?? é\n".encode("latin-1")


def test_no_stream_is_no_trouble(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    tell("nobody")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize("words", ["params nosuch", "params --nosuch", "nosuch"])
def test_wrong_input_is_exit_code_2_wherever_errors_go(redirection, words):
    """1 would be an answer."""
    line = f"{sys.executable} -m costcalc {words} {redirection}"
    assert subprocess.run(line, shell=True, capture_output=True, cwd=ROOT, check=False).returncode == 2
