"""What stored tensors stand for: the weight behind packed integers and their scales, with the shape that it really has.

Each way to pack is told by the names and shapes that it leaves behind, and each has two of them that must agree; where
they do not, or nothing says how many weights an integer holds, the weight has no count rather than a guessed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from costcalc.inventory.stored import Checkpoint, Stored

EIGHT_BITS = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8")
FLOATS = ("F64", "F32", "F16", "BF16", *EIGHT_BITS[:-1], "F6_E2M3", "F6_E3M2", "F4")
WORDS = ("I32", "U32")
GGML_INTEGERS = ("I8", "I16", "I32", "I64")
SCALE = "scale"
"""The packing of tensors that scale others."""
NARROW = (*EIGHT_BITS, "U8")
BUFFERS = re.compile(
    r"(?:^|\.)(?:position_ids|token_type_ids|masked_bias|num_batches_tracked|(?:\w*_)?inv_freq|cos_cached|sin_cached"
    r"|(?:weight|bias)_integer|(?:fc|act|weight)_scaling_factor|x_min|x_max|(?i:layernorm)\.shift|slope_rate|(?:query|key|diagonal)_decay)$"
    r"|^rope_(?:freqs|factors_long|factors_short)\.weight$"
)
"""Tensors that a model makes anew at each start: positions, rotations, decays that the layer fixes."""
MASKS = re.compile(r"(?:attn|attention)\.bias$")
"""Of more than one dimension, the mask of GPT-2 and its kin; of one it may be a bias."""
BESIDE = re.compile(r"(?P<stem>.+)\.(?P<part>\w+?)(?P<scale>_scale(?:_inv|_2)?|_offset|_zero_point)$")
OUTSIDE = re.compile(r"(?:^|[._])(?:k|v|q|kv|prob|prob_output|input|output)_scale$")
"""Scales of activations and of caches: one number, or one for each head."""


@dataclass(frozen=True, slots=True)
class Group:
    """What is stored under one stem, by the last part of its name, and what the config.json says of packing."""

    stem: str
    pieces: dict[str, Stored]
    config: Mapping[str, Any]

    def get(self, part: str) -> Stored | None:
        """One of its pieces."""
        return self.pieces.get(part)

    def is_weight(self, shape: tuple[int, ...], packing: str, *, name: str = "") -> Meaning:
        """A weight of this shape."""
        return Meaning(name or self.stem, shape, tuple(self.pieces.values()), packing)

    def is_unknown(self, packing: str, why: str, *, name: str = "") -> Meaning:
        """A weight of a shape that nothing tells."""
        name = name or self.stem
        return Meaning(name, None, tuple(self.pieces.values()), packing, why=f"{name}: {why}")


@dataclass(frozen=True, slots=True)
class Meaning:
    """One weight or buffer, and the stored tensors that it is made of; shape None where nothing tells it, and why."""

    name: str
    shape: tuple[int, ...] | None
    pieces: tuple[Stored, ...]
    packing: str = ""
    is_buffer: bool = False
    why: str = ""

    @property
    def parameters(self) -> int | None:
        """How many weights it has."""
        return None if self.shape is None else prod(self.shape)

    @property
    def bytes(self) -> int:
        """What all of its pieces take, scales included."""
        return sum(piece.bytes for piece in self.pieces)


def meanings(checkpoint: Checkpoint) -> tuple[Meaning, ...]:
    """Every weight and buffer of a checkpoint, each stored tensor in exactly one of them."""
    by_name = {tensor.name: tensor for tensor in checkpoint.tensors}
    if checkpoint.format == "gguf":
        return tuple(_plain(tensor, is_counted=tensor.dtype not in GGML_INTEGERS) for tensor in checkpoint.tensors)
    packed = list(_packed(by_name, checkpoint.quantization))
    owned = {piece.name for meaning in packed for piece in meaning.pieces}
    plain = [tensor for name, tensor in by_name.items() if name not in owned]
    scaled = {meaning.name for meaning in packed} | {each.name for each in plain if each.dtype in NARROW}
    scales, rest = _outside(plain, scaled, bool(packed))
    of_bytes = {tensor.name for tensor in rest if tensor.dtype == "I8" and f"{tensor.name}_scale" in by_name}
    told = [_plain(tensor, is_counted=tensor.dtype in FLOATS or tensor.name in of_bytes) for tensor in rest]
    beside = [Meaning(scale.name, scale.shape, (scale,), SCALE, is_buffer=True) for scale in scales]
    return (*packed, *told, *beside)


def _plain(tensor: Stored, *, is_counted: bool) -> Meaning:
    if BUFFERS.search(tensor.name) or (MASKS.search(tensor.name) and len(tensor.shape) > 1):
        return Meaning(tensor.name, tensor.shape, (tensor,), is_buffer=True)
    if is_counted:
        return Meaning(tensor.name, tensor.shape, (tensor,))
    why = f"{tensor.name} holds {tensor.dtype}, and nothing says how many weights one of them is"
    return Meaning(tensor.name, None, (tensor,), why=why)


def _outside(tensors: list[Stored], scaled: set[str], is_packed: bool) -> tuple[list[Stored], list[Stored]]:
    """Scales whose weights are whole (FP8, int8), and everything else."""
    any_scaled = is_packed or bool(scaled)
    scales = []
    for tensor in tensors:
        found = BESIDE.fullmatch(tensor.name)
        of = f"{found['stem']}.{found['part']}" if found else ""
        if of in scaled or (any_scaled and OUTSIDE.search(tensor.name)):
            scales.append(tensor)
    names = {scale.name for scale in scales}
    return scales, [tensor for tensor in tensors if tensor.name not in names]


def _packed(by_name: Mapping[str, Stored], config: Mapping[str, Any]) -> Iterator[Meaning]:
    """Every weight of several pieces; each reader is tried where the piece is that it is told by."""
    for name, tensor in by_name.items():
        for told_by, pieces, read in READERS:
            if not name.endswith(told_by):
                continue
            stem = name.removesuffix(told_by)
            group = {piece: by_name[stem + piece] for piece in (told_by, *pieces) if stem + piece in by_name}
            meaning = read(Group(stem, group, config))
            if meaning is not None:
                yield meaning
                break
        else:
            if tensor.dtype in EIGHT_BITS and name.endswith(".weight") and f"{_stem(name)}.SCB" in by_name:
                yield _llm_int8(name, by_name)


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _llm_int8(name: str, by_name: Mapping[str, Stored]) -> Meaning:
    """What bitsandbytes calls LLM.int8: one scale (SCB) a row, arXiv 2208.07339."""
    pieces = [by_name[each] for each in (name, f"{_stem(name)}.SCB", f"{name}_format") if each in by_name]
    return Meaning(name, by_name[name].shape, tuple(pieces), "bitsandbytes int8")


def _rows_of_words(group: Group) -> Meaning | None:
    """GPTQ (arXiv 2210.17323) packs down the columns, AWQ (arXiv 2306.00978) along the rows, 32 bits at a time.

    scales is [groups, out], zeros [groups, out x bits / 32]: so the bits are told by those two.
    """
    words, scales, zeros = (group.get(part) for part in (".qweight", ".scales", ".qzeros"))
    name = f"{group.stem}.weight"
    if words is None or words.dtype not in WORDS or len(words.shape) != 2:
        return None
    if scales is None or len(scales.shape) != 2:
        return group.is_unknown("packed", "no scales of two dimensions beside its qweight", name=name)
    out, bits = scales.shape[1], group.config.get("bits")
    if zeros is not None and zeros.dtype in WORDS and out and len(zeros.shape) == 2 and not 32 * zeros.shape[1] % out:
        bits = 32 * zeros.shape[1] // out
    if type(bits) is not int or not 0 < bits <= 8:
        return group.is_unknown("packed", "nothing says how many bits a weight has", name=name)
    rows, columns = words.shape
    if columns == out and not 32 * rows % bits:
        return group.is_weight((32 * rows // bits, out), f"GPTQ, {bits} bits", name=name)
    if 32 * columns == out * bits:
        return group.is_weight((rows, out), f"AWQ, {bits} bits", name=name)
    return group.is_unknown("packed", "its qweight and scales are of different widths", name=name)


def _four_bits(group: Group) -> Meaning | None:
    """What bitsandbytes calls NF4 and FP4 (QLoRA, arXiv 2305.14314): two weights a byte, their shape noted beside."""
    weight, state = group.get(""), next(filter(None, map(group.get, STATES)), None)
    if weight is None or group.get(".absmax") is None or weight.dtype not in ("U8", *FLOATS):
        return None
    shape = None if state is None else state.states
    if shape is None:
        return group.is_unknown("bitsandbytes 4 bits", "no quant_state notes its shape")
    if (prod(shape) + 1) // 2 != weight.bytes:
        return group.is_unknown("bitsandbytes 4 bits", f"its quant_state notes {shape}, not what is stored")
    return group.is_weight(shape, "bitsandbytes 4 bits")


def _microscaled(group: Group) -> Meaning | None:
    """MXFP4 as GPT-OSS stores it: blocks of 16 bytes, each of two values, and a scale for each block."""
    blocks, scales = group.get("_blocks"), group.get("_scales")
    if blocks is None or scales is None or blocks.dtype != "U8" or blocks.shape[:-1] != scales.shape:
        return None
    *rows, count, size = blocks.shape
    return group.is_weight((*rows, 2 * count * size), "MXFP4")


def _compressed(group: Group) -> Meaning | None:
    """compressed-tensors: 32-bit words with the shape noted beside, or NVFP4, two values a byte and 16 a scale."""
    packed, shape, scale = (group.get(part) for part in ("_packed", "_shape", "_scale"))
    if packed is None or not packed.shape:
        return None
    if packed.dtype == "U8" and scale is not None and scale.shape == (*packed.shape[:-1], packed.shape[-1] // 8):
        return group.is_weight((*packed.shape[:-1], 2 * packed.shape[-1]), "NVFP4")
    noted = None if shape is None else shape.states
    if noted is None or not _fits(noted, packed):
        return group.is_unknown("compressed-tensors", "its weight_shape is not that of its packed words")
    return group.is_weight(noted, "compressed-tensors")


def _fits(shape: tuple[int, ...], packed: Stored) -> bool:
    """Whether some whole number of bits, at most 8, packs rows of that shape into those words."""
    if packed.dtype not in WORDS or shape[:-1] != packed.shape[:-1] or not shape:
        return False
    return any(-(-shape[-1] // (32 // bits)) == packed.shape[-1] for bits in range(1, 9))


def _half_bytes(group: Group) -> Meaning | None:
    """NVFP4 as Model Optimizer stores it: two values a byte, a scale for 16, and one for all."""
    weight, scale = group.get(""), group.get("_scale")
    if weight is None or weight.dtype != "U8" or scale is None or group.get("_scale_2") is None or not weight.shape:
        return None
    if scale.shape != (*weight.shape[:-1], weight.shape[-1] // 8) or weight.shape[-1] % 8:
        return None
    return group.is_weight((*weight.shape[:-1], 2 * weight.shape[-1]), "NVFP4")


def _words_and_biases(group: Group) -> Meaning | None:
    """MLX: 32-bit words along the rows, a scale and a bias for each group; bits and group size are in its config."""
    words, scales = group.get(".weight"), group.get(".scales")
    if words is None or scales is None or words.dtype != "U32" or words.shape[:-1] != scales.shape[:-1]:
        return None
    own = group.config.get(group.stem)
    said = own if isinstance(own, dict) else group.config
    bits, size, name = said.get("bits"), said.get("group_size"), f"{group.stem}.weight"
    if type(bits) is not int or type(size) is not int or not 0 < bits <= 8 or size <= 0 or not words.shape:
        return group.is_unknown(
            "MLX", "bits and group size are told by a config.json, which is not beside it", name=name
        )
    if 32 * words.shape[-1] != bits * size * scales.shape[-1]:
        return group.is_unknown("MLX", f"{bits} bits in groups of {size} are not what is stored", name=name)
    return group.is_weight((*words.shape[:-1], size * scales.shape[-1]), f"MLX, {bits} bits", name=name)


STATES = (".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4")
ABSMAX = (".quant_map", ".nested_absmax", ".nested_quant_map", *STATES)
COMPRESSED = ("_shape", "_scale", "_zero_point", "_g_idx", "_global_scale")
Reader = Callable[[Group], "Meaning | None"]
READERS: tuple[tuple[str, tuple[str, ...], Reader], ...] = (
    (".qweight", (".qzeros", ".scales", ".g_idx"), _rows_of_words),
    (".absmax", ("", *ABSMAX), _four_bits),
    ("_blocks", ("_scales",), _microscaled),
    ("_packed", COMPRESSED, _compressed),
    ("_scale_2", ("", "_scale"), _half_bytes),
    (".scales", (".weight", ".biases"), _words_and_biases),
)
"""What a way to pack is told by, the other pieces that it may have, and who reads it."""
