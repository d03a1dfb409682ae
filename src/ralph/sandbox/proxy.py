"""The only way out of a sandbox: a proxy on unix sockets that connects to hosts of a list, and records every decision.

One process serves a run. Each socket has a name and a list of its own: what the agent may reach, a check may not.
`network.Network` starts it; it reads one line of JSON (`Spec`) from stdin, prints `ready`, and ends when stdin closes:
however the run ends, the proxy ends with it. Until then only the run holds the listening sockets besides it.

- A name is resolved once and the connection goes to one of these addresses, so a second answer of the name server
  cannot lead elsewhere. Through a proxy of the user's (`HTTPS_PROXY`), names are resolved there and cannot be checked.
- One plain HTTP connection is one request: it ends where its body ends, `Host` is the host of the list, and both sides
  are told `Connection: close`. A second request behind it goes nowhere.
- In a CONNECT tunnel, a TLS client must ask for the host of the tunnel or for another one of the list (SNI), or the
  tunnel is closed: otherwise an allowed host of a content network would lead to every other customer of it. The name
  inside an encrypted ClientHello, and what is requested inside TLS, cannot be seen. Services that were allowed by
  address or on loopback can have any name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ralph.sandbox.decision_log import DecisionLog
from ralph.sandbox.exchange import CHUNK, Exchange, Link, answer, request
from ralph.sandbox.hosts import (
    LOOPBACK,
    Host,
    canonical,
    command_to_allow,
    entry_for,
    is_address,
    parse_hosts,
    shown,
    why_not_there,
    why_refused,
)
from ralph.sandbox.http_message import BadMessage, body_length, join_head, parse_head, parse_target
from ralph.sandbox.server_name import server_name
from ralph.sandbox.upstream import DIRECT, Upstream, Upstreams

_LONGEST_HEAD = 64 * 1024
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_ADDRESS_SECONDS = 10.0
_MOST_CONNECTIONS = 4000
_BACKLOG = 1024

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Listener(NamedTuple):
    name: str
    hosts: tuple[Host, ...]


class Refused(Exception):
    """Not allowed; the message is the reason."""


class Failed(Exception):
    """Allowed, but the host cannot be reached; the message is the reason."""


class Proxy:
    def __init__(
        self,
        log: DecisionLog,
        *,
        upstreams: Upstreams = DIRECT,
        allow_hosts: Sequence[str] | None = None,
        resolve: Resolve | None = None,
        most: int = _MOST_CONNECTIONS,
    ) -> None:
        self._log = log
        self._upstreams = upstreams
        self._allow_hosts = allow_hosts
        self._resolve = resolve or _resolve
        self._most = most
        self.open = 0

    async def serve(self, listener: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from inside."""
        client = Link(reader, writer)
        writer.transport.set_write_buffer_limits(high=0)  # after `drain`, all is with the kernel
        self.open += 1
        try:
            if self.open > self._most:
                await answer(client, 503, "too many connections at the same time")
            else:
                await self._serve(listener, client)
        except (OSError, EOFError, TimeoutError, RuntimeError):
            pass  # the client is gone, or too slow
        finally:
            self.open -= 1
            writer.transport.abort()

    async def _serve(self, listener: Listener, client: Link) -> None:
        try:
            data = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            head = parse_head(data)
            target = parse_target(head)
            length = body_length(head)
        except asyncio.LimitOverrunError:
            return await answer(client, 431, f"the request's header is longer than {_LONGEST_HEAD} bytes")
        except BadMessage as error:
            return await answer(client, 400, str(error))
        method, name = head.start[0], canonical(target.host)
        is_tunnel = method == "CONNECT"
        try:
            if reason := why_refused(name, target.port, listener.hosts):
                raise Refused(reason)
            upstream = None if name == LOOPBACK else self._upstreams.for_host(name, target.port, is_tunnel=is_tunnel)
            async with asyncio.timeout(_CONNECT_SECONDS):
                server = await self._connect(listener, name, target.port, upstream, is_tunnel)
        except Refused as error:
            self._log.decide(listener.name, method, name, target.port, refused=str(error))
            return await answer(client, 403, self._refusal(name, target.port, str(error)))
        except (Failed, TimeoutError) as error:
            reason = str(error) or "it does not answer"
            self._log.decide(listener.name, method, name, target.port, failed=reason)
            return await answer(client, 502, f"cannot connect to {shown(name, target.port)}: {reason}")
        key = self._log.decide(listener.name, method, name, target.port)
        exchange = Exchange(client, server)
        try:
            if is_tunnel:
                await self._tunnel(listener, name, target.port, exchange)
            else:
                await request(exchange, head, target, length, upstream)
        finally:
            server.writer.transport.abort()
            self._log.end(key, exchange.up, exchange.down)
        return None

    async def _connect(
        self, listener: Listener, name: str, port: int, upstream: Upstream | None, is_tunnel: bool
    ) -> Link:
        """Raises Refused, Failed."""
        if upstream is not None:
            link = await _open((upstream.host,), upstream.port, tls=upstream.is_tls)
            if is_tunnel:
                try:
                    await _through(link, upstream, shown(name, port))
                except BaseException:
                    link.writer.transport.abort()
                    raise
            return link
        if name == LOOPBACK:
            return await _open(("127.0.0.1", "::1"), port)
        addresses = [name] if is_address(name) else await self._resolve(name, port)
        if not addresses:
            raise Failed("the name is not known")
        if reason := why_not_there(name, port, addresses, listener.hosts):
            raise Refused(reason)
        return await _open(addresses, port)

    async def _tunnel(self, listener: Listener, name: str, port: int, exchange: Exchange) -> None:
        exchange.client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await exchange.client.writer.drain()

        def check(data: bytes) -> bool:
            asked = canonical(server_name(data))
            if not asked or asked == name or not why_refused(asked, port, listener.hosts):
                return True
            self._log.decide(listener.name, "TLS", asked, port, refused=f"asked for in a tunnel to {name}")
            return False

        is_checked = name != LOOPBACK and not is_address(name)
        await exchange.run(exchange.send_all(check if is_checked else None), exchange.receive_all())

    def _refusal(self, name: str, port: int, reason: str) -> str:
        text = f"Ralph's sandbox does not allow {shown(name, port)}: {reason}."
        if self._allow_hosts is None:
            return f"{text} To allow it, add {entry_for(name, port, reason)} to sandbox.allow_hosts."
        return f"{text} To allow it, run outside the sandbox: {command_to_allow(name, port, reason, self._allow_hosts)}"


async def _open(addresses: Sequence[str], port: int, *, tls: bool = False) -> Link:
    """A connection to the first address that accepts one. Raises Failed."""
    reason = ""
    for address in addresses:
        try:
            async with asyncio.timeout(_ADDRESS_SECONDS):
                link = Link(*await asyncio.open_connection(address, port, limit=_LONGEST_HEAD, ssl=tls or None))
        except TimeoutError:
            reason = "it does not answer"
        except ssl.SSLError:
            reason = "its TLS certificate is not accepted"
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else "no connection"
        else:
            link.writer.transport.set_write_buffer_limits(high=0)
            return link
    raise Failed(reason)


async def _through(link: Link, upstream: Upstream, place: str) -> None:
    """Have the user's own proxy connect to a place. Raises Failed."""
    link.writer.write(join_head(("CONNECT", place, "HTTP/1.1"), [("Host", place), *upstream.fields()]))
    await link.writer.drain()
    try:
        head = parse_head(await link.reader.readuntil(b"\r\n\r\n"))
    except (BadMessage, EOFError, asyncio.LimitOverrunError):
        raise Failed(f"the proxy {shown(upstream.host, upstream.port)} gave no answer") from None
    if not head.start[1].startswith("2"):
        answer = " ".join(head.start[1:])[:100]
        raise Failed(f"the proxy {shown(upstream.host, upstream.port)} answered {answer}")


async def _resolve(name: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    try:
        answers = await loop.getaddrinfo(name.encode("ascii"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


async def run(spec: dict[str, Any]) -> None:
    descriptor = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    log = DecisionLog(descriptor)
    most = min(_MOST_CONNECTIONS, (os.sysconf("SC_OPEN_MAX") - 64) // 2)
    upstreams = Upstreams.of(spec.get("proxies", {}))
    proxy = Proxy(log, upstreams=upstreams, allow_hosts=spec.get("allow_hosts"), most=most)
    for one in spec["sockets"]:
        listener = Listener(one["name"], parse_hosts(one["hosts"]))
        server = socket.socket(fileno=one["fd"])
        await asyncio.start_unix_server(_server(proxy, listener), sock=server, limit=_LONGEST_HEAD, backlog=_BACKLOG)
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, CHUNK) else over.set())
    os.write(1, b"ready\n")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)  # nobody reads it any more
    await over.wait()
    log.close()
    for path in spec.get("remove", ()):
        with contextlib.suppress(OSError):
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)  # noqa: PTH106, PTH108, PTH112


def _server(
    proxy: Proxy, listener: Listener
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    return lambda reader, writer: proxy.serve(listener, reader, writer)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    spec = b""
    while not spec.endswith(b"\n") and (data := os.read(0, CHUNK)):
        spec += data
    try:
        asyncio.run(run(json.loads(spec)))
    except Exception as error:  # noqa: BLE001 - the one who started it reads the last line
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(0)  # a thread may still wait for a name server


if __name__ == "__main__":
    main()
