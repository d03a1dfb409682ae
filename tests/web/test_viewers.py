"""Who looks at runs: many at once, slow ones, rude ones, another user; and what none of them is shown."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.agent import Text
from ralph.core.events import AgentSaid, Noted
from support.hostile_runs import ANSI, SECRET, journal_of, tell, tell_hostile, write_log
from support.processes import wait_for
from support.told_runs import RUN, ToldRun
from support.web_server import Served, served

STREAM = f"/api/runs/{RUN}/stream"


@pytest.fixture
def told(tmp_path: Path) -> ToldRun:
    """A run under way."""
    made = tell(tmp_path, is_alive=True)
    made.begin(1, "US-001")
    return made


def until(events: Iterator[tuple[str, object]], text: str) -> None:
    """The stream has said this."""
    for _, document in events:
        if text in json.dumps(document):
            return
    pytest.fail(f"the stream ended without {text}")


def test_ten_viewers_see_every_event_and_the_journal_is_read_once(tmp_path: Path, told: ToldRun) -> None:
    seen: list[int] = []

    def look(server: Served) -> None:
        with server.stream(STREAM) as events:
            until(events, "the first news")
            until(events, "the last news")
            seen.append(1)

    with served(tmp_path) as server:
        viewers = [threading.Thread(target=look, args=(server,)) for _ in range(10)]
        for viewer in viewers:
            viewer.start()
        told.say(Noted("the first news"))
        begun = time.monotonic()
        for number in range(500):
            told.say(AgentSaid(1, Text(f"word {number}")))
        wrote = time.monotonic() - begun
        told.say(Noted("the last news"))
        for viewer in viewers:
            viewer.join(60)
        assert len(seen) == 10
        files = [each.readlink().name for each in Path(f"/proc/{server.pid}/fd").iterdir() if each.exists()]
        assert files.count("events.jsonl") <= 1
    assert wrote < 30, "viewers hold up whoever writes"


def test_a_viewer_who_takes_nothing_holds_up_nobody_and_is_given_the_newest_state(
    tmp_path: Path, told: ToldRun
) -> None:
    with served(tmp_path) as server, server.connection(STREAM) as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with server.stream(STREAM) as events:
            for number in range(40):
                told.say(Noted(f"news {number} " + "x" * 20_000))
            until(events, "news 39 ")
        assert server.memory < 400
        assert server.ask("/api/home").status == 200


def test_clients_that_say_too_little_or_too_much_are_cut_off(tmp_path: Path, told: ToldRun) -> None:
    with served(tmp_path) as server, contextlib.ExitStack() as silent:

        def connect(data: bytes) -> socket.socket:
            connection = silent.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return connection

        head = server.request(f"/api/runs/{RUN}/acts").replace(b"GET", b"POST", 1).removesuffix(b"\r\n")
        body_never_comes = connect(head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        head_never_ends = connect(b"GET / HTTP/1.1\r\nX-Long: " + b"y" * 2_000_000)
        for _ in range(200):
            stalled = connect(b"GET /api/home HTTP/1.1\r\nHost: ")
        assert server.ask("/api/home").json["runs"][0]["run"] == RUN, "the others are let in"
        assert b" 408 " in body_never_comes.recv(1000)
        assert stalled.recv(10) == b"", "it is hung up on in the end"
        with contextlib.suppress(ConnectionError):
            assert head_never_ends.recv(12) in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
        assert server.memory < 300


def test_ten_megabytes_of_a_session_are_answered_in_pages(tmp_path: Path) -> None:
    told = tell_hostile(tmp_path)
    write_log(journal_of(tmp_path), [f"line {number} " + ANSI * 500 for number in range(700)])
    assert sum(path.stat().st_size for path in tmp_path.rglob("*-agent.log")) > 10_000_000
    del told
    with served(tmp_path) as server:
        path = f"/api/runs/{RUN}/attempts/1/transcript"
        page = server.ask(f"{path}?count=50").json
        assert (page["total"], len(page["entries"])) == (700, 50)
        assert "\\u001b" not in json.dumps(page)
        found = server.ask(f"{path}?search=LINE+699").json
        assert (found["total"], found["entries"][0]["text"][:8]) == (1, "line 699")


def test_secrets_of_the_server_are_in_no_answer(tmp_path: Path) -> None:
    tell_hostile(tmp_path)
    paths = (
        *("/api/home", f"/api/runs/{RUN}", f"/api/runs/{RUN}/attempts/1", f"/api/runs/{RUN}/attempts/1/transcript"),
        *(f"/api/runs/{RUN}/events", f"/api/runs/{RUN}/stories/US-001", f"/report/{RUN}", f"/api/runs/{RUN}/journal"),
        *(f"/api/runs/{RUN}/charts/gantt.svg", "/metrics"),
    )
    inside = json.dumps(SECRET)[1:-1]
    with served(tmp_path, env={"SHOP_API_TOKEN": SECRET}) as server:
        for path in paths:
            answer = server.ask(path)
            assert answer.status == 200, path
            assert SECRET not in answer.text, path
            assert inside not in answer.text, path
            assert "horse" not in answer.text, path
        told_size = journal_of(tmp_path).stat().st_size
        assert len(server.ask(f"/api/runs/{RUN}/journal").body) == told_size, "offsets stay what they are"


def test_a_run_that_is_removed_or_cut_while_it_is_looked_at_is_no_bug(tmp_path: Path, told: ToldRun) -> None:
    journal = journal_of(tmp_path)
    with served(tmp_path) as server, server.stream(STREAM) as events:
        until(events, RUN)
        whole = journal.read_bytes()
        journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
        wait_for(lambda: server.ask(f"/api/runs/{RUN}").json["count"] == 2)
        journal.unlink()
        wait_for(lambda: server.ask(f"/api/runs/{RUN}").status in (404, 503))
        assert server.ask("/api/home").json["runs"] == []
