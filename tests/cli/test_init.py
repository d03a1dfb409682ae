from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here
from support.workspaces import write_first_story


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "my shop"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "Makefile").write_text("test:\n\t@true\nlint:\n\t@true\n")
    return root


def test_a_newcomer_gets_a_plan_and_is_told_what_to_do_next(project: Path) -> None:
    done = ralph("init", "user-login", cwd=project)

    assert done.code == 0, done.err
    for path in ("tasks.json", "prd.md", "progress.txt", "prompt.md"):
        assert f".ralph/user-login/{path}" in done.out
        assert (project / ".ralph" / "user-login" / path).is_file()
    assert "make test" in done.out
    assert "ralph check" in done.out
    assert "git init" not in done.out
    assert (project / ".gitignore").read_text().count(".ralph-active") == 1


@pytest.mark.parametrize("package", [True, False])
def test_unit_tests_without_any_configuration_become_the_check(tmp_path: Path, package: bool) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "shop.py").write_text("PRICE = 3\n")
    lines = ["import unittest", "import shop", "class Prices(unittest.TestCase):", "    def test_price(self):"]
    (tmp_path / "tests/test_shop.py").write_text("\n".join([*lines, "        self.assertEqual(shop.PRICE, 3)", ""]))
    if package:
        (tmp_path / "tests/__init__.py").write_text("")
    done = ralph("init", "shop", cwd=tmp_path)
    command = f"python3 -m unittest discover -s tests{' -t .' if package else ''}"
    assert command in done.out
    assert "no check is configured" not in done.err
    ran = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Ran 1 test" in ran.stderr) == (0, True), ran.stderr


def test_a_missing_agent_is_a_warning_without_a_terminal(project: Path, tmp_path: Path) -> None:
    done = ralph("init", cwd=project, env={"PATH": "/usr/bin:/bin"})
    assert (done.code, "warning: agent: " in done.err) == (0, True), done.err
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    done = ralph("init", "--force", cwd=project, env={"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert "warning: agent: " not in done.err
    assert not (project / "started").exists()


@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_a_fresh_plan_passes_every_other_command(project: Path, layout: str) -> None:
    assert ralph_here("init", "--layout", layout, cwd=project).code == 0

    for command in (["status"], ["task", "list"], ["paths"], ["trust", "--show"]):
        done = ralph_here(*command, cwd=project)
        assert done.code == 0, (command, done.out, done.err)


@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_the_example_story_is_never_run(project: Path, layout: str) -> None:
    assert ralph_here("init", "--layout", layout, cwd=project).code == 0

    checked = ralph_here("check", cwd=project)
    assert (checked.code, checked.out.count("still the example that `ralph init` wrote")) == (
        65,
        2 if layout == "spec.md" else 1,
    )
    for command in (["run"], ["run", "--dry-run"]):
        done = ralph_here(*command, cwd=project)
        assert done.code == 65
        assert "still the example" in done.err
        assert "ralph plan" in done.err
    write_first_story(project)
    assert ralph_here("check", cwd=project).code == 0


@pytest.mark.parametrize("layout", ["tasks.json", "steps", "feature", "plan.md", "spec.md"])
def test_an_empty_plan_is_an_error_and_not_complete(project: Path, layout: str) -> None:
    plan = Path(ralph_here("init", "--layout", layout, "--json", cwd=project).json["plan"])
    if plan.suffix == ".json":
        document = json.loads(plan.read_text())
        document |= {key: [] for key in ("tasks", "userStories") if key in document}
        plan.write_text(json.dumps(document))
    else:
        plan.write_text("# shop\n\nNothing yet.\n")

    checked, run = ralph_here("check", cwd=project), ralph_here("run", cwd=project)
    assert "error[no-stories]" in checked.out
    assert (checked.code, run.code) == (65, 65)
    assert "no stor" in run.err or "no step" in run.err


@pytest.mark.usefixtures("git_identity")
@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_what_it_says_to_do_next_leads_to_a_run(project: Path, layout: str) -> None:
    said = ralph_here("init", "--layout", layout, cwd=project).out
    assert "git add -A && git commit" in said
    (project / ".ralph/config.yaml").write_text("agent: {name: command, command: [true]}\n")
    write_first_story(project)
    subprocess.run("git add -A && git commit -q -m start", shell=True, cwd=project, check=True)
    done = ralph("run", "--once", "--trust", cwd=project)
    assert "the single iteration (--once) was" in done.out, done.err


def test_outside_of_a_repository_it_works_and_says_so(tmp_path: Path) -> None:
    done = ralph_here("init", "x", cwd=tmp_path)

    assert done.code == 0
    assert "git init" in done.out


def test_scripts_get_one_document(project: Path) -> None:
    done = ralph_here("init", "x", "--json", cwd=project)

    assert done.json["plan"] == str(project / ".ralph" / "x" / "tasks.json")
    assert done.json["is_repository"] is True
    assert [check["command"] for check in done.json["checks"]] == ["make test", "make lint"]
    assert ".ralph/x/prd.md" in done.json["made"]


def test_again_everything_is_kept_and_force_is_offered(project: Path) -> None:
    ralph_here("init", "x", cwd=project)

    again = ralph_here("init", "x", cwd=project)
    forced = ralph_here("init", "x", "--force", "--json", cwd=project)

    assert "created" not in again.out
    assert "--force" in again.err
    assert all(".bak-" in path for path in forced.json["backups"])


def test_the_commands_are_not_looked_for_when_told_so(project: Path) -> None:
    done = ralph_here("init", "x", "--no-checks", cwd=project)

    assert "make" not in done.out
    assert json.loads((project / ".ralph/x/tasks.json").read_text())["verifyCommands"] == []


def test_a_wrong_layout_gets_a_suggestion(project: Path) -> None:
    done = ralph_here("init", "x", "--layout", "task.json", cwd=project)

    assert done.code == 64
    assert "did you mean tasks.json?" in done.err
    assert not (project / ".ralph").exists()


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a\nb", "x" * 300, "aux"])
def test_a_dangerous_name_is_refused_in_one_clear_line(project: Path, name: str) -> None:
    done = ralph_here("init", name, cwd=project)

    assert done.code == 64
    assert "hint:" in done.err
    assert not (project / ".ralph").exists()


def test_a_prompt_that_asks_for_tests_first(project: Path) -> None:
    ralph_here("init", "x", "--layout", "feature", "--tdd", cwd=project)

    assert "test first" in (project / ".ralph/x/prompt.md").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(project: Path) -> None:
    project.chmod(0o500)
    try:
        done = ralph_here("init", "x", cwd=project)
    finally:
        project.chmod(0o700)

    assert done.code == 78
    assert "is not writable" in done.err


def test_the_help_names_every_layout(tmp_path: Path) -> None:
    done = ralph_here("init", "--help", cwd=tmp_path)

    for layout in ("plan.md", "tasks.json", "steps", "feature", "spec.md"):
        assert f"  {layout} " in done.out


def test_a_prd_with_a_name_is_told_its_number(tmp_path: Path) -> None:
    done = ralph_here("init", "demo", "--layout", "plan.md", "-d", tmp_path, cwd=tmp_path)
    assert done.code == 64
    assert "`ralph init 1 --layout plan.md`" in done.err


@pytest.mark.parametrize("arguments", [("--ralph-dir", "a\nb"), ("--ralph-dir", "x" * 300), ("-d", "x" * 300)], ids=str)
def test_a_folder_that_cannot_be_is_refused(arguments: tuple[str, str], tmp_path: Path) -> None:
    done = ralph_here("init", *arguments, cwd=tmp_path)
    assert done.code == 64
    assert list(tmp_path.iterdir()) == []
