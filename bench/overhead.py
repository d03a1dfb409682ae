"""What the loop costs beyond the agent and the checks: per iteration, at the start, and in memory.

Each figure is measured in this run, with the scripted agent as the agent: one `ralph run` over a plan of N stories, one
iteration a story, with checkpoint, journal and commit, without a sandbox and without reviews. The agent's own time is
what the journal says; the rest is the loop. Beside it, for scale: `git commit`, `git status` and `python -c pass`. The
git processes are counted in a run of their own, by a `git` in front of the real one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROUNDS = 15
FEW = 8
"""Iterations whose processes are counted."""
FLAT = 0.1
"""Share of the iterations that is the beginning and the end."""
COUNTER = """#!/bin/bash
echo "$EPOCHREALTIME" >>"{log}"
exec "{git}" "$@"
"""
SCRIPT = """
stories:
  "*":
    - implement:
        - append: {path: work.txt, text: "x\\n"}
        - claim: done
"""


class Iterations(NamedTuple):
    costs: list[float]
    """Milliseconds of each, decision to decision, without the agent."""
    starts: float
    """Milliseconds from the start of the command to the start of the first agent."""
    before: int
    """Git processes before the first agent, if they were counted."""
    processes: list[int]
    """Git processes of each."""

    @property
    def median(self) -> float:
        return statistics.median(self.costs)

    @property
    def growth(self) -> float:
        """The last ones in relation to the first ones."""
        some = max(int(len(self.costs) * FLAT), 1)
        return statistics.median(self.costs[-some:]) / statistics.median(self.costs[:some])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/overhead.py --stories 200",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stories", type=int, default=200, metavar="N", help="iterations to run (default: 200)")
    parser.add_argument("--megabytes", type=int, default=1000, metavar="N", help="output of the loud agent, 0: skip")
    parser.add_argument("--large", type=int, default=1000, metavar="N", help="stories of the plan for the start figure")
    parser.add_argument("--files", type=int, default=50_000, metavar="N", help="files of the large project, 0: skip")
    parser.add_argument("--ignored", type=int, default=30_000, metavar="N", help="ignored files of the large project")
    args = parser.parse_args()
    with bench_folder() as folder:
        root = project(folder, "scale", 3)
        commit, bare = best(lambda: commit_once(folder, root)), best(python_once)
        print(f"for scale: git commit {commit:.1f} ms, python -c pass {bare:.1f} ms (best of {ROUNDS})")
        done = iterations(folder, project(folder, "many", args.stories))
        print(f"per iteration beyond the agent ({len(done.costs)} iterations, decision to decision):")
        print(f"  median {done.median:.1f} ms, best {min(done.costs):.1f} ms, {done.median / commit:.1f} × git commit")
        print(f"  last tenth {done.growth:.2f} × first tenth")
        counted = iterations(folder, project(folder, "counted", FEW), is_counted=True)
        middle = statistics.median(counted.processes)
        print(f"git processes: {middle:.0f} per iteration, {counted.before} before the first agent")
        for stories in (10, args.large):
            times = starts(folder, project(folder, f"start{stories}", stories), 7)
            median = statistics.median(times)
            print(f"start to first agent, {stories} stories: median {median:.0f} ms, best {min(times):.0f} ms")
        if args.files:
            large(folder, args.files, args.ignored)
        if args.megabytes:
            memory(folder, args.megabytes)


@contextmanager
def bench_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ralph-bench-"))
    (folder / "home").mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_", "PYTHON"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    return env | who | {"HOME": str(folder / "home"), "RALPH_STATE_HOME": str(folder / "state"), "RALPH_TRUST": "1"}


def project(folder: Path, name: str, stories: int, *, script: str = SCRIPT, files: int = 100, ignored: int = 0) -> Path:
    root = folder / name
    (root / ".ralph" / "bench").mkdir(parents=True)
    listed = [
        {"id": f"S-{n}", "title": f"Story {n}", "acceptanceCriteria": ["it is there"], "priority": n, "passes": False,
         "description": "x" * 200, "notes": ""}
        for n in range(1, stories + 1)
    ]  # fmt: skip
    plan = {
        "feature": "bench",
        "branchName": "main",
        "description": "d",
        "createdAt": "2026-01-01",
        "userStories": listed,
    }
    (root / ".ralph/bench/prd.json").write_text(json.dumps(plan, indent=1))
    (root / ".ralph/config.yaml").write_text(
        "agent: {name: scripted, script: script.yaml}\nmax_iterations: 100000\nmax_allowed_iterations: 100000\n"
        "rate_limit_per_hour: 0\narchive: {on_complete: false}\nbranch: {auto_create: false}\n"
        "sandbox: none\nreview: {when: never}\nproof: {minimum: unproven}\n"
    )
    (root / "script.yaml").write_text(script)
    (root / ".gitignore").write_text("node_modules/\n")
    _fill(root, files, ".txt")
    _fill(root / "node_modules", ignored, ".js")
    env = environment(folder)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)
    return root


def _fill(root: Path, count: int, suffix: str) -> None:
    for n in range(count):
        path = root / f"d{n // 1000}" / f"e{n // 100 % 10}" / f"file{n}{suffix}"
        if n % 100 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"{n}\n")


def run(folder: Path, root: Path, *args: str, env: Mapping[str, str] = {}) -> tuple[list[dict[str, Any]], float]:
    """The records of a run, and when its command was started."""
    begun = time.time()
    command = [sys.executable, "-m", "ralph", "run", "--json", *args]
    done = subprocess.run(command, cwd=root, env=environment(folder) | dict(env), capture_output=True, check=False)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    if not records or records[-1]["event"]["type"] != "RunEnded":
        sys.exit(f"the run failed: {done.stderr.decode()}")
    return records, begun


def iterations(folder: Path, root: Path, *, is_counted: bool = False) -> Iterations:
    log, env = folder / f"{root.name}.log", dict[str, str]()
    if is_counted:
        counter = folder / f"{root.name}-bin" / "git"
        counter.parent.mkdir()
        counter.write_text(COUNTER.format(log=log, git=shutil.which("git")))
        counter.chmod(0o755)
        env = {"PATH": f"{counter.parent}:{os.environ['PATH']}"}
    records, begun = run(folder, root, env=env)
    costs, decided, agent = list[float](), list[float](), 0.0
    for record in records:
        event = record["event"]
        if event["type"] == "AgentEnded":
            agent = event["ended"]["seconds"]
        elif event["type"] == "Decided":
            costs += [(record["t"] - decided[-1] - agent) * 1000] if decided else []
            decided.append(record["t"])
            agent = 0.0
    first = _first_agent(records)
    called = [float(line) for line in log.read_text().splitlines()] if is_counted else []
    processes = [sum(a <= at < b for at in called) for a, b in itertools.pairwise(decided)]
    return Iterations(costs, (first - begun) * 1000, sum(at < first for at in called), processes)


def _first_agent(records: Sequence[Mapping[str, Any]]) -> float:
    return next(float(record["t"]) for record in records if record["event"]["type"] == "AgentStarted")


def starts(folder: Path, root: Path, rounds: int) -> list[float]:
    """Milliseconds from the start of the command to the start of the agent."""
    times = []
    for _ in range(rounds):
        records, begun = run(folder, root, "--once")
        times.append((_first_agent(records) - begun) * 1000)
    return times


def best(once: Callable[[], float], rounds: int = ROUNDS) -> float:
    return min(once() for _ in range(rounds))


def commit_once(folder: Path, root: Path) -> float:
    (root / "d0/e0/file1.txt").write_text(f"{time.time_ns()}\n")
    return timed(["git", "commit", "-qam", "x"], root, environment(folder))


def status_once(folder: Path, root: Path) -> float:
    return timed(["git", "status", "--porcelain"], root, environment(folder))


def python_once() -> float:
    return timed([sys.executable, "-c", "pass"], Path.cwd(), dict(os.environ))


def timed(command: Sequence[str], root: Path, env: Mapping[str, str]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    subprocess.run(command, cwd=root, env=dict(env), check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1000


def large(folder: Path, files: int, ignored: int, stories: int = 12) -> float:
    """The cost of an iteration in relation to `git status`."""
    root = project(folder, f"large{files}", stories, files=files, ignored=ignored)
    status_once(folder, root)
    before = best(lambda: status_once(folder, root), 5)
    done = iterations(folder, root)
    status = min(before, best(lambda: status_once(folder, root), 5))
    ratio = min(done.costs) / status
    middle = statistics.median(done.costs)
    print(f"{files:,} files and {ignored:,} ignored ones: git status {status:.0f} ms; an iteration costs", end=" ")
    print(f"{middle:.0f} ms, at best {min(done.costs):.0f} ms: {ratio:.1f} × git status")
    return ratio


def memory(folder: Path, megabytes: int) -> None:
    script = f"""
acts: {Path(__file__).resolve().parent.parent / "tests/support/stunts.py"}
stories:
  "*":
    - implement:
        - print: {{size: {megabytes * 1_000_000}, kind: lines}}
        - append: {{path: work.txt, text: "x\\n"}}
        - claim: done
"""
    root = project(folder, "loud", 1, script=script)
    begun = time.perf_counter()
    run(folder, root)
    took = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    print(f"an agent that prints {megabytes} MB: largest process {peak:.0f} MB, {took:.1f} s")


if __name__ == "__main__":
    main()
