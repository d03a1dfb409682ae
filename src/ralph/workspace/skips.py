"""A person sets a story aside: it counts as failed, and runs continue with the others until it is reopened.

While a run works on the plan, only the run does it: between two iterations, and with several workers when none works
on the story.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import IllegalChange
from ralph.core.moves import SetAside
from ralph.core.plan import State, Story
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.core.transitions import check_move
from ralph.plans.store import PlanStore
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.names import SKIPS
from ralph.state.places import plan_state
from ralph.workspace.find import store_for
from ralph.workspace.plan_edit import change_state, find_story, prose
from ralph.workspace.stuck_stories import SKIPPED


class Skip(Struct, frozen=True):
    """A request for the active run."""

    story: str
    why: str


class Skipped(Struct, frozen=True):
    story: str
    why: str
    waits: bool = False
    """A run is active and sets it aside between two iterations."""

    @property
    def sentence(self) -> str:
        story = one_line(self.story, 60)
        back = f"`ralph retry {story}` brings it back"
        return f"{story} will be skipped between two iterations; {back}" if self.waits else f"skipped {story}; {back}"


def skip(ref: PlanRef, story_id: str, reason: str, env: Mapping[str, str]) -> Skipped:
    """Set a story aside now, or leave that to the active run."""
    reason = one_line(prose("the reason", reason))
    why = f"{SKIPPED}: {reason}" if reason else SKIPPED
    state, store = plan_state(ref, env), store_for(ref, env)
    with turn(ref, env):
        loaded = store.load()
        story = find_story(loaded.plan, story_id)
        refuse(story, loaded.sidecar.get(story.id).why or "")
        if is_at_work(state):
            inbox.put(state / SKIPS, Skip(story.id, why))
            return Skipped(story.id, why, waits=True)
        change = change_state(loaded.plan, story.id, State.FAILED, sayable=store.layout.STATES)
        store.save(loaded, [change], {story.id: why})
    return Skipped(story.id, why)


def refuse(story: Story, why: str) -> None:
    check_move(story, State.FAILED)
    if story.state is State.FAILED and why.startswith(SKIPPED):
        raise IllegalChange(
            f"story {one_line(story.id, 60)} is skipped already", hint=f"`ralph retry {story.id}` brings it back"
        )


def take_in_skips(state: Path, store: PlanStore, busy: Collection[str]) -> Iterator[SetAside | str]:
    """The stories that the run is to set aside, but none that is being worked on."""
    for path, wanted in inbox.look(state / SKIPS, Skip):
        if wanted.story in busy:
            continue
        story = store.load().plan.story(wanted.story)
        if story is None or story.is_done:
            yield f"{one_line(wanted.story, 40)} is {'done' if story else 'gone'}: not skipped"
        else:
            yield SetAside(story.id, wanted.why, by_user=True)
        path.unlink(missing_ok=True)
