"""The configs that `record_zaya.py` records: a small one, changes to it, and what the library refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

CLASS = "ZayaForCausalLM"
SMALL: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "moe_intermediate_size": 23,
    "num_experts": 5,
    "router_hidden_size": 13,
    "pad_token_id": 0,
}
CASES = """
    num_hidden_layers=1; num_hidden_layers=7 vocab_size=53; tie_word_embeddings=false; lm_head_bias=true;
    lm_head_bias=true tie_word_embeddings=false attention_bias=true; num_key_value_heads=6 head_dim=8;
    num_key_value_heads=1 num_attention_heads=7; cca_time0=4; cca_time1=5; cca_time0=1 cca_time1=3; cca_time1=1;
    cca_time0=1 cca_time1=1; num_experts=1 router_hidden_size=1; num_experts=17 moe_intermediate_size=61;
    sliding_window=8; layer_types=HSS sliding_window=8; layer_types=SSS sliding_window=5 cca_time0=3;
    layer_types=null rope_parameters=null; partial_rotary_factor=0.25 rope_theta=1e4;
    rope_parameters={"hybrid":{"rope_type":"default","rope_theta":7e4},"rope_type":"default"};
    rope_scaling={"hybrid":{"rope_type":"default","rope_theta":7e4,"partial_rotary_factor":0.4}}
"""
# What the library will not build, or will not run.
REFUSED = """
    num_experts_per_tok=2; num_key_value_heads=4; num_key_value_heads=1 num_attention_heads=7 head_dim=9;
    layer_types=HSS; layer_types=HS sliding_window=8; layer_types=HXH; head_dim=null;
    rope_parameters={"rope_type":"default","rope_theta":7e4}; rope_parameters={"hybrid":{"rope_type":"default"}}
"""
WORDS = {"H": "hybrid", "S": "hybrid_sliding", "X": "sliding_attention"}


def raw(case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split())
    made = {key: json.loads(value) for key, value in changes.items() if key != "layer_types" or value == "null"}
    if "layer_types" in changes and "layer_types" not in made:
        made["layer_types"] = [WORDS[letter] for letter in changes["layer_types"]]
    return {"model_type": "zaya", "architectures": [CLASS], **SMALL, **made}


def cases(text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(case)
