"""Small models of all families, with prime sizes."""

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


# Below a decoder of three layers, or alone, an encoder of two; the decoder's layers ask 3 heads of 7.
TOP = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}
SELF, ASKED = {"heads": 6, "kv_heads": 2, "head_dim": 5}, {"heads": 3, "head_dim": 7}
BELOW = {"repeat": 2, "attention": SELF, "feed_forward": {"d_ff": 37}}
ABOVE = {"repeat": 3, "attention": SELF, "cross_attention": ASKED, "feed_forward": {"d_ff": 41}}


def _family(*, encoder=None, decoder=None, **top):
    stacks = {
        name: {"layers": [copy.deepcopy({**layer, **changes})]}
        for name, layer, changes in (("encoder", BELOW, encoder), ("decoder", ABOVE, decoder))
        if changes is not None
    }
    return costcalc.load({**TOP, **stacks, **top})


@pytest.fixture
def family():
    """family(encoder={}, decoder={}, **top): a model of these stacks, with these keys of their layers changed."""
    return _family
