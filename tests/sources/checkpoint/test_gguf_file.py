"""GGUF: what the library's own writer wrote, in several quantisations, and headers that claim what is not so."""

import struct
import sys
import time

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from hostile import key, line, text, write_gguf

from costcalc.errors import CostcalcError
from costcalc.sources.checkpoint import read_checkpoint
from costcalc.sources.checkpoint.gguf_file import read_gguf

QUANTS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS", "MXFP4")
TEXTS = 8


def written(path, **tensors):
    """A file with a vocabulary and one 5 x 512 tensor of each type."""
    writer = GGUFWriter(path, "llama")
    writer.add_token_list([f"token {index}" for index in range(1_000)])
    writer.add_token_scores([0.5] * 1_000)
    writer.add_context_length(11)
    for name, word in tensors.items():
        kind = GGMLQuantizationType[word]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        plain = {"F32": np.float32, "F16": np.float16}.get(word)
        raw = np.zeros((5, 512), plain) if plain else np.zeros((5, 512 // block * size), np.uint8)
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_what_the_library_writes_is_read_as_its_reader_reads_it(tmp_path):
    path = written(tmp_path / "model.gguf", **{f"x.{word}": word for word in QUANTS})
    read = read_gguf(path)
    assert [each.dtype for each in read.tensors] == list(QUANTS)
    other = {each.name: each for each in GGUFReader(path).tensors}
    for tensor in read.tensors:
        assert tensor.shape == (5, 512) == tuple(reversed(other[tensor.name].shape.tolist()))
        assert (tensor.elements, tensor.bytes) == (other[tensor.name].n_elements, other[tensor.name].n_bytes)
    assert read.metadata == {"general.architecture": "llama"}
    sizes = {each.dtype: each.bytes for each in read.tensors}
    assert sizes["Q8_0"] == 5 * 16 * 34  # 512 values are 16 blocks of 34 bytes
    assert sizes["Q4_K"] == 5 * 2 * 144
    assert sizes["Q6_K"] == 5 * 2 * 210


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [2, 3])
def test_both_byte_orders_and_versions_are_read(tmp_path, order, version):
    keys = [
        key("general.architecture", TEXTS, text("llama", order), order),
        key("general.alignment", 4, struct.pack(f"{order}I", 32), order),
        key("tokens", 9, struct.pack(f"{order}IQ", TEXTS, 2) + text("a", order) + text("b" * 300_000, order), order),
        key("scores", 9, struct.pack(f"{order}IQ", 6, 3) + b"\0" * 12, order),
    ]
    lines = [line("a", [7, 3], 0, 0, order), line("b", [64], 8, 96, order), line("c", [], 1, 192, order)]
    read = read_gguf(write_gguf(tmp_path / "x.gguf", lines, keys, 194, version, order))
    assert [(each.name, each.shape, each.dtype, each.bytes) for each in read.tensors] == [
        ("a", (3, 7), "F32", 84),
        ("b", (64,), "Q8_0", 68),
        ("c", (), "F16", 2),
    ]
    assert read.metadata == {"general.architecture": "llama", "general.alignment": 32}


def array(kind, count, raw=b""):
    return struct.pack("<IQ", kind, count) + raw


MANY = array(TEXTS, 900_000, b"\0" * 7_200_000)
HOSTILE = {
    # lines, keys, and how they are written: what is said
    "2^63 tensors": ([], [], {"counts": (2**63, 0)}, "claims 9,223,372,036,854,775,808 tensors"),
    "2^60 keys": ([], [], {"counts": (0, 2**60)}, "metadata keys"),
    "tensors that are not there": ([], [], {"counts": (150_000, 0)}, "cannot be the name"),
    "keys that are not there": ([], [], {"counts": (0, 60_000)}, "the file ends at"),
    "a key without end": ([], [struct.pack("<Q", 2**62)], {}, "claims 4,611,686,018,427,387,904 bytes"),
    "a text without end": ([], [key("a", TEXTS, struct.pack("<Q", 2**40))], {}, "characters"),
    "a text beyond the file": ([], [key("a", TEXTS, struct.pack("<Q", 2**20))], {}, "the file ends at"),
    "an array without end": ([], [key("a", 9, array(0, 2**60))], {}, "claims 1,152,921,504,606,846,976 bytes"),
    "2^60 texts": ([], [key("a", 9, array(TEXTS, 2**60))], {"held": 64}, "texts"),
    "texts of 2^63": ([], [key("a", 9, array(TEXTS, 2, struct.pack("<Q", 2**63) + b"\0" * 64))], {}, "claims"),
    "2,000,001 empty texts": ([], [key("a", 9, array(TEXTS, 2_000_001))], {"held": 2**25}, "claims 2,000,001 texts"),
    "texts of several arrays": ([], [key(f"a{i}", 9, MANY) for i in range(3)], {}, "claims 900,000 texts"),
    "arrays of arrays": ([], [key("a", 9, array(9, 2**30))], {}, "array of arrays"),
    "an array of an unknown type": ([], [key("a", 9, array(77, 1, b"\0" * 8))], {}, "unknown type 77"),
    "an unknown type": ([], [key("a", 13, b"\0" * 8)], {}, "unknown type 13"),
    "a key twice": ([], [key("a", 7, b"\1")] * 2, {}, "'a' is written twice"),
    "a key that is no text": ([], [key(b"\xff\xfe", 7, b"\1")], {}, "not UTF-8"),
    "an alignment of 0": ([], [key("general.alignment", 4, b"\0" * 4)], {}, "no power of two"),
    "an alignment of 33": ([], [key("general.alignment", 4, struct.pack("<I", 33))], {}, "no power of two"),
    "an alignment of 2^31": ([], [key("general.alignment", 4, struct.pack("<I", 2**31))], {}, "no power of two"),
    "an alignment in words": ([], [key("general.alignment", TEXTS, text("32"))], {}, "no power of two"),
    "2^32 dimensions": ([line("x", [], 0, 0, rank=2**32 - 1)], [], {}, "4,294,967,295 dimensions"),
    "five dimensions": ([line("x", [1] * 5, 0, 0)], [], {"held": 4}, "5 dimensions"),
    "sizes without end": ([line("x", [2**63] * 4, 0, 0)], [], {"held": 4}, "elements"),
    "sizes that wrap around": ([line("x", [2**32, 2**32], 0, 0)], [], {"held": 4}, "elements"),
    "a size that nothing holds": ([line("x", [2**40], 0, 0)], [], {"held": 4}, "ends at"),
    "broken blocks": ([line("x", [31], 8, 0)], [], {"held": 34}, "no whole blocks of 32 in Q8_0"),
    "an unknown quantisation": ([line("x", [32], 4_000_000_000, 0)], [], {"held": 34}, "unknown type 4,000,000,000"),
    "a withdrawn quantisation": ([line("x", [32], 4, 0)], [], {"held": 34}, "unknown type 4"),
    "an offset without end": ([line("x", [1], 0, 2**63)], [], {"held": 4}, "ends at"),
    "an offset between": ([line("x", [1], 0, 4)], [], {"held": 40}, "no multiple of 32"),
    "an overlap": ([line("x", [9], 0, 0), line("y", [1], 0, 32)], [], {"held": 64}, "overlap"),
    "a name twice": ([line("x", [1], 0, 0), line("x", [1], 0, 32)], [], {"held": 64}, "two tensors are called 'x'"),
    "a name of nothing": ([line("", [1], 0, 0)], [], {"held": 4}, "cannot be the name"),
    "a name without end": ([line("x" * 300, [1], 0, 0)], [], {"held": 4}, "at most 256"),
    "a name that moves the cursor": ([line("x\x1b[2J", [1], 0, 0)], [], {"held": 4}, "cannot be the name"),
    "version 1": ([], [], {"version": 1}, "version 1"),
    "version 4": ([], [], {"version": 4}, "version 4"),
    "version 2^32": ([], [], {"version": 2**32 - 1}, "version"),
    "another magic": ([], [], {"magic": b"GGUG"}, "does not begin with GGUF"),
    "an older format": ([], [], {"magic": b"tjgg"}, "before GGUF"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_header_is_refused_at_once(tmp_path, case):
    lines, keys, how, said = HOSTILE[case]
    path = write_gguf(tmp_path / "model.gguf", lines, keys, **how)
    begun = time.process_time()
    with pytest.raises(CostcalcError) as caught:
        read_gguf(path)
    assert time.process_time() - begun < 3.0  # on a busy machine; idle, a fifth of a second
    assert said in str(caught.value)
    assert caught.value.hint


def test_a_file_may_be_cut_anywhere(tmp_path):
    whole = written(tmp_path / "whole.gguf", x="Q8_0", y="F32").read_bytes()
    path = tmp_path / "cut.gguf"
    for length in [*range(0, 200, 7), len(whole) // 2, len(whole) - 5 * 512 * 4 + 100]:
        path.write_bytes(whole[:length])
        with pytest.raises(CostcalcError):
            read_gguf(path)


def test_without_the_library_the_refusal_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    with pytest.raises(CostcalcError, match="library gguf") as caught:
        read_checkpoint(str(write_gguf(tmp_path / "model.gguf")))
    assert caught.value.hint == "pip install 'costcalc[checkpoints]'"


def test_a_vocabulary_is_walked_over_in_a_moment(tmp_path):
    """The library's reader takes minutes for as many."""
    tokens = b"".join(text("abc") for _ in range(300_000))
    path = write_gguf(tmp_path / "x.gguf", [line("x", [1], 0, 0)], [key("t", 9, array(TEXTS, 300_000, tokens))], 4)
    read_gguf(write_gguf(tmp_path / "first.gguf"))  # loads the library
    begun = time.process_time()
    assert len(read_gguf(path).tensors) == 1
    assert time.process_time() - begun < 3.0
