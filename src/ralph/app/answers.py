"""What people answered to an agent's questions, kept beside the plan and put into the next prompt."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.plans.store import Loaded, PlanStore

ASKS = "asks: "
"""How a run begins the sentence that it keeps beside a story with a question."""


class Answer(Struct, frozen=True):
    question: str
    answer: str
    at: float


class Answers(Struct, frozen=True):
    version: int = 1
    stories: dict[str, tuple[Answer, ...]] = {}

    def of(self, story: str) -> tuple[str, ...]:
        """Sentences for a prompt. Answers to everybody stand under the empty name."""
        found = (*self.stories.get("", ()), *self.stories.get(story, ()))
        return tuple(f"“{a.question}” — {a.answer}" if a.question else a.answer for a in found)

    def with_answer(self, story: str, answer: Answer) -> Answers:
        return Answers(self.version, self.stories | {story: (*self.stories.get(story, ()), answer)})


def open_questions(loaded: Loaded) -> dict[str, str]:
    """Story → what it asked."""
    return {
        key: (one.why or "").removeprefix(ASKS)
        for key, one in loaded.sidecar.stories.items()
        if one.state is State.BLOCKED and (one.why or "").startswith(ASKS)
    }


def open_again(store: PlanStore, loaded: Loaded) -> list[str]:
    """Let every story that asked be worked on. Returns their ids, in the order of the plan."""
    asked = open_questions(loaded)
    stories = [story.id for story in loaded.plan.stories if story.id in asked]
    if stories:
        changes = [SetFields(story, {"state": State.TODO}) for story in stories]
        store.save(loaded, changes, dict.fromkeys(stories, ""))
    return stories


def answers_path(plan_state: Path) -> Path:
    return plan_state / "answers.json"


def read_answers(path: Path) -> Answers:
    """A damaged file is kept aside, never taken for empty without a trace."""
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
