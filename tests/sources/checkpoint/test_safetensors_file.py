"""safetensors: what the library itself wrote, and headers that claim what is not so."""

import json
import sys
import time

import numpy as np
import pytest
from hostile import entry, write_safetensors
from safetensors.numpy import save_file

from costcalc.errors import CostcalcError
from costcalc.inventory.stored import Stored
from costcalc.sources.checkpoint import read_checkpoint
from costcalc.sources.checkpoint.safetensors_file import BITS, read_safetensors


def test_what_the_library_writes_is_read(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {"b.weight": np.zeros((3, 5), np.float32), "a": np.zeros((7,), np.float16), "n": np.zeros((), np.int64)}
    save_file(arrays, path, metadata={"format": "pt"})
    assert set(read_safetensors(path)) == {
        Stored("b.weight", (3, 5), "F32", 60, "model.safetensors"),
        Stored("a", (7,), "F16", 14, "model.safetensors"),
        Stored("n", (), "I64", 8, "model.safetensors"),
    }


@pytest.mark.parametrize("dtype", sorted(set(BITS) - {"F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "C64"}))
def test_every_dtype_has_its_bits(tmp_path, dtype):
    path = write_safetensors(
        tmp_path / "x.safetensors", {"x": entry(dtype, [3, 8], 0, 3 * BITS[dtype])}, 3 * BITS[dtype]
    )
    (tensor,) = read_safetensors(path)
    assert (tensor.dtype, tensor.elements, tensor.bytes) == (dtype, 24, 3 * BITS[dtype])


def test_tensors_of_nothing_and_headers_of_nothing_are_read(tmp_path):
    path = write_safetensors(
        tmp_path / "x.safetensors", {"x": entry("F32", [0, 8], 0, 0), "y": entry("F32", [1], 0, 4)}, 4
    )
    assert [each.elements for each in read_safetensors(path)] == [0, 1]
    assert read_safetensors(write_safetensors(tmp_path / "y.safetensors", {})) == ()


ONE = {"x": entry("F32", [2], 0, 8)}
RAW = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
HOSTILE = {
    # header (an object or bytes), bytes behind it, the length it claims: what is said
    "length beyond the file": (ONE, 8, 2**60, "claims 1,152,921,504,606,846,976 bytes"),
    "length of 2^64": (ONE, 8, 2**64 - 1, "claims"),
    "length of nothing": (ONE, 8, 0, "no safetensors file"),
    "a header too long": (b"{" + b" " * 2**25, 0, None, "at most 33,554,432"),
    "a header that is no object": (b"[1, 2]", 0, None, "does not begin with {"),
    "a header that is cut": (b'{"x": {"dtype": "F32"', 0, None, "not JSON"),
    "nested": (b'{"x":' + b"[" * 900 + b"]" * 900 + b"}", 0, None, "has not exactly"),
    "nested without end": (b'{"x":' + b'{"x":' * 200_000 + b"1" + b"}" * 200_001, 0, None, "nested too deeply"),
    "made of brackets": (b'{"x":[' + b"[]," * 2_000_000 + b"1]}", 0, None, "made of brackets"),
    "made of keys": (b"{%b}" % b",".join(b'"%d":0' % key for key in range(700_000)), 0, None, "700,000 keys"),
    "made of sizes": (b'{"x":%b}' % RAW.replace(b"1", b"1," * 2_000_000 + b"1"), 4, None, "made of commas"),
    "too many tensors": (b"{%b}" % b",".join([b'"x":%b' % RAW] * 210_000), 0, None, "210,000 tensors"),
    "not UTF-8": (b'{"\xff":1}', 0, None, "not UTF-8 (byte 2)"),
    "a name twice": (b'{"x":%b,"x":%b}' % (RAW, RAW), 4, None, "'x' is written twice"),
    "a field twice": (b'{"x":%b}' % RAW.replace(b"shape", b"dtype"), 4, None, "'dtype' is written twice"),
    "NaN": (b'{"x":%b}' % RAW.replace(b"1", b"NaN"), 4, None, "NaN"),
    "a number without end": (b'{"x":%b}' % RAW.replace(b"1", b"9" * 5_000), 4, None, "thousands of digits"),
    "an unknown dtype": ({"x": entry("F31", [2], 0, 8)}, 8, None, "unknown dtype 'F31'"),
    "a dtype that is none": ({"x": entry(["F32"], [2], 0, 8)}, 8, None, "unknown dtype a list"),
    "an unknown field": ({"x": {**entry("F32", [2], 0, 8), "y": 1}}, 8, None, "has not exactly"),
    "a missing field": ({"x": {"dtype": "F32", "shape": [2]}}, 8, None, "has not exactly"),
    "an entry that is none": ({"x": 7}, 8, None, "has not exactly"),
    "a negative size": ({"x": entry("F32", [-2, -1], 0, 8)}, 8, None, "no list of at most 8 sizes"),
    "a boolean size": ({"x": entry("F32", [True, 2], 0, 8)}, 8, None, "no list of at most 8 sizes"),
    "a broken size": ({"x": entry("F32", [2.0], 0, 8)}, 8, None, "no list of at most 8 sizes"),
    "too many sizes": ({"x": entry("F32", [1] * 9 + [2], 0, 8)}, 8, None, "no list of at most 8 sizes"),
    "sizes beyond all bytes": ({"x": entry("F32", [2**62] * 8, 0, 8)}, 8, None, "is stored in 8 bytes"),
    "sizes that wrap around": ({"x": entry("F32", [2**32, 2**31, 2], 0, 0)}, 0, None, "is stored in 0 bytes"),
    "bytes that do not fit": ({"x": entry("F32", [2], 0, 7)}, 7, None, "is stored in 7 bytes"),
    "half a byte": ({"x": entry("F4", [3], 0, 1)}, 1, None, "is stored in 1 bytes"),
    "offsets in reverse": ({"x": entry("F32", [2], 8, 0)}, 8, None, "lies at 8 to 0"),
    "offsets behind the file": ({"x": entry("F32", [2], 8, 16)}, 8, None, "lies at 8 to 16 of 8 bytes"),
    "offsets that are negative": ({"x": entry("F32", [2], -8, 0)}, 8, None, "no two offsets"),
    "three offsets": ({"x": {**entry("F32", [2], 0, 8), "data_offsets": [0, 8, 8]}}, 8, None, "no two offsets"),
    "an overlap": ({**ONE, "y": entry("F32", [2], 4, 12)}, 12, None, "overlap"),
    "the same place twice": ({**ONE, "y": entry("F32", [2], 0, 8)}, 8, None, "overlap"),
    "a hole": ({**ONE, "y": entry("F32", [2], 12, 20)}, 20, None, "hole"),
    "a hole in front": ({"x": entry("F32", [2], 4, 12)}, 12, None, "hole"),
    "bytes behind": (ONE, 9, None, "end at 8, and 9 bytes follow"),
    "metadata that are no texts": ({"__metadata__": {"a": 1}, **ONE}, 8, None, "__metadata__"),
    "metadata that are no object": ({"__metadata__": [], **ONE}, 8, None, "__metadata__"),
    "a name that moves the cursor": ({"x\x1b[2J": entry("F32", [2], 0, 8)}, 8, None, "cannot be the name"),
    "a name without end": ({"x" * 2_000: entry("F32", [2], 0, 8)}, 8, None, "cannot be the name"),
    "half a character": (b'{"\\ud800":%b}' % RAW, 4, None, "cannot be the name"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_header_is_refused_at_once(tmp_path, case):
    header, held, length, said = HOSTILE[case]
    path = write_safetensors(tmp_path / "model.safetensors", header, held, length)
    begun = time.process_time()
    with pytest.raises(CostcalcError) as caught:
        read_safetensors(path)
    assert time.process_time() - begun < 3.0  # on a busy machine
    assert said in str(caught.value)
    assert caught.value.where == str(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b"\x01", "no safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"PK\x03\x04" + b"\0" * 40, "claims"),
    ],
)
def test_what_is_no_safetensors_file_is_told(tmp_path, raw, said):
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw)
    with pytest.raises(CostcalcError, match=said):
        read_safetensors(path)


def test_without_the_library_the_refusal_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    path = write_safetensors(tmp_path / "model.safetensors", ONE, 8)
    with pytest.raises(CostcalcError, match="library safetensors") as caught:
        read_checkpoint(str(path))
    assert caught.value.hint == "pip install 'costcalc[checkpoints]'"


def test_notes_of_shapes_are_read_and_others_are_not(tmp_path):
    path = tmp_path / "model.safetensors"
    note = np.frombuffer(json.dumps({"shape": [6, 10]}).encode(), np.uint8)
    arrays = {
        "a.weight.quant_state.bitsandbytes__nf4": note,
        "b.weight.quant_state.bitsandbytes__fp4": np.frombuffer(b"no object", np.uint8),
        "c.weight_shape": np.array([12, 37], np.int64),
        "d.weight_shape": np.array([-1, 37], np.int64),
    }
    save_file(arrays, path)
    states = {each.name[0]: each.states for each in read_safetensors(path)}
    assert states == {"a": (6, 10), "b": None, "c": (12, 37), "d": None}
