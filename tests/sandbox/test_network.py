"""The network of a run: it lives and dies with the run, survives its proxy, and real clients get through it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ralph.core.errors import ConfigError, SetupError
from ralph.sandbox import network as module
from ralph.sandbox import relay
from ralph.sandbox.decisions import Decision, allow_line, read_decisions, summary
from ralph.sandbox.network import Network
from support.networks import ask, dial, echo, read_exactly, read_head, serving, tunnel, until

ENV = {"PATH": os.defpath}
REFUSED = b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_sockets_are_private_and_go_with_the_network(tmp_path: Path) -> None:
    with Network(tmp_path, tmp_path / "log", {"agent": ["pypi"], "checks": []}, ENV) as network:
        path = network.socket("agent")
        assert path != network.socket("checks")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert network.is_alive
        pid = network.pid
    assert not path.parent.exists()
    assert not is_running(pid)
    assert not network.is_alive


def test_a_long_path_gets_a_short_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    runtime = tmp_path / "run"
    runtime.mkdir()
    short = len(str(runtime)) < 100 - len("/ralph-12345678/12")
    with Network(folder, tmp_path / "log", {"agent": []}, {**ENV, "XDG_RUNTIME_DIR": str(runtime)}) as network:
        path = network.socket("agent")
        assert len(str(path)) < 104
        assert (path.parent.parent == runtime) is short
        assert ask(path, REFUSED).startswith(b"HTTP/1.1 403 ")
    assert not path.parent.exists()


def test_a_bad_list_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Network(tmp_path, tmp_path / "log", {"agent": ["https://x"]}, ENV)
    assert list(tmp_path.iterdir()) == []


def test_a_proxy_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    network = Network(tmp_path, tmp_path / "missing" / "log", {"agent": []}, ENV)
    with pytest.raises(SetupError, match="the proxy of the sandbox did not start: FileNotFoundError"), network:
        pass
    assert list(tmp_path.iterdir()) == []


def test_refusals_are_told_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"t": 1, "name": "agent", "host": "old.test", "port": 443, "method": "GET", "refused": "old"}\n')
    with Network(tmp_path, log, {"agent": []}, ENV) as network:
        assert network.refused() == ()
        ask(network.socket("agent"), REFUSED)
        (decision,) = network.refused()
        assert (decision.name, decision.host, decision.port) == ("agent", "evil.test", 443)
        assert decision.why == "the host is not on the list"
        assert network.refused() == ()
        ask(network.socket("agent"), REFUSED)
        assert len(network.refused()) == 1
    assert len(read_decisions(log)) == 3


def test_loopback_services_are_forwarded(tmp_path: Path) -> None:
    lists = {"agent": ["localhost:5432", "127.0.0.1:6379", "10.0.0.5:80"], "checks": []}
    network = Network(tmp_path, tmp_path / "log", lists, ENV)
    assert network.forwards("agent") == (5432, 6379)
    assert network.forwards("checks") == ()


def test_a_killed_proxy_is_no_network_until_another_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(echo) as server:
        lists = {"agent": [f"localhost:{server.port}"]}
        with Network(tmp_path, tmp_path / "log", lists, ENV) as network:
            path, first = network.socket("agent"), network.pid
            inode = path.stat().st_ino
            with tunnel(path, f"localhost:{server.port}") as stream:
                os.kill(first, signal.SIGKILL)
                assert stream.recv(1) == b""
            assert ask(path, REFUSED).startswith(b"HTTP/1.1 403 ")
            with tunnel(path, f"localhost:{server.port}") as stream:
                stream.sendall(b"again")
                assert read_exactly(stream, 5) == b"again"
            assert until(lambda: network.pid != first and network.is_alive)
            assert path.stat().st_ino == inode  # a sandbox that is running has this very socket
            last = network.pid
        assert not is_running(last)


def test_a_proxy_that_stays_dead_is_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(echo) as server:
        lists = {"agent": [f"localhost:{server.port}"]}
        with Network(tmp_path, tmp_path / "log", lists, ENV) as network:
            monkeypatch.setattr(module, "_START", "raise SystemExit")
            os.kill(network.pid, signal.SIGKILL)
            assert until(lambda: not network.is_alive)
            with dial(network.socket("agent")) as stream:
                stream.settimeout(0.3)
                stream.sendall(f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode())
                with pytest.raises(TimeoutError):
                    stream.recv(1)
        assert server.connections == 0


HOLD = """
import os, sys, time
from pathlib import Path
from ralph.sandbox.network import Network
folder = Path(sys.argv[1])
with Network(folder, folder / "log", {"agent": []}, dict(os.environ)) as network:
    print(network.pid, network.socket("agent"), flush=True)
    time.sleep(60)
"""


def test_the_proxy_ends_with_a_killed_run(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid, path = run.stdout.readline().split()
        assert is_running(int(pid))
        with dial(Path(path)):  # a client that stays connected does not keep it alive
            run.kill()
            run.wait()
            assert until(lambda: not is_running(int(pid)))
    assert until(lambda: not Path(path).parent.exists())


def test_it_starts_from_a_source_tree_without_an_install(tmp_path: Path) -> None:
    source = Path(module.__file__).resolve().parents[2]
    code = f"import sys; sys.path.insert(0, {str(source)!r})\n{HOLD.replace('time.sleep(60)', '')}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_torn_line_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_decisions(log) == ()
    whole = b'{"t": 1.5, "name": "agent", "method": "GET", "host": "a.test", "port": 80, "refused": "x"}\n'
    log.write_bytes(whole + b"\0\xff garbage\n" + b'{"future": 1, "host": "b.test"}\n' + whole[:-10])
    first, second = read_decisions(log)
    assert first == Decision(time=1.5, name="agent", method="GET", host="a.test", port=80, why="x")
    assert second.host == "b.test"


def test_a_summary_counts_by_host() -> None:
    one = Decision(time=1, name="agent", host="a.test", port=443, why="x", method="CONNECT")
    many = Decision(time=9, name="checks", host="b.test", port=443, why="x", method="CONNECT", count=40)
    allowed = Decision(time=2, name="agent", host="a.test", port=443, method="CONNECT")
    end = Decision(time=3, name="agent", host="a.test", port=443, up=10, down=20)
    groups = summary([one, many, one, allowed, end])
    assert [(g.host, g.why, g.count, g.up, g.down) for g in groups] == [
        ("b.test", "x", 40, 0, 0),
        ("a.test", "x", 2, 0, 0),
        ("a.test", "", 1, 10, 20),
    ]
    assert groups[2].last == allowed


def test_the_line_that_allows_a_host_does(tmp_path: Path) -> None:
    """The command is run, and the host that was refused is allowed by the list it leaves."""
    (tmp_path / ".ralph").mkdir()
    present: list[str] = []
    for host, port, entry in (
        ("b.test", 8443, "b.test:8443"),
        ("pypi.org", 443, "pypi"),
        ("fd00::5", 80, "[fd00::5]:80"),
    ):
        line = allow_line(Decision(host=host, port=port, why="the host is not on the list"), present)
        words = line.replace("ralph ", f"{sys.executable} -m ralph ", 1)
        subprocess.run(["sh", "-c", words], cwd=tmp_path, check=True, capture_output=True, timeout=60)
        present.append(entry)
    assert read_list(tmp_path) == present


def read_list(folder: Path) -> list[str]:
    argv = [sys.executable, "-m", "ralph", "config", "get", "sandbox.allow_hosts"]
    done = subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=60)
    return list(json.loads(done.stdout))


# Real clients, in a network namespace of their own: the relay is the only thing they can connect to.


class Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def files(folder: Path) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def inside(network: Network, command: Sequence[str], *, no_proxy: str = "", cwd: Path) -> tuple[int, str]:
    """Run a command without any network but the relay's."""
    proxied = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:3128")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "no_proxy": no_proxy,
        "NO_PROXY": no_proxy,
        **proxied,
    }
    argv = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--unshare-net",
        "--unshare-pid",
        "--proc",
        "/proc",
        "--die-with-parent",
        "--",
    ]
    argv += [sys.executable, "-I", "-S", relay.__file__, str(network.socket("agent")), "3128"]
    argv += [*map(str, network.forwards("agent")), "--", *command]
    done = subprocess.run(
        argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False
    )
    return done.returncode, done.stdout.decode(errors="replace")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, int, Network]]:
    """A folder, the port at which it is served, and a network that allows that."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello\n")
    with (
        files(folder) as port,
        Network(tmp_path, tmp_path / "log", {"agent": [f"localhost:{port}"]}, ENV, allow_hosts=[]) as network,
    ):
        yield folder, port, network


def methods(tmp_path: Path) -> set[str]:
    return {one.method for one in read_decisions(tmp_path / "log") if one.method and not one.why}


@pytest.mark.needs("bwrap", "curl")
def test_curl(served: tuple[Path, int, Network], tmp_path: Path) -> None:
    _, port, network = served
    url = f"http://localhost:{port}/hello.txt"
    assert inside(network, ["curl", "-sS", url, url], cwd=tmp_path) == (0, "hello\nhello\n")
    assert inside(network, ["curl", "-sS", "-p", url], cwd=tmp_path) == (0, "hello\n")
    assert methods(tmp_path) == {"GET", "CONNECT"}
    assert inside(network, ["curl", "-sS", "--noproxy", "*", "http://127.0.0.1:1/"], cwd=tmp_path)[0] == 7
    _, output = inside(network, ["curl", "-sS", "http://evil.test/"], cwd=tmp_path)
    assert "Ralph's sandbox does not allow evil.test:80" in output
    assert "ralph config set sandbox.allow_hosts evil.test:80" in output


@pytest.mark.needs("bwrap", "git")
def test_git(served: tuple[Path, int, Network], tmp_path: Path, git_identity: tuple[str, str]) -> None:
    folder, port, network = served
    work = tmp_path / "work"
    for argv in (
        ["git", "init", "-q", str(work)],
        ["git", "-C", str(work), "commit", "-q", "--allow-empty", "-m", "First"],
        ["git", "clone", "-q", "--bare", str(work), str(folder / "it.git")],
        ["git", "-C", str(folder / "it.git"), "update-server-info"],
    ):
        subprocess.run(argv, check=True, timeout=60)
    code, output = inside(network, ["git", "clone", f"http://localhost:{port}/it.git", "copy"], cwd=tmp_path)
    assert code == 0, output
    assert (tmp_path / "copy" / ".git").is_dir()
    code, output = inside(network, ["git", "clone", "https://evil.test/it.git", "other"], cwd=tmp_path)
    assert code == 128
    assert "403" in output


def wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "demo_wall-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("demo_wall.py", "x = 1\n")
        archive.writestr("demo_wall-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo-wall\nVersion: 1.0\n")
        archive.writestr("demo_wall-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("demo_wall-1.0.dist-info/RECORD", "")


@pytest.mark.needs("bwrap")
@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="not installed: pip")
def test_pip(served: tuple[Path, int, Network], tmp_path: Path) -> None:
    folder, port, network = served
    wheel(folder)
    (folder / "simple" / "demo-wall").mkdir(parents=True)
    page = '<a href="../../demo_wall-1.0-py3-none-any.whl">demo_wall-1.0-py3-none-any.whl</a>'
    (folder / "simple" / "demo-wall" / "index.html").write_text(page)
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-deps"]
    proxy = ["--proxy", "http://127.0.0.1:3128"]
    index = ["--index-url", f"http://localhost:{port}/simple/", "--trusted-host", "localhost"]
    code, output = inside(network, [*pip, *proxy, *index, "--target", "lib", "demo-wall"], cwd=tmp_path)
    assert code == 0, output
    assert (tmp_path / "lib" / "demo_wall.py").exists()
    assert "GET" in methods(tmp_path)


@pytest.mark.needs("bwrap", "npm")
def test_npm(served: tuple[Path, int, Network], tmp_path: Path) -> None:
    folder, port, network = served
    content = json.dumps({"name": "demo-wall", "version": "1.0.0"}).encode()
    with tarfile.open(folder / "demo.tgz", "w:gz") as archive:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    digest = b64encode(hashlib.sha512((folder / "demo.tgz").read_bytes()).digest()).decode()
    version = {
        "name": "demo-wall",
        "version": "1.0.0",
        "dist": {"tarball": f"http://localhost:{port}/demo.tgz", "integrity": f"sha512-{digest}"},
    }
    registry = {"name": "demo-wall", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (folder / "demo-wall").write_text(json.dumps(registry))
    (tmp_path / "package.json").write_text("{}")
    npm = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--registry",
        f"http://localhost:{port}/",
    ]
    code, output = inside(network, [*npm, "demo-wall"], cwd=tmp_path)
    assert code == 0, output
    assert (tmp_path / "node_modules" / "demo-wall" / "package.json").exists()
    assert methods(tmp_path)


@pytest.mark.needs("bwrap", "node")
def test_node_fetch_reaches_a_forwarded_service(served: tuple[Path, int, Network], tmp_path: Path) -> None:
    """Its fetch does not use a proxy by itself before Node 24."""
    _, port, network = served
    code = f"fetch('http://127.0.0.1:{port}/hello.txt').then(r => r.text()).then(t => process.stdout.write(t))"
    assert inside(network, ["node", "-e", code], no_proxy="localhost,127.0.0.1", cwd=tmp_path) == (0, "hello\n")


@pytest.mark.needs("bwrap")
def test_a_websocket_works_in_a_tunnel(tmp_path: Path) -> None:
    """Both sides speak at any time, in small pieces, after an upgrade that the proxy does not see."""

    def upgrade(stream: socket.socket) -> None:
        assert b"Upgrade: websocket" in read_head(stream)
        stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        for number in range(10):
            stream.sendall(b"\x81\x01%d" % number)
        echo(stream)

    with serving(upgrade) as server:
        place = f"localhost:{server.port}"
        with (
            Network(tmp_path, tmp_path / "log", {"agent": [place]}, ENV) as network,
            tunnel(network.socket("agent"), place) as stream,
        ):
            stream.sendall(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
            assert read_head(stream).startswith(b"HTTP/1.1 101 ")
            assert read_exactly(stream, 30) == b"".join(b"\x81\x01%d" % number for number in range(10))
            for _ in range(100):
                stream.sendall(b"\x81\x01x")
                assert read_exactly(stream, 3) == b"\x81\x01x"
