"""The user's answers to an agent's questions, kept beside the plan and put into the next prompt.

While a run works on the plan, only the run reopens the story: between two iterations, so that the change cannot be
taken for the agent's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.changes import SetFields
from ralph.core.errors import PlanError
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.plans.store import Loaded, PlanStore
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.places import plan_state
from ralph.state.runs import moved_to, worktrees_of
from ralph.workspace.find import store_for
from ralph.workspace.own_files import WorkspaceDesk
from ralph.workspace.plan_edit import find_story

ASKS = "asks: "
"""Prefix of the reason that a run keeps beside a story with a question."""


INBOX = "answers"


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

    def with_answer(self, story: str, answer: Answer) -> Answers:
        return Answers(self.version, self.stories | {story: (*self.stories.get(story, ()), answer)})


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
        desk = WorkspaceDesk(ref.root, ref.folder)
        question = question_of(loaded, story, desk.waiting())
        path = answers_path(state)
        # Stored first: a story that is reopened without it would ask again.
        write_answers(path, read_answers(path).with_answer(story, Answer(question, text, time.time())))
        answered = Answered(story, question, waits=is_at_work(state))
        if answered.waits:
            inbox.put(state / INBOX, answered)
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
            if story in asked or (not story and (asked or WorkspaceDesk(each.root, each.folder).waiting())):
                return each
    return ref


def take_in(state: Path, store: PlanStore) -> list[str]:
    """Reopen the stories that were answered during an iteration. Returns messages about them."""
    messages = []
    for path, answered in inbox.look(state / INBOX, Answered):
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
