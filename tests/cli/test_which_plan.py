"""`-d`, `--feature`, `--prd` and `--ralph-dir` mean the same in every command that reads a plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.cli.grammar import Command, read_all
from support.cli import ralph_here

PLAN = ("--feature", "--prd", "--ralph-dir")
NEW = ("init", "plan", "plan import")
"""They create a plan, so a name that is not there yet is no mistake."""
ARGUMENTS = {
    "answer": ["US-001", "yes"],
    "add": ["--no-input", "more"],
    "fix": ["--no-input", "broken"],
    "plan convert": ["--layout", "spec.md"],
    "plan export": ["--json"],
    "memory add": ["a fact"],
    "note": ["a note", "--story", "US-001"],
    "proof": ["US-001"],
    "config": None,
    "config get": None,
    "doctor notify": None,
    "config paths": None,
    "stream build": None,
    "task add": ["a title"],
    "task show": ["US-001"],
    "task set": ["US-001", "--title", "x"],
    "task done": ["US-001"],
    "task remove": ["US-001"],
    "task reopen": ["US-001"],
    "task split": ["US-001", "a", "b"],
    "task move": ["US-001", "--last"],
    "task skip": ["US-001"],
    "task finding": ["US-001"],
    "record": ["--svg", "-"],
    "ui": None,
    "bench review": None,
}  # fmt: skip
"""What a command needs besides. None: it can do something without a plan, or first needs a terminal or an agent."""


def leaves() -> list[Command]:
    return [
        one
        for one in read_all().family()[1:]
        if not one.subcommands or one.is_family or one.path == ("plan", "archive")
    ]


def flags(command: Command) -> dict[str, str]:
    return {flag: option.value.name for option in command.options if option.value for flag in option.flags}


def test_a_command_has_all_of_these_options_or_none() -> None:
    for command in leaves():
        has = [flag for flag in PLAN if flag in flags(command)]
        assert has in ([], list(PLAN)), command.name
        if has:
            assert "-d" in flags(command), command.name
            assert "-f" in flags(command), command.name


def test_each_of_them_has_one_meaning() -> None:
    for short, long in (("-d", "--project-dir"), ("-f", "--feature")):
        for command in leaves():
            for option in command.options:
                assert (short in option.flags) == (long in option.flags), command.name


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for arguments in (["one"], ["two"], ["--layout", "plan.md"]):
        assert ralph_here("init", *arguments, cwd=tmp_path).code == 0
    (tmp_path / "src").mkdir()
    return tmp_path


def reading() -> list[str]:
    return [
        " ".join(one.path)
        for one in leaves()
        if set(PLAN) <= set(flags(one))
        and " ".join(one.path) not in NEW
        and ARGUMENTS.get(" ".join(one.path), []) is not None
    ]


@pytest.mark.parametrize("name", reading())
def test_a_plan_that_is_not_there_is_an_error_in_every_command(name: str, project: Path, tmp_path: Path) -> None:
    needed = ARGUMENTS.get(name) or []
    for flag, value in (("-f", "nope"), ("--prd", "77")):
        done = ralph_here(*name.split(), *needed, flag, value, "-d", str(project / "src"), cwd=project.parent)
        assert done.code not in (0, 70), (flag, done)
        assert re.search(rf"no plan \((plan\.md, )?{value}\) in {project}\n", done.err), (flag, done)


def test_a_new_plan_is_named_by_the_same_options(tmp_path: Path) -> None:
    assert ralph_here("init", "-f", "login", cwd=tmp_path).code == 0
    assert ralph_here("init", "--prd", "7", cwd=tmp_path).code == 0
    assert (tmp_path / ".ralph/login/tasks.json").exists()
    assert (tmp_path / ".ralph/PRD-7/plan.md").exists()
    assert ralph_here("init", "one", "-f", "two", cwd=tmp_path).code == 64


@pytest.mark.parametrize("flag", [["-f", "two"], ["--prd", "1"]], ids=str)
def test_the_plan_that_is_named_is_the_one_that_is_read(flag: list[str], project: Path) -> None:
    folder = "two" if flag[0] == "-f" else "PRD-1"
    assert f".ralph/{folder}/" in ralph_here("status", *flag, cwd=project).out
    assert ralph_here("runs", *flag, "--json", cwd=project).out == "[]\n"
