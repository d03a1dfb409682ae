"""The index read without git: the same as git reads, or left to git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph.host.git.index_files import Index, NotPlainIndex, read_index
from support.repositories import Project


def _read(project: Project) -> Index:
    return read_index(project.root / ".git" / "index", project.repo.object_format)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_it_has_the_paths_and_bits_that_git_lists(tmp_path: Path, object_format: str) -> None:
    project = Project(tmp_path, extra=("--object-format", object_format))
    for name in ("größe", "with space", "deep/er/file", "x" * 200, "a" * 8, "b" * 7):
        project.write(name, name)
    project.git("add", "-A")
    project.git("update-index", "--assume-unchanged", "a.txt")
    project.git("update-index", "--skip-worktree", "src/b.py", "deep/er/file")  # makes it an index of version 3
    project.write("later", "")
    project.git("add", "-N", "later")
    listed = [os.fsencode(item) for item in project.git("ls-files", "-z", "-v").split("\0") if item]
    read = _read(project)
    assert read.paths == {item[2:] for item in listed}
    assert read.hidden == {item[2:] for item in listed if item[:1] == b"S" or item[:1].islower()}
    assert read.hidden == {b"a.txt", b"src/b.py", b"deep/er/file"}


def test_what_was_read_is_read_again_once_git_writes_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert b"new" not in _read(project).paths
    project.write("new", "")
    project.git("add", "new")
    assert b"new" in _read(project).paths
    (project.root / ".git" / "index").unlink()
    assert _read(project) == Index()


@pytest.mark.parametrize(
    "command",
    [
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("sparse-checkout", "set", "--cone", "--sparse-index", "src"),
    ],
)
def test_other_formats_are_left_to_git(tmp_path: Path, command: tuple[str, ...]) -> None:
    project = Project(tmp_path)
    project.write("other/c.py", "")
    project.git("add", "-A")
    project.git("commit", "-qm", "other")
    project.git(*command)
    with pytest.raises(NotPlainIndex):
        _read(project)


def test_conflicts_are_left_to_git(tmp_path: Path) -> None:
    project = Project(tmp_path)
    blob = project.git("hash-object", "a.txt")
    lines = "".join(f"100644 {blob} {stage}\tconflict\n" for stage in (1, 2, 3))
    subprocess.run(["git", "update-index", "--index-info"], cwd=project.root, input=lines.encode(), check=True)
    with pytest.raises(NotPlainIndex):
        _read(project)


def test_damage_is_left_to_git(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.root / ".git" / "index"
    data = path.read_bytes()
    for damaged in (b"", b"DIRC", data[:-1], data[:40] + data[41:], data[:50] + b"?" + data[51:], data + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(NotPlainIndex):
            _read(project)
