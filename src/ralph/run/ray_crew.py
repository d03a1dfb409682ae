"""The workers of a run on a Ray cluster. Commits travel through the hub, everything else through one relay process."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralph.agents.registry import agent as find_agent
from ralph.config.sections import Notify
from ralph.core.errors import SetupError
from ralph.core.worker import CANDIDATES, Begin, Examine, Failed, Finished, Message, Ready, Ticket
from ralph.engine.workers import Lost
from ralph.host.files import make_folder, write_bytes
from ralph.host.git.command import ask, git
from ralph.host.process.channel import Closed, start_channel, wait_for
from ralph.host.process.signals import StopSignal
from ralph.run import hub
from ralph.run.cluster import address_of, client_environment
from ralph.run.crew import Connection, LocalCrew, Member
from ralph.run.hub import Hub, open_hub
from ralph.run.ray_client import why_not_connected
from ralph.run.ray_relay import CLOSE, CONNECTED, DATA, ENDED, HEAD, KILL, OPEN, OPEN_PROVER, Goodbye
from ralph.run.spec import RunSpec, run_folder
from ralph.run.worker import attempt_name
from ralph.run.worker_clone import settings_of
from ralph.sandbox.choice import Chosen
from ralph.sandbox.home import own_path
from ralph.session.choice import named_agents
from ralph.state.clones import Clone
from ralph.state.names import CHECK_OUTPUTS, RAW, RELAY_LOG

_PATIENCE = 60.0
"""Seconds for the relay to connect."""
_MOST_FAILURES = 4
"""Workers in a row that ended before they were ready."""
_STARVED = 300.0
"""Seconds without any worker after which a run gives up."""


class Relay:
    """The process that talks to Ray, and the connections to workers that go through it."""

    def __init__(self, address: str, env: Mapping[str, str], log: Path) -> None:
        self._connections: dict[int, RelayedConnection] = {}
        self._count = 0
        self._is_connected = False
        argv = [sys.executable, "-m", "ralph.run.ray_relay", address]
        self.channel = start_channel(argv, Path("/"), {**env, **client_environment(env)}, log)
        until = time.monotonic() + _PATIENCE
        while not self._is_connected:
            wait_for([self.channel], [], 0.5)
            self.pump()
            if not self.channel.is_open or time.monotonic() > until:
                self.channel.kill()
                raise why_not_connected(address, log.read_text("utf-8", "replace"))

    def open(self, *, is_prover: bool) -> RelayedConnection:
        self._count += 1
        connection = self._connections[self._count] = RelayedConnection(self, self._count)
        self.send(self._count, OPEN_PROVER if is_prover else OPEN)
        return connection

    def send(self, number: int, kind: int, data: bytes = b"") -> None:
        self.channel.send(HEAD.pack(number, kind) + data)

    def pump(self) -> None:
        """Hand out what has arrived."""
        for frame in self.channel.receive():
            number, kind = HEAD.unpack_from(frame)
            connection = self._connections.get(number)
            if kind == CONNECTED:
                self._is_connected = True
            elif connection is not None and kind == DATA:
                connection.frames.append(frame[HEAD.size :])
            elif connection is not None and kind == ENDED:
                connection.goodbye = msgspec.json.decode(frame[HEAD.size :], type=Goodbye)
                connection.is_open = False
        if not self.channel.is_open:
            for connection in self._connections.values():
                connection.is_open = False

    @property
    def has_frames(self) -> bool:
        return any(one.frames or not one.is_open for one in self._connections.values())

    def forget(self, number: int) -> None:
        self._connections.pop(number, None)

    def close(self) -> None:
        self.channel.close()
        if self.channel.ended(10.0) is None:
            self.channel.kill()


class RelayedConnection:
    def __init__(self, relay: Relay, number: int) -> None:
        self._relay, self._number = relay, number
        self.frames: deque[bytes] = deque()
        self.goodbye = Goodbye(why="the connection to the cluster was lost")
        self.is_open = True

    def send(self, data: bytes) -> None:
        if not self.is_open:
            raise Closed
        self._relay.send(self._number, DATA, data)

    def receive(self) -> Iterator[bytes]:
        self._relay.pump()
        while self.frames:
            yield self.frames.popleft()

    def ended(self, timeout: float = 0) -> int | None:
        if self.is_open and timeout:
            wait_for([self._relay.channel], [], timeout)
        self._relay.pump()
        if self.is_open:
            return None
        return -1 if self.goodbye.code is None else self.goodbye.code

    def close(self) -> None:
        with contextlib.suppress(Closed):
            self._relay.send(self._number, CLOSE)

    def kill(self) -> None:
        with contextlib.suppress(Closed):
            self._relay.send(self._number, KILL)
        self.is_open = False
        self._relay.forget(self._number)


class RayCrew(LocalCrew):
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
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(spec, clone, env, stop, chosen, size=size, provers=provers)
        address = address_of(spec.config.on, env)
        self._hub = open_hub(Path(clone.workspace), spec.config.hub, env)
        self._offered: set[str] = set()
        self._failures = 0
        self._waiting_since = time.monotonic()
        self._tell = tell
        self._git_settings = settings_of(spec.repo.common_dir)
        folder = make_folder(run_folder(spec.ref, spec.run, env), private=True)
        self._relay = Relay(address, env, folder / RELAY_LOG)
        fetch_earlier(spec, self._hub, tell)

    # Starting

    def _begin(self, number: int) -> Begin:
        begin = super()._begin(number)
        self._offer(begin.base)
        settings = replace(begin.settings, config=replace(begin.settings.config, notify=Notify()))  # URLs with tokens
        return replace(
            begin,
            source=self._hub.url,
            is_hub=True,
            settings=settings,
            sandbox=None if self._chosen.backend else begin.sandbox,  # another machine has to find its own
            env=variables(self._spec, self._env),
            git_settings=self._git_settings,
        )

    def _connect(self, begin: Begin) -> Connection:
        try:
            return self._relay.open(is_prover=begin.worker > self._size)
        except Closed:
            raise SetupError(
                "the connection to the cluster was lost",
                hint="`ralph cluster status` shows whether it is up; the same command continues",
            ) from None

    def _offer(self, wanted: str) -> None:
        if wanted and wanted not in self._offered:
            hub.offer(self._spec.repo, self._hub, self._spec.run, wanted)
            self._offered.add(wanted)

    def room(self) -> int:
        """Workers that have a slot of the cluster and nothing to do. The others wait for one."""
        numbers = range(1, self._size + 1)
        for number in numbers:
            self._member(number)
        return len(self._free(numbers))

    def idle(self, *, for_proof: bool) -> int:
        sessions = range(1, self._size + 1)
        provers = range(self._size + 1, self._size + self._provers + 1)
        order = [*provers, *sessions] if for_proof else [*sessions]
        if free := self._free(order):
            return free[0]
        for number in order:
            if number not in self._members:
                self._member(number)
                break
        return 0

    def _free(self, numbers: Sequence[int]) -> list[int]:
        known = ((number, self._members.get(number)) for number in numbers)
        return [number for number, one in known if one is not None and one.ready is not None and not one.is_busy]

    def assign(self, worker: int, order: Ticket | Examine) -> None:
        objects = (order.base, order.carried) if isinstance(order, Ticket) else (order.onto, order.merged)
        for wanted in objects:
            self._offer(wanted)
        super().assign(worker, order)

    # What they say

    def receive(self, timeout: float) -> Sequence[tuple[int, Message | Lost]]:
        messages = list(super().receive(timeout))
        for _, message in messages:
            if isinstance(message, Ready):
                self._failures = 0
            elif isinstance(message, Finished):
                self._keep_logs(message)
        if any(member.ready is not None for member in self._members.values()):
            self._waiting_since = time.monotonic()
        elif time.monotonic() - self._waiting_since > _STARVED:
            self._waiting_since = time.monotonic()
            why = f"no worker could start for {_STARVED / 60:.0f} minutes"
            messages.append((0, Failed(message=why, hint="`ralph cluster status` shows free slots", is_setup=True)))
        return messages

    def _wait(self, timeout: float) -> None:
        if self._relay.has_frames:
            return
        wait_for([self._relay.channel], [self._stop.fileno()] if not self._stop.requested else [], timeout)
        if not self._stop.requested:
            self._stop.drain()

    def _bury(self, member: Member, why: str) -> None:
        super()._bury(member, why)
        if member.ready is None:
            self._failures += 1
            has_others = any(other.ready is not None for other in self._members.values())
            if self._failures >= _MOST_FAILURES and not has_others:  # not because a node is gone
                raise SetupError(
                    f"{self._failures} workers in a row could not start on the cluster: {why}",
                    hint="every node needs the same version of Ralph, git, and the agent",
                )

    def _last_words(self, member: Member) -> str:
        connection = member.connection
        assert isinstance(connection, RelayedConnection)
        goodbye = connection.goodbye
        code = f"exit code {goodbye.code}" if goodbye.code is not None else ""
        return ": ".join(filter(None, (code, goodbye.why))) or "it ended"

    def _keep_logs(self, message: Finished) -> None:
        here = run_folder(self._spec.ref, self._spec.run, self._env)
        for inner, data in message.logs.items():
            if Path(inner).parts[0] in (RAW, CHECK_OUTPUTS):
                path = own_path(here, inner)
                make_folder(path.parent, private=True)
                write_bytes(path, data, mode=0o600, durable=False)

    def collect(self, worker: int, iteration: int) -> None:
        member, spec = self._members[worker], self._spec
        if member.ready is None:
            return
        name = attempt_name(iteration, member.ready.run)
        commit = hub.published(self._hub, spec.run, spec.repo.root).get(name)
        if commit:
            _take(spec, self._hub, spec.run, name, commit)
        hub.fetch_rescue(spec.repo, self._hub, spec.run, member.ready.run)

    def close(self) -> None:
        try:
            for member in [one for one in self._members.values() if one.ready is None]:
                self._end(member)  # it waits for a slot, and would not hear us
            super().close()
        finally:
            self._relay.close()
            with contextlib.suppress(SetupError):
                hub.clean(self._spec.repo, self._hub, self._spec.run)


def variables(spec: RunSpec, env: Mapping[str, str]) -> dict[str, str]:
    """What the agent needs, and nothing else of the user's: its own variables, and those that `agent.env` names."""
    wanted = (*(key for name in named_agents(spec.config) for key in find_agent(name).ENV), *spec.config.agent.env)
    return {name: value for name, value in env.items() if any(fnmatchcase(name, pattern) for pattern in wanted)}


def fetch_earlier(spec: RunSpec, where: Hub, tell: Callable[[str], None]) -> None:
    """Bring what workers of earlier runs finished here, if those runs ended before they could take it."""
    with contextlib.suppress(SetupError):
        for run in hub.runs(where, spec.repo.root):
            if run == spec.run:
                continue
            taken = [
                name
                for name, commit in hub.published(where, run, spec.repo.root).items()
                if _take(spec, where, run, name, commit)
            ]
            if taken:
                tell(f"found work of run {run} on the hub that it had not merged: {', '.join(sorted(taken)[:5])}")
            hub.clean(spec.repo, where, run)


def _take(spec: RunSpec, where: Hub, run: str, name: str, commit: str) -> bool:
    """Under the ref of the candidate, as if it had been made on this machine. False: it was here already."""
    ref, there = f"{CANDIDATES}{run}/{name.partition('-')[0]}", hub.attempt_ref(run, name)
    is_here = ask(spec.repo, "show-ref", "--verify", "--quiet", ref).code == 0
    if not is_here:
        hub.fetch(spec.repo, where, there, commit)
        git(spec.repo, "update-ref", ref, commit)
        git(spec.repo, "update-ref", "-d", there, commit)  # the other ref has it
    hub.drop(spec.repo, where, there, commit)
    return not is_here
