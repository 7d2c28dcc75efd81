"""`costcalc fits` on the models of conftest.py.

tiny: 8,177 parameters, 16,354 bytes in bf16; a token holds 60 elements, 120 bytes. windowed: 10,647 parameters, 21,294
bytes; a token holds 20 elements in each of its five layers, of which four see 5 tokens: 40 bytes a layer.
"""

import csv
import io
import json

import pytest

# All layers of windowed but the one that sees everything: 8,619 parameters, 17,238 bytes.
NEAR = """\
name: near
vocab_size: 19
d_model: 13
norm: rmsnorm
layers: [{repeat: 4, attention: {heads: 6, kv_heads: 2, head_dim: 5, window: 5}, feed_forward: {d_ff: 37}}]
"""
# No attention: 2·247 + 2·481 + 2·13 = 1,482 parameters, 2,964 bytes, and nothing to cache.
PLAIN = "name: plain\nvocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n"


@pytest.fixture
def asked(cli):
    """asked("8b", "--memory", "80GiB") -> (the JSON, the exit code)."""

    def call(*words):
        code, out, err = cli("fits", *words, "--json")
        assert err == ""
        return json.loads(out), code

    return call


def answers(data, way):
    found = data[way]
    return found["bytes_per_conversation"], found["conversations"], found["concurrency"], found["longest_context"]


@pytest.mark.parametrize(
    ("options", "pool", "architectural", "engine"),
    [
        # 20,000 - 16,354; 7·120 and 30·120 = 3,600; a block of 16 is 1,920
        ("--memory 20KB", 3_646, (840, 4, 4.340476, 30), (1_920, 1, 1.898958, 16)),
        # 20·2^10 - 16,354 = 4,126: 34·120 = 4,080
        ("--memory 20KiB", 4_126, (840, 4, 4.911905, 34), (1_920, 2, 2.148958, 32)),
        # 8 tokens in blocks of 2: 960; 15 blocks of 240
        ("--memory 20KB --block-size 2", 3_646, (840, 4, 4.340476, 30), (960, 3, 3.797917, 30)),
        ("--memory 20KB --block-size 1", 3_646, (840, 4, 4.340476, 30), (840, 4, 4.340476, 30)),
        # 1 byte an element: 60 a token, 44·60 = 2,640
        ("--memory 20KB --kv-dtype fp8 --reserve 1KB", 2_646, (420, 6, 6.3, 44), (960, 2, 2.75625, 32)),
        # 420 elements of 34/32 bytes are 446.25, rounded up; 57·60·34/32 = 3,633.75; 960·34/32 = 1,020
        ("--memory 20KB --kv-dtype q8_0", 3_646, (447, 8, 8.1566, 57), (1_020, 3, 3.57451, 48)),
        # 8,177 at 4.5 bits: 4,599.56
        ("--memory 20KB --weights q4_0", 15_400, (840, 18, 18.333333, 128), (1_920, 8, 8.020833, 128)),
        ("--memory 20KB --weights 4.5bits", 15_400, (840, 18, 18.333333, 128), (1_920, 8, 8.020833, 128)),
        # exactly one, and a byte less
        ("--memory 17194B", 840, (840, 1, 1.0, 7), (1_920, 0, 0.4375, 0)),
        ("--memory 17193B", 839, (840, 0, 0.99881, 6), (1_920, 0, 0.436979, 0)),
        ("--memory 18274B", 1_920, (840, 2, 2.285714, 16), (1_920, 1, 1.0, 16)),
        # a negative ledger: 1,000 - 16,354
        ("--memory 1KB", -15_354, (840, 0, -18.278571, 0), (1_920, 0, -7.996875, 0)),
        ("--memory 0B", -16_354, (840, 0, -19.469048, 0), (1_920, 0, -8.517708, 0)),
        # blocks of 16 tokens: 7·1,920
        ("--blocks 7", 13_440, (840, 16, 16.0, 112), (1_920, 7, 7.0, 112)),
        ("--blocks 1", 1_920, (840, 2, 2.285714, 16), (1_920, 1, 1.0, 16)),
        ("--blocks 7 --block-size 3", 2_520, (840, 3, 3.0, 21), (1_080, 2, 2.333333, 21)),
        ("--blocks 7 --kv-dtype fp8", 6_720, (420, 16, 16.0, 112), (960, 7, 7.0, 112)),
    ],
)
def test_conversations_of_7_tokens(asked, tiny, options, pool, architectural, engine):
    data, code = asked(tiny, "--context", 7, *options.split())
    assert data["pool_bytes"] == pool
    assert answers(data, "architectural") == architectural
    assert answers(data, "engine_reserved") == engine
    assert (data["fits"], code) == ((True, 0) if engine[1] else (False, 1))


@pytest.mark.parametrize(
    ("options", "architectural", "engine"),
    [
        # 25,000 - 21,294 = 3,706: 4·5 + 40 = 60 tokens of 40 bytes; (3,706 - 800) / 40 = 72.65
        # 5 tokens touch two blocks of 16 at most: 4·32 + 48 = 176
        ("--memory 25KB", (2_400, 1, 1.544167, 72), (7_040, 0, 0.52642, 16)),
        # windows ignored: 5·48 = 240 tokens of 40 bytes; one block everywhere is 3,200
        ("--memory 25KB --window-slots all", (2_400, 1, 1.544167, 72), (9_600, 0, 0.386042, 16)),
        ("--memory 25KB --window-slots ALL", (2_400, 1, 1.544167, 72), (9_600, 0, 0.386042, 16)),
        # 5 + 3 tokens touch three blocks of 4: 4·12 + 40 = 88; (3,706 - 4·12·40) / 40 = 44.65
        ("--memory 25KB --block-size 4 --window-slots 3", (2_400, 1, 1.544167, 72), (3_520, 1, 1.052841, 44)),
        # ... without slots two blocks: 4·8 + 40 = 72; (3,706 - 4·8·40) / 40 = 60.65
        ("--memory 25KB --block-size 4", (2_400, 1, 1.544167, 72), (2_880, 1, 1.286806, 60)),
        # a block has room in every layer: 7·16·5·40 = 22,400; (22,400 - 800) / 40; (22,400 - 4·32·40) / 40 = 27 blocks
        ("--blocks 7", (2_400, 9, 9.333333, 540), (7_040, 3, 3.181818, 432)),
        ("--blocks 7 --window-slots all", (2_400, 9, 9.333333, 540), (9_600, 2, 2.333333, 112)),
    ],
)
def test_layers_with_a_window_hold_less(asked, windowed, options, architectural, engine):
    data, code = asked(windowed, "--context", 40, *options.split())
    assert answers(data, "architectural") == architectural
    assert answers(data, "engine_reserved") == engine
    assert code == (0 if engine[1] else 1)


def test_a_model_of_windows_alone_has_no_longest_context(cli, asked, tmp_path):
    """25,000 - 17,238 = 7,762; four layers of at most 5 tokens hold 800, in two blocks of 16 each 5,120."""
    path = tmp_path / "near.yaml"
    path.write_text(NEAR)
    data, code = asked(path, "--memory", "25KB", "--context", 40)
    assert answers(data, "architectural") == (800, 9, 9.7025, None)
    assert answers(data, "engine_reserved") == (5_120, 1, 1.516016, None)
    assert code == 0
    text = cli("fits", path, "--memory", "25KB", "--context", 40)[1]
    assert [line.split()[-2:] for line in text.splitlines() if line.startswith("longest")] == [["no", "limit"]] * 2
    # less than 800: there is a limit
    data, code = asked(path, "--memory", "18000B", "--context", 40)
    assert answers(data, "architectural") == (800, 0, 0.9525, 4)  # 762 / 160 = 4.76
    assert code == 1


@pytest.mark.parametrize(("memory", "fits"), [("3KB", True), ("2964B", True), ("2963B", False), ("1KB", False)])
def test_a_model_that_caches_nothing_fits_if_its_weights_do(cli, asked, tmp_path, memory, fits):
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN)
    data, code = asked(path, "--memory", memory, "--context", 40)
    assert (data["fits"], code) == (fits, 0 if fits else 1)
    assert answers(data, "architectural") == answers(data, "engine_reserved") == (0, None, None, None if fits else 0)
    title, *rows = cli("fits", path, "--memory", memory, "--context", 40)[1].splitlines()
    assert ("any number of conversations fits" in title) == fits
    assert [row.split()[1:] for row in rows if row.startswith("conversations")] == [
        ["no", "limit"] if fits else ["none"]
    ] * 2


def test_the_rows(cli, tiny):
    _, text, _ = cli("fits", tiny, "--memory", "20KB", "--context", "7", "--reserve", "1KB", "--format", "csv")
    rows = list(csv.reader(io.StringIO(text)))
    engine = "engine-reserved, blocks of 16"
    assert rows[:-3] == [
        ["section", "quantity", "unit", "tiny", "status"],
        ["ledger", "memory", "bytes", "20000", "exact"],
        ["ledger", "kept free", "bytes", "-1000", "exact"],
        ["ledger", "weights, bf16", "bytes", "-16354", "exact"],
        ["ledger", "pool for caches", "bytes", "2646", "exact"],
        ["architectural", "a conversation holds", "bytes", "840", "exact"],
        ["architectural", "conversations", "", "3", "exact"],
        ["architectural", "together", "bytes", "2520", "exact"],
        ["architectural", "pool / conversation", "", "3.15", "exact"],
        ["architectural", "longest context of one", "tokens", "22", "exact"],
        [engine, "a conversation holds", "bytes", "1920", "exact"],
        [engine, "conversations", "", "1", "exact"],
        [engine, "together", "bytes", "1920", "exact"],
        [engine, "pool / conversation", "", "1.378125", "exact"],
        [engine, "longest context of one", "tokens", "16", "exact"],
    ]
    assert [row[1] for row in rows[-3:]] == [
        "conversations of 7 tokens, cache in bf16; the engine hands out blocks of 16 tokens, windows kept; activations "
        "only as far as kept free",
        "tiny: the weights, more than the KV cache, limit how many users fit: one more would make 3.75 KiB of cache "
        "beside 15.97 KiB of weights",
        "tiny: the memory would hold more tokens than its context_length of 11",
    ]


def test_the_ledger_of_blocks_has_no_weights(cli, tiny):
    rows = list(csv.reader(io.StringIO(cli("fits", tiny, "--blocks", "7", "--format", "csv")[1])))
    assert [row[1:4] for row in rows if row[0] == "ledger"] == [
        ["blocks", "", "7"],
        ["pool for caches", "bytes", "13440"],
    ]
    assert not [row for row in rows if "weights" in row[1]]


def test_a_format_that_is_modelled_says_so(cli, tiny):
    text = cli("fits", tiny, "--memory", "20KB", "--weights", "q4_k_m")[1]
    assert "ledger (exact, * modelled)" in text
    rows = [line.split("  ")[0] for line in text.splitlines()]
    for row in ("memory", "kept free", "a conversation holds"):
        assert row in rows
    for row in ("weights, q4_k_m", "pool for caches", "conversations", "pool / conversation", "longest context of one"):
        assert f"* {row}" in rows


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ("--memory 20KB --context 7", "tiny: 1 conversation fits at 7 tokens"),
        ("--memory 20KB --context 1", "tiny: 1 conversation fits at 1 token"),
        ("--memory 20KiB --context 7", "tiny: 2 conversations fit at 7 tokens"),
        ("--memory 17KB", "tiny: no conversation fits at 11 tokens"),
        ("--memory 1KB", "tiny: the weights alone do not fit, by 14.99 KiB"),
        ("--memory 16353B", "tiny: the weights alone do not fit, by 1 B"),
        ("--memory 10KB --reserve 5KB", "tiny: the weights alone do not fit, by 6.21 KiB"),  # 6,354 without the 5,000
        ("--memory 20KB --reserve 5KB", "tiny: the weights do not fit beside what is kept free, by 1.32 KiB"),
        ("--memory 16354B", "tiny: no conversation fits at 11 tokens"),
    ],
)
def test_the_title_says_the_answer(cli, tiny, options, title):
    assert cli("fits", tiny, *options.split())[1].splitlines()[0] == title


def test_what_limits_how_many_users_fit(cli, tiny):
    """The lesson's sentence, only where it is true: 8b's 66 conversations of 8,192 tokens hold 66 GiB."""
    assert (
        "note: llama-3-8b: the KV cache, not the weights, limits how many users fit: one more would make 66.00 GiB of "
        "cache beside 14.96 GiB of weights" in cli("fits", "8b", "--memory", "80GiB")[1]
    )
    assert "the weights, more than the KV cache, limit" in cli("fits", tiny, "--memory", "20KB")[1]
    assert "note: tiny: the weights are what does not fit" in cli("fits", tiny, "--memory", "1KB")[1]
    beside = cli("fits", tiny, "--memory", "20KB", "--reserve", "5KB")[1]
    assert "note: tiny: the weights and what is kept free do not fit" in beside
    assert "limit" not in cli("fits", tiny, "--blocks", "1")[1].partition("note")[2]


def test_notes_are_in_the_json_too(asked, tiny):
    note = asked(tiny, "--memory", "20KB")[0]["note"]
    assert "limit how many users fit" in note
    assert "more tokens than its context_length of 11" in note
    null = "memory_bytes, weights and weight_bytes are null: the blocks are what they left"
    assert asked(tiny, "--blocks", "1", "--block-size", "11")[0]["note"] == null
    assert asked(tiny, "--blocks", "1", "--context", "12")[0]["note"] == (
        f"12 tokens are more than the 11 rows of tiny's position table; {null}"
    )
    assert "blocks is null: the memory is given in bytes" in note
    ignored = asked(tiny, "--blocks", "1", "--window-slots", "all")[0]["note"]
    assert "window_slots is null: windows are ignored" in ignored


def test_weights_that_just_fit_are_not_too_heavy(cli, tiny):
    """16,354 bytes of weights in as many of memory: nothing is left for a cache, and nothing is missing."""
    code, out, _ = cli("fits", tiny, "--memory", "16354B")
    assert (code, out.splitlines()[0]) == (1, "tiny: no conversation fits at 11 tokens")
    code, out, _ = cli("fits", tiny, "--memory", "16354B", "--reserve", "1B")
    assert (code, out.splitlines()[0]) == (1, "tiny: the weights do not fit beside what is kept free, by 1 B")


def test_a_context_beyond_the_models_own_is_said(cli, windowed):
    text = cli("fits", "8b", "--memory", "80GiB", "--context", "9000")[1]
    assert "9,000 tokens are more than llama-3-8b's context_length of 8,192" in text


def test_an_engine_logs_this(asked):
    """vLLM of an 8B model: "GPU blocks: 1952", "Maximum concurrency for 20000 tokens per request: 1.56x"."""
    data, code = asked("8b", "--blocks", "1952", "--context", "20000")
    assert answers(data, "engine_reserved") == (2_621_440_000, 1, 1.5616, 31_232)
    assert code == 0


def test_blocks_are_the_memory_that_they_take(asked):
    """A memory of weights and 1,952 blocks has the same answers as the blocks have."""
    blocks = asked("8b", "--blocks", "1952", "--context", "20000")[0]
    memory = asked("8b", "--memory", f"{16_060_522_496 + blocks['pool_bytes']}B", "--context", "20000")[0]
    for key in ("pool_bytes", "architectural", "engine_reserved", "fits"):
        assert memory[key] == blocks[key]


@pytest.mark.parametrize("model", ["8b", "gemma-2-9b", "7b"])
def test_the_longest_context_holds_no_more_than_the_pool_and_one_more_token_would(asked, fine, model):
    data = asked(model, "--memory", "24GiB", "--context", "8k")[0]
    longest = data["architectural"]["longest_context"]
    held = [
        json.loads(fine("kv", model, "--context", tokens, "--json"))["kv_cache_bytes"]
        for tokens in (longest, longest + 1)
    ]
    assert held[0] <= data["pool_bytes"] < held[1]
    assert 0 <= longest - data["engine_reserved"]["longest_context"] < 40  # blocks of 16, and what a window may touch


def test_several_models_are_columns_and_all_must_fit(cli, asked, tiny, windowed):
    """17 tokens take two blocks: 3,840 of 8,646 bytes, and 5·32·40 = 6,400 of 3,706."""
    data, code = asked(tiny, windowed, "--memory", "25KB", "--context", "17")
    assert [each["fits"] for each in data] == [True, False]
    assert code == 1
    lines = cli("fits", tiny, windowed, "--memory", "25KB", "--context", "17")[1].splitlines()
    assert lines[0] == "tiny: 2 conversations fit at 17 tokens; windowed: no conversation fits at 17 tokens"
    assert ["pool", "for", "caches", "8,646", "8.44", "KiB", "3,706", "3.62", "KiB"] in [line.split() for line in lines]
    assert asked(tiny, windowed, "--memory", "28KB", "--context", "17")[1] == 0  # 6,706


def test_the_same_model_twice_is_told_apart(cli, tiny):
    lines = cli("fits", tiny, tiny, "--memory", "20KB")[1].splitlines()
    assert "tiny #1: 1 conversation fits" in lines[0]
    assert "tiny #2: 1 conversation fits" in lines[0]
    assert lines[2].split() == ["ledger", "(exact)", "tiny", "#1", "tiny", "#2"]
    assert len(lines) == len(set(lines) - {""}) + lines.count("")


@pytest.mark.parametrize(
    ("options", "what", "hint"),
    [
        ("", "no memory is given", "--memory 80GiB; or --blocks 1952, or --pool 5.38GiB"),
        ("--memory 8GB --blocks 5", "both --memory and --blocks are given", "--memory 80GiB; or --blocks 1952"),
        ("--pool 8GB --blocks 5", "both --blocks and --pool are given", "--memory 80GiB; or --blocks 1952"),
        ("--pool 8GB --reserve 5GB", "--reserve has no part in --pool", "leave it out"),
        ("--pool 8GB --weights q8_0", "--weights has no part in --pool", "leave it out"),
        ("--pool 8", "'8' is not an amount of memory", "--pool 80GiB"),
        ("--memory= --blocks 5", "both --memory and --blocks are given", "--memory 80GiB"),
        ("--memory 80G", "'80G' is not an amount of memory", "--memory 80GiB, or 80GB"),
        ("--memory 80", "'80' is not an amount of memory", "--memory 80GiB"),
        ("--memory -1GB", "'-1GB' is not an amount of memory", "--memory 80GiB"),
        ("--memory=", "'' is not an amount of memory", "--memory 80GiB"),
        ("--memory 9999PiB", "--memory '9999PiB' is more than 1,000,000,000,000,000,000 bytes", "--memory 80GiB"),
        ("--memory 1GB --reserve 5", "'5' is not an amount of memory", "--reserve 80GiB"),
        ("--memory 1GB --weights q4km", "unknown weight format 'q4km'", "did you mean q4_k_m?"),
        ("--memory 1GB --weights bf17", "unknown weight format 'bf17'", "bf16"),
        ("--memory 1GB --weights 0bits", "'0bits' is not between 0 and 128 bits", "4.82bits"),
        ("--memory 1GB --kv-dtype bf17", "unknown dtype 'bf17'", "bf16"),
        ("--memory 1GB --kv-dtype q4_k", "unknown dtype 'q4_k'", "q4"),
        ("--memory 1GB --block-size 0", "--block-size must be at least 1, got '0'", "--block-size takes"),
        ("--memory 1GB --window-slots some", "'some' is not a number that --window-slots takes", "takes all, or"),
        ("--memory 1GB --window-slots -1", "'-1' is not a number that --window-slots takes", "takes all, or"),
        ("--blocks 0", "--blocks must be at least 1, got '0'", "--blocks takes"),
        ("--blocks many", "'many' is not a number that --blocks takes", "--blocks takes"),
        ("--blocks 5 --reserve 2GB", "--reserve has no part in --blocks", "leave it out"),
        ("--blocks 5 --weights q4_k", "--weights has no part in --blocks", "leave it out"),
        ("--memory 1GB --context 0", "--context must be at least 1, got '0'", "--context takes"),
        ("--memory 1GB --context 1,5k", "'1,5k' is not a number that --context takes", "--context takes"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_type(refused, options, what, hint):
    said, told = refused("fits", "gpt2", *options.split())
    assert said == what
    assert hint in told


def test_a_model_without_a_context_needs_one(refused, windowed):
    what, hint = refused("fits", windowed, "--memory", "1GB")
    assert what == "windowed has no context_length"
    assert "--context 8k" in hint


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize(
    "line", ["fits 8b gpt2 gemma-2-9b --memory 24GiB --window-slots all", "fits 8b --blocks 7 --explain"]
)
def test_it_fits_a_narrow_terminal(narrow, columns, line):
    text = narrow(columns, *line.split())
    assert "1,073,741,824" in text


def test_a_pool_that_an_engine_logs(cli, tiny):
    """20 KB of caches: 3·2·2·5·2 = 120 bytes a token."""
    code, out, err = cli("fits", tiny, "--pool", "20KB", "--context", "11", "--json")
    found = json.loads(out)
    assert (code, err, found["pool_bytes"], found["memory_bytes"], found["blocks"]) == (0, "", 20_000, None, None)
    assert found["architectural"]["conversations"] == 20_000 // (11 * 120)
    assert "the pool is what they left" in found["note"]
    text = cli("fits", tiny, "--pool", "20KB", "--context", "11")[1]
    assert "pool for caches" in text
    assert "\nblocks " not in text
