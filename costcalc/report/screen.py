"""What the text is written to: how wide, in colour or not, and which characters it can show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Screen:
    """width: None for no limit (a pipe or a file). colour: ANSI codes may be written. unicode: blocks can be shown."""

    width: int | None = None
    colour: bool = False
    unicode: bool = True
