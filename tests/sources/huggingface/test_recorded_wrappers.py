"""Every recorded row of wrappers against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.huggingface.wrappers import PUBLISHED, WRAPPERS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: dict[str, Row] = {row["id"]: row for row in json.loads((ORACLE / "wrappers.json").read_text("utf-8"))}

# Where ours says something else, on purpose.
HEADS_OF_THEIR_OWN = {"mistral3/default", "mistral3/text=ministral3"}
"""The class ties a head of which neither part says anything; the published checkpoints have it apart."""
REFUSED = {
    "ovis2/default": "`hidden_size` 1536 is not that of the text part, 4096",
}
NOT_RECORDED = {"apertus1p5", "fast_vlm", "gemma3n", "granite4_vision", "minimax_m3_vl", "perception_lm"}
NOT_RECORDED |= {"qwen2_5_omni", "qwen3_omni_moe"}
"""Their rows are elsewhere, or their other parts could not be built."""


def _with_defaults(config: Config) -> Config:
    """The config with the defaults of its text part's class merged in: what a file holds that leaves nothing out."""
    wrapper = WRAPPERS.get(config["model_type"])
    part = config if wrapper is None else {"model_type": wrapper.text, **config.get(wrapper.key, {})}
    if wrapper is not None and wrapper.key not in config:
        return config
    defaults = json.loads((DEFAULTS / f"{part['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    own = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    filled = own.get(wrapper.key) or {} if wrapper is not None and wrapper.fills else {}
    merged = {**defaults, **filled, **{aliases.get(key, key): value for key, value in part.items()}}
    if "tie_word_embeddings" not in part:
        merged.pop("tie_word_embeddings", None)  # who says it is what these rows are about
    return merged if wrapper is None else {**config, wrapper.key: merged}


FORMS: dict[str, Callable[[Config], Config]] = {"as recorded": dict, "defaults merged in": _with_defaults}


def _measured(arch: Architecture) -> dict[str, Callable[[], int]]:
    """The numbers of a row, as the library would have them, for whoever asks."""

    def rectangle(new_tokens: int, past_tokens: int = 0, memory_tokens: int = 0) -> int:
        asked = {"new_tokens": new_tokens, "past_tokens": past_tokens, "memory_tokens": memory_tokens}
        return flops(arch, Workload(counting="rectangle", **asked)).forward  # type: ignore[arg-type]

    def library(context: int) -> int:
        # Its caches keep one token less than a window.
        total = 0
        for group in arch.groups:
            attention = group.block.attention
            if attention is not None:
                kv_heads, head_dim = attention.sizes(arch.d_model)
                tokens = context if attention.window is None else min(context, attention.window - 1)
                total += 2 * kv_heads * head_dim * tokens * group.times
        return total

    asks = any(group.block.cross_attention is not None for group in arch.groups)
    return {
        "flops16": lambda: rectangle(16),
        "flops48": lambda: rectangle(48),
        "decode48": lambda: rectangle(1, 47),
        "cache16": lambda: library(16),
        "cache48": lambda: library(48),
        "crossing16": lambda: rectangle(16, memory_tokens=13 if asks else 0),
        "crossing_decode17": lambda: rectangle(1, 16, 13 if asks else 0),
        "cross_cache": lambda: kv_cache(arch, 16, memory_tokens=13 if asks else 0).cross_elements,
        "params": lambda: parameters(arch).total,
    }


def test_the_recording_is_whole() -> None:
    recorded = {name.partition("/")[0] for name in RECORDED}
    assert recorded >= WRAPPERS.keys() - NOT_RECORDED - PUBLISHED.keys()
    assert sum("flops16" in row for row in RECORDED.values()) >= 150


@pytest.mark.parametrize("name", sorted(RECORDED.keys() - REFUSED.keys()))
def test_a_row(name: str) -> None:
    row = RECORDED[name]
    for form, made in FORMS.items():
        arch = load(made(row["config"]))
        asked = {key: value for key, value in row.items() if key not in ("id", "config")}
        got = {key: measure() for key, measure in _measured(arch).items() if key in asked}
        if name in HEADS_OF_THEIR_OWN:
            asked["params"] += arch.vocab_size * arch.d_model
        assert got == asked, form


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, refusal: Any) -> None:
    assert REFUSED[name] in refusal(RECORDED[name]["config"]).what


def test_importers_write_the_full_form() -> None:
    """They promise that nothing is left to spell out, so spelling it out must change nothing."""
    for name in sorted(RECORDED.keys() - REFUSED.keys()):
        written = read_config(RECORDED[name]["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


@pytest.mark.parametrize("model_type", ["git", "moshi", "phi4_multimodal", "mllama", "llava", "voxtral_realtime"])
def test_what_is_stated_is_what_a_pass_does(model_type: str) -> None:
    checked = verify(load(RECORDED[f"{model_type}/small"]["config"]))
    assert checked.agrees, (checked.faults, checked.properties)
