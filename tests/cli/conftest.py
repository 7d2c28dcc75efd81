"""One command line at a time, in this process, with what it wrote and how it ended."""

import json
import re
import sys
from collections import Counter

import pytest
from rich.cells import cell_len

from costcalc.cli.main import run

# V=19, D=13, N=6, K=2, H=5, F=37, L=3 and 11 rows of learned positions. q and output have D·N·H = 390 each, k and v
# D·K·H = 130 each: 1,040; gate, up and down D·F = 481 each: 1,443. A layer: 1,040 + 1,443 + two norms of 13 = 2,509.
#   total = 3·2,509 + final norm 13 + embedding 247 + positions 143 + head 247 = 8,177
TINY = """\
name: tiny
vocab_size: 19
d_model: 13
context_length: 11
norm: rmsnorm
positions: {kind: learned, length: 11}
layers:
  - repeat: 3
    attention: {heads: 6, kv_heads: 2, head_dim: 5}
    feed_forward: {kind: gated, d_ff: 37}
"""

# Two layers that see 5 tokens, one that sees all, then two more of the first kind. The feed-forward has no gate here:
#   a layer is 1,040 + 2·481 + 26 = 2,028, total = 5·2,028 + 13 + 2·247 = 10,647
WINDOWED = """\
name: windowed
vocab_size: 19
d_model: 13
norm: rmsnorm
layers:
  - &local
    name: local
    repeat: 2
    attention: {heads: 6, kv_heads: 2, head_dim: 5, window: 5}
    feed_forward: {d_ff: 37}
  - {name: global, attention: {heads: 6, kv_heads: 2, head_dim: 5}, feed_forward: {d_ff: 37}}
  - *local
"""

# An encoder alone, of two layers: V·D = 247, 11·13 = 143 positions, 3·13 = 39 token types, a norm of 13; a layer is
# 1,040 + 2·481 + 26 = 2,028, twice 4,056, final norm 13; the head's dense layer 169 + 13, its norm 13, its bias 19.
#   total = 247 + 143 + 39 + 13 + 4,056 + 13 + 182 + 13 + 19 = 4,725
ENCODER = """\
name: reader
vocab_size: 19
d_model: 13
context_length: 11
norm: rmsnorm
positions: {kind: learned, length: 11}
embedding: {token_types: 3, norm: rmsnorm}
tie_embeddings: true
head: {transform: true, bias: true}
encoder:
  layers:
    - repeat: 2
      attention: {heads: 6, kv_heads: 2, head_dim: 5}
      feed_forward: {d_ff: 37}
"""

# An encoder of two layers as above, without positions: 4,056 + 13; and a decoder of three, with cross-attention of 10
# heads on 5 of 7: 2·13·(10 + 5)·7 = 2,730. A layer is 1,040 + 2,730 + 2·13·41 + 39 = 4,875, three 14,625, and 13.
#   total = 247 + 4,069 + 14,638 = 18,954
PAIR = """\
name: pair
vocab_size: 19
d_model: 13
norm: rmsnorm
tie_embeddings: true
share_embeddings: true
encoder:
  layers:
    - {repeat: 2, attention: {heads: 6, kv_heads: 2, head_dim: 5}, feed_forward: {d_ff: 37}}
decoder:
  layers:
    - repeat: 3
      attention: {heads: 6, kv_heads: 2, head_dim: 5}
      cross_attention: {heads: 10, kv_heads: 5, head_dim: 7}
      feed_forward: {d_ff: 41}
"""


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "_COSTCALC_COMPLETE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(capsys):
    """cli("params", "8b") -> (exit code, standard output, standard error)."""

    def call(*words):
        code = run([str(word) for word in words])
        return (code, *capsys.readouterr())

    return call


@pytest.fixture
def fine(cli):
    """The standard output of a command line that must succeed and complain of nothing."""

    def call(*words):
        code, out, err = cli(*words)
        assert (code, err) == (0, "")
        return out

    return call


@pytest.fixture
def refused(cli):
    """What a command line that must be refused says: (what is wrong, what to type); between, a line with a caret."""

    def call(*words):
        code, out, err = cli(*words)
        assert (code, out) == (2, "")
        what, *excerpt, hint = err.splitlines()
        assert not excerpt or re.fullmatch(r" *\d+ \|.*\n +\| *\^+", "\n".join(excerpt))
        assert what.startswith("error: ")
        assert hint.startswith(" hint: ")
        assert len(hint) > len(" hint: ")
        return what.removeprefix("error: "), hint.removeprefix(" hint: ")

    return call


@pytest.fixture
def terminal(monkeypatch):
    """terminal(80): from here on standard output is a terminal of that many columns."""

    def become(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    return become


@pytest.fixture
def narrow(cli, terminal, monkeypatch):
    """narrow(40, "kv", "8b"): what so many columns show; no line is wider, and nothing of the whole text is cut."""

    def call(columns, *words):
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
        code, whole, _ = cli(*words)
        terminal(columns)
        narrow_code, text, err = cli(*words)
        assert (narrow_code, err) == (code, "")
        assert max(map(cell_len, text.splitlines())) <= columns
        assert "…" not in text
        missing = Counter("".join(whole.split())) - Counter("".join(text.split()))
        assert not missing, f"{columns} columns lack {missing}"
        return text

    return call


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture
def windowed(tmp_path):
    path = tmp_path / "windowed.yaml"
    path.write_text(WINDOWED, encoding="utf-8")
    return path


@pytest.fixture
def encoder(tmp_path):
    path = tmp_path / "reader.yaml"
    path.write_text(ENCODER, encoding="utf-8")
    return path


@pytest.fixture
def pair(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR, encoding="utf-8")
    return path


def _looked_up(data, path):
    """'formats/bf16/weight_bytes': keys, and entries of a list by their name, format or context."""
    for word in path.split("/"):
        if isinstance(data, list):
            (data,) = [entry for entry in data if word in map(str, (entry.get(key) for key in NAMED_BY))]
        else:
            data = data[word]
    return data


NAMED_BY = ("name", "format", "context", "path")


@pytest.fixture
def looked_up():
    """looked_up(data, "formats/bf16/weight_bytes")."""
    return _looked_up


@pytest.fixture
def asked(cli, tmp_path):
    """asked(case, "--json") -> what the command line writes, on the case's own config.json."""

    def call(case, *more):
        (tmp_path / "config.json").write_text(json.dumps(case.config))
        words = [tmp_path / "config.json" if word == "M" else word for word in case.line.split()]
        code, out, err = cli(*words, *more)
        assert (code, err) == (case.code, "")
        return out

    return call
