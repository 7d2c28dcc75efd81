"""Questions about mixtures, latent attention and layers that differ, each answered by one command on a config.json."""

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


MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "max_position_embeddings": 32768,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 129280,
    "tie_word_embeddings": False,
    "num_nextn_predict_layers": 1,
    "attention_bias": False,
    "max_position_embeddings": 163840,
}


def gemma3(d_model, layers, heads, kv_heads, head_dim, d_ff, vocabulary, window, context):
    """A file of the first dialect: every sixth layer is global, which `sliding_window_pattern` says."""
    return {
        "model_type": "gemma3_text",
        "hidden_size": d_model,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate_size": d_ff,
        "vocab_size": vocabulary,
        "sliding_window": window,
        "sliding_window_pattern": 6,
        "tie_word_embeddings": True,
        "max_position_embeddings": context,
    }


GEMMA_3_27B = gemma3(5376, 62, 32, 16, 128, 21504, 262208, 1024, 131072)
GEMMA_3_1B = gemma3(1152, 26, 4, 1, 256, 6912, 262144, 512, 32768)


def gpt_oss(layers, experts):
    return {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": layers,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 2880,
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "vocab_size": 201088,
        "sliding_window": 128,
        "attention_bias": True,
        "tie_word_embeddings": False,
        "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
    }


GEMMA_4 = {
    "model_type": "gemma4_text",
    "hidden_size": 2816,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 2,
    "attention_k_eq_v": True,
    "num_kv_shared_layers": 0,
    "sliding_window": 1024,
    "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,
    "vocab_size": 262144,
    "intermediate_size": 2112,
    "tie_word_embeddings": True,
    "max_position_embeddings": 262144,
    "moe_intermediate_size": 704,
    "num_experts": 128,
    "top_k_experts": 8,
    "enable_moe_block": True,
}
LLAMA_4 = {
    "model_type": "llama4_text",
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_chunk_size": 8192,
    "no_rope_layers": [1, 1, 1, 0] * 12,
    "max_position_embeddings": 10485760,
}

CASES = [
    Case(
        "Has an 8x7B model 56 B parameters, and how many does a token use?",
        MIXTRAL,
        "experts M",
        # 2·32,000·4,096 + 32·(41,943,040 + 8 or 2 times 176,160,768 + 32,768 + 8,192) + 4,096
        {"total_parameters": 46_702_792_704, "active_parameters": 12_879_925_248},
        ("46,702,792,704", "12,879,925,248", "2 of 8", "12.88 B of 46.70 B are active"),
    ),
    Case(
        "How many of its experts does a batch of 4 read?",
        MIXTRAL,
        "experts M --batch 4",
        {"mixtures/decoder.layers.feed_forward.experts/distinct_experts": 5.46875},  # 8·(1 - (3/4)^4)
        ("5.47",),
    ),
    Case(
        "A training step on 1,024 tokens without a mask takes 80 TFLOP, not 288?",
        MIXTRAL,
        "flops M --seq-len 1024 --counting rectangle",
        # 6·(attention + router + 2 experts + head)·1,024 + 12·32·4,096·1,024^2
        {"train_flops": 79_976_586_018_816},
        ("79.98 TFLOP",),
    ),
    Case(
        "How many parameters has DeepSeek-V3 without its multi-token-prediction layer, and how many are active?",
        DEEPSEEK_V3,
        "params M",
        {
            "total_parameters": 671_026_404_352,
            "buffers": 14_848,  # 58·256 corrections of the router
            "active_parameters": 37_552_282_624,
            "active_parameters_without_input_table": 36_625_603_584,
        },
        ("671,026,404,352", "37,552,282,624", "14,848"),
    ),
    Case(
        "And with it, as the hub's 685 B?",
        DEEPSEEK_V3,
        "params M",
        # a layer of 11,507,286,016 + 256 (its correction), 2·7,168^2, norms of 3·7,168; and two tables, 1,853,358,080
        {"extra_parameters": 11_507_286_016 + 256 + 2 * 7168**2 + 3 * 7168 + 1_853_358_080},
        ("13.46 B",),
    ),
    Case(
        "How much does its latent cache take, a token and at 163,840?",
        DEEPSEEK_V3,
        "kv M --dtype bf16 --context 163840",
        {"kv_bytes_per_token": 70_272, "kv_cache_bytes": 70_272 * 163_840},  # 61·(512 + 64)·2
        ("70,272", "10.72 GiB"),
    ),
    Case(
        "And if keys and values are stored for each head?",
        DEEPSEEK_V3,
        "kv M --dtype bf16 --context 64k --decompressed",
        {"kv_bytes_per_token": 4_997_120},  # 61·128·(192 + 128)·2
        ("4,997,120", "305.00 GiB"),
    ),
    Case(
        "Does tensor parallelism make it smaller on each device? A latent has no heads: no device holds less.",
        DEEPSEEK_V3,
        "kv M --dtype bf16 --context 1",
        {"kv_bytes_per_token": 70_272},
        ("70,272",),
    ),
    Case(
        "What does Gemma-3-27B hold at 131,072 tokens with its windows?",
        GEMMA_3_27B,
        "kv M --context 128k",
        {"kv_cache_bytes": (10 * 131_072 + 52 * 1_024) * 8_192},  # 10.40625 GiB
        ("10.41 GiB",),
    ),
    Case(
        "And in an engine that ignores them?",
        GEMMA_3_27B,
        "kv M --context 128k --no-windows",
        {"kv_cache_bytes": 62 * 2**30},
        ("62.00 GiB",),
    ),
    Case(
        "Gemma-3-1B at 32,768 tokens?",
        GEMMA_3_1B,
        "kv M --context 32k",
        {"kv_cache_bytes": 139 * 2**20},  # 4 layers of 32 MiB, 22 of half a MiB
        ("139.00 MiB",),
    ),
    Case(
        "Without windows?",
        GEMMA_3_1B,
        "kv M --context 32k --no-windows",
        {"kv_cache_bytes": 832 * 2**20},
        ("832.00 MiB",),
    ),
    Case(
        "32 sequences of 8,192 tokens of gpt-oss-20b: the least that is needed?",
        gpt_oss(24, 32),
        "kv M --context 8k --batch 32",
        {"kv_cache_bytes": 32 * 12 * (8_192 + 128) * 2_048},  # 6.09375 GiB
        ("6.09 GiB",),
    ),
    Case(
        "And in full pages?",
        gpt_oss(24, 32),
        "kv M --context 8k --batch 32 --no-windows",
        {"kv_cache_bytes": 12 * 2**30},
        ("12.00 GiB",),
    ),
    Case(
        "How much does a token of gpt-oss-120b take while it is inside of every window?",
        gpt_oss(36, 128),
        "kv M --context 1",
        {"kv_bytes_per_token": 73_728},  # 36·2·8·64·2
        ("73,728",),
    ),
    Case(
        "How many tokens does a pool of 5.38 GiB hold if each layer is charged in full?",
        gpt_oss(36, 128),
        "fits M --pool 5.38GiB --context 8k --block-size 1 --window-slots all",
        {"engine_reserved/longest_context": 78_351, "pool_bytes": 5_776_731_013},  # // 73,728; 5.38·2^30 = ...013.12
        ("78,351", "5.38 GiB"),
    ),
    Case(
        "What does Gemma-4 26B hold at 131,072 tokens, with heads of two sizes?",
        GEMMA_4,
        "kv M --dtype f16 --context 128k",
        {"kv_cache_bytes": 131_072 * 5 * 4_096 + 1_024 * 25 * 8_192},  # 2,894,069,760
        ("2.70 GiB", "2,894,069,760"),
    ),
    Case(
        "And where windows have 512 tokens of a batch beside them?",
        GEMMA_4,
        "fits M --memory 80GiB --kv-dtype f16 --context 128k --block-size 1 --window-slots 512",
        {"engine_reserved/bytes_per_conversation": 131_072 * 5 * 4_096 + 1_536 * 25 * 8_192},  # 2,998,927,360
        ("2,998,927,360",),
    ),
    Case(
        "Llama-4 Scout at 131,072 tokens, of which 36 layers keep one chunk?",
        LLAMA_4,
        "kv M --context 128k",
        {"kv_cache_bytes": (12 * 131_072 + 36 * 8_192) * 4_096},  # 7.125 GiB
        ("7.12 GiB",),
    ),
    Case(
        "And uncapped?",
        LLAMA_4,
        "kv M --context 128k --no-windows",
        {"kv_cache_bytes": 24 * 2**30},
        ("24.00 GiB",),
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
    assert (10 * 131_072 + 52 * 1_024) * 8_192 / 2**30 == 10.40625
    assert 32 * 12 * (8_192 + 128) * 2_048 / 2**30 == 6.09375
    assert (12 * 131_072 + 36 * 8_192) * 4_096 / 2**30 == 7.125
    assert round(70_272 * 163_840 / 2**30, 4) == 10.7227
