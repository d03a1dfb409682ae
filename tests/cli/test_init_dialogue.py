"""`ralph init` as a conversation, on a real terminal and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here
from support.dialogues import converse

pytestmark = pytest.mark.usefixtures("git_identity")
LAYOUTS = ["plan.md", "tasks.json", "steps", "feature", "spec.md"]


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose Makefile has a test that passes, a linter that is not there and a type check that fails."""
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    (root / "Makefile").write_text(
        "test:\n\t@mkdir -p __pycache__ && touch __pycache__/x.pyc && echo 1 passed\n"
        "lint:\n\t@no-such-linter .\n"
        "typecheck:\n\t@echo 'Found 1 error'; exit 1\n"
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def plan_of(root: Path) -> dict[str, object]:
    (path,) = root.glob(".ralph/*/tasks.json")
    document: dict[str, object] = json.loads(path.read_text())
    return document


def test_enter_accepts_each_default(shop: Path) -> None:
    answers = [
        ("Run the checks once", ""),
        ("off/keep [off]", ""),
        ("no-worse/fix-first/off [no-worse]", ""),
        ("guard/skip [guard]", ""),
        ("Maximum cost of one run", ""),
        ("First story:", ""),
        ("Commit the new files (.gitignore, .ralph/)? [Y/n]", ""),
    ]
    code, screen = converse(["init", "login"], answers, cwd=shop)
    assert code == 0, screen
    assert "make test       passes, " in screen
    assert "make lint       cannot run: no-such-linter is not installed" in screen
    assert "make typecheck  fails, " in screen
    assert "agent: " in screen
    assert screen.rstrip().endswith("ralph run       work through the plan")
    assert plan_of(shop)["verifyCommands"] == ["make test", "make typecheck"]
    config = (shop / ".ralph/config.yaml").read_text()
    assert "baseline: no-worse" in config
    assert '#   - name: lint\n#     command: "make lint"' in config
    assert "could not run: no-such-linter is not installed" in config
    assert "__pycache__/" in (shop / ".gitignore").read_text()
    assert git(shop, "status", "--porcelain") == ""
    assert git(shop, "log", "-1", "--format=%s") == "Add the plan login for Ralph\n"


def test_answers_become_the_plan_and_its_settings(shop: Path) -> None:
    answers = [
        ("Run the checks once", "y"),
        ("off/keep [off]", "keep"),
        ("no-worse/fix-first/off [no-worse]", "what?"),
        ("answer one of", "fix"),
        ("guard/skip [guard]", "s"),
        ("Maximum cost of one run", "lots"),
        ("is not an amount in dollars", "12.5"),
        ("First story:", "Log in by e-mail"),
        ("Acceptance criteria", "POST /login answers 200"),
        ("next criterion (Enter ends):", ""),
        ("Commit the new files", "n"),
    ]
    code, screen = converse(["init", "login"], answers, cwd=shop)
    assert code == 0, screen
    plan = plan_of(shop)
    assert plan["verifyCommands"] == ["make test", "make lint", "make typecheck"]
    stories = plan["userStories"]
    assert isinstance(stories, list)
    assert [(s["id"], s["title"], s["acceptanceCriteria"]) for s in stories] == [
        ("US-001", "Make the types check pass", ["`make typecheck` exits with 0"]),
        ("US-002", "Log in by e-mail", ["POST /login answers 200"]),
    ]
    assert ralph_here("config", "get", "budget.run_usd", cwd=shop).out.strip() == "12.5"
    assert ralph_here("config", "get", "permissions", cwd=shop).out.strip() == "skip"
    assert git(shop, "log", "--format=%s") == "start\n"
    assert ralph_here("check", cwd=shop).code == 0


@pytest.mark.defaults
def test_ignored_settings_are_offered_to_the_proof_checkout(shop: Path) -> None:
    (shop / ".gitignore").write_text(".env\ndist/\n")
    (shop / ".env").write_text("KEY=1\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "ignore .env")

    told = ralph_here("init", "first", "--no-run-checks", "--no-input", cwd=shop)
    assert "git ignores .env; if the checks need it, set proof.files, or pass --proof-files" in told.err
    assert "proof runs in a clean checkout" in told.err
    assert ralph_here("config", "get", "proof.files", cwd=shop).out.strip() == "[]"

    answers = [("git ignores .env. Copy it there", ""), ("Maximum cost", ""), ("First story", ""), ("Commit", "n")]
    flags = ["--no-run-checks", "--permissions", "guard"]
    code, screen = converse(["init", "second", *flags], answers, cwd=shop)
    assert code == 0, screen
    assert ralph_here("config", "get", "proof.files", cwd=shop).out.strip() == '[".env"]'


def test_every_answer_has_a_flag_and_then_nothing_is_asked(shop: Path) -> None:
    flags = [
        "--run-checks",
        "--missing-checks",
        "off",
        "--failing-checks",
        "off",
        "--max-cost",
        "7",
        "--permissions",
        "guard",
    ]
    flags += ["--story", "Log in", "--criterion", "it works with a@b.c", "--commit"]
    code, screen = converse(["init", "login", *flags], [], cwd=shop)
    assert code == 0, screen
    assert "[Y/n]" not in screen
    assert "?" not in screen
    assert plan_of(shop)["verifyCommands"] == ["make test"]
    assert git(shop, "status", "--porcelain") == ""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_terminal_nothing_is_asked_and_the_decisions_are_said(shop: Path, layout: str) -> None:
    done = ralph("init", "--layout", layout, "--story", "Log in", "--criterion", "GET / answers 200", cwd=shop)
    assert done.code == 0, done.err
    assert "types fails now and is used with baseline: no-worse" in done.err
    assert "no-such-linter is not installed" in done.err
    assert "make lint" not in ralph_here("trust", "--show", cwd=shop).out
    assert "make typecheck" in ralph_here("trust", "--show", cwd=shop).out
    assert ralph_here("config", "get", "baseline", cwd=shop).out.strip() == "no-worse"
    assert git(shop, "log", "--format=%s") == "start\n", "nothing is committed without --commit"
    first = {"plan.md": "US-001", "tasks.json": "US-001", "steps": "task-1", "feature": "STORY-001", "spec.md": "1.1"}
    stories = ralph_here("task", "list", "--json", cwd=shop).json
    assert [(story["id"], story["title"]) for story in stories] == [(first[layout], "Log in")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_right_after_it_is_never_refused(shop: Path, layout: str) -> None:
    story = ["--story", "Log in", "--criterion", "GET / answers 200"]
    assert ralph_here("init", "--layout", layout, *story, cwd=shop).code == 0
    config = shop / ".ralph/config.yaml"
    config.write_text(
        config.read_text() + "\nagent: {name: command, command: [touch, done.txt]}\nreview: {enabled: false}\n"
    )
    done = ralph("run", "--once", "--trust", cwd=shop)
    assert "uncommitted" not in done.err, done.err
    assert done.code in (0, 1), done.err
    assert "iteration" in done.out


def test_a_check_that_takes_too_long_is_used_and_said(shop: Path) -> None:
    (shop / "Makefile").write_text("test:\n\tsleep 60\n")
    done = ralph("init", "login", "--check-timeout", "1s", cwd=shop)
    assert done.code == 0
    assert "no result after 1 s" in done.err
    assert plan_of(shop)["verifyCommands"] == ["make test"]
    assert "not a time" in ralph_here("init", "x", "--check-timeout", "soon", cwd=shop).err


def test_the_checks_are_not_run_when_told_so_or_inside_a_loop(shop: Path) -> None:
    ralph_here("init", "a", "--no-run-checks", cwd=shop)
    ralph_here("init", "b", cwd=shop, env={"RALPH_LOOP": "1"})
    assert not (shop / "__pycache__").exists()
    for path in shop.glob(".ralph/*/tasks.json"):
        assert len(json.loads(path.read_text())["verifyCommands"]) == 3


def test_a_folder_that_is_no_repository_is_offered_git_init(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    answers = [
        ("is not a git repository", ""),
        ("No test command was detected", ""),
        ("guard/skip", ""),
        ("Maximum cost", ""),
        ("First story:", ""),
        ("Commit", ""),
    ]
    code, screen = converse(["init", "x"], answers, cwd=root)
    assert code == 0, screen
    assert git(root, "log", "--format=%s") == "Add the plan x for Ralph\n"
    other = tmp_path / "other"
    other.mkdir()
    assert "git init" in ralph_here("init", "x", cwd=other).out
    assert not (other / ".git").exists()
    assert ralph_here("init", "y", "--git-init", cwd=other).code == 0
    assert (other / ".git").is_dir()


def test_files_in_a_new_repository_are_committed_first_so_that_a_run_can_start(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    (root / ".gitignore").write_text("secret.txt\n")
    for name in ("code.py", "secret.txt", "b.txt", "c.txt"):
        (root / name).write_text("x = 1\n")
    answers = [
        ("is not a git repository", ""),
        ("Commit the 4 files already here (.gitignore, b.txt, c.txt, …)?", ""),
        ("No test command was detected", ""),
        ("guard/skip", ""),
        ("Maximum cost", ""),
        ("First story:", "Greet"),
        ("Acceptance criteria", ""),
        ("Commit the new files", ""),
    ]
    code, screen = converse(["init", "x"], answers, cwd=root)
    assert code == 0, screen
    assert git(root, "log", "--format=%s").splitlines() == ["Add the plan x for Ralph", "Start the repository"]
    assert "secret.txt" not in git(root, "ls-files")
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize("line", [".ralph", "/.ralph/", ".ralph/*", ".*"])
def test_a_gitignore_that_hides_the_plan_is_noticed_and_can_be_fixed(shop: Path, line: str) -> None:
    (shop / ".gitignore").write_text(f"*.pyc\n{line}\n")
    done = ralph_here("init", "a", "--no-checks", cwd=shop)
    assert ".gitignore:2 ignores" in done.err
    assert "--fix-gitignore" in done.err
    assert ralph_here("init", "b", "--no-checks", "--fix-gitignore", "--commit", cwd=shop).code == 0
    assert ".ralph/b/tasks.json" in git(shop, "ls-files")


def test_only_the_files_it_made_are_committed(shop: Path) -> None:
    (shop / "staged.txt").write_text("mine")
    git(shop, "add", "staged.txt")
    (shop / ".gitignore").write_text("mine.log\n")
    done = ralph_here("init", "x", "--no-checks", "--commit", cwd=shop)
    assert done.code == 0
    committed = git(shop, "show", "--name-only", "--format=").split()
    assert ".ralph/x/tasks.json" in committed
    assert not {"staged.txt", ".gitignore"} & set(committed), "what was uncommitted before stays so"
    assert "A  staged.txt" in git(shop, "status", "--porcelain")
    assert "git add -A && git commit     a run starts only when your own work is committed" in done.out


def test_the_layout_comes_from_the_settings_or_the_workspace(shop: Path) -> None:
    assert (
        ralph_here("init", "--no-checks", "--json", cwd=shop, env={"RALPH_LAYOUT": "steps"}).json["layout"] == "steps"
    )
    again = ralph_here("init", "--no-checks", "--json", cwd=shop)
    assert again.json["layout"] == "steps", "the workspace uses it"
    (shop / ".ralph/config.yaml").write_text("layout: feature\nbranch: {prefix: work/}\n")
    made = ralph_here("init", "--name", "login", "--no-checks", "--json", cwd=shop).json
    assert (made["layout"], made["name"]) == ("feature", "login")
    assert json.loads(Path(made["plan"]).read_text())["branchName"] == "work/login"
    assert ralph_here("init", "a", "--name", "b", cwd=shop).code == 64


def test_the_projects_own_virtual_environment_is_used(tmp_path: Path) -> None:
    root = tmp_path / "lib"
    (root / ".venv/bin").mkdir(parents=True)
    git(tmp_path, "init", "-q", "lib")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n[tool.ruff]\n")
    program = root / ".venv/bin/pytest"
    program.write_text("#!/bin/sh\necho 3 passed\n")
    program.chmod(0o755)
    done = ralph_here("init", "x", "--json", "--missing-checks", "keep", cwd=root, env={"PATH": "/usr/bin:/bin"})
    assert [check["command"] for check in done.json["checks"]] == [".venv/bin/pytest", "ruff check"]
    assert [trial["outcome"] for trial in done.json["trials"]] == ["passes", "missing"]


def test_pytest_that_cannot_import_the_project_is_run_as_a_module(tmp_path: Path) -> None:
    root = tmp_path / "flat"
    (root / "tests").mkdir(parents=True)
    git(tmp_path, "init", "-q", "flat")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "mine.py").write_text("X = 1\n")
    (root / "tests/test_mine.py").write_text("import mine\n\n\ndef test_x():\n    assert mine.X\n")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = ralph_here("init", "x", "--json", cwd=root, env={"PATH": path})
    assert [check["command"] for check in done.json["checks"]] == ["python3 -m pytest"]


def test_tests_that_tox_would_run_are_run_by_pytest_where_tox_is_missing(tmp_path: Path) -> None:
    root = tmp_path / "lib"
    (root / "tests").mkdir(parents=True)
    git(tmp_path, "init", "-q", "lib")
    (root / "tox.ini").write_text("[tox]\n[testenv]\ncommands = pytest\n")
    (root / "setup.py").write_text("")
    (root / "tests/test_x.py").write_text("def test_x():\n    pass\n")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = ralph_here("init", "x", "--json", cwd=root, env={"PATH": path})
    assert [check["command"] for check in done.json["checks"]] == ["pytest"]


def test_fix_first_is_not_done_while_the_check_still_fails(shop: Path) -> None:
    assert ralph_here("init", "x", "--failing-checks", "fix-first", "--commit", cwd=shop).code == 0
    config = shop / ".ralph/config.yaml"
    lazy = 'agent: {name: command, command: [sh, -c, \'echo x > done.txt; echo "{\\"done\\": true}" > /dev/null\']}\n'
    config.write_text(config.read_text() + lazy + "review: {enabled: false}\nmax_iterations: 1\n")
    done = ralph("run", "--once", "--trust", cwd=shop)
    assert done.code != 0
    assert plan_of(shop)["userStories"][0]["passes"] is False  # type: ignore[index]


def python_project(root: Path, tests: dict[str, str], *, pytest_in_venv: bool = True) -> Path:
    """A project without any pytest configuration."""
    git_init = root / "inflection"
    git_init.mkdir()
    git(git_init, "init", "-q")
    for name, text in {"setup.py": "", **tests}.items():
        (git_init / name).parent.mkdir(parents=True, exist_ok=True)
        (git_init / name).write_text(text)
    if pytest_in_venv:
        program = git_init / ".venv/bin/pytest"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest "$@"\n')
        program.chmod(0o755)
    return git_init


@pytest.mark.parametrize("where", ["tests/test_a.py", "test_a.py"])
def test_pytest_runs_tests_that_unittest_would_not_see(tmp_path: Path, where: str) -> None:
    root = python_project(tmp_path, {where: "def test_a():\n    assert True\n", "tests/__init__.py": ""})
    done = ralph_here("init", "--no-input", cwd=root)
    assert done.code == 0, done
    assert plan_of(root)["verifyCommands"] == [".venv/bin/pytest"]
    assert ".venv/bin/pytest  passes, " in done.err


def test_a_check_that_runs_no_tests_does_not_pass(tmp_path: Path) -> None:
    root = python_project(tmp_path, {"tests/test_a.py": "", "tests/__init__.py": ""}, pytest_in_venv=False)
    done = ralph_here("init", "--no-input", cwd=root)
    assert "python3 -m unittest discover -s tests -t .  runs no tests" in done.err
    assert "passes" not in done.err
    assert "--test-command" in done.err


def test_unittest_that_finds_nothing_is_replaced_by_pytest(tmp_path: Path) -> None:
    """What the tests are does not show in the file that the detection reads."""
    tests = {"tests/test_a.py": "from .cases import *\n", "tests/cases.py": "def test_a():\n    pass\n"}
    root = python_project(tmp_path, {**tests, "tests/__init__.py": ""}, pytest_in_venv=False)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "python3").symlink_to(sys.executable)
    done = ralph("init", "--no-input", cwd=root, env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    assert plan_of(root)["verifyCommands"] == ["python3 -m pytest"], done


def test_the_test_command_can_be_named(tmp_path: Path) -> None:
    root = python_project(tmp_path, {"setup.cfg": "[flake8]\n"}, pytest_in_venv=False)
    done = ralph_here("init", "--no-input", "--missing-checks", "keep", "--no-run-checks", cwd=root)
    assert plan_of(root)["verifyCommands"] == ["flake8"]
    command = "echo 3 passed"
    done = ralph_here("init", "--no-input", "two", "--test-command", command, cwd=root)
    assert done.code == 0, done
    assert command in json.loads((root / ".ralph/two/tasks.json").read_text())["verifyCommands"]
    assert ralph_here("init", "--no-input", "three", "--test-command", " ", cwd=root).code == 64


def test_the_test_command_is_asked_for_if_none_is_detected(tmp_path: Path) -> None:
    root = python_project(tmp_path, {}, pytest_in_venv=False)
    answers = [
        ("No test command was detected", "true"),
        ("Run the checks once", ""),
        ("guard/skip [guard]", ""),
        ("Maximum cost of one run", ""),
        ("First story:", "Count the words"),
        ("Acceptance criteria", "wc prints 2"),
        ("next criterion (Enter ends):", ""),
        ("Commit the new files", "n"),
    ]
    code, screen = converse(["init"], answers, cwd=root)
    assert code == 0, screen
    assert plan_of(root)["verifyCommands"] == ["true"]


def test_without_a_check_init_says_where_to_put_one(tmp_path: Path) -> None:
    root = python_project(tmp_path, {}, pytest_in_venv=False)
    done = ralph_here("init", "--no-input", "words", cwd=root)
    assert "`verifyCommands` in .ralph/words/tasks.json, or `checks:` in .ralph/config.yaml" in done.err
    assert f"{root}: plan layout tasks.json" in done.out
