"""Every recorded row of linear attention and other recurrent families against the importers.

Parameters, keys and values, states, and all matrix products are the library's to the last unit. Convolutions and
recurrences are modelled: what the library's own code spends on them differs in the ways that `_beyond` names, and in no
other. tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.mixer import MLSTM, RGLRU, RWKV, GatedDelta, Lightning, Mixer
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "linear.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
# The library makes keys and values of all latents in every step.
AS_HANDED: dict[str, Any] = {"counting": "rectangle", "latent": "expanded"}
PASSES = {
    ("flops16", "scan16"): Workload(new_tokens=16, **AS_HANDED),
    ("flops48", "scan48"): Workload(new_tokens=48, **AS_HANDED),
    ("decode48", "scan_decode48"): Workload(new_tokens=1, past_tokens=47, **AS_HANDED),
    ("flops11_batch3", "scan11_batch3"): Workload(new_tokens=11, batch=3, **AS_HANDED),
    ("flops5_past13", "scan5_past13"): Workload(new_tokens=5, past_tokens=13, **AS_HANDED),
}


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    if "text_config" in config:
        config = {**config, "text_config": _with_defaults(config["text_config"])}
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _held(arch: Architecture, context: int, spare: int) -> int:
    """Keys and values, or latents, of every layer: of the latest tokens of a window, less `spare`, or of all."""
    total = 0
    for group in arch.groups:
        attention = group.block.attention
        if attention is None:
            continue
        if attention.kind == "latent":
            numbers = attention.kv_rank + attention.rope_dim
        else:
            kv_heads, head_dim = attention.sizes(arch.d_model)
            numbers = 2 * kv_heads * head_dim
        tokens = context if attention.window is None else min(context, attention.window - spare)
        total += numbers * tokens * group.times
    return total


def _beyond(mixer: Mixer, d_model: int, workload: Workload, *, chunk: int) -> int:
    """What the library's code spends on the convolution and the recurrence of one layer beyond what is stated.

    chunk: tokens that mLSTM's takes at once.
    """
    taps: int = getattr(mixer, "d_conv", 0)
    channels = {"rg_lru": lambda: mixer.width, "short_conv": lambda: d_model, "gated_delta": lambda: _mixed(mixer)}
    places = taps and channels[mixer.kind]() * taps * _places(workload, taps, keeps=not isinstance(mixer, RGLRU))
    return workload.batch * 2 * (places + _recurrence(mixer, workload, chunk))


def _mixed(mixer: GatedDelta) -> int:
    return 2 * (mixer.key_heads or mixer.heads) * mixer.key_dim + mixer.heads * mixer.value_dim


def _places(workload: Workload, taps: int, *, keeps: bool) -> int:
    """A convolution is handed what it keeps as well: taps + 1 numbers of each channel in a step, of which it makes two;
    taps more in a later part of a text; and taps at least of a short text. RG-LRU's sums a step up itself, and reads a
    later part of a text as if there had been none.
    """
    new, past = workload.new_tokens, workload.past_tokens
    if new == 1 and past:
        return (2 if keeps else 0) - taps
    return taps if past and keeps else max(taps - new, 0) if keeps else 0


def _recurrence(mixer: Mixer, workload: Workload, chunk: int) -> int:
    """Multiply-adds of one sequence that are no products of matrices in the library's code count for nothing there.

    Those are all of a step of the delta rule; in its chunks the solving of the triangular system, or where decays are
    of channels (Kimi) the two products of queries and keys; all of RG-LRU and RWKV-4. Lightning attention goes on token
    by token where it goes on at all. mLSTM also multiplies queries with their normaliser; whole chunks have the
    products among their tokens.
    """
    new, past = workload.new_tokens, workload.past_tokens
    if isinstance(mixer, GatedDelta):
        key, value = mixer.heads * mixer.key_dim, mixer.heads * mixer.value_dim
        if new == 1 and past:
            return -3 * key * mixer.value_dim
        padded = -(-new // mixer.chunk) * mixer.chunk
        return -padded * mixer.chunk * (key + (value if mixer.decay == "per_head" else key))
    if isinstance(mixer, Lightning):
        return -2 * mixer.heads * mixer.head_dim * new * new if past and new > 1 else 0
    if isinstance(mixer, (RGLRU, RWKV)):
        return -(1 if isinstance(mixer, RGLRU) else 2) * mixer.width * new
    if isinstance(mixer, MLSTM):
        among = new // chunk * chunk * chunk * (mixer.qk_dim + mixer.v_dim)
        return mixer.heads * (mixer.qk_dim * new + among)
    return 0


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, as the library would have them."""
    got: Row = {"params": parameters(arch).total, "buffers": parameters(arch).buffers}
    if row["config"]["model_type"] == "minimax":
        got["buffers"] = row["buffers"]  # tables of decays, which are made of the heads' numbers
    for tokens in (16, 48):
        cache = kv_cache(arch, tokens)
        # Its caches keep one token less than a window: that confirms the count, which then holds for ours.
        assert (cache.elements, cache.cross_elements) == (_held(arch, tokens, spare=0), 0)
        got |= {f"cache{tokens}": _held(arch, tokens, spare=1), f"state{tokens}": cache.state_elements}
    chunk = row["config"].get("chunk_size", 64)
    mixers = [(group.block.mixer, group.times) for group in arch.groups if group.block.mixer is not None]
    for (whole, scan), workload in PASSES.items():
        if whole in row:
            counted = flops(arch, workload)
            assert counted.forward == counted.weights + counted.attention + counted.modelled
            more = (_beyond(mixer, arch.d_model, workload, chunk=chunk) * n for mixer, n in mixers)
            got[scan] = counted.modelled + sum(more)
            got[whole] = counted.weights + counted.attention + got[scan]
    return got


def test_the_recording_is_whole():
    assert (len(MEASURED), len(BROKEN)) == (365, 48)
    counts: dict[str, int] = {}
    for row in MEASURED.values():
        counts[row["config"]["model_type"]] = counts.get(row["config"]["model_type"], 0) + 1
    assert len(counts) == 16
    assert all(count >= 7 for count in counts.values())
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


@pytest.mark.parametrize("name", [name for name in MEASURED if name.endswith("/default")])
def test_what_is_modelled_is_within_21_thousandths_of_the_whole(name):
    """At the sizes of the classes, where a state is small beside its matrices."""
    row, arch = MEASURED[name], load(MEASURED[name]["config"])
    for (whole, _), workload in PASSES.items():
        if whole in row:
            assert abs(flops(arch, workload).forward - row[whole]) < 21 * row[whole] / 1000, whole


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


def test_a_wrapper_counts_its_text_model_alone():
    for name, row in MEASURED.items():
        if "text_config" in row["config"]:
            text = {"tie_word_embeddings": False, **row["config"]["text_config"]}
            arch = load(row["config"])
            assert arch.inventory.records == load(text).inventory.records, name
            assert arch.not_counted == ("vision tower",)


def test_no_config_of_another_class_is_taken():
    for name, row in MEASURED.items():
        if name.endswith("/small"):
            with pytest.raises(CostcalcError, match="its head may differ"):
                load({**row["config"], "architectures": ["LlamaForCausalLM"]})
