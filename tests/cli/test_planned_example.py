"""The plan in `examples/planned` is what `ralph plan` makes of its script, whoever plays it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph.config.layers import load
from ralph.plans.registry import layout
from ralph.workspace.lint import lint_plan
from support.clients import CLIENT
from support.planners import GIT, Typist

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "planned"
MADE = ("prd.md", "tasks.json")


class Copy:
    """The example without its plan, as a repository of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "tally"
        shutil.copytree(EXAMPLE, self.root, ignore=shutil.ignore_patterns(".ralph", "__pycache__"))
        script = str(self.root / "planner.yaml")
        self.env = {**os.environ, **GIT, "RALPH_AGENT_NAME": "scripted", "RALPH_AGENT_SCRIPT": script}
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "tally"]):
            subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True)

    def plans(self, **how: Any) -> Typist:
        words = ("plan", "a weekly report of hours and money", "--feature", "tally")
        return Typist(self, *words, **how)  # type: ignore[arg-type]

    def made(self) -> dict[str, str]:
        return {name: (self.root / ".ralph/tally" / name).read_text() for name in MADE}


def answered(person: Typist) -> int:
    for answer in (EXAMPLE / "answers.txt").read_text().split():
        person.waits_for("\n> ", f"{answer}\n")
    return person.ends()


def committed() -> dict[str, str]:
    return {name: (EXAMPLE / ".ralph/tally" / name).read_text() for name in MADE}


def test_the_plan_is_made_again_word_for_word(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    person = copy.plans()
    assert answered(person) == 0, person.screen
    assert copy.made() == committed()


def test_the_plan_passes_the_lint_without_a_word() -> None:
    ref = layout("tasks.json").refer(EXAMPLE, "tally")
    settings = load(root=EXAMPLE, layout="tasks.json", name=None, env=os.environ, flags={})
    assert lint_plan(ref, settings).problems == ()


def test_the_program_that_is_planned_for_works() -> None:
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=EXAMPLE, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def turns() -> list[dict[str, Any]]:
    """The same words from a scripted model: each session's tools, and its answer as the client wants it."""
    found = []
    for session in yaml.safe_load((EXAMPLE / "planner.yaml").read_text())["stories"]["plan"]:
        for action in session:
            [(name, given)] = action.items()
            found.append({"use": ["StructuredOutput", given] if name == "answer" else [given["tool"], given["input"]]})
    return found


@pytest.mark.client
@pytest.mark.skipif(not CLIENT.exists(), reason="THE REAL CLIENT IS NOT TESTED")
def test_the_real_client_makes_the_same_plan(tmp_path: Path) -> None:
    import json

    from support.clients import INSIDE

    copy = Copy(tmp_path)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "turns.json").write_text(json.dumps(turns()))
    copy.env |= {"RALPH_AGENT_NAME": "claude", "RALPH_AGENT_SCRIPT": "", "RALPH_AGENT_COMMAND": str(CLIENT)}
    copy.env |= {"ANTHROPIC_API_KEY": "test-key", "TMPDIR": str(tmp_path / "tmp")}
    inside = (sys.executable, *INSIDE, str(tmp_path / "turns.json"), str(tmp_path / "requests.jsonl"))
    person = copy.plans(inside=inside, CLAUDE_CODE_TMPDIR=str(tmp_path / "tmp"))
    assert answered(person) == 0, person.screen
    assert copy.made() == committed()
