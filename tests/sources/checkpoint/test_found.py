"""Folders, indices and counted sets: which files a word means, and what is missing of them."""

import json
import os
import time

import pytest
from hostile import entry, key, line, write_gguf, write_safetensors

import costcalc
from costcalc.errors import CostcalcError
from costcalc.sources.checkpoint import is_checkpoint, read_checkpoint


def one(path, name="x", size=3):
    return write_safetensors(path, {name: entry("F16", [size], 0, 2 * size)}, 2 * size)


def sharded(folder, count, *, index=True, total=None):
    """So many files of one tensor each, and their index."""
    names = [f"model-{each + 1:05d}-of-{count:05d}.safetensors" for each in range(count)]
    for each, name in enumerate(names):
        one(folder / name, f"layers.{each}.weight", 3 + each % 5)
    if index:
        placed = {f"layers.{each}.weight": name for each, name in enumerate(names)}
        written = {"metadata": {} if total is None else {"total_size": total}, "weight_map": placed}
        (folder / "model.safetensors.index.json").write_text(json.dumps(written))
    return names


def refused(word):
    with pytest.raises(CostcalcError) as caught:
        read_checkpoint(str(word))
    assert caught.value.hint
    return f"{caught.value} {caught.value.hint}"


def test_a_folder_is_its_index_its_usual_file_or_its_only_one(tmp_path):
    one(tmp_path / "consolidated.safetensors")
    assert read_checkpoint(str(tmp_path)).files == ("consolidated.safetensors",)
    one(tmp_path / "model.safetensors")
    assert read_checkpoint(str(tmp_path)).files == ("model.safetensors",)
    names = sharded(tmp_path, 3, total=2 * (3 + 4 + 5))
    for word in (tmp_path, tmp_path / "model.safetensors.index.json", tmp_path / names[1]):
        read = read_checkpoint(str(word))
        assert read.files == tuple(names)
        assert [each.name for each in read.tensors] == ["layers.0.weight", "layers.1.weight", "layers.2.weight"]
        assert read.notes == ()


def test_a_counted_set_needs_no_index(tmp_path):
    sharded(tmp_path, 3, index=False)
    assert len(read_checkpoint(f"{tmp_path}/").tensors) == 3


def test_an_index_that_says_another_size_is_told(tmp_path):
    sharded(tmp_path, 2, total=7)
    assert read_checkpoint(str(tmp_path)).notes == ("the index says 7 bytes in total; the headers say 14",)


@pytest.mark.parametrize("index", [True, False])
def test_missing_shards_are_named(tmp_path, index):
    names = sharded(tmp_path, 7, index=index)
    for name in (names[1], names[3], *names[5:]):
        (tmp_path / name).unlink()
    said = refused(tmp_path)
    assert "4 of 7 files are missing: model-00002-of-00007.safetensors, model-00004-of-00007.safetensors" in said
    assert "and 1 more" in said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "no `weight_map`"),
        ({"weight_map": []}, "no `weight_map`"),
        ({"weight_map": {}}, "no `weight_map`"),
        ({"weight_map": {"x": 7}}, "7 in the weight_map"),
        ({"weight_map": {"x": "../other/model.safetensors"}}, "not in the same folder"),
        ({"weight_map": {"x": "/etc/model.safetensors"}}, "not in the same folder"),
        ({"weight_map": {"x": "a\\b.safetensors"}}, "not in the same folder"),
        ({"weight_map": {"x": "/dev/zero"}}, "no safetensors file"),
        ({"weight_map": {"y": "one.safetensors"}}, "'y' is not in one.safetensors"),
        ({"weight_map": {"\x1b[2J": "one.safetensors"}}, "cannot be the name"),
        ({"weight_map": {"x": "two.safetensors"}}, "missing: two.safetensors"),
        ({"weight_map": {"x": "one.safetensors", "y": "three.safetensors"}}, "'z' in three.safetensors is not in"),
        ([], "not an object"),
    ],
)  # fmt: skip
def test_an_index_that_lies_is_refused(tmp_path, written, said):
    one(tmp_path / "one.safetensors")
    both = {"y": entry("F16", [1], 0, 2), "z": entry("F16", [1], 2, 4)}
    write_safetensors(tmp_path / "three.safetensors", both, 4)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(written))
    assert said in refused(tmp_path)


def test_a_tensor_of_two_files_is_refused(tmp_path):
    one(tmp_path / "model-00001-of-00002.safetensors")
    one(tmp_path / "model-00002-of-00002.safetensors")
    assert "'x' is in model-00001" in refused(tmp_path)


def test_a_thousand_shards_are_read_in_two_seconds(tmp_path):
    sharded(tmp_path, 1_000)
    one(tmp_path / "first.safetensors")
    read_checkpoint(str(tmp_path / "first.safetensors"))  # loads the library
    begun = time.process_time()
    assert len(read_checkpoint(str(tmp_path)).tensors) == 1_000
    assert time.process_time() - begun < 2.0


def test_split_gguf_files_are_one_checkpoint(tmp_path):
    def part(number, **said):
        keys = [key(f"split.{name}", 2, count.to_bytes(2, "little")) for name, count in said.items()]
        path = tmp_path / f"model-{number:05d}-of-00002.gguf"
        return write_gguf(path, [line(f"x{number}", [5], 0, 0)], keys, 20)

    part(1, count=2), part(2, count=2)
    for word in (tmp_path, tmp_path / "model-00001-of-00002.gguf", tmp_path / "model-00002-of-00002.gguf"):
        read = read_checkpoint(str(word))
        assert (read.format, [each.name for each in read.tensors]) == ("gguf", ["x1", "x2"])
    part(1, count=3)
    assert "one of 3 files by its metadata, of 2 by its name" in refused(tmp_path)
    part(1, count=2)
    write_gguf(tmp_path / "model-00002-of-00002.gguf", [line("x1", [5], 0, 0)], [], 20)
    assert "'x1' is in model-00001" in refused(tmp_path)
    (tmp_path / "model-00002-of-00002.gguf").unlink()
    assert "missing: model-00002-of-00002.gguf" in refused(tmp_path)
    part(1, count=2).rename(tmp_path / "model.gguf")
    assert "one of 2 files by its metadata" in refused(tmp_path)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt", "pytorch_model.bin.index.json"]
)
def test_pickles_are_refused_with_the_reason(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x04}.")
    for word in (tmp_path, tmp_path / name):
        assert is_checkpoint(str(word))
        assert "pickles are programs, which costcalc does not run" in refused(word)


def test_what_holds_no_one_checkpoint_is_refused(tmp_path):
    assert "no safetensors and no GGUF file" in refused(tmp_path)
    write_gguf(tmp_path / "model-q4_0.gguf")
    write_gguf(tmp_path / "model-q8_0.gguf")
    assert "2 checkpoints: model-q4_0.gguf, model-q8_0.gguf" in refused(tmp_path)
    assert "no such file" in refused(tmp_path / "x.safetensors")
    (tmp_path / "y.safetensors").mkdir()
    os.mkfifo(tmp_path / "z.safetensors")
    assert "no safetensors and no GGUF" in refused(tmp_path / "y.safetensors")
    assert "not a regular file" in refused(tmp_path / "z.safetensors")
    assert "not a path" in refused("x\0.gguf")
    assert "cannot be read: File name too long" in refused(f"{tmp_path}/{'x' * 300}.gguf")
    assert "missing" in refused(f"{tmp_path}/{'x' * 300}-00001-of-00002.gguf")


def test_a_folder_that_may_not_be_read_is_told(tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", scandir)
    assert "cannot be read: Permission denied" in refused(tmp_path)


def test_a_config_json_beside_it_makes_a_folder_an_architecture(tmp_path):
    path = one(tmp_path / "model.safetensors")
    assert is_checkpoint(str(tmp_path))
    (tmp_path / "config.json").write_text('{"quantization_config": {"bits": 4}}')
    assert not is_checkpoint(str(tmp_path))
    assert is_checkpoint(str(path))
    assert read_checkpoint(str(path)).quantization == {"bits": 4}


@pytest.mark.parametrize("has_config", [True, False])
def test_where_an_architecture_is_needed_a_checkpoint_is_refused(tmp_path, has_config):
    path = one(tmp_path / "model.safetensors")
    if has_config:
        (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CostcalcError, match="a checkpoint") as caught:
        costcalc.load(str(path))
    assert (f"give {tmp_path}/config.json" in caught.value.hint) is has_config
