from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here


def git(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Path:
    root = tmp_path / "my shop"
    root.mkdir()
    git(root, "init", "-q")
    (root / "mine.txt").write_text("mine\n")
    assert ralph_here("init", "login", cwd=root).code == 0
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def only_archive(root: Path) -> Path:
    found = list((root / ".ralph" / "archive").iterdir())
    assert len(found) == 1
    return found[0]


def test_a_plan_is_put_away_and_committed(project: Path) -> None:
    done = ralph("archive", cwd=project)

    assert done.code == 0, done.err
    archive = only_archive(project)
    assert "0 of 1 story done" in done.out
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "log", "-1", "--format=%s%n%an").splitlines() == [
        f"chore: archive {archive.name} (0 of 1 story done)",
        "Ada Tester",
    ]
    started = git(project, "log", "--format=%cI", "-1", "HEAD~1").strip()
    assert f"- Started: {started}\n" in (archive / "summary.md").read_text()


def test_nothing_else_gets_into_the_commit(project: Path) -> None:
    (project / "staged.txt").write_text("staged\n")
    git(project, "add", "staged.txt")
    (project / "mine.txt").write_text("changed\n")
    (project / "loose.txt").write_text("loose\n")

    assert ralph_here("archive", cwd=project).code == 0

    assert git(project, "status", "--porcelain") == " M mine.txt\nA  staged.txt\n?? loose.txt\n"
    changed = git(project, "show", "--format=", "--name-only").splitlines()
    assert all(name.startswith(".ralph/") for name in changed)


@pytest.mark.parametrize("layout", ["plan.md", "steps", "feature", "spec.md"])
def test_every_layout_can_be_put_away_and_brought_back(
    tmp_path: Path, git_identity: tuple[str, str], layout: str
) -> None:
    git(tmp_path, "init", "-q")
    assert ralph_here("init", "--layout", layout, cwd=tmp_path).code == 0
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "start")

    put_away = ralph_here("archive", "--json", cwd=tmp_path)
    listed = ralph_here("archive", "list", "--json", cwd=tmp_path)
    back = ralph_here("archive", "restore", listed.json[0]["name"], cwd=tmp_path)

    assert put_away.code == 0, put_away.err
    assert put_away.json["commit"]
    assert listed.json[0]["manifest"]["layout"] == layout
    assert back.code == 0, back.err
    assert ralph_here("status", cwd=tmp_path).code == 0
    assert [line for line in git(tmp_path, "diff", "--name-only", "HEAD~1").splitlines() if "archive" not in line] == []


def test_the_folder_of_seed_001_is_reset_and_its_archive_stands_beside_it(tmp_path: Path) -> None:
    assert ralph_here("init", "--ralph-dir", "ralph", cwd=tmp_path).code == 0
    plan = tmp_path / "ralph" / "tasks.json"
    text = json.loads(plan.read_text())
    text["userStories"][0]["title"] = "Mine"
    text["branchName"] = "ralph/checkout"
    plan.write_text(json.dumps(text))

    assert ralph_here("archive", cwd=tmp_path).code == 0

    archive = next((tmp_path / "ralph-archive").iterdir())
    assert archive.name.endswith("-checkout")
    assert json.loads((archive / "tasks.json").read_text())["userStories"][0]["title"] == "Mine"
    assert "Mine" not in plan.read_text()
    assert (tmp_path / "ralph" / "prompt.md").exists()
    assert ralph_here("archive", "restore", "checkout", cwd=tmp_path).code == 0
    assert "Mine" in plan.read_text()


def test_a_hook_of_the_project_can_say_no_and_the_archive_is_still_there(project: Path) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'no commits on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)

    done = ralph_here("archive", cwd=project)

    assert done.code == 0
    assert "not committed: no commits on Fridays" in done.err
    assert (only_archive(project) / "tasks.json").exists()
    assert git(project, "log", "--oneline").count("\n") == 1
    assert git(project, "diff", "--cached", "--name-only") == ""


def test_without_a_repository_or_when_told_so_nothing_is_committed(project: Path, tmp_path: Path) -> None:
    told = ralph_here("archive", "--no-commit", cwd=project)
    loose = tmp_path / "loose"
    loose.mkdir()
    ralph_here("init", "x", cwd=loose)
    outside = ralph_here("archive", cwd=loose)

    assert "not committed: --no-commit" in told.err
    assert git(project, "log", "--oneline").count("\n") == 1
    assert "not a git repository" in outside.err
    assert outside.code == 0


def test_what_git_ignores_is_archived_without_a_commit(project: Path) -> None:
    git(project, "rm", "-rq", "--cached", ".ralph")
    (project / ".gitignore").write_text(".ralph/\n")
    git(project, "add", ".gitignore")
    git(project, "commit", "-qm", "ignore")

    done = ralph_here("archive", cwd=project)

    assert done.code == 0
    assert "git ignores" in done.err
    assert (only_archive(project) / "tasks.json").exists()


def test_during_a_merge_nothing_is_committed(project: Path) -> None:
    head = git(project, "rev-parse", "HEAD")
    (project / ".git" / "MERGE_HEAD").write_text(head)

    assert "a merge is in progress" in ralph_here("archive", cwd=project).err


def test_without_an_identity_the_loop_commits_in_its_own_name(project: Path) -> None:
    Path(os.environ["HOME"], ".gitconfig").unlink()

    done = ralph_here("archive", cwd=project)

    assert "Ralph Loop" in done.err
    assert git(project, "log", "-1", "--format=%an <%ae>").strip() == "Ralph Loop <ralph@localhost>"


def test_an_option_before_the_action_counts(project: Path, tmp_path: Path) -> None:
    ralph_here("archive", cwd=project)

    before = ralph_here("archive", "-d", project, "list", "--json", cwd=tmp_path)
    after = ralph_here("archive", "list", "-d", project, "--json", cwd=tmp_path)

    assert before.json == after.json != []


def test_an_empty_list_says_so(project: Path) -> None:
    done = ralph_here("archive", "list", cwd=project)

    assert (done.code, done.out) == (0, "")
    assert "no archives yet" in done.err


@pytest.mark.parametrize("name", ["../../x", "/etc", "nope"])
def test_a_wrong_name_is_refused(project: Path, name: str) -> None:
    done = ralph_here("archive", "restore", name, cwd=project)

    assert done.code == 64


def test_a_restore_refuses_what_is_in_use(project: Path) -> None:
    ralph_here("archive", cwd=project)
    ralph_here("init", "login", cwd=project)
    assert ralph_here("task", "add", "New work", "--criterion", "`app` prints 1", cwd=project).code == 0

    done = ralph_here("archive", "restore", "login", cwd=project)

    assert done.code == 78
    assert ".ralph/login/tasks.json" in done.err
    assert "ralph plan archive" in done.err
