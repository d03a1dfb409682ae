"""The only way out of a sandbox: a proxy on a unix socket that connects to hosts of a list, and records every decision.

`python -I -m ralph.sandbox.proxy SOCKET LOG HOST…` runs until its standard input closes, which the run holds open: it
ends with the run, however that ends. A name is resolved here, once, and the connection goes to that address: a second
answer of the name server cannot lead elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ralph.sandbox.hosts import Host, is_public, normal, parse_hosts, why_refused

_LONGEST_HEAD = 64 * 1024
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_MOST_RECORDS = 100_000
_DROPPED = (b"proxy-", b"connection:", b"keep-alive:")


class Proxy:
    def __init__(self, hosts: Sequence[Host], log: int, *, private: bool = False) -> None:
        self._hosts = hosts
        self._log = log
        self._private = private
        """Tests on loopback: names may resolve to private addresses."""
        self._records = 0

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(client, answer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                answer.close()

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(client.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
        line, _, fields = head.partition(b"\r\n")
        method, target, version = line.decode("latin-1").split(" ", 2)
        host, port, path = _target(method, target)
        reason = why_refused(host, port, self._hosts)
        address = "" if reason else await self._resolve(host, port)
        if not reason and not address:
            reason = "the name leads to no public address"
        self._record(method, host, port, reason)
        if reason:
            text = f"Ralph's sandbox does not allow {host}:{port}: {reason}\n".encode()
            answer.write(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n")
            answer.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            await answer.drain()
            return
        try:
            opening = asyncio.open_connection(address, port)
            theirs, ours = await asyncio.wait_for(opening, _CONNECT_SECONDS)
        except (OSError, TimeoutError):
            answer.write(b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            await answer.drain()
            return
        if method == "CONNECT":
            answer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            kept = [field for field in fields.split(b"\r\n") if field and not field.lower().startswith(_DROPPED)]
            ours.write(f"{method} {path} {version}\r\n".encode("latin-1"))
            ours.write(b"".join(field + b"\r\n" for field in kept) + b"Connection: close\r\n\r\n")
        try:
            await asyncio.gather(_copy(client, ours), _copy(theirs, answer))
        finally:
            ours.close()

    async def _resolve(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(normal(host), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return ""
        addresses = [str(address[0]) for *_, address in found]
        if not self._private and not all(map(is_public, addresses)):
            return ""  # one private answer among public ones is a trick as well
        return addresses[0] if addresses else ""

    def _record(self, method: str, host: str, port: int, reason: str) -> None:
        self._records += 1
        if self._records > _MOST_RECORDS:
            return
        record: dict[str, Any] = {"t": round(time.time(), 3), "method": method[:20], "host": host[:300], "port": port}
        line = json.dumps(record | ({"refused": reason} if reason else {})) + "\n"
        with contextlib.suppress(OSError):
            os.write(self._log, line.encode())


def _target(method: str, target: str) -> tuple[str, int, str]:
    """Host, port and path of a request. Raises ValueError."""
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return host.strip("[]"), int(port), ""
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise ValueError(target)
    place, slash, path = rest.partition("/")
    host, _, port = place.rpartition("@")[2].partition(":")
    return host, int(port or 80), slash + path or "/"


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    with contextlib.suppress(OSError, RuntimeError):
        sink.write_eof()


async def run(path: str, log: str, entries: Sequence[str], *, private: bool = False) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    proxy = Proxy(parse_hosts(entries), descriptor, private=private)
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    server = await asyncio.start_unix_server(proxy.serve, path, limit=_LONGEST_HEAD)
    Path(path).chmod(0o600)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    words = sys.argv[1:]
    is_private = words[:1] == ["--private"]
    socket_path, log_path, *names = words[1:] if is_private else words
    asyncio.run(run(socket_path, log_path, names, private=is_private))
