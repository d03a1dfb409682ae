"""Tries to escape from a sandbox, for real: every attempt of the table, and then ordinary work, which has to succeed.

    with_backend = lambda wall: Walled(bwrap, found.program, wall)
    outcomes = try_escapes(with_backend, backend="bwrap")
    outcomes += try_work(with_backend)
    for row in rows(outcomes): …        # (mark, group, what, detail)
    problems = [o for o in outcomes if not o.is_good]

An attempt escaped if its program says so or if something outside changed, whatever the program says. `controls=True`
runs each attempt without a sandbox first, to show that it can succeed; where it would do harm, with a stand-in.
Everything is temporary. It takes a few seconds with bubblewrap.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from ralph.core.text import one_line
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.start import CannotStart, Finished, run
from ralph.sandbox import cgroup
from ralph.sandbox.attempts import FILES, GIT, REFUSED, TRIED, Attempt, Control, Group
from ralph.sandbox.network_attempts import NETWORK, SOCKETS
from ralph.sandbox.scene import Scene, environment
from ralph.sandbox.system_attempts import KERNEL, LIMITS, PROCESSES
from ralph.sandbox.wall import Quota, Wall
from ralph.sandbox.work import NOT_HERE, WORK, Work

ATTEMPTS = (*FILES, *GIT, *NETWORK, *SOCKETS, *PROCESSES, *KERNEL, *LIMITS)
_SECONDS = 20.0
Make = Callable[[Wall], Enclosure]


class Result(StrEnum):
    REFUSED = "refused"
    ESCAPED = "escaped"
    WORKS = "works"
    FAILED = "failed"
    """Ordinary work did, or an attempt did not even run."""
    SKIPPED = "skipped"


class Outcome(Struct, frozen=True):
    name: str
    what: str
    group: str
    result: Result
    detail: str = ""
    """The error inside, what changed outside, or why it was skipped."""
    control: str = ""
    """`bare` or `stand-in` if the attempt was shown to succeed without a sandbox; empty if not, or not tried."""

    @property
    def is_good(self) -> bool:
        return self.result in (Result.REFUSED, Result.WORKS, Result.SKIPPED)


class _Scenes:
    """One scene after the other: a new one when an attempt changed the last."""

    def __init__(self, base: Path | None) -> None:
        self._base = base
        self._scene: Scene | None = None

    def unchanged(self) -> Scene:
        if self._scene is not None and self._scene.changes():
            self._scene.close()
            self._scene = None
        self._scene = self._scene or Scene(self._base)
        return self._scene

    def __enter__(self) -> _Scenes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scene is not None:
            self._scene.close()


def try_escapes(
    make: Make,
    *,
    backend: str = "bwrap",
    groups: Collection[Group] = tuple(Group),
    controls: bool = False,
    base: Path | None = None,
    python: str = sys.executable,
) -> list[Outcome]:
    """`make` puts a backend around a wall. `python` is the interpreter inside; `base` is where the scene is set."""
    outcomes = []
    with _Scenes(base) as inside, _Scenes(base) as bare:
        for attempt in ATTEMPTS:
            if attempt.group not in groups:
                continue
            if reason := why_skipped(attempt, backend):
                outcomes.append(Outcome(attempt.name, attempt.what, attempt.group, Result.SKIPPED, reason))
                continue
            control = attempt.control if controls and _escapes_bare(bare.unchanged(), attempt) else ""
            outcomes.append(_try(inside.unchanged(), attempt, make, python, control))
    return outcomes


def try_work(
    make: Make, *, readable: tuple[Path, ...] = (), base: Path | None = None, slow: bool = False, python: str = ""
) -> list[Outcome]:
    """Ordinary work inside. `readable`: toolchains in hidden folders."""
    outcomes = []
    with Scene(base) as scene:
        for work in WORK:
            if slow or not work.is_slow:
                outcomes.append(_work(scene, work, make, readable, python or sys.executable))
    return outcomes


def rows(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """For a table: the result, the group, what was tried, and the detail in one line."""
    return [(outcome.result.value, outcome.group, outcome.what, one_line(outcome.detail, 100)) for outcome in outcomes]


def why_skipped(attempt: Attempt, backend: str) -> str:
    """Why an attempt does not apply; empty if it does."""
    if attempt.only and backend not in attempt.only:
        return attempt.why_only
    groups = cgroup.controlled(attempt.quota) if backend == "bwrap" else frozenset({"pids", "memory"})
    if backend == "srt":  # it has no control groups, but its own way to count processes
        groups = frozenset({"pids"})
    if attempt.quota.processes and os.geteuid() == 0 and "pids" not in groups:
        return "root has no control group of its own here; the supervisor counts processes instead"
    if attempt.quota.memory_mb and "memory" not in groups:
        return "there is no control group of our own here; the supervisor measures memory instead"
    if attempt.group is Group.KERNEL and platform.system() != "Linux":
        return "only on Linux"
    return ""


def _try(scene: Scene, attempt: Attempt, make: Make, python: str, control: str) -> Outcome:
    def outcome(result: Result, detail: str) -> Outcome:
        return Outcome(attempt.name, attempt.what, attempt.group, result, detail, control)

    enclosure = make(scene.wall(attempt.quota))
    try:
        done = _run(scene, attempt, python, enclosure)
    except CannotStart as error:
        return outcome(Result.FAILED, str(error))
    text, changes = _output(done), scene.changes()
    if changes:
        return outcome(Result.ESCAPED, "; ".join(changes))
    if not done.out.startswith(TRIED.encode()):
        return outcome(Result.FAILED, f"it did not run: {done.err.decode(errors='replace').strip()}")
    if done.code == 0:
        return outcome(Result.ESCAPED, text)
    if done.code == REFUSED or (attempt.quota != Quota() and not done.timed_out):
        return outcome(Result.REFUSED, done.problem or text or f"exit code {done.code}")
    return outcome(Result.FAILED, f"exit code {done.code}: {done.err.decode(errors='replace').strip()}")


def _escapes_bare(scene: Scene, attempt: Attempt) -> bool:
    """Whether it succeeds without a sandbox."""
    if attempt.control is Control.NONE:
        return False
    done = _run(scene, attempt, sys.executable, None)
    return done.out.startswith(TRIED.encode()) and (done.code == 0 or bool(scene.changes()))


def _run(scene: Scene, attempt: Attempt, python: str, enclosure: Enclosure | None) -> Finished:
    facts = scene.facts(is_control=enclosure is None and attempt.control is Control.STAND_IN)
    argv = (python, "-I", "-S", "-c", attempt.source())
    env = environment(facts, scene)
    # without a sandbox, a daemon has to outlive its parent to be seen
    return run(argv, cwd=scene.clone, env=env, timeout=_SECONDS, enclosure=enclosure, sweep=enclosure is not None)


def _work(scene: Scene, work: Work, make: Make, readable: tuple[Path, ...], python: str) -> Outcome:
    def outcome(result: Result, detail: str) -> Outcome:
        return Outcome(work.name, work.what, "work", result, detail)

    env = environment(scene.facts(), scene) | {"PYTHON": python}
    folder = scene.clone / work.name
    folder.mkdir()
    enclosure = make(scene.wall(work.quota, readable))
    done = run(("/bin/sh", "-ec", work.script), cwd=folder, env=env, timeout=120, enclosure=enclosure)
    if done.code == NOT_HERE:
        return outcome(Result.SKIPPED, "not installed, or not visible inside")
    if done.ok:
        return outcome(Result.WORKS, "")
    return outcome(Result.FAILED, f"exit code {done.code}: {(done.err or done.out).decode(errors='replace').strip()}")


def _output(done: Finished) -> str:
    return done.out.decode(errors="replace").removeprefix(f"{TRIED}\n").strip()
