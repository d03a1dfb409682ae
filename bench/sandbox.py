"""What the bubblewrap sandbox costs at the start of a command, and how fast everything in it ends.

    .venv/bin/python bench/sandbox.py [ROUNDS]

Target: at most 25 ms beyond the bare command, also with the proxy's relay and with limits, on an idle machine; a signal
to the outer process ends everything inside, a daemon in a session of its own included. The commands take turns, so that
a busy machine slows all of them down alike; minima are shown because they disturb least.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ralph.host.process.start import finish, run, start
from ralph.sandbox import bwrap, trial
from ralph.sandbox.network import Network
from ralph.sandbox.wall import Quota, Wall, Walled

MOST_MS = 25.0
QUOTA = Quota(processes=2000, memory_mb=8000, disk_mb=20_000, cpu_seconds=36_000)
TREE = "sleep {0} & (setsid sh -c 'sleep {0} & sleep {0}' &) ; exec sleep {0}"
PROCESSES = 5


class Case(NamedTuple):
    name: str
    wall: Wall | None
    target: float | None = None


def cases(folder: Path, network: Network) -> Iterator[Case]:
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    proxy = network.socket("agent")
    yield Case("bare", None)
    yield Case("bwrap", Wall(home=Path.home(), home_source=home, writable=(work,)), MOST_MS)
    yield Case("bwrap, limits", Wall(home=Path.home(), home_source=home, writable=(work,), quota=QUOTA), MOST_MS)
    yield Case("bwrap, relay", Wall(home=Path.home(), home_source=home, writable=(work,), proxy=proxy), MOST_MS)
    whole = Wall(home=Path.home(), home_source=home, writable=(work,), proxy=proxy, quota=QUOTA)
    yield Case("bwrap, relay and limits", whole, MOST_MS)


def once(case: Case, program: str, cwd: Path) -> float:
    """Milliseconds of a command that does nothing."""
    enclosure = Walled(bwrap, program, case.wall) if case.wall else None
    started = time.perf_counter()
    done = run(("/bin/sh", "-c", ":"), cwd=cwd, enclosure=enclosure)
    taken = (time.perf_counter() - started) * 1000
    assert done.ok, done
    return taken


def end_tree(case: Case, program: str, cwd: Path, number: signal.Signals) -> tuple[int, int, float]:
    """Processes before and after a signal to the outer process, and the milliseconds until the last one is gone."""
    mark = str(70_000 + secrets.randbelow(10_000))
    enclosure = Walled(bwrap, program, case.wall) if case.wall else None
    process = start(("/bin/sh", "-c", TREE.format(mark)), cwd=cwd, env=None, stdin=False, enclosure=enclosure)
    deadline = time.monotonic() + 10
    while len(marked(mark)) < PROCESSES and time.monotonic() < deadline:
        time.sleep(0.005)
    before, began = len(marked(mark)), time.perf_counter()
    os.kill(process.pid, number)
    while marked(mark) and time.perf_counter() - began < 1:
        time.sleep(0.001)
    taken, after = (time.perf_counter() - began) * 1000, marked(mark)
    for pid in after:
        os.kill(pid, signal.SIGKILL)
    finish(process)
    if enclosure is not None:
        enclosure.end(process)
    return before, len(after), taken


def marked(mark: str) -> list[int]:
    """Our processes: `sleep MARK`, and the shell that has it in its command."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()] or (words[:2] == [b"sh", b"-c"] and mark.encode() in words[2]):
            pids.append(int(folder.name))
    return pids


def report(measured: list[Case], times: dict[str, list[float]]) -> int:
    """Prints the table. Returns how many targets were missed."""
    bare = times["bare"]
    missed = 0
    print(f"{'command':<26} {'median ms':>10} {'min ms':>8} {'median ×':>9} {'beyond bare':>12}  target")
    for case in measured:
        taken = times[case.name]
        beyond, ratio = median(taken) - median(bare), median(taken) / median(bare)
        verdict = "" if case.target is None else f"{case.target:.0f} ms {'ok' if beyond <= case.target else 'MISSED'}"
        missed += "MISSED" in verdict
        figures = f"{median(taken):>10.1f} {min(taken):>8.1f} {ratio:>9.2f} {beyond:>12.1f}"
        print(f"{case.name:<26} {figures}  {verdict}")
    return missed


def main(rounds: int) -> int:
    program = bwrap.find(os.environ).program
    if not program:
        print("bubblewrap is not installed", file=sys.stderr)
        return 2
    missed = 0
    with tempfile.TemporaryDirectory(prefix="ralph-") as name:
        folder = Path(name)
        with Network(folder, folder / "log", {"agent": ("example.org",)}, {}) as network:
            measured = list(cases(folder, network))
            work = folder / "work"
            times: dict[str, list[float]] = {case.name: [] for case in measured}
            for case in measured:
                once(case, program, work)
            for _ in range(rounds):
                for case in measured:
                    times[case.name].append(once(case, program, work))
            missed += report(measured, times)
            print(f"\n{'signal to the outer process':<28} {'before':>7} {'after':>6} {'ms':>7}")
            for case in (measured[0], measured[-1]):
                for number in (signal.SIGKILL, signal.SIGTERM):
                    before, after, taken_ms = end_tree(case, program, work, number)
                    missed += bool(case.wall and (after or before < PROCESSES))
                    gone = f"{taken_ms:>7.1f}" if not after else "  never"
                    print(f"{case.name + ', ' + number.name:<28} {before:>7} {after:>6} {gone}")
    found = bwrap.find(os.environ)
    began = time.perf_counter()
    proven = trial.prove(bwrap, found)
    print(f"\ntrial before a run: {(time.perf_counter() - began) * 1000:.0f} ms, {proven.why_not or 'it holds'}")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
