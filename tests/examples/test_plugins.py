"""The documented examples of a third-party layout and a third-party agent, at default settings, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import EXAMPLE_TITLE, State, Story
from ralph.plans.registry import layout
from ralph.trial.scenarios import BY_NAME
from support.cli import ralph_here
from support.plugins import EXAMPLES, install, install_acme

ACME = """#!/usr/bin/env python3
import json, pathlib, sys

prompt = sys.stdin.read()
assert "--json" in sys.argv and "US-001" in prompt
pathlib.Path("hello.py").write_text("def hello():\\n    return 'hello'\\n")
pathlib.Path("test_hello.py").write_text(
    "import unittest, hello\\n\\n\\n"
    "class Hello(unittest.TestCase):\\n    def test_hello(self):\\n        self.assertEqual(hello.hello(), 'hello')\\n"
)
for record in (
    {"type": "tool", "name": "edit", "path": "hello.py"},
    {"type": "text", "text": "Done.\\n<promise>COMPLETE</promise>"},
    {"type": "end", "ok": True, "usd": 0.25, "input": 1200, "output": 300},
):
    print(json.dumps(record), flush=True)
"""
PLAN = b"(A) Export it id:US-001\nx (B) Print it id:US-002 needs:US-001\n\nSend it id:US-003\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install("layout-plugin", tmp_path / "site-1", monkeypatch)
    install("agent-plugin", tmp_path / "site-2", monkeypatch)
    program = tmp_path / "bin" / "acme"
    program.parent.mkdir()
    program.write_text(ACME)
    program.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", project], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", project, "config", key, "ada@example.com"], check=True)
    (project / "README.md").write_text("# Hello\n")
    (project / ".gitignore").write_text("__pycache__/\n")
    return project


@pytest.mark.defaults
def test_a_layout_and_an_agent_of_your_own_run_a_night(installed: Path, tmp_path: Path) -> None:
    start = ralph_here("init", "--layout", "todo.txt", cwd=installed)
    assert start.code == 0, start.err
    plan = installed / ".ralph" / "todo.txt"
    plan.write_text("(A) Say hello id:US-001\n")
    (installed / ".ralph" / "config.yaml").write_text(
        f"agent:\n  name: acme\n  command: [{tmp_path / 'bin' / 'acme'}]\n"
        "checks:\n  - {name: tests, command: python3 -m unittest -q}\nreview:\n  when: never\n"
    )
    subprocess.run(["git", "-C", installed, "add", "-A"], check=True)
    subprocess.run(["git", "-C", installed, "commit", "-qm", "Plan"], check=True)
    run = ralph_here("run", "--plain", "--trust", "--allow-broken-checks", cwd=installed)
    assert run.code == 0, run.out + run.err
    assert plan.read_text() == "x (A) Say hello id:US-001\n"
    progress = (installed / ".ralph" / "progress.txt").read_text()
    assert progress.startswith("# Progress: ")
    assert "## SUCCESS: iteration 1, US-001" in progress
    report = ralph_here("report", "--json", cwd=installed).json
    assert "0.25" in json.dumps(report)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", BY_NAME)
def test_the_agent_passes_the_conformance_suite(scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = install_acme(tmp_path, monkeypatch)
    done = ralph_here("agents", "test", "acme", "--program", program, "--only", scenario, "--json", cwd=tmp_path)
    [mark] = done.json
    assert (done.code, mark["problems"]) == (0, [])
    assert mark["passed"] == (scenario != "guard")
    assert mark["cannot"] == ("the client has no hooks: use the sandbox" if scenario == "guard" else "")


@pytest.mark.defaults
def test_the_prompt_of_a_layout_without_one_has_no_holes_and_no_fields_of_another(installed: Path) -> None:
    ralph_here("init", "--layout", "todo.txt", cwd=installed)
    ralph_here("task", "add", "Say hello", cwd=installed)
    prompt = ralph_here("explain", "prompt", cwd=installed)
    assert prompt.code == 0, prompt.err
    assert "``" not in prompt.out
    assert "reviewStatus" not in prompt.out
    assert "ralph task add" in prompt.out
    assert "Leave `.ralph/todo.txt` to the loop" in prompt.out


@pytest.mark.defaults
def test_the_example_story_is_refused_and_replaced(installed: Path) -> None:
    ralph_here("init", "--layout", "todo.txt", cwd=installed)
    check = ralph_here("check", cwd=installed)
    assert check.code == 65
    assert "US-001 is still the example" in check.out + check.err
    ralph_here("task", "add", "Say hello", cwd=installed)
    plan = (installed / ".ralph" / "todo.txt").read_text()
    assert "Say hello" in plan
    assert EXAMPLE_TITLE not in plan


def test_the_pages_in_docs_do_not_depend_on_installed_packages(installed: Path) -> None:
    script = EXAMPLES.parent / "scripts" / "write_docs.py"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    page = subprocess.run([sys.executable, script, "--check"], env=env, capture_output=True, text=True, check=False)
    assert "todo.txt" not in page.stdout
    assert page.returncode == 0, page.stdout + page.stderr


def test_the_layout_changes_only_the_lines_it_must(installed: Path) -> None:
    form = layout("todo.txt")
    plan = form.parse(PLAN, "todo.txt")
    assert [(s.id, s.priority, s.state, s.depends_on) for s in plan.stories] == [
        ("US-001", 1, State.TODO, ()),
        ("US-002", 2, State.DONE, ("US-001",)),
        ("US-003", 27, State.TODO, ()),
    ]
    changes: list[Change] = [
        SetFields("US-001", {"state": State.DONE}),
        AddStory(Story(id="US-004", title="Sign it", priority=3), "US-001"),
        MoveStory("US-003", "US-002"),
        MoveStory("US-001"),
        RemoveStory("US-002"),
        SetFields("US-003", {"title": "Mail it", "depends_on": ("US-004",)}),
    ]
    for upto in range(len(changes) + 1):
        edited = form.parse(form.edit(PLAN, changes[:upto]), "todo.txt")
        expected = apply(plan, changes[:upto])
        assert [(s.id, s.title, s.state, s.depends_on) for s in edited.stories] == [
            (s.id, s.title, s.state, s.depends_on) for s in expected.stories
        ]
    assert form.edit(PLAN, [SetFields("US-001", {"state": State.TODO})]) == PLAN
    for state in set(State) - form.STATES:
        with pytest.raises(IllegalChange):
            form.edit(PLAN, [SetFields("US-001", {"state": state})])


@pytest.mark.parametrize("text", [b"buy milk\n", b"a id:1\nb id:1\n", b"a id:1 needs:2\n", b"\xff id:1\n"])
def test_a_plan_that_is_wrong_is_refused_with_its_line(installed: Path, text: bytes) -> None:
    with pytest.raises(PlanError) as caught:
        layout("todo.txt").parse(text, "todo.txt")
    assert caught.value.where is not None
    assert caught.value.where.line
    assert caught.value.hint
