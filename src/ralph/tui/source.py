"""Where a run is read from: the files of this machine, or `ralph serve` on another one.

Everything here may wait for a disk or a network, so only the reader's thread calls it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.evidence import CheckResult
from ralph.core.ports import PlanRef
from ralph.core.review import Entry
from ralph.core.text import clean
from ralph.host.files import read_bytes
from ralph.host.redaction import redact
from ralph.state.names import CHECK_OUTPUTS
from ralph.tui.session import SessionTail, SessionText
from ralph.views.acts import Act, ActVerb, is_of_this_machine, perform, plan_of, possible
from ralph.views.attempts import AgentSession, Attempt
from ralph.views.diff import Diff, diff_of
from ralph.views.run_view import RunView
from ralph.workspace.runs import Standing

MOST_OUTPUT = 1_000_000
"""Bytes of a check's output that are shown: the last ones."""


class Output(Struct, frozen=True):
    """What a check printed."""

    text: str
    is_whole: bool = True


class Source(Protocol):
    view: RunView
    trouble: str
    """Why nothing new can be read at the moment."""

    @property
    def where(self) -> str:
        """The other machine; empty: this one."""
        ...

    def poll(self) -> bool:
        """Read what is new. Whether there may be more at once."""
        ...

    def standing(self) -> Standing: ...
    def session(self, attempt: Attempt, session: AgentSession, *, is_running: bool) -> SessionText: ...
    def diff(self, attempt: Attempt) -> Diff: ...
    def output(self, attempt: Attempt | None, index: int, result: CheckResult) -> Output: ...
    def possible(self, story: str, finding: Entry | None) -> frozenset[ActVerb]: ...
    def act(self, act: Act) -> str: ...
    def plan(self) -> PlanRef | None:
        """The plan, if it can be edited from here."""
        ...

    def close(self) -> None: ...


class LocalFiles:
    """A run of this machine, or one whose folder was copied here."""

    where = ""
    trouble = ""

    def __init__(self, journal: Path, env: Mapping[str, str]) -> None:
        self.view = RunView(journal)
        self._env = env
        self._tail: SessionTail | None = None
        self._diffs: dict[tuple[object, ...], Diff] = {}

    def poll(self) -> bool:
        return self.view.poll()

    def standing(self) -> Standing:
        return self.view.standing()

    def session(self, attempt: Attempt, session: AgentSession, *, is_running: bool) -> SessionText:
        of = (attempt.iteration, attempt.since, session.step, session.since)
        if self._tail is None or self._tail.of != of:
            if self._tail is not None:
                self._tail.close()
            assert self.view.first is not None
            self._tail = SessionTail(of, self.view.first, self.view.journal, attempt, session, self._env)
        return self._tail.read(is_running=is_running)

    def diff(self, attempt: Attempt) -> Diff:
        of = (attempt.iteration, attempt.since, attempt.commit, attempt.rescue_commit, attempt.tree)
        if of not in self._diffs:
            if len(self._diffs) >= 8:
                self._diffs.clear()
            assert self.view.first is not None
            self._diffs[of] = diff_of(self.view.first, attempt, self._env)
        return self._diffs[of]

    def output(self, attempt: Attempt | None, index: int, result: CheckResult) -> Output:
        return check_output(self.view.journal, result)

    def possible(self, story: str, finding: Entry | None) -> frozenset[ActVerb]:
        first = self.view.first
        if first is None:
            return frozenset()
        is_live = self.standing() in (Standing.RUNNING, Standing.PAUSED, Standing.WAITING)
        is_here = is_of_this_machine(first) and plan_of(first, self._env).path.exists()
        return possible(self.view.state, is_live=is_live, is_here=is_here, story=story, finding=finding)

    def act(self, act: Act) -> str:
        assert self.view.first is not None
        return perform(self.view.first, act, self._env)

    def plan(self) -> PlanRef | None:
        first = self.view.first
        if first is None or not is_of_this_machine(first):
            return None
        ref = plan_of(first, self._env)
        return ref if ref.path.exists() else None

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()


def check_output(journal: Path, result: CheckResult) -> Output:
    """The full output where its file is there, also beside a copied journal; else the end that the journal has."""
    if result.output:
        path = Path(result.output)
        for place in (path, journal.parent / CHECK_OUTPUTS / path.name):
            with contextlib.suppress(BadData, OSError):
                size = place.stat().st_size
                if size <= MOST_OUTPUT:
                    return Output(_readable(read_bytes(place)))
                with place.open("rb") as stream:
                    stream.seek(size - MOST_OUTPUT)
                    return Output(_readable(stream.read(MOST_OUTPUT)), is_whole=False)
    return Output(_readable(result.tail.encode("utf-8", "replace")), is_whole=False)


def _readable(data: bytes) -> str:
    return redact(clean(data.decode("utf-8", "replace")))
