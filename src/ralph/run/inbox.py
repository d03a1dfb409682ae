"""What people left for a run between two iterations: changed rules, answers, retries, learnings, new stories."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ralph.core.errors import PlanError
from ralph.core.ports import PlanRef
from ralph.memory.store import Memory
from ralph.memory.store import take_in as take_in_learnings
from ralph.plans.store import PlanStore
from ralph.state.names import ADDITIONS
from ralph.state.places import plan_state
from ralph.workspace.own_files import RequestFiles
from ralph.workspace.stuck_stories import reopen, take_in_answers, take_in_retries


class Inbox(Struct, frozen=True):
    ref: PlanRef
    env: Mapping[str, str]
    store: PlanStore
    memory: Memory
    requests: RequestFiles
    begin_watch: Callable[[], Sequence[str]]
    """Take the rules and the log as they are now: what changed between iterations is the user's."""

    def take(self) -> Sequence[str]:
        state, store = plan_state(self.ref, self.env), self.store
        messages = [*take_in_learnings(self.ref, self.memory), *take_in_retries(state, store)]
        with contextlib.suppress(PlanError):  # reported when the plan is read for the next iteration
            messages += take_in_answers(state, store)
            if self.requests.asks_by_file and not self.requests.waiting():  # the user has removed the file
                messages += [f"{story} is open again: WAITING was removed" for story in reopen(store, store.load())]
        messages += self.begin_watch()
        if (state / ADDITIONS).is_dir():
            from ralph.planning.add import take_in  # few runs need it

            messages += take_in(self.ref, self.env)
        return messages
