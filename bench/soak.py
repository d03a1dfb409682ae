"""One long run under everything that goes wrong: limits, crashes, hangs, 5xx, lies, empty answers, stray processes.

A scripted agent with seeded random behaviour works through a plan until every story is done. While it does, the loop's
memory, open files and processes are read from outside; at the end the journal, the repository and the state folder are
compared with what the script says must have happened. Exits with 1 when something leaks or a total is wrong."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ENDS = {"done": 66, "limit": 6, "unreachable": 2, "crash": 7, "hang": 2, "lie": 7, "empty": 2, "stray": 4, "loud": 4}
"""What a session comes to, in percent."""
COST = 0.01
FREE = ("limit", "unreachable", "empty")
EVERY = 50


class Sample(NamedTuple):
    iteration: int
    memory: int
    files: int
    children: int
    state: int
    objects: int


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/soak.py --iterations 1000 --seed 7",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--iterations", type=int, default=1000, metavar="N", help="approximate number of sessions (1000)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ralph-soak-"))
    try:
        return soak(folder, args.iterations, random.Random(args.seed))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def soak(folder: Path, iterations: int, chance: random.Random) -> int:
    stories = draw(iterations, chance)
    sessions = sum(len(ends) for ends in stories.values())
    root = project(folder, stories)
    env = environment(folder)
    command = [sys.executable, "-m", "ralph", "run", "--json", "-n", str(2 * sessions)]
    command += ["--max-allowed-iterations", str(2 * sessions), "--max-loops-per-task", "0", "-r", "0"]
    samples, ended = watch(folder, root, command, env)
    return report(folder, root, env, stories, samples, ended)


def draw(iterations: int, chance: random.Random) -> dict[str, list[str]]:
    """Story → how each of its sessions ends; the last one is always the good one."""
    stories: dict[str, list[str]] = {}
    left = iterations
    while left > 0:
        ends: list[str] = []
        while not ends or ends[-1] != "done":
            ends.append(chance.choices(list(ENDS), list(ENDS.values()))[0] if len(ends) < 6 else "done")
        stories[f"S-{len(stories) + 1}"] = ends
        left -= len(ends)
    return stories


def actions(story: str, end: str) -> list[Any]:
    good = [{"write": {"path": f"src/{story}.txt", "text": f"{story}\n"}}, {"cost": {"usd": COST, "input": 100}}]
    mess = {"write": {"path": f"src/{story}.half", "text": "half\n"}}
    plays: dict[str, list[Any]] = {
        "done": [*good, {"claim": "done"}],
        "limit": [{"limit": {"seconds": 0}}],
        "unreachable": [{"api_error": 529}],
        "crash": [mess, {"crash": {"signal": "KILL"}}],
        "hang": [mess, {"hang": {}}],
        "lie": ["lie"],
        "empty": ["empty"],
        "stray": [mess, {"daemon": {}}, {"crash": 3}],
        "loud": [mess, {"print": {"size": 5_000_000}}, {"crash": 1}],
    }
    return plays[end]


def project(folder: Path, stories: dict[str, list[str]]) -> Path:
    root = folder / "project"
    (root / ".ralph" / "soak").mkdir(parents=True)
    listed = [
        {
            "id": story,
            "title": story,
            "acceptanceCriteria": ["it is there"],
            "priority": n,
            "passes": False,
            "notes": "",
        }
        for n, story in enumerate(stories, 1)
    ]
    head = {"feature": "soak", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
    (root / ".ralph/soak/prd.json").write_text(json.dumps(head | {"userStories": listed}))
    script = {
        "acts": str(Path(__file__).resolve().parent.parent / "tests/support/stunts.py"),
        "stories": {story: [{"implement": actions(story, end)} for end in ends] for story, ends in stories.items()},
    }
    (root / ".ralph/script.yaml").write_text(json.dumps(script))
    settings = {
        "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
        "circuit_breaker": {"no_progress_threshold": 0, "same_error_threshold": 0, "crash_loop_threshold": 0},
        "checks": [{"name": "no halves", "command": "! ls src/*.half 2>/dev/null"}],
        "transport_retries": 1000,
        "timeout": "4s",
        "idle_timeout": "2s",
        "archive": {"on_complete": False},
        "branch": {"auto_create": False},
    }
    (root / ".ralph/config.yaml").write_text(json.dumps(settings))
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=root, env=environment(folder), check=True)
    return root


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    return env | who | {"HOME": str(folder / "home"), "RALPH_STATE_HOME": str(folder / "state"), "RALPH_TRUST": "1"}


def watch(
    folder: Path, root: Path, command: list[str], env: dict[str, str]
) -> tuple[list[Sample], list[dict[str, Any]]]:
    samples: list[Sample] = []
    ended: list[dict[str, Any]] = []
    with subprocess.Popen(command, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b'"type":"IterationEnded"' not in line:
                continue
            ended.append(json.loads(line)["event"])
            if len(ended) % EVERY == 1:
                samples.append(sample(folder, root, process.pid, len(ended)))
                show(samples[-1])
        errors = process.stderr.read().decode() if process.stderr else ""
    if process.returncode:
        print(f"the run ended with {process.returncode}\n{errors[-2000:]}")
    return samples, ended


def sample(folder: Path, root: Path, pid: int, iteration: int) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - the names are not needed
    return Sample(iteration, memory, files, len(children), size(folder / "state"), size(root / ".git"))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1024


def show(found: Sample) -> None:
    print(
        f"iteration {found.iteration:>5}: {found.memory / 1024:6.1f} MB, {found.files} files open, "
        f"{found.children} children, state {found.state} KB, .git {found.objects} KB",
        flush=True,
    )


def report(
    folder: Path,
    root: Path,
    env: dict[str, str],
    stories: dict[str, list[str]],
    samples: list[Sample],
    ended: list[dict[str, Any]],
) -> int:
    wrong = list(totals(root, env, stories, ended)) + list(leaks(samples))
    kinds: dict[str, int] = {}
    for event in ended:
        kinds[event["kind"]] = kinds.get(event["kind"], 0) + 1
    print(f"{len(ended)} iterations: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")
    if len(samples) > 1:
        first, last = samples[0], samples[-1]
        done = max(last.iteration - first.iteration, 1)
        print(f"memory {first.memory / 1024:.1f} → {last.memory / 1024:.1f} MB, files {first.files} → {last.files}")
        print(
            f"growth an iteration: state {(last.state - first.state) / done:.2f} KB, "
            f".git {(last.objects - first.objects) / done:.2f} KB"
        )
    for line in wrong:
        print(f"WRONG: {line}")
    print("no leak, and every total is right" if not wrong else f"{len(wrong)} wrong")
    return 1 if wrong else 0


def totals(root: Path, env: dict[str, str], stories: dict[str, list[str]], ended: list[dict[str, Any]]) -> list[str]:
    wrong = []
    sessions = sum(len(ends) for ends in stories.values())
    plan = json.loads((root / ".ralph/soak/prd.json").read_text())
    undone = [story["id"] for story in plan["userStories"] if not story["passes"]]
    if undone:
        wrong.append(f"not done: {', '.join(undone[:10])}")
    if len(ended) != sessions:
        wrong.append(f"{len(ended)} iterations, and the script has {sessions} sessions")
    free = sum(event["kind"] in ("limit", "transport") for event in ended)
    if free != sum(end in FREE for ends in stories.values() for end in ends):
        wrong.append(f"{free} iterations cost no attempt")
    cost = sum(event["cost_usd"] or 0 for event in ended)
    if abs(cost - COST * len(stories)) > COST / 2:
        wrong.append(f"the journal says {cost:.2f} dollars, and the script {COST * len(stories):.2f}")
    log = subprocess.run(["git", "log", "--format=%(trailers:key=Ralph-Story,valueonly)"], cwd=root, env=env,
                         capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    if sorted(log) != sorted(stories):
        wrong.append(f"{len(log)} commits of stories, and {len(stories)} stories")
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, env=env, capture_output=True, text=True, check=True
    )
    if status.stdout.strip():
        wrong.append(f"left in the tree: {status.stdout[:200]}")
    left = strays(root)
    if left:
        wrong.append(f"processes left behind: {left}")
    return wrong


def strays(root: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.path.realpath(entry / "cwd").startswith(str(root)):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def leaks(samples: list[Sample]) -> list[str]:
    """The first tenth is left out: memory that is allocated once is not a leak."""
    settled = samples[max(len(samples) // 10, 1) :]
    if len(settled) < 2:
        return []
    first, last = settled[0], settled[-1]
    wrong = []
    if last.memory > 1.25 * first.memory + 4096:
        wrong.append(f"memory grew from {first.memory} to {last.memory} KB")
    if last.files > first.files + 2:
        wrong.append(f"open files grew from {first.files} to {last.files}")
    if last.children > 2:
        wrong.append(f"{last.children} children")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
