"""The server: its socket, its patience with clients, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from ralph import __version__
from ralph.core.errors import SetupError, UsageError
from ralph.core.events import Record
from ralph.core.review import Ledger
from ralph.host.files import write_bytes
from ralph.host.locks import Owner
from ralph.views.acts import Act
from ralph.web.access import Access, is_loopback
from ralph.web.app import make_app
from ralph.web.feeds import Feeds
from ralph.workspace.stuck_stories import Answers

DEFAULT_PORT = 8750
_TRIED = 20
"""Ports from the default one on."""
_PATIENCE = 10.0
"""Seconds for the head of a request."""
_STALLED = 30.0
"""Seconds after which a client that takes nothing of its answer is given up."""
_MOST_CONNECTIONS = 500
_WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class Wanted(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int | None = None
    """None: the default one, or the next that is free."""
    read_only: bool = False
    allow_remote: bool = False
    names: tuple[str, ...] = ()
    token_file: str = ""


class Serving(Struct, frozen=True, kw_only=True):
    """Where the server is reached."""

    url: str
    token: str
    host: str
    port: int
    read_only: bool

    @property
    def login(self) -> str:
        return f"{self.url}/?token={self.token}"


class _Impatient(H11Protocol):
    """Closes a connection whose client does not say what it wants, or does not take the answer."""

    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.close()
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        elif self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in filter(None, (self._deadline, self._stalled)):
            timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def _watch_progress(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(_STALLED, self._look_again, left)

    def _look_again(self, left: int) -> None:
        if self.transport.get_write_buffer_size() < left:
            self._watch_progress()
        else:
            self.transport.abort()

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_PATIENCE, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def serve(
    wanted: Wanted, env: Mapping[str, str], on_start: Callable[[Serving], object], on_bug: Callable[[], object]
) -> None:
    """Until Ctrl-C or SIGTERM. `on_start` is told the address once the server answers there."""
    _prepare()
    bound = _bind(wanted)
    port = bound.getsockname()[1]
    name = _in_url(_WILDCARDS.get(wanted.host, wanted.host))
    access = Access(
        token=secrets.token_urlsafe(32),
        cookie=secrets.token_urlsafe(32),
        port=port,
        names=(*wanted.names, f"{name}:{port}".lower()),
        is_remote=wanted.allow_remote,
        read_only=wanted.read_only,
    )
    serving = Serving(
        url=f"http://{name}:{port}", token=access.token, host=wanted.host, port=port, read_only=wanted.read_only
    )
    stopping = {"now": False}
    feeds = Feeds(env, read_only=wanted.read_only)
    app = make_app(
        access,
        env,
        feeds,
        version=__version__,
        host=socket.gethostname(),
        is_stopping=lambda: stopping["now"],
        on_bug=on_bug,
    )
    server = _Server(app, stopping)
    token_file = _write_token(wanted.token_file, access.token)
    try:
        with bound, contextlib.closing(feeds):
            asyncio.run(server.run_on(bound, lambda: on_start(serving)))
    finally:
        if token_file is not None:
            token_file.unlink(missing_ok=True)


def _prepare() -> None:
    """msgspec examines a type on its first use, and Python crashes when two threads do that at once."""
    for kind in (Record, Ledger, Answers, Owner, Act):
        msgspec.json.Decoder(kind)


_ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    def __init__(self, app: Any, stopping: dict[str, bool]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Impatient,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=1,
            )
        )
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._stopping["now"] = True
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ctrl-C, SIGTERM and a closed terminal end it in order. Uvicorn would raise them again."""
        before = {each: signal.getsignal(each) for each in _ENDING}
        for each in _ENDING:
            if before[each] is not signal.SIG_IGN:
                signal.signal(each, self.handle_exit)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def run_on(self, bound: socket.socket, on_start: Callable[[], object]) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        serving = asyncio.create_task(self.serve(sockets=[bound]))
        while not self.started and not serving.done():
            await asyncio.sleep(0.01)
        if self.started:
            on_start()
        await serving


def _bind(wanted: Wanted) -> socket.socket:
    if not is_loopback(wanted.host) and not wanted.allow_remote:
        raise UsageError(
            f"{wanted.host} is not this machine alone",
            hint="add --allow-remote if others may reach it; safer is `ssh -L` (see `ralph serve --help`)",
        )
    ports = [wanted.port] if wanted.port is not None else range(DEFAULT_PORT, DEFAULT_PORT + _TRIED)
    trouble: OSError | None = None
    for port in ports:
        try:
            return _listen(wanted.host, port)
        except OSError as error:
            trouble = error
            if error.errno != errno.EADDRINUSE:
                break
    assert trouble is not None
    hint = "another port: --port N, or 0 for any free one"
    raise SetupError(
        f"cannot listen on {wanted.host} port {wanted.port or DEFAULT_PORT}: {trouble.strerror}", hint=hint
    )


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(100)
    except OSError:
        bound.close()
        raise
    return bound


def _write_token(name: str, token: str) -> Path | None:
    if not name:
        return None
    path = Path(os.path.abspath(name))  # noqa: PTH100 - no link is resolved
    try:
        write_bytes(path, token.encode(), mode=0o600)
    except OSError as error:
        raise UsageError(f"cannot write the token to {name}: {error.strerror}", hint="name another file") from None
    return path
