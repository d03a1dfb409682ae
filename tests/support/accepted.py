"""A project in any layout whose acceptance tests are written by a scripted session of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

from ralph.core.events import AnyEvent, IterationEnded
from ralph.journal.records import read
from ralph.plans.registry import layout
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from support.cli import Completed, ralph_here
from support.plans import plan_name, sample
from support.repositories import IDENTITY

CHECK = f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:xdist -p no:hypothesispytest tests"
CODE = "def double(x):\n    return x + x\n"
TEST = "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
ACCEPTANCE = "tests/test_acceptance_triple.py"
TRIPLE_TEST = """import shop
import pytest


@pytest.mark.parametrize("number", [2, 5, 11])
def test_triple(number):
    secret_expectation = number * 3
    assert shop.triple(number) == secret_expectation
"""
RIGHT = CODE + "\n\ndef triple(x):\n    return 3 * x\n"
SPECIAL_CASED = CODE + "\n\ndef triple(x):\n    return {2: 6}.get(x, 0)\n"
OWN_TEST = "import shop\n\n\ndef test_triple_of_two():\n    assert shop.triple(2) == 6\n"


def write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"path": path, "text": text}}


WRITES_TESTS = [write(ACCEPTANCE, TRIPLE_TEST), "claim"]
IMPLEMENTS = [write("shop.py", RIGHT), write("tests/test_triple.py", OWN_TEST), "claim"]
CHEATS = [write("shop.py", SPECIAL_CASED), write("tests/test_triple.py", OWN_TEST), "claim"]
APPROVES = [{"verdict": {"what": "approved", "by": "request"}}]


class Accepted:
    """Default settings, but for the agent, the check and the branch."""

    def __init__(self, folder: Path, name: str, stories: int = 1, **config: Any) -> None:
        self.folder = folder
        self.root = folder / "shop"
        self.root.mkdir()
        self.layout = layout(name)
        self.ref = self.layout.refer(self.root, plan_name(name))
        self.ref.path.parent.mkdir(parents=True, exist_ok=True)
        plan = re.sub(rb'"verifyCommands": \[[^]]*\]', b'"verifyCommands": []', sample(name, stories))
        plan = re.sub(rb'"passes": true', b'"passes": false', plan)
        self.ref.path.write_bytes(plan)
        settings = {"agent": {"name": "scripted"}, "checks": [CHECK], "branch": {"auto_create": False}}
        self.write(".ralph/config.yaml", json.dumps(settings | {"archive": {"on_complete": False}} | config))
        self.write("shop.py", CODE)
        self.write("tests/test_shop.py", TEST)
        self.write("conftest.py", "")
        self.write(".gitignore", "__pycache__/\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *args], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def run(self, *arguments: str, **modes: Any) -> Completed:
        """Mode → its attempts, for every story; with `script`, the whole script."""
        path = self._script(modes)
        done = ralph_here("run", "--plain", "--trust", "--agent-script", path, *arguments, cwd=self.root)
        assert "Traceback" not in done.err, done.err
        assert done.code < 64, done.err
        return done

    def start(self, **modes: Any) -> subprocess.Popen[bytes]:
        """In the background."""
        command = [sys.executable, "-m", "ralph", "run", "--plain", "--trust", "--agent-script", self._script(modes)]
        nothing = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self.root, stdin=nothing, stdout=nothing, stderr=nothing)

    def _script(self, modes: dict[str, Any]) -> str:
        stories = modes.pop("script", None)
        if stories is None:
            most = max(map(len, modes.values()))
            stories = {"*": [{m: each[min(n, len(each) - 1)] for m, each in modes.items()} for n in range(most)]}
        path = self.folder / "script.yaml"
        path.write_text(json.dumps({"stories": stories}))
        return str(path)

    def ask(self, *arguments: str) -> Completed:
        return ralph_here(*arguments, cwd=self.root)

    @property
    def state(self) -> Path:
        return workspace_state(self.root, os.environ)

    def events(self) -> list[AnyEvent]:
        return [record.event for record in read(journal_path(self.state, list_runs(self.state)[-1]))]

    def ended(self) -> list[IterationEnded]:
        return [event for event in self.events() if isinstance(event, IterationEnded)]

    def outcomes(self) -> list[tuple[str, str]]:
        return [(event.mode.value, event.kind.value) for event in self.ended()]

    def log(self) -> list[str]:
        """Subjects of the commits, oldest first."""
        return self.git("log", "--format=%s", "--reverse").splitlines()

    def all_of_git(self) -> bytes:
        """The content of every object of the repository, reachable or not."""
        command = ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
        return subprocess.run(command, cwd=self.root, capture_output=True, check=True).stdout
