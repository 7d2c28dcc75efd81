"""`costcalc experts`, and what other commands say of mixtures, latent attention and layers that differ."""

import json
import re

import pytest

# 3 layers of 7 experts, of which a token uses 2: one is 3·13·11 = 429; router 91, shared 195, attention 1,040, norms 26
#   total = 3·(1,040 + 26 + 91 + 7·429 + 195) + 13 + 2·247 = 13,572; active 13,572 - 3·5·429 = 7,137
MIXED = """\
name: mixed
vocab_size: 19
d_model: 13
norm: rmsnorm
positions: rope
context_length: 31
layers:
  - repeat: 3
    attention: {heads: 6, kv_heads: 2, head_dim: 5}
    feed_forward:
      kind: mixture
      experts: 7
      experts_per_token: 2
      expert: {kind: gated, d_ff: 11}
      shared: {kind: gated, d_ff: 5}
"""
# Latent attention of 3 heads: 11 + 2 numbers a token are held in each of 2 layers, or 3·(5 + 2 + 7) = 42 decompressed.
LATENT = """\
name: latent
vocab_size: 19
d_model: 13
norm: rmsnorm
positions: rope
context_length: 31
layers:
  - repeat: 2
    attention: {kind: latent, heads: 3, kv_rank: 11, nope_dim: 5, rope_dim: 2, v_dim: 7}
    feed_forward: {d_ff: 37}
"""
# Of 5 layers 2 see chunks of 7, 2 windows of 5, and the last reads the keys of the third.
LAYERED = """\
name: layered
vocab_size: 19
d_model: 13
norm: rmsnorm
positions: rope
context_length: 31
block: {feed_forward: {d_ff: 37}}
layers:
  - {repeat: 2, name: chunked, attention: {heads: 6, kv_heads: 2, head_dim: 5, chunk: 7}}
  - {repeat: 2, name: local, attention: {heads: 6, kv_heads: 3, head_dim: 5, window: 5}}
  - {name: reads, attention: {heads: 6, kv_heads: 3, head_dim: 5, window: 5, cache_of: local}}
"""


@pytest.fixture
def model(tmp_path):
    def write(text):
        path = tmp_path / f"{text.partition('name: ')[2].split()[0]}{len(text)}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def data(fine):
    return lambda *words: json.loads(fine(*words, "--json"))


def test_what_a_batch_reads(fine, data, model):
    found = data("experts", model(MIXED), "--batch", "3")
    path = "decoder.layers.feed_forward.experts"
    # 7·(1 - (5/7)^3) = 218/49 experts; 6,890 + 3·429·120/49 = 10,041.8 parameters
    mixture = {"path": path, "layers": 3, "experts": 7, "experts_per_token": 2, "expert_parameters": 429}
    assert found["mixtures"] == [{**mixture, "distinct_experts": 4.44898}]
    assert found["read_parameters"] == 10_042
    assert (found["batch"], found["total_parameters"], found["active_parameters"]) == (3, 13_572, 7_137)
    assert found["active_parameters_without_input_table"] == 6_890
    assert found["active_parameters_without_tables"] == 6_643
    text = fine("experts", model(MIXED), "--batch", "3")
    assert text.startswith("mixed: 7.14 K of 13.57 K are active\n")
    assert re.search(r"experts of a token +2 of 7\n", text)
    assert re.search(r"~ read by 3 tokens +10,042", text)
    rows = re.findall(r"^=? *([\d,]+) +(\d\.\d\d) ", text, re.MULTILINE)
    assert rows == [("1", "2.00"), ("3", "4.45"), ("8", "6.53"), ("32", "7.00"), ("128", "7.00"), ("512", "7.00")]


def test_a_dense_model_has_no_experts(fine, data, tiny):
    found = data("experts", tiny)
    assert (found["mixtures"], found["read_parameters"]) == ([], 8_177 - 247 - 143)
    assert found["note"] == "tiny has no mixture of experts: every token uses all of it"
    assert fine("experts", tiny).startswith("tiny: no experts, 8.18 K\n")


def test_each_kind_of_layer_has_its_mixture(fine, data, model):
    second = "  - {name: wide, feed_forward: {kind: mixture, experts: 5, experts_per_token: 1, expert: {d_ff: 17}}}\n"
    found = data("experts", model(MIXED + second))["mixtures"]
    assert [(each["experts"], each["layers"]) for each in found] == [(7, 3), (5, 1)]
    text = fine("experts", model(MIXED + second))
    assert "experts of a token (decoder.layers.wide.feed_forward.experts)" in text
    assert "distinct in decoder.layers.wide.feed_forward.experts" in text


def test_a_step_that_is_too_long_is_refused(refused, model):
    what, hint = refused("experts", model(MIXED), "--batch", "1M")
    assert what == "1,048,576 tokens of one step are more than 100,000: all experts are read"
    assert hint == "at most 100000"


def test_six_nd_of_a_mixture_is_of_its_active_parameters(fine, data, model):
    text = fine("flops", model(MIXED), "--seq-len", "11")
    assert re.search(rf"6·N·D, active parameters +{6 * 7_137 * 11:,}", text)
    named = {each["name"]: each["train_flops"] for each in data("train", model(MIXED), "--tokens", "11")["conventions"]}
    assert (named["6nd_total"], named["6nd_active"]) == (6 * 13_572 * 11, 6 * 7_137 * 11)
    assert data("show", model(MIXED))["sequence_6nd_flops"] == 6 * 7_137 * 31


def test_a_dense_model_has_no_second_six_nd(data, tiny):
    names = [each["name"] for each in data("train", tiny, "--tokens", "11")["conventions"]]
    assert "6nd_active" not in names


def test_what_a_latent_holds_and_what_it_stands_for(fine, data, model):
    path = model(LATENT)
    assert data("kv", path, "--context", "17")["kv_cache_elements"] == 2 * 17 * 13
    found = data("kv", path, "--context", "17", "--decompressed")
    assert (found["kv_cache_elements"], found["kv_bytes_per_token"]) == (2 * 17 * 42, 2 * 42 * 2)
    assert found["holds"] == "keys and values of every head, not latents (--decompressed)"
    assert f"latent holds {found['holds']}" in fine("kv", path, "--decompressed")
    assert f"{2 * 17 * 42 * 2:,}" in fine("kv", path, "--context", "17", "--decompressed", "--explain")
    assert f"{2 * 42 * 2} bytes" in fine("explain", path, "kv_bytes_per_token", "--context", "17", "--decompressed")


def test_both_forms_of_latent_attention(fine, data, model):
    path = model(LATENT)
    step = ("flops", path, "--seq-len", "1", "--past-tokens", "10")
    forms = {form: data(*step, "--latent", form)["forward_flops"] for form in ("expanded", "absorbed")}
    # 2 layers of q 13·21, kv_down 13·13, output 21·13 and 2·13·37, the head 247; then 33 times (5 + 7) numbers for each
    # of 11 tokens and a core of 3·11·(7 + 7), or once and 3·11·(13 + 11)
    weights = 2 * (273 + 169 + 273 + 962) + 247
    assert forms["expanded"] == 2 * (weights + 2 * (11 * 33 * 12 + 33 * 14))
    assert forms["absorbed"] == 2 * (weights + 2 * (33 * 12 + 33 * 24))
    assert data(*step)["forward_flops"] == forms["absorbed"]
    assert data(*step, "--latent", "expanded")["workload"]["latent"] == "expanded"
    assert "latent: latent attention in its absorbed form (--latent)" in fine(*step)
    assert f"{forms['expanded']:,}" in fine("explain", path, "forward_flops", *step[2:], "--latent", "expanded")


def test_what_layers_hold_where_they_differ(fine, data, model):
    path = model(LAYERED)
    # 2 layers of 7 tokens on 2·2·5, 2 of 5 tokens on 2·3·5
    assert data("kv", path)["kv_cache_elements"] == 2 * 7 * 20 + 2 * 5 * 30 == 580
    text = fine("kv", path)
    rows = re.findall(r"^decoder\.layers\.(\w+) +(\d) +(\d+) +(\d+) ", text, re.MULTILINE)
    assert rows == [("chunked", "2", "7", "280"), ("local", "2", "5", "300"), ("reads", "1", "0", "0")]
    found = data("kv", path, "--no-windows")
    assert found["kv_cache_elements"] == 31 * (2 * 20 + 2 * 30)
    assert found["holds"] == "the whole context in every layer (--no-windows)"


def test_layers_that_hold_the_same_have_no_table(fine, tiny, encoder, pair):
    for words in (
        ("kv", tiny),
        ("kv", encoder, "--context", "7"),
        ("kv", pair, "--context", "7", "--memory-tokens", "5"),
    ):
        assert "by layers" not in fine(*words)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("kv", "--no-windows"), "no layer of tiny has a window or chunk: --no-windows is for those"),
        (("kv", "--decompressed"), "no latent attention in tiny: --decompressed is for that"),
        (("flops", "--latent", "absorbed"), "tiny has no latent attention, which --latent is for"),
        (("flops", "--latent", "folded"), "unknown latent 'folded'"),
    ],
)
def test_options_that_nothing_reads_are_refused(refused, tiny, words, what):
    assert refused(words[0], tiny, *words[1:])[0] == what


def test_several_models_may_share_an_option(data, model, tiny):
    plain, latent = data("kv", tiny, model(LATENT), "--context", "7", "--decompressed")
    assert (plain["kv_cache_elements"], latent["kv_cache_elements"]) == (3 * 7 * 20, 2 * 7 * 42)
    assert "holds" not in plain
    assert latent["holds"].endswith("(--decompressed)")


def test_the_page_says_what_layers_are(fine, model):
    text = fine("show", model(MIXED))
    assert re.search(r"feed-forward +2 of 7 experts \(gated silu, 11 wide\), one shared \(gated silu, 5 wide\)\n", text)
    assert "latent: 3 heads of 5 + 2 numbers, values of 7, cached as 11 + 2" in fine("show", model(LATENT))
    layered = fine("show", model(LAYERED))
    assert "chunks of 7" in layered
    assert "keys and values of local" in layered


def test_modules_beside_the_model_have_a_line_of_their_own(fine, data, model):
    more = "multi_token: {layer: {attention: {heads: 6, kv_heads: 2, head_dim: 5}, feed_forward: {d_ff: 37}}}\n"
    alone, beside = data("params", model(MIXED)), data("params", model(MIXED + more))
    assert (alone["extra_parameters"], beside["extra_parameters"]) == (0, 2_405)  # 26 + 338 + 2,028 + 13
    assert beside["total_parameters"] == alone["total_parameters"]
    assert re.search(r"extra +2,405", fine("params", model(MIXED + more)))


@pytest.mark.parametrize("text", [MIXED, LATENT, LAYERED], ids=lambda text: text.split()[1])
def test_each_of_them_is_verified(fine, model, text):
    assert "agree" in fine("verify", model(text))


def test_active_parameters_with_and_without_tables(fine, model):
    text = fine("params", model(MIXED))
    assert re.search(r"active +7,137 .*\nactive, no input table +6,890 .*\nactive, no tables +6,643 ", text)
    assert "active" not in fine("params", model(LATENT))


def test_what_no_count_holds_is_named(fine, data, model):
    path = model("not_counted: [vision tower, projector]\n" + MIXED)
    said = "mixed: not counted, beside the text model: vision tower, projector"
    found = data("params", path)
    assert (found["not_counted"], found["note"]) == (["vision tower", "projector"], said)
    assert "not_counted" not in data("params", model(MIXED))
    for command in ("params", "show", "weights", "experts"):
        assert f"note: {said}\n" in fine(command, path)
        assert said in data(command, path)["note"]
    assert f"note: {said}\n" in fine("fits", path, "--memory", "1GB")
    assert f"note: {said}\n" in fine("compare", path, model(LATENT))
