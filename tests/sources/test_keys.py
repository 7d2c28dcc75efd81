from __future__ import annotations

import pytest

from costcalc.sources.keys import homes_of, kinds_at, kinds_with, known_keys, written_paths

GATED = {"decoder": {"layers": [{"feed_forward": {"kind": "gated"}}]}}
LAYER = ["name", "repeat", "norm", "norms", "parallel", "positions", "attention", "mixer", "mixer_beside"]
LAYER += ["shared_block", "cross_attention"]
LAYER += ["feed_forward", "attention_norm", "share_weights", "residual_scale", "residual_affine", "residual_gain"]
LAYER += ["augmented_residual"]
LAYER += ["feed_forward_beside", "norm_gate", "residual_mean", "shortcut", "layer_scale", "sublayer_gates"]
LAYER += [
    "needs_memory",
    "convolution",
    "conditioned",
    "output_conv",
    "block_residuals",
    "adapters",
    "bottleneck",
    "pattern",
]
STACK = ["norm", "positions", "final_norm", "altup", "hyper_connections", "residual_sources", "per_layer_input"]
STACK += [
    "hierarchy",
    "loop",
    "d_model",
    "embedding",
    "output_projection",
    "padding",
    "global_tokens",
    "layers",
    "block",
]
TOP = ["name", "source", "published_parameters", "vocab_size", "encoder_vocab_size", "d_model"]
TOP += ["context_length", "embedding", "tie_embeddings", "share_embeddings", "spare_table", "head", "pooler", "decoder"]
TOP += ["encoder", "multi_token", "entities", "not_counted", "layers", "norm", "positions", "final_norm", "altup"]
TOP += ["hyper_connections", "residual_sources", "per_layer_input", "hierarchy", "loop", "padding"]
TOP += ["global_tokens", "block"]
NETWORK = ["kind", "d_ff", "activation", "bias"]
OF_GATED = ["limit", "up_shift", "sparsity", "inner_norm", "gains", "out_bias", "gate_cap", "up_cap", "out_gain"]
MIXTURE = {"decoder": {"layers": [{"feed_forward": {"kind": "mixture"}}]}}
ROUTER = ["bias", "correction", "scores", "normalize", "scale", "groups", "groups_per_token", "weigh"]
ROUTER += ["reads", "norm", "input_scale", "expert_scale", "network", "skips", "table", "skip_gives"]
ROUTER += ["shared_parts", "gain"]
OTHERS = ["convolved", "differential", "mixture_of_heads", "compressed"]
CHOOSING = ["convolved", "differential", "dynamic_mask", "mixture_of_heads", "compressed"]
LATENT = {"multi_token": {"layer": {"attention": {"kind": "latent"}}}}
OF_LATENT = ["kind", "heads", "q_rank", "kv_rank", "nope_dim", "rope_dim", "v_dim", "bias", "out_bias", "norm"]
OF_LATENT += ["scale", "softcap", "output_gate", "gate_activation"]
OF_HEADS = [
    "kind",
    "transform",
    "transform_bias",
    "activation",
    "norm",
    "bias",
    "scale",
    "softcap",
    "rows",
    "scales",
    "inner",
    "beside",
]
OF_HEADS += ["width", "labels", "of", "transform_width"]
OF_LATENT += ["top_k", "indexer", "query_reads", "gate_reads", "sinks", "latent_scale", "window", "rope_norm"]
TRANSFORM = ["transform", "transform_bias", "activation", "norm"]

OF_KIN = ["disentangled", "mixed_convolution", "transformer_xl", "profiled", "ngram"]
OF_NORMS = ["kind", "eps", "weight", "bias", "normalized", "unit"]
OF_TEXTS = ["sliding", "block_sparse", "local", "global_local", "landmarks", "collisions"]
OF_TEXTS += ["multi_resolution"]
POSITIONS = ["kind", "length", "offset", "stored", "theta", "rotary_dim", "buckets", "max_distance", "per_layer"]
POSITIONS += ["of_sums"]
POSITIONS[6:6] = ["frequencies", "width", "values"]
POSITIONS += ["max_bias", "slope_scale", "span", "norm"]


@pytest.mark.parametrize(
    ("where", "data", "keys"),
    [
        ((), {}, TOP),
        (("decoder",), {}, STACK),
        (("decoder", "layers", 0), {}, LAYER),
        (("decoder", "layers", 3, "pattern", 1, "pattern", 0), {}, LAYER),
        (("encoder",), {}, STACK),
        (
            ("embedding",),
            {},
            ["width", "bias", "project", "scale", "token_types", "norm", "affine", "neighbours", "tables", "own_rows"],
        ),
        (("head",), {}, OF_HEADS),
        (("head",), {"head": {"kind": "none"}}, ["kind"]),
        (("decoder", "layers", 0, "feed_forward"), GATED, [*NETWORK, *OF_GATED]),
        (("decoder", "layers", 0, "feed_forward", "router"), MIXTURE, ROUTER),
        (
            ("decoder", "layers", 0, "feed_forward", "expert"),
            MIXTURE,
            [*NETWORK, "up_groups", "down_groups", *OF_GATED],
        ),
        (("multi_token",), {}, ["repeat", "norm", "own_tables", "layer"]),
        (("multi_token", "layer", "attention"), LATENT, OF_LATENT),
        (("decoder", "positions"), {"decoder": {"positions": {"kind": "learned"}}}, ["kind", "length", "offset"]),
        (
            ("decoder", "positions"),
            {"decoder": {"positions": {"kind": "rope"}}},
            ["kind", "theta", "rotary_dim", "frequencies", "stored", "length", "width", "values"],
        ),
        # No kind, or one that there is not: the keys of all.
        (("decoder", "positions"), {}, POSITIONS),
        (("decoder", "norm"), {"decoder": {"norm": {"kind": "batchnorm"}}}, OF_NORMS),
        (("decoder", "norm"), {"decoder": {"norm": {"kind": "rmsnorm"}}}, ["kind", "eps", "weight", "unit"]),
        (("decoder", "norm"), {"decoder": {"norm": 7}}, OF_NORMS),
        (("decoder", "layers", 0, "attention", "qk_norm"), {}, ["kind", "norm"]),
        (("vocab_size",), {}, []),
    ],
)
def test_known_keys(where, data, keys):
    assert known_keys(where, data) == keys


def test_kinds_with_a_key():
    layer = ("decoder", "layers", 0)
    assert kinds_with("kv_rank", (*layer, "attention")) == ["latent"]
    assert kinds_with("heads", (*layer, "attention")) == ["grouped_query", "latent", *CHOOSING, *OF_TEXTS, *OF_KIN]
    windowed = ["grouped_query", "latent", *OTHERS, "sliding", "local", "profiled"]
    assert kinds_with("window", (*layer, "attention")) == windowed
    assert kinds_with("d_ff", (*layer, "feed_forward")) == ["dense", "gated", "rwkv_channel"]
    assert kinds_with("d_ff", layer) == kinds_with("nothing", (*layer, "attention")) == []


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        (("decoder", "norm"), ["layernorm", "rmsnorm"]),
        (
            ("decoder", "positions"),
            ["none", "learned", "sinusoidal", "rope", "relative", "alibi", "learned_and_relative", "relative_rows"],
        ),
        (("decoder", "layers", 0, "norm"), ["layernorm", "rmsnorm"]),
        (("decoder", "layers", 0, "attention"), ["grouped_query", "latent", *CHOOSING, *OF_TEXTS, *OF_KIN]),
        (("decoder", "layers", 2, "pattern", 1, "feed_forward"), ["dense", "gated", "mixture", "rwkv_channel"]),
        (("decoder", "layers", 0, "feed_forward", "expert"), ["dense", "gated"]),
        (("decoder", "layers", 0, "attention", "qk_norm"), ["per_head", "projection", "each_head"]),
        (("decoder", "layers", 0, "attention", "qk_norm", "norm"), ["layernorm", "rmsnorm"]),
        (("d_model",), []),
        (("nothing", "here"), []),
    ],
)
def test_kinds_at(where, kinds):
    assert kinds_at(where) == kinds


@pytest.mark.parametrize(
    ("key", "home"),
    [
        ("vocab_size", "the top level"),
        ("layers", "decoder"),
        ("final_norm", "decoder"),
        ("repeat", "a layer"),
        ("pattern", "a layer"),
        ("attention", "a layer"),
        ("heads", "attention"),
        ("window", "attention"),
        ("qk_norm", "attention"),
        ("d_ff", "feed_forward"),
        ("activation", "head"),
        ("theta", "positions"),
        ("length", "positions"),
        ("weight", "norm"),
        ("width", "embedding"),
    ],
)
def test_homes_of(key, home):
    assert homes_of(key)[0] == home


@pytest.mark.parametrize("key", ["", "hidden_size", "head", "Heads"])
def test_homes_of_a_key_that_no_component_has(key):
    assert homes_of(key) == (["the top level"] if key == "head" else [])


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        (("vocab_size",), [("vocab_size",)]),
        (("decoder", "norm"), [("decoder", "norm"), ("norm",)]),
        (
            ("decoder", "layers", 0, "attention", "heads"),
            [
                ("decoder", "layers", 0, "attention", "heads"),
                ("layers", 0, "attention", "heads"),
                ("decoder", "block", "attention", "heads"),
                ("block", "attention", "heads"),
                ("decoder", "layers", 0, "attention"),
                ("layers", 0, "attention"),
                ("decoder", "block", "attention"),
                ("block", "attention"),
                ("decoder", "layers", 0),
                ("layers", 0),
                ("decoder", "layers"),
                ("layers",),
                ("decoder",),
            ],
        ),
        (
            ("decoder", "layers", 2, "pattern", 1, "norm", "kind"),
            [
                ("decoder", "layers", 2, "pattern", 1, "norm", "kind"),
                ("decoder", "block", "norm", "kind"),
                ("decoder", "norm", "kind"),
                ("norm", "kind"),
                ("decoder", "layers", 2, "pattern", 1, "norm"),
                ("decoder", "block", "norm"),
                ("decoder", "norm"),
                ("norm",),
                ("decoder", "layers", 2, "pattern", 1),
                ("decoder", "layers", 2),
            ],
        ),
    ],
)
def test_written_paths_go_from_the_place_itself_to_where_it_may_come_from(where, paths):
    """In this order; other paths may lie between, which nothing that is written has."""
    got = list(dict.fromkeys(written_paths(where)))
    assert [path for path in got if path in paths] == paths
    assert got[0] == where


def test_a_key_of_the_stack_does_not_come_from_the_defaults_for_its_layers():
    assert ("decoder", "block", "norm") not in list(written_paths(("decoder", "norm")))
    assert ("decoder", "block", "norm") in list(written_paths(("decoder", "layers", 0, "norm")))
