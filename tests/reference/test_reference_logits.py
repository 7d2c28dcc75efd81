"""Logits against those of the real classes of `transformers`, recorded in tests/oracle/forward/."""

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
CLOSE = 1e-5
"""The classes themselves, in float32, are 3e-7 to 2e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3

# The last part of a parameter's name there -> its path here, both without the layer.
GPT2 = {
    "transformer.wte": "decoder.embedding",
    "transformer.wpe": "decoder.positions",
    "ln_1": "attention_norm",
    "attn.c_proj": "attention.output",
    "ln_2": "feed_forward_norm",
    "mlp.c_fc": "feed_forward.up",
    "mlp.c_proj": "feed_forward.down",
    "transformer.ln_f": "decoder.final_norm",
}
LLAMA = {
    "model.embed_tokens": "decoder.embedding",
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.q",
    "self_attn.k_proj": "attention.k",
    "self_attn.v_proj": "attention.v",
    "self_attn.q_norm": "attention.q_norm",
    "self_attn.k_norm": "attention.k_norm",
    "self_attn.o_proj": "attention.output",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
    "model.norm": "decoder.final_norm",
    "lm_head": "head",
}
GEMMA2 = LLAMA | {
    "post_attention_layernorm": "attention_output_norm",
    "pre_feedforward_layernorm": "feed_forward_norm",
    "post_feedforward_layernorm": "feed_forward_output_norm",
}
PHI = LLAMA | {
    "input_layernorm": "norm",
    "self_attn.dense": "attention.output",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
    "model.final_layernorm": "decoder.final_norm",
}
OLMO2 = LLAMA | {
    "post_attention_layernorm": "attention_norm",  # on the sublayers' outputs
    "post_feedforward_layernorm": "feed_forward_norm",
}
GPT_NEOX = {
    "gpt_neox.embed_in": "decoder.embedding",
    "input_layernorm": "attention_norm",
    "attention.dense": "attention.output",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
    "gpt_neox.final_layer_norm": "decoder.final_norm",
    "lm_head": "head",
}
OPT = {
    "model.decoder.embed_tokens": "decoder.embedding",
    "model.decoder.embed_positions": "decoder.positions",
    "model.decoder.project_in": "decoder.embedding_projection",
    "model.decoder.project_out": "head.projection",
    "self_attn.q_proj": "attention.q",
    "self_attn.k_proj": "attention.k",
    "self_attn.v_proj": "attention.v",
    "self_attn.out_proj": "attention.output",
    "self_attn_layer_norm": "attention_norm",
    "fc1": "feed_forward.up",
    "fc2": "feed_forward.down",
    "final_layer_norm": "feed_forward_norm",
}
PATHS = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "llama_biased": LLAMA,
    "qwen3": LLAMA,
    "gemma2": GEMMA2,
    "mistral": LLAMA,
    "phi": PHI,
    "olmo2": OLMO2,
    "gpt_neox": GPT_NEOX,
    "opt": OPT,
}
TABLES = ("wte", "wpe", "embed_tokens", "embed_positions", "embed_in", "lm_head")

# No importer reads these yet: their config.json by hand. A head has 30 / 3 = 10 numbers, of which 0.4 are rotated in
# phi and gpt_neox.
BIASED = {"bias": True, "out_bias": True}
WRITTEN = {
    "phi": {
        "d_model": 30,
        "norm": {"kind": "layernorm", "eps": 0.01},
        "positions": {"kind": "rope", "theta": 20.0, "rotary_dim": 4},
        "head": {"bias": True},
        "layers": [
            {
                "repeat": 2,
                "parallel": "one_norm",
                "attention": {"heads": 3, **BIASED},
                "feed_forward": {"kind": "dense", "d_ff": 37, "activation": "gelu_new", "bias": True},
            }
        ],
    },
    "olmo2": {
        "d_model": 30,
        "norm": {"kind": "rmsnorm", "eps": 0.02},
        "positions": {"kind": "rope", "theta": 40.0},
        "layers": [
            {
                "repeat": 3,
                "norms": "output",
                "attention": {
                    "heads": 3,
                    "kv_heads": 1,
                    "qk_norm": {"kind": "projection", "norm": {"kind": "rmsnorm", "eps": 0.02}},
                },
                "feed_forward": {"kind": "gated", "d_ff": 37},
            }
        ],
    },
    "gpt_neox": {
        "d_model": 30,
        "norm": {"kind": "layernorm", "eps": 0.01},
        "positions": {"kind": "rope", "theta": 20.0, "rotary_dim": 4},
        "layers": [
            {
                "repeat": 3,
                "parallel": "two_norms",
                "attention": {"heads": 3, **BIASED},
                "feed_forward": {"kind": "dense", "d_ff": 37, "activation": "gelu", "bias": True},
            }
        ],
    },
    "opt": {
        "d_model": 35,
        "norm": "layernorm",
        "positions": {"kind": "learned", "length": 19, "offset": 2},
        "embedding": {"width": 23},
        "tie_embeddings": True,
        "layers": [
            {
                "repeat": 3,
                "norms": "post",
                "attention": {"heads": 5, **BIASED},
                "feed_forward": {"kind": "dense", "d_ff": 37, "activation": "relu", "bias": True},
            }
        ],
    },
}
PHI_HEAD = costcalc.load({"vocab_size": 97, **WRITTEN["phi"]}).model_dump()["head"]

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
def model(name):
    return costcalc.load({"vocab_size": 97, **WRITTEN[name]} if name in WRITTEN else recorded(name)[0])


@cache
def weights(name):
    """The recorded parameters under our paths; here a matrix is (inputs, outputs), there (outputs, inputs)."""
    ours = {}
    for theirs, values in recorded(name)[3].items():
        pattern = r"(?:(?:[a-z_.]+\.layers|transformer\.h)\.(\d+)\.)?(.+)\.(weight|bias)"
        layer, part, sort = re.fullmatch(pattern, theirs).groups()
        place, ending = f"decoder.layers.{layer}." if layer else "", "_bias" if sort == "bias" else ""
        if part == "attn.c_attn":  # queries, keys and values side by side
            thirds = zip("qkv", np.split(values, 3, axis=-1), strict=True)
            ours |= {f"{place}attention.{letter}{ending}": third for letter, third in thirds}
            continue
        if part == "attention.query_key_value":  # of each of 3 heads: queries, keys and values
            split = values.reshape(3, 3, -1, *values.shape[1:])  # (N, 3, H, D), or (N, 3, H)
            for index, letter in enumerate("qkv"):
                ours[f"{place}attention.{letter}{ending}"] = split[:, index].reshape(-1, *values.shape[1:]).T
            continue
        is_gain = name == "gemma2" and values.ndim == 1  # stored without the 1 that the class adds
        turns = (
            name != "gpt2" and values.ndim == 2 and not part.endswith(TABLES)
        )  # GPT-2's are (inputs, outputs) already
        ours[place + PATHS[name][part] + ending] = 1 + values if is_gain else values.T if turns else values
    return ours


def answered(name, fields, parts=(TOKENS,), given=None, **form):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    return fed(fields, recorded(name)[1], parts, weights(name) if given is None else given, **form)


def apart(name, logits):
    return share_apart(recorded(name)[2], logits)


def with_query_heads_in(name, order):
    """The weights with the query heads of every layer, and what the output takes from them, in another order."""
    given, heads = dict(weights(name)), len(order)
    for path, values in weights(name).items():
        if path.endswith((".q", ".q_bias")):
            split = values.reshape(*values.shape[:-1], heads, -1)  # (D, N, H)
            given[path] = split[..., order, :].reshape(values.shape)
        elif path.endswith("attention.output"):
            given[path] = values.reshape(heads, -1, values.shape[-1])[order].reshape(values.shape)  # (N, H, D)
    return given


@pytest.mark.parametrize("parts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("name", PATHS)
def test_logits_are_those_of_the_real_class(name, parts):
    logits, _ = answered(name, model(name).model_dump(), parts)
    assert logits.dtype == np.float32
    assert apart(name, logits) < CLOSE


@pytest.mark.parametrize("name", PATHS)
def test_every_recorded_parameter_is_used_and_counted(name):
    _, tape = answered(name, model(name).model_dump())
    theirs = sum(values.size for values in recorded(name)[3].values())
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    assert sum(elements for elements, _ in tape.parameters.values()) == theirs
    assert costcalc.parameters(model(name)).total == theirs


def test_the_parameters_of_one_class_by_hand():
    """Gemma-2: table 97·30; a layer: q, output 30·84, k, v 30·28, three matrices 30·37, four gains of 30."""
    assert costcalc.parameters(model("gemma2")).total == 2_910 + 3 * (5_040 + 1_680 + 3_330 + 120) + 30


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("gpt2", "eps", 0.01, 1e-5),
        ("gpt2", "scale", None, 1.0),  # scores as they are
        ("gpt2", "scale", 1.0, 1.1),  # embeddings
        ("gpt2", "activation", "gelu_new", "relu"),
        ("gpt2", "norms", "pre", "post"),
        ("gpt2", "norms", "pre", "output"),
        ("gpt2", "final_norm", None, False),
        ("gpt2", "window", None, 12),
        ("gpt2", "bias", True, False),
        ("gpt2", "out_bias", True, False),
        ("llama", "eps", 0.005, 1e-6),
        ("llama", "theta", 50.0, 1e4),
        ("llama", "rotary_dim", None, 8),
        ("llama", "tie_embeddings", False, True),
        ("llama", "activation", "silu", "gelu"),
        ("llama", "parallel", False, "two_norms"),
        ("llama_biased", "scale", None, 0.4),  # 1 / √6 = 0.408
        ("llama_biased", "bias", True, False),
        ("llama_biased", "softcap", None, 8.0),
        (
            "qwen3",
            "qk_norm",
            {"kind": "per_head", "norm": {"kind": "rmsnorm", "eps": 0.02, "weight": True, "unit": False}},
            None,
        ),
        ("qwen3", "eps", 0.02, 1e-6),
        ("qwen3", "theta", 70.0, 1e4),
        ("gemma2", "window", 4, 3),
        ("gemma2", "window", 4, 5),
        ("gemma2", "window", 4, None),
        ("gemma2", "window", None, 4),
        ("gemma2", "softcap", 2.0, None),
        ("gemma2", "softcap", 8.0, None),
        ("gemma2", "scale", 11**-0.5, None),  # 1 / √14
        ("gemma2", "scale", 30**0.5, 1.0),
        ("gemma2", "norms", "sandwich", "pre"),
        ("gemma2", "norms", "sandwich", "output"),
        ("gemma2", "eps", 0.05, 1e-6),
        ("gemma2", "activation", "gelu_tanh", "silu"),
        ("mistral", "window", 5, 4),
        ("mistral", "window", 5, 6),
        ("mistral", "window", 5, None),
        ("mistral", "theta", 30.0, 1e4),
        ("phi", "rotary_dim", 4, 6),
        ("phi", "rotary_dim", 4, 2),
        ("phi", "rotary_dim", 4, None),
        ("phi", "theta", 20.0, 1e4),
        ("phi", "eps", 0.01, 1e-5),
        ("phi", "head", PHI_HEAD, {**PHI_HEAD, "bias": False}),
        ("olmo2", "norms", "output", "pre"),
        ("olmo2", "norms", "output", "post"),
        ("olmo2", "eps", 0.02, 1e-6),
        ("gpt_neox", "parallel", "two_norms", False),
        ("gpt_neox", "rotary_dim", 4, None),
        ("gpt_neox", "activation", "gelu", "silu"),
        ("opt", "scale", 1.0, 1.1),  # embeddings
        ("opt", "bias", True, False),
        ("opt", "activation", "relu", "relu_squared"),
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    changed = with_every(model(name).model_dump(), key, old, new)
    assert apart(name, answered(name, changed)[0]) > SHOWS


@pytest.mark.parametrize(
    ("name", "used", "other"),
    [
        ("gpt2", "gelu_new", "gelu"),
        ("gemma2", "gelu_tanh", "gelu"),
        ("phi", "gelu_new", "gelu"),
        ("gpt_neox", "gelu", "gelu_tanh"),
    ],
)
def test_the_two_formulas_of_gelu_are_told_apart(name, used, other):
    """They differ by less than 5e-4 everywhere."""
    assert apart(name, answered(name, with_every(model(name).model_dump(), "activation", used, other))[0]) > 1e-4


@pytest.mark.parametrize(("name", "kv_heads"), [("llama", 2), ("qwen3", 3), ("gemma2", 2), ("mistral", 2)])
def test_which_query_heads_share_a_key_head_shows(name, kv_heads):
    """Query head n of 6 reads key head n // (6 / K); were it n % K, heads in this order would read the same."""
    fields, order = (
        model(name).model_dump(),
        [key + kv_heads * n for key in range(kv_heads) for n in range(6 // kv_heads)],
    )
    assert apart(name, answered(name, fields, given=with_query_heads_in(name, order))[0]) > SHOWS
    within = [1, 0, *range(2, 6)]  # both read key head 0
    assert apart(name, answered(name, fields, given=with_query_heads_in(name, within))[0]) < CLOSE


def test_gains_that_lack_their_one_show():
    given = {path: values - (values.ndim == 1) for path, values in weights("gemma2").items()}
    given = {path: values.astype(np.float32) for path, values in given.items()}
    assert apart("gemma2", answered("gemma2", model("gemma2").model_dump(), given=given)[0]) > SHOWS


@pytest.mark.parametrize("name", PATHS)
def test_every_parameter_shows(name):
    """Negated, each moves the logits; only key biases of unrotated keys do not: they cancel in softmax."""
    fields, given = model(name).model_dump(), weights(name)
    for path, values in given.items():
        if path.startswith(("decoder.layers.0", "decoder.layers.2")):  # one layer may stand for the others
            continue
        moved = apart(name, answered(name, fields, given={**given, path: -values})[0])
        cancels = name in ("gpt2", "opt") and path.endswith("attention.k_bias")
        assert (moved < CLOSE) == cancels, path
        assert cancels or moved > SHOWS, path


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_cache_that_counts_one_token_too_many_or_too_few_shows(shift):
    fields, tokens = model("gpt2").model_dump(), recorded("gpt2")[1]
    request = Request()
    first = forward(fields, tokens[:, :7], tape=Tape(Given(weights("gpt2"))), request=request)
    request.past += shift
    rest = forward(fields, tokens[:, 7:], tape=Tape(Given(weights("gpt2"))), request=request)
    assert apart("gpt2", np.concatenate([first, rest], axis=1)) > SHOWS
