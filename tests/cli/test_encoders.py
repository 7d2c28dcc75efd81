"""Encoders and encoder-decoders in every command, on the models of conftest.py, worked out by hand.

The encoder: a pass of T tokens multiplies 2·(1,040 + 962) = 4,004 weights in the layers and 169 + 247 in the head for
each, 4,420 together, and 2·6·5 = 60 numbers for each pair of a layer and matrix.
The pair, M encoder and T decoder tokens: its encoder 4,004·M weights, keys and values of the memory 3·910 = 2,730·M;
the decoder 3·(1,040 + 1,820 + 1,066) = 11,778·T and the head 247·T, 12,025·T together.
"""

import json

import pytest

READS_NOTHING = "--memory-tokens is read by no cross-attention of "


@pytest.fixture
def asked(fine):
    """asked("kv", path, ...) -> the JSON."""
    return lambda *words: json.loads(fine(*words, "--json"))


def test_parameters(asked, encoder, pair):
    assert asked("params", encoder)["total_parameters"] == 4_725
    assert asked("params", encoder)["embedding_parameters"] == 247 + 143 + 39
    assert asked("params", pair)["total_parameters"] == 18_954
    assert asked("params", pair)["embedding_parameters"] == 247


def test_the_layers_of_both_stacks(asked, pair):
    layers = asked("params", pair, "--by", "layer")["layers"]
    assert [(layer["stack"], layer["layer"], layer["parameters"]) for layer in layers] == [
        ("encoder", 0, 2_028),
        ("encoder", 1, 2_028),
        *[("decoder", layer, 4_875) for layer in range(3)],
    ]


def test_a_pass_of_an_encoder(asked, encoder):
    """7 tokens: 2·4,420·7 = 61,880; 49 pairs: 2·2·60·49 = 11,760. The mask leaves nothing out."""
    for counting in ("attended", "rectangle"):
        data = asked("flops", encoder, "--seq-len", "7", "--counting", counting)
        assert (data["weight_flops"], data["attention_flops"]) == (61_880, 11_760)
        assert data["train_flops"] == 3 * 73_640


def test_an_encoder_has_no_past(refused, encoder):
    what, hint = refused("flops", encoder, "--seq-len", "7", "--past-tokens", "1")
    assert (what, hint) == ("reader is an encoder, which has no past", "leave --past-tokens out")
    what, _ = refused("flops", encoder, "--seq-len", "7", "--logits", "last")
    assert what == "reader is an encoder, which has no last token, so that --logits last does nothing"


def test_an_encoder_keeps_no_cache_and_says_why(asked, fine, encoder):
    data = asked("kv", encoder)
    assert {data[key] for key in ("kv_cache_elements", "cross_cache_elements", "state_elements")} == {None}
    assert {data[key] for key in ("kv_cache_bytes", "kv_bytes_per_token", "state_bytes")} == {None}
    assert "keeps no cache" in data["note"]
    text = fine("kv", encoder)
    assert text.startswith("reader: no cache\n")
    assert "note: reader: an encoder has no next token: it sees a text at once, and keeps no cache" in text


@pytest.mark.parametrize(
    ("options", "weights", "core"),
    [
        # T = 11, M = 7: 2·(4,004·7 + 2,730·7 + 12,025·11); core: encoder 2·2·60/2·49, decoder 3·60·2·66/2, cross 70·77
        ("--seq-len 11 --memory-tokens 7", 2 * (6_734 * 7 + 12_025 * 11), 2 * 120 * 49 + 3 * 120 * 66 + 3 * 280 * 77),
        ("--seq-len 1 --past-tokens 10 --memory-tokens 7", 2 * 12_025, 3 * 120 * 11 + 3 * 280 * 7),
        (
            "--seq-len 11 --memory-tokens 7 --counting rectangle",
            2 * (6_734 * 7 + 12_025 * 11),
            2 * 120 * 49 + 3 * 120 * 121 + 3 * 280 * 77,
        ),
    ],
)
def test_a_pass_of_a_pair(asked, pair, options, weights, core):
    data = asked("flops", pair, *options.split())
    assert (data["weight_flops"], data["attention_flops"]) == (weights, core)
    assert data["workload"]["memory_tokens"] == 7


def test_the_encoder_of_a_pair_is_said_to_run_once(fine, pair):
    assert "the encoder runs once, and its pass is counted here" in fine(
        "flops", pair, "--seq-len", "11", "--memory-tokens", "7"
    )
    later = fine("flops", pair, "--seq-len", "1", "--past-tokens", "3", "--memory-tokens", "7")
    assert "the encoder does not run again" in later


@pytest.mark.parametrize(
    "line",
    [
        "flops {} --seq-len 11",
        "kv {} --context 11",
        "show {} --context 11",
        "attention {}",
        "train {} --tokens 1M --seq-len 11",
        "fits {} --memory 1GB --context 11",
        "explain {} --context 11",
        "compare {} {} --context 11",
    ],
)
def test_a_pair_is_refused_without_its_encoder_tokens(refused, pair, line):
    what, hint = refused(*line.format(pair, pair).split())
    assert what == "pair is an encoder-decoder, and its encoder's tokens are not given"
    assert "--memory-tokens 512" in hint


@pytest.mark.parametrize("word", ["flops", "kv", "show", "attention", "explain"])
def test_encoder_tokens_that_nobody_reads_are_refused(refused, tiny, encoder, word):
    for path, name in ((tiny, "tiny"), (encoder, "reader")):
        what, _ = refused(word, path, "--memory-tokens", "7")
        assert what == READS_NOTHING + name


def test_of_several_models_those_read_them_that_can(asked, tiny, pair):
    both = asked("kv", tiny, pair, "--context", "7", "--memory-tokens", "7")
    assert [each["memory_tokens"] for each in both] == [0, 7]


def test_the_cache_of_a_pair(asked, pair):
    """Growing: 60 a token; cross: 2·3·5·7 = 210 an encoder token, once."""
    data = asked("kv", pair, "--context", "11", "--memory-tokens", "7", "--batch", "2")
    assert (data["kv_cache_elements"], data["cross_cache_elements"]) == (2 * 660, 2 * 1_470)
    assert (data["kv_cache_bytes"], data["kv_bytes_per_token"]) == (2 * 2 * 2_130, 2 * 120)


def test_where_nothing_can_be_explained_the_reason_is_told(asked, fine, encoder, tiny):
    why = "reader: an encoder has no next token: it sees a text at once, and keeps no cache"
    assert f"note: {why}" in fine("kv", encoder, "--explain")
    data = asked("kv", encoder, "--explain")
    assert (data["explained"], data["numbers"], data["note"]) == ([], [], why)
    both = asked("kv", tiny, encoder, "--explain", "--context", "7")
    assert ["note" in each for each in both] == [False, True]


def test_the_page_of_an_encoder(asked, fine, encoder):
    data = asked("show", encoder)
    assert data["what"]["family"] == "encoder-only"
    assert {data[key] for key in data if key.startswith("next_token")} == {None}
    assert (data["kv_cache_bytes"], data["kv_bytes_per_token"]) == (None, None)
    assert data["sequence_forward_flops"] == 2 * 4_420 * 11 + 240 * 121
    assert fine("show", encoder).startswith("reader: 4,725 parameters, 126.28 kFLOP for 11 tokens at once, no cache\n")


def test_the_page_of_a_pair(asked, pair):
    data = asked("show", pair, "--context", "11", "--memory-tokens", "7")
    assert data["what"]["encoder layers"] == "2 of width 13"
    assert data["what"]["decoder cross-attention"].startswith("10 query heads on 5 key/value heads of 7")
    assert data["next_token_flops"] == 2 * 12_025 + 360 * 11 + 840 * 7


def test_the_quadratic_part_of_an_encoder(asked, encoder):
    """240·S^2 against 8,840·S: equal at 36.8, half at 18.4."""
    data = asked("attention", encoder, "--contexts", "7")
    assert data["contexts"][0]["next_token_attention_flops"] is None
    assert data["contexts"][0]["sequence_attention_flops"] == 240 * 49
    assert data["crossings"]["equal_to_weights_context"] == {"next_token": None, "sequence": 37}
    assert data["crossings"]["half_of_weights_context"] == {"next_token": None, "sequence": 19}


def test_the_quadratic_part_of_a_pair(asked, pair):
    """M = 7: 360·S + 5,880 against 24,050: 50.5; the first pass, in which the encoder runs, is none of a next token."""
    data = asked("attention", pair, "--contexts", "7", "--memory-tokens", "7")
    assert data["crossings"]["equal_to_weights_context"]["next_token"] == 51
    assert data["contexts"][0]["score_matrix_bytes"] == 2 * (2 * 6 * 49 + 3 * 6 * 49 + 3 * 10 * 49)
    assert data["contexts"][0]["score_matrix_bytes_per_layer"] == 2 * (6 * 49 + 10 * 49)


def test_training_a_pair(asked, pair):
    """Three sequences of 11 and one of 7, each beside 7 encoder tokens."""
    data = asked("train", pair, "--tokens", "40", "--seq-len", "11", "--memory-tokens", "7")

    def forward(tokens):
        return 2 * (6_734 * 7 + 12_025 * tokens) + 240 * 49 + 180 * tokens * (tokens + 1) + 840 * 7 * tokens

    assert data["train_flops"] == 3 * (3 * forward(11) + forward(7))
    missing = {way["name"] for way in data["conventions"] if way["train_flops"] is None}
    assert {"kaplan", "palm", "megatron"} <= missing


def test_what_fits_of_a_pair(asked, pair):
    """A conversation holds 2·(60·11 + 210·7) = 4,260 bytes; in blocks of 16, 2·(60·16 + 210·16) = 8,640."""
    data = asked("fits", pair, "--memory", "100KB", "--context", "11", "--memory-tokens", "7")
    assert data["architectural"]["bytes_per_conversation"] == 4_260
    assert data["engine_reserved"]["bytes_per_conversation"] == 8_640
    assert data["architectural"]["conversations"] == (100_000 - 2 * 18_954) // 4_260


def test_an_encoder_fits_any_number_of_texts(asked, encoder):
    data = asked("fits", encoder, "--memory", "100KB")
    assert (data["fits"], data["architectural"]["conversations"]) == (True, None)


@pytest.mark.parametrize("number", ["kv_cache_bytes", "kv", "next_token_flops", "state_elements"])
def test_a_number_that_an_encoder_has_not_is_explained_as_such(refused, encoder, number):
    what, _ = refused("explain", encoder, number)
    assert what.endswith("is null here: an encoder has no next token: it sees a text at once, and keeps no cache")


@pytest.mark.parametrize(
    "line",
    [
        "show {} --explain",
        "params {} --explain",
        "flops {} --explain",
        "kv {} --explain",
        "attention {} --contexts 7,11 --explain",
        "train {} --tokens 1M --explain",
        "fits {} --memory 1MB --explain",
        "compare {} {} --explain",
        "explain {}",
    ],
)
def test_every_number_is_explained(fine, encoder, pair, line):
    fine(*line.format(encoder, encoder).split())
    length = "" if line.startswith(("params", "attention")) else " --seq-len 11" if "flops" in line else " --context 11"
    length = " --seq-len 11" if line.startswith("train") else length
    memory = "" if line.startswith("params") else " --memory-tokens 7"
    fine(*(line.format(pair, pair) + length + memory).split())


def test_two_encoders_are_compared_by_their_sequences(asked, encoder, tmp_path):
    """Another d_ff: 2·13·(41 - 37)·2 = 208 more weights, 2·208 a token."""
    wider = tmp_path / "wider.yaml"
    wider.write_text(encoder.read_text().replace("37", "41"))
    data = asked("compare", encoder, wider, "--context", "7")
    (change,) = data["changes"]
    assert (change["field"], change["added_parameters"]) == ("feed_forward.d_ff", 208)
    assert (change["added_sequence_flops"], change["added_kv_cache_bytes"]) == (2 * 208 * 7, 0)


def test_changes_of_a_pair_name_the_stack(asked, pair, tmp_path):
    wider = tmp_path / "wider.yaml"
    wider.write_text(pair.read_text().replace("37", "43"))
    data = asked("compare", pair, wider, "--context", "11", "--memory-tokens", "7")
    (change,) = data["changes"]
    assert change["field"] == "encoder.feed_forward.d_ff"
    # 2·13·6 more weights in each of two layers, for each of 7 encoder tokens, which no next token would show
    assert (change["added_parameters"], change["added_sequence_flops"]) == (2 * 2 * 13 * 6, 2 * 2 * 2 * 13 * 6 * 7)


def test_models_of_different_families_are_compared(asked, tiny, encoder, pair):
    data = asked("compare", tiny, encoder, pair, "--context", "7", "--memory-tokens", "7")
    assert [model["next_token_flops"] is None for model in data["models"]] == [False, True, False]
    assert [model["kv_cache_bytes"] for model in data["models"]] == [840, None, 2 * (420 + 1_470)]
    two = asked("compare", encoder, pair, "--context", "7", "--memory-tokens", "7")
    (decoder,) = [change for change in two["changes"] if change["field"] == "decoder"]
    assert (decoder["base"], decoder["other"]) == (None, "3 layers")
    assert two["all"]["added_parameters"] == 18_954 - 4_725
    assert two["all"]["added_kv_cache_bytes"] == 2 * (420 + 1_470)


def test_layers_that_share_their_weights(asked, fine, encoder):
    encoder.write_text(encoder.read_text().replace("repeat: 2", "repeat: 2\n      share_weights: true"))
    data = asked("params", encoder, "--by", "layer")
    assert data["total_parameters"] == 4_725 - 2_028
    assert [layer["parameters"] for layer in data["layers"]] == [2_028, 2_028]
    assert data["note"] == "reader: 2 layers share 1 set of weights, counted once"
    assert asked("flops", encoder, "--seq-len", "7")["weight_flops"] == 61_880
    assert asked("params", encoder, "--train-layers", "last:1")["trainable_parameters"] == 2_028
    assert "2,028" in fine("params", encoder, "--by", "layer")


def test_a_text_longer_than_the_encoders_table(asked, pair):
    pair.write_text(pair.read_text().replace("encoder:\n", "encoder:\n  positions: {kind: learned, length: 5}\n", 1))
    note = asked("kv", pair, "--context", "11", "--memory-tokens", "7")["note"]
    assert note == "7 tokens are more than the 5 rows of pair's encoder position table"


LONE = """\
name: lone
vocab_size: 19
d_model: 13
context_length: 11
norm: rmsnorm
head: none
layers:
  - repeat: 3
    attention: {heads: 6, kv_heads: 2, head_dim: 5}
    cross_attention: {heads: 10, kv_heads: 5, head_dim: 7}
    feed_forward: {d_ff: 41}
"""
IDLE = "lone: without --memory-tokens its cross-attention does nothing"


@pytest.fixture
def lone(tmp_path):
    path = tmp_path / "lone.yaml"
    path.write_text(LONE, encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["flops", "kv", "show", "attention", "train --tokens 1M", "fits --memory 1MB"])
def test_cross_attention_that_is_given_nothing_is_told(fine, lone, command):
    word, *options = command.split()
    assert f"note: {IDLE}" in fine(word, lone, *options)
    assert IDLE in json.loads(fine(word, lone, *options, "--json"))["note"]
    assert IDLE not in fine(word, lone, *options, "--memory-tokens", "7")


def test_a_decoder_beside_tokens_of_another_model(asked, fine, lone):
    """Keys and values take 3·910 weights for each of its tokens, queries and output 3·1,820 for each new one."""
    without, beside = (asked("flops", lone, "--seq-len", "11", *more) for more in ([], ["--memory-tokens", "7"]))
    assert beside["weight_flops"] - without["weight_flops"] == 2 * 3 * (910 * 7 + 1_820 * 11)
    assert beside["attention_flops"] - without["attention_flops"] == 3 * 280 * 77
    assert "whose own pass" not in fine("attention", lone, "--contexts", "7", "--memory-tokens", "7")


def test_logits_without_a_head_are_refused(refused, lone):
    what, hint = refused("flops", lone, "--logits", "last")
    assert (what, hint) == ("lone has no head, so that --logits last does nothing", "leave --logits out")


@pytest.mark.parametrize("number", ["total_parameters", "weight_bytes_bf16", "params", "encoder.layers", "6nd_total"])
def test_a_number_that_no_length_changes_needs_none(cli, pair, number):
    code, _, err = cli("explain", pair, number)
    assert (code == 0) is (number != "6nd_total"), err


def test_trained_layers_are_numbered_through_both_stacks(asked, pair):
    data = asked("params", pair, "--train-layers", "2")
    assert data["trainable_parameters"] == 4_875
    assert "layer 2 of 5 (encoder 0-1, decoder 2-4) alone" in data["note"]


def test_notes_on_conventions_that_were_made_for_decoders(fine, encoder):
    assert "an encoder's core is the whole rectangle" in fine("train", encoder, "--tokens", "1M")
    encoder.write_text(encoder.read_text().replace("repeat: 2", "repeat: 2\n      share_weights: true"))
    assert "weights that layers share are in P once" in fine("train", encoder, "--tokens", "1M")


def test_an_encoder_has_no_words_about_caches(fine, encoder):
    assert "next token is the last" not in fine("attention", encoder, "--contexts", "7")
    assert "paging" not in fine("kv", encoder)
    assert "cache in" not in fine("fits", encoder, "--memory", "1MB")
    assert "stops growing" not in fine("fits", encoder, "--memory", "1MB", "--json")
    assert json.loads(fine("show", encoder, "--json"))["rule_of_thumb"]["kv_bytes_per_token"] is None
