"""Mamba, Mamba-2 and RWKV-4, alone and beside attention: logits of real classes, recorded in tests/oracle/forward/."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recorded_logits import fed, share_apart, with_every

import costcalc
from costcalc.reference import Given, Request, Tape, forward

ORACLE = Path(__file__).resolve().parent.parent / "oracle" / "forward"
TOKENS = 13
CLOSE = 2e-5
"""The classes themselves, in float32, are 3e-7 to 4e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3


def rms(eps):
    return {"kind": "rmsnorm", "eps": eps}


def rope(theta):
    return {"kind": "rope", "theta": theta}


def gated(d_ff, **more):
    return {"kind": "gated", "d_ff": d_ff, **more}


def dense(d_ff):
    return {"kind": "dense", "d_ff": d_ff, "activation": "relu_squared"}


def mixture(experts, chosen, expert, router=(), **more):
    router = {"router": dict(router)}
    return {"kind": "mixture", "experts": experts, "experts_per_token": chosen, "expert": expert, **router, **more}


def decoder(d_model, norm, layers, positions="none", **top):
    return {"vocab_size": 61, "d_model": d_model, "norm": norm, "positions": positions, "layers": layers, **top}


# What their config.json files say, by hand.
MAMBA = {"kind": "mamba1", "d_inner": 44, "d_state": 5, "dt_rank": 3, "bias": True}
MAMBA2 = {"kind": "mamba2", "heads": 6, "head_dim": 7, "d_state": 5, "groups": 3, "chunk": 5}
INNER = {"kind": "mamba1", "d_inner": 40, "d_state": 5, "dt_rank": 3, "inner_norms": True}
BESIDE = {"kind": "mamba2", "heads": 6, "head_dim": 5, "d_state": 7, "groups": 2, "d_conv": 3, "chunk": 5}
BY_HEAD = {"kind": "mamba1", "d_inner": 36, "d_state": 5, "dt_rank": 3, "heads": 2}
ZAMBA = {  # its scores are divided by the root of half a head's numbers
    "attention": {"heads": 4, "head_dim": 9, "scale": 4.5**-0.5},
    "feed_forward": gated(13, activation="gelu"),
}
ZAMBA2 = {
    "attention": {"heads": 4, "head_dim": 10, "scale": 5**-0.5},
    "feed_forward": gated(13, activation="gelu"),
    "attention_adapter_rank": 3,
    "feed_forward_adapter_rank": 3,
}
FOURS = {"kind": "mamba2", "heads": 4, "head_dim": 10, "d_state": 7, "groups": 2, "d_conv": 3, "chunk": 5}
JAMBA_EXPERTS = mixture(5, 2, gated(13), {"normalize": False})
NEMOTRON_ROUTER = {"scores": "sigmoid", "correction": "buffer", "scale": 1.5}
WRITTEN = {
    "mamba": decoder(22, rms(0.01), [{"repeat": 3, "mixer": MAMBA}], tie_embeddings=True),
    "mamba2": decoder(21, rms(0.01), [{"repeat": 3, "mixer": {**MAMBA2, "bias": True, "out_bias": True}}]),
    "jamba": decoder(
        20,
        rms(0.01),
        [
            {"name": "mamba", "mixer": INNER, "feed_forward": gated(13)},
            {"name": "sparse", "mixer": INNER, "feed_forward": JAMBA_EXPERTS},
            {"name": "attention", "attention": {"heads": 4, "kv_heads": 2}, "feed_forward": gated(13)},
            {"name": "sparse", "mixer": INNER, "feed_forward": JAMBA_EXPERTS},
        ],
    ),
    "falcon_h1": decoder(
        22,
        rms(0.01),
        [
            {
                "repeat": 2,
                "attention": {"heads": 4, "kv_heads": 2, "head_dim": 6},
                "mixer_beside": {**BESIDE, "norm_before_gate": True},
                "feed_forward": gated(13),
            }
        ],
        rope(30.0),
    ),
    "zamba": decoder(
        18,
        rms(0.01),
        [
            {"name": "hybrid", "mixer": BY_HEAD, "shared_block": ZAMBA},
            {"name": "mamba", "mixer": BY_HEAD},
            {"name": "hybrid", "mixer": BY_HEAD, "shared_block": ZAMBA},
            {"name": "mamba", "mixer": BY_HEAD},
        ],
        tie_embeddings=True,
    ),
    "zamba2": decoder(
        20,
        rms(1e-5),
        [
            {"name": "first", "mixer": FOURS, "shared_block": {**ZAMBA2, "weights": "one"}},
            {"name": "mamba", "mixer": FOURS},
            {"name": "second", "mixer": FOURS, "shared_block": {**ZAMBA2, "weights": "two"}},
            {"name": "first", "mixer": FOURS, "shared_block": {**ZAMBA2, "weights": "one"}},
        ],
        rope(30.0),
        tie_embeddings=True,
    ),
    "nemotron_h": decoder(
        22,
        rms(0.01),
        [
            {"name": "mamba", "mixer": MAMBA2},
            {
                "name": "experts",
                "feed_forward": mixture(6, 2, dense(7), NEMOTRON_ROUTER, shared=dense(11), latent_dim=9),
            },
            {"name": "attention", "attention": {"heads": 4, "kv_heads": 2, "head_dim": 6}},
            {"name": "network", "feed_forward": dense(13)},
            {"name": "mamba", "mixer": MAMBA2},
        ],
    ),
    "rwkv": decoder(
        22,
        {"kind": "layernorm", "eps": 1e-5},
        [
            {
                "repeat": 3,
                "mixer": {"kind": "rwkv", "width": 22},
                "feed_forward": {"kind": "rwkv_channel", "d_ff": 31},
            }
        ],
        embedding={"norm": {"kind": "layernorm", "eps": 1e-5}},
    ),
}
TWO_FORMS = ("mamba2", "falcon_h1", "zamba2", "nemotron_h")

# Of a parameter's name there: what becomes what in its path here, in this order.
NAMES = [
    (r"^(model|backbone|rwkv)\.", "decoder."),
    (r"^decoder\.blocks", "decoder.layers"),
    (r"^decoder\.(embed_tokens|embeddings)", "decoder.embedding"),
    (r"^decoder\.(final_layernorm|norm_f|ln_out)", "decoder.final_norm"),
    (r"^decoder\.layers\.0\.pre_ln", "decoder.embedding_norm"),
    (r"^lm_head", "head"),
    (r"(layers\.\d+)\.attention\.", r"\1.mixer."),  # RWKV's
    (r"mamba_decoder\.(mamba\.)?", r"\1"),
    (r"\.mamba\.", ".mixer."),
    (r"\.shared_transf(ormer)?\.", ".shared_block."),
    (r"\.self_attn\.", ".attention."),
    (r"shared_block\.input_layernorm", "shared_block.attention_norm"),
    (r"pre_ff_layernorm|ln2$", "feed_forward_norm"),
    (r"(layers\.\d+)\.linear", r"\1.shared_block.linear"),
    (r"(layers\.\d+)\.(norm|input_layernorm|ln1)$", r"\1.mixer_norm"),
    (r"in_proj", "input"),
    (r"(out_proj|o_proj)", "output"),
    (r"x_proj(_weight)?", "selection"),
    (r"dt_proj(_weight)?", "dt"),
    (r"conv1d", "conv"),
    (r"A_log", "a_log"),
    (r"\.D$", ".d"),
    (r"(dt|b|c)_layernorm", r"\1_norm"),
    (r"e_score_correction", "router_correction"),
    (r"mixer\.gate$", "mixer.router"),
    (r"mixer\.gate\.", "mixer."),
    (r"shared_experts\.", "shared."),
    (r"fc1_latent_proj", "latent_down"),
    (r"fc2_latent_proj", "latent_up"),
    (r"\.(gate|up|down|q|k|v)_proj$", r".\1"),
    (r"time_mix_([kvr])\w+", r"mix_\1"),
    (r"\.(key|value|receptance)$", lambda found: f".{found[1][0]}"),
]

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


def path_of(name, theirs):
    """(path without "_bias", that ending or nothing)."""
    stem, ending = re.fullmatch(r"(.+?)([._]bias|\.weight)?", theirs).groups()
    if theirs.endswith("mixer.dt_bias") or theirs.endswith("mamba.dt_bias"):
        stem, ending = theirs, None
    for pattern, ours in NAMES:
        stem = re.sub(pattern, ours, stem)
    layer = re.match(r"decoder\.layers\.(\d+)", stem)
    if layer and name in ("jamba", "falcon_h1", "nemotron_h"):
        some = WRITTEN[name]["layers"][0 if name == "falcon_h1" else int(layer[1])]
        part = next(part for part in ("mixer", "attention", "feed_forward") if part in some)
        if name == "falcon_h1":
            stem = stem.replace(".mixer.", ".mixer_beside.")
        stem = re.sub(r"\.mixer(\.|_norm)", rf".{part}\1", stem)
    return stem, "_bias" if ending in (".bias", "_bias") and not stem.endswith("router_correction") else ""


def adapter(path):
    """Of the n-th layer that has a shared block, where our path of one of its adapters is."""
    layer_of = {"0": 0, "1": 2, "2": 3}
    found = re.fullmatch(r"decoder\.layers\.\d\.shared_block\.\w+\.(?:linear_)?(\w+)_adapter_list\.(\d)\.([01])", path)
    part = {"gate_up_proj": "gate_up"}.get(found[1], found[1])
    return f"decoder.layers.{layer_of[found[2]]}.shared_block.adapters.{part}_{('down', 'up')[int(found[3])]}"


def taken_apart(name, path, ending, values):
    """Our arrays, by path, of one of theirs that may hold several; and (inputs, outputs) of (outputs, inputs)."""
    stem, _, part = path.rpartition(".")
    if "adapter_list" in path:
        return {adapter(path): values.T}
    if part == "conv" and not ending:
        return {path: values.swapaxes(1, 2)}  # (C, taps, 1)
    if part in ("selection", "dt") and not ending:
        return {path: values.reshape(-1, *values.shape[-2:]).swapaxes(1, 2)}  # of each head (inputs, outputs)
    if part in ("a_log", "d", "dt", "mix_k", "mix_v", "mix_r"):
        flat = values.reshape(-1, values.shape[-1]) if part == "a_log" and name not in TWO_FORMS else values.ravel()
        return {path + ending: flat}
    if name == "zamba" and part == "input":
        return {path: np.concatenate([values[::2], values[1::2]]).T}  # rows of x and of the gate go by turns
    if part == "gate_up_proj":
        gate, up = np.split(values.swapaxes(-1, -2), 2, axis=-1)
        return {f"{stem}.gate": gate, f"{stem}.up": up}
    turns = values.ndim > 1 and not ending and path not in ("decoder.embedding", "head")
    return {path + ending: values.swapaxes(-1, -2) if turns else values}


@cache
def weights(name):
    """The recorded parameters under our paths."""
    ours = {}
    for theirs, values in recorded(name)[3].items():
        ours |= taken_apart(name, *path_of(name, theirs), values)
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


@pytest.mark.parametrize("parts", [[TOKENS], [2, 5, 1, 5]])
@pytest.mark.parametrize("name", TWO_FORMS)
def test_logits_chunk_by_chunk_are_those_of_the_real_class(name, parts):
    assert apart(name, answered(name, fields_of(name), parts, chunked=True)[0]) < CLOSE


@pytest.mark.parametrize("name", WRITTEN)
def test_what_an_importer_reads_gives_the_same_logits(name):
    fields = costcalc.load(recorded(name)[0]).model_dump()
    assert apart(name, answered(name, fields)[0]) < CLOSE


@pytest.mark.parametrize("name", WRITTEN)
def test_every_recorded_parameter_is_used_and_counted(name):
    """A router's correction, which is a buffer there, too."""
    _, tape = answered(name, fields_of(name))
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    held = costcalc.parameters(costcalc.load(WRITTEN[name]))
    assert held.total + held.buffers == sum(values.size for values in recorded(name)[3].values())


def test_the_parameters_of_one_class_by_hand():
    """Zamba-2: a table 61·20, a last gain, four layers of Mamba-2, two shared blocks, three layers that have adapters.

    Mamba-2: a gain 20, 20 to 2·40 + 2·14 + 4 = 112, 68·3 taps and 68, three times 4, a gain 40, 40·20: 3,384. A block:
    gains 40 and 20, 3·40·40 + 40·20, 3·20·13: 6,440. Of a layer's own: 20·20, 3·2·40·3 + 20·3 + 3·26: 1,258.
    """
    held = costcalc.parameters(costcalc.load(WRITTEN["zamba2"]))
    assert held.total == 1_220 + 20 + 4 * 3_384 + 2 * 6_440 + 3 * 1_258


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("mamba", "activation", "silu", "relu"),
        ("mamba", "inner_norms", False, "without_gain"),
        ("mamba2", "eps", 0.01, 1e-6),
        ("mamba2", "norm_before_gate", False, True),
        ("mamba2", "activation", "silu", "gelu_tanh"),
        ("jamba", "inner_norms", True, "without_gain"),
        ("jamba", "eps", 0.01, 1e-6),
        ("falcon_h1", "norm_before_gate", True, False),
        ("falcon_h1", "gated_norm", True, False),
        ("falcon_h1", "theta", 30.0, 1e4),
        ("zamba", "scale", 4.5**-0.5, None),
        ("zamba", "activation", "gelu", "silu"),
        ("zamba2", "theta", 30.0, 1e4),
        ("zamba2", "scale", 5**-0.5, None),
        ("nemotron_h", "normalize", True, False),
        ("nemotron_h", "scale", 1.5, 1.0),
        ("rwkv", "eps", 1e-5, 0.01),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    changed = with_every(fields_of(name), key, old, new)
    assert apart(name, answered(name, changed)[0]) > SHOWS


@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_of_a_first_layer_shows(name):
    """Negated, each moves the logits; and each of RWKV's network, of adapters, and of experts on fewer numbers."""
    fields, given = fields_of(name), weights(name)
    paths = [path for path in given if path.startswith("decoder.layers.0.") or "adapters" in path or "latent" in path]
    for path in paths:
        assert apart(name, answered(name, fields, given={**given, path: -given[path]})[0]) > SHOWS, path


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_held_does_not_grow_but_keys_and_values_do(name):
    held = []
    for tokens in (3, TOKENS):
        request, tape = Request(), Tape(Given(weights(name)))
        forward(fields_of(name), recorded(name)[1][:, :tokens], tape=tape, request=request)
        held.append({path: size for path, size in tape.cached.items() if tape.cached_kinds[path] == "state"})
        cache = costcalc.kv_cache(costcalc.load(WRITTEN[name]), tokens, batch=2)
        assert sum(held[-1].values()) == cache.state_elements
        assert sum(tape.cached.values()) == cache.state_elements + cache.elements
    assert held[0] == held[1]
