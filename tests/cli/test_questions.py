"""Questions that people asked, each answered by one command line on the config.json of the model that they had."""

import json
from typing import NamedTuple

import pytest


class Case(NamedTuple):
    """config: what the model's config.json says. line: the command, M for that file. answers: JSON, by path; a list's
    entry by what names it. said: words of the table. code: the exit code."""

    question: str
    config: dict
    line: str
    answers: dict
    said: tuple = ()
    code: int = 0


def gpt2(d_model, layers, heads):
    return {
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": d_model,
        "n_layer": layers,
        "n_head": heads,
    }


def llama(d_model, layers, heads, kv_heads, d_ff, vocabulary, **more):
    return {
        "model_type": "llama",
        "hidden_size": d_model,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": d_ff,
        "vocab_size": vocabulary,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
        **more,
    }


def qwen3(*sizes, **more):
    return llama(*sizes, model_type="qwen3", head_dim=128, **more)


def mistral(*sizes):
    return llama(*sizes, model_type="mistral", head_dim=128, sliding_window=None)


GPT2_SMALL = gpt2(768, 12, 12)
GPT2_MEDIUM = gpt2(1024, 24, 16)
LLAMA_2_7B = llama(4096, 32, 32, 32, 11008, 32000, max_position_embeddings=4096)
LLAMA_3_8B = llama(4096, 32, 32, 8, 14336, 128256)
MULTI_HEAD_8B = llama(4096, 32, 32, 32, 14336, 128256)
LLAMA_33B = llama(6656, 60, 52, 52, 17920, 32000)
LLAMA_70B = llama(8192, 80, 64, 8, 28672, 128256)
LLAMA_405B = llama(16384, 126, 128, 8, 53248, 128256)
QWEN3_06B = (1024, 28, 16, 8, 3072, 151936)
QWEN3_4B = qwen3(2560, 36, 32, 8, 9728, 151936, tie_word_embeddings=True)
QWEN3_32B = qwen3(5120, 64, 64, 8, 25600, 151936)
DENSE_8X22 = mistral(6144, 56, 48, 8, 16384, 32768)
NEMO = mistral(5120, 40, 32, 8, 32768, 131072)
QWEN2_7B = llama(
    *(3584, 28, 28, 4, 18944, 152064),
    model_type="qwen2",
    use_sliding_window=False,
    sliding_window=131072,
    max_window_layers=28,
)

CASES = [
    Case(
        "How many parameters has GPT-2 small, its tied head counted once?",
        GPT2_SMALL,
        "params M",
        {"total_parameters": 124_439_808},
        ("124,439,808", "124.44 M"),
    ),
    Case(
        "I fine-tune the last two blocks of GPT-2 medium and freeze the rest: how many parameters are trained?",
        GPT2_MEDIUM,
        "params M --train-layers last:2",
        # 12·1,024² and 13·1,024 a block
        {"trainable_parameters": 25_192_448, "total_parameters": 354_823_168},
        ("25,192,448", "25.19 M", "layers 22-23 of 24"),
    ),
    Case(
        "Qwen3-4B is said to have 4.0 B parameters, 3.6 B of them not in embeddings: exactly?",
        QWEN3_4B,
        "params M",
        {"total_parameters": 4_022_468_096, "non_embedding_parameters": 3_633_511_936},
        ("4,022,468,096", "3,633,511,936"),
    ),
    Case(
        "How large are the weights of a 70B model in bf16, at 4.82 bits and at 4, and does that fit into 40 GiB?",
        LLAMA_70B,
        "weights M --bits 4.82 --bits 4 --memory 40GiB",
        {
            "total_parameters": 70_553_706_496,
            "formats/bf16/weight_bytes": 141_107_412_992,
            "formats/4.82 bits/weight_bytes": 42_508_608_164,  # 70,553,706,496·4.82 / 8 = ...163.84
            "formats/4.82 bits/left_bytes": 441_064_796,  # of 42,949,672,960: 0.41 GiB
            "formats/4 bits/weight_bytes": 35_276_853_248,
            "formats/bf16/left_bytes": -98_157_740_032,
        },
        ("131.42 GiB", "141.11", "42.51", "39.59 GiB", "420.63 MiB", "35.28", "-91.42 GiB"),
    ),
    Case(
        "What do the rule of thumb's matrices of a 7B model hold, next to its total?",
        LLAMA_2_7B,
        "show M",
        {"rule_of_thumb/layer_parameters": 6_476_005_376, "total_parameters": 6_738_415_616},
        ("6,476,005,376", "6,738,415,616"),
    ),
    Case(
        "The engine logs 229 blocks of 16 tokens in fp16 for a 7B model, and refuses 4,096 tokens: is it right?",
        LLAMA_2_7B,
        "fits M --blocks 229 --kv-dtype fp16 --context 4k",
        {
            "pool_bytes": 1_920_991_232,  # 1.7890625 GiB: 229·16·512 KiB
            "engine_reserved/longest_context": 3_664,
            "engine_reserved/conversations": 0,
            "architectural/longest_context": 3_664,
            "fits": False,
        },
        ("no conversation fits at 4,096 tokens", "3,664", "1.79 GiB"),
        code=1,
    ),
    Case(
        "A step trains a 7B model on 4 sequences of 8,192 tokens: how many FLOPs, with half of the score matrix?",
        LLAMA_2_7B,
        "train M --tokens 32768 --seq-len 8k",
        {
            "conventions/half_rectangle/weight_flops": 1_299_004_268_740_608,
            "conventions/half_rectangle/attention_flops": 211_106_232_532_992,
            "conventions/exact_rectangle/attention_flops": 422_212_465_065_984,
            "conventions/half_rectangle/train_flops": 1_510_110_501_273_600,
            "sequences": 4,
        },
        ("1,510,110,501,273,600",),
    ),
    Case(
        "And the same step with the whole score matrix, as a profiler counts it?",
        LLAMA_2_7B,
        "flops M --batch 4 --seq-len 8k --counting rectangle",
        {
            "weight_flops": 1_299_004_268_740_608 // 3,
            "attention_flops": 422_212_465_065_984 // 3,
            "train_flops": 1_299_004_268_740_608 + 422_212_465_065_984,
        },
        ("1,721,216,733,806,592", "433.00 TFLOP", "140.74 TFLOP"),
    ),
    Case(
        "How much cache does one more token of Qwen3-32B take in bf16?",
        QWEN3_32B,
        "kv M --dtype bf16",
        {"kv_bytes_per_token": 262_144},  # 2·64·8·128·2
        ("262,144", "256.00 KiB"),
    ),
    Case(
        "A q8_0 cache of 49,152 tokens takes 5,712 MiB in a dense model of 56 layers: where does that come from?",
        DENSE_8X22,
        "kv M --dtype q8_0 --context 48k",
        {"kv_cache_bytes": 5_712 * 2**20, "kv_cache_elements": 2 * 56 * 8 * 128 * 49_152},
        ("5.58 GiB",),
    ),
    Case(
        "llama.cpp reserves 780 MiB of f16 cache for 512 tokens of a 33B model: is that all?",
        LLAMA_33B,
        "kv M --dtype f16 --context 512",
        {"kv_cache_bytes": 780 * 2**20},
        ("780.00 MiB",),
    ),
    Case(
        "And twice that in f32?",
        LLAMA_33B,
        "kv M --dtype f32 --context 512",
        {"kv_cache_bytes": 1_560 * 2**20},
        ("1.52 GiB",),
    ),
    Case(
        "How much cache does Llama-3.1-405B hold at its whole context of 131,072 tokens?",
        LLAMA_405B,
        "kv M --dtype fp16 --context 128k",
        {"kv_cache_bytes": 63 * 2**30, "context": 131_072},
        ("63.00 GiB",),
    ),
    Case(
        "Why do others say 61.5 GiB? Because their 128K are 128,000.",
        LLAMA_405B,
        "kv M --dtype fp16 --context 128,000",
        {"kv_cache_bytes": 66_060_288_000, "context": 128_000},  # 61.523 GiB
        ("61.52 GiB",),
    ),
    Case(
        "What does a token of Mistral-Nemo hold, whose heads are smaller than its width over their number?",
        NEMO,
        "kv M",
        {"kv_bytes_per_token": 163_840},  # 2·40·8·128·2; with 5,120 / 32 = 160 it would be 204,800
        ("163,840", "160.00 KiB"),
    ),
    Case(
        "vLLM says 1,952 blocks and 1.56x concurrency at 20,000 tokens of an 8B model: the same here?",
        LLAMA_3_8B,
        "fits M --blocks 1952 --context 20000",
        {
            "engine_reserved/concurrency": 1.5616,
            "engine_reserved/conversations": 1,
            "engine_reserved/longest_context": 31_232,  # 1,952·16
            "architectural/concurrency": 1.5616,
        },
        ("1 conversation fits at 20,000 tokens", "1.5616", "31,232"),
    ),
    Case(
        "And 1,478 blocks at 29,000 tokens?",
        LLAMA_3_8B,
        "fits M --blocks 1478 --context 29k",
        {"context": 29_696, "engine_reserved/longest_context": 23_648, "fits": False},  # 29k is binary
        ("no conversation fits",),
        code=1,
    ),
    Case(
        "At 29,000 tokens, then?",
        LLAMA_3_8B,
        "fits M --blocks 1478 --context 29000",
        {
            "architectural/concurrency": 0.815448,  # 23,648 / 29,000
            "engine_reserved/concurrency": 0.815223,  # 1,478 / 1,813 whole blocks
            "engine_reserved/longest_context": 23_648,
            "fits": False,
        },
        ("0.8154", "0.8152"),
        code=1,
    ),
    Case(
        "What does the attention core of an 8B model cost per token at 8,192, if nothing is masked?",
        LLAMA_3_8B,
        "attention M --contexts 8k --counting rectangle",
        {
            "contexts/8192/next_token_attention_flops": 4_294_967_296,  # 4·32·128·8,192·32
            "contexts/8192/sequence_attention_flops": 4_294_967_296 * 8_192,
        },
        ("4,294,967,296",),
    ),
    Case(
        "And do grouped keys make that cheaper? No: every query head still meets every key.",
        MULTI_HEAD_8B,
        "attention M --contexts 8k --counting rectangle",
        {
            "contexts/8192/next_token_attention_flops": 4_294_967_296,
            "contexts/8192/sequence_attention_flops": 4_294_967_296 * 8_192,
        },
        ("4,294,967,296",),
    ),
    Case(
        "How many FLOPs do the weights of Qwen3-0.6B take for a token?",
        qwen3(*QWEN3_06B, tie_word_embeddings=True),
        "flops M --seq-len 1",
        {"weight_flops": 1_191_968_768},
        ("1,191,968,768",),
    ),
    Case(
        "Does a tied head save any of that? No, it multiplies all the same.",
        qwen3(*QWEN3_06B, tie_word_embeddings=False),
        "flops M --seq-len 1",
        {"weight_flops": 1_191_968_768},
        ("1,191,968,768",),
    ),
    Case(
        "Qwen2-7B's config has a sliding window that is switched off: what does it hold at 262,144 tokens?",
        QWEN2_7B,
        "kv M --dtype bf16 --context 256k",
        {"kv_cache_bytes": 14 * 2**30, "kv_bytes_per_token": 57_344},  # 2·28·4·128·2
        ("14.00 GiB",),
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


def test_what_was_asked_in_gib():
    """The bytes above, in the units in which people had them."""
    assert round(141_107_412_992 / 2**30, 2) == 131.42
    assert [round(42_508_608_164 / size, 2) for size in (10**9, 2**30)] == [42.51, 39.59]
    assert round(441_064_796 / 2**30, 2) == 0.41
    assert 1_920_991_232 / 2**30 == 1.7890625
    assert round(66_060_288_000 / 2**30, 3) == 61.523


@pytest.mark.parametrize("case", [case for case in CASES if "fits" not in case.line], ids=lambda case: case.line)
def test_each_has_a_working(asked, case):
    """The same command line with --explain gives a working of what it says."""
    data = json.loads(asked(case, "--explain", "--json"))
    values = {line["value"] for line in data["numbers"]}
    whole = {value for path, value in case.answers.items() if path.count("/") == 0 and value and path not in GIVEN}
    assert whole <= values


GIVEN = ("context", "sequences")
