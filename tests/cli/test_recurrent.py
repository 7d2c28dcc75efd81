"""What commands say of a hybrid: two layers of Mamba (22 channels of 3 states, 5 taps), one of attention."""

import csv
import io
import json

import pytest

# A mixer of mamba1 holds 13·44 + 110 + 22 + 22·13 + 7·22 + 22 + 66 + 22 + 286 = 1,540 parameters; its products are
# 572 + 286 + 154 + 286 = 1,298; a convolution of 110 and two products of 66 a token: 242 multiply-adds of scans. It
# keeps 110 inputs and 66 numbers of state. An attention has 1,040 weights and holds 20 numbers a token.
HYBRID = """\
name: hybrid
vocab_size: 19
d_model: 13
context_length: 11
norm: rmsnorm
layers:
  - {name: mamba, repeat: 2, mixer: {kind: mamba1, d_inner: 22, d_state: 3, d_conv: 5, dt_rank: 7}}
  - {name: attention, attention: {heads: 6, kv_heads: 2, head_dim: 5}}
"""
CHUNKED = """\
name: chunked
vocab_size: 19
d_model: 13
norm: rmsnorm
layers:
  - {mixer: {kind: lightning, heads: 6, head_dim: 5, chunk: 4, state_dtype: bf16}}
"""
SCANS = 2 * 2 * 242  # FLOPs a token of both layers
STATE_BYTES = 2 * (110 * 2 + 66 * 4)  # inputs in the cache's dtype, the state in fp32


@pytest.fixture
def hybrid(tmp_path):
    path = tmp_path / "hybrid.yaml"
    path.write_text(HYBRID, encoding="utf-8")
    return path


@pytest.fixture
def chunked(tmp_path):
    path = tmp_path / "chunked.yaml"
    path.write_text(CHUNKED, encoding="utf-8")
    return path


def rows_of(text):
    """{section: {row: (value, status)}} of a CSV of one model."""
    found = {}
    for section, row, _unit, *values, status in csv.reader(io.StringIO(text)):
        found.setdefault(section, {})[row] = (next(filter(None, values), ""), status)
    return found


def test_the_state_stands_apart_in_kv(fine, hybrid):
    data = json.loads(fine("kv", hybrid, "--json"))
    assert data["kv_cache_elements"] == 20 * 11
    assert data["state_elements"] == 2 * 176
    assert data["state_bytes"] == STATE_BYTES
    assert data["kv_cache_bytes"] == 2 * 220 + STATE_BYTES
    assert data["kv_bytes_per_token"] == 40
    rows = rows_of(fine("kv", hybrid, "--format", "csv"))["KV cache"]
    assert rows["of which keys and values"] == ("440", "exact")
    assert rows["of which constant state"] == (str(STATE_BYTES), "exact")
    assert rows["constant state"] == ("352", "exact")


def test_the_layers_that_hold_a_state_hold_no_tokens(fine, hybrid):
    text = fine("kv", hybrid, "--format", "table")
    (mamba,) = [line.split() for line in text.splitlines() if line.startswith("decoder.layers.mamba ")]
    (attention,) = [line.split() for line in text.splitlines() if line.startswith("decoder.layers.attention ")]
    assert mamba[1:6] == ["2", "a", "state", "352", "352"]
    assert attention[1:5] == ["1", "11", "220", "0"]


def test_the_dtypes_of_states_are_told(fine, hybrid, chunked):
    both = "note: hybrid: states do not grow, recurrent ones in fp32 and those of convolutions and shifts in fp8"
    assert both in fine("kv", hybrid, "--dtype", "fp8").splitlines()
    alone = "note: chunked: states do not grow, recurrent ones in bf16"
    assert alone in fine("kv", chunked, "--context", "7").splitlines()
    assert json.loads(fine("kv", chunked, "--context", "7", "--json"))["state_bytes"] == 6 * 5 * 5 * 2


def test_scans_are_modelled_and_so_is_all_that_holds_them(fine, hybrid):
    """7 tokens: weights 2·7·(2·1,298 + 1,040 + 247), scores and values 2·28·6·5 each, 7 times the scans of a token."""
    rows = rows_of(fine("flops", hybrid, "--seq-len", "7", "--format", "csv"))
    flops = rows["FLOPs"]
    assert flops["of which scans"] == (str(7 * SCANS), "modelled")
    assert flops["weights"] == (str(14 * (2 * 1298 + 1040 + 247)), "exact")
    assert flops["attention core"] == (str(4 * 28 * 30), "exact")
    assert flops["forward"] == (str(7 * SCANS + 14 * 3883 + 3360), "modelled")
    assert {flops[row][1] for row in ("per new token", "train (3 x forward)", "attention core share")} == {"modelled"}
    components = rows["by component"]
    assert components["mixer"] == (str(7 * SCANS + 14 * 2 * 1298), "modelled")
    assert components["attention"][1] == components["head"][1] == "exact"


def test_nothing_is_modelled_without_scans(fine, tiny):
    text = fine("flops", tiny, "--format", "csv") + fine("show", tiny, "--format", "csv")
    assert "modelled" not in text
    assert "scans" not in text
    assert "constant state" not in fine("kv", tiny)


def test_the_formula_of_scans_is_told(fine, hybrid, chunked):
    lines = fine("flops", hybrid).splitlines()
    assert any(line.startswith("note: hybrid: scans are modelled token by token, a multiply-add for") for line in lines)
    handed = fine("flops", chunked, "--seq-len", "7", "--counting", "rectangle").splitlines()
    assert any(line.startswith("note: chunked: scans are modelled chunk by chunk, as kernels") for line in handed)


def test_the_rectangle_counts_chunks(fine, chunked):
    """7 tokens in blocks of 4 and 3: 25 pairs of 30 numbers twice, and twice 150 numbers of state a token."""
    words = ("flops", chunked, "--seq-len", "7", "--json", "--counting")
    assert json.loads(fine(*words, "rectangle"))["modelled_flops"] == 2 * (2 * 25 * 30 + 2 * 7 * 150)
    assert json.loads(fine(*words, "attended"))["modelled_flops"] == 2 * 2 * 7 * 150


def test_show_and_compare_have_both(fine, hybrid, tiny):
    data = json.loads(fine("show", hybrid, "--json"))
    assert data["next_token_modelled_flops"] == SCANS
    assert data["sequence_modelled_flops"] == 11 * SCANS
    assert data["state_bytes"] == STATE_BYTES
    rows = rows_of(fine("show", hybrid, "--format", "csv"))
    assert rows["forward FLOPs"]["of which scans"] == (str(SCANS), "modelled")
    assert rows["forward FLOPs"]["of which weights"][1] == "exact"
    assert rows["forward FLOPs"]["whole sequence"][1] == "modelled"
    assert rows["KV cache, bf16"]["of which constant state"] == (str(STATE_BYTES), "exact")
    assert "mixer (mamba, 2 layers)" in rows["model"]
    models = json.loads(fine("compare", hybrid, tiny, "--json"))["models"]
    assert [each.get("state_bytes") for each in models] == [STATE_BYTES, None]
    assert [each.get("next_token_modelled_flops") for each in models] == [SCANS, None]
    compared = rows_of(fine("compare", hybrid, tiny, "--format", "csv"))
    assert compared["KV cache, bf16"]["of which constant state"] == (str(STATE_BYTES), "exact")
    assert compared["forward FLOPs"]["next token"][1] == "modelled"
    assert compared["changes"]["all"][1] == "modelled"
    assert (
        compared["changes"]["context_length" if "context_length" in compared["changes"] else "positions"][1] == "exact"
    )


def test_fits_has_the_state_of_a_conversation(fine, hybrid, tiny):
    data = json.loads(fine("fits", hybrid, "--memory", "1MB", "--json"))
    for way in ("architectural", "engine_reserved"):
        assert data[way]["state_bytes_per_conversation"] == STATE_BYTES
    # 11 tokens are a block of 16, of which attention holds 40 bytes each; a state is no block
    assert data["engine_reserved"]["bytes_per_conversation"] == 16 * 40 + STATE_BYTES
    assert "state_bytes_per_conversation" not in fine("fits", tiny, "--memory", "1MB", "--json")
    rows = rows_of(fine("fits", hybrid, "--memory", "1MB", "--format", "csv"))
    assert rows["architectural"]["of which constant state"] == (str(STATE_BYTES), "exact")


def test_blocks_say_nothing_of_states(refused, hybrid):
    what, hint = refused("fits", hybrid, "--blocks", "7")
    assert what == "blocks of a cache hold tokens, and this model's recurrent layers hold states beside them"
    assert "--pool" in hint


def test_shares_of_attention_are_modelled(fine, hybrid):
    rows = rows_of(fine("attention", hybrid, "--contexts", "7", "--format", "csv"))
    assert rows["share of the forward pass"]["7"][1] == "modelled"
    assert rows["attention core at context"]["7"][1] == "exact"


def test_a_model_that_never_attends(fine, cli, chunked):
    assert "never overtakes the weights" in fine("attention", chunked, "--contexts", "7")
    data = json.loads(fine("fits", chunked, "--memory", "1MB", "--context", "7", "--json"))
    assert data["architectural"]["longest_context"] is None
    text = fine("train", chunked, "--tokens", "77", "--seq-len", "7")
    assert "palm does not apply: the model has layers that do not attend to one text" in text


def test_the_sources_of_scans_and_states(fine, hybrid):
    scans = fine("explain", hybrid, "modelled_flops")
    assert "note: modelled_flops: an estimate: a multiply-add for each number of a state" in scans
    assert "2·L·B·T·d_inner·d_state" in scans
    state = fine("explain", hybrid, "state_elements")
    assert "note: state_elements: what a recurrence carries on, of constant size: Gu and Dao, arXiv 2312.00752" in state


def test_rows_of_states_stand_below_the_cache_whichever_model_comes_first(fine, hybrid, tiny):
    rows = csv.reader(io.StringIO(fine("kv", tiny, hybrid, "--format", "csv")))
    labels = [row[1] for row in rows if row[0] == "KV cache"]
    assert labels[1:5] == ["cache", "of which keys and values", "of which constant state", "next token adds"]


def test_states_of_several_dtypes_are_told_once(fine, tmp_path):
    path = tmp_path / "two.yaml"
    layers = [
        f"  - {{mixer: {{kind: lightning, heads: 6, head_dim: 5, state_dtype: {own}}}}}" for own in ("fp32", "bf16")
    ]
    path.write_text("\n".join(["vocab_size: 19", "d_model: 13", "norm: rmsnorm", "layers:", *layers]), encoding="utf-8")
    assert "states do not grow, recurrent ones in fp32 or bf16\n" in fine("kv", path, "--context", "7") + "\n"


def test_what_limits_a_model_without_keys_is_its_state(fine, chunked):
    assert "the state, not the weights, limits" in fine("fits", chunked, "--memory", "1MB", "--context", "7")


def test_verify_runs_chunks_too(fine, tmp_path):
    path = tmp_path / "wide.yaml"
    path.write_text(CHUNKED.replace("chunk: 4", "chunk: 64"), encoding="utf-8")
    text = fine("verify", path)
    assert "prefill, chunked: FLOPs" in text
    assert "scans chunk by chunk differ from token by token" in text
    assert "note: chunked: so that windows and chunks bind, 64 was made 7" in text
