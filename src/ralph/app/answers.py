"""The user's answers to an agent's questions, kept beside the plan and put into the next prompt."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.plans.store import Loaded, PlanStore

ASKS = "asks: "
"""Prefix of the reason that a run keeps beside a story with a question."""


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

    def with_answer(self, story: str, answer: Answer) -> Answers:
        return Answers(self.version, self.stories | {story: (*self.stories.get(story, ()), answer)})


def open_questions(loaded: Loaded) -> dict[str, str]:
    """Story → its question."""
    return {
        key: (one.why or "").removeprefix(ASKS)
        for key, one in loaded.sidecar.stories.items()
        if one.state is State.BLOCKED and (one.why or "").startswith(ASKS)
    }


def open_again(store: PlanStore, loaded: Loaded) -> list[str]:
    """Reopen every story that asked a question. Returns their IDs in plan order."""
    asked = open_questions(loaded)
    stories = [story.id for story in loaded.plan.stories if story.id in asked]
    if stories:
        changes = [SetFields(story, {"state": State.TODO}) for story in stories]
        store.save(loaded, changes, dict.fromkeys(stories, ""))
    return stories


def answers_path(plan_state: Path) -> Path:
    return plan_state / "answers.json"


def read_answers(path: Path) -> Answers:
    """Read the answers. A damaged file is moved aside, not silently treated as empty."""
    if not path.exists():
        return Answers()
    try:
        return msgspec.json.decode(read_bytes(path), type=Answers)
    except msgspec.DecodeError:
        keep_aside(path)
        return Answers()


def write_answers(path: Path, answers: Answers) -> None:
    make_folder(path.parent, private=True)
    write_bytes(path, msgspec.json.encode(answers) + b"\n")
