from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.journal.sinks.workspace_files import WorkspaceFiles

Act = Callable[[WorkspaceFiles, Path], None]


def append(files: WorkspaceFiles, path: Path) -> None:
    files.append(path, "entry\n")


def replace(files: WorkspaceFiles, path: Path) -> None:
    files.replace(path, b"entry\n")


def remove(files: WorkspaceFiles, path: Path) -> None:
    files.remove(path)


WRITES = [append, replace]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_bytes(b"mine")
    return folder


@pytest.fixture
def files(root: Path) -> WorkspaceFiles:
    return WorkspaceFiles(root)


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_entry_makes_its_folders_and_comes_after_the_header(files: WorkspaceFiles, root: Path) -> None:
    path = root / "a" / "b" / "log.md"
    files.append(path, "one\n", header="# Log\n")
    files.append(path, "two\n", header="# Log\n")
    assert path.read_text() == "# Log\none\ntwo\n"
    assert files.failures == ()


def test_a_header_alone_is_written_only_into_an_empty_file(files: WorkspaceFiles, root: Path) -> None:
    path = root / "log.md"
    for _ in range(2):
        files.append(path, "", header="# Log\n")
    assert path.read_text() == "# Log\n"


def test_the_same_entry_twice_is_two_entries(files: WorkspaceFiles, root: Path) -> None:
    path = root / "log.md"
    for entry in ("one\n", "two\n", "one\n"):
        files.append(path, entry)
    assert path.read_text() == "one\ntwo\none\n"


def test_a_retold_entry_that_is_there_is_not_written_again(files: WorkspaceFiles, root: Path) -> None:
    path = root / "log.md"
    for entry in ("one\n", "two\n"):
        files.append(path, entry)
    files.is_retelling = True
    for entry in ("one\n", "two\n", "three\n"):
        files.append(path, entry)
    assert path.read_text() == "one\ntwo\nthree\n"


def test_an_entry_does_not_continue_a_line_that_somebody_left_open(files: WorkspaceFiles, root: Path) -> None:
    path = root / "log.md"
    path.write_text("a person's note")
    files.append(path, "entry\n")
    assert path.read_text() == "a person's note\nentry\n"


def test_a_full_file_becomes_the_old_one(files: WorkspaceFiles, root: Path) -> None:
    path = root / "log"
    for entry in ("a" * 60 + "\n", "b" * 60 + "\n", "c" * 60 + "\n"):
        files.append(path, entry, limit=100)
    assert content_of(root) == {"log": b"c" * 60 + b"\n", "log.1": b"b" * 60 + b"\n"}


def test_an_entry_longer_than_the_limit_is_still_written_once(files: WorkspaceFiles, root: Path) -> None:
    for files.is_retelling in (False, True):
        files.append(root / "log", "a" * 200 + "\n", limit=100)
    assert content_of(root) == {"log": b"a" * 200 + b"\n"}


def test_text_that_is_no_unicode_is_written_somehow(files: WorkspaceFiles, root: Path) -> None:
    files.append(root / "log", "a\udcffb\n")
    assert (root / "log").read_bytes() == b"a?b\n"


def test_removing_what_is_not_there_is_no_failure(files: WorkspaceFiles, root: Path) -> None:
    files.remove(root / "marker")
    files.remove(root / "no" / "folder" / "marker")
    assert files.failures == ()
    assert content_of(root) == {}


def test_a_muted_door_writes_and_removes_nothing(files: WorkspaceFiles, root: Path) -> None:
    (root / "kept").write_bytes(b"")
    files.is_muted = True
    files.append(root / "log", "x\n")
    files.replace(root / "state", b"x")
    files.remove(root / "kept")
    assert content_of(root) == {"kept": b""}


@pytest.mark.parametrize("act", WRITES)
def test_a_fifo_in_the_place_of_a_file_neither_hangs_nor_raises(act: Act, files: WorkspaceFiles, root: Path) -> None:
    os.mkfifo(root / "log")
    act(files, root / "log")
    assert files.failures == ("log could not be written: it is not a regular file",)
    assert (root / "log").is_fifo()


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_folder_in_the_place_of_a_file_stays(act: Act, files: WorkspaceFiles, root: Path) -> None:
    (root / "log" / "inner").mkdir(parents=True)
    act(files, root / "log")
    assert len(files.failures) == 1
    assert (root / "log" / "inner").is_dir()
    assert [path.name for path in root.iterdir()] == ["log"]


@pytest.mark.parametrize("act", WRITES)
def test_a_link_out_of_the_workspace_is_not_followed(
    act: Act, files: WorkspaceFiles, root: Path, outside: Path
) -> None:
    (root / "log").symlink_to(outside / "secret.txt")
    (root / "new").symlink_to(outside / "made.txt")
    act(files, root / "log")
    act(files, root / "new")
    assert files.failures == ("log could not be written: it is a link", "new could not be written: it is a link")
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", WRITES)
def test_a_link_within_the_workspace_is_not_followed_either(act: Act, files: WorkspaceFiles, root: Path) -> None:
    """A log that is a link to a hook would become a program."""
    (root / "hook").write_bytes(b"#!/bin/sh\n")
    (root / "log").symlink_to("hook")
    act(files, root / "log")
    assert (root / "hook").read_bytes() == b"#!/bin/sh\n"
    assert (root / "log").is_symlink()


@pytest.mark.parametrize("act", WRITES)
def test_a_second_name_of_another_file_is_not_written_to(
    act: Act, files: WorkspaceFiles, root: Path, outside: Path
) -> None:
    os.link(outside / "secret.txt", root / "log")
    act(files, root / "log")
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_folder_that_is_a_link_out_of_the_workspace_is_not_entered(
    act: Act, files: WorkspaceFiles, root: Path, outside: Path
) -> None:
    (root / ".ralph").symlink_to(outside)
    for name in ("secret.txt", "new", "deep/new"):
        act(files, root / ".ralph" / name)
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(files.failures) == 3
    assert all(failure.endswith(".ralph is a link") for failure in files.failures)


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_path_outside_of_the_workspace_is_refused(act: Act, files: WorkspaceFiles, root: Path, outside: Path) -> None:
    act(files, outside / "secret.txt")
    act(files, root / ".." / "outside" / "secret.txt")
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(files.failures) == 1  # two spellings of one file


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_workspace_that_became_a_link_is_not_entered(
    act: Act, files: WorkspaceFiles, root: Path, outside: Path
) -> None:
    root.rmdir()
    root.symlink_to(outside)
    act(files, root / "secret.txt")
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(files.failures) == 1


def test_removing_a_link_removes_the_link_alone(files: WorkspaceFiles, root: Path, outside: Path) -> None:
    (root / "marker").symlink_to(outside / "secret.txt")
    files.remove(root / "marker")
    assert content_of(root) == {}
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", WRITES)
def test_a_file_in_the_place_of_a_folder_is_noted(act: Act, files: WorkspaceFiles, root: Path) -> None:
    (root / "logs").write_bytes(b"")
    act(files, root / "logs" / "run.log")
    assert files.failures == ("logs/run.log could not be written: logs is not a folder",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("act", WRITES)
def test_a_folder_that_must_not_be_written_to_is_noted(act: Act, files: WorkspaceFiles, root: Path) -> None:
    root.chmod(0o500)
    act(files, root / "log")
    root.chmod(0o700)
    assert files.failures == ("log could not be written: Permission denied",)


@pytest.mark.parametrize("room", [0, 3])
def test_a_full_disk_leaves_no_half_entry(
    room: int, files: WorkspaceFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "log"
    files.append(path, "one\n")
    real_write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(descriptor, data[:room])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        files.append(path, "two\n")
        files.append(path, "three\n")
    assert path.read_text() == "one\n"
    assert files.failures == (f"log could not be written: {os.strerror(errno.ENOSPC)}",)
    files.append(path, "four\n")
    assert path.read_text() == "one\nfour\n"


def test_the_first_failure_of_a_file_is_the_one_that_is_told(files: WorkspaceFiles, root: Path) -> None:
    (root / "log").mkdir()
    append(files, root / "log")
    (root / "log").rmdir()
    os.mkfifo(root / "log")
    append(files, root / "log")
    assert files.failures == ("log could not be written: a folder is in its place",)
