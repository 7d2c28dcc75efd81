"""Linear attention, convolutions, gated recurrences: logits of real classes, recorded in tests/oracle/forward/."""

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
"""The classes themselves, in float32, are 5e-7 to 7e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3


def rms(eps):
    return {"kind": "rmsnorm", "eps": eps}


def rope(theta, rotary_dim=None):
    return {"kind": "rope", "theta": theta, "rotary_dim": rotary_dim}


def gated(d_ff, **more):
    return {"kind": "gated", "d_ff": d_ff, **more}


def mixture(experts, chosen, expert, router=(), **more):
    router = {"router": dict(router)}
    return {"kind": "mixture", "experts": experts, "experts_per_token": chosen, "expert": expert, **router, **more}


def decoder(d_model, norm, positions, layers, **top):
    return {"vocab_size": 61, "d_model": d_model, "norm": norm, "positions": positions, "layers": layers, **top}


# What their config.json files say, by hand.
NEXT = {
    "kind": "gated_delta",
    "heads": 4,
    "key_heads": 2,
    "key_dim": 6,
    "value_dim": 5,
    "d_conv": 3,
    "chunk": 5,  # 64 in the class: any other gives the same
}
NEXT_ATTENTION = {
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 8,
    "qk_norm": {"kind": "per_head", "norm": rms(0.01)},
    "output_gate": "per_channel",
}
NEXT_EXPERTS = mixture(5, 2, gated(7), shared=gated(11), shared_gate=True)
KIMI = {
    "kind": "gated_delta",
    "heads": 3,
    "key_dim": 5,
    "value_dim": 5,
    "decay": "per_channel",
    "decay_rank": 5,
    "gate_rank": 5,
    "gate_activation": "sigmoid",
    "chunk": 4,
}
# Its latents are normed with the class's own 1e-6, whatever the config says.
LATENT = {"kind": "latent", "heads": 3, "q_rank": None, "kv_rank": 9, "nope_dim": 5, "rope_dim": 4, "v_dim": 7}
LATENT["norm"] = rms(1e-6)
KIMI_ROUTER = {"scores": "sigmoid", "correction": "buffer", "scale": 1.5}
KIMI_EXPERTS = mixture(6, 2, gated(7), KIMI_ROUTER, shared=gated(7))
LIGHTNING = {"kind": "lightning", "heads": 4, "head_dim": 6, "chunk": 5}
MINIMAX = {"heads": 4, "kv_heads": 2, "head_dim": 6}
GRIFFIN = {"kind": "rg_lru", "width": 33, "heads": 3}
LOCAL = {"heads": 3, "kv_heads": 1, "head_dim": 8, "window": 4, "out_bias": True}
SHORT = {"kind": "short_conv", "bias": True}
WRITTEN = {
    "qwen3_next": decoder(
        22,
        rms(0.01),
        rope(30.0, 4),
        [
            {"name": "delta", "mixer": NEXT, "feed_forward": NEXT_EXPERTS},
            {"name": "dense", "attention": NEXT_ATTENTION, "feed_forward": gated(13)},
            {"name": "delta", "mixer": NEXT, "feed_forward": NEXT_EXPERTS},
            {"name": "sparse", "attention": NEXT_ATTENTION, "feed_forward": NEXT_EXPERTS},
        ],
    ),
    "kimi_linear": decoder(
        22,
        rms(0.01),
        "none",
        [
            {"name": "dense", "mixer": KIMI, "feed_forward": gated(13)},
            {"name": "latent", "attention": LATENT, "feed_forward": KIMI_EXPERTS},
            {"name": "sparse", "mixer": KIMI, "feed_forward": KIMI_EXPERTS},
            {"name": "dense", "mixer": KIMI, "feed_forward": gated(13)},
        ],
    ),
    # Its residual is what was normed: what comes into a norm goes no further, as with norms behind each sum.
    "minimax": decoder(
        22,
        rms(1e-6),
        rope(30.0),
        [
            {"name": "full", "attention": MINIMAX},
            {"name": "lightning", "repeat": 2, "mixer": LIGHTNING},
            {"name": "full", "attention": MINIMAX},
        ],
        block={"norms": "post", "feed_forward": mixture(5, 2, gated(11))},
        embedding={"norm": rms(1e-6)},
    ),
    "lfm2": decoder(
        24,
        rms(0.01),
        rope(30.0),
        [
            {"name": "short", "mixer": SHORT},
            {
                "name": "full",
                "attention": {"heads": 4, "kv_heads": 2, "qk_norm": {"kind": "per_head", "norm": rms(0.01)}},
            },
            {"name": "short", "mixer": SHORT},
        ],
        block={"feed_forward": gated(13)},
        tie_embeddings=True,
    ),
    "recurrent_gemma": decoder(
        25,
        rms(0.05),
        rope(30.0, 4),
        [
            {"name": "recurrent", "mixer": GRIFFIN},
            {"name": "local", "attention": LOCAL},
            {"name": "recurrent", "mixer": GRIFFIN},
        ],
        block={"feed_forward": gated(13, activation="gelu_tanh", bias=True)},
        embedding={"scale": 5.0},
        head={"softcap": 3.0},
        tie_embeddings=True,
    ),
    "xlstm": decoder(
        32,
        rms(0.01),
        "none",
        [
            {
                "repeat": 2,
                "mixer": {"kind": "mlstm", "heads": 4, "qk_dim": 16, "v_dim": 32, "gate_softcap": 2.0},
                "feed_forward": gated(52),
            }
        ],
        head={"softcap": 3.0},
    ),
}
LAYERS = {"qwen3_next": "mama", "kimi_linear": "mamm", "minimax": "amma", "lfm2": "mam", "recurrent_gemma": "mam"}
"""Of each layer: a mixer, or attention."""
TWO_FORMS = ("qwen3_next", "kimi_linear", "minimax")
RUNS = [(name, chunked) for name in WRITTEN for chunked in ((False, True) if name in TWO_FORMS else (False,))]

# Of a parameter's name there: what becomes what in its path here, in this order.
NAMES = [
    (r"^(model\.layers|backbone\.blocks)\.", "decoder.layers."),
    (r"^(model\.embed_tokens|backbone\.embeddings)", "decoder.embedding"),
    (r"^(model\.norm|model\.embedding_norm|model\.final_norm|backbone\.out_norm)", "decoder.final_norm"),
    (r"^lm_head", "head"),
    (r"\.(linear_attn|self_attn|temporal_block|mlstm_layer)\.(forget_gate\.|rg_lru\.)?", ".mixes."),
    (r"(\.\d+)\.conv\.", r"\1.mixes."),
    (r"mixes\.(conv1d|conv_1d)", "mixes.conv"),
    (r"mixes\.(o_proj|out_proj|linear_out)", "mixes.output"),
    (r"mixes\.([qkv])_proj", r"mixes.\1"),
    (r"mixes\.(in_proj|linear_x)$", "mixes.input"),
    (r"mixes\.(linear_y|output_gate|ogate_preact)", "mixes.gate"),
    (r"mixes\.(o_norm|multihead_norm)", "mixes.norm"),
    (r"mixes\.([qk])_layernorm", r"mixes.\1_norm"),
    (r"A_log", "a_log"),
    (r"recurrent_param", "a"),
    (r"recurrent_gate", "recurrence_gate"),
    (r"igate_preact", "input_gate"),
    (r"fgate_preact", "forget_gate"),
    (r"b_proj", "beta"),
    (r"f_a_proj", "decay_down"),
    (r"f_beta", "decay_up"),
    (r"g_a_proj", "gate_down"),
    (r"g_beta", "gate_up"),
    (r"kv_a_proj_with_mqa", "kv_down"),
    (r"kv_a_layernorm", "kv_norm"),
    (r"\.(mlp|mlp_block|ffn)\.", ".feed_forward."),
    (r"feed_forward\.gate\.e_score_correction", "feed_forward.router_correction"),
    (r"feed_forward\.gate$", "feed_forward.router"),
    (r"shared_experts?\.", "shared."),
    (r"shared_expert_gate", "shared_gate"),
    (r"feed_forward\.(proj_up_gate|w1)$", "feed_forward.gate"),
    (r"feed_forward\.(proj_up|w3)$", "feed_forward.up"),
    (r"feed_forward\.(proj_down|w2)$", "feed_forward.down"),
    (r"\.(gate|up|down)_proj$", r".\1"),
    (r"(post_attention_layernorm|ffn_norm|channel_pre_norm|norm_ffn)$", "feed_forward_norm"),
    (r"(input_layernorm|operator_norm|temporal_pre_norm|norm_mlstm)$", "mixes_norm"),
]
BEHIND = [  # the norms of MiniMax, as they stand with norms behind each sum
    (r"^model\.layers\.0\.input_layernorm", "decoder.embedding_norm"),
    (r"^model\.layers\.(\d)\.input_layernorm", lambda found: f"decoder.layers.{int(found[1]) - 1}.feed_forward_norm"),
    (r"^model\.norm", "decoder.layers.3.feed_forward_norm"),
    (r"post_attention_layernorm", "mixes_norm"),
]
ONE_IS_ADDED = ("qwen3_next", "recurrent_gemma")
"""Classes that store their gains without the 1 that they add, but for the gated norm of Qwen3-Next."""

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
    stem, ending = re.fullmatch(r"(.+?)([._]bias|[._]weight)?", theirs).groups()
    if theirs.endswith("dt_bias"):
        stem, ending = theirs, None
    for pattern, ours in [*(BEHIND if name == "minimax" else ()), *NAMES]:
        stem = re.sub(pattern, ours, stem)
    layer = re.match(r"decoder\.layers\.(\d+)", stem)
    if layer:
        kind = LAYERS.get(name, "mm")[int(layer[1])]
        stem = stem.replace("mixes", {"m": "mixer", "a": "attention"}[kind])
    is_bias = ending in (".bias", "_bias") and not stem.endswith("router_correction")
    return stem, "_bias" if is_bias else ""


def rows_of(stem, values, sizes):
    """{path: (inputs, outputs)} of rows that go by turns, of each of some heads so many for each name."""
    heads = len(values) // sum(sizes.values())
    split = np.split(values.reshape(heads, -1, values.shape[1]), np.cumsum(list(sizes.values()))[:-1], axis=1)
    return {f"{stem}.{one}": some.reshape(-1, values.shape[1]).T for one, some in zip(sizes, split, strict=True)}


# What is one matrix there, and of each head so many rows of each of ours.
TOGETHER = {
    "in_proj_qkvz": {"q": 6, "k": 6, "v": 10, "gate": 10},  # of two key heads, each with two value heads of 5
    "in_proj_ba": {"beta": 2, "decay": 2},
    "qkv_proj": {"q": 6, "k": 6, "v": 6},
    "kv_beta": {"k_up": 5, "v_up": 7},
}


def taken_apart(name, path, ending, values):
    """Our arrays, by path, of one of theirs that may hold several; and (inputs, outputs) of (outputs, inputs)."""
    stem, _, part = path.rpartition(".")
    if part in TOGETHER:
        return rows_of(stem, values, TOGETHER[part])
    if name == "qwen3_next" and path.endswith("attention.q"):
        return rows_of(stem, values, {"q": 8, "gate": 8})
    if part == "conv" and not ending:
        return {path: values.swapaxes(1, 2)}  # (C, taps, 1)
    if part in ("input_gate", "recurrence_gate") and values.ndim > 1:
        return {path + ending: values.ravel() if ending else values if values.ndim == 3 else values.T}
    if "experts" in path and values.ndim == 3:
        values = values.swapaxes(1, 2)  # (E, inputs, outputs)
        gate_and_up = zip(("gate", "up"), np.split(values, 2, axis=-1), strict=True)
        return {f"{stem}.{one}": some for one, some in gate_and_up} if part == "gate_up_proj" else {path: values}
    if part == "a_log":
        return {path: values.ravel()}
    if name in ONE_IS_ADDED and part.endswith("norm") and not path.endswith("mixer.norm"):
        return {path: 1 + values}
    turns = values.ndim == 2 and not ending and path not in ("decoder.embedding", "head")
    return {path + ending: values.T if turns else values}


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
def test_every_recorded_parameter_is_used_and_counted(name):
    """A router's correction, which is a buffer there, too."""
    _, tape = answered(name, fields_of(name))
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    held = costcalc.parameters(costcalc.load(WRITTEN[name]))
    assert held.total + held.buffers == sum(values.size for values in recorded(name)[3].values())


def test_the_parameters_of_one_class_by_hand():
    """Qwen3-Next: two tables 61·22, a last gain, four layers with two gains of 22 each.

    Gated delta: q and k 22·12 each, v and gate 22·20, beta and decay 22·4, dt_bias and a_log 4, 44·3 taps, a gain 5,
    output 20·22: 2,169. Attention: q and gate 22·32, k and v 22·16, two gains 8, output 32·22: 2,832. Dense 3·22·13.
    Experts 5·3·22·7, a shared one 3·22·11, its gate 22, a router 22·5: 3,168.
    """
    held = costcalc.parameters(costcalc.load(WRITTEN["qwen3_next"]))
    assert held.total == 2 * 1_342 + 22 + 4 * 44 + 2 * 2_169 + 2 * 2_832 + 858 + 3 * 3_168


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("qwen3_next", "double_beta", False, True),
        ("qwen3_next", "gate_activation", "silu", "sigmoid"),
        ("qwen3_next", "activation", "silu", "relu"),
        ("qwen3_next", "eps", 0.01, 1e-6),
        ("kimi_linear", "gate_activation", "sigmoid", "silu"),
        ("kimi_linear", "eps", 0.01, 1e-6),
        ("minimax", "activation", "silu", "gelu_tanh"),
        ("recurrent_gemma", "activation", "gelu_tanh", "silu"),
        ("recurrent_gemma", "window", 4, 5),
        ("recurrent_gemma", "softcap", 3.0, None),
        ("xlstm", "gate_softcap", 2.0, None),
        ("xlstm", "eps", 0.01, 1e-6),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    changed = with_every(fields_of(name), key, old, new)
    assert apart(name, answered(name, changed)[0]) > SHOWS


@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_of_a_mixer_shows(name):
    """Negated, each moves the logits."""
    fields, given = fields_of(name), weights(name)
    paths = [path for path in given if path.startswith("decoder.layers.0.mixer.")]
    paths = paths or [path for path in given if path.startswith("decoder.layers.1.mixer.")]
    assert len(paths) > 4
    for path in paths:
        assert apart(name, answered(name, fields, given={**given, path: -given[path]})[0]) > SHOWS, path


@pytest.mark.parametrize(("name", "chunked"), RUNS)
def test_what_is_held_does_not_grow_but_keys_and_values_do(name, chunked):
    held = []
    for parts in ((3,), (TOKENS,)):
        request, tape = Request(), Tape(Given(weights(name)))
        forward(fields_of(name), recorded(name)[1][:, : parts[0]], tape=tape, request=request, chunked=chunked)
        held.append({path: size for path, size in tape.cached.items() if tape.cached_kinds[path] == "state"})
        cache = costcalc.kv_cache(costcalc.load(WRITTEN[name]), parts[0], batch=2)
        assert sum(held[-1].values()) == cache.state_elements
        assert sum(tape.cached.values()) == cache.state_elements + cache.elements
    assert held[0] == held[1]
