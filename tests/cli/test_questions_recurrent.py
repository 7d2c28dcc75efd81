"""Questions about hybrids and recurrent models, each answered by one command on a config.json."""

import json
from typing import NamedTuple

import pytest


class Case(NamedTuple):
    """As in `test_questions_by_layer.py`."""

    question: str
    config: dict
    line: str
    answers: dict
    said: tuple = ()
    code: int = 0


LINEAR, FULL = "linear_attention", "full_attention"
QWEN_27B = {
    "model_type": "qwen3_5_text",
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 17408,
    "vocab_size": 248320,
    "layer_types": [LINEAR, LINEAR, LINEAR, FULL] * 16,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 262144,
}
QWEN_STATE = 48 * ((2 * 16 * 128 + 48 * 128) * 4 * 2 + 48 * 128 * 128 * 4)  # inputs in bf16, matrices in fp32
NEMOTRON_3 = {
    "model_type": "nemotron_h",
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_size": 2688,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
}
JAMBA = {"model_type": "jamba"}
MAMBA = {
    "model_type": "mamba",
    "hidden_size": 2560,
    "num_hidden_layers": 64,
    "vocab_size": 50280,
    "intermediate_size": 5120,
    "time_step_rank": 160,
}
CASES = [
    Case(
        "What does a token add to the cache of Qwen3.5-27B, whose layers attend one time in four?",
        QWEN_27B,
        "kv M --context 256k",
        {
            "kv_bytes_per_token": 65_536,  # 16·2·4·256·2; all 64 layers would be 262,144
            "kv_cache_bytes": 16 * 2**30 + QWEN_STATE,
            "state_bytes": QWEN_STATE,
        },
        ("65,536", "17,179,869,184", "16.00 GiB", f"{QWEN_STATE:,}"),
    ),
    Case(
        "And how much of that is there at 8,192 tokens?",
        QWEN_27B,
        "kv M --context 8k",
        {"kv_cache_bytes": 2**29 + QWEN_STATE, "state_bytes": QWEN_STATE},
        ("512.00 MiB",),
    ),
    Case(
        "How many conversations of 256k tokens fit into 80 GiB beside its weights?",
        QWEN_27B,
        "fits M --memory 80GiB --context 256k",
        # 26.9 B parameters: 26,895,998,464·2 bytes of weights leave 30 GiB, which hold one of 16.14 GiB
        {"architectural/state_bytes_per_conversation": QWEN_STATE, "engine_reserved/conversations": 1},
        ("1 conversation fits",),
    ),
    Case(
        "What does a token add in a Nemotron-3 of 52 layers?",
        NEMOTRON_3,
        "kv M --context 8k",
        {"kv_bytes_per_token": 6_144},  # 6·2·2·128·2; all 52 layers would be 53,248
        ("6,144", "a state"),
    ),
    Case(
        "What does Jamba keep of 262,144 tokens?",
        JAMBA,
        "kv M --context 256k",
        {"kv_cache_bytes": 4 * 2 * 8 * 128 * 2 * 262_144 + 28 * 8192 * (4 * 2 + 16 * 4), "kv_bytes_per_token": 16_384},
        ("4.02 GiB", "15.75 MiB"),
    ),
    Case(
        "And how many parameters does it have, and use?",
        JAMBA,
        "params M",
        {"total_parameters": 51_570_323_328, "active_parameters": 12_110_311_296},
        ("51,570,323,328",),
    ),
    Case(
        "What does Mamba keep of a million tokens, and what does one more add?",
        MAMBA,
        "kv M --context 1M",
        {"kv_cache_bytes": 64 * 5120 * (4 * 2 + 16 * 4), "kv_bytes_per_token": 0, "kv_cache_elements": 0},
        ("22.50 MiB",),
    ),
    Case(
        "Is the next token of Mamba dearer after a million others?",
        MAMBA,
        "flops M --seq-len 1 --past-tokens 1000000",
        {"attention_flops": 0, "modelled_flops": 2 * 64 * 5120 * (2 * 16 + 4)},
        ("scans are modelled token by token",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.question for case in CASES])
def test_the_answer(asked, looked_up, case):
    data = json.loads(asked(case, "--json"))
    assert {path: looked_up(data, path) for path in case.answers} == case.answers


@pytest.mark.parametrize("case", CASES, ids=[case.question for case in CASES])
def test_the_answer_as_people_read_it(asked, case):
    text = asked(case)
    assert case.said
    assert [words for words in case.said if words not in text] == []
