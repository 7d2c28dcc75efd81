"""Every recorded row of encoder-decoder classes, and of decoders with ALiBi, against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import CostcalcError, Workload, flops, kv_cache, load, parameters
from costcalc.architecture import Architecture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import LINEAGES, read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.huggingface.harmless import HARMLESS
from costcalc.sources.origin import Origin

Config = dict[str, Any]
Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED = [row for name in ("pairs", "alibi") for row in json.loads((ORACLE / f"{name}.json").read_text("utf-8"))]
PUBLISHED = json.loads((ORACLE / "published_pairs.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in (*RECORDED, *PUBLISHED) if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}

BART_LIKE = ("bart", "mbart", "plbart", "mvp", "blenderbot", "blenderbot-small", "pegasus", "marian", "m2m_100")
T5_LIKE = ("t5", "mt5", "umt5")
ALIBI = ("bloom", "mpt", "falcon")

# What the library builds and we refuse on purpose: the row, and a word of the refusal.
REFUSED_ON_PURPOSE = {
    # The library ignores these, but the code that the published files name builds something else from them.
    "mpt/no_bias=false": "`no_bias`: false",
    "mpt/expansion_ratio=3": "`expansion_ratio`: 3",
    "mpt/attn_config={alibi:false}": "`alibi`: false in `attn_config`",
    "mpt/attn_config={qk_ln:true}": "`qk_ln`: true in `attn_config`",
    "mpt/attn_config={attn_type:multiquery_attention}": "`attn_type`: 'multiquery_attention' in `attn_config`",
}
# What we do not follow: the checkpoints of these have a table of the head's own, which the library ties all the same.
UNTIED = [f"{model_type}/num_layers=2,tie_word_embeddings=false" for model_type in T5_LIKE]
AGREED = {name: row for name, row in MEASURED.items() if name not in REFUSED_ON_PURPOSE}


def _measured(arch: Architecture, wanted: Row) -> Row:
    """The numbers of a row, ours."""
    pair = arch.family == "encoder-decoder"

    def rectangle(new_tokens: int, memory_tokens: int = 0, **more: int) -> int:
        counted = flops(
            arch, Workload(counting="rectangle", new_tokens=new_tokens, memory_tokens=memory_tokens, **more)
        )
        assert counted.forward == counted.weights + counted.attention
        return counted.forward

    def cache(name: str) -> tuple[int | None, int | None]:
        tokens = int(name.removeprefix("cross_cache").removeprefix("cache").removeprefix("cross"))
        kept = kv_cache(arch, tokens if "cache" in name else 48, memory_tokens=tokens if pair else 0)
        return kept.elements, kept.cross_elements

    count = parameters(arch)
    ask = {
        "params": lambda: count.total,
        "trainable": lambda: count.trainable,
        "buffers": lambda: count.buffers,
        "flops16": lambda: rectangle(16, 16 * pair),
        "flops48": lambda: rectangle(48, 48 * pair),
        "flops5_memory11_batch3": lambda: rectangle(5, 11, batch=3),
        "decode_past13_memory7": lambda: rectangle(1, 7, past_tokens=13),
        "decode48": lambda: rectangle(1, past_tokens=47),
        "flops5_past13": lambda: rectangle(5, past_tokens=13),
    }
    got = {}
    for name in wanted:
        got[name] = ask[name]() if name in ask else cache(name)[name.startswith("cross")]
    return got


def _with_defaults(config: Config) -> Config:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _kept_per_head(arch: Architecture, row: Row) -> Row:
    """Falcon's new architecture: the library expands keys and values to all query heads before it caches them."""
    if not row["config"].get("new_decoder_architecture"):
        return row
    attention = arch.groups[0].block.attention
    assert attention is not None
    heads, kv_heads = attention.heads, attention.kv_heads or attention.heads
    return {name: number * kv_heads // heads if name.startswith("cache") else number for name, number in row.items()}


def test_the_recording_is_whole():
    assert (len(PUBLISHED), len(BROKEN)) == (26, 13)
    classes: dict[str, int] = {}
    for row in MEASURED.values():
        (named,) = row["config"]["architectures"]
        classes[named] = classes.get(named, 0) + 1
    usual = [name for name in classes if name.endswith(("ForConditionalGeneration", "MTModel"))]
    assert len(usual) == len(BART_LIKE) + len(T5_LIKE)
    assert all(classes[name] >= 12 for name in usual)
    assert all(classes[name] >= 4 for name in classes if name.endswith("ForCausalLM"))
    assert all(classes[f"{stem}ForCausalLM"] >= 19 for stem in ("Bloom", "Mpt", "Falcon"))
    assert {row["config"]["model_type"] for row in RECORDED} == {*BART_LIKE, *T5_LIKE, *ALIBI}


@pytest.mark.parametrize("name", AGREED)
def test_a_row(name):
    row = AGREED[name]
    numbers = {key: value for key, value in row.items() if key not in ("id", "config")}
    for form, made in FORMS.items():
        arch = load(made(row["config"]))
        wanted = _kept_per_head(arch, {**numbers, "config": row["config"]})
        del wanted["config"]
        assert "params" in wanted
        if name in UNTIED:
            head = arch.vocab_size * arch.d_model
            wanted |= {"params": wanted["params"] + head, "trainable": wanted["trainable"] + head}
        assert _measured(arch, wanted) == wanted, form


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name):
    assert refusal(BROKEN[name]["config"]).where == "the mapping"


@pytest.mark.parametrize("name", REFUSED_ON_PURPOSE)
def test_what_is_refused_on_purpose(refusal, name):
    assert REFUSED_ON_PURPOSE[name] in refusal(MEASURED[name]["config"]).what


def test_nothing_else_is_refused():
    refused = set()
    for name, row in MEASURED.items():
        try:
            load(row["config"])
        except CostcalcError:
            refused.add(name)
    assert refused == set(REFUSED_ON_PURPOSE)


@pytest.mark.parametrize("model_type", [*BART_LIKE, *T5_LIKE, *ALIBI])
def test_a_harmless_key_changes_nothing_whatever_it_holds(model_type):
    config = MEASURED[f"{model_type}/random-00"]["config"]
    inventory = load(config).inventory
    unread = HARMLESS - {"layer_norm_epsilon", "max_seq_len", "rope_parameters", "rope_theta", "seq_length"}
    for value in ("x", 7, True, None, 0.5, [7], {"a": [7]}):
        assert load({**config, **dict.fromkeys(unread, value)}).inventory == inventory


def test_importers_write_the_full_form():
    for name, row in AGREED.items():
        written = read_config(row["config"], Origin("x"))
        assert type(written) is FullForm
        assert full_form(dict(written)) == written, name


def test_attended_counting():
    """Decoders look back only; encoders and cross-attention see all that there is, so nothing of theirs is left out."""
    for name, row in AGREED.items():
        arch = load(row["config"])
        memory = 16 * (arch.family == "encoder-decoder")
        rectangle = flops(arch, Workload(new_tokens=16, memory_tokens=memory, counting="rectangle"))
        attended = flops(arch, Workload(new_tokens=16, memory_tokens=memory))
        assert attended.weights == rectangle.weights, name
        left_out = 0
        for group in arch.groups:
            attention = group.block.attention
            if group.path.startswith("decoder") and attention is not None:
                # 4·T·T·N·H FLOPs a layer, of whose T·T pairs T(T+1)/2 are attended to.
                left_out += 4 * attention.heads * attention.sizes(arch.d_model)[1] * group.times
        assert rectangle.attention - attended.attention == left_out * (16 * 16 - 16 * 17 // 2), name


def test_each_type_has_its_module():
    for model_type in (*BART_LIKE, *T5_LIKE, *ALIBI):
        assert LINEAGES[model_type] in ("bart", "marian", "t5", "bloom", "mpt", "falcon")
