"""Which runs are active, by the locks they hold, and the lock itself, for commands that must not overlap a run."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.app.workspace import plan_state
from ralph.core.events import RunStarted
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host import tree
from ralph.host.locks import Lock, Owner
from ralph.host.ptable import ProcessId

LOCK = "run.lock"


def claim(ref: PlanRef, env: Mapping[str, str], by: str) -> Lock:
    """The plan's lock, held until the `with` ends. Raises LockHeld while a run works on the plan."""
    return Lock(plan_state(ref, env) / LOCK).held_by(Owner.here(by))


def held_locks(folder: Path) -> Iterator[tuple[Path, Owner | None]]:
    """The held locks below a folder, each with the owner recorded in it."""
    for path in sorted(folder.glob("**/*lock")) if folder.is_dir() else ():
        lock = Lock(path)
        if lock.is_held():
            yield path, lock.owner()


def is_alive(started: RunStarted | None) -> bool:
    """Whether a run is alive, by process id and start time. A run on another machine counts as alive."""
    if started is None or started.host != platform.node():
        return True
    return tree.is_alive(ProcessId(started.pid, started.start))  # a zombie process may never be reaped


def describe(owner: Owner | None) -> str:
    if owner is None:
        return "an unknown process"
    return one_line(f"run {owner.run}, process {owner.pid} on {owner.host} since {owner.since}")
