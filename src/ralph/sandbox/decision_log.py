"""Writes the proxy's decisions, one JSON object a line. Its size is bounded, and no flood hides another host.

    {"t": 1700000000.1, "name": "agent", "method": "CONNECT", "host": "example.org", "port": 443}
    {"t": …, "name": "agent", "host": "example.org", "port": 443, "up": 517, "down": 4096}        when it ended
    {"t": …, "name": "agent", "method": "GET", "host": "x.test", "port": 80, "refused": "the host is not on the list"}
    {"t": …, …, "refused": "…", "count": 128}                                                     128 more of the same

Of equal decisions (the same list, method, host, port and answer) the first `_SINGLE` have a line each. Later ones are
counted, and a line with `count` follows whenever their number has doubled, and at the end. Beyond `_MOST_OF_HOST`
different decisions about one host they are counted together with port 0; beyond `_MOST_KEYS` in all, hosts are counted
together as `…`; allowed and refused ones apart. From `_SOFT` bytes on, only the first of equal decisions has a line of
its own; at `_HARD` bytes the log is full.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from typing import NamedTuple

_SINGLE = 20
_MOST_KEYS = 2000
_MOST_OF_HOST = 20
_METHODS = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TLS"}
_SOFT = 4_000_000
_HARD = 8_000_000
_REST = "…"


class Key(NamedTuple):
    name: str
    method: str
    host: str
    port: int
    refused: str
    failed: str


class _Tally:
    def __init__(self) -> None:
        self.total = 0
        self.unwritten = 0
        self.up = 0
        self.down = 0


class DecisionLog:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._tallies: dict[Key, _Tally] = {}
        self._keys = Counter[bool]()
        """How many keys there are, refused and allowed."""
        self._of_host = Counter[tuple[str, str, bool]]()

    def decide(self, name: str, method: str, host: str, port: int, *, refused: str = "", failed: str = "") -> Key:
        """Record a decision. The key is for `end`, when the connection is over."""
        key = Key(name, method if method in _METHODS else "OTHER", host[:253], port, refused, failed)
        tally = self._tallies.get(key)
        if tally is None:
            key = self._new(key)
            tally = self._tallies.setdefault(key, _Tally())
        tally.total += 1
        tally.unwritten += 1
        single = _SINGLE if self._size < _SOFT else 1
        if tally.total <= single or tally.total & (tally.total - 1) == 0:
            self._write_tally(key, tally)
        return key

    def _new(self, key: Key) -> Key:
        """The key under which a decision is counted that differs from all before."""
        refused = bool(key.refused)
        rest = "other requests" if refused else ""
        if self._of_host[key.name, key.host, refused] >= _MOST_OF_HOST:
            return Key(key.name, "OTHER", key.host, 0, rest, "")
        if self._keys[refused] >= _MOST_KEYS:
            return Key(key.name, "OTHER", _REST, 0, rest, "")
        self._keys[refused] += 1
        self._of_host[key.name, key.host, refused] += 1
        return key

    def end(self, key: Key, up: int, down: int) -> None:
        tally = self._tallies[key]
        if tally.total <= _SINGLE and self._size < _SOFT:
            self._write(key, {"up": up, "down": down})
        else:
            tally.up += up
            tally.down += down

    def close(self) -> None:
        """Write what was only counted."""
        for key, tally in self._tallies.items():
            if tally.unwritten or tally.up or tally.down:
                self._write_tally(key, tally)

    def _write_tally(self, key: Key, tally: _Tally) -> None:
        fields: dict[str, str | int] = {"method": key.method}
        if tally.unwritten != 1:
            fields["count"] = tally.unwritten
        if tally.up or tally.down:
            fields |= {"up": tally.up, "down": tally.down}
        tally.unwritten = tally.up = tally.down = 0
        self._write(key, fields)

    def _write(self, key: Key, fields: dict[str, str | int]) -> None:
        record = {"t": round(time.time(), 3), "name": key.name, "host": key.host, "port": key.port, **fields}
        record |= {"refused": key.refused} if key.refused else {}
        record |= {"failed": key.failed} if key.failed else {}
        line = json.dumps(record).encode() + b"\n"
        if self._size + len(line) > _HARD:
            return
        self._size += len(line)
        with contextlib.suppress(OSError):
            os.write(self._descriptor, line)
