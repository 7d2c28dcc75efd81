"""What the tests of sources share: files to write, and refusals to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from costcalc.errors import CostcalcError
from costcalc.sources import load

Write = Callable[..., str]
Refusal = Callable[[Any], CostcalcError]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and gives its path back."""

    def _write(content: str | bytes, name: str = "model.yaml") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return str(path)

    return _write


@pytest.fixture
def refusal() -> Refusal:
    """Loads a source that must be refused, and gives the error back once its two lines are known to be sound."""

    def _refusal(source: Any) -> CostcalcError:
        with pytest.raises(CostcalcError) as caught:
            load(source)
        error = caught.value
        assert type(error) is CostcalcError
        assert error.what, "what is wrong"
        assert error.hint, "what to type"
        assert str(error) == (f"{error.where}: {error.what}" if error.where else error.what)
        assert str(error).isprintable(), "one line"
        assert error.hint.isprintable(), "one line"
        return error

    return _refusal
