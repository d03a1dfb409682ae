"""Objects without git: the same as git's, or left to git."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ralph.host.git import loose
from ralph.host.git.command import git, line
from ralph.host.git.objects import TreeEntry, changes, entries, parse_changes, parse_entries, set_entries
from ralph.host.git.repo import Repo, identify

NAMES = [b"a", b"a.b", b"a/b", b"a/b/c", b"a-b", b"a0", b"b/x", b"b/y/z", b"\xff", b"b", b"c/d/e/f", b"a/b/d"]
MODES = ["100644", "100755", "120000"]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    git(tmp_path, "init", "-q")
    return identify(tmp_path)


def objects(repo: Repo) -> loose.Objects:
    return (repo.common_dir / "objects",)


def file_of(repo: Repo, name: str) -> Path:
    return repo.common_dir / "objects" / name[:2] / name[2:]


def blob(repo: Repo, text: str) -> str:
    return loose.write(objects(repo), b"blob", text.encode(), repo.no_object)


def by_git(repo: Repo, tree: str, wanted: dict[bytes, tuple[str, str]]) -> str:
    index = repo.git_dir / "scratch"
    git(repo, "read-tree", tree or "--empty", index=index)
    set_entries(repo, {path: TreeEntry(*entry) for path, entry in wanted.items()}, index)
    return line(git(repo, "write-tree", index=index))


@pytest.mark.parametrize("seed", range(40))
def test_trees_and_differences_are_those_of_git(repo: Repo, seed: int) -> None:
    chance, tree = random.Random(seed), ""
    blobs = [blob(repo, str(number)) for number in range(3)]
    for _ in range(8):
        wanted = {name: (chance.choice(MODES), chance.choice(blobs)) for name in chance.sample(NAMES, 3)}
        removed = [name for name in chance.sample(NAMES, 3) if name not in wanted]
        wanted = dict.fromkeys(removed, ("000000", repo.no_object)) | wanted
        try:
            made = loose.with_entries(objects(repo), tree, wanted, repo.no_object)
        except loose.NotLoose:  # a file and a folder of the same name
            continue
        assert made == by_git(repo, tree, wanted)
        if tree:
            told = parse_changes(git(repo, "diff-tree", "-r", "-z", "--raw", "--no-renames", tree, made))
            assert changes(repo, tree, made) == told
        assert entries(repo, made) == parse_entries(git(repo, "ls-tree", "-r", "-z", made))
        tree = made
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""


def test_a_written_object_is_one_of_git(repo: Repo) -> None:
    name = blob(repo, "text\n")
    assert git(repo, "cat-file", "blob", name) == b"text\n"
    assert loose.read(objects(repo), name) == (b"blob", b"text\n")
    assert file_of(repo, name).stat().st_mode & 0o777 == 0o444


def test_an_object_that_was_tampered_with_is_left_to_git(repo: Repo) -> None:
    name, other = blob(repo, "text\n"), blob(repo, "other\n")
    path = file_of(repo, name)
    path.unlink()
    path.write_bytes(file_of(repo, other).read_bytes())
    with pytest.raises(loose.NotLoose):
        loose.read(objects(repo), name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(loose.NotLoose):
        loose.read(objects(repo), name)


def test_packed_objects_are_asked_of_git(repo: Repo) -> None:
    one = by_git(repo, "", {b"a/b": ("100644", blob(repo, "1")), b"c": ("100644", blob(repo, "2"))})
    two = by_git(repo, one, {b"a/b": ("100644", blob(repo, "3"))})
    for tree in (one, two):
        git(repo, "update-ref", f"refs/heads/{tree[:8]}", line(git(
            repo, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit-tree", tree, "-m", "x")))  # fmt: skip
    git(repo, "repack", "-adq")
    git(repo, "prune-packed", "-q")
    assert [change.path for change in changes(repo, one, two)] == ["a/b"]
    assert set(entries(repo, two)) == {b"a/b", b"c"}
