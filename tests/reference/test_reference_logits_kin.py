"""Encoders that are BERT with differences: logits of the real classes, tests/oracle/forward/models_kin.py."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recorded_logits import share_apart, with_every

from costcalc import load
from costcalc.reference import Given, Tape, forward

ORACLE = Path(__file__).resolve().parent.parent / "oracle" / "forward"
NAMES = ["deberta", "deberta_v2", "deberta_v2_own", "mpnet", "roformer", "rembert", "roc_bert", "luke"]
NAMES += ["squeezebert", "convbert", "xlnet", "xmod", "xmod_pre", "mobilebert"]
CLOSE = 5e-6
WITHOUT_NORMS = 2e-5
"""Of layers that shift and scale alone, in which rounding grows."""
SHOWS = 1e-3


@cache
def recorded(name):
    with np.load(ORACLE / f"{name}.npz") as held:
        return dict(held)


@cache
def fields_of(name):
    return load(json.loads(str(recorded(name)["config"]))).model_dump()


def logits_of(name, fields):
    given = recorded(name)
    weights = Given({path: array for path, array in given.items() if path not in ("config", "tokens", "logits")})
    tape = Tape(weights)
    return forward(fields, given["tokens"], tape=tape), tape


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_the_class(name):
    logits, tape = logits_of(name, fields_of(name))
    assert share_apart(recorded(name)["logits"], logits) < (WITHOUT_NORMS if name == "mobilebert" else CLOSE)
    assert set(tape.parameters) == set(recorded(name)) - {"config", "tokens", "logits"}


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("deberta", "trimmed", True, False),
        ("deberta_v2", "max_distance", 11, 23),
        ("deberta_v2", "activation", "gelu", "relu"),
        ("mpnet", "max_distance", 128, 5),
        ("roformer", "values", True, False),
        ("convbert", "activation", "gelu", "relu"),
        ("xmod_pre", "residual", "plain", "normed"),
    ],
)
def test_another_field_shows(name, key, old, new):
    logits, _ = logits_of(name, with_every(fields_of(name), key, old, new))
    assert share_apart(recorded(name)["logits"], logits) > SHOWS or (name, key) == ("deberta", "trimmed")
