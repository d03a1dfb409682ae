"""A process, what descends from it, and how to end all of that and nothing else.

On Linux we become a child subreaper: what an agent leaves behind, however it was forked, becomes our child when its
own parent ends. Everything started through `host.process.start` gets its own session, and nothing can re-enter our
session, so a child in another session that we did not start was adopted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from subprocess import Popen

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process import table as ptable
from ralph.host.process.signals import is_stopping
from ralph.host.process.table import ProcessId, Row

_PR_SET_CHILD_SUBREAPER = 36
_LONGEST_KILL = 10.0
"""Seconds after which a tree that cannot be killed is reported."""
_PASSES = 20
_LONGEST_STRIKE = 2.0
_DYING = 0.5
"""Seconds a killed process gets to exit before it is checked again."""


class Children:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._adopts = False
        self._started: set[int] = set()
        self._ended: set[int] = set()
        """Those started whose own process has ended: what they left behind is being swept."""
        self._before: frozenset[ProcessId] = frozenset()

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        with self._lock:
            if self._owner != os.getpid():  # first use, or a fork of the process that used it
                self._owner = os.getpid()
                self._started.clear()
                self._ended.clear()
                self._adopts = _set_subreaper()
            yield

    @property
    def adopts(self) -> bool:
        """Whether orphans are reparented to this process."""
        with self._entered():
            return self._adopts

    def start(self, make: Callable[[], Popen[bytes]]) -> Popen[bytes]:
        with self._entered():
            if not self._started and self._adopts:
                # Children that were started in other sessions before us are not strays.
                self._before = frozenset(found.id for pid in ptable.own_children() if (found := ptable.row(pid)))
            process = make()
            self._started.add(process.pid)
            return process

    def has_ended(self, root: int) -> None:
        """Its sweep has begun. Of several trees swept at the same time, the last to begin finds every stray."""
        with self._entered():
            self._ended.add(root)

    def forget(self, process: Popen[bytes]) -> None:
        with self._entered():
            self._started.discard(process.pid)
            self._ended.discard(process.pid)

    def strays(self, root: int) -> list[int]:
        """Live adopted children that descend from `root`. Ended ones are reaped.

        While several trees run at the same time, one that cannot be told apart by session or group stays until the
        last of them is swept.
        """
        with self._entered():
            return self._look(root)[0]

    def is_calm(self, root: int) -> bool:
        """No stray is alive, and none was a moment ago: one that just ended may have handed us its own child."""
        with self._entered():
            return any(self._look(root) == ([], 0) for _ in range(3))

    def strike(self, root: int, seconds: float) -> set[int]:
        """Kill strays on sight until none has appeared for a moment.

        This catches those that fork and end faster than the table of processes can be read. They are our children, so
        their numbers are not given to others before we reap them.
        """
        struck: set[int] = set()
        deadline = time.monotonic() + seconds
        with self._entered():
            while time.monotonic() < deadline:
                alive, ended = self._look(root, signal.SIGKILL)
                struck.update(alive)
                if not alive and not ended:
                    break
        return struck

    def _look(self, root: int, number: int = 0) -> tuple[list[int], int]:
        """Live strays, after signalling them, and the number of ended ones that were reaped."""
        alive, ended = [], 0
        for pid in ptable.own_children() if self._adopts else ():
            if not self._is_stray(pid, root):
                continue
            if number:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            if _reap(pid):
                ended += 1
            else:
                alive.append(pid)
        return alive, ended

    def _is_stray(self, pid: int, root: int) -> bool:
        if pid in self._started:
            return False
        try:
            session, group = os.getsid(pid), os.getpgid(pid)
        except OSError:
            return False
        if session == os.getsid(0):
            return False
        if self._before and (found := ptable.row(pid)) and found.id in self._before:
            return False
        return not self._started - self._ended - {root} or root in (session, group)


def _reap(pid: int) -> bool:
    """Whether it has ended. Always by pid: waiting for any child would take a status that belongs to a Popen."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _set_subreaper() -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


CHILDREN = Children()


class Ended(Struct, frozen=True):
    asked: int = 0
    """Processes that were alive and got SIGTERM."""
    killed: int = 0
    """Processes that needed SIGKILL."""
    survivors: tuple[ProcessId, ...] = ()
    """Processes that are still alive: they belong to another user or hang in the kernel."""

    @property
    def found(self) -> int:
        """Approximate number: some live too briefly to be counted individually."""
        return max(self.asked, self.killed)


def identify(pid: int) -> ProcessId | None:
    found = ptable.row(pid)
    return found.id if found else None


def is_alive(process: ProcessId) -> bool:
    found = ptable.row(process.pid)
    return found is not None and found.start == process.start and not found.is_dead


def adopt_orphans() -> bool:
    """Have orphaned descendants reparented to this process. False where the system does not support that."""
    return CHILDREN.adopts


def ancestors(pid: int) -> list[ProcessId]:
    """The parent first. A run adopts orphans (see `adopt`), so they have it as an ancestor too."""
    found: dict[int, ProcessId] = {}
    row = ptable.row(pid)
    while row is not None and row.parent not in (0, *found):
        row = ptable.row(row.parent)
        if row is not None:
            found[row.pid] = row.id
    return list(found.values())


def descendants(pid: int) -> list[ProcessId]:
    rows = ptable.table()
    return [r.id for r in _closure(rows, [pid]) if r.pid != pid and not r.is_dead]


def marked(name: str, value: str) -> list[ProcessId]:
    """Live processes started with NAME=value in their environment. Empty where that cannot be seen."""
    entry = f"{name}={value}".encode()
    found = (r for r in ptable.table().values() if entry in ptable.environment(r.pid).split(b"\0"))
    return [r.id for r in found if not r.is_dead]


def describe(process: ProcessId) -> str:
    name = ptable.name(process.pid)
    return f"pid {process.pid} ({one_line(name, 40)})" if name else f"pid {process.pid}"


def cpu_seconds(root: ProcessId) -> float:
    """CPU time of a process and its live descendants, to tell whether a silent one is working."""
    return sum(r.cpu for r in _closure(ptable.table(), [root.pid]) if r.pid != root.pid or r.start == root.start)


def end_tree(
    roots: Sequence[ProcessId],
    *,
    grace: float,
    also: Callable[[], Iterable[ProcessId]] = tuple,
    meanwhile: Callable[[float], bool] | None = None,
) -> Ended:
    """End `roots`, their descendants and what `also` finds: SIGTERM, `grace` seconds, SIGKILL until none is left.

    `meanwhile(seconds)` is called instead of sleeping, to keep reading output; if it returns True the grace is over.
    """
    return _end(_Hunt(roots, also), grace, meanwhile)


class Tree:
    """A process that `host.process.start` started, and everything that descends from it."""

    def __init__(self, process: Popen[bytes]) -> None:
        self.process = process
        self._root: ProcessId | None = None
        self._seen: dict[ProcessId, None] = {}

    @property
    def root(self) -> ProcessId:
        if self._root is None and self.process.returncode is None:  # not reaped yet, so its number is its own
            self._root = identify(self.process.pid)
        return self._root or ProcessId(self.process.pid, "")

    def look(self) -> None:
        """Record the current members of the tree. Needed where orphans are not reparented to us and lose their
        origin."""
        if not CHILDREN.adopts:
            self._seen.update(dict.fromkeys(descendants(self.process.pid)))
        else:
            CHILDREN.strays(self.process.pid)  # reaps those that ended

    def usage(self) -> tuple[int, int]:
        """How many processes are in the tree, and the bytes they use."""
        others = CHILDREN.strays(self.process.pid) if CHILDREN.adopts else [process.pid for process in self._seen]
        rows = [row for row in _closure(ptable.table(), [self.process.pid, *others]) if not row.is_dead]
        return len(rows), sum(row.memory for row in rows)

    def end(self, *, grace: float, meanwhile: Callable[[float], bool] | None = None) -> Ended:
        """End all live members. Call it after the process itself has ended, too: it may have left others behind."""
        if self.process.poll() is not None:
            CHILDREN.has_ended(self.process.pid)
            if self._is_empty():
                return Ended()  # the usual case, without reading the whole table
        ended = _end(_Hunt([self.root], self._others, self._is_calm, self._strike), grace, meanwhile)
        if self.process.poll() is None:
            self.process.kill()  # whatever went wrong with looking: this one is ours for sure
        return ended

    def _is_empty(self) -> bool:
        if CHILDREN.adopts:
            return self._is_calm()
        if any(is_alive(process) for process in self._seen):
            return False
        try:
            os.killpg(self.process.pid, 0)
        except OSError:  # macOS answers EPERM when only zombies are left
            return True
        return False

    def _others(self) -> Iterable[ProcessId]:
        if CHILDREN.adopts:
            return [p for pid in CHILDREN.strays(self.process.pid) if (p := identify(pid))]
        number = self.process.pid
        return [*self._seen, *(r.id for r in ptable.table().values() if number in (r.group, r.session))]

    def _is_calm(self) -> bool:
        return CHILDREN.is_calm(self.process.pid)

    def _strike(self) -> set[int]:
        return CHILDREN.strike(self.process.pid, _LONGEST_STRIKE)


def _end(hunt: _Hunt, grace: float, meanwhile: Callable[[float], bool] | None) -> Ended:
    asked = hunt.alive()
    if not asked and hunt.is_calm():
        return Ended()
    if grace > 0:
        for process in asked:
            send(process, signal.SIGTERM)
            send(process, signal.SIGCONT)  # a stopped one could not even see it
        if _wait_until_gone(hunt, grace, meanwhile):
            hunt.reap()
            return Ended(asked=len(asked))
    killed, survivors = _kill(hunt)
    hunt.reap()
    return Ended(asked=len(asked), killed=killed, survivors=survivors)


def _sleep_unless_stopping(seconds: float) -> bool:
    time.sleep(seconds)
    return is_stopping()


def end_left_behind(agent: ProcessId | None, marker: tuple[str, str], grace: float, *others: tuple[str, str]) -> int:
    """End what outlived a killed loop: the recorded agent, its descendants, and everything that carries its marks.

    Never this process or its ancestors: an agent may itself run `ralph`. Returns the number of processes ended. Raises
    SetupError if one cannot be ended: no agent may start beside it.
    """
    roots = [agent] if agent else []
    ended = end_tree(
        roots,
        grace=grace,
        also=lambda: [p for mark in (marker, *others) for p in marked(*mark)],
        meanwhile=_sleep_unless_stopping,
    )
    if ended.survivors:
        raise SetupError(
            f"could not end {', '.join(map(describe, ended.survivors))}, which an earlier run left behind",
            hint="end it by hand (another user may have to): it may still change files",
        )
    return ended.found


def send(process: ProcessId, number: int) -> bool:
    """Signal exactly this process. False if it is gone, its pid was reused, or we may not signal it."""
    try:
        if sys.platform == "linux":
            descriptor = os.pidfd_open(process.pid)
            try:
                # The descriptor is bound to the current owner of the pid, so check which process that is after opening.
                if is_alive(process):
                    signal.pidfd_send_signal(descriptor, number)
                    return True
            finally:
                os.close(descriptor)
        elif is_alive(process):
            os.kill(process.pid, number)
            return True
    except OSError:
        pass
    return False


class _Hunt:
    """Finds the live members of a tree, repeatedly. A member stays a member."""

    def __init__(
        self,
        roots: Iterable[ProcessId],
        also: Callable[[], Iterable[ProcessId]],
        is_calm: Callable[[], bool] = lambda: True,
        strike: Callable[[], set[int]] = set,
    ) -> None:
        self._known = dict.fromkeys(roots)
        self._given = set(self._known)
        """Roots and others that were named, not discovered: they may be children that a caller waits for."""
        self._also = also
        self.is_calm = is_calm
        self.strike = strike
        self._spared = frozenset({0, 1, os.getpid(), *(process.pid for process in ancestors(os.getpid()))})
        """This process and its ancestors, and so whatever else they started."""

    def alive(self) -> list[ProcessId]:
        others = dict.fromkeys(self._also())
        self._known.update(others)
        self._given.update(others)
        rows = ptable.table()
        here = [p.pid for p in self._known if (r := rows.get(p.pid)) and r.start == p.start]
        found = [r.id for r in _closure(rows, here, self._spared) if not r.is_dead]
        self._known.update(dict.fromkeys(found))
        return found

    def reap(self) -> None:
        """Reap processes that became our children because their parent was ended before them."""
        for process in self._known:
            if process in self._given or not (r := ptable.row(process.pid)):
                continue
            if r.is_dead and r.start == process.start and r.parent == os.getpid():
                with contextlib.suppress(OSError):
                    os.waitpid(process.pid, os.WNOHANG)


def _closure(rows: dict[int, Row], seeds: Iterable[int], spared: Container[int] = ()) -> list[Row]:
    """The seeds and their descendants, without the spared ones and what descends only from those."""
    children: dict[int, list[int]] = {}
    for r in rows.values():
        children.setdefault(r.parent, []).append(r.pid)
    found: dict[int, Row] = {}
    todo = list(seeds)
    while todo:
        pid = todo.pop()
        if pid in rows and pid not in found and pid not in spared:
            found[pid] = rows[pid]
            todo += children.get(pid, ())
    return list(found.values())


def _wait_until_gone(hunt: _Hunt, seconds: float, meanwhile: Callable[[float], bool] | None) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.005
    while hunt.alive() or not hunt.is_calm():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        pause = min(pause * 1.5, 0.1, left)
        if _rest(pause, meanwhile):
            return False
    return True


def _rest(seconds: float, meanwhile: Callable[[float], bool] | None) -> bool:
    if meanwhile is None:
        time.sleep(seconds)
        return False
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:  # `meanwhile` comes back early when there is output
        if meanwhile(left):
            return True
    return False


def _kill(hunt: _Hunt) -> tuple[int, tuple[ProcessId, ...]]:
    """Freeze, then kill: a stopped process cannot fork a successor while its siblings are being killed."""
    killed: set[int] = set()
    deadline = time.monotonic() + _LONGEST_KILL
    while True:
        # A scan misses a process that forked and ended during it, so two scans in a row must find none.
        alive = hunt.alive() or hunt.alive()
        if (not alive and hunt.is_calm()) or time.monotonic() > deadline:
            return len(killed), tuple(alive)
        alive = _freeze(hunt, alive)
        reached = {p.pid for p in alive if send(p, signal.SIGKILL)}
        killed |= reached | hunt.strike()
        if not _wait_until_dead(alive) and not reached:
            return len(killed), tuple(p for p in alive if is_alive(p))


def _freeze(hunt: _Hunt, alive: list[ProcessId]) -> list[ProcessId]:
    frozen: set[ProcessId] = set()
    for _ in range(_PASSES):
        new = [p for p in alive if p not in frozen]
        if not new:
            break
        for process in new:
            send(process, signal.SIGSTOP)
        frozen.update(new)
        alive = hunt.alive()
    return alive


def _wait_until_dead(processes: Sequence[ProcessId]) -> bool:
    deadline = time.monotonic() + _DYING
    pause = 0.0005
    while any(is_alive(p) for p in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    return True
