from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.host.git.situation import Entry, Kind, situation
from support.repositories import Project


def test_a_clean_repository(tmp_path: Path) -> None:
    project = Project(tmp_path)
    now = situation(project.repo)
    assert (now.head, now.branch) == (project.head(), "main")
    assert (now.unborn, now.detached, now.in_progress) == (False, False, "")
    assert (now.dirty, now.submodules, now.nested_repositories) == ((), (), ())


def test_a_branch_without_a_commit(tmp_path: Path) -> None:
    now = situation(Project(tmp_path, commit=False).repo)
    assert (now.head, now.branch, now.unborn) == (None, "main", True)


def test_a_detached_head(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("checkout", "-q", "--detach")
    now = situation(project.repo)
    assert (now.head, now.branch, now.detached) == (project.head(), None, True)


def test_uncommitted_work_is_listed_with_its_kind(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "two\n")
    project.write("src/b.py", "print(2)\n")
    project.git("add", "src/b.py")
    project.write("src/b.py", "print(3)\n")
    project.write("odd\nname", "")
    project.write(b"\xff", "")
    project.write("x.log", "ignored")
    assert set(situation(project.repo).dirty) == {
        Entry("a.txt", Kind.CHANGED),
        Entry("src/b.py", Kind.STAGED),
        Entry("src/b.py", Kind.CHANGED),
        Entry("odd\nname", Kind.UNTRACKED),
        Entry("\\xff", Kind.UNTRACKED),
    }


def test_a_repository_in_the_folder_is_not_work_but_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    Project(project.root / "vendor")
    now = situation(project.repo)
    assert now.nested_repositories == ("vendor/project",)
    assert [entry.path for entry in now.dirty] == []


def test_submodules_are_named(tmp_path: Path) -> None:
    project, library = Project(tmp_path / "one"), Project(tmp_path / "two")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    now = situation(project.repo)
    assert now.submodules == ("lib",)
    assert now.dirty == ()


def _conflict(project: Project) -> None:
    project.git("switch", "-qc", "side")
    project.write("a.txt", "side\n")
    project.git("commit", "-qam", "side")
    project.git("switch", "-q", "main")
    project.write("a.txt", "main\n")
    project.git("commit", "-qam", "main")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("merge", "side"), "merge"),
        (("rebase", "side"), "rebase"),
        (("cherry-pick", "side"), "cherry-pick"),
        (("revert", "--no-edit", "HEAD~1"), "revert"),
    ],
)
def test_an_operation_in_progress_is_named(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    project = Project(tmp_path)
    _conflict(project)
    project.git(*command, check=False)
    now = situation(project.repo)
    assert now.in_progress == name
    assert Entry("a.txt", Kind.CONFLICT) in now.dirty


def test_a_bisect_in_progress_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("bisect", "start")
    assert situation(project.repo).in_progress == "bisect"


def test_looking_changes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "one\n")
    os.utime(project.root / "a.txt", (1, 1))
    index = project.index_bytes()
    situation(project.repo)
    assert project.index_bytes() == index
