"""The proxy: what it lets through, what it refuses, and that nothing is left of any connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ralph
from ralph.sandbox import exchange, proxy
from ralph.sandbox.decision_log import DecisionLog
from ralph.sandbox.decisions import read_decisions, summary
from ralph.sandbox.hosts import parse_hosts
from ralph.sandbox.http_message import BadMessage, parse_head
from ralph.sandbox.network import Network
from ralph.sandbox.proxy import Listener, Proxy
from ralph.sandbox.server_name import Incomplete, server_name
from ralph.sandbox.upstream import DIRECT, Upstreams
from support.networks import (
    Recorder,
    ask,
    client_hello,
    dial,
    echo,
    echo_at_end,
    open_files,
    read_all,
    read_exactly,
    read_head,
    serving,
    tunnel,
    until,
)

ENV = {"PATH": os.defpath}


@contextlib.contextmanager
def network(tmp_path: Path, *hosts: str, env: dict[str, str] | None = None) -> Iterator[tuple[Network, Path]]:
    with Network(tmp_path, tmp_path / "log", {"agent": hosts}, {**ENV, **(env or {})}) as opened:
        yield opened, opened.socket("agent")


class InProcess:
    """A proxy in a thread, with a name server of the test's own."""

    def __init__(
        self, path: Path, hosts: Sequence[str], names: dict[str, list[list[str]]], upstreams: Upstreams
    ) -> None:
        self.path = path / "p"
        self.log = path / "log"
        self.asked: list[str] = []
        self._names = names
        self._loop = asyncio.new_event_loop()
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.proxy = Proxy(DecisionLog(descriptor), resolve=self._resolve, upstreams=upstreams, allow_hosts=["pypi"])
        listener = Listener("agent", parse_hosts(hosts))
        server = asyncio.start_unix_server(
            lambda reader, writer: self.proxy.serve(listener, reader, writer), str(self.path), limit=65536
        )
        self._server = self._loop.run_until_complete(server)
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    async def _resolve(self, name: str, port: int) -> list[str]:
        self.asked.append(name)
        answers = self._names.get(name, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def tasks(self) -> int:
        return len(asyncio.all_tasks(self._loop))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        assert until(lambda: self.tasks() == 0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextlib.contextmanager
def in_process(
    tmp_path: Path, *hosts: str, names: dict[str, list[list[str]]], upstreams: Upstreams = DIRECT
) -> Iterator[InProcess]:
    folder = Path(os.environ["HOME"])
    running = InProcess(folder if len(str(folder)) < 90 else tmp_path, hosts, names, upstreams)
    try:
        yield running
    finally:
        running.close()


def logged(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_tunnel_carries_bytes_both_ways_and_counts_them(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    with serving(echo) as server, network(tmp_path, f"localhost:{server.port}") as (_, path):
        with tunnel(path, f"localhost:{server.port}") as stream:
            sender = threading.Thread(target=stream.sendall, args=(data,))
            sender.start()
            assert read_exactly(stream, len(data)) == data
            sender.join()
        assert until(lambda: len(logged(tmp_path / "log")) == 2)
    decision, end = logged(tmp_path / "log")
    assert decision["method"] == "CONNECT"
    assert (decision["name"], decision["host"], decision["port"]) == ("agent", "localhost", server.port)
    assert "refused" not in decision
    assert (end["up"], end["down"]) == (len(data), len(data))


def test_one_side_may_finish_before_the_other(tmp_path: Path) -> None:
    with (
        serving(echo_at_end) as server,
        network(tmp_path, f"127.0.0.1:{server.port}") as (_, path),
        tunnel(path, f"127.0.0.1:{server.port}") as stream,
    ):
        stream.sendall(b"x" * 1000)
        stream.shutdown(socket.SHUT_WR)
        assert read_all(stream) == b"got 1000"


def test_a_server_that_speaks_first_is_heard(tmp_path: Path) -> None:
    with (
        serving(lambda s: s.sendall(b"220 ready\r\n")) as server,
        network(tmp_path, f"localhost:{server.port}") as (_, path),
        tunnel(path, f"localhost:{server.port}") as stream,
    ):
        assert read_all(stream) == b"220 ready\r\n"


@pytest.mark.parametrize(
    ("request_line", "reason"),
    [
        ("CONNECT example.org:443", "example.org:443: the host is not on the list"),
        ("GET http://example.org/", "example.org:80: the host is not on the list"),
        ("CONNECT 10.0.0.5:443", "10.0.0.5:443: an address instead of a host name"),
        ("CONNECT [::ffff:127.0.0.1]:443", "[::ffff:7f00:1]:443: an address"),
        ("CONNECT 2130706433:443", "2130706433:443: an address instead of a host name"),
        ("GET http://169.254.169.254/latest/meta-data", "169.254.169.254:80: an address"),
        ("CONNECT pypi.org:22", "pypi.org:22: port 22 is not on the list"),
    ],
)
def test_what_is_not_on_the_list_is_refused_in_plain_english(tmp_path: Path, request_line: str, reason: str) -> None:
    with network(tmp_path, "pypi") as (_, path):
        answer = ask(path, f"{request_line} HTTP/1.1\r\n\r\n".encode()).decode()
    assert answer.startswith("HTTP/1.1 403 Forbidden\r\n")
    assert f"Ralph's sandbox does not allow {reason}" in answer
    assert "To allow it, add " in answer
    (decision,) = read_decisions(tmp_path / "log")
    assert decision.why
    assert decision.method == request_line.split()[0]


def test_a_refusal_tells_the_command_that_allows_it(tmp_path: Path) -> None:
    lists = {"agent": ["pypi", "api.example.test"]}
    with Network(tmp_path, tmp_path / "log", lists, ENV, allow_hosts=["pypi"]) as opened:
        answer = ask(opened.socket("agent"), b"CONNECT example.org:8443 HTTP/1.1\r\n\r\n")
    assert b"run outside the sandbox: ralph config set sandbox.allow_hosts pypi,example.org:8443\n" in answer


def test_each_socket_has_its_own_list(tmp_path: Path) -> None:
    with serving(echo) as server:
        lists = {"agent": [f"localhost:{server.port}"], "checks": []}
        with Network(tmp_path, tmp_path / "log", lists, ENV) as opened:
            request = f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode()
            assert ask(opened.socket("checks"), request).startswith(b"HTTP/1.1 403")
            tunnel(opened.socket("agent"), f"localhost:{server.port}").close()
            assert [one.name for one in opened.refused()] == ["checks"]


def test_a_second_request_on_a_connection_goes_nowhere(tmp_path: Path) -> None:
    recorder = Recorder()
    with serving(recorder) as server, network(tmp_path, f"localhost:{server.port}") as (_, path):
        first = f"POST http://localhost:{server.port}/a?b HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 3\r\n\r\nabc"
        second = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
        with dial(path) as stream:
            stream.sendall((first + second).encode())
            head = read_head(stream)
            assert b"connection: close" in head.lower()
            assert stream.recv(5) == b"hello"
            stream.sendall(second.encode())
        assert until(lambda: recorder.received[0].endswith(b"abc"))
    received = bytes(recorder.received[0])
    assert received.startswith(b"POST /a?b HTTP/1.1\r\nHost: localhost:%d\r\n" % server.port)
    assert received.endswith(b"\r\n\r\nabc")
    assert b"Connection: close\r\n" in received
    assert b"evil" not in received
    assert len(recorder.received) == 1


def test_fields_for_the_proxy_stay_here(tmp_path: Path) -> None:
    recorder = Recorder(b"HTTP/1.1 200 OK\r\nKeep-Alive: x\r\nContent-Length: 0\r\n\r\n")
    fields = "Proxy-Authorization: secret\r\nConnection: keep-alive, X-Hop, Content-Length\r\nX-Hop: 1\r\nX-Kept: 2\r\n"
    with serving(recorder) as server, network(tmp_path, f"localhost:{server.port}") as (_, path), dial(path) as stream:
        request = f"GET http://user@localhost:{server.port} HTTP/1.1\r\n{fields}Content-Length: 2\r\n\r\nhi"
        stream.sendall(request.encode())
        assert b"Keep-Alive" not in read_head(stream)
        assert until(lambda: recorder.received[0].endswith(b"hi"))
    assert bytes(recorder.received[0]).split(b"\r\n") == [
        b"GET / HTTP/1.1",
        b"Host: localhost:%d" % server.port,
        b"X-Kept: 2",
        b"Content-Length: 2",
        b"Connection: close",
        b"",
        b"hi",
    ]


def test_a_chunked_body_arrives_and_ends(tmp_path: Path) -> None:
    recorder = Recorder()
    with serving(recorder) as server, network(tmp_path, f"localhost:{server.port}") as (_, path), dial(path) as stream:
        stream.sendall(
            f"POST http://localhost:{server.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            f"5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode()
        )
        read_head(stream)
        assert until(lambda: recorder.received[0].endswith(b"0\r\n\r\n"))
    body = bytes(recorder.received[0]).partition(b"\r\n\r\n")[2]
    assert body == b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: +3",
        "Content-Length: 3, 3",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "X: 1\r\n continued",
        "X: a\nContent-Length: 3",
        "no colon",
        "X: a\0b",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, fields: str) -> None:
    recorder = Recorder()
    with serving(recorder) as server, network(tmp_path, f"localhost:{server.port}") as (_, path):
        request = f"POST http://localhost:{server.port}/ HTTP/1.1\r\n{fields}\r\n\r\nabc"
        assert ask(path, request.encode()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert recorder.received == []


@pytest.mark.parametrize("chunk", ["x\r\n", "-1\r\n", "5\r\nhelloXX", "\r\n", "0x5\r\nhello\r\n", "5\n\r\nhello\r\n"])
def test_a_malformed_chunk_ends_the_request(tmp_path: Path, chunk: str) -> None:
    with (
        serving(read_all) as server,
        network(tmp_path, f"localhost:{server.port}") as (_, path),
    ):
        head = f"POST http://localhost:{server.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert ask(path, (head + chunk).encode()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "line",
    [
        "GET / HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "CONNECT example.org HTTP/1.1",
        "CONNECT example.org:99999 HTTP/1.1",
        "CONNECT example.org:443/x HTTP/1.1",
        "CONNECT a@example.org:443 HTTP/1.1",
        "GET http://a:b:c/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://example.org/ HTTP/2.0",
        "G(T http://example.org/ HTTP/1.1",
        "hello",
        "\x16\x03\x01",
    ],
)
def test_what_is_no_request_to_a_proxy_gets_400(tmp_path: Path, line: str) -> None:
    with network(tmp_path, "example.org", "example.org:80") as (_, path):
        assert ask(path, f"{line}\r\n\r\n".encode("latin-1")).startswith(b"HTTP/1.1 400 ")


def test_the_client_waits_for_100_continue(tmp_path: Path) -> None:
    def serve(stream: socket.socket) -> None:
        read_head(stream)
        stream.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_exactly(stream, 4)
        stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + body)

    with serving(serve) as server, network(tmp_path, f"localhost:{server.port}") as (_, path), dial(path) as stream:
        head = f"PUT http://localhost:{server.port}/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
        stream.sendall(head.encode())
        assert read_head(stream) == b"HTTP/1.1 100 Continue\r\n\r\n"
        stream.sendall(b"body")
        assert read_all(stream).endswith(b"\r\n\r\nbody")


def test_a_long_body_does_not_destroy_a_refusal(tmp_path: Path) -> None:
    with network(tmp_path, "pypi") as (_, path), dial(path) as stream:
        stream.sendall(b"POST http://evil.test/ HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
        with contextlib.suppress(OSError):
            stream.sendall(b"x" * 1_000_000)
        assert read_all(stream).startswith(b"HTTP/1.1 403 ")


def test_a_head_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with network(tmp_path, "pypi") as (_, path), dial(path) as stream:
        with contextlib.suppress(OSError):
            stream.sendall(b"GET http://pypi.org/ HTTP/1.1\r\nX: " + b"x" * 200_000)
        assert read_all(stream).startswith(b"HTTP/1.1 431 ")


def test_a_server_that_is_not_there_is_no_refusal(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with network(tmp_path, f"localhost:{port}") as (opened, path):
        answer = ask(path, f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"cannot connect to localhost:%d: connection refused" % port in answer
        assert opened.refused() == ()
    (decision,) = read_decisions(tmp_path / "log")
    assert (decision.why, decision.failed) == ("", "connection refused")


def test_a_server_that_closes_without_an_answer_is_said(tmp_path: Path) -> None:
    with (
        serving(read_head) as server,
        network(tmp_path, f"localhost:{server.port}") as (_, path),
    ):
        answer = ask(path, f"GET http://localhost:{server.port}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"closed the connection without an answer" in answer


def test_nothing_is_left_of_connections(tmp_path: Path) -> None:
    """Clients and servers that leave at any moment, hundreds of them at the same time."""
    with serving(echo) as server, network(tmp_path, f"localhost:{server.port}") as (opened, path):
        place = f"localhost:{server.port}"
        tunnel(path, place).close()
        assert until(lambda: read_decisions(tmp_path / "log")[-1:][0].method == "")
        before = open_files(opened.pid)
        idle = [dial(path) for _ in range(100)]
        halves = [dial(path) for _ in range(100)]
        for stream in halves:
            stream.sendall(b"CONNECT local")
        tunnels = [tunnel(path, place) for _ in range(300)]
        for number, stream in enumerate(tunnels):
            stream.sendall(b"x" * number * 100)
        assert open_files(opened.pid) >= before + 800
        server.drop_all()
        for stream in (*idle, *halves, *tunnels):
            stream.close()
        assert until(lambda: open_files(opened.pid) == before)
        with tunnel(path, place) as stream:
            stream.sendall(b"still here")
            assert read_exactly(stream, 10) == b"still here"


def test_a_client_that_is_too_slow_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_HEAD_SECONDS", 0.2)
    with in_process(tmp_path, "pypi", names={}) as running:
        with dial(running.path) as stream:
            stream.sendall(b"GET http://pypi")
            assert read_all(stream) == b""
        assert until(lambda: running.tasks() == 0)


def test_a_half_closed_tunnel_that_is_silent_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_HALF_CLOSED_SECONDS", 0.2)
    over = threading.Event()
    with (
        serving(lambda stream: over.wait(60)) as server,
        in_process(tmp_path, f"localhost:{server.port}", names={}) as running,
        tunnel(running.path, f"localhost:{server.port}") as stream,
    ):
        stream.shutdown(socket.SHUT_WR)
        assert read_all(stream) == b""
        assert not over.is_set()
        assert until(lambda: running.tasks() == 0)
        over.set()


def test_more_connections_than_there_is_room_for_are_told(tmp_path: Path) -> None:
    with in_process(tmp_path, "pypi", names={}) as running:
        running.proxy._most = 2
        first = [dial(running.path) for _ in range(2)]
        assert until(lambda: running.proxy.open == 2)
        assert ask(running.path, b"").startswith(b"HTTP/1.1 503 ")
        for stream in first:
            stream.close()


def test_a_name_is_resolved_once_and_all_its_addresses_are_tried(tmp_path: Path) -> None:
    with serving(echo) as server:
        place = f"svc.test:{server.port}"
        names = {"svc.test": [["127.0.0.9", "127.0.0.1"], ["169.254.169.254"]]}
        with in_process(tmp_path, place, names=names) as running:
            with tunnel(running.path, place) as stream:
                stream.sendall(b"hi")
                assert read_exactly(stream, 2) == b"hi"
            assert running.asked == ["svc.test"]


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["8.8.8.8", "10.0.0.5"], ["::ffff:169.254.169.254"]])
@pytest.mark.parametrize("entry", ["example.org", "*.org.test", "pypi"])
def test_a_name_that_leads_to_a_private_address_is_refused(tmp_path: Path, entry: str, answers: list[str]) -> None:
    name = {"example.org": "example.org", "*.org.test": "a.org.test", "pypi": "pypi.org"}[entry]
    with in_process(tmp_path, entry, names={name: [answers]}) as running:
        answer = ask(running.path, f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert f"its name leads to the private address {answers[-1]}".encode() in answer
        (decision,) = read_decisions(running.log)
        assert "private" in decision.why


def test_a_name_that_is_not_known_is_no_refusal(tmp_path: Path) -> None:
    with in_process(tmp_path, "example.org", names={}) as running:
        assert b"the name is not known" in ask(running.path, b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        assert read_decisions(running.log)[0].why == ""


def test_no_name_server_is_asked_about_a_host_that_is_not_on_the_list(tmp_path: Path) -> None:
    with in_process(tmp_path, "example.org", names={}) as running:
        ask(running.path, b"CONNECT secret.evil.test:443 HTTP/1.1\r\n\r\n")
        assert running.asked == []


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
def test_a_tunnel_is_for_the_host_it_was_opened_for(tmp_path: Path, pieces: int) -> None:
    with serving(echo) as server:
        hosts = [f"a.test:{server.port}", f"b.test:{server.port}"]
        names = {"a.test": [["127.0.0.1"]], "b.test": [["127.0.0.1"]]}
        with in_process(tmp_path, *hosts, names=names) as running:
            for name in ("a.test", "b.test"):
                hello = client_hello(name)
                with tunnel(running.path, hosts[0]) as stream:
                    for at in range(0, len(hello), pieces):
                        stream.sendall(hello[at : at + pieces])
                    assert read_exactly(stream, len(hello)) == hello
            with tunnel(running.path, hosts[0]) as stream:
                hello = client_hello("evil.test")
                with contextlib.suppress(OSError):
                    for at in range(0, len(hello), pieces):
                        stream.sendall(hello[at : at + pieces])
                assert read_all(stream) == b"\x15\x03\x01\x00\x02\x02\x70"
            (refused,) = [one for one in read_decisions(running.log) if one.why]
            assert (refused.method, refused.host, refused.why) == (
                "TLS",
                "evil.test",
                "asked for in a tunnel to a.test",
            )


def test_a_service_on_loopback_may_have_any_tls_name(tmp_path: Path) -> None:
    hello = client_hello("any.test")
    with (
        serving(echo) as server,
        network(tmp_path, f"localhost:{server.port}") as (_, path),
        tunnel(path, f"localhost:{server.port}") as stream,
    ):
        stream.sendall(hello)
        assert read_exactly(stream, len(hello)) == hello


def test_the_name_in_a_client_hello_is_read() -> None:
    hello = client_hello("example.org")
    assert server_name(hello) == "example.org"
    for length in range(1, len(hello)):
        with pytest.raises(Incomplete):
            server_name(hello[:length])
    split = b"".join(b"\x16\x03\x01\x00\x01" + bytes((byte,)) for byte in hello[5:])
    assert server_name(split) == "example.org"
    assert server_name(b"SSH-2.0-OpenSSH") == ""


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_of_names_fail(data: bytes) -> None:
    for start in (b"", b"\x16", b"\x16\x03\x01\x00\x20\x01\x00\x00\x1c"):
        with contextlib.suppress(Incomplete):
            server_name(start + data)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_of_heads_fail(data: bytes) -> None:
    with contextlib.suppress(BadMessage):
        head = parse_head(data + b"\r\n\r\n")
        assert all("\n" not in value and "\r" not in value for _, value in head.fields)


class Company:
    """A proxy like that of a company: it records requests, and echoes what comes through tunnels."""

    def __init__(self) -> None:
        self.heads: list[str] = []

    def __call__(self, stream: socket.socket) -> None:
        head = read_head(stream).decode()
        self.heads.append(head)
        if "denied" in head:
            stream.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        elif head.startswith("CONNECT"):
            stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            echo(stream)
        else:
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_the_users_own_proxy_is_used(tmp_path: Path) -> None:
    with serving(echo) as direct:
        company = Company()
        with serving(company) as server:
            url = f"http://ann:p%40ss@127.0.0.1:{server.port}"
            env = {"HTTPS_PROXY": url, "http_proxy": url, "NO_PROXY": ".corp.test, other.test"}
            hosts = ["far.test", "far.test:80", "denied.test", f"localhost:{direct.port}", "in.corp.test"]
            with network(tmp_path, *hosts, env=env) as (_, path):
                with tunnel(path, "far.test:443") as stream:
                    stream.sendall(b"hello")
                    assert read_exactly(stream, 5) == b"hello"
                assert ask(path, b"GET http://far.test/x HTTP/1.1\r\n\r\n").endswith(b"ok")
                tunnel(path, f"localhost:{direct.port}").close()
                denied = ask(path, b"CONNECT denied.test:443 HTTP/1.1\r\n\r\n")
                assert b"the proxy 127.0.0.1:%d answered 407 Proxy Authentication Required" % server.port in denied
                assert ask(path, b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")
                assert ask(path, b"CONNECT in.corp.test:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502 ")
    login = "Proxy-Authorization: Basic YW5uOnBAc3M="
    assert [head.split("\r\n")[0] for head in company.heads] == [
        "CONNECT far.test:443 HTTP/1.1",
        "GET http://far.test/x HTTP/1.1",
        "CONNECT denied.test:443 HTTP/1.1",
    ]
    assert all(login in head for head in company.heads)


@pytest.mark.needs("openssl")
def test_the_users_own_proxy_may_speak_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=proxy"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    company = Company()

    def serve(stream: socket.socket) -> None:
        with context.wrap_socket(stream, server_side=True) as secured:
            company(secured)

    request = b"GET http://far.test/x HTTP/1.1\r\n\r\n"
    with serving(serve) as server:
        env = {"HTTP_PROXY": f"https://127.0.0.1:{server.port}"}
        with network(tmp_path, "far.test:80", env={**env, "SSL_CERT_FILE": str(certificate)}) as (_, path):
            assert ask(path, request).endswith(b"ok")
        with network(tmp_path, "far.test:80", env=env) as (_, path):
            assert b"its TLS certificate is not accepted" in ask(path, request)
    assert company.heads[0].startswith("GET http://far.test/x HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("no_proxy", "name", "is_direct"),
    [
        ("*", "a.test", True),
        ("a.test", "a.test", True),
        ("a.test", "b.a.test", True),
        (".a.test", "b.a.test", True),
        ("*.a.test", "b.a.test", True),
        ("a.test", "ba.test", False),
        ("a.test:443", "a.test", True),
        ("a.test:80", "a.test", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("", "a.test", False),
    ],
)
def test_no_proxy_is_honoured(no_proxy: str, name: str, is_direct: bool) -> None:
    upstreams = Upstreams.of({"ALL_PROXY": "proxy.test:3128", "NO_PROXY": no_proxy})
    assert (upstreams.for_host(name, 443, is_tunnel=True) is None) is is_direct


def test_a_socks_proxy_is_left_out() -> None:
    assert Upstreams.of({"ALL_PROXY": "socks5://127.0.0.1:1080"}) == DIRECT


def test_a_flood_does_not_hide_another_host(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    log = DecisionLog(descriptor)
    for _ in range(50_000):
        log.end(log.decide("agent", "GET", "flood.test", 80), 1, 2)
        log.decide("agent", "GET", "flood.test", 443, refused="no")
    log.decide("agent", "CONNECT", "late.test", 443, refused="no")
    log.close()
    assert path.stat().st_size < 20_000
    counts = {(one.host, one.why): (one.count, one.up, one.down) for one in summary(read_decisions(path))}
    assert counts == {
        ("flood.test", ""): (50_000, 50_000, 100_000),
        ("flood.test", "no"): (50_000, 0, 0),
        ("late.test", "no"): (1, 0, 0),
    }
    os.close(descriptor)


def test_a_host_with_many_ports_and_methods_does_not_hide_another(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    log = DecisionLog(descriptor)
    for port in range(1, 10_000):
        log.decide("agent", f"M{port}", "flood.test", port, refused=f"port {port} is not on the list")
    log.decide("agent", "CONNECT", "late.test", 443, refused="no")
    log.close()
    os.close(descriptor)
    assert path.stat().st_size < 20_000
    groups = summary(read_decisions(path))
    assert sum(group.count for group in groups if group.host == "flood.test") == 9_999
    assert [group.count for group in groups if group.host == "late.test"] == [1]


def test_the_log_is_bounded_whatever_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    log = DecisionLog(descriptor)
    for number in range(20_000):
        log.decide("agent", "CONNECT", f"{number}{'x' * 300}", 443, refused="the host is not on the list")
    log.decide("agent", "CONNECT", "allowed.test", 443)
    log.close()
    assert path.stat().st_size < 1_500_000
    groups = summary(read_decisions(path))
    assert sum(group.count for group in groups) == 20_001
    assert groups[0].host == "…"
    assert "allowed.test" in {group.host for group in groups}
    os.close(descriptor)


def test_the_proxy_starts_without_the_rest_of_ralph() -> None:
    root = str(Path(ralph.__file__).parent.parent)
    code = "import sys; sys.path.append(sys.argv[1]); import ralph.sandbox.proxy; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith(("ralph.", "msgspec"))}
    assert {name for name in loaded if not name.startswith("ralph.sandbox")} <= {
        "ralph.core",
        "ralph.core.lazy_pattern",
    }
