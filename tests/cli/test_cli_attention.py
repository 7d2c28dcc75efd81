"""`costcalc attention` on the models of conftest.py.

Both have 6 query heads of 5, so a pair takes 4·6·5 = 120 FLOPs a layer. tiny: 3 layers; its matrices take
2·(3·(1,040 + 1,443) + 247) = 15,392 FLOPs a token. windowed: 5 layers, four of which see 5 tokens; 2·(5·2,002 + 247) =
20,514 a token.
"""

import csv
import io
import json

import pytest

from costcalc.cli.attention import MOST_CONTEXTS, USUAL, parsed_contexts

NEAR = """\
name: near
vocab_size: 19
d_model: 13
norm: rmsnorm
layers: [{repeat: 4, attention: {heads: 6, kv_heads: 2, head_dim: 5, window: 5}, feed_forward: {d_ff: 37}}]
"""


@pytest.fixture
def near(tmp_path):
    path = tmp_path / "near.yaml"
    path.write_text(NEAR)
    return path


@pytest.fixture
def asked(fine):
    return lambda *words: json.loads(fine("attention", *words, "--json"))


def test_the_json(asked, tiny):
    """7 tokens: 28 pairs, 7 with the last one; scores of 6·7·7 = 294 values in each of three layers."""
    data = asked(tiny, "--contexts", "7")
    assert data.pop("costcalc_version")
    assert data == {
        "schema": "costcalc.attention/1",
        "model": "tiny",
        "counting": "attended",
        "memory_tokens": 0,
        "dtype": "bf16",
        "contexts": [
            {
                "context": 7,
                "next_token_forward_flops": 17_912,
                "next_token_attention_flops": 2_520,  # 3·120·7
                "next_token_weight_flops": 15_392,
                "sequence_forward_flops": 117_824,
                "sequence_attention_flops": 10_080,  # 3·120·28
                "sequence_weight_flops": 107_744,  # 7·15,392
                "score_matrix_bytes": 1_764,  # 3·294·2
                "score_matrix_bytes_per_layer": 588,
            }
        ],
        "crossings": {
            # 360·S and 180·(S + 1) a token against 15,392: 21.4 and 41.8, 42.8 and 84.5
            "half_of_weights_context": {"next_token": 22, "sequence": 42},
            "equal_to_weights_context": {"next_token": 43, "sequence": 85},
        },
    }


def test_the_rectangle_is_what_a_kernel_without_a_mask_multiplies(asked, tiny):
    """49 pairs of 7 tokens, so that a token of the sequence costs what the next one does."""
    data = asked(tiny, "--contexts", "7", "--counting", "rectangle")
    (at,) = data["contexts"]
    assert (at["next_token_attention_flops"], at["sequence_attention_flops"]) == (2_520, 17_640)
    assert data["crossings"]["equal_to_weights_context"] == {"next_token": 43, "sequence": 43}
    assert data["counting"] == "rectangle"


@pytest.mark.parametrize(
    ("dtype", "canonical", "layer", "every"),
    [
        ("fp32", "fp32", 1_176, 3_528),
        ("half", "fp16", 588, 1_764),
        ("fp8", "fp8", 294, 882),
        ("q8_0", "q8_0", 313, 938),
    ],
)
def test_score_matrices_by_dtype(asked, tiny, dtype, canonical, layer, every):
    """294 and 882 values; in q8_0 of 34/32 bytes 312.4 and 937.1, rounded up."""
    data = asked(tiny, "--contexts", "7", "--dtype", dtype)
    (at,) = data["contexts"]
    assert (at["score_matrix_bytes_per_layer"], at["score_matrix_bytes"], data["dtype"]) == (layer, every, canonical)


def test_layers_with_a_window(asked, windowed):
    """At 7 tokens: 4·5 + 7 = 27 pairs of the last, 4·25 + 28 = 128 of all; at 4 no window binds: 20 and 5·10."""
    data = asked(windowed, "--contexts", "4,7")
    assert [at["next_token_attention_flops"] for at in data["contexts"]] == [120 * 20, 120 * 27]
    assert [at["sequence_attention_flops"] for at in data["contexts"]] == [120 * 50, 120 * 128]
    # a kernel without windows of its own writes all scores: 5·6·7·7·2 bytes
    assert [at["score_matrix_bytes"] for at in data["contexts"]] == [960, 2_940]
    # 120·(20 + S) a token: 65.5 and 151; 120·(20 - 40/S + (S + 1)/2): 130.6 and 301.2
    assert data["crossings"] == {
        "half_of_weights_context": {"next_token": 66, "sequence": 131},
        "equal_to_weights_context": {"next_token": 151, "sequence": 302},
    }


def test_windows_alone_never_overtake_the_weights(fine, asked, near):
    assert asked(near, "--contexts", "1M")["crossings"] == {
        "half_of_weights_context": {"next_token": None, "sequence": None},
        "equal_to_weights_context": {"next_token": None, "sequence": None},
    }
    lines = fine("attention", near, "--contexts", "7").splitlines()
    assert lines[0] == "near: attention is 9.4% of a sequence of 7 tokens and never overtakes the weights"
    assert [line.split()[-2:] for line in lines if "as large as the" in line] == [["never", "never"]] * 2


def test_the_rows(fine, tiny):
    text = fine("attention", tiny, "--contexts", "7,11", "--format", "csv")
    core, share, first = "attention core at context", "share of the forward pass", "context from which on it is"
    assert list(csv.reader(io.StringIO(text)))[:-2] == [
        ["section", "quantity", "unit", "next token", "whole sequence", "a layer", "all layers", "status"],
        [core, "7", "FLOPs", "2520", "10080", "", "", "exact"],
        [core, "11", "FLOPs", "3960", "23760", "", "", "exact"],
        [share, "7", "", "0.140688", "0.085551", "", "", "exact"],
        [share, "11", "", "0.204630", "0.123063", "", "", "exact"],
        [first, "half as large as the weights' part", "tokens", "22", "42", "", "", "exact"],
        [first, "as large as the weights' part", "tokens", "43", "85", "", "", "exact"],
        ["scores never stored, bf16", "7", "bytes", "", "", "588", "1764", "exact"],
        ["scores never stored, bf16", "11", "bytes", "", "", "1452", "4356", "exact"],
    ]


def test_the_title_and_the_notes(fine, tiny):
    lines = fine("attention", tiny, "--contexts", "7").splitlines()
    assert lines[0] == "tiny: attention is 8.6% of a sequence of 7 tokens and overtakes the weights at 85 tokens"
    notes = [line for line in lines if line.startswith("note: ")]
    assert "the pairs that mask and window allow" in notes[0]
    assert "arXiv 2205.14135" in notes[1]
    assert len(notes) == 2
    rectangle = fine("attention", tiny, "--contexts", "7", "--counting", "rectangle")
    assert "every query with every key it is handed" in rectangle


@pytest.mark.parametrize(("context", "warns"), [("11", False), ("12", True), ("7,12,9", True)])
def test_a_context_beyond_the_position_table_is_noted(fine, asked, tiny, context, warns):
    note = "12 tokens are more than the 11 rows of tiny's position table"
    assert (note in fine("attention", tiny, "--contexts", context)) == warns
    assert (asked(tiny, "--contexts", context).get("note") == note) == warns


def test_the_usual_contexts_run_from_1k_to_1m(asked):
    data = asked("8b")
    assert [at["context"] for at in data["contexts"]] == [2**power for power in range(10, 21)]


def test_published_numbers(asked):
    """Llama-3-8B at 8,192 without a mask: 4·32 heads·128·8,192·32 layers a token; 131,072 tokens in bf16 would store
    32·131,072^2·2 bytes of scores a layer, a TiB."""
    (at,) = asked("8b", "--contexts", "8k", "--counting", "rectangle")["contexts"]
    assert at["next_token_attention_flops"] == 4_294_967_296
    (at,) = asked("8b", "--contexts", "128k")["contexts"]
    assert at["score_matrix_bytes_per_layer"] == 2**40


@pytest.mark.parametrize("counting", ["attended", "rectangle"])
@pytest.mark.parametrize("model", ["gpt2", "8b", "gemma-2-9b", "mistral-7b-v0.1"])
def test_it_says_what_flops_says(fine, asked, model, counting):
    for at in asked(model, "--contexts", "777,9k", "--counting", counting)["contexts"]:
        words = ("flops", model, "--counting", counting, "--json")
        whole = json.loads(fine(*words, "--seq-len", at["context"]))
        last = json.loads(fine(*words, "--seq-len", 1, "--past-tokens", at["context"] - 1))
        for key in ("forward", "attention", "weight"):
            assert at[f"sequence_{key}_flops"] == whole[f"{key}_flops"]
            assert at[f"next_token_{key}_flops"] == last[f"{key}_flops"]


@pytest.mark.parametrize("model", ["gpt2", "8b", "gemma-2-9b", "qwen3-8b"])
def test_at_a_crossing_it_is_reached_and_a_token_before_it_is_not(asked, model):
    crossings = asked(model, "--contexts", "1k")["crossings"]
    for key, share in (("half_of_weights_context", 2), ("equal_to_weights_context", 1)):
        for way, tokens in crossings[key].items():
            before, at = asked(model, "--contexts", f"{tokens - 1},{tokens}")["contexts"]
            assert before[f"{way}_attention_flops"] * share < before[f"{way}_weight_flops"]
            assert at[f"{way}_attention_flops"] * share >= at[f"{way}_weight_flops"]


def test_several_models_have_tables_of_their_own(fine, asked, tiny, windowed):
    assert [each["model"] for each in asked(tiny, windowed, "--contexts", "7")] == ["tiny", "windowed"]
    text = fine("attention", tiny, windowed, "--contexts", "7")
    assert [line.partition(":")[0] for line in text.splitlines() if "at context" in line] == ["tiny", "windowed"]
    assert text.startswith(
        "tiny: attention is 8.6% of a sequence of 7 tokens and overtakes the weights at 85 tokens; w"
    )
    assert text.count("note: one sequence") == 1


def test_the_same_model_twice_is_told_apart(fine, tiny):
    lines = fine("attention", tiny, tiny, "--contexts", "7").splitlines()
    assert [line.partition(":")[0] for line in lines if "at context" in line] == ["tiny #1", "tiny #2"]


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("8k", [8_192]),
        ("8k,1k", [1_024, 8_192]),
        ("1k,1024,0.5k", [512, 1_024]),
        (" 1k , 2k ", [1_024, 2_048]),
        ("1e3,7", [7, 1_000]),
        (",".join(map(str, range(1, 101))), list(range(1, 101))),
        (",".join(["7"] * 500), [7]),
    ],
)
def test_contexts_as_people_write_them(text, lengths):
    assert parsed_contexts(text) == lengths


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "'' is not a number that --contexts takes"),
        ("1k,,8k", "'' is not a number that --contexts takes"),
        ("8k,", "'' is not a number that --contexts takes"),
        ("8k;9k", "'8k;9k' is not a number that --contexts takes"),
        ("8T", "'8T' is not a number that --contexts takes"),
        ("0", "--contexts must be at least 1, got '0'"),
        ("1k,0", "--contexts must be at least 1, got '0'"),
        ("1.5", "--contexts '1.5' is not a whole number"),
        ("1e13", "--contexts '1e13' is more than 1,000,000,000,000"),
        (",".join(map(str, range(1, MOST_CONTEXTS + 2))), "--contexts has more than 100 lengths"),
    ],
)
def test_contexts_that_are_none_are_refused(refused, text, what):
    said, hint = refused("attention", "gpt2", "--contexts", text)
    assert said == what
    assert hint in ("--contexts takes a whole number such as 8192 or 8k (= 8,192)", f"--contexts {USUAL}")


@pytest.mark.parametrize(
    ("options", "what", "hint"),
    [
        ("--counting causal", "unknown counting 'causal'", "attended, rectangle"),
        ("--counting rectangel", "unknown counting 'rectangel'", "rectangle"),
        ("--dtype bf17", "unknown dtype 'bf17'", "bf16"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_type(refused, options, what, hint):
    said, told = refused("attention", "gpt2", *options.split())
    assert said == what
    assert hint in told


def test_the_working_is_of_the_longest_context(fine, tiny):
    data = json.loads(fine("attention", tiny, "--contexts", "11,7", "--explain", "--json"))
    values = {line["name"]: line["value"] for line in data["numbers"]}
    assert values["sequence_attention_flops"] == 23_760  # 3·120·66
    assert values["score_matrix_bytes"] == 4_356
    assert values["crossings.equal_to_weights_context.sequence"] == 85
    crossing = next(line for line in data["numbers"] if line["name"].endswith("equal_to_weights_context.sequence"))
    assert crossing["formula"] == (
        "the S from which on equal_to_weights_sequence_attention_flops >= 1 x equal_to_weights_sequence_weight_flops"
    )


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("line", ["attention 8b gpt2", "attention 8b --contexts 1M --explain"])
def test_it_fits_a_narrow_terminal(narrow, columns, line):
    assert "288,230,651,029,618,688" in narrow(columns, *line.split())


@pytest.mark.parametrize("text", ["8,192", "1k,8,192", "131,072,1M"])
def test_grouped_digits_may_be_one_length_or_two(refused, text):
    what, hint = refused("attention", "8b", "--contexts", text)
    assert what.endswith("may be one length or several")
    assert hint.startswith("--contexts ")


def test_short_lengths_beside_long_ones_are_lengths(fine):
    for text in ("64,1024,8k", "64, 1024, 8k"):
        contexts = json.loads(fine("attention", "8b", "--contexts", text, "--json"))["contexts"]
        assert [each["context"] for each in contexts] == [64, 1_024, 8_192]
    contexts = json.loads(fine("attention", "8b", "--contexts", "64, 128", "--json"))["contexts"]
    assert [each["context"] for each in contexts] == [64, 128]


def test_a_crossing_that_is_null_has_a_note(fine):
    assert "a crossing is null" in json.loads(fine("attention", "mistral-7b-v0.1", "--json"))["note"]
    assert "note" not in json.loads(fine("attention", "8b", "--contexts", "8k", "--json"))
