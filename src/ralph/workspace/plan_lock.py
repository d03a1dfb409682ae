"""Serializes commands that change a plan: none reads it while another is about to write it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ralph.core.errors import LockHeld, SetupError
from ralph.core.ports import PlanRef
from ralph.host.locks import Lock, Owner
from ralph.workspace.find import plan_state

LOCK = "edit.lock"
_PATIENCE = 10.0


@contextmanager
def turn(ref: PlanRef, env: Mapping[str, str], *, agent: bool = False) -> Iterator[None]:
    """Hold the plan for reading and writing until the `with` ends. Waits for others, a few seconds at most.

    An agent in a sandbox may not be able to write to the state folder; it continues without a lock, since the loop
    checks its work anyway.
    """
    lock = Lock(plan_state(ref, env) / LOCK)
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
                raise _somebody_else(lock, ref) from None


def _somebody_else(lock: Lock, ref: PlanRef) -> LockHeld:
    owner = lock.owner()
    who = f"process {owner.pid} on {owner.host}" if owner else "another process"
    return LockHeld(
        f"{who} has been changing {ref.path} for more than {_PATIENCE:.0f} seconds",
        hint="wait until it has finished, then try again; nothing was changed",
    )
