"""Ways to claim that a story is done, truthfully or not, and to ask questions."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ralph.agents.acts.action import Action
from ralph.agents.stage import CannotPlay, Stage
from ralph.core.evidence import Claim as Claimed

_PROMISE = "<promise>COMPLETE</promise>"


class Claim(Action, frozen=True):
    """In the request file."""

    what: Claimed = Claimed.DONE

    def play(self, stage: Stage) -> None:
        path = stage.request(claim=self.what.value)
        stage.end(stage.edit("Write", str(path)))


class Promise(Action, frozen=True):
    """By the tag in its final message."""

    text: str = _PROMISE

    def play(self, stage: Stage) -> None:
        stage.closing = f"{stage.closing or 'Everything is done.'}\n{self.text}"


class Mark(Action, frozen=True):
    """In the plan: with `ralph task done`, as agents are instructed, or by editing the file."""

    story: str = ""
    note: str = ""
    by: Literal["command", "hand"] = "command"

    def play(self, stage: Stage) -> None:
        story = self.story or stage.story
        if self.by == "hand":
            call = stage.edit("Edit", str(stage.plan))
            _mark_by_hand(stage.plan, story)
            stage.end(call)
            return
        words = ["ralph", "task", "done", story, *_which_plan(stage)]
        if self.note:
            words += ["--note", self.note]
        stage.command([sys.executable, "-I", "-m", *words], " ".join(words), {**os.environ, "RALPH_LOOP": "1"})


class Verdict(Action, frozen=True):
    """The verdict of a review, in a plan with review fields, or in the request file."""

    what: Literal["approved", "changes_requested", "needs_review"]
    feedback: str = ""
    story: str = ""
    count: int = 1
    by: Literal["plan", "request"] = "plan"
    """In a plan without review fields, always the request file."""
    findings: tuple[dict[str, str], ...] = ()

    def play(self, stage: Stage) -> None:
        if self.by == "request" or self.findings or not _has_review_fields(stage.plan):
            review = {"verdict": self.what, "feedback": self.feedback, "findings": self.findings}
            path = stage.request(review=review)
            stage.end(stage.edit("Write", str(path)))
            return
        call = stage.edit("Edit", str(stage.plan))
        document = _document(stage.plan)
        for story in _entries(document, self.story or stage.story):
            story["reviewStatus"] = self.what
            story["reviewCount"] += self.count
            story["reviewFeedback"] = self.feedback
            if self.what == "approved":
                story |= {"passes": True, "notes": story.get("notes") or "approved"}
        _write(stage.plan, document)
        stage.end(call)


def _has_review_fields(plan: Path) -> bool:
    return plan.suffix == ".json" and b'"reviewStatus"' in plan.read_bytes()


class Fixes(Action, frozen=True):
    """The answer of a fix session to each finding of a review, in the request file."""

    replies: tuple[dict[str, str], ...]

    def play(self, stage: Stage) -> None:
        path = stage.request(fixes=self.replies)
        stage.end(stage.edit("Write", str(path)))


class Ask(Action, frozen=True):
    """A question for the user, in the request file."""

    question: str

    def play(self, stage: Stage) -> None:
        path = stage.request(ask=self.question)
        stage.end(stage.edit("Write", str(path)))


class Learn(Action, frozen=True):
    """A learning for later sessions, in the request file."""

    text: str | tuple[str, ...]

    def play(self, stage: Stage) -> None:
        path = stage.request(learn=[self.text] if isinstance(self.text, str) else list(self.text))
        stage.end(stage.edit("Write", str(path)))


class Waiting(Action, frozen=True):
    """The file with which an agent stops everything until the user has read it."""

    text: str
    path: str = ".ralph/WAITING"

    def play(self, stage: Stage) -> None:
        _sentinel(stage, self.path, self.text)


class Complete(Action, frozen=True):
    """The file with which an agent claims that the whole plan is done."""

    text: str = ""
    path: str = ".ralph/COMPLETE"

    def play(self, stage: Stage) -> None:
        _sentinel(stage, self.path, self.text)


class Lie(Action, frozen=True):
    """Every possible claim, without any work."""

    text: str = "I implemented the story, and all tests pass."

    def play(self, stage: Stage) -> None:
        stage.say(self.text)
        stage.request(claim=Claimed.DONE.value)
        stage.closing = f"{self.text}\n{_PROMISE}"


def _sentinel(stage: Stage, path: str, text: str) -> None:
    call = stage.edit("Write", path, content=text)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    stage.end(call)


def _which_plan(stage: Stage) -> list[str]:
    """The options that name this plan, for a workspace with several."""
    try:
        folder = stage.plan.parent
    except CannotPlay:
        return []
    if folder.name.startswith("PRD-"):
        return ["--prd", folder.name.removeprefix("PRD-")]
    if folder.parent.name == ".ralph":
        return ["--feature", folder.name]
    return []


def _mark_by_hand(plan: Path, story: str) -> None:
    if plan.suffix != ".json":
        text = plan.read_text(encoding="utf-8")
        marked, found = re.subn(rf"(?m)^(\s*[-*+] \[) (\].*(?<![\w.-]){re.escape(story)}(?![\w.-]))", r"\1x\2", text)
        if not found:
            raise CannotPlay(f"{plan.name} has no open item {story}")
        plan.write_text(marked, encoding="utf-8")
        return
    document = _document(plan)
    done = {"status": "done", "passes": True, "reviewStatus": "approved"}
    for entry in _entries(document, story):
        entry |= {key: value for key, value in done.items() if key in entry}
    _write(plan, document)


def _document(plan: Path) -> Any:
    try:
        return json.loads(plan.read_bytes())
    except ValueError:
        raise CannotPlay(f"{plan.name} is not JSON") from None


def _write(plan: Path, document: Any) -> None:
    plan.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _entries(document: Any, story: str) -> list[dict[str, Any]]:
    found = [entry for entry in _objects(document) if entry.get("id") == story]
    if not found:
        raise CannotPlay(f"story {story} is not in the plan")
    return found


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(part)
