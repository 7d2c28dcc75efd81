"""Gemma-3n and Gemma-4: logits of real classes of `transformers`, recorded in tests/oracle/forward/."""

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
CLOSE = 1e-5
"""The classes themselves, in float32, are 3e-7 to 2e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3
GELUS = 1e-4

# What their config.json files say, by hand. V=61, D=24, N=4, F=13; a window of 4.
NORM, BARE = {"kind": "rmsnorm", "eps": 0.05}, {"kind": "rmsnorm", "eps": 0.05, "weight": False}
LOCAL_ROPE, GLOBAL_ROPE = {"kind": "rope", "theta": 20.0}, {"kind": "rope", "theta": 70.0}
PARTIAL_ROPE = {**GLOBAL_ROPE, "rotary_dim": 4, "frequencies": "head"}
TOP = {"vocab_size": 61, "d_model": 24, "norm": NORM, "embedding": {"scale": 24**0.5}, "positions": LOCAL_ROPE}
CORE = {"heads": 4, "kv_heads": 2, "scale": 1.0, "qk_norm": {"kind": "per_head", "norm": NORM}}


def attends(head_dim, *, reads=None, **more):
    """Heads with norms of values, or of no values where another layer's are read."""
    own = {"v_norm": BARE} if reads is None else {"cache_of": reads}
    return {**CORE, "head_dim": head_dim, **own, **more}


def gated(d_ff, **more):
    return {"kind": "gated", "d_ff": d_ff, "activation": "gelu_tanh", **more}


# Layers 0 and 1 are sparse; layers 3 and 4 read the keys of 2, which has a window, and of 1, which has none.
N_LAYER = {"norms": "sandwich", "augmented_residual": {"rank": 3}, "feed_forward": gated(13)}
N_SPARSE = {**N_LAYER, "feed_forward": gated(13, sparsity=0.6)}
N_LAYERS = [
    {"name": "a", **N_SPARSE, "attention": attends(6, window=4)},
    {"name": "b", **N_SPARSE, "attention": attends(6), "positions": GLOBAL_ROPE},
    {"name": "c", **N_LAYER, "attention": attends(6, window=4)},
    {"name": "d", **N_LAYER, "attention": attends(6, window=4, reads="c")},
    {"name": "e", **N_LAYER, "attention": attends(6, reads="b"), "positions": GLOBAL_ROPE},
]
# Layers 3 to 6 read the keys of 2 and of 1, and are twice as wide.
FOUR = {"norms": "sandwich", "layer_scale": "buffer", "feed_forward": gated(13)}
WIDE = {**FOUR, "feed_forward": gated(26)}
LOCAL = {"name": "local", **FOUR, "attention": attends(4, window=4)}
GLOBAL = {"name": "global", **FOUR, "attention": attends(8), "positions": PARTIAL_ROPE}
LOCAL_READS = {**WIDE, "attention": attends(4, window=4, reads="local")}
GLOBAL_READS = {**WIDE, "attention": attends(8, reads="global"), "positions": PARTIAL_ROPE}
FOUR_LAYERS = [LOCAL, GLOBAL, LOCAL, LOCAL_READS, GLOBAL_READS, LOCAL_READS, GLOBAL_READS]
# Full layers have one key head of 8, whose keys are their values.
ROUTER = {"reads": "residual", "norm": BARE, "input_scale": True, "expert_scale": True}
EXPERTS = {"kind": "mixture", "experts": 5, "experts_per_token": 2, "expert": gated(7), "router": ROUTER}
BIASED = {"bias": True, "out_bias": True}
BESIDE = {**FOUR, "feed_forward_beside": EXPERTS}
SAME = attends(8, values_from_keys=True, **{**BIASED, "kv_heads": 1})
EXPERT_LAYERS = [
    {"name": "global", **BESIDE, "attention": SAME, "positions": PARTIAL_ROPE},
    {"name": "local", **BESIDE, "attention": attends(4, window=4, **BIASED)},
    {"name": "global", **BESIDE, "attention": SAME, "positions": PARTIAL_ROPE},
]
WRITTEN = {
    "gemma3n_text": {
        **TOP,
        "tie_embeddings": True,
        "head": {"softcap": 8.0},
        "altup": {"inputs": 3},
        "per_layer_input": {"vocab_size": 53, "width": 5},
        "layers": N_LAYERS,
    },
    "gemma4_text": {
        **TOP,
        "tie_embeddings": True,
        "head": {"softcap": 8.0},
        "per_layer_input": {"vocab_size": 61, "width": 5},
        "layers": FOUR_LAYERS,
    },
    "gemma4_experts": {**TOP, "layers": EXPERT_LAYERS},
}

# Of a parameter's name there: what becomes what in its path here, in this order.
NAMES = [
    (r"^model\.layers\.", "decoder.layers."),
    (r"^model\.embed_tokens_per_layer", "decoder.per_layer_input.embedding"),
    (r"^model\.per_layer_model_projection", "decoder.per_layer_input.projection"),
    (r"^model\.per_layer_projection_norm", "decoder.per_layer_input_norm"),
    (r"^model\.altup_projections", "decoder.altup.below"),
    (r"^model\.altup_unembed_projections", "decoder.altup.above"),
    (r"^model\.embed_tokens", "decoder.embedding"),
    (r"^model\.norm", "decoder.final_norm"),
    (r"^lm_head", "head"),
    (r"self_attn\.o_proj", "attention.output"),
    (r"self_attn\.([qkv])_proj", r"attention.\1"),
    (r"self_attn", "attention"),
    (r"mlp\.(gate|up|down)_proj", r"feed_forward.\1"),
    (r"laurel\.linear_left", "augmented_residual.down"),
    (r"laurel\.linear_right", "augmented_residual.up"),
    (r"laurel\.post_laurel_norm", "augmented_residual_norm"),
    (r"altup\.correct_output_scale", "altup.output_scale"),
    (r"altup\.(correction|prediction)_coefs", r"altup.\1"),
    (r"altup\.modality_router", "altup.router"),
    (r"per_layer_input_gate", "per_layer_input.gate"),
    (r"per_layer_projection", "per_layer_input.projection"),
    (r"post_per_layer_input_norm", "per_layer_input_norm"),
    (r"layer_scalar", "layer_scale"),
    (r"router\.per_expert_scale", "feed_forward_beside.router_expert_scale"),
    (r"router\.scale", "feed_forward_beside.router_input_scale"),
    (r"router\.proj", "feed_forward_beside.router"),
    (r"\.experts\.", ".feed_forward_beside.experts."),
    (r"down_proj$", "down"),
    (r"pre_feedforward_layernorm_2", "feed_forward_beside_norm"),
    (r"post_feedforward_layernorm_1", "feed_forward_alone_output_norm"),
    (r"post_feedforward_layernorm_2", "feed_forward_beside_output_norm"),
    (r"pre_feedforward_layernorm", "feed_forward_norm"),
    (r"post_feedforward_layernorm", "feed_forward_output_norm"),
    (r"input_layernorm", "attention_norm"),
    (r"post_attention_layernorm", "attention_output_norm"),
]
TABLES = ("decoder.embedding", "decoder.per_layer_input.embedding", "head")
SPLITS = {
    "prefill": [TOKENS],
    "a prefill of 7, then one at a time": [7] + [1] * 6,
    "one at a time": [1] * TOKENS,
    "some at a time": [2, 5, 3, 3],
}


@cache
def recorded(name):
    """(config, tokens, logits, parameters by their names there)."""
    with np.load(ORACLE / f"{name}.npz") as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("config"))), arrays.pop("tokens"), arrays.pop("logits"), arrays


@cache
def fields_of(name):
    return costcalc.load(WRITTEN[name]).model_dump()


def path_of(theirs):
    stem, ending = re.fullmatch(r"(.+?)(\.bias|\.weight)?", theirs).groups()
    for pattern, ours in NAMES:
        stem = re.sub(pattern, ours, stem)
    return stem + ("_bias" if ending == ".bias" else "")


@cache
def weights(name):
    """The recorded parameters under our paths; here a matrix is (inputs, outputs), there (outputs, inputs)."""
    ours, several = {}, {}
    for theirs, values in recorded(name)[3].items():
        path = path_of(theirs)
        array = values.swapaxes(-1, -2) if values.ndim > 1 and path not in TABLES else values
        stem, _, last = path.rpartition(".")
        if last.isdecimal():  # matrices of one place beside each other
            several.setdefault(stem, []).append(array)
        elif last == "gate_up_proj":
            ours[f"{stem}.gate"], ours[f"{stem}.up"] = np.split(array, 2, axis=-1)
        else:
            ours[path] = array
    ours |= {path: np.stack(arrays) for path, arrays in several.items()}
    return {path: np.ascontiguousarray(values) for path, values in ours.items()}


def answered(name, fields, parts=(TOKENS,), given=None, **form):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    return fed(fields, recorded(name)[1], parts, weights(name) if given is None else given, **form)


def apart(name, logits):
    return share_apart(recorded(name)[2], logits)


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("name", WRITTEN)
def test_logits_are_those_of_the_real_class(name, parts):
    logits, _ = answered(name, fields_of(name), parts)
    assert logits.dtype == np.float32
    assert apart(name, logits) < CLOSE


@pytest.mark.parametrize("name", WRITTEN)
def test_what_an_importer_reads_gives_the_same_logits(name):
    fields = costcalc.load(recorded(name)[0]).model_dump()
    for parts in SPLITS.values():
        assert apart(name, answered(name, fields, parts)[0]) < CLOSE


@pytest.mark.parametrize("name", WRITTEN)
def test_every_recorded_parameter_is_used_and_counted(name):
    """The scales of layers, which are buffers there, too."""
    _, tape = answered(name, fields_of(name))
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    held = costcalc.parameters(costcalc.load(WRITTEN[name]))
    assert held.total + held.buffers == sum(values.size for values in recorded(name)[3].values())
    assert held.buffers == (0 if name == "gemma3n_text" else len(fields_of(name)["decoder"]["layers"]))


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("gemma3n_text", "active", 0, 1),
        ("gemma3n_text", "sparsity", 0.6, 0.0),
        ("gemma3n_text", "sparsity", 0.0, 0.6),
        ("gemma3n_text", "vocab_size", 53, 61),
        ("gemma3n_text", "cache_of", "c", "a"),
        ("gemma3n_text", "window", 4, 5),
        ("gemma3n_text", "theta", 20.0, 70.0),
        ("gemma3n_text", "eps", 0.05, 1e-6),
        ("gemma3n_text", "augmented_residual", {"rank": 3}, None),
        ("gemma4_text", "frequencies", "head", "rotated"),
        ("gemma4_text", "rotary_dim", 4, 6),
        ("gemma4_text", "layer_scale", "buffer", False),
        ("gemma4_text", "scale", 1.0, 0.9),
        ("gemma4_text", "norms", "sandwich", "output"),
        ("gemma4_experts", "reads", "residual", "input"),
        ("gemma4_experts", "input_scale", True, False),
        ("gemma4_experts", "expert_scale", True, False),
        ("gemma4_experts", "normalize", True, False),
        ("gemma4_experts", "experts_per_token", 2, 1),
        ("gemma4_experts", "values_from_keys", True, False),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    changed, given = with_every(fields_of(name), key, old, new), dict(weights(name))
    if key == "vocab_size":  # the table with more rows of its own for the tokens beyond it
        table = given["decoder.per_layer_input.embedding"]
        given["decoder.per_layer_input.embedding"] = np.concatenate([table, table[1:9]])
    if key == "values_from_keys":
        given |= {path.replace(".k", ".v"): values for path, values in given.items() if ".k" in path}
        given = {path: values[..., ::-1] if ".v" in path else values for path, values in given.items()}
    assert apart(name, answered(name, changed, given=given)[0]) > SHOWS


@pytest.mark.parametrize("name", WRITTEN)
def test_the_two_formulas_of_gelu_are_told_apart(name):
    changed = with_every(fields_of(name), "activation", "gelu_tanh", "gelu")
    assert apart(name, answered(name, changed)[0]) > GELUS


@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_shows(name):
    """Negated, each moves the logits; the last layer's scale turns signs of all that the head reads."""
    fields, given = fields_of(name), weights(name)
    for path, values in given.items():
        if path.startswith("decoder.layers.0"):  # one layer may stand for the others
            continue
        assert apart(name, answered(name, fields, given={**given, path: -values})[0]) > SHOWS, path


@pytest.mark.parametrize("path", ["decoder.altup.below", "decoder.altup.above"])
def test_states_in_another_order_show(path):
    given = {**weights("gemma3n_text"), path: weights("gemma3n_text")[path][::-1]}
    assert apart("gemma3n_text", answered("gemma3n_text", fields_of("gemma3n_text"), given=given)[0]) > SHOWS
