"""The figures of bench/parallel.py: several workers against one, and the start of a worker."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PLAN = ".ralph/many/prd.json"


class Measured(NamedTuple):
    seconds: float
    starts: list[float]
    """Seconds that each worker needed from its order to begin until it was ready."""
    until_ready: float
    """Seconds from the start of the run until the last worker was ready."""
    queue: float
    """Mean of the seconds between an accepted candidate and its end."""


def project(folder: Path, stories: int, seconds: float, files: int = 0) -> Path:
    root = folder / "project"
    (root / ".ralph/many").mkdir(parents=True)
    listed = [
        {"id": f"S-{n}", "title": f"Story {n}", "description": "", "acceptanceCriteria": ["it is there"],
         "priority": n, "passes": False, "dependsOn": []}
        for n in range(1, stories + 1)
    ]  # fmt: skip
    head = {"feature": "many", "branchName": "main", "description": "d", "createdAt": "2026-01-01T00:00:00Z"}
    (root / PLAN).write_text(json.dumps(head | {"userStories": listed}))
    script: dict[str, Any] = {"stories": {}}
    for n in range(1, stories + 1):
        work = [{"sleep": seconds}, {"write": {"path": f"f{n}.txt", "text": f"{n}\n"}}, {"claim": "done"}]
        script["stories"][f"S-{n}"] = [{"implement": work}]
    (folder / "script.yaml").write_text(json.dumps(script))
    settings = {
        "agent": {"name": "scripted", "script": str(folder / "script.yaml")},
        "checks": [{"name": "check", "command": "test -f readme.txt"}],
        "proof": {"minimum": "unproven"},
        "archive": {"on_complete": False},
    }
    (root / ".ralph/config.yaml").write_text(json.dumps(settings))
    (root / "readme.txt").write_text("hello\n")
    for n in range(files):
        path = root / f"src/part{n // 50}/file{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def f{n}(x):\n    return x + {n}\n" * 20)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=root, env=environment(folder), check=True)
    return root


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    return env | who | {"HOME": str(folder), "RALPH_STATE_HOME": str(folder / "state"), "RALPH_TRUST": "1"}


def measure(folder: Path, root: Path, workers: int) -> Measured:
    begun = time.monotonic()
    command = [sys.executable, "-m", "ralph", "run", "--json", "--parallel", str(workers)]
    done = subprocess.run(command, cwd=root, env=environment(folder), capture_output=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"the run with {workers} workers failed: {done.stderr.decode()[-1000:]}")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    starts = [record["event"]["seconds"] for record in records if record["event"]["type"] == "WorkerStarted"]
    ready = [record["t"] for record in records if record["event"]["type"] == "WorkerStarted"][:workers]
    queued = {one["event"]["iteration"]: one["t"] for one in records if one["event"]["type"] == "Queued"}
    ended = {one["event"]["iteration"]: one["t"] for one in records if one["event"]["type"] == "IterationEnded"}
    waits = [ended[number] - queued[number] for number in queued if number in ended]
    return Measured(
        seconds,
        starts,
        max(ready) - records[0]["t"] if ready else 0,
        statistics.mean(waits) if waits else 0,
    )


def imports() -> float:
    """Seconds to start Python and import what a worker needs, the best of five."""
    command = [sys.executable, "-c", "import ralph.run.worker"]
    return min(_timed(command) for _ in range(5))


def _timed(command: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - begun
