"""Which runs are active, by the locks they hold, and the lock itself, for commands that must not overlap a run."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.core.events import RunStarted
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.locks import Lock, Owner
from ralph.host.places import state_home, workspace_id
from ralph.host.process import tree
from ralph.host.process.table import ProcessId, open_files
from ralph.workspace.find import plan_state

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


def is_below_run(env: Mapping[str, str]) -> bool:
    """Whether this process descends from a live run, whatever its environment says: an agent can clean that.

    Only a run with the same state folder, or one whose workspace this is: a program that an agent tests may use Ralph
    with a HOME of its own.
    """
    with contextlib.suppress(SetupError, OSError):
        above = {process.pid: process for process in tree.ancestors(os.getpid())}
        locks = [Path(path) for pid in above for path in open_files(pid) if path.endswith(f"/{LOCK}")]
        if not locks and sys.platform != "linux":  # only Linux shows the files that another process holds
            owned = ((path, owner) for path, owner in held_locks(state_home(env)) if owner and path.name == LOCK)
            locks = [path for path, owner in owned if above.get(owner.pid) == ProcessId(owner.pid, owner.start)]
        here = {workspace_id(folder) for folder in (Path.cwd(), *Path.cwd().parents)} if locks else set()
        for state in (lock.parents[2] for lock in locks):  # STATE/WORKSPACE/plans/PLAN/run.lock
            if state.parent == Path(os.path.realpath(state_home(env))) or state.name in here:
                return True
    return False


def describe(owner: Owner | None) -> str:
    if owner is None:
        return "an unknown process"
    return one_line(f"run {owner.run}, process {owner.pid} on {owner.host} since {owner.since}")
