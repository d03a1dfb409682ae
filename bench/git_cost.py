"""What git costs the loop in each iteration, beside a plain `git commit` in the same repository.

python bench/git_cost.py [files ...]        default: 100 5000
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from ralph.host.git.checkpoint import take
from ralph.host.git.commits import commit_story
from ralph.host.git.objects import changes
from ralph.host.git.repo import identify
from ralph.host.git.rescue import roll_back
from ralph.host.git.snapshot import snapshot_tree

ROUNDS = 15
T = TypeVar("T")
P = ParamSpec("P")


def main(sizes: list[int]) -> None:
    print(f"{'files':>6}  {'what':<28} {'ms':>8}  {'best':>8}  x plain commit")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), size)


def measure(folder: Path, size: int) -> None:
    root, index = folder / "project", folder / "state" / "index"
    index.parent.mkdir()
    make_project(root, size)
    repo = identify(root)
    times: dict[str, list[float]] = {}

    def timed(what: str, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        begun = time.perf_counter()
        result = work(*args, **named)
        times.setdefault(what, []).append((time.perf_counter() - begun) * 1000)
        return result

    timed("identify the repository", identify, root)
    timed("first checkpoint", take, repo, index)
    for number in range(ROUNDS):
        change(root, f"plain {number}\n")
        timed("plain git commit -a", git, root, "commit", "-qam", "plain")
    for number in range(ROUNDS):
        checkpoint = timed("checkpoint", take, repo, index)
        change(root, f"story {number}\n")
        tree = timed("snapshot, one file changed", snapshot_tree, repo, index)
        timed("list of changes", changes, repo, checkpoint.tree, tree)
        timed("commit", commit_story, repo, checkpoint=checkpoint, tree=tree, message="x", index_file=index)
    for number in range(ROUNDS):
        checkpoint = take(repo, index)
        change(root, f"bad {number}\n")
        (root / "new.py").write_text("new\n")
        timed("save and roll back", roll_back, repo, f"bench/{number}", index, checkpoint, "bench")
    accepted = ("checkpoint", "snapshot, one file changed", "list of changes", "commit")
    times["an accepted iteration"] = [sum(parts) for parts in zip(*(times[name] for name in accepted), strict=True)]
    plain = statistics.median(times["plain git commit -a"])
    for what, taken in times.items():
        middle = statistics.median(taken)
        print(f"{size:>6}  {what:<28} {middle:8.1f}  {min(taken):8.1f}  {middle / plain:6.2f}")


def make_project(root: Path, size: int) -> None:
    for number in range(size):
        path = root / f"d{number // 50}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 40)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Bench")
    git(root, "config", "user.email", "bench@example.test")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")


def change(root: Path, text: str) -> None:
    (root / "d0" / "f1.py").write_text(text)


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=root, check=True, capture_output=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 5000])
