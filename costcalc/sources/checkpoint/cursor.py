"""A place in a binary header that only moves on: every read is checked against the file's size before it happens."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from costcalc.sources.checkpoint.opened import refusal

WINDOW = 2**18
"""Bytes that are held at once."""


class Cursor:
    """Reads numbers and texts from `file` of `size` bytes; `order` is "<" or ">"."""

    def __init__(self, file: BinaryIO, size: int, path: Path, order: str = "<") -> None:
        self.file, self.size, self.path = file, size, path
        self.at = 0
        self.begin = 0
        self.held = b""
        self.u32 = struct.Struct(f"{order}I")
        self.u64 = struct.Struct(f"{order}Q")

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        self._check(count, what)
        first = self.at - self.begin
        if first < 0 or first + count > len(self.held):
            self.file.seek(self.at)
            self.held = self.file.read(max(count, WINDOW))
            self.begin, first = self.at, 0
            if len(self.held) < count:
                raise refusal(self.path, f"{what} at byte {self.at:,} cannot be read")
        self.at += count
        return self.held[first : first + count]

    def skip(self, count: int, what: str) -> None:
        """Move on, reading nothing."""
        self._check(count, what)
        self.at += count

    def _check(self, count: int, what: str) -> None:
        if count > self.size - self.at:
            said = f"{what} at byte {self.at:,} claims {count:,} bytes"
            raise refusal(self.path, f"{said}, and the file ends at {self.size:,}")

    def number(self, what: str) -> int:
        """32 bits."""
        return int(self.u32.unpack(self.take(4, what))[0])

    def long(self, what: str) -> int:
        """64 bits."""
        return int(self.u64.unpack(self.take(8, what))[0])

    def text(self, what: str, longest: int) -> str:
        """A length of 64 bits and that many bytes of UTF-8."""
        begin = self.at
        length = self.long(what)
        if length > longest:
            said = f"{what} at byte {begin:,} claims {length:,} bytes"
            raise refusal(self.path, f"{said}; at most {longest:,} are read")
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError:
            raise refusal(self.path, f"{what} at byte {begin:,} is not UTF-8") from None

    def skip_texts(self, count: int, what: str) -> None:
        """Move on over so many texts. A vocabulary has hundreds of thousands, so those inside the window are walked in
        one loop, without a check of each against the file: the window is of the file.
        """
        length_at, done = self.u64.unpack_from, 0
        while done < count:
            self.take(8, what)  # a window that begins at this text, or has it whole
            self.at -= 8
            place, last = self.at - self.begin, len(self.held) - 8
            held, before = self.held, done
            while done < count and place <= last:
                after = place + 8 + length_at(held, place)[0]
                if after > last + 8:
                    break
                place = after
                done += 1
            self.at = self.begin + place
            if done == before:  # a text that does not fit into the window
                self.skip(self.long(what), what)
                done += 1
