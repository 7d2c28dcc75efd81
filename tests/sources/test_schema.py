from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from costcalc.errors import CostcalcError
from costcalc.sources import load
from costcalc.sources.presets import preset_file, preset_names
from costcalc.sources.schema import schema_rows, written_schema
from costcalc.sources.yaml_text import read_yaml

SCHEMA = written_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
LAYER = {"attention": {"heads": 6, "head_dim": 5}, "feed_forward": {"kind": "gated", "d_ff": 37}}
MODEL = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [LAYER]}


def _with(**changes: object) -> dict:
    return {key: value for key, value in {**MODEL, **changes}.items() if value is not ...}


def test_it_is_a_json_schema_of_the_newest_draft():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert written_schema() == SCHEMA


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_fits(name):
    VALIDATOR.validate(read_yaml(preset_file(name).read_text(encoding="utf-8"), name).data)


BOTH_TAKE = {
    "short": MODEL,
    "decoder": _with(layers=..., decoder={"layers": [LAYER]}),
    "block": _with(layers=[{}], block=LAYER),
    "block of the stack": _with(layers=..., norm=..., decoder={"norm": "layernorm", "block": LAYER, "layers": [{}]}),
    "pattern": _with(layers=[{"repeat": 3, "pattern": [LAYER, {"pattern": [LAYER]}]}]),
    "kinds as words": _with(positions="rope", layers=[{**LAYER, "norm": "layernorm"}]),
    "kinds as mappings": _with(norm={"kind": "layernorm", "bias": False}, positions={"kind": "learned", "length": 11}),
    "qk_norm word": _with(layers=[{"attention": {**LAYER["attention"], "qk_norm": "per_head"}}]),
    "null takes away": _with(block={"feed_forward": {"d_ff": 37}}, layers=[{**LAYER, "feed_forward": None}]),
    "window null": _with(layers=[{"attention": {**LAYER["attention"], "window": None}}]),
    "parallel": _with(layers=[{**LAYER, "parallel": "one_norm"}]),
    "not parallel": _with(layers=[{**LAYER, "parallel": False, "norms": "sandwich"}]),
    "every top key": _with(name="a", source="b", context_length=11, tie_embeddings=True, final_norm=True,
                           embedding={"width": 7, "bias": True}, head={"bias": True}, published_parameters="1.5K"),
    "published whole": _with(published_parameters=7),
    "kind of a default": _with(layers=[{**LAYER, "feed_forward": {"d_ff": 37}}]),
}  # fmt: skip

BOTH_REFUSE = {
    "unknown top key": _with(d_modle=13),
    "unknown layer key": _with(layers=[{**LAYER, "atention": {}}]),
    "unknown attention key": _with(layers=[{"attention": {**LAYER["attention"], "head": 5}}]),
    "unknown stack key": _with(layers=..., decoder={"layers": [LAYER], "blocks": {}}),
    "unknown kind": _with(norm="batchnorm"),
    "unknown kind of attention": _with(layers=[{**LAYER, "attention": "latents"}]),
    "unknown kind of feed_forward": _with(layers=[{**LAYER, "feed_forward": "swiglu"}]),
    "unknown kind of qk_norm": _with(layers=[{"attention": {**LAYER["attention"], "qk_norm": "perhead"}}]),
    "unknown kind below": _with(positions={"kind": "rotary"}),
    "no layers": _with(layers=...),
    "no vocabulary": _with(vocab_size=...),
    "no width": _with(d_model=...),
    "text": _with(d_model="13"),
    "true": _with(d_model=True),
    "zero": _with(d_model=0),
    "fraction": _with(d_model=2.5),
    "null": _with(d_model=None),
    "beyond": _with(d_model=10**12 + 1),
    "repeat 0": _with(layers=[{**LAYER, "repeat": 0}]),
    "flag as text": _with(tie_embeddings="true"),
    "flag as number": _with(tie_embeddings=1),
    "norms": _with(layers=[{**LAYER, "norms": "before"}]),
    "parallel": _with(layers=[{**LAYER, "parallel": True}]),
    "activation": _with(layers=[{"feed_forward": {"d_ff": 37, "activation": "swiglu"}}]),
    "layers as mapping": _with(layers={"repeat": 3}),
    "layer as text": _with(layers=["attention"]),
    "theta": _with(positions={"kind": "rope", "theta": 0}),
    "name": _with(layers=[{**LAYER, "name": "a.b"}]),
    "published": _with(published_parameters="many"),
    "published 0": _with(published_parameters=0),
    "block as list": _with(block=[LAYER]),
}


@pytest.mark.parametrize("data", BOTH_TAKE.values(), ids=BOTH_TAKE)
def test_what_costcalc_takes_the_schema_takes(data):
    load(data)
    VALIDATOR.validate(data)


@pytest.mark.parametrize("data", BOTH_REFUSE.values(), ids=BOTH_REFUSE)
def test_what_the_schema_refuses_costcalc_refuses(data):
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(CostcalcError):
        load(data)


@pytest.mark.parametrize("key", ["norm", "positions", "final_norm", "block", "embedding", "head", "source"])
def test_both_agree_about_null_at_the_top_level(key):
    data = _with(**{key: None})
    try:
        load(data)
    except CostcalcError:
        assert not VALIDATOR.is_valid(data)
    else:
        assert VALIDATOR.is_valid(data)


def test_rows_for_people():
    rows = schema_rows(SCHEMA)
    keys = [key for key, _, _ in rows]
    assert len(keys) == len(set(keys))
    takes, defaults = {key: take for key, take, _ in rows}, {key: default for key, _, default in rows}
    assert takes["d_model"] == "integer"
    assert takes["layers"].startswith("list of ")
    assert takes["norm"].startswith("layernorm | rmsnorm | LayerNorm | RMSNorm")
    assert takes["Block.norms"] == "pre | post | output | sandwich | sphere | null"
    assert takes["Block.parallel"] == "false | one_norm | two_norms | null"
    assert takes["GroupedQuery.window"] == "integer | null"
    assert takes["GroupedQuery.kind"] == "grouped_query"
    assert takes["Gated.activation"].startswith("gelu | gelu_new | ")
    assert defaults["d_model"] == ""
    assert defaults["name"] == "model"
    assert defaults["tie_embeddings"] == "false"
    assert defaults["Block.repeat"] == "1"
    assert defaults["Block.norms"] == "pre"
    assert defaults["Block.positions"] == "none"
    assert defaults["GroupedQuery.window"] == ""
    assert defaults["Gated.activation"] == "silu"
    assert defaults["Dense.activation"] == "gelu"
    assert defaults["RotaryPositions.theta"] == "10000.0"


@pytest.mark.parametrize(
    ("theta", "fits"), [(1, True), (0.5, True), ("5e5", True), ("1.5E3", True), (0, False), (-1.5, False), ("x", False)]
)
def test_a_number_may_be_written_as_a_power_of_ten(theta, fits):
    """5e5 is text to an editor that reads YAML 1.1."""
    assert VALIDATOR.is_valid(_with(positions={"kind": "rope", "theta": theta})) == fits
    assert not VALIDATOR.is_valid(_with(positions={"kind": "rope", "theta": True}))
