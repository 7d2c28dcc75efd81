"""Compressed convolutional attention and routers with networks: logits of the real class, tests/oracle/forward/."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recorded_logits import fed, share_apart

import costcalc
from costcalc.reference import Given, Request, Tape, forward, mixture

ORACLE = Path(__file__).resolve().parent.parent / "oracle" / "forward"
TOKENS = 13
CLOSE = 5e-6
"""The class itself, in float32, is 3e-7 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3

RMS = {"kind": "rmsnorm", "eps": 0.01}
HEADS = {"kind": "convolved", "heads": 4, "kv_heads": 2, "head_dim": 10, "taps": 3, "group_taps": 2, "bias": True}


def layer(*, carried=True, window=None):
    """What its config.json says, by hand."""
    positions = {"kind": "rope", "theta": 30.0} if window is None else {"kind": "rope", "theta": 50.0, "rotary_dim": 4}
    network = {"width": 7, "carried": carried, "norm": RMS}
    experts = {"kind": "mixture", "experts": 5, "experts_per_token": 1, "expert": {"kind": "gated", "d_ff": 11}}
    router = {"correction": "buffer", "normalize": False, "network": network, "skips": 1}
    attention = {**HEADS, "window": window}
    return {"attention": attention, "feed_forward": {**experts, "router": router}, "positions": positions}


WRITTEN = {
    "vocab_size": 61,
    "d_model": 22,
    "norm": RMS,
    "block": {"residual_affine": True},
    "layers": [layer(carried=False), layer(window=4), layer(), layer()],
    "embedding": {"affine": True},
    "head": {"bias": True},
}
NAMES = [
    (r"^model\.layers\.", "decoder.layers."),
    (r"^model\.embed_tokens$", "decoder.embedding"),
    (r"^model\.input_hidden_states_scale$", "decoder.embedding_gain"),
    (r"^model\.input_hidden_states_bias$", "decoder.embedding_shift"),
    (r"^model\.norm$", "decoder.final_norm"),
    (r"^lm_head$", "head"),
    (r"\.self_attn\.(qkv_proj\.|qk_norm\.)?", ".attention."),
    (r"attention\.([qko])_proj$", r"attention.\1"),
    (r"attention\.o$", "attention.output"),
    (r"v_proj_", "v_"),
    (r"conv_qk_depthwise", "conv"),
    (r"conv_qk_grouped", "group_conv"),
    (r"attention\.temp$", "attention.key_scale"),
    (r"\.mlp\.gate\.(router_mlp\.)?", ".feed_forward.router_"),
    (r"\.mlp\.", ".feed_forward."),
    (r"router_out_proj", "router"),
    (r"router_fc", "router_inner"),
    (r"router_balancing_biases", "router_correction"),
    (r"router_router_states_scale", "router_carried_gain"),
    (r"\.(router_)?(down)_proj$", r".\1\2"),
    (r"input_layernorm", "attention_norm"),
    (r"post_attention_layernorm", "feed_forward_norm"),
    (r"post_attention_residual_scale\.", "attention_"),
    (r"post_mlp_residual_scale\.", "feed_forward_"),
    (r"_hidden_states_scale$", "_output_gain"),
    (r"_hidden_states_bias$", "_output_shift"),
    (r"_residual_scale$", "_residual_gain"),
    (r"_residual_bias$", "_residual_shift"),
]
"""Of a parameter's name there: what becomes what in its path here, in this order."""

SPLITS = {
    "prefill": [TOKENS],
    "a prefill of 7, then one at a time": [7] + [1] * 6,
    "one at a time": [1] * TOKENS,
    "some at a time": [2, 5, 3, 3],
}


@cache
def recorded():
    """(tokens, logits, parameters by their names there)."""
    with np.load(ORACLE / "zaya.npz") as file:
        arrays = dict(file)
    assert json.loads(str(arrays.pop("config")))["num_hidden_layers"] == len(WRITTEN["layers"])
    return arrays.pop("tokens"), arrays.pop("logits"), arrays


@cache
def model():
    return costcalc.load(WRITTEN)


def taken_apart(theirs, values):
    """Our arrays, by path, of one of theirs: (inputs, outputs) of (outputs, inputs), and two of gate and up."""
    stem, ending = re.fullmatch(r"(.+?)(\.bias|\.weight)?", theirs).groups()
    for pattern, ours in NAMES:
        stem = re.sub(pattern, ours, stem)
    part = stem.rpartition(".")[2]
    if ending == ".bias":
        return {f"{stem}_bias": values}
    if part == "conv":
        return {stem: values.swapaxes(1, 2)}  # (C, taps, 1)
    if part == "group_conv":  # (heads, outputs, inputs, taps) -> (heads, taps x inputs, outputs)
        return {stem: values.reshape(6, 10, 10, 2).transpose(0, 3, 2, 1).reshape(6, 20, 10)}
    if part == "gate_up_proj":
        halves = np.split(values.swapaxes(1, 2), 2, axis=-1)
        return {stem.replace(part, name): half for name, half in zip(("gate", "up"), halves, strict=True)}
    turns = values.ndim > 1 and stem not in ("decoder.embedding", "head")
    return {stem: values.swapaxes(-1, -2) if turns else values}


@cache
def weights():
    """The recorded parameters under our paths."""
    ours = {}
    for theirs, values in recorded()[2].items():
        ours |= taken_apart(theirs, values)
    return {path: np.ascontiguousarray(values) for path, values in ours.items()}


def answered(parts=(TOKENS,), fields=None, given=None):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    fields = model().model_dump() if fields is None else fields
    return fed(fields, recorded()[0], parts, weights() if given is None else given)


def apart(logits):
    return share_apart(recorded()[1], logits)


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
def test_logits_are_those_of_the_real_class(parts):
    logits, _ = answered(parts)
    assert logits.dtype == np.float32
    assert apart(logits) < CLOSE


def test_every_recorded_parameter_is_used_and_counted():
    """The routers' corrections, which are buffers there, too."""
    _, tape = answered()
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights().items()
    }
    held = costcalc.parameters(model())
    assert held.buffers == 4 * 6
    assert held.total + held.buffers == sum(values.size for values in recorded()[2].values())


def test_the_parameters_by_hand():
    """Two tables 61·22, a bias of 61, 3·22 of embedding and last gain; four layers of two norms and eight arrays of 22.

    Attention: q 22·40 + 40, k 22·20 + 20, two halves 22·10 + 10, output 40·22 + 22; 60·3 + 60, 6·10·10·2 + 60, 2.
    Router: 22·7 + 7, a gain 7, twice 7·7 + 7, 7·6; but for the first layer 7 that are carried on. 5·3·22·11 of experts.
    """
    attention = 920 + 460 + 460 + 902 + 240 + 1_260 + 2
    router = 161 + 7 + 112 + 42
    total = 2 * 1_342 + 61 + 66 + 4 * (220 + attention + router + 3_630) + 3 * 7
    assert costcalc.parameters(model()).total == total


def test_some_tokens_go_to_no_expert_and_most_to_one(monkeypatch):
    """Otherwise nothing here would tell."""
    weighed = []
    routed = mixture.routed

    def noted(*given):
        result = routed(*given)
        weighed.append(result[0])
        return result

    monkeypatch.setattr(mixture, "routed", noted)
    answered()
    nothing = [int((weights == 0).sum()) for weights in weighed]
    assert len(nothing) == 4
    assert 0 < sum(nothing) < 4 * 2 * TOKENS / 2


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (("attention",), "window", 5),
        (("attention",), "scale", 0.1),
        (("positions",), "rotary_dim", 8),
        (("feed_forward", "router"), "normalize", True),
        (("feed_forward", "router", "network"), "carried", False),
        (("feed_forward", "router", "network", "norm"), "eps", 1.0),
        ((), "residual_scale", 0.9),
    ],
)
def test_another_value_of_a_field_shows(place, key, value):
    fields = model().model_dump()
    inner = fields["decoder"]["layers"][1]
    for name in place:
        inner = inner[name]
    assert inner[key] != value
    inner[key] = value
    assert apart(answered(fields=fields)[0]) > SHOWS


def test_every_parameter_of_a_layer_shows():
    """Negated, each moves the logits."""
    paths = [path for path in weights() if path.startswith("decoder.layers.1.")]
    assert len(paths) == 38
    for path in paths:
        assert apart(answered(given={**weights(), path: -weights()[path]})[0]) > SHOWS, path


def test_states_do_not_grow_but_keys_and_values_do():
    for tokens in (3, TOKENS):
        request, tape = Request(), Tape(Given(weights()))
        forward(model().model_dump(), recorded()[0][:, :tokens], tape=tape, request=request)
        states = sum(size for path, size in tape.cached.items() if tape.cached_kinds[path] == "state")
        assert states == 4 * 2 * (60 * 3 + 10)
        cache = costcalc.kv_cache(model(), tokens, batch=2)
        assert (states, sum(tape.cached.values()) - states) == (cache.state_elements, cache.elements)
