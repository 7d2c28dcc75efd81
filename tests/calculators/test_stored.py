"""What a checkpoint holds: elements, bytes and bits, and what packed integers stand for."""

from fractions import Fraction
from math import prod

import pytest

from costcalc.calculators.stored import stored
from costcalc.inventory.packing import meanings
from costcalc.inventory.stored import Checkpoint, Stored

BITS = {"F32": 32, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "I64": 64, "U8": 8, "I8": 8, "F8_E4M3": 8, "F4": 4}


def held(form="safetensors", config=None, states=None, **tensors):
    """held(x=("F16", 3, 5)): a checkpoint of these tensors."""
    made = []
    for name, (dtype, *shape) in tensors.items():
        made.append(Stored(name, tuple(shape), dtype, prod(shape) * BITS[dtype] // 8, "f", (states or {}).get(name)))
    return Checkpoint("x", form, ("f",), tuple(made), config or {})


def test_sums_by_dtype():
    # F16: 3·5 + 7 = 22 elements in 44 bytes; F32: 11 in 44; I64 positions: 13 in 104, a buffer
    checkpoint = held(**{"a": ("F16", 3, 5), "b": ("F16", 7), "c": ("F32", 11), "x.position_ids": ("I64", 1, 13)})
    totals = stored(checkpoint)
    assert (totals.parameters, totals.elements, totals.buffers, totals.bytes) == (33, 46, 13, 192)
    assert totals.bits == Fraction(8 * 88, 33)
    said = [(row.dtype, row.tensors, row.elements, row.bytes, row.bits) for row in totals.by_dtype]
    assert said == [("I64", 1, 13, 104, 64), ("F16", 2, 22, 44, 16), ("F32", 1, 11, 44, 32)]


def test_nothing_is_zero_and_has_no_bits():
    totals = stored(Checkpoint("x", "gguf", ("f",), ()))
    assert (totals.parameters, totals.bytes, totals.bits, totals.by_dtype) == (0, 0, None, ())


# Each packs a weight of IN = 96 and OUT = 64 columns.
GROUPS, ONE = {"q.g_idx": ("I32", 96)}, {"q.weight_global_scale": ("F32", 1)}
PACKED = {
    "GPTQ, 4 bits": {"q.qweight": ("I32", 12, 64), "q.qzeros": ("I32", 3, 8), "q.scales": ("F16", 3, 64), **GROUPS},
    "GPTQ, 3 bits": {"q.qweight": ("I32", 9, 64), "q.qzeros": ("I32", 3, 6), "q.scales": ("F16", 3, 64), **GROUPS},
    "GPTQ, 8 bits": {"q.qweight": ("I32", 24, 64), "q.qzeros": ("I32", 1, 16), "q.scales": ("F16", 1, 64)},
    "AWQ, 4 bits": {"q.qweight": ("I32", 96, 8), "q.qzeros": ("I32", 3, 8), "q.scales": ("F16", 3, 64)},
    "bitsandbytes int8": {"q.weight": ("I8", 64, 96), "q.SCB": ("F32", 64), "q.weight_format": ("U8",)},
    "MXFP4": {"q_blocks": ("U8", 64, 3, 16), "q_scales": ("U8", 64, 3)},
    "NVFP4": {"q.weight_packed": ("U8", 64, 48), "q.weight_scale": ("F8_E4M3", 64, 6), **ONE},
}  # fmt: skip


@pytest.mark.parametrize("packing", PACKED)
def test_packed_weights_count_as_what_they_stand_for(packing):
    checkpoint = held(**PACKED[packing], **{"norm.weight": ("F16", 7), "q.bias": ("F16", 64)})
    totals = stored(checkpoint)
    assert totals.parameters == 96 * 64 + 7 + 64
    assert totals.packings == {packing: 1}
    assert totals.bytes == sum(tensor.bytes for tensor in checkpoint.tensors)
    assert sorted(piece.name for each in totals.meanings for piece in each.pieces) == sorted(
        tensor.name for tensor in checkpoint.tensors
    )
    (packed,) = [each for each in totals.meanings if each.packing == packing]
    assert sorted(packed.shape)[-2:] == [64, 96]


def test_gptq_without_zeros_has_its_bits_from_the_config():
    pieces = {"q.qweight": ("I32", 12, 64), "q.scales": ("F16", 3, 64)}
    assert stored(held(**pieces)).parameters is None
    assert "nothing says how many bits" in stored(held(**pieces)).why
    assert stored(held(config={"quantization_config": {"bits": 4}}, **pieces)).parameters == 96 * 64


def test_notes_of_shapes_tell_what_two_weights_a_byte_are():
    state = "q.weight.quant_state.bitsandbytes__nf4"
    pieces = {"q.weight": ("U8", 25, 1), "q.weight.absmax": ("U8", 1), "q.weight.quant_map": ("F32", 16)}
    pieces |= {"q.weight.nested_absmax": ("F32", 1), state: ("U8", 90)}
    assert stored(held(states={state: (7, 7)}, **pieces)).parameters == 49  # 7·7 = 49 of 50 halves
    assert "no quant_state" in stored(held(**pieces)).why
    assert "not what is stored" in stored(held(states={state: (7, 8)}, **pieces)).why


def test_words_of_compressed_tensors_are_told_by_the_shape_beside_them():
    pieces = {"q.weight_packed": ("I32", 12, 5), "q.weight_scale": ("F16", 12, 1), "q.weight_shape": ("I64", 2)}
    assert stored(held(states={"q.weight_shape": (12, 37)}, **pieces)).parameters == 12 * 37  # 37 of 40 places
    assert "not that of its packed words" in stored(held(states={"q.weight_shape": (12, 61)}, **pieces)).why
    assert "not that of its packed words" in stored(held(**pieces)).why


def test_words_of_mlx_are_told_by_the_config():
    pieces = {"q.weight": ("U32", 64, 12), "q.scales": ("F16", 64, 3), "q.biases": ("F16", 64, 3)}
    assert "config.json" in stored(held(**pieces)).why
    four, eight = {"bits": 4, "group_size": 32}, {"bits": 8, "group_size": 32}
    assert stored(held(config={"quantization": four}, **pieces)).parameters == 64 * 96
    assert "not what is stored" in stored(held(config={"quantization": eight}, **pieces)).why
    own = {"bits": 8, "group_size": 16}
    assert stored(held(config={"quantization": {**four, "q": own}}, **pieces)).parameters == 64 * 48


def test_whole_bytes_count_and_their_scales_do_not():
    bytes_ = {"a.weight": ("F8_E4M3", 5, 7), "a.weight_scale_inv": ("F32", 1, 1), "a.input_scale": ("F32",)}
    bytes_ |= {"b.weight": ("I8", 5, 7), "b.weight_scale": ("F32", 5, 1)}
    totals = stored(held(**bytes_, **{"attn.k_scale": ("F32", 1), "scale": ("F32", 3)}))
    assert totals.parameters == 35 + 35 + 3
    assert totals.buffers == 0


def test_a_scale_of_nothing_packed_is_a_weight():
    assert (
        stored(held(**{"a.weight": ("F16", 5, 7), "a.weight_scale": ("F16", 5), "k_scale": ("F16", 1)})).parameters
        == 41
    )


@pytest.mark.parametrize("dtype", ["U8", "I8", "I32", "I64"])
def test_integers_that_nothing_explains_are_not_guessed_at(dtype):
    totals = stored(held(x=(dtype, 5, 7), y=("F16", 3)))
    assert (totals.parameters, totals.bits, totals.elements) == (None, None, 38)
    assert f"x holds {dtype}" in totals.why


def test_masks_are_buffers_and_biases_are_not():
    totals = stored(held(**{"h.attn.bias": ("F16", 1, 1, 5, 5), "g.attn.bias": ("F16", 3), "r.inv_freq": ("F32", 2)}))
    assert (totals.parameters, totals.buffers) == (3, 27)


def test_blocks_of_gguf_hold_as_many_as_their_shape_says():
    tensors = (Stored("a", (3, 512), "Q4_K", 3 * 2 * 144, "f"), Stored("rope_freqs.weight", (8,), "F32", 32, "f"))
    totals = stored(Checkpoint("x", "gguf", ("f",), tensors))
    assert (totals.parameters, totals.buffers, totals.bits) == (1_536, 8, Fraction(9, 2))
    assert [each.is_buffer for each in meanings(Checkpoint("x", "gguf", ("f",), tensors))] == [False, True]
