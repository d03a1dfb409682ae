"""Refs read from files: the same as git lists, or left to git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.host.git.command import ask, git, line
from ralph.host.git.ref_files import NotPlain, read_refs
from ralph.host.git.refs import LISTING, parse_refs, plain_refs
from ralph.host.git.repo import Repo, identify


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    git(tmp_path, "init", "-q", "-b", "main")
    found = identify(tmp_path)
    tree = line(git(found, "mktree"))
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for name in ("main", "a/b", "a-b", "a.b", "größe", "x#1"):
        git(found, "update-ref", f"refs/heads/{name}", line(git(found, *who, "commit-tree", tree, "-m", name)))
    git(found, *who, "tag", "-a", "-m", "x", "v1", "main")
    git(found, "update-ref", "refs/remotes/origin/main", "main")
    git(found, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return found


def test_they_are_those_that_git_lists(repo: Repo) -> None:
    for command in (None, ("pack-refs",), ("pack-refs", "--all"), ("update-ref", "refs/heads/a-b", "main")):
        if command:
            git(repo, *command)
        listed = parse_refs(git(repo, *LISTING))
        assert list(plain_refs(repo).items()) == list(listed.items())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("heads/empty", b""),
        ("heads/garbage", b"garbage\n"),
        ("heads/zero", b"0" * 40 + b"\n"),
        ("heads/x.lock", b"1" * 40 + b"\n"),
        ("heads/.x", b"1" * 40 + b"\n"),
        ("heads/x..y", b"1" * 40 + b"\n"),
        ("remotes/origin/dangling", b"ref: refs/heads/none\n"),
        ("heads/padded", b"1" * 40 + b" \n"),
        ("heads/sp ace", b"1" * 40 + b"\n"),
        ("heads/a@{b", b"1" * 40 + b"\n"),
    ],
)
def test_what_git_reads_in_its_own_way_is_left_to_git(repo: Repo, name: str, content: bytes) -> None:
    (repo.common_dir / "refs" / name).write_bytes(content)
    with pytest.raises(NotPlain):
        read_refs(repo.common_dir)


def test_links_and_pipes_are_left_to_git(repo: Repo) -> None:
    os.mkfifo(repo.common_dir / "refs/heads/pipe")
    with pytest.raises(NotPlain):
        read_refs(repo.common_dir)
    (repo.common_dir / "refs/heads/pipe").unlink()
    (repo.common_dir / "refs/heads/link").symlink_to("main")
    with pytest.raises(NotPlain):
        read_refs(repo.common_dir)


@pytest.mark.parametrize(
    "content", [b"garbage\n", b"1" * 40 + b" refs/heads/no-end", b"1" * 40 + b" refs/heads/a..b\n"]
)
def test_damaged_packed_refs_are_left_to_git(repo: Repo, content: bytes) -> None:
    (repo.common_dir / "packed-refs").write_bytes(content)
    with pytest.raises(NotPlain):
        read_refs(repo.common_dir)


def test_a_linked_worktree_reads_those_of_its_repository(repo: Repo, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("tree") / "linked"
    assert ask(repo, "worktree", "add", "-q", "-b", "linked", str(place), "main").code == 0
    linked = identify(place)
    assert plain_refs(linked) == parse_refs(git(linked, *LISTING))
