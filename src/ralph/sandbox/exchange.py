"""What goes back and forth between a client inside a sandbox and a server: tunnels, and single HTTP requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ralph.sandbox.http_message import CHUNKED, BadMessage, Head, Target, join_head, parse_head
from ralph.sandbox.server_name import Incomplete
from ralph.sandbox.upstream import Upstream

CHUNK = 64 * 1024
_HALF_CLOSED_SECONDS = 300.0
"""How long a connection may be silent once one side has finished."""
_LINGER_SECONDS = 5.0
_UNRECOGNIZED_NAME = b"\x15\x03\x01\x00\x02\x02\x70"
"""The TLS alert for a name that is not served."""


class Link(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Exchange:
    """Bytes in both directions between a client and a server, and how many."""

    def __init__(self, client: Link, server: Link) -> None:
        self.client, self.server = client, server
        self.up = self.down = 0
        self.problem = ""
        """What was wrong with the request's body."""

    async def run(self, sending: Awaitable[bool], receiving: Awaitable[bool]) -> None:
        """Until both directions are over: each returns whether the other may go on."""
        tasks = {asyncio.ensure_future(sending), asyncio.ensure_future(receiving)}
        try:
            done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            while waiting and all(not task.exception() and task.result() for task in done):
                moved = self.up + self.down
                done, waiting = await asyncio.wait(waiting, timeout=_HALF_CLOSED_SECONDS)
                if not done and moved == self.up + self.down:
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, data: bytes) -> None:
        self.server.writer.write(data)
        await self.server.writer.drain()
        self.up += len(data)

    async def send_all(self, check: Callable[[bytes], bool] | None) -> bool:
        """To the server until the client ends. `check` sees the first message before the server does."""
        first = b""
        while data := await self.client.reader.read(CHUNK):
            if check is not None:
                first += data
                try:
                    if not check(first):
                        self.client.writer.write(_UNRECOGNIZED_NAME)
                        await self.client.writer.drain()
                        return False
                except Incomplete:
                    if len(first) < 2 * CHUNK:
                        continue
                data, check = first, None
            await self.send(data)
        if check is not None and first:
            await self.send(first)
        if self.server.writer.can_write_eof():  # not in TLS, to a proxy of the user's
            self.server.writer.write_eof()
        return True

    async def receive_all(self) -> bool:
        while data := await self.server.reader.read(CHUNK):
            self.client.writer.write(data)
            await self.client.writer.drain()
            self.down += len(data)
        self.client.writer.write_eof()
        return True


async def request(exchange: Exchange, head: Head, target: Target, length: int, upstream: Upstream | None) -> None:
    method, _, version = head.start
    fields = [field for field in head.end_to_end() if field[0].lower() != "host"]
    fields = [("Host", target.authority), *fields, ("Connection", "close")]
    path = target.path
    if upstream is not None:
        path = f"http://{target.authority}{path if path != '*' else ''}"
        fields += upstream.fields()

    async def send() -> bool:
        await exchange.send(join_head((method, path, version), fields))
        await _send_body(exchange, length)
        while await exchange.client.reader.read(CHUNK):
            pass  # whatever comes after the request goes nowhere
        return True

    async def receive() -> bool:
        await _receive_head(exchange)
        await exchange.receive_all()
        return False  # the answer is complete

    await exchange.run(send(), receive())
    if exchange.problem and not exchange.down:
        await answer(exchange.client, 400, exchange.problem)
    elif not exchange.down:
        await answer(exchange.client, 502, f"{target.authority} closed the connection without an answer")
    else:
        await linger(exchange.client)


async def _send_body(exchange: Exchange, length: int) -> None:
    reader = exchange.client.reader
    if length != CHUNKED:
        while length:
            data = await reader.read(min(length, CHUNK))
            if not data:
                raise EOFError
            length -= len(data)
            await exchange.send(data)
        return
    while True:
        line = await reader.readuntil(b"\r\n")
        size = line[:-2].partition(b";")[0].strip(b" \t")
        if not size or len(size) > 15 or size.strip(b"0123456789abcdefABCDEF") or b"\n" in line[:-2]:
            raise _malformed(exchange)
        await exchange.send(size + b"\r\n")
        if not int(size, 16):
            break
        await _send_body(exchange, int(size, 16))
        if await reader.readexactly(2) != b"\r\n":
            raise _malformed(exchange)
        await exchange.send(b"\r\n")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers; none that matters is known
    await exchange.send(b"\r\n")


def _malformed(exchange: Exchange) -> EOFError:
    exchange.problem = "the body is malformed"
    return EOFError()


async def _receive_head(exchange: Exchange) -> None:
    """Pass on the head of the answer, and those of interim answers before it."""
    while True:
        try:
            head = parse_head(await exchange.server.reader.readuntil(b"\r\n\r\n"))
        except (BadMessage, asyncio.LimitOverrunError):
            return  # not HTTP/1; the client gets 502
        fields = head.end_to_end()
        is_final = not head.start[1].startswith("1")
        if is_final:
            fields.append(("Connection", "close"))
        data = join_head(head.start, fields)
        exchange.client.writer.write(data)
        await exchange.client.writer.drain()
        exchange.down += len(data)
        if is_final:
            return


async def answer(client: Link, status: int, text: str) -> None:
    words = {400: "Bad Request", 403: "Forbidden", 431: "Request Header Fields Too Large", 502: "Bad Gateway"}
    body = f"{text}\n".encode()
    fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    reason = words.get(status, "Service Unavailable")
    client.writer.write(join_head(("HTTP/1.1", str(status), reason), fields) + body)
    await client.writer.drain()
    await linger(client)


async def linger(client: Link) -> None:
    """Closing while the client still sends would destroy the answer before it is read."""
    with contextlib.suppress(OSError, TimeoutError, RuntimeError):
        client.writer.write_eof()
        async with asyncio.timeout(_LINGER_SECONDS):
            while await client.reader.read(CHUNK):
                pass
