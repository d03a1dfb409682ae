"""Seeded runs for bench/parallel.py: plans that collide, an agent that lies, and kill -9 of the driver and of workers.

Everything that a seed decides is drawn before the run starts: the plan, what each session does, and which process is
killed after which event. At the end tests and refs that no run has seen decide whether anything was lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from gauntlet import environment, project, untrue  # type: ignore[import-not-found]

AGENT = Path(__file__).resolve().parent / "colliding_agent.py"
PLAN = ".ralph/gauntlet/prd.json"
MOST_RUNS = 8
PATIENCE = 180
EVENTS = ("IterationStarted", "AgentStarted", "Judged", "Queued", "QueueProving", "QueueProved", "Landing", "Settling",
          "Committed", "IterationEnded")  # fmt: skip
COUNT = """
lines = [line.split()[0][6:] for line in open("src/lines.py")] if os.path.exists("src/lines.py") else []
if lines != sorted(set(lines), key=int, reverse=True):
    raise SystemExit(f"src/lines.py is not in order: {lines}")
names = [name for name in os.listdir("src") if name.startswith("slot_")]
slots = {name[5:-3]: open(os.path.join("src", name)).read().strip() for name in names}
if len(slots) != len(set(slots.values())):
    raise SystemExit(f"two stories have taken the same slot: {slots}")
for number in [int(name[1:-3]) for name in os.listdir("src") if name.startswith("m")]:
    if number in LINES and str(number) not in lines:
        raise SystemExit(f"the line of story {number} is missing")
    if number in SLOTS and str(number) not in slots:
        raise SystemExit(f"the slot of story {number} is missing")
"""


class Kill(NamedTuple):
    """After so many events of this type, and so many seconds more."""

    who: str
    event: str
    after: int
    seconds: float


class Drawn(NamedTuple):
    stories: int
    depends_on: dict[int, list[int]]
    lines: list[int]
    slots: list[int]
    kills: list[Kill | None]
    """One for each run of the command, until one is left alone."""


class Outcome(NamedTuple):
    seed: int
    stories: int
    done: int
    runs: int
    kills: int
    returned: int
    seconds: float
    problems: tuple[str, ...]


def draw(seed: int) -> Drawn:
    chance = random.Random(f"parallel/{seed}")
    stories = chance.randint(8, 14)
    numbers = range(1, stories + 1)
    depends_on = {n: sorted(chance.sample(range(1, n), chance.choice((1, 1, 2)) if n > 2 else 1))
                  for n in numbers if n > 1 and chance.random() < 0.25}  # fmt: skip
    lines = sorted(chance.sample(numbers, chance.randint(0, 5)))
    slots = sorted(chance.sample(numbers, chance.choice((0, 2, 3, 4))))
    kills: list[Kill | None] = []
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3))):
        who = chance.choice(("driver", "worker", "worker"))
        event = chance.choice(EVENTS)
        most = 3 if event.startswith("Queue") or event in ("Landing", "Settling") else stories
        kills.append(Kill(who, event, chance.randint(1, most), round(chance.choice((0, 0, 0.02, 0.1, 0.4)), 2)))
    return Drawn(stories, depends_on, lines, slots, kills)


def make(folder: Path, seed: int, drawn: Drawn, workers: int) -> tuple[Path, dict[str, str]]:
    root: Path = project(folder, drawn.stories)
    plan = json.loads((root / PLAN).read_text())
    for story in plan["userStories"]:
        number = int(story["id"][2:])
        story["dependsOn"] = [f"S-{other}" for other in drawn.depends_on.get(number, ())]
    (root / PLAN).write_text(json.dumps(plan, indent=1))
    sets = f"LINES, SLOTS = {set(drawn.lines)!r}, {set(drawn.slots)!r}\n"
    (root / "tests/run.py").write_text((root / "tests/run.py").read_text() + sets + COUNT)
    settings: dict[str, Any] = {
        "agent": {"name": "command", "env": ["LIAR_MEMORY", "LIAR_PLAN", "LIAR_SHARED"],
                  "command": [sys.executable, "-S", str(AGENT), str(seed)]},
        "checks": [{"name": "all", "command": "sh check.sh"}],
        "parallel": workers,
        "timeout": "3s",
        "review": {"enabled": False},
        "rate_limit_per_hour": 0,
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
        "max_loops_per_task": 0,
        "max_iterations": 10_000,
        "max_allowed_iterations": 10_000,
        "circuit_breaker": {"no_progress_threshold": 0, "same_error_threshold": 0, "crash_loop_threshold": 0},
    }  # fmt: skip
    (root / ".ralph/config.yaml").write_text(json.dumps(settings))
    shared = json.dumps({"lines": drawn.lines, "slots": drawn.slots})
    env = environment(folder) | {"LIAR_PLAN": PLAN, "LIAR_SHARED": shared}
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)
    return root, env


class Driver:
    """One `ralph run --json`, and the kill that is meant for it."""

    def __init__(self, root: Path, env: dict[str, str], kill: Kill | None, log: Path) -> None:
        self._kill, self._seen, self._is_killed = kill, 0, False
        self.events: list[dict[str, Any]] = []
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ralph", "run", "--json"],
                cwd=root, env=env, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def finish(self) -> int | None:
        """Its exit code; None: it took too long."""
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.daemon = True
        timer.start()
        begun = time.monotonic()
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                event = json.loads(line)["event"]
                self.events.append(event)
                self._look(event)
        code = self.process.wait()
        timer.cancel()
        return None if time.monotonic() - begun > PATIENCE else code

    def _look(self, event: dict[str, Any]) -> None:
        kill = self._kill
        if kill is None or self._is_killed or event["type"] != kill.event:
            return
        self._seen += 1
        if self._seen < kill.after:
            return
        time.sleep(kill.seconds)
        pid = self.process.pid
        if kill.who == "worker":
            workers = sorted(_workers_of(pid))
            pid = workers[kill.after % len(workers)] if workers else 0
        if pid:
            self._is_killed = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def is_killed(self) -> bool:
        return self._is_killed


def _workers_of(driver: int) -> Iterable[int]:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and b"ralph.run.worker" in (entry / "cmdline").read_bytes():
                yield int(entry.name)


def run_seed(folder: Path, seed: int, workers: int = 4) -> Outcome:
    begun = time.monotonic()
    drawn = draw(seed)
    root, env = make(folder, seed, drawn, workers)
    kills, problems, events, runs, killed = [*drawn.kills], [], [], 0, 0
    while True:
        kill = kills.pop(0) if kills else None
        driver = Driver(root, env, kill, folder / "stderr.log")
        code = driver.finish()
        runs += 1
        killed += driver.is_killed
        events += driver.events
        if code is None:
            problems.append(f"run {runs} did not end within {PATIENCE} s")
            break
        if code == 0 or (code != -signal.SIGKILL and not kills) or runs >= MOST_RUNS:
            break
    if code:
        problems.append(f"the last run ended with {code}: {_tail(folder / 'stderr.log')}")
    left, deadline = _left(folder), time.monotonic() + 5
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        left = _left(folder)
    problems += [f"a process is left: {line}" for line in left]
    plan = json.loads((root / PLAN).read_text())
    done = [int(story["id"][2:]) for story in plan["userStories"] if story["passes"]]
    problems += inspect(folder, root, env, drawn, done, events)
    returned = sum(event["type"] == "IterationEnded" and event["kind"] == "returned" for event in events)
    return Outcome(
        seed, drawn.stories, len(done), runs, killed, returned, round(time.monotonic() - begun, 1), tuple(problems)
    )


def inspect(
    folder: Path, root: Path, env: dict[str, str], drawn: Drawn, done: list[int], events: list[dict[str, Any]]
) -> list[str]:
    """What is wrong at the end."""
    problems = [f"story {n} is called done and is not" for n in untrue(root, done)]
    open_ones = sorted(set(range(1, drawn.stories + 1)) - set(done))
    if open_ones:
        problems.append(f"open at the end: {open_ones}")
    accepted = [line for line in _git(root, env, "log", "--format=%s", "main").splitlines() if line.startswith("feat(")]
    problems += [f"accepted twice: {line}" for line in sorted(set(accepted)) if accepted.count(line) > 1]
    for n in done:
        if sum(line.startswith(f"feat(S-{n}):") for line in accepted) != 1:
            problems.append(f"story {n} is done without one commit of its own: {accepted}")
    if changes := _git(root, env, "status", "--porcelain"):
        problems.append(f"the checkout is not clean: {changes}")
    if _git(root, env, "symbolic-ref", "HEAD") != "refs/heads/main":
        problems.append("the checkout is on another branch")
    fresh = folder / "fresh"
    _git(folder, env, "clone", "-q", str(root), str(fresh))
    checked = subprocess.run(["sh", "check.sh"], cwd=fresh, env=env, capture_output=True, check=False)
    if checked.returncode:
        problems.append(f"the final tree fails its checks: {checked.stderr.decode()[-300:]}")
    for name in ("check.sh", "tests"):
        if _git(
            root, env, "diff", "--stat", _git(root, env, "rev-list", "--max-parents=0", "main"), "main", "--", name
        ):
            problems.append(f"{name} was changed")
    locks = [str(path) for path in folder.rglob("*.lock") if _is_held_or_git(path)]
    problems += [f"a lock is left: {path}" for path in locks]
    problems += _lost_commits(folder, root, env)
    runs = json.loads(_ralph(root, env, "runs", "list", "--json").stdout or "[]")
    for run in runs if isinstance(runs, list) else runs["runs"]:
        replayed = _ralph(root, env, "runs", "replay", run.get("id") or run.get("run"))
        if replayed.returncode:
            problems.append(f"the replay differs: {replayed.stdout[-400:]}{replayed.stderr[-300:]}")
    return problems


def _is_held_or_git(path: Path) -> bool:
    """git's own locks are files that exist only while they are held; Ralph's stay, and count as left if held."""
    if ".git" in path.parts or "repository" in path.parts:
        return True
    import fcntl

    with contextlib.suppress(OSError), path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _lost_commits(folder: Path, root: Path, env: dict[str, str]) -> list[str]:
    """Candidates that were not merged and that no ref of the user's repository or of the run's clone reaches."""
    named: dict[tuple[Path, int], str] = {}
    for journal in (folder / "state").glob("*/runs/*/events.jsonl"):
        for line in journal.read_text().splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)["event"]
                if event["type"] == "Queued":
                    named[journal, event["iteration"]] = event["commit"]
                elif event["type"] == "IterationEnded" and event["kind"] in ("accepted", "partial"):
                    named.pop((journal, event["iteration"]), None)
    reached: set[str] = set()
    for repo in [root, *(folder / "state").glob("*/clones/*/*")]:
        if repo.is_dir():
            reached |= set(_git(repo, env, "rev-list", "--all").split())
    lost = {number: commit for (_, number), commit in named.items() if commit not in reached}
    return [f"no ref reaches candidate {commit[:9]} of iteration {number}" for number, commit in lost.items()]


def _left(folder: Path) -> list[str]:
    """Processes that work below this folder, or have it in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if f"={folder}/state".encode() in (entry / "environ").read_bytes():
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()[:100]}")
    return found


def _git(cwd: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _ralph(root: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ralph", *words]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-400:]
