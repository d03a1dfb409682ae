"""`ralph fix`: one story from a bug report, with a check that was seen to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph_here
from support.planners import Project, Typist, story


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    (project.root / ".ralph/todo").mkdir(parents=True)
    listed: list[dict[str, Any]] = [
        {"id": f"US-00{n}", "title": f"Story {n}", "acceptanceCriteria": ["x is there"], "priority": n}
        | {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "notes": ""}
        for n in (1, 2)
    ]
    head = {"project": "todo", "branchName": "main", "description": "", "verifyCommands": ["make test"]}
    (project.root / ".ralph/todo/tasks.json").write_text(json.dumps(head | {"userStories": listed}, indent=2))
    project.commit()
    return project


def fault(*verify: str) -> dict[str, Any]:
    return {"answer": {"stories": [story("f", "Say goodbye", verify=list(verify))]}}


def fix(project: Project, *arguments: str) -> Completed:
    return ralph_here("fix", "it says hello", *arguments, cwd=project.root, env=project.env)


def titles(project: Project) -> list[tuple[str, str]]:
    return [(s["id"], s["title"]) for s in project.tasks()["userStories"]]


def test_the_story_comes_first_and_its_check_fails_now(project: Project) -> None:
    project.plays(fault("grep -q goodbye src/app.py"), kind="fix")
    done = fix(project, "--no-input", "--trust")
    assert done.code == 0, done.err
    assert "fails now, as it should (exit code 1)" in done.err
    assert titles(project) == [("US-003", "Say goodbye"), ("US-001", "Story 1"), ("US-002", "Story 2")]
    first = project.tasks()["userStories"][0]
    assert first["priority"] == 1
    assert first["verify"] == ["grep -q goodbye src/app.py"]
    assert json.loads(ralph_here("task", "next", "--json", cwd=project.root, env=project.env).out)["id"] == "US-003"


def test_a_story_that_was_written_elsewhere_needs_a_check_that_fails_now(project: Project) -> None:
    for command, code in (("grep -q hello src/app.py", 65), ("grep -q goodbye src/app.py", 0)):
        answer = json.dumps(fault(command)["answer"])
        done = ralph_here("fix", "--answer", "-", "--trust", cwd=project.root, env=project.env, stdin=answer)
        assert done.code == code, done.err
    assert titles(project)[0] == ("US-003", "Say goodbye")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("grep -q hello src/app.py", "already passes, so it does not show the fault"),
        ("no-such-program-here", "cannot be run here"),
        ("git push", "would be denied"),
        ("sleep 60", "did not finish within 1 s"),
    ],
)
def test_a_check_that_shows_nothing_is_fed_back_once_and_then_refused(
    project: Project, command: str, said: str
) -> None:
    (project.root / ".ralph/config.yaml").write_text("time_ceiling: 1s\n" if "sleep" in command else "{}\n")
    before = project.files()
    project.plays(fault(command), fault(command), fault("false"), kind="fix")
    done = fix(project, "--no-input", "--trust")
    assert done.code == 65
    assert said in done.err
    assert said in project.prompt(2)
    assert project.sessions() == 2
    assert project.files() == before


@pytest.mark.parametrize("name", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_in_every_layout_it_is_the_next_story(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    project.plays({"answer": {"requirements": "# P\n\nx\n", "stories": [story("a"), story("b")]}})
    assert ralph_here("plan", "x y", "--no-input", "--layout", name, cwd=project.root, env=project.env).code == 0
    project.plays(fault("false"), kind="fix")
    assert fix(project, "--no-input", "--trust").code == 0
    following = json.loads(ralph_here("task", "next", "--json", cwd=project.root, env=project.env).out)
    assert (following["title"], following["verify"]) == ("Say goodbye", ["false"])


def test_a_story_without_a_check_is_no_answer(project: Project) -> None:
    project.plays(fault(), fault("false"), kind="fix")
    assert fix(project, "--no-input", "--trust").code == 0
    assert "stories[0].verify: the story needs a command that fails now" in project.prompt(2)


def test_in_ci_the_check_is_not_run_unless_somebody_agrees(project: Project) -> None:
    harm = project.folder / "ran"
    project.plays(fault(f"touch {harm}; false"), kind="fix")
    done = fix(project, "--no-input")
    assert done.code == 78
    assert "--trust" in done.err
    assert not harm.exists()
    assert len(titles(project)) == 2


def test_a_person_is_asked_before_the_check_is_run(project: Project) -> None:
    ran = project.folder / "ran"
    project.plays(fault(f"touch {ran}; grep -q goodbye src/app.py"), kind="fix")
    person = Typist(project, "fix", "it says hello")
    person.waits_for("Run it now? [y/N] ", "y\n")
    person.waits_for("fails now, as it should")
    person.waits_for("[d]rop\n> ", "accept\n")
    assert person.ends() == 0, person.screen
    assert ran.exists()
    assert titles(project)[0] == ("US-003", "Say goodbye")


def test_a_person_may_say_no_and_take_the_story_all_the_same(project: Project) -> None:
    ran = project.folder / "ran"
    project.plays(fault(f"touch {ran}"), kind="fix")
    person = Typist(project, "fix", "it says hello")
    person.waits_for("Run it now? [y/N] ", "n\n")
    person.waits_for("it is not known whether it fails now")
    person.waits_for("[d]rop\n> ", "a\n")
    assert person.ends() == 0, person.screen
    assert not ran.exists()
