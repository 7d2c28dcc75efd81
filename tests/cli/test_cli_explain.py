"""`costcalc explain` on the models of conftest.py; tests/cli/test_working.py holds it against every report."""

import json

import pytest

from costcalc.cli.explain import ALIASES, NEEDS_MEMORY

MEMORY = ("--memory", "20KB")


@pytest.fixture
def asked(fine):
    """asked(model, "kv", ...) -> the value of each number that was asked for, and all lines by name."""

    def call(*words):
        data = json.loads(fine("explain", *words, "--json"))
        lines = {line["name"]: line for line in data["numbers"]}
        return [lines[name]["value"] for name in data["explained"]], lines

    return call


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("total_parameters", 8_177),
        ("embedding_parameters", 637),  # 247 + 143 + 247
        ("buffers", 0),
        ("active_parameters_without_input_table", 7_787),  # less 247 and 143
        ("kv_cache_bytes", 1_320),  # 11 tokens of 120 bytes
        ("kv_cache_bytes --context 7", 840),
        ("kv_cache_bytes --context 7 --batch 3", 2_520),
        ("kv_cache_bytes --context 7 --dtype q8_0", 447),  # 420·34/32, rounded up
        ("kv_bytes_per_token", 120),
        ("forward_flops --seq-len 7", 117_824),  # 7·15,392 and 360·28
        ("forward_flops --seq-len 7 --batch 2", 235_648),
        ("attention_flops --seq-len 7 --counting rectangle", 17_640),  # 360·49
        ("attention_flops --seq-len 1 --past-tokens 6", 2_520),  # 360·7
        ("weight_flops --seq-len 7 --logits last", 104_780),  # 7·14,898 and 494
        ("flops_per_token --seq-len 7", 16_832),  # 117,824 / 7
        ("train_flops --seq-len 7", 353_472),
        ("train_flops --tokens 77 --seq-len 7", 3_888_192),
        ("train_flops --tokens 80 --seq-len 7", 4_033_200),  # and a sequence of 3 tokens
        ("6nd_total --tokens 77", 3_777_774),  # 6·8,177·77
        ("palm --tokens 77 --seq-len 7", 4_359_894),
        ("palm.attention_flops --tokens 77 --seq-len 7", 582_120),
        ("palm.ratio_to_exact --tokens 77 --seq-len 7", 1.121317),  # 4,359,894 / 3,888,192
        ("6nd_total --seq-len 7 --batch 11", 3_777_774),  # without --tokens those of the batch
        ("sequences --tokens 80 --seq-len 7", 11),
        ("rule_of_thumb.layer_parameters", 7_449),
        ("next_token_flops --context 7", 17_912),
        ("sequence_6nd_flops --context 7", 343_434),  # 6·8,177·7
        ("score_matrix_bytes --context 7 --dtype fp32", 3_528),  # 3·6·49·4
        ("crossings.equal_to_weights_context.sequence", 85),
        ("crossings.equal_to_weights_context.sequence --counting rectangle", 43),
        ("weight_bytes_q4_0", 4_600),
        ("weight_bytes_4.82_bits --weights 4.82bits", 4_927),
        ("left_bytes_fp8 --memory 8KB", -177),
        ("pool_bytes --memory 20KB --reserve 1KB", 2_646),
        ("pool_bytes --memory 20KB --weights q4_0", 15_400),
        ("pool_bytes --blocks 7", 13_440),
        ("pool_bytes --blocks 7 --block-size 3 --dtype fp8", 1_260),  # 7·3·60
        ("architectural.conversations --memory 20KB --context 7", 4),
        ("engine_reserved.conversations --memory 20KB --context 7", 1),
        ("engine_reserved.concurrency --memory 20KB --context 7", 1.898958),
        ("architectural.longest_context --memory 20KB", 30),
        ("decoder.layers", 2_509),  # a single layer
        ("decoder.final_norm", 13),
    ],
)
def test_a_number_of_any_report(asked, tiny, words, value):
    values, _ = asked(tiny, *words.split())
    assert values == [value]


def test_a_path_is_its_parameters_and_its_flops(cli, tiny):
    """13·2·5 weights in 3 layers; 2 x 11 tokens of each."""
    numbers = json.loads(cli("explain", tiny, "decoder.layers.attention.k", "--json")[1])["numbers"]
    assert [(line["value"], line["unit"]) for line in numbers] == [(390, "parameters"), (8_580, "FLOPs")]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("kv_cache --seq-len 7", 840),  # 60 elements of 2 bytes a token
        ("kv_cache --context 7 --seq-len 5", 840),
        ("kv_cache --seq-len 3 --past-tokens 4", 840),
        ("weight_flops --context 7", 107_744),
        ("kv_per_token", 120),
        ("6nd_total --batch 3", 6 * 8_177 * 33),  # the tokens of the batch
        ("weights --weights q4_0", 4_600),  # 8,177 x 4.5 / 8, rounded up
        ("component_parameters.attention", 3_120),
        ("engine_reserved.bytes_of_conversations --memory 20KiB --context 7", 3_840),  # two blocks of 16 tokens
    ],
)
def test_what_follows_from_other_options(asked, tiny, words, value):
    values, _ = asked(tiny, *words.split())
    assert values == [value]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("train --past-tokens 3", "train_flops is null here: a training pass has no past tokens"),
        ("train --logits last", "train_flops is null here: a training pass has no past tokens"),
        ("architectural.longest_context --memory 30KB", "architectural.longest_context is null here"),
        ("crossings.equal_to_weights_context.sequence", "crossings.equal_to_weights_context.sequence is null here"),
    ],
)
def test_a_number_that_is_null_is_not_denied(cli, windowed, words, what):
    local = windowed.with_name("local.yaml")
    local.write_text(
        windowed.read_text("utf-8").replace("kv_heads: 2, head_dim: 5}, ", "kv_heads: 2, head_dim: 5, window: 5}, ")
    )
    code, _, err = cli("explain", local, *words.split(), "--context", "40")
    assert code == 2
    assert err.startswith(f"error: {what}")


def test_window_slots_and_a_window(asked, windowed):
    """40 tokens in blocks of 16: two of them in four layers and three in one, 176·40 bytes; or three in each."""
    words = ("engine_reserved.bytes_per_conversation", "--memory", "25KB", "--context", "40")
    assert asked(windowed, *words)[0] == [7_040]
    assert asked(windowed, *words, "--window-slots", "all")[0] == [9_600]


@pytest.mark.parametrize("alias", ALIASES)
def test_what_people_call_a_number(asked, tiny, alias):
    for word in (alias, alias.upper(), f" {alias} ", alias.replace("_", "-")):
        assert asked(tiny, word, *MEMORY)[0] == asked(tiny, ALIASES[alias], *MEMORY)[0] or alias == "weight_bytes"


def test_a_key_beats_an_everyday_name(asked, tiny):
    """With a memory the weights are those of --weights."""
    assert asked(tiny, "weight_bytes")[0] == [16_354]
    assert asked(tiny, "weight_bytes", *MEMORY, "--weights", "q4_0")[0] == [4_600]


def test_several_numbers_stand_in_the_order_of_asking_each_once(asked, tiny):
    assert asked(tiny, "kv", "total", "kv_cache_bytes", "flops", "--context", "7", "--seq-len", "7")[0] == [
        840,
        8_177,
        117_824,
    ]


def test_numbers_of_several_batches_and_contexts_stand_side_by_side(asked, tiny):
    """The cache of a batch beside a single conversation, a step beside a run."""
    values, lines = asked(
        *(tiny, "kv_cache_bytes", "architectural.conversations", "train_flops", "forward_flops", *MEMORY),
        *("--batch", "3", "--context", "7", "--seq-len", "5", "--tokens", "80"),
    )
    assert values[:2] == [2_520, 4]
    assert lines["decoder.layers.attention.k_cache"]["with_numbers"] == "3·3·7·2·5"
    assert lines["decoder.layers.attention.k_cache (conversation)"]["with_numbers"] == "3·1·7·2·5"
    assert values[3] == 3 * (5 * 15_392 + 360 * 15)


def test_the_list_of_numbers(fine, tiny):
    data = json.loads(fine("explain", tiny, "--json"))
    assert list(data) == ["schema", "costcalc_version", "model", "explained", "numbers"]
    assert data["explained"] == []
    values = {number["name"]: (number["value"], number["unit"]) for number in data["numbers"]}
    assert values["total_parameters"] == (8_177, "parameters")
    assert values["kv_cache_bytes"] == (1_320, "bytes")
    assert values["palm.ratio_to_exact"][1] == ""
    assert values["decoder.layers"] == (2_509, "parameters")
    assert not [name for name in values if name.startswith(NEEDS_MEMORY)]
    with_memory = json.loads(fine("explain", tiny, *MEMORY, "--json"))["numbers"]
    assert {"pool_bytes", "engine_reserved.conversations", "left_bytes_q4_0"} <= {each["name"] for each in with_memory}
    text = fine("explain", tiny)
    assert text.startswith("tiny: numbers that can be explained\n\nnumber (exact, ~ estimate, * modelled) ")
    assert "costcalc explain MODEL NUMBER shows how one comes about" in text


@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b"])
def test_every_listed_number_is_explained_as_listed(fine, asked, model):
    listed = json.loads(fine("explain", model, *MEMORY, "--batch", "3", "--json"))["numbers"]
    values, _ = asked(model, *(each["name"] for each in listed), *MEMORY, "--batch", "3")
    named = {each["name"]: each["value"] for each in listed}
    # exact parts of a convention have a name of their own, and are listed once
    assert set(values) == set(named.values())


def test_of_context_and_length_one_is_enough_where_the_model_has_none(asked, windowed):
    assert asked(windowed, "kv", "flops", "--context", "7")[0] == asked(windowed, "kv", "flops", "--seq-len", "7")[0]
    both = asked(windowed, "kv", "flops", "--context", "7", "--seq-len", "4")[0]
    assert both == [1_080, 4 * 20_514 + 120 * 50]


def test_the_whole_table(fine, tiny):
    lines = fine("explain", tiny, "kv_per_token", "--context", "7").splitlines()
    assert lines[0] == "tiny: kv_bytes_per_token = 120 bytes (120 B), exact"
    assert lines[-1] == "note: kv_bytes_per_token: the curve one token further on: layers with a window stop growing"


def test_an_estimate_says_so(fine, tiny):
    assert fine("explain", tiny, "palm").splitlines()[0].endswith(", estimate")
    assert fine("explain", tiny, "weight_bytes_q4_k_m").splitlines()[0].endswith(", modelled")
    assert fine("explain", tiny, "palm.ratio_to_exact", "--seq-len", "7").splitlines()[0] == (
        "tiny: palm.ratio_to_exact = 1.121317, estimate"
    )


def test_a_published_number(fine):
    """Llama-3-8B's model card: 8.03B; a token of its cache takes 128 KiB in bf16 (8 kv heads of 128)."""
    assert fine("explain", "8b", "params").splitlines()[0] == (
        "llama-3-8b: total_parameters = 8,030,261,248 parameters (8.03 B), exact"
    )
    assert fine("explain", "8b", "kv_per_token").splitlines()[0] == (
        "llama-3-8b: kv_bytes_per_token = 131,072 bytes (128.00 KiB), exact"
    )


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ("palmm", "no report has a number called 'palmm'", "did you mean palm"),
        ("total_parameter", "no report has a number called 'total_parameter'", "did you mean total_parameters or "),
        ("kv palmm", "no report has a number called 'palmm'", "did you mean palm"),
        (
            "weight_bytes_q4km",
            "no report has a number called 'weight_bytes_q4km'",
            "did you mean weight_bytes_q4_k_m or ",
        ),
        ("zzzzz", "no report has a number called 'zzzzz'", "costcalc explain MODEL lists the numbers"),
        ("decoder.layers.attention.z", "no report has a number called 'decoder.layers.attention.z'", ""),
        ("pool", "pool_bytes depends on a memory", "add --memory 80GiB, --blocks 1952 or --pool 5GiB"),
        ("conversations", "engine_reserved.conversations depends on a memory", "add --memory 80GiB"),
        ("architectural.longest_context", "architectural.longest_context depends on a memory", "add --memory 80GiB"),
        ("left_bytes_q4_0", "left_bytes_q4_0 depends on a memory", "add --memory 80GiB"),
        ("longest_context --memory 1GB", "no report has a number called 'longest_context'", "longest_context"),
        ("kv --memory 80G", "'80G' is not an amount of memory", "--memory 80GiB"),
        ("kv --memory 8GB --blocks 5", "both --memory and --blocks are given", "--memory 80GiB"),
        ("kv --blocks 5 --reserve 1GB", "--reserve has no part in --blocks", "leave it out"),
        ("kv --weights q4km", "unknown weight format 'q4km'", "did you mean q4_k_m?"),
        ("kv --context 1k,,8k", "'1k,,8k' is not a number that --context takes", "8k"),
        ("kv --context 0", "--context must be at least 1, got '0'", "8k"),
        ("kv --seq-len 0", "--seq-len must be at least 1, got '0'", "8k"),
        ("kv --batch 0", "--batch must be at least 1, got '0'", "--batch takes"),
        ("kv --past-tokens -1", "'-1' is not a number that --past-tokens takes", "--past-tokens takes"),
        ("kv --dtype bf17", "unknown dtype 'bf17'", "bf16"),
        ("kv --counting causal", "unknown counting 'causal'", "attended"),
        ("kv --logits none", "unknown logits 'none'", "all, last"),
        ("palm --tokens 0", "--tokens must be at least 1, got '0'", "15M"),
        (
            "palm --tokens 1000000T --seq-len 1",
            "--tokens 1,000,000,000,000,000,000 are more than 1,000,000,000,000,000 sequences",
            "--seq-len 8k",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_type(refused, words, what, hint):
    said, told = refused("explain", "gpt2", *words.split())
    assert said == what
    assert hint in told


def test_what_has_no_letters_is_no_number(refused):
    assert refused("explain", "gpt2", "")[0] == "no report has a number called ''"


def test_a_model_without_a_context_needs_one(refused, windowed):
    what, hint = refused("explain", windowed, "kv")
    assert what == "windowed has no context_length"
    assert "--context 8k" in hint


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("explain gemma-2-9b kv_cache --context 8k", "2,113,929,216"),
        ("explain 8b palm train_flops", "421,651,971,833,856"),
        ("explain 8b", "421,651,971,833,856"),
        ("explain 8b conversations --memory 80GiB --window-slots all", "69,838,823,424"),
    ],
)
def test_it_fits_a_narrow_terminal(narrow, columns, line, number):
    assert number in narrow(columns, *line.split())
