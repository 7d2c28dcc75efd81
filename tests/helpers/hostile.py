"""Headers written byte by byte, with whatever they claim; what lies behind them takes no room on the disk."""

import json
import struct


def write_safetensors(path, header, held=0, length=None):
    """`header` (an object or bytes), behind the length that it claims, and `held` bytes of nothing."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw) if length is None else length) + raw)
        file.truncate(8 + len(raw) + held)
    return path


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def text(word, order="<"):
    raw = word if isinstance(word, bytes) else word.encode()
    return struct.pack(f"{order}Q", len(raw)) + raw


def key(name, kind, raw, order="<"):
    return text(name, order) + struct.pack(f"{order}I", kind) + raw


def line(name, sizes, kind, offset, order="<", rank=None):
    rank = len(sizes) if rank is None else rank
    body = struct.pack(f"{order}I", rank) + struct.pack(f"{order}{len(sizes)}Q", *sizes)
    return text(name, order) + body + struct.pack(f"{order}IQ", kind, offset)


def write_gguf(path, lines=(), keys=(), held=0, version=3, order="<", counts=None, magic=b"GGUF"):
    """`lines` and `keys` as above, behind the counts that they claim, padded to 32, and `held` bytes of nothing."""
    counts = counts or (len(lines), len(keys))
    raw = magic + struct.pack(f"{order}IQQ", version, *counts) + b"".join((*keys, *lines))
    with path.open("wb") as file:
        file.write(raw)
        file.truncate(-(-len(raw) // 32) * 32 + held)
    return path
