"""The plan: stories, their states, and what a layout can express. Frozen values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.review import NO_LEDGER, NO_REVIEW, Ledger, Review

EXAMPLE_TITLE = "Replace this example with your first story"
"""The title of the example story that a new plan has. `ralph run` refuses it, `ralph task add` replaces it."""


class State(StrEnum):
    TODO = "todo"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"


class Mode(StrEnum):
    SETUP = "setup"
    ACCEPTANCE = "acceptance"
    """Write tests for a story before it is implemented."""
    IMPLEMENT = "implement"
    REVIEW = "review"
    FIX = "fix"
    EXAM = "exam"
    """Write end-to-end tests when every story is done. It belongs to no story."""


class Order(StrEnum):
    """How the next story is chosen among the ready ones."""

    PRIORITY = "priority"
    FILE = "file"


class Story(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: float = 0
    """1 is the highest. Layouts without priorities number the stories in file order: 1, 2, 3 …"""
    depends_on: tuple[str, ...] = ()
    state: State = State.TODO
    review: Review = NO_REVIEW
    ledger: Ledger = NO_LEDGER
    """Findings of reviews. No plan format has a place for them."""
    notes: str = ""
    verify: tuple[str, ...] = ()
    attempts: int = 0
    touches: tuple[str, ...] = ()
    """Files, folders and patterns that it will probably change."""
    grade: str = ""
    """How well it is proven, as `core.proof.Grade`; empty: not judged yet."""
    ref: str = ""
    """The story's ID in another tracker, e.g. a bead."""
    is_review_step: bool = False
    """A step such as `1.R` of a spec that reviews the steps before it."""
    line: int = 0
    """Line of the plan file where the story starts; 0 if unknown."""
    extra: dict[str, Any] = {}
    """Fields of the file that this model does not define."""

    @property
    def is_done(self) -> bool:
        return self.state is State.DONE

    @property
    def is_open(self) -> bool:
        return self.state in (State.TODO, State.IN_PROGRESS)

    @property
    def content_key(self) -> str:
        """The identity of what the story asks for, independent of its ID, state, notes and priority."""
        parts = (self.title, self.description, *self.criteria, "", *self.verify)
        text = "\0".join(" ".join(part.split()) for part in parts)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Plan(Struct, frozen=True, kw_only=True):
    name: str
    stories: tuple[Story, ...]
    description: str = ""
    branch: str = ""
    verify: tuple[str, ...] = ()
    """Commands that verify every story of the plan (`verifyCommands`)."""
    order: Order = Order.PRIORITY
    reviewed: bool = False
    """The layout has review fields: done means approved."""
    extra: dict[str, Any] = {}

    @property
    def is_finished(self) -> bool:
        return all(story.is_done for story in self.stories)

    def story(self, story_id: str) -> Story | None:
        return next((s for s in self.stories if s.id == story_id), None)

    def count(self, state: State) -> int:
        return sum(s.state is state for s in self.stories)

    def with_stories(self, stories: Iterable[Story]) -> Plan:
        return msgspec.structs.replace(self, stories=tuple(stories))
