"""A repository with the files of a source design, and an agent that is a shell script with the loop around it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.core.events import IterationEnded, Record
from ralph.journal.records import read
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from support.cli import Completed, ralph_here
from support.repositories import IDENTITY

CONFIG: dict[str, Any] = {"branch": {"auto_create": False}, "idle_timeout": 0, "archive": {"on_complete": False}}


class SeedProject:
    """`agent` is run by sh in the project, with story, mode and attempt as $1, $2, $3."""

    def __init__(
        self, folder: Path, files: Mapping[str, str], agent: str = "exit 1\n", config: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.root = folder / "project"
        script = folder / "agent.sh"
        self.root.mkdir()
        script.write_text(agent)
        words = ["sh", str(script), "{story}", "{mode}", "{attempt}"]
        settings = {**CONFIG, "agent": {"name": "command", "command": words}, **(config or {})}
        for name, text in {".ralph/config.yaml": json.dumps(settings), "README.md": "# Shop\n", **files}.items():
            self.write(name, text)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada Tester")
        self.git("config", "user.email", "ada@example.test")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *args], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def ralph(self, *words: str, env: Mapping[str, str] | None = None) -> Completed:
        return ralph_here(*words, cwd=self.root, env=env)

    def run(self, *options: str, env: Mapping[str, str] | None = None) -> Completed:
        return self.ralph("run", "--plain", "--trust", *options, env=env)

    def records(self) -> list[Record]:
        state = workspace_state(self.root, os.environ)
        return list(read(journal_path(state, list_runs(state)[-1])))

    def ended(self) -> list[IterationEnded]:
        return [record.event for record in self.records() if isinstance(record.event, IterationEnded)]
