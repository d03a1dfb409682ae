"""`ralph serve` as a process of its own, and a client that can say anything to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Served:
    """`state` is what RALPH_STATE_HOME names. `port`: any free one; None: the one that people get."""

    def __init__(
        self, state: Path, *options: str, port: str | None = "0", env: Mapping[str, str] | None = None
    ) -> None:
        state.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "ralph",
                "serve",
                "--json",
                *(["--port", port] if port else []),
                *options,
            ],
            cwd=state,
            env={**os.environ, "RALPH_STATE_HOME": str(state), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end()[1]
        told = json.loads(line)
        self.url: str = told["url"]
        self.login: str = told["login"]
        self.token: str = told["token"]
        self.port = int(self.url.rpartition(":")[2])
        self.address = self.url.removeprefix("http://").rpartition(":")[0].strip("[]")

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(
        self,
        path: str,
        method: str = "GET",
        *,
        body: bytes | None = None,
        host: str | None = None,
        token: str | None = None,
        cookie: str = "",
        **headers: str,
    ) -> Answer:
        """With the token, unless another one or a cookie is given. `path` is sent as it is."""
        connection = HTTPConnection(self.address, self.port, timeout=30)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in self._headers(host, token, cookie, headers).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def _headers(self, host: str | None, token: str | None, cookie: str, others: Mapping[str, str]) -> dict[str, str]:
        named = {"Host": self.host if host is None else host}
        token = (self.token if not cookie else "") if token is None else token
        if token:
            named["Authorization"] = f"Bearer {token}"
        if cookie:
            named["Cookie"] = cookie
        return named | {name.replace("_", "-"): value for name, value in others.items()}

    def log_in(self) -> str:
        """As a browser does it. The cookie."""
        answer = self.ask(self.login.removeprefix(self.url), token="")
        assert (answer.status, answer.headers["location"]) == (303, "/")
        return answer.headers["set-cookie"].partition(";")[0]

    def act(self, run: str, act: Mapping[str, str], cookie: str = "", **headers: str) -> Answer:
        content = {"Content_Type": "application/json"} | headers
        return self.ask(f"/api/runs/{run}/acts", "POST", body=json.dumps(act).encode(), cookie=cookie, **content)

    @contextlib.contextmanager
    def stream(self, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of a stream, by name."""
        with self.connection(path, b"HTTP/1.0") as connection, connection.makefile("rb") as lines:
            yield _events(lines)

    @contextlib.contextmanager
    def connection(self, path: str, protocol: bytes = b"HTTP/1.1") -> Iterator[socket.socket]:
        """After the request, which may be one that nobody waits for. HTTP/1.0 has an answer without chunks."""
        with socket.create_connection((self.address, self.port), timeout=30) as connection:
            connection.sendall(self.request(path).replace(b"HTTP/1.1", protocol, 1))
            yield connection

    def request(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n\r\n".encode()

    @property
    def memory(self) -> int:
        """In MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, float]:
        """Its exit code, what it said, and the seconds it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            _, err = self.process.communicate(timeout=30)
        finally:
            self.process.kill()
        return self.process.returncode, err.decode(), time.monotonic() - begin


def _events(lines: Any) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith(b"event: "):
            name = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            yield name, json.loads(line[6:])


@contextlib.contextmanager
def served(
    state: Path, *options: str, port: str | None = "0", env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """A server that ends without a word and without a bug."""
    server = Served(state, *options, port=port, env=env)
    try:
        yield server
    finally:
        code, err, _ = server.end()
    assert (code, err) == (0, ""), (code, err)
    assert not list(state.glob("logs/*")), "it ran into a bug"
