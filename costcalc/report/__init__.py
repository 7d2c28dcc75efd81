"""Reports, and one small file for each format that they can be written in."""

from __future__ import annotations

from importlib import import_module

from costcalc.errors import CostcalcError, nearest, shown
from costcalc.report.report import (
    STATUSES,
    Cell,
    Formula,
    Measure,
    Quantity,
    Ratio,
    Report,
    Row,
    Table,
    side_by_side,
    with_shares,
)
from costcalc.report.screen import Screen

FORMATS = {"table": "table", "json": "json_text", "csv": "csv_text", "markdown": "markdown", "latex": "latex"}
"""Format -> the module here whose `render(report, screen)` writes it; each is loaded when it is asked for."""

SUFFIXES = {".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex", ".txt": "table"}


def render(report: Report, form: str, screen: Screen) -> str:
    """The report as text in one of FORMATS, ending in a newline."""
    module = import_module(f"costcalc.report.{FORMATS[form]}")
    text: str = module.render(report, screen)
    return text


def known_format(word: str) -> str:
    """The format that `word` names, in any letter case; else refused with the nearest one."""
    if word.lower() not in FORMATS:
        suffix = f".{word.lower()}"
        close = [SUFFIXES[suffix]] if suffix in SUFFIXES else nearest(word, FORMATS)
        hint = f"did you mean --format {close[0]}?" if close else f"--format takes one of: {', '.join(FORMATS)}"
        raise CostcalcError(f"unknown format {shown(word)}", hint=hint)
    return word.lower()


__all__ = [
    "FORMATS",
    "STATUSES",
    "SUFFIXES",
    "Cell",
    "Formula",
    "Measure",
    "Quantity",
    "Ratio",
    "Report",
    "Row",
    "Screen",
    "Table",
    "known_format",
    "render",
    "side_by_side",
    "with_shares",
]
