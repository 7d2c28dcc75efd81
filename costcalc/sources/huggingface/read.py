"""What is read of each model type, and how exactly: written by tests/test_models_page.py from recorded truth."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

QUESTIONS = ("parameters", "flops", "decode", "cache")
"""What is told of a model; each answer is exact, modelled, refused, or none where there is nothing to ask."""


@cache
def read_types() -> dict[str, dict[str, Any]]:
    """Model type -> family, class, an answer for each of QUESTIONS, recorded configs, names of parts not counted."""
    found: dict[str, dict[str, Any]] = json.loads(
        (Path(__file__).resolve().parent / "models.json").read_text(encoding="utf-8")
    )
    return found
