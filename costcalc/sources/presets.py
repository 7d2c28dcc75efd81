"""The bundled models: one YAML file each, found from a checkout, an editable install and a wheel alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from costcalc.errors import CostcalcError

PACKAGE = Path(__file__).resolve().parent.parent
PLACES = (PACKAGE / "presets", PACKAGE.parent / "presets")
"""Where a wheel holds them, then where a checkout does."""


@cache
def presets_folder() -> Path:
    """The first place that holds the presets."""
    for place in PLACES:
        if (place / "aliases.yaml").is_file():
            return place
    raise CostcalcError("the presets that belong to costcalc are missing", hint="install costcalc again")


def preset_names() -> list[str]:
    """Names of the bundled models, sorted."""
    return sorted(path.stem for path in (presets_folder() / "models").glob("*.yaml"))


@cache
def preset_aliases() -> dict[str, str]:
    """Short names, such as `8b` for llama-3-8b."""
    lines = (presets_folder() / "aliases.yaml").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("#")[0].partition(":") for line in lines)
    return {alias.strip(): name.strip() for alias, colon, name in pairs if colon}


def preset_file(word: str) -> Path | None:
    """The file of a preset or alias, in any letter case; None if there is none of that name."""
    name = word.lower()
    if "/" in name or "\\" in name or "\0" in name:
        return None
    path = presets_folder() / "models" / f"{preset_aliases().get(name, name)}.yaml"
    return path if len(name) < 100 and path.is_file() else None
