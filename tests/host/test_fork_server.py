"""Children forked from a server: their pipes, their end, and the end of the server."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ralph.host.process.channel import Channel, Closed
from ralph.host.process.fork_server import ForkServer, is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="forks with pidfds, on Linux")

ECHO = """
import os, sys
from ralph.host.process.channel import Closed, read_frame, write_frame
from ralph.host.process.fork_server import serve_forks

def child():
    incoming, outgoing = os.fdopen(0, "rb"), os.fdopen(1, "wb")
    try:
        while True:
            write_frame(outgoing, read_frame(incoming) + str(os.getpid()).encode())
    except Closed:
        return 0

sys.exit(serve_forks(int(sys.argv[1]), child))
"""


@pytest.fixture
def server(tmp_path: Path) -> ForkServer:
    script = tmp_path / "echo.py"
    script.write_text(textwrap.dedent(ECHO))
    return ForkServer([sys.executable, str(script)], tmp_path, os.environ, tmp_path / "log")


def answer(channel: Channel, data: bytes) -> bytes:
    channel.send(data)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for frame in channel.receive():
            return frame
        time.sleep(0.01)
    raise AssertionError("no answer")


def test_each_child_has_its_own_pipes(server: ForkServer, tmp_path: Path) -> None:
    one, two = server.start(tmp_path / "one"), server.start(tmp_path / "two")
    assert answer(two, b"b") == f"b{two.pid}".encode()
    assert answer(one, b"a") == f"a{one.pid}".encode()
    assert one.pid != two.pid
    one.close()
    assert one.ended(10) is not None
    assert two.ended() is None
    two.kill()
    assert not two.is_open
    one.kill()
    server.close()


def test_a_killed_child_is_noticed(server: ForkServer, tmp_path: Path) -> None:
    child = server.start(tmp_path / "log")
    answer(child, b"x")
    os.kill(child.pid, signal.SIGKILL)
    assert child.ended(10) is not None
    assert list(child.receive()) == []
    assert not child.is_open
    child.kill()
    server.close()


def test_children_outlive_the_server_until_their_stdin_ends(server: ForkServer, tmp_path: Path) -> None:
    child = server.start(tmp_path / "log")
    answer(child, b"x")
    server.close()
    assert answer(child, b"y").startswith(b"y")
    with pytest.raises(OSError):
        server.start(tmp_path / "log")
    child.close()
    assert child.ended(10) is not None
    with pytest.raises((Closed, ValueError)):
        child.send(b"z")
    child.kill()
