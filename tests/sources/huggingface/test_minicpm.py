"""MiniCPM3: worked-out sums, its three factors, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from costcalc import kv_cache, load, parameters

Config = dict[str, Any]

# V=19, D=35, N=5, R_q=17, R=23, nope=13, rope=6, v=7 (35 / 5), F=37, L=3; tied.
MINICPM3: Config = {
    "model_type": "minicpm3",
    "vocab_size": 19,
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "q_lora_rank": 17,
    "kv_lora_rank": 23,
    "qk_nope_head_dim": 13,
    "qk_rope_head_dim": 6,
    "intermediate_size": 37,
    "dim_model_base": 7,
    "scale_depth": 1.4,
    "scale_emb": 12,
}
LATENTS = 35 * 17 + 17 + 17 * 5 * 19 + 35 * 29 + 23


def _attention(v_dim: int) -> int:
    """Both latents and their norms, queries, keys and values of them, and the output."""
    return LATENTS + 23 * 5 * (13 + v_dim) + 5 * v_dim * 35


WHOLE = 19 * 35 + 3 * (_attention(7) + 3 * 35 * 37 + 2 * 35) + 35


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, 0),
        ({"v_head_dim": 7}, 0),
        ({"v_head_dim": 11}, 3 * (_attention(11) - _attention(7))),
        ({"q_lora_rank": None}, 3 * (35 * 5 * 19 - 35 * 17 - 17 - 17 * 5 * 19)),
        ({"attention_bias": True}, 3 * (17 + 29 + 35)),
        ({"mlp_bias": True}, 3 * (2 * 37 + 35)),
        ({"tie_word_embeddings": False}, 19 * 35),
        ({"head_dim": 99}, 0),
    ],
)
def test_totals(changes, more):
    assert parameters(load({**MINICPM3, **changes})).total == WHOLE + more


def test_the_cache():
    assert kv_cache(load(MINICPM3), 11).elements == 3 * 11 * (23 + 6)


def test_the_factors():
    arch = load(MINICPM3)
    assert (arch.embedding.scale, arch.head.scale) == (12.0, 7 / 35)
    assert arch.groups[0].block.residual_scale == 1.4 / math.sqrt(3)


def test_factors_that_are_null_change_nothing():
    arch = load({**MINICPM3, "scale_depth": None, "dim_model_base": None})
    assert (arch.head.scale, arch.groups[0].block.residual_scale) == (1.0, 1.0)


def test_the_code_that_the_published_file_names():
    named = {
        "architectures": ["MiniCPM3ForCausalLM"],
        "auto_map": {
            "AutoConfig": "configuration_minicpm.MiniCPM3Config",
            "AutoModelForCausalLM": "modeling_minicpm.MiniCPM3ForCausalLM",
            "AutoModelForSequenceClassification": "modeling_minicpm.MiniCPM3ForSequenceClassification",
        },
        "rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]},
    }
    assert load({**MINICPM3, **named}).inventory == load(MINICPM3).inventory


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"num_attention_heads": 6}, "`hidden_size` 35 is not a multiple"),
        ({"num_key_value_heads": 1}, "`num_key_value_heads` 1, but all 5 heads"),
        ({"qk_rope_head_dim": 7}, "`qk_rope_head_dim` 7 is odd"),
        ({"scale_emb": 0}, "`scale_emb` must be a number above 0"),
        ({"scale_emb": None}, "`scale_emb` must be a number above 0"),
        ({"scale_depth": "1.4"}, "`scale_depth` must be a number above 0"),
        ({"dim_model_base": -1}, "`dim_model_base` must be a number above 0"),
        ({"v_head_dim": 0}, "`v_head_dim` must be"),
        ({"n_routed_experts": 8}, "`n_routed_experts`: 8 is not read"),
        ({"num_experts": 8}, "`num_experts`: 8 is not read"),
        ({"sliding_window": 8}, "`sliding_window`: 8 is not read"),
    ],
)
def test_what_is_refused(refusal, changes, what):
    assert what in refusal({**MINICPM3, **changes}).what
