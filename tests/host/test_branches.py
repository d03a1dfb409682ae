from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.errors import SetupError, UsageError
from ralph.host.git.branches import switch_to_branch, valid_name
from support.repositories import Project


def test_the_right_branch_is_left_as_it_is_even_with_work(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "work\n")
    assert not switch_to_branch(project.repo, "main")


def test_a_missing_branch_is_made_from_head(tmp_path: Path) -> None:
    project = Project(tmp_path)
    head = project.head()
    assert switch_to_branch(project.repo, "ralph/login")
    assert project.git("symbolic-ref", "--short", "HEAD") == "ralph/login"
    assert project.head() == head


def test_an_existing_branch_is_switched_to(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("branch", "side")
    assert not switch_to_branch(project.repo, "side")
    assert project.git("symbolic-ref", "--short", "HEAD") == "side"


@pytest.mark.parametrize("kind", ["changed", "staged", "untracked"])
def test_uncommitted_work_keeps_the_branch(tmp_path: Path, kind: str) -> None:
    project = Project(tmp_path)
    project.write("new" if kind == "untracked" else "a.txt", "work\n")
    if kind == "staged":
        project.git("add", "-A")
    before = project.listing()
    with pytest.raises(SetupError, match="there are uncommitted changes: ") as caught:
        switch_to_branch(project.repo, "side")
    assert "--worktree" in caught.value.hint
    assert project.git("symbolic-ref", "--short", "HEAD") == "main"
    assert project.listing() == before


def test_the_plan_itself_does_not_count_as_work(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".ralph/login/prd.json", "{}")
    assert switch_to_branch(project.repo, "side", [".ralph"])
    project.write(".ralphx", "")
    with pytest.raises(SetupError, match=r"\.ralphx"):
        switch_to_branch(project.repo, "main", [".ralph/"])


def test_a_merge_in_progress_keeps_the_branch(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / ".git" / "MERGE_HEAD").write_text(project.head() + "\n")
    with pytest.raises(SetupError, match="a merge is in progress"):
        switch_to_branch(project.repo, "side")


def test_a_branch_in_another_worktree_is_explained(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    with pytest.raises(SetupError, match=r"checked out in another worktree: .*tree"):
        switch_to_branch(project.repo, "side")


def test_a_branch_under_the_name_of_another_is_explained(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("branch", "ralph")
    with pytest.raises(SetupError, match="cannot create branch ralph/login"):
        switch_to_branch(project.repo, "ralph/login")


def test_files_that_would_be_overwritten_are_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("switch", "-qc", "side")
    project.write("plan/x", "tracked there\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "plan")
    project.git("switch", "-q", "main")
    project.write("plan/x", "untracked here\n")
    with pytest.raises(SetupError, match="would overwrite plan/x"):
        switch_to_branch(project.repo, "side", ["plan"])
    assert project.read("plan/x") == "untracked here\n"


def test_an_unborn_branch_can_be_renamed_before_its_first_commit(tmp_path: Path) -> None:
    project = Project(tmp_path, commit=False)
    assert switch_to_branch(project.repo, "ralph/login")
    assert project.git("symbolic-ref", "--short", "HEAD") == "ralph/login"


def test_no_hook_runs_on_a_switch(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {tmp_path}/ran\n", 0o755)
    switch_to_branch(project.repo, "side")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["", "-d", "a b", "a..b", "@{-1}", "HEAD", "a~1", "x.lock", "/a", "a\nb", "--orphan"])
def test_a_name_git_would_not_take_as_it_is_is_refused(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    project.git("switch", "-qc", "side")
    with pytest.raises(UsageError, match="is not a valid branch name"):
        valid_name(project.repo, name)
