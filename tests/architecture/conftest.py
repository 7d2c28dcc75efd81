"""A decoder on different primes, and what it refuses."""

from copy import deepcopy

import pytest
from pydantic import ValidationError

from costcalc.architecture import Architecture

WRITTEN = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "layers": [
        {"repeat": 3, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}},
    ],
}


@pytest.fixture
def written():
    """written(**changes) -> the written form of a small decoder; None takes a key away."""

    def write(**changes):
        return {key: value for key, value in {**deepcopy(WRITTEN), **changes}.items() if value is not None}

    return write


@pytest.fixture
def made(written):
    """made(**changes) -> the architecture."""
    return lambda **changes: Architecture.model_validate(written(**changes))


@pytest.fixture
def refusal(made):
    """refusal(**changes) -> the `RuleError` that these changes meet."""

    def refuse(**changes):
        with pytest.raises(ValidationError) as caught:
            made(**changes)
        (detail,) = caught.value.errors()
        return detail["ctx"]["error"]

    return refuse
