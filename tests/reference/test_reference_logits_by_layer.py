"""Mixtures, latent attention, attention by layer: logits of real classes, recorded in tests/oracle/forward/."""

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
"""The classes themselves, in float32, are 2e-7 to 1e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3
AS_IN_THE_FIRST_LAYER = "the value that the first layer has"


def rms(eps, **more):
    return {"kind": "rmsnorm", "eps": eps, **more}


def rope(theta):
    return {"kind": "rope", "theta": theta}


def gated(d_ff, **more):
    return {"kind": "gated", "d_ff": d_ff, **more}


def mixture(experts, chosen, expert, router=(), **more):
    return {
        "kind": "mixture",
        "experts": experts,
        "experts_per_token": chosen,
        "expert": expert,
        "router": dict(router),
        **more,
    }


def decoder(d_model, norm, positions, layers, **top):
    return {"vocab_size": 61, "d_model": d_model, "norm": norm, "positions": positions, "layers": layers, **top}


# What their config.json files say, by hand.
QWEN = {"heads": 4, "kv_heads": 2, "bias": True}
QWEN_EXPERTS = mixture(6, 2, gated(7), {"normalize": False}, shared=gated(11), shared_gate=True)
LATENT = {"kind": "latent", "heads": 3, "q_rank": 11, "kv_rank": 9, "nope_dim": 5, "rope_dim": 4, "v_dim": 7}
V3 = {**LATENT, "bias": True, "out_bias": True}
V3_ROUTER = {"scores": "sigmoid", "correction": "buffer", "groups": 4, "groups_per_token": 2, "scale": 2.5}
V2 = {**LATENT, "q_rank": None, "kv_rank": 8, "nope_dim": 6}
V2_ROUTER = {"normalize": False, "groups": 3, "groups_per_token": 2, "scale": 1.5}
OSS = {"heads": 6, "kv_heads": 2, "head_dim": 6, "bias": True, "out_bias": True, "sinks": True}
OSS_LOCAL = {**OSS, "window": 4}
OSS_EXPERT = gated(7, activation="quick_gelu", limit=0.7, up_shift=1.0, bias=True)
OSS_EXPERTS = mixture(5, 2, OSS_EXPERT, {"scores": "softmax_of_chosen", "bias": True})
GEMMA = {
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 10,
    "scale": 7**-0.5,
    "qk_norm": {"kind": "per_head", "norm": rms(0.05)},
}
GEMMA_LOCAL = {"attention": {**GEMMA, "window": 4}, "positions": rope(20.0)}
LLAMA4 = {"heads": 6, "kv_heads": 2, "head_dim": 6}
LLAMA4_LOCAL = {**LLAMA4, "chunk": 5, "qk_norm": {"kind": "per_head", "norm": rms(0.01, weight=False)}}
LLAMA4_ROUTER = {"scores": "sigmoid", "normalize": False, "weigh": "inputs"}
LLAMA4_EXPERTS = mixture(4, 2, gated(7), LLAMA4_ROUTER, shared=gated(7), dispatch="all")
COHERE = {"heads": 6, "kv_heads": 2}
COHERE_LOCAL = {"attention": {**COHERE, "window": 4}, "positions": rope(20.0)}
NEO = {"heads": 4, "out_bias": True, "scale": 1.0}
NEO_LOCAL = {**NEO, "window": 4}
WRITTEN = {
    "mixtral": decoder(
        23,
        rms(0.01),
        rope(50.0),
        [
            {
                "repeat": 2,
                "attention": {"heads": 6, "kv_heads": 2, "head_dim": 6},
                "feed_forward": mixture(7, 3, gated(11)),
            }
        ],
    ),
    "qwen2_moe": decoder(
        24,
        rms(0.01),
        rope(30.0),
        [
            {"name": "first", "attention": QWEN, "feed_forward": QWEN_EXPERTS},
            {"name": "dense", "attention": QWEN, "feed_forward": gated(13)},
            {"name": "first", "attention": QWEN, "feed_forward": QWEN_EXPERTS},
        ],
    ),
    "deepseek_v3": decoder(
        24,
        rms(0.01),
        rope(20.0),
        [
            {"name": "dense", "attention": V3, "feed_forward": gated(13)},
            {"repeat": 2, "attention": V3, "feed_forward": mixture(8, 3, gated(7), V3_ROUTER, shared=gated(7))},
        ],
    ),
    "deepseek_v2": decoder(
        24,
        rms(0.01),
        rope(20.0),
        [{"repeat": 2, "attention": V2, "feed_forward": mixture(9, 3, gated(7), V2_ROUTER, shared=gated(14))}],
    ),
    "minicpm3": decoder(
        24,
        rms(0.01),
        rope(20.0),
        [{"repeat": 3, "residual_scale": 1.4 / 3**0.5, "attention": LATENT, "feed_forward": gated(13)}],
        embedding={"scale": 2.0},
        head={"scale": 11 / 24},
        tie_embeddings=True,
    ),
    "gpt_oss": decoder(
        22,
        rms(0.01),
        rope(50.0),
        [
            {"name": "local", "attention": OSS_LOCAL, "feed_forward": OSS_EXPERTS},
            {"name": "global", "attention": OSS, "feed_forward": OSS_EXPERTS},
            {"name": "local", "attention": OSS_LOCAL, "feed_forward": OSS_EXPERTS},
        ],
    ),
    "gemma3_text": decoder(
        24,
        rms(0.05),
        rope(70.0),
        [
            {"name": "local", "repeat": 2, **GEMMA_LOCAL},
            {"name": "global", "attention": GEMMA},
            {"name": "local", **GEMMA_LOCAL},
        ],
        block={"norms": "sandwich", "feed_forward": gated(13, activation="gelu_tanh")},
        embedding={"scale": 24**0.5},
        tie_embeddings=True,
    ),
    "falcon": decoder(
        30,
        {"kind": "layernorm", "eps": 0.01},
        rope(20.0),
        [
            {
                "repeat": 3,
                "parallel": "one_norm",
                "attention": {"heads": 5, "kv_heads": 1},
                "feed_forward": {"kind": "dense", "d_ff": 37, "activation": "gelu"},
            }
        ],
        tie_embeddings=True,
    ),
    "falcon_new": decoder(
        36,
        {"kind": "layernorm", "eps": 0.01},
        rope(20.0),
        [
            {
                "repeat": 2,
                "parallel": "two_norms",
                "attention": {"heads": 6, "kv_heads": 2, "bias": True, "out_bias": True},
                "feed_forward": {"kind": "dense", "d_ff": 31, "activation": "relu", "bias": True},
            }
        ],
        tie_embeddings=True,
    ),
    "llama4_text": decoder(
        22,
        rms(0.01),
        rope(50.0),
        [
            {"name": "dense", "attention": LLAMA4_LOCAL, "feed_forward": gated(13)},
            {"name": "sparse", "attention": LLAMA4_LOCAL, "feed_forward": LLAMA4_EXPERTS},
            {"name": "whole", "attention": LLAMA4, "positions": "none", "feed_forward": gated(13)},
            {"name": "sparse", "attention": LLAMA4_LOCAL, "feed_forward": LLAMA4_EXPERTS},
        ],
    ),
    "cohere2": decoder(
        24,
        {"kind": "layernorm", "eps": 0.01, "bias": False},
        "none",
        [
            {"name": "local", "repeat": 2, **COHERE_LOCAL},
            {"name": "whole", "attention": COHERE},
            {"name": "local", **COHERE_LOCAL},
        ],
        block={"parallel": "one_norm", "feed_forward": gated(13)},
        head={"scale": 0.25},
        tie_embeddings=True,
    ),
    "gpt_neo": decoder(
        24,
        {"kind": "layernorm", "eps": 0.01},
        {"kind": "learned", "length": 17},
        [{"name": "global", "attention": NEO}, {"name": "local", "repeat": 2, "attention": NEO_LOCAL}],
        block={"feed_forward": {"kind": "dense", "d_ff": 31, "activation": "gelu_new", "bias": True}},
        tie_embeddings=True,
    ),
}
LATENTS = ("deepseek_v3", "deepseek_v2", "minicpm3")
FORMS = [(name, form) for name in WRITTEN for form in (("expanded", "absorbed", None) if name in LATENTS else (None,))]

# Of a parameter's name there: what becomes what in its path here, in this order.
NAMES = [
    (r"^(model|transformer)\.(layers|h)\.", "decoder.layers."),
    (r"^model\.embed_tokens|^transformer\.(wte|word_embeddings)", "decoder.embedding"),
    (r"^transformer\.wpe", "decoder.positions"),
    (r"^(model\.norm|transformer\.ln_f)", "decoder.final_norm"),
    (r"^lm_head", "head"),
    (r"self_attn|self_attention|attn\.attention", "attention"),
    (r"attention\.(o_proj|out_proj|dense)", "attention.output"),
    (r"attention\.([qkv])_proj", r"attention.\1"),
    (r"q_a_proj", "q_down"),
    (r"q_a_layernorm", "q_norm"),
    (r"q_b_proj", "q_up"),
    (r"kv_a_proj_with_mqa", "kv_down"),
    (r"kv_a_layernorm", "kv_norm"),
    (r"\.mlp\.", ".feed_forward."),
    (r"feed_forward\.gate\.e_score_correction", "feed_forward.router_correction"),
    (r"feed_forward\.gate$", "feed_forward.router"),
    (r"shared_experts?\.", "shared."),
    (r"shared_expert_gate", "shared_gate"),
    (r"\.(gate|up|down)_proj$", r".\1"),
    (r"feed_forward\.(c_fc|dense_h_to_4h)", "feed_forward.up"),
    (r"feed_forward\.(c_proj|dense_4h_to_h)", "feed_forward.down"),
    (r"pre_feedforward_layernorm", "feed_forward_norm"),
    (r"post_feedforward_layernorm", "feed_forward_output_norm"),
    (r"input_layernorm|ln_1|ln_attn", "attention_norm"),
    (r"post_attention_layernorm|ln_2|ln_mlp", "feed_forward_norm"),
]
RENAMED = {  # of these classes first, where a norm of the same name stands elsewhere
    "falcon": [("input_layernorm", "norm")],
    "cohere2": [("input_layernorm", "norm")],
    "gemma3_text": [("post_attention_layernorm", "attention_output_norm")],
}
NEIGHBOURS = {"deepseek_v3": 4, "deepseek_v2": 4, "llama4_text": 6, "cohere2": 4}
"""Classes whose rotation pairs neighbours, and how many numbers of a head, the last ones, it turns."""

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
    for pattern, ours in [*RENAMED.get(name, ()), *NAMES]:
        stem = re.sub(pattern, ours, stem)
    is_bias = ending in (".bias", "_bias") and not stem.endswith("router_correction")
    return stem, "_bias" if is_bias else ""


def halves(values, count):
    """Rows whose last `count` of each head are neighbours in pairs: the first of each pair, and then the second."""
    order = [*range(0, count, 2), *range(1, count, 2)]
    return np.concatenate([values[..., : values.shape[-1] - count], values[..., -count:][..., order]], axis=-1)


def by_head(values, heads, count):
    return halves(values.reshape(*values.shape[:-1], heads, -1), count).reshape(values.shape)


def taken_apart(name, path, ending, values):
    """Our arrays, by path, of one of theirs that holds several; and (inputs, outputs) of (outputs, inputs)."""
    stem, _, part = path.rpartition(".")
    of_experts = "experts" in path and values.ndim == 3
    if of_experts and name not in ("gpt_oss", "llama4_text"):
        values = values.swapaxes(1, 2)  # (E, inputs, outputs)
    if part == "query_key_value":  # of each key head: its queries, a key, a value
        heads, kv_heads = (5, 1) if name == "falcon" else (6, 2)
        split = values.reshape(kv_heads, heads // kv_heads + 2, -1, *values.shape[1:])
        rows = {"q": split[:, :-2], "k": split[:, -2], "v": split[:, -1]}
        return {f"{stem}.{one}{ending}": some.reshape(-1, *values.shape[1:]).T for one, some in rows.items()}
    if part == "kv_b_proj":  # of each of three heads: keys, then values of 7
        split = values.reshape(3, -1, values.shape[1])
        rows = {"k_up": split[:, :-7], "v_up": split[:, -7:]}
        return {f"{stem}.{one}": some.reshape(-1, values.shape[1]).T for one, some in rows.items()}
    if part == "gate_up_proj":  # beside each other, or by turns
        gate, up = np.split(values, 2, axis=-1) if name != "gpt_oss" else (values[..., ::2], values[..., 1::2])
        return {f"{stem}.gate{ending}": gate, f"{stem}.up{ending}": up}
    if name == "gemma3_text" and values.ndim == 1:
        return {path: 1 + values}  # stored without the 1 that the class adds
    turns = values.ndim == 2 and not ending and path not in ("decoder.embedding", "decoder.positions", "head")
    return {path + ending: values.T if turns else values}


@cache
def weights(name):
    """The recorded parameters under our paths."""
    ours, turned = {}, NEIGHBOURS.get(name)
    for theirs, values in recorded(name)[3].items():
        ours |= taken_apart(name, *path_of(name, theirs), values)
    if turned is not None:
        for path, values in ours.items():
            part = path.rpartition(".")[2].removesuffix("_bias")
            if name in LATENTS and part in ("q", "q_up"):
                ours[path] = by_head(values, 3, turned)
            elif part == "kv_down":
                ours[path] = halves(values, turned)
            elif part in ("q", "k") and name not in LATENTS:
                ours[path] = by_head(values, 6 if part == "q" else 2, turned)
    return {path: np.ascontiguousarray(values) for path, values in ours.items()}


def answered(name, fields, parts=(TOKENS,), given=None, **form):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    return fed(fields, recorded(name)[1], parts, weights(name) if given is None else given, **form)


def apart(name, logits):
    return share_apart(recorded(name)[2], logits)


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize(("name", "latent"), FORMS)
def test_logits_are_those_of_the_real_class(name, latent, parts):
    logits, _ = answered(name, fields_of(name), parts, latent=latent)
    assert logits.dtype == np.float32
    assert apart(name, logits) < CLOSE


@pytest.mark.parametrize("name", WRITTEN)
def test_what_an_importer_reads_gives_the_same_logits(name):
    fields = costcalc.load(recorded(name)[0]).model_dump()
    for parts in SPLITS.values():
        assert apart(name, answered(name, fields, parts)[0]) < CLOSE


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
    """DeepSeek-V3: two tables 61·24, a last gain, three layers of which two have experts.

    Attention: q_down 24·11 + 11, a gain 11, q_up 11·27, kv_down 24·13 + 13, a gain 9, k_up 9·15, v_up 9·21, output
    21·24 + 24: 1,769. Gains 2·24. Dense 3·24·13. Experts 8·3·24·7, a shared one 3·24·7, a router 24·8: 4,728, and a
    correction of 8.
    """
    held = costcalc.parameters(costcalc.load(WRITTEN["deepseek_v3"]))
    assert held.total == 2 * 1_464 + 24 + 3 * (1_769 + 48) + 936 + 2 * 4_728
    assert held.buffers == 2 * 8


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("mixtral", "normalize", True, False),
        ("mixtral", "scores", "softmax", "sigmoid"),
        ("mixtral", "experts_per_token", 3, 2),
        ("qwen2_moe", "normalize", False, True),
        ("qwen2_moe", "shared_gate", True, False),
        ("qwen2_moe", "scores", "softmax", "softmax_of_chosen"),
        ("deepseek_v3", "correction", "buffer", False),
        ("deepseek_v3", "scores", "sigmoid", "softmax"),
        ("deepseek_v3", "groups_per_token", 2, 3),
        ("deepseek_v3", "groups", 4, 1),
        ("deepseek_v3", "scale", 2.5, 1.0),
        ("deepseek_v2", "groups", 3, 1),
        ("deepseek_v2", "groups_per_token", 2, 1),
        ("minicpm3", "residual_scale", 1.4 / 3**0.5, 1.0),
        ("gpt_oss", "sinks", True, False),
        ("gpt_oss", "window", 4, 5),
        ("gpt_oss", "window", None, 4),
        ("gpt_oss", "limit", 0.7, None),
        ("gpt_oss", "up_shift", 1.0, 0.0),
        ("gpt_oss", "scores", "softmax_of_chosen", "sigmoid"),
        ("gemma3_text", "window", 4, 3),
        ("gemma3_text", "window", None, 4),
        ("gemma3_text", "theta", 20.0, 70.0),
        ("gemma3_text", "theta", 70.0, 20.0),
        ("gemma3_text", "norms", "sandwich", "pre"),
        ("falcon", "theta", 20.0, 1e4),
        ("falcon_new", "parallel", "two_norms", False),
        ("llama4_text", "chunk", 5, 6),
        ("llama4_text", "chunk", 5, None),
        ("llama4_text", "chunk", None, 5),
        ("llama4_text", "weigh", "inputs", "outputs"),
        ("llama4_text", "positions", {"kind": "none"}, AS_IN_THE_FIRST_LAYER),
        ("llama4_text", "normalize", False, True),
        ("llama4_text", "experts_per_token", 2, 1),
        ("cohere2", "window", 4, 5),
        ("cohere2", "window", None, 4),
        ("cohere2", "positions", {"kind": "none"}, AS_IN_THE_FIRST_LAYER),
        ("gpt_neo", "window", 4, 5),
        ("gpt_neo", "window", None, 4),
        ("gpt_neo", "out_bias", True, False),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    if new == AS_IN_THE_FIRST_LAYER:
        new = fields_of(name)["decoder"]["layers"][0][key]
    changed = with_every(fields_of(name), key, old, new)
    assert apart(name, answered(name, changed)[0]) > SHOWS


@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_shows(name):
    """Negated, each moves the logits."""
    fields, given = fields_of(name), weights(name)
    for path, values in given.items():
        if path.startswith("decoder.layers.0"):  # one layer may stand for the others
            continue
        assert apart(name, answered(name, fields, given={**given, path: -values})[0]) > SHOWS, path


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_pairs_of_neighbours_that_are_left_so_show(name):
    given = dict(weights(name))
    for path, values in given.items():
        if path.endswith((".q", ".q_up")):
            heads = 3 if name in LATENTS else 6
            given[path] = np.ascontiguousarray(by_head(values, heads, NEIGHBOURS[name]))
    assert apart(name, answered(name, fields_of(name), given=given)[0]) > SHOWS


def test_experts_in_another_order_show():
    given = {path: values[::-1] if "experts" in path else values for path, values in weights("mixtral").items()}
    assert apart("mixtral", answered("mixtral", fields_of("mixtral"), given=given)[0]) > SHOWS
