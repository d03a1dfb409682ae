from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from ralph.host.git.checkpoint import Checkpoint, release, take, undo_tampering
from ralph.host.git.repo import RepositoryReplaced, identify
from ralph.host.git.rescue import roll_back
from ralph.host.git.snapshot import snapshot_tree
from support.repositories import Project


def test_a_checkpoint_survives_the_journal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(b"\xff/inner", "x")
    (project.root / os.fsdecode(b"empty\xfe")).mkdir()
    checkpoint = take(project.repo, project.index)
    assert checkpoint.empty_folders == (b"empty\xfe",)
    assert msgspec.json.decode(msgspec.json.encode(checkpoint), type=Checkpoint) == checkpoint


def test_a_checkpoint_says_where_head_was(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    assert (checkpoint.head, checkpoint.branch) == (project.head(), "main")
    project.git("checkout", "-q", "--detach")
    checkpoint = take(project.repo, project.index)
    assert (checkpoint.head, checkpoint.branch) == (project.head(), None)
    unborn = Project(tmp_path / "unborn", commit=False)
    checkpoint = take(unborn.repo, unborn.index)
    assert (checkpoint.head, checkpoint.branch, checkpoint.index) == (None, "main", "")


def test_taking_a_checkpoint_touches_nothing_of_the_users(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "changed\n")
    project.git("add", "a.txt")
    project.write("a.txt", "changed again\n")
    project.write("new", "x")
    before, index, status = project.listing(), project.index_bytes(), project.status()
    take(project.repo, project.index)
    assert (project.listing(), project.index_bytes(), project.status()) == (before, index, status)
    project.check_health()


def test_the_same_tree_makes_the_same_checkpoint_tree(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert (
        take(project.repo, project.index).tree
        == take(project.repo, project.index).tree
        == project.git("rev-parse", "HEAD^{tree}")
    )


def test_a_cleaning_agent_cannot_take_the_checkpoint_away(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("notes", "only here\n")
    checkpoint = take(project.repo, project.index)
    (project.root / "notes").unlink()
    project.git("reset", "-q", "--hard", "HEAD")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert project.read("notes") == "only here\n"
    project.check_health()


def test_after_release_no_ref_is_left(tmp_path: Path) -> None:
    project = Project(tmp_path)
    take(project.repo, project.index)
    assert len(project.git("for-each-ref", "refs/ralph").splitlines()) == 2
    release(project.repo, project.index)
    assert project.git("for-each-ref", "refs/ralph") == ""
    release(project.repo, project.index)


def test_two_private_indexes_do_not_share_their_pins(tmp_path: Path) -> None:
    project = Project(tmp_path)
    take(project.repo, project.index)
    take(project.repo, tmp_path / "state" / "other")
    release(project.repo, project.index)
    assert len(project.git("for-each-ref", "refs/ralph").splitlines()) == 2


def test_copies_of_the_index_do_not_pile_up(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number in range(30):
        project.write("a.txt", f"{number}\n")
        project.git("add", "a.txt")
        checkpoint = take(project.repo, project.index)
    assert len(list(project.index.with_name("index.moments").iterdir())) <= 20
    project.git("reset", "-q")
    roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert project.git("diff", "--cached", "--name-only") == "a.txt"


def test_a_checkpoint_of_another_repository_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    (project.root / ".git").rename(tmp_path / "old")
    shutil.copytree(tmp_path / "old", project.root / ".git")
    with pytest.raises(RepositoryReplaced):
        undo_tampering(identify(project.root), checkpoint, project.index)


def test_a_run_that_goes_on_sees_what_a_person_changed_in_between(tmp_path: Path) -> None:
    project = Project(tmp_path)
    take(project.repo, project.index)
    project.git("config", "alias.mine", "status")
    project.write(".git/info/exclude", "*.tmp\n")
    project.write("x.tmp", "x")
    checkpoint = take(project.repo, project.index)
    assert undo_tampering(project.repo, checkpoint, project.index) == ()
    assert project.git("config", "alias.mine") == "status"
    assert checkpoint.tree == snapshot_tree(project.repo, project.index)
    assert project.in_commit(checkpoint.tree, "x.tmp") is None
