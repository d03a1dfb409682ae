"""Which tests `scripts/test --fast` runs: those of what changed, then a core set, then whatever uses what changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = (
    "tests/test_architecture.py",
    "tests/engine/test_decide.py",
    "tests/engine/test_judge.py",
    "tests/engine/test_schedule.py",
    "tests/host/test_snapshot.py",
    "tests/cli/test_main.py",
)
"""Fast tests of what everything else stands on."""
MOST = 12
"""Files of tests that are run because they use what changed."""
LAST_START = 35.0
"""Seconds after which no further group of tests is started."""


def changed_files() -> list[str]:
    """Since this branch left main, committed or not; on main what is not committed, else the last commit."""
    new = _git("ls-files", "--others", "--exclude-standard")
    base = next(iter(_git("merge-base", "HEAD", "main")), "HEAD")
    changed = _git("diff", "--name-only", base) or new or _git("diff", "--name-only", "HEAD~1")
    return sorted({*changed, *new})


def _git(*args: str) -> list[str]:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def groups(changed: Iterable[str], root: Path = ROOT) -> Iterator[tuple[str, list[str]]]:
    """Title and files of each group, the most important first."""
    changed = list(changed)
    tests = {path.relative_to(root).as_posix(): path for path in sorted((root / "tests").rglob("test_*.py"))}
    modules = [path for path in changed if path.startswith("src/ralph/") and path.endswith(".py")]
    own = {path for path in changed if path in tests}
    for module in modules:
        parts = Path(module).relative_to("src/ralph")
        own |= {name for name in (f"tests/{parts.parent}/test_{parts.name}",) if name in tests}
    yield "what changed", sorted(own)
    yield "the core", [name for name in CORE if name in tests and name not in own]
    dotted = [module.removeprefix("src/").removesuffix(".py").replace("/", ".") for module in modules]
    users = {
        name: sum(f"from {module} import" in path.read_text() for module in dotted) for name, path in tests.items()
    }
    ordered = sorted((name for name, count in users.items() if count), key=lambda name: (-users[name], name))
    yield "what uses it", [name for name in ordered if name not in own and name not in CORE][:MOST]


def command(files: list[str], options: list[str]) -> list[str]:
    workers = ["-n", str(min(os.cpu_count() or 1, 4))] if len(files) > 2 else []
    return [sys.executable, "-m", "pytest", "-q", *workers, *options, *files]
