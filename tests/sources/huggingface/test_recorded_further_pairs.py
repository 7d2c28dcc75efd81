"""Every recorded row of further encoder-decoder classes and of their halves against the importers, to the last unit.

tests/oracle/README.md says how the rows were recorded and what their fields mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters, verify
from costcalc.architecture import Architecture
from costcalc.architecture.feed_forward import Mixture
from costcalc.architecture.written import FullForm, full_form
from costcalc.sources.huggingface import read_config
from costcalc.sources.huggingface.config import DEFAULTS
from costcalc.sources.origin import Origin

Row = dict[str, Any]

ORACLE = Path(__file__).resolve().parents[2] / "oracle"
RECORDED: list[Row] = json.loads((ORACLE / "further_pairs.json").read_text("utf-8"))
MEASURED = {row["id"]: row for row in RECORDED if "error" not in row}
BROKEN = {row["id"]: row for row in RECORDED if "error" in row}
TELLING: dict[str, Row] = {row["id"]: row for row in json.loads((ORACLE / "pair_tasks.json").read_text("utf-8"))}
TYPES = list(dict.fromkeys(row["config"]["model_type"] for row in RECORDED))


def _with_defaults(config: Row) -> Row:
    """The config with the class defaults merged in: what a file holds that leaves nothing out."""
    defaults = json.loads((DEFAULTS / f"{config['model_type']}.json").read_text("utf-8"))
    aliases, _ = defaults.pop("_aliases", {}), defaults.pop("_provenance")
    return {**defaults, **{aliases.get(key, key): value for key, value in config.items()}}


RENAMED = {
    "switch_transformers/num_hidden_layers=3": "its own name beside that says another depth",
    "switch_transformers/num_hidden_layers=5,num_decoder_layers=null": "the same",
}
"""Rows that say something else with the defaults merged in."""
FORMS = {"as recorded": dict, "defaults merged in": _with_defaults}


def _measured(arch: Architecture, row: Row) -> Row:
    """The numbers of a row, ours."""
    is_pair = arch.family == "encoder-decoder"
    count = parameters(arch)
    got = {"params": count.total, "buffers": count.buffers}
    for tokens in (16, 48):
        memory = tokens * is_pair
        got[f"flops{tokens}"] = _multiplied(arch, new_tokens=tokens, memory_tokens=memory)
        if arch.family != "encoder-only":
            kept = kv_cache(arch, tokens, memory_tokens=memory)
            got |= {f"cache{tokens}": kept.elements, f"cross{tokens}": kept.cross_elements}
    if is_pair:
        got["flops5_memory11_batch3"] = _multiplied(arch, new_tokens=5, memory_tokens=11, batch=3)
        got["decode_past13_memory7"] = _multiplied(arch, new_tokens=1, memory_tokens=7, past_tokens=13)
        kept = kv_cache(arch, 14, memory_tokens=7)
        got |= {"cache14": kept.elements, "cross7": kept.cross_elements}
    elif arch.family == "decoder-only":
        got["decode48"] = _multiplied(arch, new_tokens=1, past_tokens=47)
    return {key: got[key] for key in row if key not in ("id", "config")}


def _multiplied(arch: Architecture, **work: int) -> int:
    """What the library multiplies."""
    workload = Workload(counting="rectangle", **work)
    counted = flops(arch, workload)
    assert counted.forward == counted.weights + counted.attention
    return counted.forward + _projected_again(arch, workload) + _sent_to_all(arch, workload)


def _projected_again(arch: Architecture, workload: Workload) -> int:
    """Of encoders of another width the library projects the memory in every decode step; once is enough."""
    projected = arch.encoder is not None and arch.encoder.output_projection and workload.past_tokens > 0
    return 2 * workload.batch * workload.memory_tokens * arch.width_of("encoder") * arch.d_model if projected else 0


def _sent_to_all(arch: Architecture, workload: Workload) -> int:
    """NLLB-MoE of 5.24 multiplies E rows for each token in place of two (README.md): E - 2 of 2·D·F more."""
    more = 0
    for group in arch.groups:
        network, is_encoder = group.block.feed_forward, group.path.startswith("encoder")
        if isinstance(network, Mixture) and network.experts_per_token == 2:
            tokens = workload.memory_tokens * (workload.past_tokens == 0) if is_encoder else workload.new_tokens
            rows = workload.batch * tokens * (network.experts - 2) * group.times
            more += 2 * rows * 2 * arch.d_model * network.expert.d_ff
    return more


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MEASURED)
def test_a_row(name, form):
    row = MEASURED[name]
    if form != "as recorded" and name in RENAMED:
        return
    arch = load(FORMS[form](row["config"]))
    assert _measured(arch, row) == {key: value for key, value in row.items() if key not in ("id", "config")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_library_refuses_is_refused(refusal, name, form):
    refusal(FORMS[form](BROKEN[name]["config"]))


@pytest.mark.parametrize("name", MEASURED)
def test_the_importer_writes_the_full_form(name):
    written = read_config(MEASURED[name]["config"], Origin("x"))
    assert type(written) is FullForm
    assert full_form(dict(written)) == written


def test_a_capacity_is_told_and_not_counted():
    """An expert of Switch Transformers takes 64 tokens of a text; costs count all that choose it."""
    arch = load(MEASURED["switch_transformers/small"]["config"])
    (network,) = {group.block.feed_forward for group in arch.groups if isinstance(group.block.feed_forward, Mixture)}
    assert network.capacity == 64
    assert network.summary().endswith("at most 64 tokens of a text each")


def test_sound_and_images_are_named():
    named = {"whisper": "audio encoder", "speech-encoder-decoder": "speech encoder"}
    speech = {**MEASURED["whisper/small"]["config"], "architectures": ["WhisperForConditionalGeneration"]}
    assert load(speech).not_counted == (named["whisper"],)
    bare = load({**speech, "architectures": ["WhisperModel"]})
    assert (bare.head.kind, bare.not_counted) == ("none", ("audio encoder",))
    halves = {"encoder": {"model_type": "wav2vec2"}, "decoder": MEASURED["trocr/small"]["config"]}
    pair = load({"model_type": "speech-encoder-decoder", **halves})
    assert pair.not_counted == (named["speech-encoder-decoder"],)
    assert parameters(pair).total == MEASURED["trocr/small"]["params"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": {"model_type": "llama"}}, "no class of llama that could be an `encoder` is read"),
        ({"encoder": {"model_type": "gemma3"}}, "`encoder` must hold a config of a model type that is read"),
        ({"decoder": 7}, "`decoder` must hold a config of a model type that is read, got nothing"),
        ({"decoder": {"model_type": "t5"}}, "`decoder` must be of a type whose model looks back"),
        ({"is_encoder_decoder": False}, "`is_encoder_decoder`: false"),
    ],
)
def test_halves_that_are_none(refusal, changes, message):
    assert message in refusal({"model_type": "encoder-decoder", **changes}).what


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"second_expert_policy": "random"}, "`second_expert_policy`: 'random'"),
        ({"moe_eval_capacity_token_fraction": 0.5}, "`moe_eval_capacity_token_fraction`: 0.5"),
        ({"num_experts": 1}, "2 of 1 experts"),
    ],
)
def test_routers_that_drop_tokens(refusal, changes, message):
    assert message in refusal({**MEASURED["nllb-moe/small"]["config"], **changes}).what


@pytest.mark.parametrize("model_type", TYPES)
def test_it_verifies(model_type):
    result = verify(load(MEASURED[f"{model_type}/small"]["config"]))
    assert result.faults == ()
    assert result.agrees


def test_a_window_of_t5gemmas_encoder():
    """w = 3 reaches three places to either side: of 11 tokens 11 + 2·(10 + 9 + 8) = 65 pairs; a token of the
    decoder sees three, itself among them: 3·11 - 3 = 30.
    """
    small = {
        "model_type": "t5gemma",
        **{key: MEASURED["t5gemma/small"]["config"][key] for key in ("encoder", "decoder")},
    }
    both = {side: {**small[side], "sliding_window": 3, "num_hidden_layers": 1} for side in ("encoder", "decoder")}
    arch = load({**small, **both})
    scores = {m.path: m.flops(Workload(new_tokens=11, memory_tokens=11)) for m in arch.inventory.matmuls}
    assert scores["encoder.layers.attention.scores"] == 2 * 65 * 6 * 10
    assert scores["decoder.layers.attention.scores"] == 2 * 30 * 6 * 10
    assert scores["decoder.layers.cross_attention.scores"] == 2 * 121 * 6 * 10


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TELLING)
def test_a_class_that_tells_labels(name, form):
    assert parameters(load(FORMS[form](TELLING[name]["config"]))).total == TELLING[name]["params"]


@pytest.mark.parametrize("ending", ["ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification"])
def test_it_verifies_with_labels(ending):
    stem = "T5" if ending == "ForTokenClassification" else "Bart"
    result = verify(load(TELLING[f"{stem.lower()}/{stem}{ending}/plain"]["config"]))
    assert result.faults == ()
    assert result.agrees


def test_labels_of_a_text_are_told_once():
    """Behind a dense layer on one row of each of B texts: 2·B·(42·42 + 42·3); of an answer, two for each token."""
    work = Workload(batch=3, new_tokens=5, memory_tokens=7)
    bare = load({**TELLING["bart/BartForSequenceClassification/plain"]["config"], "architectures": ["BartModel"]})
    for ending, more in (("ForSequenceClassification", 3 * (42 * 42 + 42 * 3)), ("ForQuestionAnswering", 15 * 42 * 2)):
        arch = load(TELLING[f"bart/Bart{ending}/plain"]["config"])
        assert flops(arch, work).forward - flops(bare, work).forward == 2 * more
