"""The beginning and the end of a long output, in bounded memory."""

from __future__ import annotations

_ROOM_FOR_MARKER = 64


class Excerpt:
    """Keeps at most `limit` bytes of its input: head and tail, with a line between them that says what was cut."""

    def __init__(self, limit: int) -> None:
        room = max(limit - _ROOM_FOR_MARKER, 0)
        self._limit = limit
        self._head_size = room // 2
        self._tail_size = room - self._head_size
        self._kept = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def cut(self) -> bool:
        return self.total > self._limit

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            # Cut seldom, not at every feed: each cut moves the whole tail.
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: len(self._tail) - self._tail_size]

    def value(self) -> bytes:
        if not self.cut:
            return bytes(self._kept)
        tail = bytes((self._kept + self._tail)[-self._tail_size :]) if self._tail_size else b""
        left_out = self.total - self._head_size - len(tail)
        marker = b"\n[... %d bytes left out ...]\n" % left_out
        return (bytes(self._kept[: self._head_size]) + marker + tail) if self._head_size else marker[: self._limit]


class Tail:
    """The last `limit` bytes of its input."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data[-self._limit :]
        if len(self._data) > 2 * self._limit:
            del self._data[: len(self._data) - self._limit]

    def value(self) -> bytes:
        return bytes(self._data[-self._limit :])
