"""The newest sparse decoders: logits of the real classes, tests/oracle/forward/, and the importers that read them."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recorded_logits import fed, share_apart, with_every

import costcalc

ORACLE = Path(__file__).resolve().parent.parent / "oracle" / "forward"
TOKENS = 13
CLOSE = 5e-6
"""The classes themselves, in float32, are up to 8e-7 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3

NAMES = [
    (r"^model\.layers\.", "decoder.layers."),
    (r"^model\.embed_tokens$", "decoder.embedding"),
    (r"^model\.norm$", "decoder.final_norm"),
    (r"^lm_head$", "head"),
    (r"\.self_attn\.indexer\.", ".attention.block_choice."),
    (r"\.self_attn\.", ".attention."),
    (r"\.([qkv])_proj$", r".\1"),
    (r"attention\.o_proj$", "attention.output"),
    (r"mlp\.gate$", "feed_forward.router"),
    (r"mlp\.gate\.e_score_correction_bias$", "feed_forward.router_correction"),
    (r"\.mlp\.", ".feed_forward."),
    (r"shared_experts", "shared"),
    (r"\.(gate|up|down)_proj$", r".\1"),
    (r"\.input_layernorm$", ".attention_norm"),
    (r"\.post_attention_layernorm$", ".feed_forward_norm"),
]
"""Of a parameter's name there: what becomes what in its path here, in this order."""
SPLITS = {
    "prefill": [TOKENS],
    "a prefill of 7, then one at a time": [7] + [1] * 6,
    "one at a time": [1] * TOKENS,
    "some at a time": [2, 5, 3, 3],
}
MODELS = ("minimax_m3",)
ONE_IS_ADDED = ("minimax_m3",)
"""Classes whose norms multiply by 1 + their weights."""


@cache
def recorded(name):
    """(config, tokens, logits, parameters by their names there)."""
    with np.load(ORACLE / f"{name}.npz") as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("config"))), arrays.pop("tokens"), arrays.pop("logits"), arrays


@cache
def model(name):
    return costcalc.load(recorded(name)[0])


def taken_apart(theirs, values, name):
    """Our arrays, by path, of one of theirs: (inputs, outputs) of (outputs, inputs), and two of gate and up."""
    stem = theirs.removesuffix(".weight")
    if "norm" in stem and name in ONE_IS_ADDED:
        values = values + 1
    if stem.endswith("gate_up_proj"):
        path, halves = renamed(stem.removesuffix("gate_up_proj")), np.split(values.swapaxes(-1, -2), 2, axis=-1)
        return {f"{path}{part}": half for part, half in zip(("gate", "up"), halves, strict=True)}
    turns = values.ndim > 1 and stem not in ("model.embed_tokens", "lm_head")
    return {renamed(stem): values.swapaxes(-1, -2) if turns else values}


def renamed(stem):
    for pattern, ours in NAMES:
        stem = re.sub(pattern, ours, stem)
    return stem


@cache
def weights(name):
    """The recorded parameters under our paths."""
    ours = {}
    for theirs, values in recorded(name)[3].items():
        ours |= taken_apart(theirs, values, name)
    return {path: np.ascontiguousarray(values) for path, values in ours.items()}


def answered(name, parts=(TOKENS,), fields=None):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    return fed(model(name).model_dump() if fields is None else fields, recorded(name)[1], parts, weights(name))


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_real_class(name, parts):
    logits, _ = answered(name, parts)
    assert logits.dtype == np.float32
    assert share_apart(recorded(name)[2], logits) < CLOSE


@pytest.mark.parametrize("name", MODELS)
def test_every_recorded_parameter_is_used_and_counted(name):
    _, tape = answered(name)
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    held = costcalc.parameters(model(name))
    assert held.total + held.buffers == sum(values.size for values in recorded(name)[3].values())


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("minimax_m3", "block", 3, 4),
        ("minimax_m3", "blocks", 2, 3),
        ("minimax_m3", "local", 1, 2),
        ("minimax_m3", "limit", 1.1, None),
        ("minimax_m3", "up_shift", 1.0, 0.0),
        ("minimax_m3", "scale", 1.5, 1.0),
        ("minimax_m3", "rotary_dim", 4, 6),
        ("minimax_m3", "eps", 0.01, 1e-6),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    logits, _ = answered(name, fields=with_every(model(name).model_dump(), key, old, new))
    assert share_apart(recorded(name)[2], logits) > SHOWS
