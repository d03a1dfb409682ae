"""The actions of a script. `docs/scripted-agent.md` lists them all; a script can bring its own."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from ralph.agents.stage import CannotPlay, Leave, Stage
from ralph.core.agent import Tokens
from ralph.core.evidence import Claim as Claimed

_PROMISE = "<promise>COMPLETE</promise>"
_LONG = 600.0
"""Seconds. Longer than any test waits, but finite."""


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """One action of a scripted agent. Its fields are its settings; the first one may be passed without its name."""

    def play(self, stage: Stage) -> None:
        raise NotImplementedError


# Files. Paths are relative to the workspace, and may leave it if the script says so.


class Write(Action, frozen=True):
    path: str
    text: str = ""
    executable: bool = False

    def play(self, stage: Stage) -> None:
        call = stage.edit("Write", self.path, content=self.text)
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")
        if self.executable:
            path.chmod(0o755)
        stage.end(call, "File created successfully")


class Append(Action, frozen=True):
    path: str
    text: str

    def play(self, stage: Stage) -> None:
        call = stage.edit("Edit", self.path, old_string="", new_string=self.text)
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(self.text)
        stage.end(call, "The file has been updated successfully")


class Replace(Action, frozen=True):
    path: str
    old: str
    new: str

    def play(self, stage: Stage) -> None:
        call = stage.edit("Edit", self.path, old_string=self.old, new_string=self.new)
        path = Path(self.path)
        text = path.read_text(encoding="utf-8")
        if self.old not in text:
            raise CannotPlay(f"{self.old!r} is not in {self.path}")
        path.write_text(text.replace(self.old, self.new, 1), encoding="utf-8")
        stage.end(call, "The file has been updated successfully")


class Delete(Action, frozen=True):
    """A file, a link, or a folder with all its content."""

    path: str

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"rm -rf {self.path}"})
        remove(Path(self.path))
        stage.end(call)


class Run(Action, frozen=True):
    """A shell command line. If it fails, that is shown and the script continues."""

    command: str

    def play(self, stage: Stage) -> None:
        stage.shell(self.command)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        import shutil  # 3 ms that few plays need

        shutil.rmtree(path)
    else:
        path.unlink()


class Commit(Action, frozen=True):
    message: str = "Work of the agent"
    all: bool = True

    def play(self, stage: Stage) -> None:
        if self.all:
            stage.command(["git", "add", "--all"])
        commit(stage, "--message", self.message)


IDENTITY = ("-c", "user.name=Scripted Agent", "-c", "user.email=agent@localhost")


def commit(stage: Stage, *words: str) -> None:
    """Uses the configured git identity, else a fixed name."""
    known = stage.command(["git", "config", "--get", "user.email"])
    stage.command(["git", *(() if known else IDENTITY), "commit", "--quiet", *words])


# Words


class Say(Action, frozen=True):
    text: str

    def play(self, stage: Stage) -> None:
        stage.say(self.text)


class Answer(Action, frozen=True):
    """The answer of a planning session: questions, or a plan. Printed as the final message, where it is expected."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    requirements: str = ""
    description: str = ""
    verifyCommands: list[str] = field(default_factory=list)
    stories: list[dict[str, Any]] = field(default_factory=list)

    def play(self, stage: Stage) -> None:
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}
        stage.say(json.dumps(given, ensure_ascii=False))


class Think(Action, frozen=True):
    text: str

    def play(self, stage: Stage) -> None:
        stage.message({"type": "thinking", "thinking": self.text, "signature": ""})


class Use(Action, frozen=True):
    """A tool call that is only shown and does nothing."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    ok: bool = True
    denied: bool = False
    seconds: float = 0

    def play(self, stage: Stage) -> None:
        call = stage.begin(self.tool, self.input)
        time.sleep(self.seconds)
        if self.denied:
            stage.emit({"type": "system", "subtype": "permission_denied", "tool_name": self.tool, "tool_use_id": call})
        stage.end(call, ok=self.ok and not self.denied)


class Cost(Action, frozen=True):
    """Adds to the numbers that the result reports."""

    usd: float = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def play(self, stage: Stage) -> None:
        stage.cost_usd += self.usd
        stage.tokens += Tokens(self.input, self.output, self.cache_read, self.cache_write)


class Result(Action, frozen=True):
    """A result that is not the last one: the session continues after it."""

    text: str = "So far, so good."

    def play(self, stage: Stage) -> None:
        stage.say(self.text)
        stage.result()
        stage.init()


class Prompt(Action, frozen=True):
    """Writes its prompt to a file."""

    path: str

    def play(self, stage: Stage) -> None:
        (stage.cwd / self.path).write_bytes(stage.prompt)


# Claims and questions


class Claim(Action, frozen=True):
    """In the request file."""

    what: Claimed = Claimed.DONE

    def play(self, stage: Stage) -> None:
        stage.request(claim=self.what.value)


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
            stage.request(review=review)
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
        stage.request(fixes=self.replies)


class Ask(Action, frozen=True):
    """A question for the user, in the request file."""

    question: str

    def play(self, stage: Stage) -> None:
        stage.request(ask=self.question)


class Learn(Action, frozen=True):
    """A learning for later sessions, in the request file."""

    text: str | tuple[str, ...]

    def play(self, stage: Stage) -> None:
        stage.request(learn=[self.text] if isinstance(self.text, str) else list(self.text))


class Waiting(Action, frozen=True):
    """The file with which an agent stops everything until the user has read it."""

    text: str
    path: str = ".ralph/WAITING"

    def play(self, stage: Stage) -> None:
        Write(self.path, self.text).play(stage)


class Complete(Action, frozen=True):
    """The file with which an agent claims that the whole plan is done."""

    text: str = ""
    path: str = ".ralph/COMPLETE"

    def play(self, stage: Stage) -> None:
        Write(self.path, self.text).play(stage)


class Lie(Action, frozen=True):
    """Every possible claim, without any work."""

    text: str = "I implemented the story, and all tests pass."

    def play(self, stage: Stage) -> None:
        stage.say(self.text)
        stage.request(claim=Claimed.DONE.value)
        stage.closing = f"{self.text}\n{_PROMISE}"


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


# The process and the model


class Sleep(Action, frozen=True):
    """Like a slow command. `heartbeat`: seconds between signs of life."""

    seconds: float
    heartbeat: float = 0

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"sleep {self.seconds:g}"})
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.heartbeat or left))
            if self.heartbeat:
                stage.emit({"type": "tool_progress", "tool_use_id": call, "tool_name": "Bash"})
        stage.end(call)


class Silent(Action, frozen=True):
    """Prints nothing. Ends when asked to."""

    seconds: float = _LONG

    def play(self, stage: Stage) -> None:
        time.sleep(self.seconds)


class Hang(Action, frozen=True):
    """Like `silent`, and ignores requests to end."""

    seconds: float = _LONG
    ignore_term: bool = True

    def play(self, stage: Stage) -> None:
        if self.ignore_term:
            ignore_signals()
        time.sleep(self.seconds)


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Crash(Action, frozen=True):
    """Ends immediately without a result: with an exit code, or by a signal."""

    code: int = 1
    signal: str = ""
    message: str = ""

    def play(self, stage: Stage) -> None:
        if self.message:
            stage.write(f"{self.message}\n".encode(), to=2)
        if not self.signal:
            raise Leave(self.code)
        number = getattr(signal, f"SIG{self.signal.upper().removeprefix('SIG')}", None)
        if not isinstance(number, signal.Signals):
            raise CannotPlay(f"unknown signal {self.signal}")
        os.kill(os.getpid(), number)
        time.sleep(_LONG)  # until it arrives


class Limit(Action, frozen=True):
    """The usage limit. If rejected, it ends the session; otherwise it reports how much is left."""

    seconds: float = 3600
    kind: str = "five_hour"
    status: Literal["rejected", "allowed", "allowed_warning"] = "rejected"
    utilization: float = 1

    def play(self, stage: Stage) -> None:
        info = {
            "status": self.status,
            "resetsAt": math.ceil(time.time() + self.seconds),
            "rateLimitType": self.kind,
            "utilization": self.utilization,
            "isUsingOverage": False,
        }
        stage.emit({"type": "rate_limit_event", "rate_limit_info": info})
        if self.status != "rejected":
            return
        text = f"You've hit your {self.kind.replace('_', '-')} limit"
        error: dict[str, Any] = {
            "api_error_status": 429,
            "api_error_type": "rate_limit_error",
            "api_error": "usage_limit_reached",
        }
        stage.synthetic(text, error="rate_limit", **error)
        stage.fail(text, **error)


_KINDS: tuple[type[Action], ...] = (
    *(Write, Append, Replace, Delete, Run, Commit),
    *(Say, Answer, Think, Use, Cost, Result, Prompt),
    *(Claim, Promise, Mark, Verdict, Fixes, Ask, Learn, Waiting, Complete, Lie),
    *(Sleep, Silent, Hang, Crash, Limit),
)
ACTIONS = {kind.__name__.lower(): kind for kind in _KINDS}
"""By their names in a script."""
