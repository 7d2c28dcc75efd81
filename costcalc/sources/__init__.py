"""Where an architecture comes from: presets, YAML, config.json, mappings."""

from costcalc.sources.load import load

__all__ = ["load"]
