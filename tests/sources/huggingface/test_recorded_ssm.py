"""Every recorded row of state-space models and their hybrids against the importers.

Parameters, keys and values, states, and all matrix products are the library's to the last unit. Convolutions and
recurrences are modelled: what the library's own code spends on them differs in the ways that `_beyond` names, and in no
other. tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.mixer import Mamba1, Mamba2
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "ssm.json").read_text("utf-8"))
APART = ("zamba/tie_word_embeddings=false", "zamba/random-01", "zamba2/tie_word_embeddings=false")
"""With a head of its own the library does not share the blocks of these either: not read."""
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row and row["id"] not in APART}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
PASSES = {
    ("flops16", "scan16"): Workload(new_tokens=16, counting="rectangle"),
    ("flops48", "scan48"): Workload(new_tokens=48, counting="rectangle"),
    ("decode48", "scan_decode48"): Workload(new_tokens=1, past_tokens=47, counting="rectangle"),
    ("flops11_batch3", "scan11_batch3"): Workload(new_tokens=11, batch=3, counting="rectangle"),
    ("flops5_past13", "scan5_past13"): Workload(new_tokens=5, past_tokens=13, counting="rectangle"),
}


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _mixers(arch: Architecture) -> list[tuple[Mamba1 | Mamba2, int]]:
    """Each kind of mixer, and in how many layers it is."""
    found = [(group.block.mixer or group.block.mixer_beside, group.times) for group in arch.groups]
    return [(mixer, times) for mixer, times in found if mixer is not None]


def _beyond(mixer: Mamba1 | Mamba2, workload: Workload) -> int:
    """What the library's code spends on the convolution and the recurrence of one layer beyond what is stated.

    Its convolution is handed the state as well: taps + 1 numbers of each channel in a step, of which it makes two;
    taps more in a later part of a text; and taps at least of a short text. Its recurrence token by token adds what
    enters to a state without a product. Chunk by chunk it hands the states of all chunks, and the one before, to all
    that follow, as one product.
    """
    new, past, taps = workload.new_tokens, workload.past_tokens, mixer.d_conv
    is_step = new == 1 and past > 0
    if isinstance(mixer, Mamba1):
        channels, state = mixer.d_inner, mixer.d_inner * mixer.d_state
    else:
        state = mixer.heads * mixer.head_dim * mixer.d_state
        channels = mixer.heads * mixer.head_dim + 2 * mixer.groups * mixer.d_state
    places = 2 - taps if is_step else taps if past else max(taps - new, 0)
    chunks = -1 if isinstance(mixer, Mamba1) or is_step else -(-new // mixer.chunk)
    among = -new * state if chunks < 0 else (chunks + 1) ** 2 * state
    return 2 * workload.batch * (places * prod((channels, taps)) + among)


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, as the library would have them."""
    count, at16, at48 = parameters(arch), kv_cache(arch, 16), kv_cache(arch, 48)
    assert at16.cross_elements == at48.cross_elements == 0
    got = {
        **{"params": count.total, "trainable": count.trainable, "buffers": count.buffers},
        **{"cache16": at16.elements, "state16": at16.state_elements},
        **{"cache48": at48.elements, "state48": at48.state_elements},
    }
    for (whole, scan), workload in PASSES.items():
        if whole in row:
            counted = flops(arch, workload)
            assert counted.forward == counted.weights + counted.attention + counted.modelled
            got[scan] = counted.modelled + sum(_beyond(mixer, workload) * n for mixer, n in _mixers(arch))
            got[whole] = counted.weights + counted.attention + got[scan]
    return got


def test_the_recording_is_whole():
    assert (len(MEASURED), len(BROKEN)) == (335, 49)
    counts: dict[str, int] = {}
    for row in MEASURED.values():
        counts[row["config"]["model_type"]] = counts.get(row["config"]["model_type"], 0) + 1
    assert len(counts) == 10
    assert all(count >= 20 for count in counts.values())
    assert counts.keys() <= LINEAGES.keys()
    assert all(row["state16"] == row["state48"] for row in MEASURED.values())


@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name):
    row = MEASURED[name]
    wanted = {key: value for key, value in row.items() if key not in ("id", "config")}
    for form, made in FORMS.items():
        assert _measured(load(made(row["config"])), row) == wanted, form


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


@pytest.mark.parametrize("name", APART)
def test_blocks_that_are_not_shared_are_refused(refusal, name):
    (config,) = [row["config"] for row in RECORDED if row["id"] == name]
    assert "`tie_word_embeddings`: false" in refusal(config).what


@pytest.mark.parametrize("name", [name for name in MEASURED if name.endswith("/default")])
def test_what_is_modelled_is_within_two_hundredths_of_the_whole(name):
    """At the sizes of the classes, where a state is small beside its matrices."""
    row, arch = MEASURED[name], load(MEASURED[name]["config"])
    for (whole, _), workload in PASSES.items():
        if whole in row:
            assert abs(flops(arch, workload).forward - row[whole]) < row[whole] / 50, whole


def test_importers_write_the_full_form():
    """They promise that nothing is left to spell out, so spelling it out must change nothing."""
    for name, row in MEASURED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


def test_what_counts_never_exceeds_what_kernels_are_handed():
    for name, row in MEASURED.items():
        arch = load(row["config"])
        rectangle = flops(arch, Workload(new_tokens=48, counting="rectangle"))
        attended = flops(arch, Workload(new_tokens=48))
        assert attended.weights == rectangle.weights, name
        assert attended.attention < rectangle.attention or attended.attention == 0, name
        assert attended.modelled <= rectangle.modelled, name


def test_no_config_of_another_class_is_taken():
    for name, row in MEASURED.items():
        if name.endswith("/small"):
            with pytest.raises(CostcalcError, match="its head may differ"):
                load({**row["config"], "architectures": ["LlamaForCausalLM"]})
