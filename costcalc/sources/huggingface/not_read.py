"""Text models of `transformers` that are not read, each with the reason: nothing is guessed."""

from __future__ import annotations

NOT_READ: dict[str, str] = {}
"""model_type -> what of it is not described here."""
