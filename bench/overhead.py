"""What the loop costs beyond the agent and the checks: per iteration, at the start, and in memory.

Each figure is measured in this run, with the scripted agent as the agent: one `ralph run` over a plan of N stories, one
iteration a story, with checkpoint, journal and commit. The agent's own time is what the journal says; the rest is the
loop. `git commit` in the same repository and `python -c pass` are measured beside it, for scale."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/overhead.py --stories 200",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stories", type=int, default=200, metavar="N", help="iterations to run (default: 200)")
    parser.add_argument("--megabytes", type=int, default=1000, metavar="N", help="output of the loud agent, 0: skip")
    parser.add_argument("--large", type=int, default=1000, metavar="N", help="stories of the plan for the start figure")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ralph-bench-"))
    (folder / "home").mkdir()
    try:
        scale(folder)
        per_iteration(folder, args.stories)
        for stories in (10, args.large):
            start(folder, stories)
        if args.megabytes:
            memory(folder, args.megabytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    return env | who | {"HOME": str(folder / "home"), "RALPH_STATE_HOME": str(folder / "state"), "RALPH_TRUST": "1"}


def project(folder: Path, name: str, stories: int, script: str) -> Path:
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
    )
    (root / "script.yaml").write_text(script)
    for n in range(100):
        (root / f"file{n}.txt").write_text(f"{n}\n")
    env = environment(folder)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)
    return root


def ralph(folder: Path, root: Path, *args: str) -> tuple[list[dict[str, Any]], float]:
    begun = time.time()
    command = [sys.executable, "-m", "ralph", "run", "--json", *args]
    done = subprocess.run(command, cwd=root, env=environment(folder), capture_output=True, check=False)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    if not records or records[-1]["event"]["type"] != "RunEnded":
        sys.exit(f"the run failed: {done.stderr.decode()}")
    return records, begun


def scale(folder: Path) -> None:
    root = project(folder, "scale", 3, "stories: {}\n")
    env = environment(folder)
    times = []
    for n in range(15):
        (root / "file1.txt").write_text(f"changed {n}\n")
        begun = time.perf_counter()
        subprocess.run(["git", "commit", "-qam", "x"], cwd=root, env=env, check=True)
        times.append(time.perf_counter() - begun)
    bare = []
    for _ in range(15):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.perf_counter() - begun)
    commit, nothing = (statistics.median(values) * 1000 for values in (times, bare))
    print(f"for scale: git commit {commit:.1f} ms, python -c pass {nothing:.1f} ms")


SCRIPT = """
stories:
  "*":
    - implement:
        - append: {path: work.txt, text: "x\\n"}
        - claim: done
"""


def per_iteration(folder: Path, stories: int) -> None:
    root = project(folder, "many", stories, SCRIPT)
    records, _ = ralph(folder, root)
    costs: list[float] = []
    decided: float | None = None
    agent = 0.0
    for record in records:
        event = record["event"]
        if event["type"] == "AgentEnded":
            agent = event["ended"]["seconds"]
        elif event["type"] == "Decided":
            if decided is not None:
                costs.append(record["t"] - decided - agent)
            decided, agent = record["t"], 0.0
    ms = [cost * 1000 for cost in costs]
    tenth = max(len(ms) // 10, 1)
    print(f"per iteration beyond the agent ({len(ms)} iterations, decision to decision):")
    print(f"  median {statistics.median(ms):.1f} ms, p90 {sorted(ms)[int(len(ms) * 0.9)]:.1f} ms")
    first, last = statistics.median(ms[:tenth]), statistics.median(ms[-tenth:])
    print(f"  first tenth {first:.1f} ms, last tenth {last:.1f} ms, ratio {last / first:.2f}")


def start(folder: Path, stories: int) -> None:
    root = project(folder, f"start{stories}", stories, SCRIPT)
    times = []
    for _ in range(7):
        records, begun = ralph(folder, root, "--once")
        times.append(next(r["t"] for r in records if r["event"]["type"] == "AgentStarted") - begun)
    median, best = statistics.median(times) * 1000, min(times) * 1000
    print(f"start of `ralph run` to start of the agent, {stories} stories: median {median:.0f} ms, best {best:.0f} ms")


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
    root = project(folder, "loud", 1, script)
    begun = time.perf_counter()
    ralph(folder, root)
    took = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    print(f"an agent that prints {megabytes} MB: largest process {peak:.0f} MB, {took:.1f} s")


if __name__ == "__main__":
    main()
