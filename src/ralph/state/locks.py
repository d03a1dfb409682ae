"""The locks of a plan, who holds them, and whether a run is alive.

`run.lock` is held by a run and by commands that must not overlap one; `edit.lock` serializes the commands that change
the plan, so that none reads it while another is about to write it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ralph.core.errors import LockHeld, SetupError
from ralph.core.events import RunStarted
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host import locks
from ralph.host.locks import Lock, Owner
from ralph.host.process import tree
from ralph.host.process.table import ProcessId, open_files
from ralph.state.names import EDIT_LOCK, RUN_LOCK
from ralph.state.places import plan_state, state_home, workspace_id

_PATIENCE = 10.0


def claim(ref: PlanRef, env: Mapping[str, str], by: str) -> Lock:
    """The plan's lock, held until the `with` ends. Raises LockHeld while a run works on the plan."""
    return Lock(plan_state(ref, env) / RUN_LOCK).held_by(Owner.here(by))


def held_locks(folder: Path) -> Iterator[tuple[Path, Owner | None]]:
    """The held locks below a folder, each with the owner recorded in it."""
    for path in sorted(folder.glob("**/*lock")) if folder.is_dir() else ():
        lock = Lock(path)
        if lock.is_held():
            yield path, lock.owner()


def is_at_work(state: Path, run: str = "") -> bool:
    """Whether a run holds the lock of the plan with this state; with an ID, whether that run does."""
    lock = Lock(state / RUN_LOCK)
    if not lock.is_held():
        return False
    owner = lock.owner()
    return not run or owner is None or owner.run == run


def is_alive(started: RunStarted | None) -> bool:
    """Whether a run is alive, by process ID and start time. A run on another machine counts as alive."""
    return started is None or locks.is_alive(started.host, started.pid, started.start) is not False


def is_below_run(env: Mapping[str, str]) -> bool:
    """Whether this process descends from a live run, whatever its environment says: an agent can clean that.

    Only a run with the same state folder, or one whose workspace this is: a program that an agent tests may use Ralph
    with a HOME of its own.
    """
    with contextlib.suppress(SetupError, OSError):
        above = {process.pid: process for process in tree.ancestors(os.getpid())}
        held = [Path(path) for pid in above for path in open_files(pid) if path.endswith(f"/{RUN_LOCK}")]
        if not held and sys.platform != "linux":  # only Linux shows the files that another process holds
            owned = ((path, owner) for path, owner in held_locks(state_home(env)) if owner and path.name == RUN_LOCK)
            held = [path for path, owner in owned if above.get(owner.pid) == ProcessId(owner.pid, owner.start)]
        here = {workspace_id(folder) for folder in (Path.cwd(), *Path.cwd().parents)} if held else set()
        for state in (lock.parents[2] for lock in held):  # STATE/WORKSPACE/plans/PLAN/run.lock
            if state.parent == Path(os.path.realpath(state_home(env))) or state.name in here:
                return True
    return False


def describe(owner: Owner | None) -> str:
    if owner is None:
        return "an unknown process"
    return one_line(f"run {owner.run}, process {owner.pid} on {owner.host} since {owner.since}")


@contextmanager
def turn(ref: PlanRef, env: Mapping[str, str], *, agent: bool = False) -> Iterator[None]:
    """Hold the plan for reading and writing until the `with` ends. Waits for others, a few seconds at most.

    An agent in a sandbox may not be able to write to the state folder; it continues without a lock, since the loop
    checks its work anyway.
    """
    lock = Lock(plan_state(ref, env) / EDIT_LOCK)
    try:
        _take(lock, ref)
    except SetupError:
        if not agent:
            raise
    try:
        yield
    finally:
        lock.release()


def _take(lock: Lock, ref: PlanRef) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return lock.acquire(Owner.here("edit"))
        except LockHeld:
            if time.monotonic() > deadline:
                owner = lock.owner()
                who = f"process {owner.pid} on {owner.host}" if owner else "another process"
                raise LockHeld(
                    f"{who} has been changing {ref.path} for more than {_PATIENCE:.0f} seconds",
                    hint="wait until it has finished, then try again; nothing was changed",
                ) from None
