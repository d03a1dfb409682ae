"""Failed stories get another chance: by `ralph retry`, by `--reset-circuit`, and when the cause of failure has changed.

What the loop keeps about a story (attempts, failed, a review) is stamped with the story's content and with the checks
and settings it was tried with. A story with the same id and other content starts clean; a failed one is retried when
the checks or the settings have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings
from ralph.core.changes import SetFields
from ralph.core.errors import IllegalChange, UsageError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import NO_LEDGER, NO_REVIEW
from ralph.core.text import one_line
from ralph.plans.beside import Beside
from ralph.plans.store import PlanStore
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.places import plan_state
from ralph.workspace.find import store_for
from ralph.workspace.plan_edit import find_story, try_again

INBOX = "retries"
CHANGED = "the story was changed"
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
            inbox.put(state / INBOX, Wanted(wanted))
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


def take_in(state: Path, store: PlanStore) -> list[str]:
    """Apply what `ralph retry` has left for this run. Returns messages about it."""
    messages = []
    for path, wanted in inbox.look(state / INBOX, Wanted):
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
        if entry is None or not entry.key or story.is_done:
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
