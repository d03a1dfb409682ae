"""Bytes in, lines out, in bounded memory regardless of the input."""

from __future__ import annotations

from msgspec import Struct

LONGEST_LINE = 4 * 1024 * 1024
_HEAD = 64 * 1024


class Oversize(Struct, frozen=True):
    """A line longer than the limit: its beginning and its full length."""

    head: bytes
    length: int


class LineSplitter:
    """Lines without their `\n` or `\r\n`. Bytes stay bytes: NUL and invalid UTF-8 are left to the reader."""

    def __init__(self, limit: int = LONGEST_LINE, head: int = _HEAD) -> None:
        self._limit = limit
        self._head_size = min(head, limit)
        self._pending = bytearray()
        self._length = 0
        """Length of the line being read, including the part that was not kept."""

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines completed by `data`."""
        return [line for block in self.blocks(data) for line in split_block(block)]

    def blocks(self, data: bytes) -> list[bytes | Oversize]:
        """The same lines, as few blocks of lines joined by newlines: a reader may skip a whole block at once."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if self._length + end <= self._limit:  # nearly always, so make it quick
            blocks: list[bytes | Oversize] = [bytes(self._pending + data[:end])]
            self._pending, self._length = bytearray(), 0
        else:
            blocks = []
            for piece in data[:end].split(b"\n"):
                self._keep(piece)
                blocks.append(self._take())
        self._keep(data[end + 1 :])
        return blocks

    def flush(self) -> list[bytes | Oversize]:
        """The rest after the last newline."""
        return split_block(self._take()) if self._length else []

    def _keep(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= self._limit:
            self._pending += piece
        elif len(self._pending) < self._head_size:
            self._pending += piece[: self._head_size - len(self._pending)]
        elif len(self._pending) > self._head_size:
            self._pending = self._pending[: self._head_size]  # a new object, so that the memory is given back

    def _take(self) -> bytes | Oversize:
        pending, length = self._pending, self._length
        self._pending, self._length = bytearray(), 0
        if length > self._limit:
            return Oversize(bytes(pending[: self._head_size]), length)
        return bytes(pending)


def split_block(block: bytes | Oversize) -> list[bytes | Oversize]:
    """The lines of a block, without `\r` at their ends."""
    if isinstance(block, Oversize):
        return [block]
    lines = block.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines] if b"\r" in block else [*lines]
