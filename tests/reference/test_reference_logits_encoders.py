"""Encoders, encoder-decoders and ALiBi: logits of real classes of `transformers`, recorded in tests/oracle/forward/."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recorded_logits import fed, share_apart, with_every

import costcalc

ORACLE = Path(__file__).resolve().parent.parent / "oracle" / "forward"
CLOSE = 1e-5
"""The classes themselves, in float32, are 5e-7 to 2e-6 of the largest logit away from what was recorded in float64."""
SHOWS = 1e-3
BIASED = {"bias": True, "out_bias": True}


def layernorm(eps, **more):
    return {"kind": "layernorm", "eps": eps, **more}


def dense(d_ff, activation, *, bias=True):
    return {"kind": "dense", "d_ff": d_ff, "activation": activation, "bias": bias}


# What their config.json files say, by hand.
BERT = {
    "d_model": 35,
    "norm": layernorm(0.01),
    "positions": {"kind": "learned", "length": 17},
    "embedding": {"token_types": 3, "norm": layernorm(0.01)},
    "tie_embeddings": True,
    "head": {"transform": True, "norm": layernorm(0.01), "bias": True, "activation": "gelu"},
    "encoder": {
        "layers": [
            {"repeat": 3, "norms": "post", "attention": {"heads": 5, **BIASED}, "feed_forward": dense(37, "gelu")}
        ]
    },
}
T5_CROSS = {"heads": 5, "head_dim": 7, "scale": 1.0}
T5_LAYER = {
    "attention": T5_CROSS,
    "feed_forward": {"kind": "gated", "d_ff": 37, "activation": "gelu_new"},
}
TIED_CROSS = {"heads": 3, "head_dim": 11, "scale": 1.0}
TIED_LAYER = {"attention": TIED_CROSS, "feed_forward": dense(37, "relu", bias=False)}
GLOBAL, LOCAL = {"kind": "rope", "theta": 50.0}, {"kind": "rope", "theta": 20.0}
MODERN = {"attention": {"heads": 3}, "feed_forward": {"kind": "gated", "d_ff": 37, "activation": "gelu"}}
MODERN_LOCAL = {**MODERN, "attention": {"heads": 3, "window": 5}, "positions": LOCAL}
BART_NORM = layernorm(1e-5)
WRITTEN = {
    "bert": BERT,
    "bert_pooled": {
        "d_model": 30,
        "norm": layernorm(0.02),
        "positions": {"kind": "learned", "length": 17},
        "embedding": {"token_types": 2, "norm": layernorm(0.02)},
        "head": "none",
        "pooler": True,
        "encoder": {
            "layers": [
                {"repeat": 2, "norms": "post", "attention": {"heads": 3, **BIASED}, "feed_forward": dense(37, "relu")}
            ]
        },
    },
    "albert": {
        "d_model": 30,
        "norm": layernorm(0.01),
        "positions": {"kind": "learned", "length": 17},
        "embedding": {"width": 23, "bias": True, "project": "after", "token_types": 2, "norm": layernorm(0.01)},
        "tie_embeddings": True,
        "head": {"transform": True, "norm": layernorm(0.01), "bias": True, "activation": "gelu_new"},
        "encoder": {
            "layers": [
                {
                    "repeat": 3,
                    "share_weights": True,
                    "norms": "post",
                    "attention": {"heads": 5, **BIASED},
                    "feed_forward": dense(37, "gelu_new"),
                }
            ]
        },
    },
    "modernbert": {
        "d_model": 30,
        "norm": layernorm(0.01, bias=False),
        "positions": GLOBAL,
        "embedding": {"norm": layernorm(0.01, bias=False)},
        "tie_embeddings": True,
        "head": {
            "transform": True,
            "transform_bias": False,
            "norm": layernorm(0.01, bias=False),
            "bias": True,
            "activation": "gelu",
        },
        "encoder": {
            "layers": [
                {"name": "first", **MODERN, "attention_norm": False},
                {"name": "local", "repeat": 2, **MODERN_LOCAL},
                {"name": "global", **MODERN},
            ]
        },
    },
    "t5": {
        "d_model": 30,
        "norm": {"kind": "rmsnorm", "eps": 0.01},
        "positions": {"kind": "relative", "buckets": 8, "max_distance": 11},
        "share_embeddings": True,
        "encoder": {"layers": [{"repeat": 2, **T5_LAYER}]},
        "decoder": {"layers": [{"repeat": 3, **T5_LAYER, "cross_attention": T5_CROSS}]},
    },
    "t5_tied": {
        "d_model": 30,
        "norm": {"kind": "rmsnorm", "eps": 0.02},
        "positions": {"kind": "relative", "buckets": 7, "max_distance": 13},
        "share_embeddings": True,
        "tie_embeddings": True,
        "head": {"scale": 30**-0.5},
        "encoder": {"layers": [{"repeat": 3, **TIED_LAYER}]},
        "decoder": {"layers": [{"repeat": 2, **TIED_LAYER, "cross_attention": TIED_CROSS}]},
    },
    "bart": {
        "d_model": 30,
        "norm": BART_NORM,
        "positions": {"kind": "learned", "length": 19, "offset": 2},
        "embedding": {"scale": 30**0.5, "norm": BART_NORM},
        "share_embeddings": True,
        "tie_embeddings": True,
        "head": {"bias": "buffer"},
        "encoder": {
            "layers": [
                {"repeat": 2, "norms": "post", "attention": {"heads": 5, **BIASED}, "feed_forward": dense(37, "gelu")}
            ]
        },
        "decoder": {
            "layers": [
                {
                    "repeat": 3,
                    "norms": "post",
                    "attention": {"heads": 3, **BIASED},
                    "cross_attention": {"heads": 3, **BIASED},
                    "feed_forward": dense(41, "gelu"),
                }
            ]
        },
    },
    "bloom": {
        "d_model": 35,
        "norm": layernorm(0.01),
        "positions": "alibi",
        "embedding": {"norm": layernorm(0.01)},
        "tie_embeddings": True,
        "layers": [{"repeat": 3, "attention": {"heads": 5, **BIASED}, "feed_forward": dense(140, "gelu_tanh")}],
    },
    "mpt": {
        "d_model": 42,
        "norm": layernorm(0.01, bias=False),
        "positions": "alibi",
        "tie_embeddings": True,
        "layers": [{"repeat": 2, "attention": {"heads": 6}, "feed_forward": dense(168, "gelu", bias=False)}],
    },
}

# Of a parameter's name there: what becomes what in its path here, in this order.
LAYERS_OF_BERT = [
    (r"^encoder\.layer\.", "encoder.layers."),
    (r"attention\.self\.query", "attention.q"),
    (r"attention\.self\.key", "attention.k"),
    (r"attention\.self\.value", "attention.v"),
    (r"attention\.output\.LayerNorm", "attention_norm"),
    (r"attention\.output\.dense", "attention.output"),
    (r"intermediate\.dense", "feed_forward.up"),
    (r"(\d)\.output\.dense", r"\1.feed_forward.down"),
    (r"(\d)\.output\.LayerNorm", r"\1.feed_forward_norm"),
]
EMBEDDINGS = [
    (r"^embeddings\.word_embeddings", "encoder.embedding"),
    (r"^embeddings\.position_embeddings", "encoder.positions"),
    (r"^embeddings\.token_type_embeddings", "encoder.token_types"),
    (r"^embeddings\.LayerNorm", "encoder.embedding_norm"),
]
T5_NAMES = [
    (r"^shared", "decoder.embedding"),
    (r"^lm_head", "head"),
    (r"^(\w+)\.final_layer_norm", r"\1.final_norm"),
    (r"block\.0\.layer\.0\.SelfAttention\.relative_attention_bias", "positions"),
    (r"\.block\.", ".layers."),
    (r"layer\.\d\.SelfAttention\.o", "attention.output"),
    (r"layer\.\d\.SelfAttention", "attention"),
    (r"layer\.\d\.EncDecAttention\.o", "cross_attention.output"),
    (r"layer\.\d\.EncDecAttention", "cross_attention"),
    (r"layer\.\d\.DenseReluDense\.wi_0", "feed_forward.gate"),
    (r"layer\.\d\.DenseReluDense\.wi(_1)?", "feed_forward.up"),
    (r"layer\.\d\.DenseReluDense\.wo", "feed_forward.down"),
    (r"layer\.0\.layer_norm", "attention_norm"),
    (r"^(decoder.*)layer\.1\.layer_norm", r"\1cross_attention_norm"),
    (r"layer\.\d\.layer_norm", "feed_forward_norm"),
]
NAMES = {
    "bert": [
        (r"^bert\.", ""),
        (r"^cls\.predictions\.bias", "head.bias"),
        (r"^cls\.predictions\.transform\.dense", "head.transform"),
        (r"^cls\.predictions\.transform\.LayerNorm", "head.norm"),
        *EMBEDDINGS,
        *LAYERS_OF_BERT,
    ],
    "bert_pooled": [*EMBEDDINGS, *LAYERS_OF_BERT],
    "albert": [
        (r"^albert\.", ""),
        (r"^predictions\.bias", "head.bias"),
        (r"^predictions\.dense", "head.transform"),
        (r"^predictions\.LayerNorm", "head.norm"),
        *EMBEDDINGS,
        (r"^encoder\.embedding_hidden_mapping_in", "encoder.embedding_projection"),
        (r"^encoder\.albert_layer_groups\.0\.albert_layers\.0", "encoder.layers.0"),
        (r"full_layer_layer_norm", "feed_forward_norm"),
        (r"attention\.LayerNorm", "attention_norm"),
        (r"attention\.query", "attention.q"),
        (r"attention\.key", "attention.k"),
        (r"attention\.value", "attention.v"),
        (r"attention\.dense", "attention.output"),
        (r"ffn_output", "feed_forward.down"),
        (r"ffn", "feed_forward.up"),
    ],
    "modernbert": [
        (r"^decoder\.bias", "head.bias"),
        (r"^head\.dense", "head.transform"),
        (r"^model\.embeddings\.tok_embeddings", "encoder.embedding"),
        (r"^model\.embeddings\.norm", "encoder.embedding_norm"),
        (r"^model", "encoder"),
        (r"attn_norm", "attention_norm"),
        (r"attn\.Wqkv", "attention.qkv"),
        (r"attn\.Wo", "attention.output"),
        (r"mlp_norm", "feed_forward_norm"),
        (r"mlp\.Wi", "feed_forward.gate_up"),
        (r"mlp\.Wo", "feed_forward.down"),
    ],
    "t5": T5_NAMES,
    "t5_tied": T5_NAMES,
    "bart": [
        (r"^final_logits_bias", "head.bias"),
        (r"^model\.shared", "decoder.embedding"),
        (r"^model\.", ""),
        (r"embed_positions", "positions"),
        (r"layernorm_embedding", "embedding_norm"),
        (r"self_attn_layer_norm", "attention_norm"),
        (r"encoder_attn_layer_norm", "cross_attention_norm"),
        (r"final_layer_norm", "feed_forward_norm"),
        (r"self_attn", "attention"),
        (r"encoder_attn", "cross_attention"),
        (r"(q|k|v)_proj", r"\1"),
        (r"out_proj", "output"),
        (r"fc1", "feed_forward.up"),
        (r"fc2", "feed_forward.down"),
    ],
    "bloom": [
        (r"^transformer\.word_embeddings_layernorm", "decoder.embedding_norm"),
        (r"^transformer\.word_embeddings", "decoder.embedding"),
        (r"^transformer\.ln_f", "decoder.final_norm"),
        (r"^transformer\.h", "decoder.layers"),
        (r"input_layernorm", "attention_norm"),
        (r"post_attention_layernorm", "feed_forward_norm"),
        (r"self_attention\.query_key_value", "attention.heads_of_qkv"),
        (r"self_attention\.dense", "attention.output"),
        (r"mlp\.dense_h_to_4h", "feed_forward.up"),
        (r"mlp\.dense_4h_to_h", "feed_forward.down"),
    ],
    "mpt": [
        (r"^transformer\.wte", "decoder.embedding"),
        (r"^transformer\.norm_f", "decoder.final_norm"),
        (r"^transformer\.blocks", "decoder.layers"),
        (r"norm_1", "attention_norm"),
        (r"norm_2", "feed_forward_norm"),
        (r"attn\.Wqkv", "attention.qkv"),
        (r"attn\.out_proj", "attention.output"),
        (r"ffn\.up_proj", "feed_forward.up"),
        (r"ffn\.down_proj", "feed_forward.down"),
    ],
}
TABLES = ("embedding", "positions", "token_types", "head")
"""Ends of paths whose rows are looked up, or multiplied by: they lie here as they lie there."""
INPUTS = ("source", "token_types")
PAIRS = ("t5", "t5_tied", "bart")
SPLITS = {
    "prefill": [13],
    "a prefill of 7, then one at a time": [7] + [1] * 6,
    "one at a time": [1] * 13,
    "some at a time": [2, 5, 3, 3],
}


@cache
def recorded(name):
    """(config, tokens, other inputs, logits, pooled or None, parameters by their names there)."""
    with np.load(ORACLE / f"{name}.npz") as file:
        arrays = dict(file)
    inputs = {key: arrays.pop(key) for key in INPUTS if key in arrays}
    config, tokens, logits = (arrays.pop(key) for key in ("config", "tokens", "logits"))
    return json.loads(str(config)), tokens, inputs, logits, arrays.pop("pooled", None), arrays


@cache
def model(name):
    return costcalc.load({"vocab_size": 97, **WRITTEN[name]})


def placed(name, theirs, values):
    """(path, array) of each array here that a parameter there holds."""
    path, _, ending = theirs.rpartition(".") if theirs != "final_logits_bias" else (theirs, "", "bias")
    if theirs.endswith((".bias", "final_logits_bias")) and ("predictions.bias" in theirs or theirs == "decoder.bias"):
        path, ending = theirs, ""
    for pattern, ours in NAMES[name]:
        path = re.sub(pattern, ours, path)
    if path == "head.bias":
        yield "head_bias", values.reshape(-1)
        return
    ending = "_bias" if ending == "bias" else ""
    place, _, last = path.rpartition(".")
    if last == "qkv":
        for letter, third in zip("qkv", np.split(values, 3), strict=True):
            yield f"{place}.{letter}{ending}", third.T
    elif last == "heads_of_qkv":  # of each of 5 heads: queries, keys and values
        split = values.reshape(5, 3, 7, *values.shape[1:])
        for index, letter in enumerate("qkv"):
            yield f"{place}.{letter}{ending}", split[:, index].reshape(-1, *values.shape[1:]).T
    elif last == "gate_up":
        for part, half in zip(("gate", "up"), np.split(values, 2), strict=True):
            yield f"{place}.{part}", half.T
    else:
        yield path + ending, values.T if values.ndim == 2 and last not in TABLES else values


@cache
def weights(name):
    """The recorded parameters under our paths; here a matrix is (inputs, outputs), there (outputs, inputs)."""
    return dict(pair for theirs, values in recorded(name)[-1].items() for pair in placed(name, theirs, values))


def answered(name, fields, parts=(13,), given=None, **others):
    """The logits of all tokens, fed in parts to one request, and the last part's tape."""
    _, tokens, inputs, *_ = recorded(name)
    return fed(fields, tokens, parts, weights(name) if given is None else given, first={**inputs, **others})


def apart(name, logits):
    return share_apart(recorded(name)[3], logits)


def cases():
    """Encoders see a text at once."""
    for name in WRITTEN:
        for split, parts in SPLITS.items():
            if split == "prefill" or name in (*PAIRS, "bloom", "mpt"):
                yield pytest.param(name, parts, id=f"{name}, {split}")


@pytest.mark.parametrize(("name", "parts"), [*cases()])
def test_logits_are_those_of_the_real_class(name, parts):
    logits, _ = answered(name, model(name).model_dump(), parts)
    assert logits.dtype == np.float32
    assert apart(name, logits) < CLOSE


def test_a_pooler_gives_what_the_real_class_gives():
    _, tape = answered("bert_pooled", model("bert_pooled").model_dump())
    assert tape.pooled == pytest.approx(recorded("bert_pooled")[4], abs=CLOSE)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_recorded_parameter_is_used_and_counted(name):
    _, tape = answered(name, model(name).model_dump())
    theirs = sum(values.size for values in recorded(name)[-1].values())
    assert {path: elements for path, (elements, _) in tape.parameters.items()} == {
        path: values.size for path, values in weights(name).items()
    }
    counted = costcalc.parameters(model(name))
    assert counted.total + counted.buffers == theirs
    assert counted.buffers == (97 if name == "bart" else 0)


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("bert", "eps", 0.01, 1e-5),
        ("bert", "activation", "gelu", "silu"),
        ("bert", "bias", True, False),
        ("albert", "scale", 1.0, 1.1),  # embeddings
        ("albert", "eps", 0.01, 1e-5),
        ("modernbert", "window", 5, 3),
        ("modernbert", "window", 5, 7),
        ("modernbert", "window", 5, None),
        ("modernbert", "window", None, 5),
        ("modernbert", "theta", 50.0, 20.0),
        ("modernbert", "theta", 20.0, 50.0),
        ("t5", "max_distance", 11, 19),
        ("t5", "scale", 1.0, 0.9),  # of scores, of embeddings and before the head
        ("t5", "cross_attention", {**model("t5").decoder.layers[0].cross_attention.model_dump()}, None),
        ("t5_tied", "scale", 30**-0.5, 1.0),  # before the head
        ("t5_tied", "scale", 1.0, 1.1),  # of scores, and of embeddings
        ("bart", "offset", 2, 1),
        ("bart", "offset", 2, 0),
        ("bart", "scale", 30**0.5, 1.0),
        ("bart", "bias", "buffer", False),
        ("bloom", "max_bias", 8.0, 7.0),
        ("bloom", "slope_scale", 1.0, 0.9),
        ("bloom", "slope_scale", 1.0, 1.1),
        ("mpt", "max_bias", 8.0, 9.0),
        ("mpt", "scale", None, 0.3),  # 1 / √7 = 0.378
    ],
)
def test_another_value_of_a_field_shows(name, key, old, new):
    changed = with_every(model(name).model_dump(), key, old, new)
    assert apart(name, answered(name, changed)[0]) > SHOWS


@pytest.mark.parametrize("name", WRITTEN)
def test_every_parameter_shows(name):
    """Negated, each moves the logits; only key biases of unrotated keys do not: they cancel in softmax."""
    fields, given = model(name).model_dump(), weights(name)
    for path, values in given.items():
        if re.search(r"layers\.[23]\.", path) or path.startswith("pooler"):  # two layers may stand for the others
            continue
        moved = apart(name, answered(name, fields, given={**given, path: -values})[0])
        cancels = path.endswith("attention.k_bias")
        assert (moved < CLOSE) == cancels, path
        assert cancels or moved > SHOWS, path


@pytest.mark.parametrize("name", ["bert", "bert_pooled", "albert"])
def test_types_of_tokens_show(name):
    zeros = np.zeros_like(recorded(name)[1])
    assert apart(name, answered(name, model(name).model_dump(), token_types=zeros)[0]) > SHOWS


@pytest.mark.parametrize("name", PAIRS)
def test_every_token_of_the_source_shows(name):
    source = recorded(name)[2]["source"]
    for place in range(source.shape[1]):
        changed = source.copy()
        changed[:, place] = (changed[:, place] + 1) % 97
        assert apart(name, answered(name, model(name).model_dump(), source=changed)[0]) > SHOWS


@pytest.mark.parametrize("name", PAIRS)
def test_a_step_multiplies_nothing_of_the_encoder_nor_its_keys_and_values(name):
    _, tape = answered(name, model(name).model_dump(), [12, 1])
    assert not any(path.startswith("encoder") for path in tape.products)
    asked = {path.rpartition(".")[2] for path in tape.products if "cross_attention" in path}
    assert asked == {"q", "scores", "values", "output"}
