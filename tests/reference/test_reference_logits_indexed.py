"""Attention over chosen keys, and its kin: logits of the real classes, tests/oracle/forward/, and the importers."""

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
CLOSE = 2e-5
"""The classes themselves, in float32, are up to 5e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3
MODELS = ("deepseek_v32", "glm_moe_dsa", "axk2", "hy_v4", "dots3_note_text", "longcat_flash", "beam")
NEIGHBOURS = {"deepseek_v32": "kq", "axk2": "kq", "longcat_flash": "kq", "glm_moe_dsa": "kqi", "dots3_note_text": "kqi"}
"""Classes that turn neighbours, where here the halves turn: of keys, queries, an indexer's."""
ROPE, NOPE = 4, 5
OF_HYPER_CONNECTIONS = {"fn": "factors", "base": "added", "scale": "gains"}
NAMES = [
    (r"^model\.layers\.(\d+)\.self_attn\.([01])\.", lambda found: f"{layer(found)}attention."),
    (r"^model\.layers\.(\d+)\.mlps\.([01])\.", lambda found: f"{layer(found)}feed_forward."),
    (r"^model\.layers\.(\d+)\.input_layernorm\.([01])$", lambda found: f"{layer(found)}attention_norm"),
    (r"^model\.layers\.(\d+)\.post_attention_layernorm\.([01])$", lambda found: f"{layer(found)}feed_forward_norm"),
    (r"^model\.layers\.(\d+)\.mlp\.router\.classifier$", lambda found: f"{layer(found)}shortcut.router"),
    (
        r"^model\.layers\.(\d+)\.mlp\.router\.e_score_correction_bias$",
        lambda found: f"{layer(found)}shortcut.router_correction",
    ),
    (r"^model\.layers\.(\d+)\.mlp\.experts\.(?=.*OF_A_SHORTCUT)", lambda found: f"{layer(found)}shortcut.experts."),
    (r"^model\.layers\.", "decoder.layers."),
    (r"^model\.embed_tokens$", "decoder.embedding"),
    (r"^model\.norm$", "decoder.final_norm"),
    (r"^lm_head$", "head"),
    (r"^model\.hc_head\.hc_", "decoder.hyper_connections.above."),
    (r"\.attn_hc\.", ".hyper_connections.attention."),
    (r"\.ffn_hc\.", ".hyper_connections.feed_forward."),
    *((rf"(hyper_connections.*)\.{theirs}$", rf"\1.{ours}") for theirs, ours in OF_HYPER_CONNECTIONS.items()),
    (r"indexer\.wq_b$", "indexer.q"),
    (r"indexer\.wk$", "indexer.k"),
    (r"indexer\.weights_proj$", "indexer.weights"),
    (r"\.self_attn\.", ".attention."),
    (r"q_a_proj$", "q_down"),
    (r"q_a_layernorm$", "q_norm"),
    (r"q_b_proj$", "q_up"),
    (r"kv_a_proj_with_mqa$", "kv_down"),
    (r"kv_a_layernorm$", "kv_norm"),
    (r"k_rope_only_layernorm$", "rope_norm"),
    (r"attention\.o_proj$", "attention.output"),
    (r"attention\.g_proj$", "attention.gate"),
    (r"mlp\.gate$", "feed_forward.router"),
    (r"mlp\.gate\.e_score_correction_bias$", "feed_forward.router_correction"),
    (r"layernorm\.mlp\.fc1$", "layernorm_gate_down"),
    (r"layernorm\.mlp\.fc2$", "layernorm_gate_up"),
    (r"layernorm\.norm$", "layernorm"),
    (r"\.mlp\.", ".feed_forward."),
    (r"shared_experts", "shared"),
    (r"\.(q|k|v|gate|up|down)_proj$", r".\1"),
    (r"\.input_layernorm", ".attention_norm"),
]
AFTER_ATTENTION = {False: [(r"\.post_attention_layernorm", ".feed_forward_norm")], True: []}
AFTER_ATTENTION[True] += [(r"\.post_attention_layernorm$", ".attention_output_norm")]
AFTER_ATTENTION[True] += [(r"\.pre_feedforward_layernorm$", ".feed_forward_norm")]
AFTER_ATTENTION[True] += [(r"\.post_feedforward_layernorm$", ".feed_forward_output_norm")]
"""By whether norms stand around a sublayer."""
SPLITS = {"prefill": [TOKENS], "7, then one at a time": [7] + [1] * 6, "some at a time": [2, 5, 3, 3]}
AS_THEY_ARE = ("model.embed_tokens", "lm_head")


def layer(found):
    """LongCat's layer n has two of ours, 2·n and the one behind it."""
    half = found[2] if found.re.groups > 1 else 0
    return f"decoder.layers.{2 * int(found[1]) + int(half)}."


@cache
def recorded(name):
    """(config, tokens, logits, parameters by their names there)."""
    with np.load(ORACLE / f"{name}.npz") as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("config"))), arrays.pop("tokens"), arrays.pop("logits"), arrays


@cache
def model(name):
    return costcalc.load(recorded(name)[0])


def renamed(stem, name):
    for pattern, ours in [*NAMES, *AFTER_ATTENTION[name == "beam"]]:
        stem = re.sub(pattern, ours, stem)
    return stem.replace("OF_A_SHORTCUT", "")


def halves(rows, first):
    """Rows of the numbers of a head, of which ROPE from `first` on turn: neighbours apart, even ones first."""
    order = [*range(first, first + ROPE, 2), *range(first + 1, first + ROPE, 2)]
    return rows[..., [*range(first), *order, *range(first + ROPE, rows.shape[-1])]]


def reordered(stem, values, name):
    """(outputs, ...) with what turns in the order in which it turns here."""
    part, which = stem.rpartition(".")[2], NEIGHBOURS.get(name, "")
    turned = np.moveaxis(values, 0, -1)
    if part in ("q_b_proj", "q_gate_proj") and "q" in which:
        heads = turned.reshape(*turned.shape[:-1], -1, NOPE + ROPE + 7 * (part == "q_gate_proj"))
        turned = halves(heads, NOPE).reshape(turned.shape)
    if part == "kv_a_proj_with_mqa" and "k" in which:
        turned = halves(turned, turned.shape[-1] - ROPE)
    if part == "k_rope_only_layernorm":
        turned = halves(turned, 0)
    if ".indexer." in stem and part in ("wq_b", "wk", "k_norm") and "i" in which:
        turned = halves(turned.reshape(*turned.shape[:-1], -1, 6), 0).reshape(turned.shape)
    return np.moveaxis(turned, -1, 0)


def by_head(values, first, names, path):
    """Two matrices of one, whose outputs are those of each head beside each other. (outputs, inputs)."""
    whole = values.shape[0] // (first + 7)
    one, other = np.split(values.reshape(whole, first + 7, -1), [first], axis=1)
    return {
        f"{path}{name}": part.reshape(-1, values.shape[1]).T for name, part in zip(names, (one, other), strict=True)
    }


def taken_apart(theirs, values, name):
    """Our arrays, by path, of one of theirs: (inputs, outputs) of (outputs, inputs), and two of one."""
    stem, ending = theirs.removesuffix(".weight").removesuffix(".bias"), theirs.endswith(".bias")
    values = reordered(stem, values, name)
    path, _, part = stem.rpartition(".")
    if part == "kv_b_proj":
        return by_head(values, NOPE, ("k_up", "v_up"), renamed(f"{path}.", name))
    if part == "q_gate_proj":
        return by_head(values, NOPE + ROPE, ("q_up", "gate"), renamed(f"{path}.", name))
    of_shortcut = "OF_A_SHORTCUT" if name == "longcat_flash" and ".mlp.experts." in stem else ""
    if part == "gate_up_proj":
        both = np.split(values.swapaxes(-1, -2), 2, axis=-1)
        where = renamed(f"{path}.{of_shortcut}", name)
        found = {f"{where}{side}": half for side, half in zip(("gate", "up"), both, strict=True)}
        if of_shortcut:
            unused = {path.replace("experts", "unused"): half[4:] for path, half in found.items()}
            found = {path: half[:4] for path, half in found.items()} | unused
        return found
    ours = renamed(f"{stem}{of_shortcut}", name) + ("_bias" if ending else "")
    turns = values.ndim > 1 and not stem.endswith(AS_THEY_ARE)
    return {ours.replace("down_proj", "down"): values.swapaxes(-1, -2) if turns else values}


@cache
def weights(name):
    """The recorded parameters under our paths."""
    ours = {}
    for theirs, values in recorded(name)[3].items():
        ours |= taken_apart(theirs, values.astype(np.float32), name)
    return {path: np.ascontiguousarray(values) for path, values in ours.items()}


def answered(name, parts=(TOKENS,), fields=None, **form):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    fields = model(name).model_dump() if fields is None else fields
    return fed(fields, recorded(name)[1], parts, weights(name), **form)


def apart(name, logits):
    return share_apart(recorded(name)[2], logits)


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_real_class(name, parts):
    assert apart(name, answered(name, parts)[0]) < CLOSE


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"beam"}))
def test_so_are_those_of_absorbed_latents(name):
    assert apart(name, answered(name, latent="absorbed")[0]) < CLOSE


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
        ("deepseek_v32", "top_k", 3, 13),
        ("glm_moe_dsa", "top_k", 3, 2),
        ("hy_v4", "rotates", "last", "first"),
        ("hy_v4", "magnitude", 1.5, 2.0),
        ("dots3_note_text", "window", 4, 5),
        ("dots3_note_text", "rope_norm", True, False),
        ("longcat_flash", "skip_gives", "input", "nothing"),
        ("axk2", "before", "all", "attention"),
        ("beam", "residual_mean", True, False),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    fields = with_every(model(name).model_dump(), key, old, new)
    assert apart(name, answered(name, fields=fields)[0]) > SHOWS
