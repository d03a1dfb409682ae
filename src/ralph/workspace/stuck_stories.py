"""Stories that are stuck get another chance: by an answer to their question, by `ralph retry`, by a changed cause.

Answers are kept in the state folder and put into the next prompt. What the loop keeps about a story (attempts, failed,
a review) is stamped with the story's content and with the checks and settings it was tried with. A story with the same
ID and other content starts clean; a failed one is retried when the checks or the settings have changed.

While a run works on the plan, only the run reopens the story: between two iterations, so that the change cannot be
taken for the agent's.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings
from ralph.core.changes import SetFields
from ralph.core.errors import IllegalChange, PlanError, UsageError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import NO_LEDGER, NO_REVIEW
from ralph.core.text import one_line
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.plans.store import Beside, Loaded, PlanStore
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.names import ANSWER_INBOX, ANSWERS, RETRIES
from ralph.state.places import plan_state
from ralph.state.runs import moved_to, worktrees_of
from ralph.workspace.find import store_for
from ralph.workspace.own_files import RequestFiles
from ralph.workspace.plan_edit import find_story, try_again

ASKS = "asks: "
"""Prefix of the reason that a run keeps beside a story with a question."""


class Answered(Struct, frozen=True):
    """A request for the active run: reopen the story, or with an empty ID every story that asked."""

    story: str
    question: str = ""
    waits: bool = False
    """A run is active and reopens the story before its next iteration."""


class Answer(Struct, frozen=True):
    question: str
    answer: str
    at: float


class Answers(Struct, frozen=True):
    version: int = 1
    stories: dict[str, tuple[Answer, ...]] = {}

    def of(self, story: str) -> tuple[str, ...]:
        """Sentences for a prompt. Answers for every story are stored under the empty ID."""
        found = (*self.stories.get("", ()), *self.stories.get(story, ()))
        return tuple(f"“{a.question}” — {a.answer}" if a.question else a.answer for a in found)


def open_questions(loaded: Loaded) -> dict[str, str]:
    """Story → its question."""
    return {
        key: (one.why or "").removeprefix(ASKS)
        for key, one in loaded.sidecar.stories.items()
        if one.state is State.BLOCKED and (one.why or "").startswith(ASKS)
    }


def all_questions(loaded: Loaded, waiting: str) -> dict[str, str]:
    """Story → its question. The empty ID stands for the file WAITING, unless a story asks the same."""
    asked = open_questions(loaded)
    return asked | ({"": waiting} if waiting and waiting not in asked.values() else {})


def question_of(loaded: Loaded, story: str, waiting: str) -> str:
    """The question to answer: the story's own, else that of the file WAITING unless it belongs to another story."""
    asked = open_questions(loaded)
    own = asked.pop(story, "")
    return own or ("" if story and waiting in asked.values() else waiting)


def answer(ref: PlanRef, story: str, text: str, env: Mapping[str, str]) -> Answered:
    """Store the answer, then reopen the story or leave that to the active run. An empty ID answers for all stories."""
    state, store = plan_state(ref, env), store_for(ref, env)
    with turn(ref, env):
        loaded = store.load()
        story = find_story(loaded.plan, story).id if story else ""
        desk = RequestFiles(ref.root, ref.folder)
        question = question_of(loaded, story, desk.waiting())
        known = read_answers(state).stories
        answers = Answers(stories=known | {story: (*known.get(story, ()), Answer(question, text, time.time()))})
        # Stored first: a story that is reopened without it would ask again.
        write_bytes(make_folder(state, private=True) / ANSWERS, msgspec.json.encode(answers) + b"\n")
        answered = Answered(story, question, waits=is_at_work(state))
        if answered.waits:
            inbox.put(state / ANSWER_INBOX, answered)
        else:
            reopen(store, loaded, story)
        if not story or question == desk.waiting():
            desk.answered()
    return answered


def asking_ref(ref: PlanRef, story: str, env: Mapping[str, str]) -> PlanRef:
    """The plan with the question: the workspace's own, or the newest copy in a worktree if only there is one."""
    copies = [moved_to(ref, root) for _, root in worktrees_of(ref.root, env)]
    for each in (ref, *reversed(copies)):
        with contextlib.suppress(PlanError):
            asked = open_questions(store_for(each, env).load())
            if story in asked or (not story and (asked or RequestFiles(each.root, each.folder).waiting())):
                return each
    return ref


def take_in_answers(state: Path, store: PlanStore) -> list[str]:
    """Reopen the stories that were answered during an iteration. Returns messages about them."""
    messages = []
    for path, answered in inbox.look(state / ANSWER_INBOX, Answered):
        if opened := reopen(store, store.load(), answered.story):
            messages.append(f"answered by you, open again: {', '.join(one_line(story, 40) for story in opened)}")
        path.unlink(missing_ok=True)
    return messages


def reopen(store: PlanStore, loaded: Loaded, story: str = "") -> list[str]:
    """Reopen a blocked story; with an empty ID every story that asked a question. Returns their IDs in plan order."""
    asked = {story} if story else open_questions(loaded).keys()
    stories = [one.id for one in loaded.plan.stories if one.id in asked and one.state is State.BLOCKED]
    if stories:
        changes = [SetFields(name, {"state": State.TODO}) for name in stories]
        store.save(loaded, changes, dict.fromkeys(stories, ""))
    return stories


def read_answers(plan_state: Path) -> Answers:
    """A damaged file is moved aside, not silently treated as empty."""
    path = plan_state / ANSWERS
    if not path.exists():
        return Answers()
    try:
        return msgspec.json.decode(read_bytes(path), type=Answers)
    except msgspec.DecodeError:
        keep_aside(path)
        return Answers()


CHANGED = "the story was changed"
SKIPPED = "skipped by you"
"""Prefix of the reason beside a story that the user has set aside: nothing but the user brings it back."""
_SHOWN = 8
_NO_MATTER = ("name", "description", "layout", "ralph_dir", "feature", "prd", "repo", "max_iterations", "on_limit",
              "max_allowed_iterations", "max_run_time", "rate_limit_per_hour", "token_limit_per_hour", "limit_share",
              "transport_retries", "push", "branch", "archive", "notify", "planning", "budget", "context",
              "keep_ignored")  # fmt: skip
"""Settings, or sections of them, that do not affect whether an attempt succeeds."""


class Wanted(Struct, frozen=True):
    """A request for the active run."""

    stories: tuple[str, ...]


class Retried(Struct, frozen=True):
    stories: tuple[str, ...]
    waits: bool = False
    """A run is active and opens them before its next iteration."""


def settings_key(settings: Settings) -> str:
    """A hash of the settings that an attempt depends on, as far as they differ from the defaults."""
    chosen = {key: value for key, value, origin in settings.items() if key.partition(".")[0] not in _NO_MATTER}
    defaults = {key: history[-1][0] for key in chosen if (history := settings.history(key))}
    differing = {key: value for key, value in chosen.items() if value != defaults.get(key)}
    return hashlib.sha256(msgspec.json.encode(differing, enc_hook=str, order="deterministic")).hexdigest()[:16]


def failed_stories(plan: Plan) -> tuple[str, ...]:
    return tuple(story.id for story in plan.stories if story.state is State.FAILED)


def retry(ref: PlanRef, stories: Sequence[str], env: Mapping[str, str], *, everything: bool = False) -> Retried:
    """Reopen failed stories with all their attempts; if a run is active, leave it to the run."""
    state, store = plan_state(ref, env), store_for(ref, env)
    wanted = _chosen(store.load().plan, stories, everything=everything)
    if not wanted or is_at_work(state):
        if wanted:
            inbox.put(state / RETRIES, Wanted(wanted))
        return Retried(wanted, waits=bool(wanted))
    with turn(ref, env):
        return Retried(open_stories(store, wanted))


def _chosen(plan: Plan, stories: Sequence[str], *, everything: bool) -> tuple[str, ...]:
    failed = failed_stories(plan)
    if stories:
        return tuple(_retriable(find_story(plan, story)) for story in dict.fromkeys(stories))
    if len(failed) > 1 and not everything:
        raise UsageError(
            f"{len(failed)} stories have failed: {listed(failed)}", hint="name the ones to retry, or pass --all"
        )
    return failed


def _retriable(story: Story) -> str:
    hints = {
        State.DONE: f"`ralph task reopen {story.id}` reopens it",
        State.BLOCKED: f'answer its question with `ralph answer {story.id} "…"`',
    }
    if hint := hints.get(story.state):
        raise IllegalChange(f"story {one_line(story.id, 60)} is {story.state.value}, not failed", hint=hint)
    return story.id


def open_stories(store: PlanStore, stories: Iterable[str]) -> tuple[str, ...]:
    """Reopen the stories that are not done, with all their attempts. Reviews and the last failure are kept."""
    reading = store.load()
    known = [story for name in stories if (story := reading.plan.story(name)) is not None and not story.is_done]
    if known:
        changes = [try_again(reading.plan, story.id) for story in known]
        store.write(store.planned(reading, changes, {story.id: "" for story in known}))
    return tuple(story.id for story in known)


def take_in_retries(state: Path, store: PlanStore) -> list[str]:
    """Apply what `ralph retry` has left for this run. Returns messages about it."""
    messages = []
    for path, wanted in inbox.look(state / RETRIES, Wanted):
        if opened := open_stories(store, wanted.stories):
            messages.append(f"retrying, as you asked: {listed(opened)}")
        path.unlink(missing_ok=True)
    return messages


def renew(store: PlanStore) -> dict[str, str]:
    """Give a clean start to stories whose content, checks or settings changed since they were tried: id → reason."""
    reading = store.load()
    changes: list[SetFields] = []
    why: dict[str, str] = {}
    for story in reading.plan.stories:
        entry = reading.sidecar.stories.get(story.id)
        if entry is None or not entry.key or story.is_done or (entry.why or "").startswith(SKIPPED):
            continue
        if entry.key != story.content_key:
            changes.append(SetFields(story.id, _clean(story, entry)))
            why[story.id] = CHANGED
        elif story.state is State.FAILED and entry.settings not in (None, store.stamp(reading.plan)):
            changes.append(try_again(reading.plan, story.id))
            why[story.id] = "checks or settings changed"
    if changes:
        store.write(store.planned(reading, changes, dict.fromkeys(why, "")))
    return why


def _clean(story: Story, entry: Beside) -> dict[str, Any]:
    """Fields without anything the loop kept about the old story. A review that is in the plan file stays."""
    fields: dict[str, Any] = {"attempts": 0}
    if not story.is_open:
        fields["state"] = State.TODO
    if entry.review is not None:
        fields["review"] = NO_REVIEW
    if entry.ledger is not None:
        fields["ledger"] = NO_LEDGER
    return fields


def listed(stories: Sequence[str]) -> str:
    return ", ".join(one_line(story, 40) for story in stories[:_SHOWN]) + (" …" if len(stories) > _SHOWN else "")
