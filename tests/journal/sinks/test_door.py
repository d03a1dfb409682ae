from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.journal.sinks.door import Door

Act = Callable[[Door, Path], None]


def append(door: Door, path: Path) -> None:
    door.append(path, "entry\n")


def replace(door: Door, path: Path) -> None:
    door.replace(path, b"entry\n")


def remove(door: Door, path: Path) -> None:
    door.remove(path)


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
def door(root: Path) -> Door:
    return Door(root)


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_entry_makes_its_folders_and_comes_after_the_header(door: Door, root: Path) -> None:
    path = root / "a" / "b" / "log.md"
    door.append(path, "one\n", header="# Log\n")
    door.append(path, "two\n", header="# Log\n")
    assert path.read_text() == "# Log\none\ntwo\n"
    assert door.failures == ()


def test_a_header_alone_is_written_only_into_an_empty_file(door: Door, root: Path) -> None:
    path = root / "log.md"
    for _ in range(2):
        door.append(path, "", header="# Log\n")
    assert path.read_text() == "# Log\n"


def test_the_same_entry_twice_is_two_entries(door: Door, root: Path) -> None:
    path = root / "log.md"
    for entry in ("one\n", "two\n", "one\n"):
        door.append(path, entry)
    assert path.read_text() == "one\ntwo\none\n"


def test_a_retold_entry_that_is_there_is_not_written_again(door: Door, root: Path) -> None:
    path = root / "log.md"
    for entry in ("one\n", "two\n"):
        door.append(path, entry)
    door.is_retelling = True
    for entry in ("one\n", "two\n", "three\n"):
        door.append(path, entry)
    assert path.read_text() == "one\ntwo\nthree\n"


def test_an_entry_does_not_continue_a_line_that_somebody_left_open(door: Door, root: Path) -> None:
    path = root / "log.md"
    path.write_text("a person's note")
    door.append(path, "entry\n")
    assert path.read_text() == "a person's note\nentry\n"


def test_a_full_file_becomes_the_old_one(door: Door, root: Path) -> None:
    path = root / "log"
    for entry in ("a" * 60 + "\n", "b" * 60 + "\n", "c" * 60 + "\n"):
        door.append(path, entry, limit=100)
    assert content_of(root) == {"log": b"c" * 60 + b"\n", "log.1": b"b" * 60 + b"\n"}


def test_an_entry_longer_than_the_limit_is_still_written_once(door: Door, root: Path) -> None:
    for door.is_retelling in (False, True):
        door.append(root / "log", "a" * 200 + "\n", limit=100)
    assert content_of(root) == {"log": b"a" * 200 + b"\n"}


def test_text_that_is_no_unicode_is_written_somehow(door: Door, root: Path) -> None:
    door.append(root / "log", "a\udcffb\n")
    assert (root / "log").read_bytes() == b"a?b\n"


def test_removing_what_is_not_there_is_no_failure(door: Door, root: Path) -> None:
    door.remove(root / "marker")
    door.remove(root / "no" / "folder" / "marker")
    assert door.failures == ()
    assert content_of(root) == {}


def test_a_muted_door_writes_and_removes_nothing(door: Door, root: Path) -> None:
    (root / "kept").write_bytes(b"")
    door.is_muted = True
    door.append(root / "log", "x\n")
    door.replace(root / "state", b"x")
    door.remove(root / "kept")
    assert content_of(root) == {"kept": b""}


@pytest.mark.parametrize("act", WRITES)
def test_a_fifo_in_the_place_of_a_file_neither_hangs_nor_raises(act: Act, door: Door, root: Path) -> None:
    os.mkfifo(root / "log")
    act(door, root / "log")
    assert door.failures == ("log could not be written: it is not a regular file",)
    assert (root / "log").is_fifo()


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_folder_in_the_place_of_a_file_stays(act: Act, door: Door, root: Path) -> None:
    (root / "log" / "inner").mkdir(parents=True)
    act(door, root / "log")
    assert len(door.failures) == 1
    assert (root / "log" / "inner").is_dir()
    assert [path.name for path in root.iterdir()] == ["log"]


@pytest.mark.parametrize("act", WRITES)
def test_a_link_out_of_the_workspace_is_not_followed(act: Act, door: Door, root: Path, outside: Path) -> None:
    (root / "log").symlink_to(outside / "secret.txt")
    (root / "new").symlink_to(outside / "made.txt")
    act(door, root / "log")
    act(door, root / "new")
    assert door.failures == ("log could not be written: it is a link", "new could not be written: it is a link")
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", WRITES)
def test_a_link_within_the_workspace_is_not_followed_either(act: Act, door: Door, root: Path) -> None:
    """A log that is a link to a hook would become a program."""
    (root / "hook").write_bytes(b"#!/bin/sh\n")
    (root / "log").symlink_to("hook")
    act(door, root / "log")
    assert (root / "hook").read_bytes() == b"#!/bin/sh\n"
    assert (root / "log").is_symlink()


@pytest.mark.parametrize("act", WRITES)
def test_a_second_name_of_another_file_is_not_written_to(act: Act, door: Door, root: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", root / "log")
    act(door, root / "log")
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_folder_that_is_a_link_out_of_the_workspace_is_not_entered(
    act: Act, door: Door, root: Path, outside: Path
) -> None:
    (root / ".ralph").symlink_to(outside)
    for name in ("secret.txt", "new", "deep/new"):
        act(door, root / ".ralph" / name)
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(door.failures) == 3
    assert all(failure.endswith(".ralph is a link") for failure in door.failures)


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_path_outside_of_the_workspace_is_refused(act: Act, door: Door, root: Path, outside: Path) -> None:
    act(door, outside / "secret.txt")
    act(door, root / ".." / "outside" / "secret.txt")
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(door.failures) == 1  # two spellings of one file


@pytest.mark.parametrize("act", [*WRITES, remove])
def test_a_workspace_that_became_a_link_is_not_entered(act: Act, door: Door, root: Path, outside: Path) -> None:
    root.rmdir()
    root.symlink_to(outside)
    act(door, root / "secret.txt")
    assert content_of(outside) == {"secret.txt": b"mine"}
    assert len(door.failures) == 1


def test_removing_a_link_removes_the_link_alone(door: Door, root: Path, outside: Path) -> None:
    (root / "marker").symlink_to(outside / "secret.txt")
    door.remove(root / "marker")
    assert content_of(root) == {}
    assert content_of(outside) == {"secret.txt": b"mine"}


@pytest.mark.parametrize("act", WRITES)
def test_a_file_in_the_place_of_a_folder_is_noted(act: Act, door: Door, root: Path) -> None:
    (root / "logs").write_bytes(b"")
    act(door, root / "logs" / "run.log")
    assert door.failures == ("logs/run.log could not be written: logs is not a folder",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("act", WRITES)
def test_a_folder_that_must_not_be_written_to_is_noted(act: Act, door: Door, root: Path) -> None:
    root.chmod(0o500)
    act(door, root / "log")
    root.chmod(0o700)
    assert door.failures == ("log could not be written: Permission denied",)


@pytest.mark.parametrize("room", [0, 3])
def test_a_full_disk_leaves_no_half_entry(room: int, door: Door, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "log"
    door.append(path, "one\n")
    real_write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(descriptor, data[:room])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        door.append(path, "two\n")
        door.append(path, "three\n")
    assert path.read_text() == "one\n"
    assert door.failures == (f"log could not be written: {os.strerror(errno.ENOSPC)}",)
    door.append(path, "four\n")
    assert path.read_text() == "one\nfour\n"


def test_the_first_failure_of_a_file_is_the_one_that_is_told(door: Door, root: Path) -> None:
    (root / "log").mkdir()
    append(door, root / "log")
    (root / "log").rmdir()
    os.mkfifo(root / "log")
    append(door, root / "log")
    assert door.failures == ("log could not be written: a folder is in its place",)
