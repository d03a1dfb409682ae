"""Limits for everything inside a sandbox together: a control group of the kernel, where we may make one.

A group that somebody else put us in is theirs: their limits and their clean-up hold, so we stay in it and make none.
That leaves a system without such groups (containers, machines without systemd) and those that systemd delegates to a
user. Elsewhere the limits of single processes hold, and the supervisor counts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from ralph.sandbox.wall import Quota

_PREFIX = "ralph-"
_STALE_SECONDS = 60
_END_SECONDS = 2.0
_MEGABYTE = 1024 * 1024


class Parent(Struct, frozen=True):
    """A group in which we may make our own."""

    folder: Path
    version: int
    controllers: frozenset[str]


def create(label: str, quota: Quota) -> tuple[Path, ...]:
    """Make the groups of one sandbox. Returns the files that a process writes `0` to in order to enter."""
    files: list[Path] = []
    for parent in _parents():
        limits = dict(_limits(parent, quota))
        if not limits:
            continue
        group = parent.folder / _name(label)
        try:
            group.mkdir()
            for name, value in limits.items():
                (group / name).write_text(str(value))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        files.append(group / ("cgroup.procs" if parent.version == 2 else "tasks"))  # tasks: without a lock of 10 ms
    return tuple(files)


def controlled(quota: Quota) -> frozenset[str]:
    """Which of `pids` and `memory` groups limit here."""
    return frozenset(
        name for parent in _parents() for name in ("pids", "memory") if name in parent.controllers
    ) - frozenset(name for name, value in (("pids", quota.processes), ("memory", quota.memory_mb)) if not value)


def end(label: str) -> str:
    """End what is left in the groups and remove them. Returns which limit was reached."""
    reasons: list[str] = []
    for parent in _parents():
        group = parent.folder / _name(label)
        if group.is_dir():
            reasons += _reached(group)
            _remove(group)
    return "; ".join(reasons)


def _name(label: str) -> str:
    return _PREFIX + label.removeprefix(_PREFIX)


def _limits(parent: Parent, quota: Quota) -> Iterator[tuple[str, int]]:
    if quota.processes and "pids" in parent.controllers:
        yield "pids.max", quota.processes
    if quota.memory_mb and "memory" in parent.controllers:
        yield "memory.max" if parent.version == 2 else "memory.limit_in_bytes", quota.memory_mb * _MEGABYTE


def _reached(group: Path) -> Iterator[str]:
    if _count(group / "pids.events", "max"):
        most = int((group / "pids.max").read_text())
        yield f"the sandbox's limit of {most:,} processes was reached (sandbox.limits.processes)"
    for name, events in (("memory.max", "memory.events"), ("memory.limit_in_bytes", "memory.oom_control")):
        if _count(group / events, "oom_kill"):
            most = int((group / name).read_text()) // _MEGABYTE
            yield f"the sandbox's limit of {most:,} MB of memory was reached (sandbox.limits.memory_mb)"


def _count(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while True:
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return  # a later sandbox removes it
        with contextlib.suppress(OSError, ValueError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.005)


@lru_cache
def _parents() -> tuple[Parent, ...]:
    """Looked up once: a process is rarely moved."""
    try:
        own = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ()
    parents = tuple(parents_of(own, mounts))
    for parent in parents:
        _remove_stale(parent.folder)
    return parents


def parents_of(own: list[str], mounts: list[str]) -> Iterator[Parent]:
    """From the lines of `/proc/self/cgroup` and of `/proc/self/mountinfo`."""
    for line in own:
        _, names, path = line.split(":", 2)
        for mount in mounts:
            fields = mount.split()
            kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
            root, folder = fields[3], Path(fields[4])
            if kind == "cgroup" and names in ("pids", "memory") and names in options:
                if path == root and os.access(folder, os.W_OK):
                    yield Parent(folder, 1, frozenset({names}))
            elif kind == "cgroup2" and not names and (parent := _delegated(folder, root, path)):
                yield parent


def _delegated(mount: Path, root: str, path: str) -> Parent | None:
    """The nearest group above ours that belongs to our user. Processes are in leaves only, so ours holds none."""
    place = mount / os.path.relpath(path, root) if path != root else mount
    candidates = [mount] if place == mount else [above for above in place.parents if above.is_relative_to(mount)]
    for folder in candidates:
        try:
            controllers = frozenset((folder / "cgroup.subtree_control").read_text().split())
            is_ours = folder.stat().st_uid == os.geteuid() and (os.geteuid() != 0 or place == mount)
        except OSError:
            continue
        if is_ours and controllers & {"pids", "memory"} and os.access(folder / "cgroup.procs", os.W_OK):
            return Parent(folder, 2, controllers)
    return None


def _remove_stale(folder: Path) -> None:
    """What a run that was killed left behind. A group with a process in it cannot be removed."""
    with contextlib.suppress(OSError):
        for group in folder.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if time.time() - group.stat().st_mtime > _STALE_SECONDS:
                    group.rmdir()
