"""The workers of a run on this machine: one process each, with a clone and a state folder of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ralph.core.environment import run_marks, workers_of
from ralph.core.errors import RalphError
from ralph.core.worker import CANDIDATES, Alive, Begin, End, Examine, Failed, Message, Ready, Reply, Ticket
from ralph.engine.workers import Lost, Outfit
from ralph.host.files import make_folder, read_state
from ralph.host.git.command import git, line
from ralph.host.process.channel import Channel, Closed, start_channel, wait_for
from ralph.host.process.fork_server import ForkServer, is_possible
from ralph.host.process.signals import StopSignal
from ralph.run.clones import own_files
from ralph.run.recovery import end_processes_of
from ralph.run.spec import RunSpec, run_folder
from ralph.run.worker_clone import save_left
from ralph.sandbox.choice import Chosen
from ralph.state.clones import Clone, users_own
from ralph.state.names import (
    ACCEPTANCE,
    ANSWERS,
    BASELINE,
    CHECK_OUTPUTS,
    EXAM,
    IMPORTS,
    LEARNINGS,
    MADE_BY_CHECKS,
    NOTES,
    RAW,
    SIDECAR,
    TESTS,
    WORKERS,
)
from ralph.state.places import plan_state, workspace_id, workspace_state

_STATE = (ANSWERS, BASELINE, EXAM, IMPORTS, LEARNINGS, MADE_BY_CHECKS, SIDECAR, TESTS, ACCEPTANCE, NOTES)
"""What a session or a proof reads of the plan's state."""
_PATIENCE = 15.0
"""Seconds that a worker has to end, after it was asked to."""
_LONGEST_SILENCE = 45.0
"""Seconds without a sign of life, after which a worker counts as frozen."""
_LONGEST_PAUSE = 5.0
"""If the driver itself did not look for so long, its workers get their time again."""
_STDERR = "stderr.log"
_WORKER = (sys.executable, "-m", "ralph.run.worker")
_FORKS = "--forks"


class Connection(Protocol):
    """To one worker."""

    is_open: bool

    def send(self, data: bytes) -> None: ...

    def receive(self) -> Iterator[bytes]: ...

    def ended(self, timeout: float = 0) -> int | None: ...

    def close(self) -> None: ...

    def kill(self) -> None: ...


class Member:
    def __init__(self, number: int, connection: Connection, begin: Begin) -> None:
        self.number, self.connection, self.begin = number, connection, begin
        self.ready: Ready | None = None
        self.is_busy = False
        self.is_cancelled = False
        self.sent: dict[str, bytes] = {}
        self.heard = time.monotonic()


class LocalCrew:
    """`size` workers for sessions, and `provers` more for the merge queue, started when they are needed."""

    def __init__(
        self,
        spec: RunSpec,
        clone: Clone,
        env: Mapping[str, str],
        stop: StopSignal,
        chosen: Chosen,
        *,
        size: int,
        provers: int,
    ) -> None:
        self._spec, self._clone, self._env, self._stop, self._chosen = spec, clone, env, stop, chosen
        self._size, self._provers = size, provers
        self._members: dict[int, Member] = {}
        self._latest: dict[int, Member] = {}
        """The last worker of each number, also if it has ended."""
        self._lost: list[tuple[int, Lost]] = []
        self._forks: ForkServer | None = None
        self._looked = time.monotonic()

    def warm_up(self, most: int) -> None:
        """Start up to `most` workers for sessions, while the run takes its baseline."""
        if is_possible():
            folder = make_folder(workspace_state(self._spec.ref.root, self._env) / WORKERS, private=True)
            env = {**self._env, **dict(run_marks(workers_of(self._spec.run)))}
            self._forks = ForkServer([*_WORKER, _FORKS], Path("/"), env, folder / _STDERR)
        for number in range(1, min(self._size, most) + 1):
            self._member(number)

    def room(self) -> int:
        return self._size

    def idle(self, *, for_proof: bool) -> int:
        numbers = range(1, self._size + 1)
        order = [*range(self._size + 1, self._size + self._provers + 1), *numbers] if for_proof else [*numbers]
        known: list[int] = [number for number in order if number in self._members and not self._members[number].is_busy]
        if known:
            return known[0]
        gone = {number for number, _ in self._lost}  # the loop has not heard of it: the number still means that one
        fresh = next((number for number in order if number not in self._members and number not in gone), 0)
        if fresh:
            self._member(fresh)
        return fresh

    def _member(self, number: int) -> Member:
        member = self._members.get(number)
        if member is None:
            begin = self._begin(number)
            make_folder(begin.home, private=True)
            member = self._members[number] = self._latest[number] = Member(number, self._connect(begin), begin)
            self._send(member, begin)
        return member

    def _connect(self, begin: Begin) -> Connection:
        if self._forks is not None:
            with contextlib.suppress(OSError):
                return self._forks.start(begin.home / _STDERR)
        env = {**self._env, "RALPH_STATE_HOME": str(begin.home), **dict(run_marks(workers_of(begin.run)))}
        return start_channel([*_WORKER], Path("/"), env, begin.home / _STDERR)

    def _begin(self, number: int) -> Begin:
        spec = self._spec
        return Begin(
            run=spec.run,
            worker=number,
            home=workspace_state(spec.ref.root, self._env) / WORKERS / str(number),
            ref=users_own(spec.ref, self._env),
            source=str(spec.repo.common_dir),
            checkout=self._clone.checkout,
            base=line(git(spec.repo, "rev-parse", "--verify", "HEAD^{commit}")),
            settings=spec.settings,
            options=spec.options,
            objects=spec.repo.object_format,
            sandbox=self._chosen.parts,
            trace=spec.trace,
        )

    def assign(self, worker: int, order: Ticket | Examine) -> None:
        member = self._members[worker]
        member.is_busy = True
        state = {name: data for name, data in order.state.items() if member.sent.get(name) != data}
        member.sent |= state
        self._send(member, msgspec.structs.replace(order, state=state))

    def answer(self, worker: int, number: int, value: object) -> None:
        if worker in self._members:
            self._send(self._members[worker], Reply(number, value))

    def _send(self, member: Member, order: object) -> None:
        try:
            member.connection.send(pickle.dumps(order))
        except Closed:
            self._bury(member, "it ended")

    def receive(self, timeout: float) -> Sequence[tuple[int, Message | Lost]]:
        found: list[tuple[int, Message | Lost]] = [*self._lost]
        self._lost.clear()
        if not found:
            self._wait(timeout)
        for member in list(self._members.values()):
            for frame in member.connection.receive():
                member.heard = time.monotonic()
                try:
                    message = _decode(frame)
                except msgspec.DecodeError as error:
                    self._bury(member, f"it sent what cannot be read: {error}")
                    break
                if isinstance(message, Alive):
                    continue
                if isinstance(message, Ready):
                    member.ready = message
                    if message.has_lost_work:
                        self.collect(member.number, 0)
                is_answer = type(message).__name__ in ("Finished", "Examined")
                if is_answer:
                    member.is_busy = False
                if member.is_cancelled:
                    member.is_cancelled = not is_answer
                    if type(message).__name__ == "Query":
                        self.answer(member.number, message.number, "cancelled")  # type: ignore[union-attr]
                    continue
                found.append((member.number, message))
                if isinstance(message, Failed):
                    self._end(member)
            if member.number in self._members and not member.connection.is_open:
                self._bury(member, self._last_words(member))
        self._bury_frozen()
        found += self._lost
        self._lost.clear()
        return found

    def _bury_frozen(self) -> None:
        """Its own limits cannot end the session of a worker that is frozen."""
        now, before = time.monotonic(), self._looked
        self._looked = now
        for member in list(self._members.values()):
            if now - before > _LONGEST_PAUSE:
                member.heard = now
            is_local = member.ready is not None and not member.begin.is_hub
            if is_local and now - member.heard > _LONGEST_SILENCE:
                self._bury(member, f"it did not respond for {_LONGEST_SILENCE:.0f} s")

    def _wait(self, timeout: float) -> None:
        channels = [one.connection for one in self._members.values() if isinstance(one.connection, Channel)]
        wait_for(channels, [self._stop.fileno()] if not self._stop.requested else [], timeout)
        if not self._stop.requested:
            self._stop.drain()

    def _last_words(self, member: Member) -> str:
        code = member.connection.ended(1.0)
        how = f"exit code {code}" if code is not None and code >= 0 else "it ended"
        with contextlib.suppress(OSError):
            lines = (member.begin.home / _STDERR).read_text("utf-8", "replace").strip().splitlines()
            if lines:
                return f"{how}: {lines[-1][:200]}"
        return how

    def _bury(self, member: Member, why: str) -> None:
        self._end(member)
        if member.ready is not None and not member.begin.is_hub:
            with contextlib.suppress(RalphError, OSError):  # a next worker with this number tries again
                if save_left(member.begin, Path(member.ready.folder)):
                    self._fetch(member.ready.folder)
        self._lost.append((member.number, Lost(why)))

    def _end(self, member: Member) -> None:
        self._members.pop(member.number, None)
        member.connection.kill()
        if member.ready is not None:
            end_processes_of([member.ready.run])

    def cancel(self, worker: int) -> None:
        """A proof is not stopped half-way: its result is dropped."""
        if (member := self._members.get(worker)) is not None and member.is_busy:
            member.is_cancelled = True

    def collect(self, worker: int, iteration: int) -> None:
        member = self._latest.get(worker)  # it may have ended since it said so
        if member is None or member.ready is None:
            return
        if iteration or member.ready.has_lost_work:
            self._fetch(member.ready.folder)
        there = member.begin.home / workspace_id(member.begin.ref.root) / "runs" / member.ready.run
        here = run_folder(self._spec.ref, self._spec.run, self._env)
        for name in (RAW, CHECK_OUTPUTS):
            if (there / name).is_dir():
                make_folder(here / name, private=True)
                for path in (there / name).iterdir():
                    with contextlib.suppress(OSError):
                        shutil.move(path, here / name / path.name)

    def _fetch(self, folder: str) -> None:
        kinds = (f"{CANDIDATES}{self._spec.run}/*", "refs/ralph/rescue/*")
        wanted = [f"+{kind}:{kind}" for kind in kinds]
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        git(self._spec.repo, "fetch", *options, folder, *wanted)

    def outfit(self) -> Outfit:
        spec = self._spec
        files = {}
        for path in own_files(spec.ref):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    files[os.path.relpath(path, spec.ref.root)] = read_state(path)
        state = {}
        folder = plan_state(spec.ref, self._env)
        for name in _STATE:
            for path in [folder / name] if (folder / name).is_file() else _files_in(folder / name):
                with contextlib.suppress(OSError):
                    state[os.path.relpath(path, folder)] = path.read_bytes()
        return Outfit(files, state)

    def stop(self, signum: int) -> None:
        for member in list(self._members.values()):
            if member.is_busy:
                self._send(member, End(signum))

    def kill(self) -> None:
        for member in list(self._members.values()):
            self._end(member)

    def close(self) -> None:
        """Ask all to end, then end those that have not."""
        for member in self._members.values():
            with contextlib.suppress(Closed):
                member.connection.send(pickle.dumps(End(15 if member.is_busy else 0)))
            member.connection.close()
        deadline = time.monotonic() + _PATIENCE
        for member in list(self._members.values()):
            while member.connection.ended() is None and time.monotonic() < deadline:
                for _ in member.connection.receive():
                    pass
                time.sleep(0.02)
            self._end(member)
        if self._forks is not None:
            self._forks.close()


def _files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()] if folder.is_dir() else []


_DECODER: list[msgspec.json.Decoder[Message]] = []


def _decode(frame: bytes) -> Message:
    if not _DECODER:
        _DECODER.append(msgspec.json.Decoder(Message))
    return _DECODER[0].decode(frame)
