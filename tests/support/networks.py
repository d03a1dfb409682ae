"""Servers on loopback for tests of a sandbox's network, and small clients that speak to a proxy on a unix socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Serve = Callable[[socket.socket], object]
PATIENCE = 20.0


class Server:
    """Serves each connection in a thread, and counts the connections."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                self.connections += 1
                self._open.add(stream)
                threading.Thread(target=self._handle, args=(stream,), daemon=True).start()

    def _handle(self, stream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._serve(stream)
        stream.close()
        self._open.discard(stream)

    def drop_all(self) -> None:
        for stream in list(self._open):
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=PATIENCE)
        self.drop_all()


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[Server]:
    server = Server(serve)
    try:
        yield server
    finally:
        server.close()


def echo(stream: socket.socket) -> None:
    while data := stream.recv(65536):
        stream.sendall(data)


def echo_at_end(stream: socket.socket) -> None:
    """Answers only when the client has finished."""
    data = read_all(stream)
    stream.sendall(b"got %d" % len(data))


class Recorder:
    """An HTTP server that keeps all it receives and never closes a connection first, whatever it was asked."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") -> None:
        self.received: list[bytearray] = []
        self._answer = answer

    def __call__(self, stream: socket.socket) -> None:
        mine = bytearray()
        self.received.append(mine)
        is_answered = False
        while data := stream.recv(65536):
            mine += data
            if b"\r\n\r\n" in mine and not is_answered:
                is_answered = True
                stream.sendall(self._answer)


def dial(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(path))
    stream.settimeout(PATIENCE)
    return stream


def ask(path: Path, request: bytes) -> bytes:
    """The whole answer to a request."""
    with dial(path) as stream:
        stream.sendall(request)
        return read_all(stream)


def tunnel(path: Path, place: str) -> socket.socket:
    stream = dial(path)
    stream.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
    head = read_head(stream)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return stream


def read_all(stream: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := stream.recv(65536):
            data += part
    return data


def read_exactly(stream: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length and (part := stream.recv(min(65536, length - len(data)))):
        data += part
    return bytes(data)


def read_head(stream: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n") and (part := stream.recv(1)):
        data += part
    return data


def client_hello(name: str) -> bytes:
    """The first message of a real TLS client that asks for a host."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def until(condition: Callable[[], bool]) -> bool:
    """Whether it becomes true before patience ends."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
