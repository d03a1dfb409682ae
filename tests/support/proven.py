"""A small project with real tests and a scripted agent: what the loop makes of the things an agent does to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from ralph.core.events import AnyEvent, IterationEnded
from ralph.journal.records import read
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from support import stunts
from support.cli import Completed, ralph, ralph_here
from support.repositories import IDENTITY

PYTHON = f"{quote(sys.executable)} -S"
CHECK = f"for t in tests/test_*.py; do PYTHONPATH=src:tests {PYTHON} $t || exit 1; done"
CODE = "def double(x):\n    return x + x\n"
TEST = "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n\n\ntest_double()\n"
FILES = {
    "src/shop.py": CODE,
    "tests/test_shop.py": TEST,
    "tests/data/prices.txt": "1\n2\n",
    ".gitignore": "__pycache__/\n.ralph/*/progress.txt\n",
}
Actions = Sequence[Any]


def write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"path": path, "text": text}}


def shell(line: str) -> dict[str, str]:
    return {"run": line}


class Proven:
    """A feature with some stories; `checks` is all that proves them."""

    def __init__(self, folder: Path, *, stories: Sequence[Mapping[str, Any]] = ({},), **config: Any) -> None:
        self.folder = folder
        self.root = folder / "shop"
        self.root.mkdir()
        listed = [_story(number, own) for number, own in enumerate(stories, 1)]
        plan = {"feature": "shop", "branchName": "main", "description": "A shop.", "createdAt": "2026-01-01T00:00:00Z"}
        self.write(".ralph/shop/prd.json", json.dumps(plan | {"userStories": listed}, indent=2) + "\n")
        settings: dict[str, Any] = {
            "agent": {"name": "scripted"},
            "review": {"enabled": False},
            "branch": {"auto_create": False},
            "archive": {"on_complete": False},
            "checks": [{"name": "tests", "command": CHECK}],
        }
        self.write(".ralph/config.yaml", json.dumps(settings | config))
        for name, text in FILES.items():
            self.write(name, text)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *args], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def script(self, **stories: Any) -> Path:
        """Story → its attempts, each a list of actions or a mapping of modes."""
        path = self.folder / "script.yaml"
        told = {name.replace("_", "-"): attempts for name, attempts in stories.items()}
        path.write_text(json.dumps({"acts": stunts.__file__, "stories": told}))
        return path

    def run(self, *arguments: str, apart: bool = False, **stories: Any) -> Completed:
        """`apart`: as a process of its own."""
        call = ralph if apart else ralph_here
        script = str(self.script(**stories))
        done = call("run", "--plain", "--trust", "--agent-script", script, *arguments, cwd=self.root)
        assert "Traceback" not in done.err, done.err
        assert done.code < 64, done.err
        return done

    def start(self, *arguments: str, **stories: Any) -> subprocess.Popen[bytes]:
        """In the background."""
        command = [sys.executable, "-m", "ralph", "run", "--plain", "--trust"]
        command += ["--agent-script", str(self.script(**stories)), *arguments]
        return subprocess.Popen(command, cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, *arguments: str, env: Mapping[str, str] | None = None) -> Completed:
        return ralph_here(*arguments, cwd=self.root, env=env)

    @property
    def state(self) -> Path:
        return workspace_state(self.root, os.environ)

    def events(self) -> list[AnyEvent]:
        return [record.event for record in read(journal_path(self.state, list_runs(self.state)[-1]))]

    def ended(self) -> list[IterationEnded]:
        return [event for event in self.events() if isinstance(event, IterationEnded)]

    def is_clean(self) -> bool:
        """Nothing but Ralph's own is uncommitted."""
        return not self.git("status", "--porcelain", "--", ".", ":!.ralph")


def _story(number: int, own: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "description": "A story.",
        "acceptanceCriteria": ["It works"],
        "priority": number,
        "passes": False,
    }
    return {"id": f"US-{number:03}", "title": f"Story {number}", **told, "notes": "", "dependsOn": [], **own}
