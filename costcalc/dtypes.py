"""How many bytes a value takes: each dtype as (bytes, values), so that 34 bytes for 32 values stays exact.

Block formats carry their scales: ggml's q8_0 stores 32 int8 and one fp16 scale, 34 bytes (ggml-common.h, block_q8_0);
the OCP Microscaling formats store 32 elements and one 8-bit scale (OCP MX specification 1.0, table 1).
"""

from __future__ import annotations

from costcalc.errors import CostcalcError, nearest, shown

DTYPES: dict[str, tuple[int, int]] = {
    "fp64": (8, 1),
    "fp32": (4, 1),
    "fp16": (2, 1),
    "bf16": (2, 1),
    "fp8": (1, 1),
    "int8": (1, 1),
    "int4": (1, 2),
    "q8_0": (34, 32),
    "q5_1": (24, 32),
    "q5_0": (22, 32),
    "q4_1": (20, 32),
    "q4_0": (18, 32),
    "mxfp8": (33, 32),
    "mxfp4": (17, 32),
}

WEIGHT_BLOCKS: dict[str, tuple[int, int]] = {
    "q6_k": (210, 256),
    "q5_k": (176, 256),
    "q4_k": (144, 256),
    "q3_k": (110, 256),
    "q2_k": (84, 256),
    "iq4_nl": (18, 32),
    "iq4_xs": (136, 256),
    "nvfp4": (9, 16),
    "gptq_g128": (133, 256),
    "awq_g128": (133, 256),
    "nf4": (36, 64),
    "nf4_double": (8452, 16384),
}
"""Block formats of weights alone, scales included: ggml's k-quants and iq4 (ggml-common.h); 16 fp4 values and an fp8
scale; 4-bit groups of 128 with an fp16 scale and a 4-bit zero (arXiv 2210.17323, 2306.00978); NF4 in blocks of 64 with
an fp32 constant, or with 8-bit constants of which 256 share an fp32 one (QLoRA, arXiv 2305.14314, section 3)."""

FILE_MIXES: dict[str, str] = {
    "q3_k_m": "3.91",
    "q4_k_s": "4.58",
    "q4_k_m": "4.84",
    "q5_k_s": "5.52",
    "q5_k_m": "5.68",
}
"""Bits a weight of files that give some tensors a larger format than others, as llama.cpp measured them on Llama-2-7B
(its quantize README): another model mixes a little differently."""

ALIASES = {
    "float64": "fp64",
    "f64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "f32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "i8": "int8",
    "i4": "int4",
}


def canonical_dtype(name: str) -> str:
    """`bfloat16` -> `bf16`; an unknown name is refused with the known ones (bf16 for fp16 would be a guess)."""
    folded = name.strip().lower() if isinstance(name, str) else str(name)
    folded = ALIASES.get(folded, folded)
    if folded not in DTYPES:
        # fp4 is near fp64 in letters only: what is suggested has the same digits.
        near = [word for word in nearest(folded, [*DTYPES, *ALIASES], count=5) if digits(word) == digits(folded)]
        near += [word for word in DTYPES if word.startswith(folded) and len(folded) > 1]  # q8 is what begins q8_0
        hint = f"did you mean {near[0]}?" if near else f"one of: {', '.join(DTYPES)}"
        raise CostcalcError(f"unknown dtype {shown(name)}", hint=hint)
    return folded


def digits(word: str) -> list[str]:
    """Its digits, in order of size: what a word and the one that was meant have in common."""
    return sorted(character for character in word if character.isdigit())


def bits_said(dtype: str) -> str:
    """'16 bits a value', '34 bytes for 32 values, 8.5 bits each' of a canonical name."""
    size, values = DTYPES[dtype]
    bits = f"{8 * size / values:g} bits"
    return f"{bits} a value" if values == 1 else f"{size} byte{'s' * (size > 1)} for {values} values, {bits} each"


def bytes_for(elements: int, dtype: str) -> int:
    """Bytes that `elements` values take in `dtype` (a canonical name), rounded up once."""
    size, values = DTYPES[dtype]
    return -(-elements * size // values)
