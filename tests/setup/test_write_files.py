from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.errors import SetupError
from ralph.setup.repository import with_lines
from ralph.setup.write_files import Existing, NewFile, check_inside, place

NOW = 1_800_000_000.0


def snapshot(root: Path) -> dict[str, bytes | None]:
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


def test_files_and_their_folders_are_made(tmp_path: Path) -> None:
    placed = place(tmp_path, [NewFile("a/b/c.txt", b"one"), NewFile("d.txt", b"two")], NOW)

    assert placed.made == ("a/b/c.txt", "d.txt")
    assert snapshot(tmp_path) == {"a": None, "a/b": None, "a/b/c.txt": b"one", "d.txt": b"two"}


def test_a_file_that_is_there_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    for name in ("keep", "back-up", "replace", "same"):
        (tmp_path / name).write_bytes(b"mine")

    placed = place(
        tmp_path,
        [
            NewFile("keep", b"new"),
            NewFile("back-up", b"new", Existing.BACK_UP),
            NewFile("replace", b"new", Existing.REPLACE),
            NewFile("same", b"mine", Existing.BACK_UP),
        ],
        NOW,
    )

    assert (placed.kept, placed.replaced, placed.same) == (("keep",), ("back-up", "replace"), ("same",))
    assert placed.backups == ("back-up.bak-20270115T080000Z",)
    assert snapshot(tmp_path) == {
        "keep": b"mine",
        "back-up": b"new",
        "back-up.bak-20270115T080000Z": b"mine",
        "replace": b"new",
        "same": b"mine",
    }


def test_a_backup_never_replaces_a_backup(tmp_path: Path) -> None:
    for content in (b"one", b"two", b"three"):
        place(tmp_path, [NewFile("f", content, Existing.BACK_UP)], NOW)

    assert sorted(snapshot(tmp_path).values(), key=str) == [b"one", b"three", b"two"]


@contextlib.contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """A disk that takes no file larger than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failure_takes_everything_back(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    before = snapshot(tmp_path)
    files = [NewFile("x/y/new", b"1"), NewFile("old", b"2", Existing.BACK_UP), NewFile("last", b"3" * 5000)]

    with files_end_at(1000), pytest.raises(SetupError, match="all changes were undone"):
        place(tmp_path, files, NOW)

    assert snapshot(tmp_path) == before
    assert place(tmp_path, files, NOW).touched == ("x/y/new", "last", "old")


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", ".git/hooks/pre-commit", "a/.GIT/config", "a\0b"])
def test_a_path_cannot_leave_the_workspace_or_enter_git(tmp_path: Path, path: str) -> None:
    with pytest.raises(SetupError):
        check_inside(tmp_path, path)


def test_a_link_that_leads_out_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / ".ralph").symlink_to(outside)

    with pytest.raises(SetupError, match="points outside"):
        place(root, [NewFile("first", b"1"), NewFile(".ralph/x", b"2")], NOW)

    assert list(outside.iterdir()) == []
    assert not (root / "first").exists()


def test_a_folder_in_place_of_a_file_and_the_reverse_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")

    for path in ("folder", "file/x", "pipe"):
        with pytest.raises(SetupError):
            place(tmp_path, [NewFile("first", b"1"), NewFile(path, b"2")], NOW)
    assert not (tmp_path / "first").exists()


LINES = [".ralph-active", ".ralph/WAITING"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"# T\n.ralph-active\n.ralph/WAITING\n"),
        (b"*.pyc", b"*.pyc\n\n# T\n.ralph-active\n.ralph/WAITING\n"),
        (b"*.pyc\n", b"*.pyc\n\n# T\n.ralph-active\n.ralph/WAITING\n"),
        (b"*.pyc\r\n", b"*.pyc\r\n\r\n# T\r\n.ralph-active\r\n.ralph/WAITING\r\n"),
        (b"/.ralph-active\n", b"/.ralph-active\n\n# T\n.ralph/WAITING\n"),
        (b".ralph-active\n.ralph/\n", b".ralph-active\n.ralph/\n"),
        (b".ralph-active \n.ralph/WAITING", b".ralph-active \n.ralph/WAITING"),
        (b"\xff\n", b"\xff\n\n# T\n.ralph-active\n.ralph/WAITING\n"),
    ],
)
def test_only_missing_lines_are_appended_to_gitignore(before: bytes, after: bytes) -> None:
    title = b"# Ralph: files that runs leave behind"

    assert with_lines(before, LINES) == after.replace(b"# T", title)


@given(
    st.lists(st.sampled_from([b"a", b"b ", b"", b"!x", b".ralph-active", b"# c"])), st.sampled_from([b"\n", b"\r\n"])
)
def test_adding_lines_keeps_what_is_there_and_is_done_once(lines: list[bytes], ending: bytes) -> None:
    before = ending.join(lines)

    after = with_lines(before, LINES)

    assert after.startswith(before)
    assert with_lines(after, LINES) == after
    assert {b".ralph-active", b".ralph/WAITING"} <= {line.strip() for line in after.splitlines()}
