"""What seed 003 (feature folders with `prd.json`, limits, branches) promises, starting from its own text."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.config.document import parse
from support.cli import ralph, ralph_here
from support.dialogues import converse

pytestmark = pytest.mark.usefixtures("git_identity")

# "PRD Format: Schema (prd.json)" of the seed, filled in.
PRD: dict[str, Any] = {
    "feature": "user-auth",
    "branchName": "feature/user-auth",
    "description": "Log in with a password.",
    "createdAt": "2026-01-01T00:00:00Z",
    "userStories": [
        {
            "id": "STORY-001",
            "title": "Check a password",
            "description": "As a user I want to log in.",
            "acceptanceCriteria": ["src/auth.txt is there"],
            "priority": 1,
            "passes": False,
            "notes": "",
        }
    ],
}
# "Project Config (.ralph/config.yaml)" of the seed, with an agent and a check that need nothing installed.
CONFIG = """\
defaults:
  max_iterations: 30

quality_checks:
  backend: "test ! -e src/broken.txt"

branch:
  prefix: "feature/"
  auto_create: true

agent: {name: scripted, script: script.yaml}
"""
SCRIPT = """\
stories:
  '*':
    - implement: [{write: {path: src/auth.txt, text: yes}}, claim]
      review: [{verdict: approved}]
"""
LIMIT = "stories: {'*': [[{limit: {seconds: 3600}}]]}\n"


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".ralph/user-auth/specs").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    (root / ".ralph/user-auth/prd.json").write_text(json.dumps(PRD, indent=2))
    (root / ".ralph/user-auth/progress.txt").write_text("# Progress Log: user-auth\n")
    (root / "script.yaml").write_text(SCRIPT)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def test_a_feature_that_differs_from_its_folder_is_a_warning(project: Path) -> None:
    """`feature`: "Feature identifier, matches folder name"."""
    (project / ".ralph/config.yaml").write_text(CONFIG)
    assert "feature-name" not in ralph_here("check", cwd=project).out
    (project / ".ralph/user-auth/prd.json").write_text(json.dumps(PRD | {"feature": "login"}, indent=2))
    done = ralph_here("check", cwd=project)
    assert done.code == 0
    assert "warning[feature-name]: feature is 'login', but its folder is 'user-auth'" in done.out


def test_example_files_are_available(tmp_path: Path) -> None:
    """`templates/prompt.md`, `prompt-tdd.md`, `prd.json.example` and `config.yaml.example`."""
    done = ralph_here("init", "--examples", cwd=tmp_path)
    assert done.code == 0, done.err
    folder = tmp_path / ".ralph/examples"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"config.yaml.example", "prompt.md.example", "prompt-tdd.md.example", "prd.json.example"} <= names
    assert json.loads((folder / "prd.json.example").read_text())["feature"] == "user-login"
    parse((folder / "config.yaml.example").read_text(), "config.yaml.example")
    assert "test first" in (folder / "prompt-tdd.md.example").read_text()
    assert "no plan" in ralph_here("check", cwd=tmp_path).err, "examples are no plan"

    (tmp_path / ".ralph/config.yaml").write_text((folder / "config.yaml.example").read_text())
    assert ralph_here("config", "show", cwd=tmp_path).code == 0


@pytest.mark.parametrize(("on_limit", "key", "code"), [("", "\x04", 2), ("ask-exit", "e", 2), ("exit", "", 2)])
def test_a_limit_question_that_nobody_answers_ends_the_run_with_exit_code_2(
    project: Path, on_limit: str, key: str, code: int
) -> None:
    """ "Prompt user: wait or exit"; "No response in 30s: auto-exit"; "API limit (exit chosen): 2".

    The end of input is no response, and is known at once.
    """
    (project / "script.yaml").write_text(LIMIT)
    (project / ".ralph/config.yaml").write_text(CONFIG + (f"on_limit: {on_limit}\n" if on_limit else ""))
    git(project, "add", "-A")
    git(project, "commit", "-qm", "limits")
    answers = [("without an answer within 30 s it exits", key)] if key else []
    done, screen = converse(["run", "--once", "--trust", "--verbose"], answers, cwd=project)
    assert done == code, screen
    assert "usage limit" in screen


def test_a_prompt_file_that_is_missing_is_said_before_anything_is_made(project: Path) -> None:
    """`-p, --prompt`: "Custom prompt file"."""
    (project / ".ralph/config.yaml").write_text(CONFIG)
    before = git(project, "for-each-ref"), git(project, "status", "--porcelain")
    done = ralph("run", "--trust", "-p", "my-prompt.md", cwd=project)
    assert done.code == 64
    assert "the prompt file my-prompt.md does not exist" in done.err
    assert (git(project, "for-each-ref"), git(project, "status", "--porcelain")) == before
    assert "no run" in (shown := ralph_here("log", cwd=project)).out + shown.err


def test_an_uncommitted_config_does_not_block_the_branch(project: Path) -> None:
    """`branch: {prefix: feature/, auto_create: true}` in a config that was just written."""
    (project / ".ralph/config.yaml").write_text(CONFIG)
    done = ralph("run", "--trust", cwd=project)
    assert done.code == 0, done.out + done.err
    assert "Check a password" in git(project, "log", "--format=%s", "main..feature/user-auth")
    assert git(project, "branch", "--show-current") == "main\n", "the checkout is the user's"
    assert "the work is on branch feature/user-auth" in done.err
    git(project, "stash", "--include-untracked", "--quiet")
    git(project, "switch", "--quiet", "feature/user-auth")


def test_in_place_the_branch_is_checked_out(project: Path) -> None:
    (project / ".ralph/config.yaml").write_text(CONFIG)
    done = ralph("run", "--trust", "--workspace", "in-place", cwd=project)
    assert done.code == 0, done.out + done.err
    assert git(project, "branch", "--show-current") == "feature/user-auth\n"


def test_init_starts_a_feature_with_the_branch_of_the_config(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "shop")
    root = tmp_path / "shop"
    (root / ".ralph").mkdir()
    (root / ".ralph/config.yaml").write_text(CONFIG.replace("feature/", "work/") + "layout: feature\n")
    assert ralph_here("init", "user-auth", "--no-checks", cwd=root).code == 0
    assert json.loads((root / ".ralph/user-auth/prd.json").read_text())["branchName"] == "work/user-auth"
