#!/usr/bin/env python3
"""What looking at a run costs: opening, from an event to the screen, and memory, by the size of its journal.

The journal of a real short run of the scripted agent is repeated until it has so many events, with the numbers, stories
and times of a long run. Every figure is measured in a process of its own. The floor is decoding every line once: what
no view of a journal can do without. Then the views are opened on it: the fold alone, `ralph serve` and `ralph ui`, on a
run that this process pretends to be and that goes on while they look. Opening counts the CPU time of the view, which
does not depend on what else the machine does, and names the elapsed time beside it; `ralph ui` includes its own start.
From event to screen is elapsed time. Last, what viewers cost the loop: the CPU time that it takes to write events while
nobody looks, and while ten do."""

from __future__ import annotations

import argparse
import fcntl
import http.client
import json
import os
import pty
import re
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from ralph.core.events import PlanSeen, SeenStory
from ralph.core.plan import State
from ralph.host.process.tree import identify
from ralph.journal.records import Journal, chained, digest
from support.hostile_runs import write_log
from support.loops import LoopProject, run_ralph, whole

SIZES = (1_000, 10_000, 100_000)
OPENING, SCREEN = 1.0, 0.5
"""Seconds: the targets, for the largest journal."""
RUN = "20260115-093000-be9c"
_PATIENCE = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/views.py --max 10000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--max", type=int, default=SIZES[-1], metavar="N", help="largest journal (default: 100000)")
    parser.add_argument("--said", type=int, default=80, metavar="N", help="events of a session (default: 80)")
    parser.add_argument("--marks", type=int, default=9, metavar="N", help="events timed on their way (default: 9)")
    parser.add_argument("--viewers", type=int, default=10, metavar="N", help="viewers at once, 0: skip (default: 10)")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ralph-bench-"))
    try:
        return measure(folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, args: argparse.Namespace) -> int:
    bare = min(seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(5))
    print(f"for scale: python -c pass {bare * 1000:.0f} ms; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"targets: a journal of {SIZES[-1]:,} events opens in {OPENING:g} s; event to screen in {SCREEN:g} s\n")
    made = short_run(folder)
    misses = []
    for size in [size for size in SIZES if size <= args.max] or [args.max]:
        journal = folder / f"{size}" / "state" / "bench-0" / "runs" / RUN / "events.jsonl"
        repeat(made, journal, size, args.said)
        print(f"{size:,} events, {journal.stat().st_size / 1e6:.1f} MB")
        for view in (fold, serve, ui):
            opening, screen = view(journal, args.marks)
            if opening > OPENING:
                misses.append(f"{view.__name__}, {size:,} events: opens in {opening:.2f} s")
            if screen > SCREEN:
                misses.append(f"{view.__name__}, {size:,} events: event to screen {screen:.2f} s")
        if args.viewers and size == min(args.max, SIZES[1]):
            crowd(journal, args.viewers)
        print(flush=True)
    for miss in misses:
        print(f"target missed: {miss}")
    return 1 if misses else 0


def seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def short_run(folder: Path) -> list[dict[str, Any]]:
    """Three stories, one of them rejected once."""
    project = LoopProject.make(folder / "made", whole("tasks.json"))
    run_ralph(project)
    return [json.loads(line) for line in project.journals()[-1].read_bytes().splitlines()]


def repeat(made: list[dict[str, Any]], journal: Path, size: int, said: int) -> None:
    """A run that is not over, of a process that lives: this one."""
    kinds = [record["event"]["type"] for record in made]
    first = kinds.index("IterationStarted")
    last = len(kinds) - kinds[::-1].index("Decided") - 1
    block = [record for record in made[first:last] if record["event"]["type"] != "Noted"]
    per_block = len(block) + kinds.count("IterationStarted") * (said - 5)
    rounds = max((size - first) // per_block + 1, 1)
    journal.parent.mkdir(parents=True)
    now, before, seq = time.time() - 3600, "", 0
    with journal.open("wb") as stream:

        def put(event: dict[str, Any]) -> None:
            nonlocal before, seq
            seq += 1
            record = {"seq": seq, "t": round(now + seq * 3600 / (size + 1), 3), "event": event, "v": 1}
            line = chained(json.dumps(record, separators=(",", ":")).encode(), before)
            before = digest(line)
            stream.write(line)

        for record in made[:first]:
            put(_opening(record["event"], rounds))
        at = 0
        while seq < size:
            for record in block:
                if seq < size:
                    event = _renamed(record["event"], at)
                    put(event)
                    if event["type"] == "AgentStarted":
                        for number in range(min(said, size - seq)):
                            put(_said(event["iteration"], number))
            at += 1
    write_log(journal, [f"Step {number}" for number in range(said)], current(journal)["iteration"])


def _opening(event: dict[str, Any], rounds: int) -> dict[str, Any]:
    if event["type"] == "RunStarted":
        me = identify(os.getpid())
        assert me is not None
        return event | {"run": RUN, "pid": me.pid, "start": me.start, "total": 3 * rounds}
    if event["type"] == "PlanSeen":
        return event | {"stories": [_renamed(story, at) for at in range(rounds) for story in event["stories"]]}
    return event


def _renamed(value: Any, at: int) -> Any:
    """Of the round with this number: its own stories and iterations."""
    text = re.sub(r'"US-(\d+)"', lambda found: f'"US-{int(found[1]) + 3 * at:05}"', json.dumps(value))
    return json.loads(re.sub(r'"iteration": (\d+)', lambda found: f'"iteration": {int(found[1]) + 4 * at}', text))


def _said(iteration: int, number: int) -> dict[str, Any]:
    call = {"type": "tool_use", "name": "Edit", "summary": f"Edit src/module_{number}.py", "id": f"toolu_{number}"}
    text = {"type": "text", "text": f"Step {number}: " + "the next test needs a value that is not there yet. " * 3}
    return {"type": "AgentSaid", "iteration": iteration, "event": text if number % 4 == 3 else call}


def memory(pid: int) -> float:
    """Megabytes."""
    told = Path(f"/proc/{pid}/status")
    with suppress(OSError):
        return int(re.findall(r"VmHWM:\s+(\d+)", told.read_text())[0]) / 1024
    return float("nan")


FOLD = """
import sys, time, json, resource
from pathlib import Path
import msgspec
from ralph.core.events import Record
from ralph.views.run_view import RunView
from ralph.views.documents import run_document, plain
path = Path(sys.argv[1])
def peak():
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1024 if sys.platform != "darwin" else 1024 * 1024)
before = peak()
if sys.argv[2] == "floor":
    decoder = msgspec.json.Decoder(Record)
    begun = time.process_time()
    for line in path.open("rb"):
        decoder.decode(line)
    print(json.dumps([time.process_time() - begun]))
else:
    begun = time.process_time()
    view = RunView(path).catch_up()
    folded = time.process_time()
    shown = plain(run_document(view, time.time()))
    last = view.events(view.count - 200, 200)
    print(json.dumps([folded - begun, time.process_time() - folded, peak() - before]))
"""


def fold(journal: Path, _: int) -> tuple[float, float]:
    def run(what: str) -> list[float]:
        command = [sys.executable, "-c", FOLD, str(journal), what]
        figures: list[float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return figures

    floor = min(run("floor")[0] for _ in range(3))
    folded, first, more = min(run("fold") for _ in range(3))
    rest = f"{folded / floor:.1f} x decoding alone ({ms(floor)}); first screen {ms(first)}; {more:.0f} MB more"
    print(f"  fold         {ms(folded)}, {rest}")
    return folded + first, 0.0


@contextmanager
def server(journal: Path) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], http.client.HTTPResponse]]]:
    env = {**os.environ, "RALPH_STATE_HOME": str(journal.parents[3])}
    command = [sys.executable, "-m", "ralph", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        printed = json.loads(process.stdout.readline())
        host, token = printed["url"].removeprefix("http://"), printed["token"]

        def ask(path: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPConnection(host, timeout=_PATIENCE)
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise SystemExit(f"{path}: {answer.read()!r}")
            return answer

        yield process, ask
    finally:
        process.terminate()
        process.wait()


def serve(journal: Path, marks: int) -> tuple[float, float]:
    with server(journal) as (process, ask):
        home = seconds(lambda: ask("/api/home").read())
        before = cpu(process.pid)
        elapsed = seconds(lambda: ask(f"/api/runs/{RUN}").read())
        opening = cpu(process.pid) - before
        again = min(seconds(lambda: ask(f"/api/runs/{RUN}").read()) for _ in range(5))
        scroll = min(seconds(lambda at=at: ask(f"/api/runs/{RUN}/events?start={at}").read()) for at in range(5))  # type: ignore[misc]
        chart = min(seconds(lambda: ask(f"/api/runs/{RUN}/charts/gantt.svg").read()) for _ in range(3))
        stream = ask(f"/api/runs/{RUN}/stream")
        late = timed_marks(journal, marks, lambda mark: _until(stream, mark.encode()))
        rest = f"again {ms(again)}, list of runs {ms(home)}, 200 events {ms(scroll)}, timeline {ms(chart)}"
        used = f"{told(late)}; {memory(process.pid):.0f} MB"
        print(f"  ralph serve  {ms(opening)} ({ms(elapsed)} elapsed), {rest}; {used}")
        stream.close()
        return opening, statistics.median(late)


def _until(stream: http.client.HTTPResponse, mark: bytes) -> None:
    while mark not in (line := stream.readline()):
        if not line:
            raise SystemExit("the stream of `ralph serve` ended")


def timed_marks(journal: Path, count: int, wait: Callable[[str], None]) -> list[float]:
    """Seconds from each event to the moment at which a viewer has it."""
    late = []
    with going_on(journal) as write:
        for number in range(count):
            time.sleep(0.6 + 0.07 * number)  # at other moments of the viewer's rhythm
            mark = f"mark-{number}-"
            begun = time.perf_counter()
            write(mark)
            wait(mark)
            late.append(time.perf_counter() - begun)
    return late


@contextmanager
def going_on(journal: Path) -> Iterator[Callable[[str], object]]:
    """The loop's own way to write what it sees: the current story has another title, which every view shows."""
    story = current(journal)["story"]
    with journal.open("rb") as stream:
        count = sum(1 for _ in stream)
    written = Journal(journal, time.time, count)
    try:
        yield lambda title: written.write(PlanSeen(whole=False, stories=(SeenStory(story, title, State.TODO),)))
    finally:
        written.close()


def current(journal: Path) -> dict[str, Any]:
    """How the last iteration started."""
    with journal.open("rb") as stream:
        started = [line for line in stream if b'"type":"IterationStarted"' in line[:100]]
    event: dict[str, Any] = json.loads(started[-1])["event"]
    return event


def told(late: list[float]) -> str:
    return f"event to screen {ms(statistics.median(late))}, at most {ms(max(late))}"


def ms(value: float) -> str:
    return f"{value * 1000:.0f} ms"


def ui(journal: Path, marks: int) -> tuple[float, float]:
    """In a terminal of 160 columns and 48 lines, until the current story is on it."""
    env = {**os.environ, "RALPH_STATE_HOME": str(journal.parents[3]), "TERM": "xterm-256color", "CI": ""}
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [sys.executable, "-m", "ralph", "ui", str(journal)], env)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 48, 160, 0, 0))
        screen = _Screen(terminal)
        elapsed = seconds(lambda: screen.wait_for(current(journal)["story"]))
        opening = cpu(pid)
        late = timed_marks(journal, marks, screen.wait_for)
        print(f"  ralph ui     {ms(opening)} ({ms(elapsed)} elapsed); {told(late)}; {memory(pid):.0f} MB")
        return opening, statistics.median(late)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


class _Screen:
    def __init__(self, terminal: int) -> None:
        self._terminal, self._drawn = terminal, ""

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + _PATIENCE
        while text not in self._drawn:
            if time.monotonic() > end:
                raise SystemExit(f"`ralph ui` did not show {text}: {self._drawn[-2000:]!r}")
            if select.select([self._terminal], [], [], 1)[0]:
                data = os.read(self._terminal, 1 << 16).decode("utf-8", "replace")
                self._drawn = (self._drawn + re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data))[-200_000:]
        self._drawn = ""


def crowd(journal: Path, viewers: int) -> None:
    """The CPU time of the loop for an event, and of the server, while nobody looks, while one does and while all do."""
    figures = {}
    with server(journal) as (process, ask):
        for count in (0, 1, viewers):
            streams = [ask(f"/api/runs/{RUN}/stream") for _ in range(count)]
            threads = [threading.Thread(target=_drain, args=(stream,), daemon=True) for stream in streams]
            for thread in threads:
                thread.start()
            time.sleep(1)
            loop, served = _writing(journal, process.pid)
            figures[count] = loop, served
            for stream in streams:
                stream.close()
    for count, (loop, served) in figures.items():
        print(
            f"  {count:>2} viewers   an event costs the loop {loop * 1e6:.0f} µs of CPU, "
            f"{loop / figures[0][0]:.2f} x; the server used {served:.2f} s of CPU"
        )


def _drain(stream: http.client.HTTPResponse) -> None:
    with suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
        while stream.read1(1 << 16):
            pass


WRITE = """
import sys, time, json
from pathlib import Path
from ralph.core.events import Noted
from ralph.journal.records import Journal
path = Path(sys.argv[1])
journal = Journal(path, time.time, sum(1 for _ in path.open("rb")))
used = 0.0
for number in range(300):
    begun = time.process_time()
    journal.write(Noted(f"note {number}"))
    used += time.process_time() - begun
    time.sleep(0.01)
print(json.dumps(used / 300))
"""


def _writing(journal: Path, server: int) -> tuple[float, float]:
    before = cpu(server)
    done = subprocess.run([sys.executable, "-c", WRITE, str(journal)], capture_output=True, check=True)
    return float(json.loads(done.stdout)), cpu(server) - before


def cpu(pid: int) -> float:
    """Seconds that a process has used; where there is no /proc, nothing is known."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return float("nan")


if __name__ == "__main__":
    sys.exit(main())
