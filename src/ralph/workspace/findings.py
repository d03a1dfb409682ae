"""A person decides about a finding of a review: it is rejected, or confirmed whatever a fix said about it.

A rejected one comes back only with new evidence. A confirmed one is open, and a fix cannot reject it. When nothing
open is left to fix, the story goes back to its review. While a run works on the plan, only the run changes the story:
between two iterations, and with several workers when none works on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.core.changes import SetFields
from ralph.core.errors import IllegalChange, UsageError
from ralph.core.events import FindingDecided
from ralph.core.plan import State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import Entry, Fate, Ledger, Review, ReviewStatus, approved_at, overrule
from ralph.core.text import one_line
from ralph.plans.store import PlanStore
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.names import DECISIONS
from ralph.state.places import plan_state
from ralph.workspace.find import store_for
from ralph.workspace.plan_edit import find_story, prose
from ralph.workspace.stuck_stories import answer


class Decision(Struct, frozen=True, kw_only=True):
    """A request for the active run."""

    story: str
    finding: str
    fate: Fate
    """Rejected, or open: confirmed."""
    reason: str = ""


class Decided(Struct, frozen=True, kw_only=True):
    story: str
    finding: str
    fate: Fate
    then: str
    """What follows, as the end of a sentence."""
    waits: bool = False
    """A run is active and applies it between two iterations."""

    @property
    def sentence(self) -> str:
        verb = "rejected" if self.fate is Fate.REJECTED else "confirmed"
        named = f"finding {self.finding} of {one_line(self.story, 60)}"
        if self.waits:
            return f"{named} will be {verb} between two iterations of the run; {self.then}"
        return f"{verb} {named}; {self.then}"


def decide(ref: PlanRef, story_id: str, finding: str, fate: Fate, reason: str, env: Mapping[str, str]) -> Decided:
    """Reject or confirm a finding now, or leave that to the active run. An answer to a question about it follows."""
    reason = prose("the reason", reason)
    state, store = plan_state(ref, env), store_for(ref, env)
    with turn(ref, env):
        story = find_story(store.load().plan, story_id)
        entry = find_finding(story, finding)
        refuse(story, entry, fate, reason)
        decision = Decision(story=story.id, finding=entry.id, fate=fate, reason=reason)
        waits = is_at_work(state)
        then = _then(story, fields_after(story, decision))
        if waits:
            inbox.put(state / DECISIONS, decision)
        else:
            _apply(store, decision)
    if story.state is State.BLOCKED:
        answer(ref, story.id, _as_answer(decision), env)
    return Decided(story=story.id, finding=entry.id, fate=fate, then=then, waits=waits)


def _as_answer(decision: Decision) -> str:
    why = f": {decision.reason}" if decision.reason else ""
    if decision.fate is Fate.REJECTED:
        return f"finding {decision.finding} is rejected{why}"
    return f"finding {decision.finding} is confirmed and has to be fixed{why}"


def find_finding(story: Story, wanted: str) -> Entry:
    if (entry := story.ledger.get(wanted)) is not None:
        return entry
    known = ", ".join(entry.id for entry in story.ledger.entries)
    raise UsageError(
        f"story {one_line(story.id, 60)} has no finding {one_line(repr(wanted), 40)}",
        hint=f"it has {known}" if known else "no review of it has raised any",
    )


def why_not(entry: Entry, fate: Fate) -> str:
    """Why a person cannot give a finding this fate; empty if they can."""
    if fate is Fate.REJECTED and entry.fate is Fate.CLOSED:
        return "is closed: a later review no longer raises it"
    if fate is Fate.REJECTED and entry.fate is Fate.REJECTED and entry.by_user:
        return "was rejected by you already"
    if fate is Fate.OPEN and entry.fate is Fate.OPEN and entry.by_user:
        return "was confirmed by you already"
    return ""


def refuse(story: Story, entry: Entry, fate: Fate, reason: str) -> None:
    show = f"`ralph task finding {story.id}` shows the findings"
    if fate not in (Fate.REJECTED, Fate.OPEN):
        raise IllegalChange(f"a finding cannot be set to {fate.value}", hint="reject it or confirm it")
    if why := why_not(entry, fate):
        raise IllegalChange(f"finding {entry.id} of story {one_line(story.id, 60)} {why}", hint=show)
    if fate is Fate.REJECTED and not reason:
        raise UsageError("the reason is empty", hint="say why it is not a problem: the next reviewer gets the reason")


def fields_after(story: Story, decision: Decision) -> dict[str, Any]:
    """The fields of the story that a decision changes."""
    ledger = overrule(story.ledger, decision.finding, decision.fate, decision.reason)
    fields: dict[str, Any] = {"ledger": ledger}
    status, count = story.review.status, story.review.count
    if decision.fate is Fate.OPEN:
        if status is not None or story.is_done:
            fields["review"] = Review(ReviewStatus.CHANGES_REQUESTED, count, _listed(ledger))
        if story.is_done:
            fields |= {"state": State.TODO, "attempts": 0, "grade": ""}
    elif status is ReviewStatus.CHANGES_REQUESTED and ledger.open:
        fields["review"] = Review(status, count, _listed(ledger))
    elif status is ReviewStatus.CHANGES_REQUESTED:
        fields["review"] = Review(ReviewStatus.NEEDS_REVIEW, count)
    elif approved_at(story.review) and not ledger.open:
        fields["review"] = Review(status, count)
    return fields


def _listed(ledger: Ledger) -> str:
    return "\n".join(f"- {entry}" for entry in ledger.open)


def _then(story: Story, fields: Mapping[str, Any]) -> str:
    if story.state is State.FAILED:
        return f"the story is failed; `ralph retry {one_line(story.id, 60)}` tries it again"
    if story.is_done and "state" in fields:
        return "the story is open again, for a fix"
    if story.is_done:
        return "the story stays done" if fields["ledger"].open else "no finding is open, the story is done"
    status = fields["review"].status if "review" in fields else story.review.status
    if status is ReviewStatus.NEEDS_REVIEW:
        return "the story goes to a review next"
    return "the story goes to a fix next" if status is ReviewStatus.CHANGES_REQUESTED else "the next review is told"


def _apply(store: PlanStore, decision: Decision) -> FindingDecided | str:
    """Returns the event, or why nothing was changed."""
    reading = store.load()
    story = reading.plan.story(decision.story)
    entry = story.ledger.get(decision.finding) if story is not None else None
    if story is None or entry is None:
        return f"finding {decision.finding} of {one_line(decision.story, 40)} is gone: nothing was decided"
    if why := why_not(entry, decision.fate):
        return f"finding {entry.id} of {one_line(story.id, 40)} {why}"
    change = SetFields(story.id, fields_after(story, decision))
    why_kept = {story.id: ""} if "state" in change.fields else {}
    store.write(store.planned(reading, [change], why_kept))
    return FindingDecided(story.id, entry.id, decision.fate, decision.reason, one_line(str(entry.finding), 200))


def take_in_decisions(state: Path, store: PlanStore, busy: Collection[str]) -> Iterator[FindingDecided | str]:
    """Apply what was left for this run, but nothing about a story that is being worked on."""
    for path, decision in inbox.look(state / DECISIONS, Decision):
        if decision.story not in busy:
            yield _apply(store, decision)
            path.unlink(missing_ok=True)
