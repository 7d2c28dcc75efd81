"""A decoder on different primes, and inventories made of it."""

from copy import deepcopy
from dataclasses import replace

import pytest

from costcalc import load

ATTENTION = {"heads": 6, "kv_heads": 2, "head_dim": 5}
WRITTEN = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "layers": [{"repeat": 3, "attention": ATTENTION, "feed_forward": {"d_ff": 37}}],
}


@pytest.fixture
def readable():
    """readable(inventory, workload) -> as it can be asked: 23 encoder tokens if it reads any, a past if it has one."""

    def ask(inventory, workload):
        memory = 23 if inventory.takes_memory else 0
        past = workload.past_tokens if inventory.has_cache else 0
        return replace(workload, memory_tokens=memory, past_tokens=past)

    return ask


@pytest.fixture
def small():
    """small(attention={...}, **changes) -> the inventory of a small decoder with these keys changed."""

    def make(*, attention=None, **changes):
        written = deepcopy(WRITTEN)
        written["layers"][0]["attention"].update(attention or {})
        return load({**written, **changes}).inventory

    return make


@pytest.fixture
def pair():
    """pair(**changes) -> the inventory of a small encoder-decoder; without a decoder it is the encoder alone."""

    def make(**changes):
        cross = {"heads": 10, "kv_heads": 5, "head_dim": 7}
        decoder = {"repeat": 3, "attention": ATTENTION, "cross_attention": cross, "feed_forward": {"d_ff": 41}}
        written = {
            **{key: value for key, value in WRITTEN.items() if key != "layers"},
            "encoder": {"layers": [{"repeat": 2, "attention": ATTENTION, "feed_forward": {"d_ff": 37}}]},
            "decoder": {"layers": [decoder]},
            **changes,
        }
        return load({key: value for key, value in written.items() if value is not None}).inventory

    return make


@pytest.fixture
def values_by_name():
    """values_by_name(figures) -> {(name, unit): value} of all that goes into them, where a name is one number."""

    def collect(figures):
        values, waiting = {}, list(figures)
        while waiting:
            figure = waiting.pop()
            assert values.setdefault((figure.name, figure.unit), figure.exact_value) == figure.exact_value, figure.name
            waiting += figure.inputs
        return values

    return collect
