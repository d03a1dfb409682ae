"""The course of bench/efficacy.py: a project with a plan, the loops that go through it, and the truth at the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from liar import draw, is_true, right, story_tests, unit_tests  # type: ignore[import-not-found]

LIAR = Path(__file__).resolve().parent / "liar.py"
MOST_TRIES = 50
PATIENCE = 1.5
"""Seconds that a session may take. The agent needs a few hundredths, but for those that hang."""
CHECK = """# The tests of one story, or of everything that is there.
export PYTHONPATH=src
if [ $# -gt 0 ]; then
    python3 -S -B "tests/test_m$1.py"
else
    python3 -S -B tests/run.py
fi
"""
RUN = """import os
import runpy

for name in sorted(os.listdir("src")):
    if name.startswith("m"):
        runpy.run_path(os.path.join("tests", "test_" + name))
"""
UNIT_TESTS = "PYTHONPATH=src python3 -B -m unittest discover -s tests -v"
"""The only check of the lazy agent's project, over the tests that the agent adds."""


class Outcome(NamedTuple):
    claimed: int
    """Stories called done."""
    true: int
    """Of these, really done."""
    calls: int
    """Agent processes."""
    reviews: int = 0
    """Of these, reviews."""
    false: tuple[int, ...] = ()
    """The stories that are called done and are not."""
    proven: tuple[int, ...] = ()
    """The stories that are called done and have a witness, so that no reviewer alone decided."""


def floor_calls(seed: int, stories: int, character: str = "liar") -> int:
    """Sessions until the first one that really does each story: what an ideal loop needs, which sees the truth."""
    calls = 0
    for story in range(1, stories + 1):
        tried = 0
        while not is_true(*draw(seed, story, tried, character)):
            tried += 1
        calls += tried + 1
    return calls


PLANS = {"feature": ".ralph/gauntlet/prd.json", "tasks.json": ".ralph/gauntlet/tasks.json"}


def project(folder: Path, stories: int, layout: str = "feature", *, is_lazy: bool = False, own: bool = True) -> Path:
    """`own`: each story has its own check. `is_lazy`: the agent is to write the tests; otherwise they are there."""
    root = folder / "project"
    for name in ("src", "tests", ".ralph/gauntlet"):
        (root / name).mkdir(parents=True)
    (folder / "memory").mkdir()
    (folder / "home").mkdir()
    (folder / "bin").mkdir()
    (folder / "bin/python3").symlink_to(os.path.realpath(sys.executable))  # no shim in between
    listed: list[dict[str, Any]] = []
    for n in range(1, stories + 1):
        if not is_lazy:
            (root / f"tests/test_m{n}.py").write_text(story_tests(n))
        listed.append({"id": f"S-{n}", "title": f"Module {n}", "acceptanceCriteria": [f"f(x) is x * {n} + {n}"],
                       "priority": n, "passes": False, "notes": ""})  # fmt: skip
        if own:
            listed[-1]["verify"] = f"sh check.sh {n}"
        if layout == "tasks.json":
            listed[-1] |= {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
    head = {"project": "gauntlet", "branchName": "main", "description": "d"}
    if layout == "feature":
        head = {"feature": "gauntlet", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
    (root / PLANS[layout]).write_text(json.dumps(head | {"userStories": listed}, indent=1))
    if is_lazy:
        (root / "README.md").write_text("# Modules\n")
        (root / "src/start.py").write_text(right(1))
        (root / "tests/test_start.py").write_text(unit_tests(1).replace("m1", "start").replace("M1", "Start"))
    else:
        (root / "check.sh").write_text(CHECK)
        (root / "tests/run.py").write_text(RUN)
    (root / "src/.gitkeep").write_text("")  # a clone has no empty folders
    (root / ".gitignore").write_text("__pycache__/\n")
    return root


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_"))}
    who = {f"GIT_{a}_{b}": "b@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
    own = {
        "LIAR_MEMORY": str(folder / "memory"),
        "LIAR_PLAN": str(folder / "project/.ralph/gauntlet/prd.json"),
        "PATH": f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}",
        "HOME": str(folder / "home"),
        "RALPH_STATE_HOME": str(folder / "state"),
        "RALPH_TRUST": "1",
    }
    return env | who | own


def untrue(root: Path, stories: list[int]) -> list[int]:
    """Which of these stories do not hold, by tests that were never in the workspace."""
    hidden = root.parent / "hidden"
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir()
    if (root / "src").is_dir():
        shutil.copytree(root / "src", hidden / "src")
    fallen = []
    for n in stories:
        (hidden / f"test_m{n}.py").write_text(story_tests(n))
        command = [sys.executable, "-S", "-B", f"test_m{n}.py"]
        env = {"PYTHONPATH": "src", "HOME": str(hidden)}
        if subprocess.run(command, cwd=hidden, env=env, capture_output=True, check=False).returncode:
            fallen.append(n)
    return fallen


def outcome(root: Path, claimed: list[int], calls: int, reviews: int = 0) -> Outcome:
    fallen = untrue(root, claimed)
    return Outcome(len(claimed), len(claimed) - len(fallen), calls, reviews, tuple(fallen))


def naive(seed: int, stories: int, folder: Path, *, checks: bool = False) -> Outcome:
    """A loop as most are: a fresh session per story, done when the agent says so, and perhaps when its check passes."""
    root = project(folder, stories)
    env = environment(folder)
    claimed, calls = [], 0
    for n in range(1, stories + 1):
        for _ in range(MOST_TRIES):
            calls += 1
            said = _session(seed, root, env | {"RALPH_STORY": f"S-{n}"})
            if b"COMPLETE" in said and (not checks or _check(root, env)):
                claimed.append(n)
                break
    return outcome(root, claimed, calls)


def _session(seed: int, root: Path, env: dict[str, str]) -> bytes:
    command = [sys.executable, "-S", str(LIAR), str(seed)]
    try:
        return subprocess.run(command, cwd=root, env=env, capture_output=True, timeout=PATIENCE, check=False).stdout
    except subprocess.TimeoutExpired:
        return b""


def _check(root: Path, env: dict[str, str]) -> bool:
    return subprocess.run(["sh", "check.sh"], cwd=root, env=env, capture_output=True, check=False).returncode == 0


def ralph(
    seed: int,
    stories: int,
    folder: Path,
    *,
    tamper: str = "review",
    reviewer: str = "",
    is_bounded: bool = False,
    layout: str = "feature",
    character: str = "liar",
    only_project: bool = False,
) -> Outcome:
    """`ralph run`, with bounds wide enough for an agent like this or, `is_bounded`, with its default ones.

    `only_project`: stories have no checks of their own, and the layout's default decides about reviews."""
    is_lazy = character == "lazy"
    root = project(folder, stories, layout, is_lazy=is_lazy, own=not only_project)
    plan_file = PLANS[layout]
    settings: dict[str, Any] = {
        "agent": {"name": "command", "env": ["LIAR_MEMORY", "LIAR_PLAN"],
                  "command": [sys.executable, "-S", str(LIAR), str(seed), reviewer or "blind", character]},
        "checks": [{"name": "all", "command": UNIT_TESTS if is_lazy else "sh check.sh"}],
        "timeout": f"{PATIENCE}s",
        "tamper": tamper,
        "review": {} if only_project else {"enabled": bool(reviewer), "cap": 100},
        "rate_limit_per_hour": 0,
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
    }  # fmt: skip
    if not is_bounded:
        settings |= {
            "max_loops_per_task": 0,
            "max_iterations": 10_000,
            "max_allowed_iterations": 10_000,
            "circuit_breaker": {"no_progress_threshold": 0, "same_error_threshold": 0},
        }
    (root / ".ralph/config.yaml").write_text(json.dumps(settings))
    env = environment(folder) | {"LIAR_PLAN": str(root / plan_file)}
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)
    command = [sys.executable, "-m", "ralph", "run", "--json"]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=False)
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    if not events or events[-1]["type"] != "RunEnded":
        sys.exit(f"the run failed: {done.stderr.decode()}")
    begun = [event["mode"] for event in events if event["type"] == "IterationStarted"]
    calls = sum(event["type"] == "AgentStarted" for event in events)
    plan = json.loads((root / plan_file).read_text())
    claimed = [int(story["id"][2:]) for story in plan["userStories"] if story["passes"]]
    done_at = {event["story"]: event["grade"] for event in events if event["type"] == "IterationEnded"}
    proven = tuple(n for n in claimed if done_at.get(f"S-{n}") in ("proven", "witnessed"))
    return outcome(root, claimed, calls, begun.count("review"))._replace(proven=proven)


ONLY_PROJECT = {"only_project": True, "reviewer": "honest", "is_bounded": True}
LOOPS: dict[str, tuple[str, Callable[..., Outcome], dict[str, Any]]] = {
    "naive": ("a loop that believes the agent", naive, {}),
    "naive-check": ("the same, with a check", naive, {"checks": True}),
    "ralph": ("Ralph, review off", ralph, {}),
    "ralph-review": ("Ralph, review on, honest reviewer", ralph, {"reviewer": "honest"}),
    "ralph-blind": ("Ralph, review on, blind reviewer", ralph, {"reviewer": "blind"}),
    "ralph-hostile": ("Ralph, review on, hostile one", ralph, {"reviewer": "hostile"}),
    "ralph-default": ("Ralph, default bounds, tasks.json", ralph, {"is_bounded": True, "layout": "tasks.json"}),
    "ralph-feature": ("Ralph, default bounds, feature", ralph, {"is_bounded": True}),
    "ralph-project": ("Ralph, only a project-wide check", ralph, ONLY_PROJECT),
    "ralph-lazy": ("Ralph, the same, lazy agent", ralph, ONLY_PROJECT | {"character": "lazy"}),
    "ralph-no-tamper": ("Ralph, tamper check off", ralph, {"tamper": "off"}),
}


def character_of(variant: str) -> str:
    return str(LOOPS[variant][2].get("character", "liar"))


def run(variant: str, seed: int, stories: int, keep: Path | None = None) -> Outcome:
    """One plan through one loop, in a folder of its own. `keep`: where it stays when something is wrong."""
    _, loop, settings = LOOPS[variant]
    with tempfile.TemporaryDirectory(prefix="gauntlet-", ignore_cleanup_errors=True) as name:
        found = loop(seed, stories, Path(name), **settings)
        if keep is not None and (found.false or found.true < stories):
            kept = keep / f"{variant}-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(name, kept, symlinks=True)
        return found
