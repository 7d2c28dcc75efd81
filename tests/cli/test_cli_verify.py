"""`costcalc verify`: the table, the JSON, exit code 1 with the differing paths, and the line of progress."""

import copy
import csv
import io
import json
import re
import sys

import numpy as np
import pytest

from costcalc.cli.verify import Progress
from costcalc.reference import forward


@pytest.fixture
def more_kv_heads(monkeypatch):
    """A pass in which every attention has as many key/value heads as query heads."""

    def pass_(fields, tokens, **more):
        fields = copy.deepcopy(fields)
        for layer in fields["decoder"]["layers"]:
            layer["attention"]["kv_heads"] = None
        return forward(fields, tokens, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)


def without_measures(text):
    """What does not depend on rounding: 2.4e-07 -> #."""
    return re.sub(r"\d\.\de-\d\d(?=  )", "#", text)


def test_the_table(fine, tiny):
    # A layer has 7 matrices and 2 norms, 7 + 2 products and 2 caches; outside there are 4 parameters
    # (8,177 numbers, worked out in conftest.py) and the head. Multiplied: 3·2,483 + 247 = 7,696; cores
    # 3·2·2·6·5·(1 + 2 + ... + 11 = 66) and 3·2·2·30·11; cache 3·2·2·5·11.
    assert without_measures(fine("verify", tiny)) == (
        """\
tiny: verified, 65 paths agree in prefill and decode

compared (exact)          paths   stated                recorded
prefill: parameters          31    8,177        8.18 K     8,177        8.18 K
prefill: FLOPs               28  193,072  193.07 kFLOP   193,072  193.07 kFLOP
prefill: cached elements      6      660                     660
decode: parameters           31    8,177        8.18 K     8,177        8.18 K
decode: FLOPs                28   19,352   19.35 kFLOP    19,352   19.35 kFLOP
decode: cached elements       6      660                     660

measured (measured)                                     by  allowed    verdict
sums of attention rows differ from 1               #  1e-05      fine
a later token changes earlier logits                     0  exactly 0  fine
cached decoding differs from the full pass         #  1e-04      fine
attention at the same RoPE offsets differs               -  1e-04      no layer has rotary positions
RoPE changes lengths of keys                             -  1e-05      no layer has rotary positions
prefill FLOPs differ from the sum of decode steps        0  exactly 0  fine

note: tiny: 11 tokens, every layer in full width, float32; all parameters share one random arena of 257.88 KiB
"""
    )


def test_the_table_of_an_encoder_has_one_pass(fine, encoder):
    # 4,725 numbers, worked out in conftest.py. Multiplied: two layers of 2,002, the head's 169 and 247, 4,420 by 11
    # tokens; cores of 11·11 pairs: 2·11·4,420 + 2·2·2·30·121 = 97,240 + 29,040. Paths: 4 + 2·8 + 1 + 4; 2·(6 + 2) + 2.
    assert without_measures(fine("verify", encoder)) == (
        """\
reader: verified, 43 paths agree in one pass

compared (exact)       paths   stated                recorded
pass: parameters          25    4,725        4.72 K     4,725        4.72 K
pass: FLOPs               18  126,280  126.28 kFLOP   126,280  126.28 kFLOP
pass: cached elements      0        0                       0

measured (measured)                                     by  allowed    verdict
sums of attention rows differ from 1               #  1e-05      fine
a later token changes earlier logits                     -  exactly 0  an encoder looks both ways
cached decoding differs from the full pass               -  1e-04      an encoder has no decode steps
outputs that a changed token does not change             0  exactly 0  fine
a token is seen beyond the reach of windows              -  exactly 0  some layer sees all tokens
attention at the same RoPE offsets differs               -  1e-04      no layer has rotary positions
RoPE changes lengths of keys                             -  1e-05      no layer has rotary positions
prefill FLOPs differ from the sum of decode steps        -  exactly 0  an encoder has no decode steps

note: reader: 11 tokens, every layer in full width, float32; all parameters share one random arena of 257.88 KiB
note: reader: an encoder sees all of its tokens at once, so that there is no decode phase
"""
    )


def test_the_phases_of_an_encoder_decoder(fine, pair):
    """18,954 numbers, worked out in conftest.py.

    Prefill: the encoder 2·7·2·2,002 + 2·4·30·7² = 67,816; the decoder, a layer 1,040 + 2·910 + 2·13·41 = 3,926 for 11
    tokens and 2·455 for the encoder's 7, 2·3·(11·3,926 + 7·910) = 297,336; cores 3·4·(30·66 + 70·77) = 88,440; the head
    2·11·247 = 5,434. Decode: 2·(3·3,926 + 247) + 3·4·(30·11 + 70·7) = 33,890. Cache 3·2·(10·11 + 35·7) = 2,130.
    """
    text = fine("verify", pair)
    assert text.startswith("pair: verified, 129 paths agree in prefill and decode\n")
    assert "\nnote: pair: 11 tokens and 7 of the encoder's, every layer in full width, float32; " in text
    data = json.loads(fine("verify", pair, "--json"))
    prefill, decode = data["phases"]
    assert [phase["phase"] for phase in data["phases"]] == ["prefill", "decode"]
    assert (prefill["workload"]["new_tokens"], prefill["workload"]["memory_tokens"]) == (11, 7)
    assert (decode["workload"]["past_tokens"], decode["workload"]["memory_tokens"]) == (10, 7)
    assert (prefill["stated_flops"], decode["stated_flops"]) == (459_026, 33_890)
    assert (prefill["recorded_flops"], decode["recorded_flops"]) == (459_026, 33_890)
    # 2·8 + 3·(6 + 6 + 2) + 1 products; in decode the 16 of the encoder and 3·2 cross keys and values are not there.
    assert (prefill["matmul_paths"], decode["matmul_paths"]) == (59, 37)
    for phase in data["phases"]:
        assert phase["stated_parameters"] == phase["recorded_parameters"] == 18_954
        assert phase["stated_cache_elements"] == phase["recorded_cache_elements"] == 2_130
    names = [item["property"] for item in data["properties"]]
    assert names[3:5] == ["outputs_that_a_changed_token_does_not_change", "a_token_is_seen_beyond_the_reach_of_windows"]


def test_the_json_of_an_encoder_has_one_phase(fine, encoder):
    data = json.loads(fine("verify", encoder, "--json"))
    (phase,) = data["phases"]
    assert (phase["phase"], phase["workload"]["new_tokens"], phase["cache_paths"]) == ("pass", 11, 0)
    assert {item["within_bound"] for item in data["properties"]} == {True, None}


def test_a_decoder_that_looks_at_another_model_s_tokens(fine, pair):
    """Its encoder's lines taken out."""
    text = pair.read_text().replace("share_embeddings: true\n", "")
    start, end = text.index("encoder:"), text.index("decoder:")
    pair.write_text(text[:start] + text[end:])
    out = fine("verify", pair)
    assert "\nnote: pair: 11 tokens and 7 that it looks at, every layer in full width, float32; " in out
    assert "beyond the reach of windows" not in out


def test_the_json(fine, windowed):
    data = json.loads(fine("verify", windowed, "--json"))
    assert list(data) == [
        "schema",
        "costcalc_version",
        "model",
        "verified",
        "phases",
        "faults",
        "properties",
        "replaced_windows",
        "arena_bytes",
    ]
    assert (data["schema"], data["model"], data["verified"]) == ("costcalc.verify/1", "windowed", True)
    assert (data["faults"], data["replaced_windows"]) == ([], [])
    prefill, decode = data["phases"]
    assert (prefill["phase"], decode["phase"]) == ("prefill", "decode")
    assert (decode["workload"]["new_tokens"], decode["workload"]["past_tokens"]) == (1, 10)
    for phase in data["phases"]:
        assert phase["stated_parameters"] == phase["recorded_parameters"] == 10_647
        assert phase["stated_cache_elements"] == phase["recorded_cache_elements"] == 20 * (4 * 5 + 11)
    # Matrices 5·2,002 + 247; pairs 15 + 6·5 in four layers and 66 in one.
    assert prefill["stated_flops"] == prefill["recorded_flops"] == 2 * 11 * 10_257 + 4 * 30 * (4 * 45 + 66)
    properties = {item["property"]: item for item in data["properties"]}
    assert properties["a_later_token_changes_earlier_logits"] == {
        "property": "a_later_token_changes_earlier_logits",
        "measured": 0.0,
        "bound": 0,
        "within_bound": True,
    }
    assert properties["rope_changes_lengths_of_keys"]["within_bound"] is None
    assert properties["rope_changes_lengths_of_keys"]["note"] == "no layer has rotary positions"


def test_a_difference_is_exit_code_1_with_the_paths(cli, tiny, more_kv_heads):
    code, out, err = cli("verify", tiny)
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == "tiny: NOT verified, 8 differences and 1 broken law"
    rows = [re.split(r"  +", line) for line in out.splitlines() if line.startswith("decoder.layers.attention.k ")]
    # 13·2·5 = 130 stated, 13·6·5 = 390 allocated, 11 times twice that multiplied; then the same for one token.
    assert rows == [
        ["decoder.layers.attention.k", "0-2", "both", "parameters", "130", "390"],
        ["decoder.layers.attention.k", "0-2", "prefill", "FLOPs", "2,860", "8,580"],
        ["decoder.layers.attention.k", "0-2", "decode", "FLOPs", "260", "780"],
    ]


def test_counts_are_exact_and_laws_are_measured(cli, tiny, more_kv_heads):
    rows = csv.reader(io.StringIO(cli("verify", tiny, "--format", "csv")[1]))
    assert {(row[0], row[-1]) for row in rows} == {
        ("section", "status"),
        ("compared", "exact"),
        ("differs", "exact"),
        ("measured", "measured"),
        ("note", ""),
    }


def test_a_difference_shows_which_side_is_which(cli, tiny, more_kv_heads):
    """The pass has 6 key and value heads for 2: 3 layers of 2·13·4·5 parameters more, 8,177 + 1,560."""
    _, out, _ = cli("verify", tiny)
    assert re.search(r"\nprefill: parameters +31 +8,177 +8\.18 K +9,737 +9\.74 K\n", out)
    prefill, decode = json.loads(cli("verify", tiny, "--json")[1])["phases"]
    assert (prefill["stated_parameters"], prefill["recorded_parameters"]) == (8_177, 9_737)
    # Two products of 11 tokens, or of one, by the new columns; 2·3·4·5·11 numbers more in the caches.
    assert prefill["recorded_flops"] - prefill["stated_flops"] == 2 * 11 * 1_560
    assert decode["recorded_flops"] - decode["stated_flops"] == 2 * 1_560
    assert decode["recorded_cache_elements"] - decode["stated_cache_elements"] == 1_320


def test_what_cannot_be_told_is_a_no(cli, tiny, monkeypatch):
    def blind(fields, tokens, **more):
        return forward(fields, 0 * tokens, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", blind)
    code, out, _ = cli("verify", tiny)
    assert code == 1
    assert "  NOT TOLD: the changed token changes nothing, not even its own logits\n" in out
    properties = json.loads(cli("verify", tiny, "--json")[1])["properties"]
    assert [item["within_bound"] for item in properties if item["measured"] is None] == [False, None, None]


def test_a_model_that_is_too_large_is_refused_before_any_runs(refused, tiny, tmp_path, monkeypatch):
    file = tmp_path / "huge.yaml"
    file.write_text("vocab_size: 19\nd_model: 1000000000\nnorm: rmsnorm\nlayers:\n  - {feed_forward: {d_ff: 7}}\n")
    monkeypatch.setattr("costcalc.verification.verify", None)
    refused("verify", tiny, file)


def test_a_difference_in_json(cli, tiny, more_kv_heads):
    code, out, _ = cli("verify", tiny, "--json")
    assert code == 1
    data = json.loads(out)
    assert data["verified"] is False
    assert data["faults"][0] == {
        "phases": ["prefill", "decode"],
        "kind": "parameters",
        "path": "decoder.layers.attention.k",
        "layers": [0, 1, 2],
        "stated": 130,
        "recorded": 390,
    }
    assert len(data["faults"]) == 8


def test_a_broken_law_is_exit_code_1(cli, tiny, monkeypatch):
    def leaking(fields, tokens, **more):
        return forward(fields, tokens, **more) * (1 + int(tokens[0, -1]))

    monkeypatch.setattr("costcalc.verification.passes.forward", leaking)
    code, out, _ = cli("verify", tiny)
    assert code == 1
    assert out.startswith("tiny: NOT verified, 1 broken law\n")
    assert re.search(r"a later token changes earlier logits +[1-9]\S* +exactly 0 +TOO MUCH\n", out)


def test_many_differences_are_shortened_in_the_table(cli, tmp_path, more_kv_heads):
    """20 different layers, each with 8 differences: 2 parameters, 2 products in each phase, 2 caches."""
    layers = "\n".join(
        f"  - {{attention: {{heads: 6, kv_heads: 2, head_dim: {n}}}, feed_forward: {{d_ff: 37}}}}" for n in range(1, 21)
    )
    file = tmp_path / "many.yaml"
    file.write_text(f"vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers:\n{layers}\n")
    code, out, _ = cli("verify", file)
    assert code == 1
    assert out.count("decoder.layers.") == 40
    assert "\nand 120 more" in out
    assert len(json.loads(cli("verify", file, "--json")[1])["faults"]) == 160


def test_a_difference_that_is_written_to_a_file_is_said_on_standard_error_too(cli, fine, tiny, monkeypatch, request):
    file = tiny.parent / "report.json"
    assert fine("verify", tiny, "--output", file) == ""
    request.getfixturevalue("more_kv_heads")
    code, out, err = cli("verify", tiny, "--output", file)
    assert (code, out, err) == (1, "", "tiny: NOT verified, 8 differences and 1 broken law\n")
    assert json.loads(file.read_text("utf-8"))["verified"] is False


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_numbers_that_are_none_are_an_answer(cli, tmp_path, form):
    file = tmp_path / "none.yaml"
    file.write_text(
        """vocab_size: 19
d_model: 6
norm: rmsnorm
positions: rope
layers:
  - attention: {heads: 6, head_dim: 1, qk_norm: {kind: per_head, norm: {kind: layernorm, eps: 1.0e-300, bias: false}}}
"""
    )
    code, out, err = cli("verify", file, "--format", form)
    assert (code, err) == (1, "")
    assert "numbers of the pass are not finite in float32" in out
    assert "nan" not in out.lower()


def test_what_a_law_leaves_out_is_said(fine, tmp_path):
    file = tmp_path / "theta.yaml"
    file.write_text(
        """vocab_size: 19
d_model: 6
norm: rmsnorm
positions: rope
layers:
  - attention: {heads: 3}
  - {attention: {heads: 3}, positions: {theta: 1.0e-30}}
"""
    )
    why = "but not where theta is below 0.0001: rounding loses such angles"
    assert fine("verify", file).count(f"  fine, {why}\n") == 2
    properties = json.loads(fine("verify", file, "--json"))["properties"]
    assert [item["within_bound"] for item in properties if item.get("note") == why] == [True, True]


def test_buffers_have_a_row_of_their_own(fine, tmp_path):
    file = tmp_path / "stored.yaml"
    file.write_text(
        """vocab_size: 19
d_model: 13
norm: rmsnorm
positions: {kind: sinusoidal, stored: buffer, length: 50}
layers:
  - feed_forward: {d_ff: 7}
"""
    )
    assert re.search(r"\nprefill: buffers +1 +650 +650\n", fine("verify", file))
    prefill, _ = json.loads(fine("verify", file, "--json"))["phases"]
    assert (prefill["buffer_paths"], prefill["stated_buffers"], prefill["recorded_buffers"]) == (1, 650, 650)


def test_differing_amounts_have_no_unit_but_their_kind(cli, tiny, more_kv_heads):
    rows = list(csv.DictReader(io.StringIO(cli("verify", tiny, "--format", "csv")[1])))
    differing = [row for row in rows if row["section"] == "differs"]
    assert len(differing) == 8
    assert {row["unit"] for row in differing} == {""}
    assert {row["kind"] for row in differing} == {"parameters", "FLOPs", "cached elements"}


def test_programs_read_all_digits_of_what_was_measured(fine, tiny):
    rows = {row["quantity"]: row for row in csv.DictReader(io.StringIO(fine("verify", tiny, "--format", "csv")))}
    shown = rows["cached decoding differs from the full pass"]["by"]
    properties = {
        item["property"]: item["measured"] for item in json.loads(fine("verify", tiny, "--json"))["properties"]
    }
    assert float(shown) == pytest.approx(properties["cached_decoding_differs_from_the_full_pass"], rel=1e-3)
    assert len(shown) > len("1.2e-07")
    assert rows["RoPE changes lengths of keys"]["by"] == ""
    assert rows["prefill FLOPs differ from the sum of decode steps"]["by"] == "0"


def test_several_models(cli, fine, tiny, windowed):
    out = fine("verify", tiny, windowed)
    assert out.startswith("tiny: verified, 65 paths agree in prefill and decode; windowed: verified, ")
    assert "tiny: compared" in out
    assert "windowed: measured" in out
    assert [item["model"] for item in json.loads(fine("verify", tiny, windowed, "--json"))] == ["tiny", "windowed"]


def test_one_of_several_that_differs_is_exit_code_1(cli, tiny, monkeypatch):
    def pass_(fields, tokens, **more):
        return forward({**fields, "tie_embeddings": False}, tokens, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)
    code, out, _ = cli("verify", tiny, "gpt2")
    assert code == 1
    assert out.startswith("tiny: verified, 65 paths agree in prefill and decode; gpt2: NOT verified, ")


def test_replaced_windows_are_said(fine, tmp_path):
    file = tmp_path / "wide.yaml"
    file.write_text(
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers:\n  - {attention: {heads: 1, window: 4096}}\n", "utf-8"
    )
    assert "\nnote: wide: so that windows and chunks bind, 4,096 was made 5\n" in fine("verify", file)


@pytest.mark.parametrize("form", ["csv", "markdown"])
def test_other_formats(fine, tiny, form):
    out = fine("verify", tiny, "--format", form)
    assert "prefill: parameters" in out
    assert "8177" in out.replace(",", "")


@pytest.mark.parametrize("options", [("--format", "jsn"), ("--json", "--format", "csv")], ids=["unknown", "two"])
def test_a_wrong_format_is_refused_before_anything_runs(refused, tiny, monkeypatch, options):
    monkeypatch.setattr("costcalc.verification.verify", None)
    refused("verify", tiny, *options)


@pytest.mark.parametrize("output", ["nowhere/report.json", "", ".", "reports/", "tiny.yaml/report.json"])
def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(refused, tiny, monkeypatch, output):
    monkeypatch.chdir(tiny.parent)
    (tiny.parent / "reports").mkdir()
    monkeypatch.setattr("costcalc.verification.verify", None)
    refused("verify", tiny, "--output", output)


def test_a_model_that_is_too_large(refused, tmp_path):
    file = tmp_path / "huge.yaml"
    file.write_text(
        "vocab_size: 19\nd_model: 1000000\nnorm: rmsnorm\nlayers:\n  - {repeat: 1000, feed_forward: {d_ff: 1000000}}\n"
    )
    what, _ = refused("verify", file)
    assert what.startswith("huge is too large to run here: ")


def test_progress_on_a_terminal(cli, tiny, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("costcalc.cli.verify.SECONDS_BETWEEN", 0)
    code, _, err = cli("verify", tiny)
    assert code == 0
    lines = err.split("\r")
    assert [line.rstrip() for line in lines[1:4]] == [f"tiny: prefill, layer {n} of 3" for n in (1, 2, 3)]
    assert lines[-3].startswith("tiny: decode, layer 3 of 3")
    # The line is wiped with blanks, and the cursor is back at its start.
    assert lines[-2].strip() == ""
    assert len(lines[-2]) >= len(lines[-3].rstrip())
    assert lines[-1] == ""
    assert "\n" not in err


def test_progress_is_shown_now_and_then_in_one_line_that_the_terminal_has(capsys, monkeypatch):
    """0.1 s apart; a name in another script and a narrow terminal are no trouble."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clock = iter([100.0, 100.05, 100.11, 100.2, 100.25])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("costcalc.cli.verify._columns", lambda: 24)
    progress = Progress("模型")
    for done in range(1, 6):
        progress("prefill", done, 5)
    assert capsys.readouterr().err == "\r??: prefill, layer 1 of\r??: prefill, layer 3 of\r??: prefill, layer 5 of"
    progress.end()
    assert capsys.readouterr().err == f"\r{' ' * 23}\r"


def test_progress_is_wiped_before_an_error(cli, tiny, monkeypatch):
    def breaks(fields, tokens, *, on_layer, **more):
        on_layer(1, 3, np.zeros((1, 11, 13), np.float32))
        raise MemoryError

    monkeypatch.setattr("costcalc.verification.passes.forward", breaks)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = cli("verify", tiny)
    assert (code, out) == (2, "")
    first, *rest = err.removesuffix("\n").split("\n")
    assert first.split("\r")[-1] == "error: tiny does not fit into memory here"
    assert len(rest) == 1


def test_no_progress_through_a_pipe(cli, tiny, monkeypatch):
    monkeypatch.setattr("costcalc.cli.verify.SECONDS_BETWEEN", 0)
    assert cli("verify", tiny)[2] == ""
