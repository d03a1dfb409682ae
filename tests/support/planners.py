"""A project, a scripted planner and a scripted person, put together for one test."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import msgspec

from ralph.planning.answer import Question
from ralph.planning.calls import Caller, Planned, make_plan
from ralph.planning.dialogue import Draft, Drafts
from ralph.planning.proposal import Decision, Person, Proposal, Word
from ralph.planning.target import find_target
from ralph.setup.scaffold import DEFAULT_LAYOUT, Request
from support import stunts

GIT = {f"GIT_{a}_{b}": "t@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}


def story(label: str, title: str = "", **more: Any) -> dict[str, Any]:
    basic = {"id": label, "title": title or f"Build {label}", "description": f"It builds {label}."}
    return basic | {"acceptanceCriteria": [f"`app {label}` prints {label}"]} | more


def plan(*stories: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {
        "requirements": "# The page\n\n## 1. Summary\n\nWhat is wanted.\n",
        "stories": list(stories or [story("a")]),
    }
    return {"answer": given | more}


def asks(*questions: str | dict[str, Any]) -> dict[str, Any]:
    return {"answer": {"questions": [{"question": q} if isinstance(q, str) else q for q in questions]}}


class Somebody:
    """Says what a test has written down. `decisions` are words, or (word, feedback)."""

    can_be_asked = True

    def __init__(self, answers: tuple[Any, ...] = (), decisions: tuple[Any, ...] = ("accept",)) -> None:
        self.answers = list(answers)
        self.decisions = list(decisions)
        self.edits: list[Any] = []
        """Texts, or functions of the text before."""
        self.runs = True
        self.asked: list[Question] = []
        self.told: list[str] = []
        self.seen: list[Proposal] = []
        self.opened: list[str] = []

    def answer(self, question: Question, number: int, total: int) -> str | None:
        self.asked.append(question)
        said = self.answers.pop(0)
        if said is KeyboardInterrupt:
            raise KeyboardInterrupt
        return str(said) if said is not None else None

    def decide(self, proposal: Proposal) -> Decision:
        self.seen.append(proposal)
        said = self.decisions.pop(0)
        word, feedback = said if isinstance(said, tuple) else (said, "")
        return Decision(Word(word), feedback)

    def edit(self, text: str, name: str) -> str:
        self.opened.append(text)
        change = self.edits.pop(0)
        return str(change(text)) if callable(change) else str(change)

    def may_run(self, command: str) -> bool:
        return self.runs

    def tell(self, text: str, *, warning: bool = False) -> None:
        self.told.append(text)


class Project:
    """A repository and a planner whose sessions are lists of actions."""

    def __init__(self, folder: Path, *, git: bool = True) -> None:
        self.folder = folder
        self.root = folder / "todo"
        (self.root / "src").mkdir(parents=True)
        (self.root / "src" / "app.py").write_text("print('hello')\n")
        (self.root / "Makefile").write_text("test:\n\ttrue\n")
        self.script = folder / "script.yaml"
        if git:
            self.git("init", "-q", "-b", "main")
            self.commit()

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env={**os.environ, **GIT}, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "by a person")

    def plays(self, *sessions: Any, kind: str = "plan", **stories: Any) -> dict[str, str]:
        """The script, and the environment that makes it the agent's. A session is one action, or a list of them."""
        rounds = []
        for number, session in enumerate(sessions, 1):
            actions = session if isinstance(session, list) else [session]
            rounds.append([{"prompt": str(self.folder / f"prompt-{number}.txt")}, *actions])
        self.script.write_text(json.dumps({"acts": stunts.__file__, "stories": {kind: rounds, **stories}}))
        return self.env

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "RALPH_AGENT_NAME": "scripted", "RALPH_AGENT_SCRIPT": str(self.script), **GIT}

    def prompt(self, number: int) -> str:
        return (self.folder / f"prompt-{number}.txt").read_text()

    def sessions(self) -> int:
        return len(list(self.folder.glob("prompt-*.txt")))

    def make(self, person: Person, idea: str = "a to-do list", *, layout: str = "", **draft: Any) -> Planned | None:
        env = self.env
        drafts = Drafts(self.root, "plan", env)
        request = Request(root=self.root, layout=layout or DEFAULT_LAYOUT, now=time.time())
        target = find_target(request, env, any_layout=not layout)
        given = draft.pop("resume", None) or Draft(layout=layout, idea=idea, **draft)
        return make_plan(target, given, drafts, Caller(person=person, env=env))

    def draft(self, kind: str = "plan") -> Draft | None:
        return Drafts(self.root, kind, self.env).read()

    def files(self) -> dict[str, bytes]:
        found = (p for p in self.root.rglob("*") if p.is_file() and ".git" not in p.relative_to(self.root).parts)
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in found}

    def tasks(self, path: str = ".ralph/todo/tasks.json") -> dict[str, Any]:
        document: dict[str, Any] = msgspec.json.decode((self.root / path).read_bytes())
        return document


class Typist:
    """Somebody at a real terminal: waits for a text, then types."""

    def __init__(self, project: Project, *arguments: str, inside: tuple[str, ...] = (), **env: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*inside, sys.executable, "-m", "ralph", *arguments],
            cwd=project.root,
            env={**project.env, "TERM": "xterm", "NO_COLOR": "1", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 - no threads here
        )
        os.close(theirs)
        self.screen = ""

    def waits_for(self, text: str, then: str = "", seconds: float = 60) -> None:
        """What was seen is not seen again."""
        end = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < end, f"{text!r} never came:\n{self.screen}"
            if select.select([self._ours], [], [], 0.2)[0]:
                assert self._read(), f"{text!r} never came:\n{self.screen}"
        self.screen = self.screen.partition(text)[2]
        if then:
            os.write(self._ours, then.encode())

    def ends(self) -> int:
        """The exit code. The rest of what is printed is on the screen."""
        end = time.monotonic() + 60
        while self._read():
            if not select.select([self._ours], [], [], max(end - time.monotonic(), 0))[0]:
                self.process.kill()
                raise AssertionError(f"it does not end:\n{self.screen}")
        os.close(self._ours)
        return self.process.wait(60)

    def _read(self) -> bool:
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        self.screen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def _own_terminal() -> None:
    """So that Ctrl-C typed there is a signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever this process was started with
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
