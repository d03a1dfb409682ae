"""Projects whose stories run in several workers: `ralph run --parallel N` as a process, at default settings."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ralph.core.events import IterationEnded, IterationStarted, RunEnded
from ralph.journal.records import read
from ralph.run.replay import replay
from support.cli import Completed, ralph

E = TypeVar("E")
Actions = Sequence[Any]
PATIENCE = 60


def writes(path: str, text: str, *, seconds: float = 0) -> list[Any]:
    """A session that writes a file and claims its story."""
    return [*([{"sleep": seconds}] if seconds else []), {"write": {"path": path, "text": text}}, {"claim": "done"}]


class Project:
    """Stories by ID with the sessions of each, in the feature layout; nothing but the checks says what is right."""

    def __init__(
        self,
        folder: Path,
        sessions: Mapping[str, Sequence[Actions | Mapping[str, Actions]]],
        *,
        check: str = "test -f readme.txt",
        depends_on: Mapping[str, Sequence[str]] | None = None,
        config: Mapping[str, Any] | None = None,
        script: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.root = folder, folder / "project"
        self.plan = self.root / ".ralph/many/prd.json"
        self.plan.parent.mkdir(parents=True)
        listed = [
            {
                "id": story,
                "title": f"Story {number}",
                "description": "",
                "acceptanceCriteria": ["it is there"],
                "priority": number,
                "passes": False,
                "dependsOn": list((depends_on or {}).get(story, ())),
            }
            for number, story in enumerate(sessions, 1)
        ]
        head = {"feature": "many", "branchName": "main", "description": "d", "createdAt": "2026-01-01T00:00:00Z"}
        self.plan.write_text(json.dumps(head | {"userStories": listed}, indent=1))
        played = {
            story: [each if isinstance(each, Mapping) else {"implement": each, "fix": each} for each in attempts]
            for story, attempts in sessions.items()
        }
        (folder / "script.yaml").write_text(json.dumps({"stories": played, **(script or {})}))
        settings = {
            "agent": {"name": "scripted", "script": str(folder / "script.yaml")},
            "checks": [{"name": "check", "command": check}],
            "proof": {"minimum": "unproven"},
            "archive": {"on_complete": False},
        }
        (self.root / ".ralph/config.yaml").write_text(json.dumps({**settings, **(config or {})}))
        (self.root / "readme.txt").write_text("hello\n")
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada Tester")
        self.git("config", "user.email", "ada@example.test")
        self.git("add", "-A")
        self.git("commit", "-qm", "start")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def run(self, *words: str, workers: int = 2, code: int | None = 0) -> Completed:
        done = ralph("run", "--trust", "--parallel", str(workers), *words, cwd=self.root)
        assert code is None or done.code == code, done.out[-3000:] + done.err[-2000:]
        return done

    def start(self, *words: str, workers: int = 2, before: str = "") -> subprocess.Popen[bytes]:
        """`before`: Python that the process runs first."""
        main = ["-c", f"{before}; import runpy; runpy.run_module('ralph', run_name='__main__')"] if before else []
        command = [sys.executable, *(main or ["-m", "ralph"]), "run", "--trust", "--parallel", str(workers), *words]
        with (self.folder / "out.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.root, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def finish(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    @property
    def journals(self) -> list[Path]:
        state = Path(os.environ["RALPH_STATE_HOME"]) if "RALPH_STATE_HOME" in os.environ else _state_home()
        return sorted(state.glob("project-*/runs/*/events.jsonl"))

    def clones(self) -> list[Path]:
        """Of workers."""
        return sorted(_state_home().glob("project-*/workers/*/project-*/clones/*"))

    def events(self, kind: type[E], run: int = -1) -> list[E]:
        """Those of this type in the journal of the last run, or of another."""
        return [record.event for record in read(self.journals[run]) if isinstance(record.event, kind)]

    def order(self) -> list[str]:
        """Which iterations began and ended, as in `begin S-1` and `end S-1`."""
        order = []
        for record in read(self.journals[-1]):
            if isinstance(record.event, IterationStarted):
                order.append(f"begin {record.event.story}")
            elif isinstance(record.event, IterationEnded):
                order.append(f"end {record.event.story}")
        return order

    def kinds(self, story: str) -> list[str]:
        return [event.kind.value for event in self.events(IterationEnded) if event.story == story]

    def reason(self) -> str:
        return self.events(RunEnded)[-1].reason.value

    def wait_for(self, kind: type[E], count: int = 1, where: Callable[[E], bool] = lambda _: True) -> list[E]:
        """Until the journal of the last run has so many of these."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                if len(events := [event for event in self.events(kind) if where(event)]) >= count:
                    return events
            time.sleep(0.05)
        raise AssertionError(f"no {kind.__name__}: {(self.folder / 'out.log').read_text()[-3000:]}")

    def done(self) -> list[str]:
        plan = json.loads(self.plan.read_text())
        return [story["id"] for story in plan["userStories"] if story["passes"]]

    def check(self, *done: str) -> None:
        """What holds after every run, and that these stories are done, each with one commit."""
        assert self.done() == list(done)
        changed = [line for line in self.git("status", "--porcelain").splitlines() if ".ralph/" not in line]
        assert changed == []  # Ralph's own files are committed with the next story, or at the end
        subjects = [line for line in self.git("log", "--format=%s").splitlines() if line.startswith("feat(")]
        assert sorted(line.partition("(")[2].partition(")")[0] for line in subjects) == sorted(done)
        for journal in self.journals:
            replayed = replay(read(journal))
            assert replayed.differences == (), replayed.differences
        assert not list((self.root / ".git").rglob("*.lock"))
        assert not self.processes()

    def processes(self) -> list[str]:
        """What still runs in the project or in a clone of it. Gives them a moment to end."""
        deadline = time.monotonic() + 5
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _processes(self) -> list[str]:
        left = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                where = str((entry / "cwd").readlink()) if entry.name.isdigit() else ""
                env = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
                is_worker = b"ralph.run.worker" in (entry / "cmdline").read_bytes() if entry.name.isdigit() else False
                if where.startswith(str(self.root)) or (is_worker and os.environ["HOME"].encode() in env):
                    left.append(f"{entry.name} {(entry / 'cmdline').read_bytes()!r}")
        return left


def _state_home() -> Path:
    return Path(os.environ["HOME"]) / ".local/state/ralph"
