"""What people left for a run between two iterations: changed rules, answers, retries, skipped stories, decisions about
findings, learnings, new stories."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from ralph.core.errors import PlanError
from ralph.core.events import AnyEvent
from ralph.core.moves import SetAside
from ralph.core.ports import PlanRef
from ralph.memory.store import Memory
from ralph.memory.store import take_in as take_in_learnings
from ralph.plans.store import PlanStore
from ralph.state.names import ADDITIONS
from ralph.state.places import plan_state
from ralph.workspace.findings import take_in_decisions
from ralph.workspace.own_files import RequestFiles
from ralph.workspace.skips import take_in_skips
from ralph.workspace.stuck_stories import reopen, take_in_answers, take_in_retries


class Inbox(Struct, frozen=True):
    ref: PlanRef
    env: Mapping[str, str]
    store: PlanStore
    memory: Memory
    requests: RequestFiles
    begin_watch: Callable[[], Sequence[str]]
    """Take the rules and the log as they are now: what changed between iterations is the user's."""

    def take(self, busy: Collection[str] = ()) -> Iterator[str | AnyEvent | SetAside]:
        state, store = plan_state(self.ref, self.env), self.store
        yield from take_in_learnings(self.ref, self.memory)
        yield from take_in_retries(state, store)
        with contextlib.suppress(PlanError):  # reported when the plan is read for the next iteration
            yield from take_in_decisions(state, store, busy)
            yield from take_in_skips(state, store, busy)
            yield from take_in_answers(state, store)
            if self.requests.asks_by_file and not self.requests.waiting():  # the user has removed the file
                yield from (f"{story} is open again: WAITING was removed" for story in reopen(store, store.load()))
        yield from self.begin_watch()
        if (state / ADDITIONS).is_dir():
            from ralph.planning.add import take_in  # few runs need it

            yield from take_in(self.ref, self.env)
