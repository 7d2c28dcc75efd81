"""A small model of two kinds of layers, with prime sizes."""

import copy

import pytest

import costcalc

SMALL = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "positions": "rope",
    "layers": [
        {"name": "local", "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5, "window": 3}},
        {"name": "global", "repeat": 2, "attention": {"heads": 6, "kv_heads": 3, "head_dim": 7}},
    ],
    "block": {"feed_forward": {"kind": "gated", "d_ff": 37}},
}


def _small(**changes):
    written = {**copy.deepcopy(SMALL), **changes}
    return costcalc.load({key: value for key, value in written.items() if value is not None})


@pytest.fixture
def small():
    """small(**changes): the model with other keys; a key that is None is left out."""
    return _small
