"""A webhook on loopback: it keeps what it is sent, and answers as it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "T0P-S3CRET-T0KEN"


class Hook(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, status: int, hangs: bool, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.status = status
        self.patience = threading.Event()
        if not hangs:
            self.patience.set()
        self.first: list[tuple[int, dict[str, str]]] = []
        """Statuses and headers of the first answers; `status` follows."""
        self.times: list[float] = []
        self.got: list[dict[str, Any]] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/services/{SECRET}?key={SECRET}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        hook = self.server
        assert isinstance(hook, Hook)
        hook.paths.append(self.path)
        hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        hook.times.append(time.monotonic())
        hook.patience.wait(60)
        status, headers = hook.first.pop(0) if hook.first else (hook.status, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if hook.status in (301, 302, 307):
            self.send_header("Location", hook.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def webhook(status: int = 200, *, hangs: bool = False) -> Iterator[Hook]:
    with Hook(status, hangs) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.patience.set()
            server.shutdown()
            thread.join()
