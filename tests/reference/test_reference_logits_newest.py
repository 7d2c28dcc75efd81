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
CLOSE, IN_LOOPS = 5e-6, 3e-5
"""The classes themselves, in float32, are up to 2e-6 of the largest logit away from what was recorded in float64; one
whose layers run again and again is 6e-6.
"""
SHOWS = 1e-3

OF_HYPER_CONNECTIONS = {"fn": "factors", "base": "added", "scale": "gains"}
OF_INKLING = [
    (r"embed_tokens\.embed_norm$", "embed_norm"),
    (r"^model\.embed_norm$", "decoder.embedding_norm"),
    (r"(k|v)_sconv\.conv1d$", r"\1_conv.conv"),
    (r"(k|v)_proj\.sconv\.conv1d$", r"\1_conv.conv"),
    (r"(k|v)_proj\.sconv\.static_weight$", r"\1_conv.static"),
    (r"(k|v)_proj\.sconv\.weight_proj$", r"\1_conv.dynamic"),
    (r"\.(attn_sconv|post_attention_convolution)\.conv1d$", ".attention_conv.conv"),
    (r"\.(mlp_sconv|post_mlp_convolution)\.conv1d$", ".feed_forward_conv.conv"),
    (r"\.r_proj$", ".profiles"),
    (r"rel_logits_proj\.proj$", "bank"),
    (r"relative_position_bias\.proj$", "bank"),
    (r"relative_position_bias\.linear$", "profiles"),
    (r"relative_position_bias\.norm\.scale$", "profiles_scale"),
    (r"q_proj\.norm\.scale$", "q_scale"),
    (r"([qkv])_proj\.linear$", r"\1"),
    (r"o_proj\.gate_proj$", "gate"),
    (r"o_proj\.linear$", "output"),
    (r"sink_proj$", "sinks"),
    (r"mlp\.gate\.global_scale$", "feed_forward.router_gain"),
    (r"mlp\.global_scale$", "feed_forward.out_gain"),
    (r"\.attention_input\.query$", ".block_residuals.attention.query"),
    (r"\.mlp_input\.query$", ".block_residuals.feed_forward.query"),
    (r"^model\.final_input\.query$", "decoder.block_residuals.above.query"),
    (r"\.(k|v)_input_layernorm$", lambda found: f".attention_{'keys' if found[1] == 'k' else 'values'}_norm"),
    (r"\.q_input_layernorm$", ".attention_norm"),
    (r"\.mlp_message_gate\.", ".messages.feed_forward."),
    (r"\.([qkv])_message_gate\.", r".messages.\1."),
    (r"\.forget_gate_proj$", ".forget"),
    (r"\.message_gate_proj$", ".add"),
]
OWN_NAMES = {
    **dict.fromkeys(("inkling", "inkling2", "inkling2_loop"), OF_INKLING),
    "minimax_m3": [],
    "deepseek_v4": [
        (r"compressor\.indexer\.(scorer\.)?", "compression.choice."),
        (r"weights_proj$", "head_weights"),
        (r"compressor\.", "compression."),
        (r"compression(.*)\.gate_proj$", r"compression\1.weights"),
        (r"position_bias$", "places"),
        (r"compression(.*)\.kv_norm$", r"compression\1.norm"),
        (r"\.q_a_norm$", ".q_norm"),
        (r"\.q_a_proj$", ".q_down"),
        (r"\.q_b_proj$", ".q_up"),
        (r"\.kv_proj$", ".kv"),
        (r"\.o_a_proj$", ".output_down"),
        (r"\.o_b_proj$", ".output_up"),
        (r"\.tid2eid$", "_table"),
        (r"\.attn_hc\.", ".hyper_connections.attention."),
        (r"\.ffn_hc\.", ".hyper_connections.feed_forward."),
        (r"^model\.hc_head\.hc_", "decoder.hyper_connections.above."),
        *((rf"(hyper_connections.*)\.{theirs}$", rf"\1.{ours}") for theirs, ours in OF_HYPER_CONNECTIONS.items()),
    ],
}
"""The same of one class, before those of all."""
NAMES = [
    (r"^model\.layers\.", "decoder.layers."),
    (r"^model\.embed_tokens$", "decoder.embedding"),
    (r"^model\.norm$", "decoder.final_norm"),
    (r"^lm_head$", "head"),
    (r"\.self_attn\.indexer\.", ".attention.block_choice."),
    (r"\.self_attn\.", ".attention."),
    (r"\.([qkv])_proj$", r".\1"),
    (r"attention\.o_proj$", "attention.output"),
    (r"mlp\.gate(_table)?$", r"feed_forward.router\1"),
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
MODELS = ("minimax_m3", "deepseek_v4", "inkling", "inkling2", "inkling2_loop")
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
    if name == "deepseek_v4":
        values = reordered(stem, values)
    if "norm" in stem and name in ONE_IS_ADDED:
        values = values + 1
    if stem.endswith("gate_up_proj"):
        path, halves = renamed(stem.removesuffix("gate_up_proj"), name), np.split(values.swapaxes(-1, -2), 2, axis=-1)
        return {f"{path}{part}": half for part, half in zip(("gate", "up"), halves, strict=True)}
    if stem.endswith("message_input.query"):  # (layers of the loop, queries, D)
        return {f"decoder.layers.{2 + number}.messages.query": each.T for number, each in enumerate(values)}
    if "shared_experts" in stem and values.ndim == 3:  # (parts, outputs, inputs), beside each other
        joined = values.transpose(2, 0, 1) if stem.endswith(("gate_proj", "up_proj")) else values.transpose(0, 2, 1)
        flat = joined.reshape(len(joined), -1) if stem.endswith(("gate_proj", "up_proj")) else np.concatenate(joined)
        return {renamed(stem, name): flat}
    if stem.endswith("conv1d"):  # (channels, 1, taps)
        return {renamed(stem, name): values.swapaxes(1, 2)}
    if stem.endswith((".scale", "_input.query")) and name != "deepseek_v4":
        return {renamed(stem, name): values.reshape(-1) if stem.endswith("scale") else np.atleast_2d(values).T}
    turns = values.ndim > 1 and not stem.endswith(AS_THEY_ARE)
    return {renamed(stem, name): values.swapaxes(-1, -2) if turns else values}


def reordered(stem, values):
    """DeepSeek-V4 turns the last numbers of a head, neighbour with neighbour; here the first are, half with half.

    The numbers of a head are put in another order wherever they are made or read. The output's first matrix, whose rows
    are of all groups, is cut into those.
    """
    part, head = stem.rpartition(".")[2], 6 if ".indexer." in stem else 10
    order = [*range(head - 4, head, 2), *range(head - 3, head, 2), *range(head - 4)]
    in_first = part in ("kv_proj", "kv_norm") or (part == "q_b_proj") or (part == "gate_proj" and "compressor" in stem)
    if in_first:
        return values.reshape(-1, head, *values.shape[1:])[:, order].reshape(values.shape)
    if part == "position_bias":
        return values.reshape(len(values), -1, head)[:, :, order].reshape(values.shape)
    if part == "o_a_proj":  # (groups x rank, heads of a group x numbers)
        return values.reshape(2, 7, 2, head)[..., order].reshape(2, 7, 2 * head)
    return values.astype(np.float32)


AS_THEY_ARE = (
    "model.embed_tokens",
    "lm_head",
    "position_bias",
    "tid2eid",
    "static_weight",
    "bias.proj",
    "logits_proj.proj",
)


def renamed(stem, name):
    for pattern, ours in [*OWN_NAMES[name], *NAMES]:
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
    assert share_apart(recorded(name)[2], logits) < (IN_LOOPS if name == "inkling2_loop" else CLOSE)


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
        ("deepseek_v4", "window", 4, 5),
        ("deepseek_v4", "entries", 2, 1),
        ("deepseek_v4", "scale", 1.5, 1.0),
        ("deepseek_v4", "limit", 1.1, None),
        ("deepseek_v4", "scores", "sqrt_softplus", "sigmoid"),
        ("deepseek_v4", "iterations", 3, 1),
        ("deepseek_v4", "rotary_dim", 4, 6),
        ("deepseek_v4", "theta", 50.0, 30.0),
        ("inkling", "window", 4, 5),
        ("inkling", "log_floor", 5.0, None),
        ("inkling", "scale", 1.5, 1.0),
        ("inkling2", "limit", 3.0, 2.0),
        ("inkling2", "profile_limit", 1.5, 1.0),
        ("inkling2", "means", True, False),
        ("inkling2", "log_alpha", 0.5, 0.1),
        ("inkling2", "gate_cap", 2.0, None),
        ("inkling2", "up_cap", 1.5, None),
        ("inkling2", "softcap", 5.0, None),
        ("inkling2", "window", 4, 3),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    logits, _ = answered(name, fields=with_every(model(name).model_dump(), key, old, new))
    assert share_apart(recorded(name)[2], logits) > SHOWS
