"""Where `ralph serve` listens, what it says, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.core.exit_codes import ExitCode
from support.cli import ralph
from support.hostile_runs import tell, tell_hostile
from support.terminals import Terminal
from support.told_runs import RUN
from support.web_server import Served, served


def test_the_second_server_takes_the_next_port(tmp_path: Path) -> None:
    with served(tmp_path / "state", "--port", "0") as first:
        taken = first.port
        done = ralph("serve", "--port", str(taken), cwd=tmp_path)
        assert done.code == ExitCode.ENVIRONMENT
        assert f"cannot listen on 127.0.0.1 port {taken}" in done.err
        assert "--port N" in done.err
    first, second = Served(tmp_path / "state", port=None), Served(tmp_path / "state", port=None)
    try:
        assert first.port < second.port < 8770
        assert first.log_in().partition("=")[0] != second.log_in().partition("=")[0], "browsers mix up their cookies"
        assert second.ask("/api/home", token=first.token).status == 401
    finally:
        assert [each.end()[:2] for each in (first, second)] == [(0, "")] * 2


def test_other_machines_reach_it_only_if_they_may(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "", "192.0.2.1", "example.org"):
        done = ralph("serve", "--host", host, cwd=tmp_path)
        assert (done.code, done.out) == (ExitCode.USAGE, "")
        assert "is not this machine alone" in done.err
        assert "--allow-remote" in done.err
    done = ralph("serve", "--allow-host", "ralph.example.com", cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert "add --allow-remote" in done.err


@pytest.mark.parametrize("name", ["https://ralph.example.com", "*.example.com", "a b", ""])
def test_a_name_to_allow_is_a_name(tmp_path: Path, name: str) -> None:
    done = ralph("serve", "--allow-remote", "--allow-host", name, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert "is not a host name" in done.err
    assert "NAME:PORT" in done.err


@pytest.mark.parametrize("option", [["--port", "x"], ["--port", "70000"], ["--token-file", "/nowhere/token"]])
def test_an_option_that_cannot_be_is_refused(tmp_path: Path, option: list[str]) -> None:
    done = ralph("serve", *option, cwd=tmp_path)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert option[1] in done.err


def test_a_server_for_others_knows_its_own_addresses(tmp_path: Path) -> None:
    tell(tmp_path / "state")
    others = {"X_Forwarded_Proto": "https", "Origin": "https://ralph.example.com"}
    with served(
        tmp_path / "state", "--host", "0.0.0.0", "--allow-remote", "--allow-host", "Ralph.example.com"
    ) as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert server.ask("/api/home").status == 200
        assert server.ask("/api/home", host="ralph.example.com").status == 200
        assert server.ask("/api/home", host="evil.example.com").status == 421
        assert server.ask("/api/home", host=f"192.0.2.1:{server.port}").status == 421, (
            "not the address that was reached"
        )
        answer = server.ask(f"/?token={server.token}", token="", host="ralph.example.com", X_Forwarded_Proto="https")
        assert "Secure" in answer.headers["set-cookie"]
        cookie = answer.headers["set-cookie"].partition(";")[0]
        act = {"verb": "note", "text": "x"}
        through_tls = server.ask(
            f"/api/runs/{RUN}/acts",
            "POST",
            body=b'{"verb": "note", "text": "x"}',
            host="ralph.example.com",
            cookie=cookie,
            Content_Type="application/json",
            **others,
        )
        assert through_tls.status == 400, "it was looked at: the plan of this run is gone"
        assert server.act(RUN, act, cookie=cookie, Origin="http://ralph.example.com").status == 403


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
def test_it_listens_on_ipv6(tmp_path: Path) -> None:
    with served(tmp_path / "state", "--host", "::1") as server:
        assert server.url == f"http://[::1]:{server.port}"
        assert server.ask("/api/home").status == 200
        assert server.ask("/api/home", host=f"[::1]:{server.port}").status == 200
        assert server.ask("/api/home", host="[::1]").status == 421
    with served(tmp_path / "state", "--host", "::", "--allow-remote") as server:
        assert server.url == f"http://[::1]:{server.port}"
        assert server.ask("/api/home").status == 200
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            host = f"127.0.0.1:{server.port}"
            connection.sendall(f"GET /api/home HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert b" 401 " in connection.recv(1000), "reached by its address of the older kind"


def test_another_loopback_address_is_known_by_itself(tmp_path: Path) -> None:
    with served(tmp_path / "state", "--host", "127.0.0.2") as server:
        assert server.ask("/api/home").status == 200


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_at_once_with_streams_open(tmp_path: Path, how: signal.Signals) -> None:
    state, file = tmp_path / "state", tmp_path / "token"
    tell_hostile(state)
    server = Served(state, "--token-file", str(file))
    streams = ["/api/home/stream", f"/api/runs/{RUN}/stream"] * 10
    connections = []
    for path in streams:
        connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=30))
        connections[-1].sendall(server.request(path))
        assert connections[-1].recv(100).startswith(b"HTTP/1.1 200 ")
    code, err, seconds = server.end(how)
    assert (code, err) == (0, "")
    assert seconds < 20, "a stream would keep it for ever"
    assert not file.exists()
    for connection in connections:
        connection.close()


def test_on_a_terminal_it_says_what_to_open_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    class Here:
        root, env = tmp_path, {**os.environ, "RALPH_STATE_HOME": str(tmp_path / "state")}

    terminal = Terminal(Here(), "serve", "--port", "0")
    terminal.until("Ctrl-C ends the server")
    assert "http://127.0.0.1:" in terminal.plain
    assert "/?token=" in terminal.plain
    terminal.press(b"\x03")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.plain


def test_it_ends_while_nobody_reads_what_it_says(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "ralph", "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:"), "a pipe gets the address at once"
    process.terminate()
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == "Open this address in a browser; Ctrl-C ends the server.\n"
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "starlette uvicorn"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, missing: str) -> None:
    code = (
        f"import sys; sys.modules |= dict.fromkeys({missing.split()!r})\n"
        "from ralph.cli.main import main; sys.exit(main(['serve']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert f"`ralph serve` needs {missing.replace(' ', ' and ')}" in done.stderr
    assert "pip install 'ralph-loop-engine[web]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_commands_import_no_web_server(tmp_path: Path) -> None:
    code = "import sys; from ralph.cli.main import main; main(['status']); print({'starlette'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["set()"], done.stderr


def test_help_has_examples(tmp_path: Path) -> None:
    done = ralph("serve", "--help", cwd=tmp_path)
    assert "examples:" in done.out
    for option in ("--port", "--host", "--read-only", "--allow-remote", "--allow-host", "--token-file", "--json"):
        assert option in done.out
