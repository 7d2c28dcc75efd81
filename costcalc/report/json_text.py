"""The report's data as JSON: base units, whole numbers, the unit in the key."""

from __future__ import annotations

import json

from costcalc.report.report import Report
from costcalc.report.screen import Screen


def render(report: Report, screen: Screen) -> str:
    """ASCII JSON, two spaces deep."""
    del screen
    return json.dumps(report.data, indent=2, allow_nan=False) + "\n"
