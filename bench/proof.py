"""What proof costs: the seconds from the end of the agent to the verdict, divided by the seconds of the plain checks.

A generated Python project of 1,000 files is tested by pytest. The scripted agent does one small story in each of two
runs: `source` changes a function and has a check of its own, `tests` also adds a test and edits one. The same checks
are run by hand before and after each run. What a run does once (baseline, the checkout and its self-test) is shown
beside it and is not part of the ratio."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

EPILOG = """examples:
  python bench/proof.py                       both changes, once: about two minutes
  python bench/proof.py --change tests --runs 3
  python bench/proof.py --files 100 --seconds 1     a first look
"""
CHECK = "python -m pytest -q"
TARGETS = {"source": 1.5, "tests": 2.5}
MODULE = """def value(x):
    return x * {n} + {n}


def text(x):
    return f"{{value(x)}}"
"""
TEST = """import time

from pkg{folder}.m{n} import text, value


def test_value():
    assert value(1) == {twice}


def test_text():
    time.sleep({pause})
    assert text(0) == "{n}"
"""
NEW_FUNCTION = "\n\ndef half(x):\n    return value(x) / 2\n"
NEW_TEST = "from pkg0.m0 import half\n\n\ndef test_half():\n    assert half(3) == 0\n"
OWN_CHECK = "PYTHONPATH=src python -c 'from pkg0.m1 import half; assert half(1) == 1'"

SHIM = """#!/bin/sh
start=$(date +%s.%N)
{python} "$@"
code=$?
echo "$start $(date +%s.%N)" >>{log}
exit $code
"""


class Cost(NamedTuple):
    change: str
    verdict: str
    plain: float
    """Seconds of the checks, run by hand."""
    proof: float
    """Seconds from the end of the agent to the verdict."""
    start: float
    """Seconds from the start of the run to the first iteration."""
    end: float
    """Seconds from the verdict to the end of the run."""
    passes: tuple[float, ...]
    """The seconds of each process that the proof started to test: passes, witness, emptied functions, planted test."""

    @property
    def ratio(self) -> float:
        return self.proof / self.plain


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=1000, metavar="N", help="files of the project (default: 1000)")
    parser.add_argument("--seconds", type=float, default=3, metavar="N", help="what the tests wait (default: 3)")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="runs of each change (default: 1)")
    parser.add_argument("--change", action="append", choices=list(TARGETS), help="only this one; can be repeated")
    args = parser.parse_args()
    is_within = True
    for change in args.change or list(TARGETS):
        costs = [measure(change, args.files, args.seconds) for _ in range(args.runs)]
        ratio = statistics.median(cost.ratio for cost in costs)
        is_within &= ratio <= TARGETS[change]
        for cost in costs:
            show(cost)
        print(f"  {change}: {ratio:.2f} x the plain checks (target: at most {TARGETS[change]})\n", flush=True)
    return 0 if is_within else 1


def show(cost: Cost) -> None:
    print(
        f"{cost.change}: {cost.verdict}; plain checks {cost.plain:.2f} s, proof {cost.proof:.2f} s ({cost.ratio:.2f} x)"
    )
    print(f"  once a run: {cost.start:.2f} s before the first story, {cost.end:.2f} s after the verdict")
    print(f"  {len(cost.passes)} test processes in the proof: {', '.join(f'{one:.2f} s' for one in cost.passes)}")


def measure(change: str, files: int, seconds: float) -> Cost:
    with tempfile.TemporaryDirectory(prefix="bench-proof-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        root = project(folder, change, files, seconds)
        env = environment(folder)
        commands = [CHECK, OWN_CHECK] if change == "source" else [CHECK]
        by_hand(root, env, [CHECK])  # warm: byte code is compiled once
        before = by_hand(root, env, [CHECK])
        records = ralph(root, env)
        after = by_hand(root, env, commands)
        return read(change, records, statistics.mean([before, after]), logged(folder))


def project(folder: Path, change: str, files: int, seconds: float) -> Path:
    """Nine modules to a file of tests."""
    root = folder / "project"
    tests = max(files // 10, 2)
    for n in range(files - tests):
        package = root / f"src/pkg{n // 100}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"m{n}.py").write_text(MODULE.format(n=n))
    (root / "tests").mkdir()
    for n in range(tests):
        text = TEST.format(n=n, twice=2 * n, folder=n // 100, pause=seconds / tests)
        (root / f"tests/test_m{n}.py").write_text(text)
    options = ('pythonpath = ["src"]', 'testpaths = ["tests"]', 'addopts = "-p no:hypothesispytest"')
    # Ralph's own environment has that plugin, and it doubles the start of pytest.
    (root / "pyproject.toml").write_text("\n".join(["[tool.pytest.ini_options]", *options, ""]))
    (root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    (root / "README.md").write_text("# A project\n")
    story: dict[str, Any] = {"id": "S-1", "title": "Halve values", "acceptanceCriteria": ["half(x) is value(x) / 2"],
                             "priority": 1, "passes": False, "notes": "",
                             "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}  # fmt: skip
    actions: list[dict[str, Any]]
    if change == "source":
        story["verify"] = OWN_CHECK
        actions = [{"append": {"path": "src/pkg0/m1.py", "text": NEW_FUNCTION}}]
    else:
        edit = {"path": "tests/test_m1.py", "old": "assert value(1) == 2\n", "new": "assert value(1) == 2 * value(0)\n"}
        actions = [
            {"append": {"path": "src/pkg0/m0.py", "text": NEW_FUNCTION}},
            {"write": {"path": "tests/test_half.py", "text": NEW_TEST}},
            {"replace": edit},
        ]
    plan = {"project": "bench", "branchName": "main", "description": "d", "userStories": [story]}
    (root / ".ralph/bench").mkdir(parents=True)
    (root / ".ralph/bench/tasks.json").write_text(json.dumps(plan, indent=1))
    (root / ".ralph/script.yaml").write_text(
        json.dumps({"stories": {"*": [{"implement": [*actions, {"claim": "done"}]}]}})
    )
    settings = {
        "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
        "checks": [{"name": "tests", "command": CHECK}],
        "review": {"enabled": False},
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
    }
    (root / ".ralph/config.yaml").write_text(json.dumps(settings))
    env = environment(folder)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)
    return root


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_", "PYTEST_"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    (folder / "home").mkdir(exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/python").write_text(SHIM.format(python=sys.executable, log=folder / "processes.log"))
    (folder / "bin/python").chmod(0o755)
    own = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}",
        "HOME": str(folder / "home"),
        "RALPH_STATE_HOME": str(folder / "state"),
        "RALPH_TRUST": "1",
    }
    return env | who | own


def by_hand(root: Path, env: dict[str, str], commands: list[str]) -> float:
    begun = time.perf_counter()
    for command in commands:
        done = subprocess.run(["sh", "-c", command], cwd=root, env=env, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"`{command}` fails: {done.stdout.decode()}{done.stderr.decode()}")
    return time.perf_counter() - begun


def ralph(root: Path, env: dict[str, str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "ralph", "run", "--json"]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=False)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    if not records or records[-1]["event"]["type"] != "RunEnded":
        sys.exit(f"the run failed: {done.stdout.decode()[-2000:]}{done.stderr.decode()}")
    return records


def logged(folder: Path) -> list[tuple[float, float]]:
    """Start and end of each `python`: the journal has only the checks of the first pass."""
    lines = (folder / "processes.log").read_text().splitlines()
    return [(float(start), float(end)) for start, end in (line.split() for line in lines)]


def read(change: str, records: list[dict[str, Any]], plain: float, processes: list[tuple[float, float]]) -> Cost:
    """The times of the first iteration. A review that follows is a session of its own."""
    kinds = [record["event"]["type"] for record in records]
    ended, judged = kinds.index("AgentEnded"), kinds.index("Judged")
    times = [record["t"] for record in records]
    return Cost(
        change=change,
        verdict=records[judged]["event"]["verdict"]["kind"],
        plain=plain,
        proof=times[judged] - times[ended],
        start=times[kinds.index("IterationStarted")] - times[0],
        end=times[-1] - times[judged],
        passes=tuple(end - start for start, end in processes if times[ended] <= start <= times[judged]),
    )


if __name__ == "__main__":
    sys.exit(main())
