from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.git import command
from ralph.host.git.command import (
    Call,
    GitFailed,
    ask,
    ask_together,
    environment,
    git,
    head_of_output,
    line,
    names,
    printable,
)
from support.repositories import Project


def test_git_failing_is_a_sentence_with_its_first_line(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with pytest.raises(GitFailed, match=r"^git rev-parse: Needed a single revision$") as caught:
        git(project.repo, "rev-parse", "--verify", "nothing-of-this-name")
    assert caught.value.exit_code == 78
    assert caught.value.answer.code == 128


def test_variables_that_point_git_elsewhere_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other = Project(tmp_path / "one"), Project(tmp_path / "two")
    other.write("c.txt", "other\n")
    other.git("add", "-A")
    other.git("commit", "-qm", "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git" / "index"))
    assert b"c.txt" not in git(project.repo, "ls-files")
    assert not [name for name in environment() if name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")]


def test_git_does_not_go_to_an_outer_repository_when_the_inner_one_is_gone(tmp_path: Path) -> None:
    outer = Project(tmp_path)
    inner = Project(outer.root / "inner")
    repo = inner.repo
    (inner.root / ".git").rename(tmp_path / "away")
    with pytest.raises(GitFailed, match="not a git repository"):
        git(repo, "rev-parse", "HEAD")


def test_no_program_named_in_the_configuration_is_started(tmp_path: Path) -> None:
    project = Project(tmp_path)
    trap = project.write("trap.sh", f"#!/bin/sh\necho ran >> {tmp_path}/ran\ncat\n", 0o755)
    for setting in ("core.fsmonitor", "core.pager", "core.editor", "diff.external", "core.askPass", "core.sshCommand"):
        project.git("config", setting, str(trap))
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        project.write(f".git/hooks/{hook}", trap.read_bytes(), 0o755)
    project.write("a.txt", "two\n")
    repo = project.repo
    git(repo, "status")
    git(repo, "update-ref", "refs/ralph/test", "HEAD")
    git(repo, "diff-files", "-p", "--no-ext-diff")
    git(repo, "update-index", "--add", "a.txt")
    assert not (tmp_path / "ran").exists()


def test_a_replaced_object_is_not_believed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = project.head()
    project.write("a.txt", "lie\n")
    project.git("commit", "-qam", "lie")
    project.git("replace", first, project.head())
    assert project.git("show", f"{first}:a.txt") == "lie"
    assert git(project.repo, "show", f"{first}:a.txt") == b"one\n"


def test_questions_asked_together_are_answered_in_order(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo = project.repo
    calls = [
        Call(repo, ("rev-parse", "HEAD")),
        Call(repo, ("rev-parse", "--verify", "-q", "no")),
        Call(repo, ("version",)),
    ]
    first, second, third = ask_together(calls)
    assert line(first.out) == project.head()
    assert (second.code, second.out) == (1, b"")
    assert third.out.startswith(b"git version")


def test_long_answers_asked_together_do_not_block_each_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("big.txt", b"x" * 3_000_000)
    project.git("add", "-A")
    call = Call(project.repo, ("cat-file", "blob", ":big.txt"))
    assert [len(answer.out) for answer in ask_together([call, call, call])] == [3_000_000] * 3


def test_only_the_beginning_of_a_long_output_is_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("big.txt", b"x" * 3_000_000)
    project.git("add", "-A")
    shown, is_cut = head_of_output(project.repo, "cat-file", "blob", ":big.txt", limit=1000)
    assert (shown, is_cut) == (b"x" * 1000, True)
    assert head_of_output(project.repo, "cat-file", "blob", ":a.txt", limit=1000) == (b"one\n", False)


def test_git_that_hangs_is_ended(tmp_path: Path) -> None:
    project = Project(tmp_path)
    os.mkfifo(project.root / "pipe")
    begun = time.monotonic()
    with pytest.raises(GitFailed, match=r"did not finish within 0\.2 seconds"):
        git(project.repo, "hash-object", "--no-filters", "pipe", timeout=0.2)
    assert time.monotonic() - begun < 5


def test_a_machine_without_git_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    repo = project.repo
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="git is not installed") as caught:
        git(repo, "version")
    assert "2.30" in caught.value.hint


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="does not exist"):
        ask(tmp_path / "gone", "version")


def test_names_come_back_as_bytes_and_print_safely() -> None:
    assert names(b"") == []
    assert names(b"a\0b\nc\0\xff\0") == [b"a", b"b\nc", b"\xff"]
    assert printable("ü".encode()) == "ü"
    assert printable(b"\xff") == "\\xff"


def test_much_input_arrives_although_git_takes_it_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Project(tmp_path).repo
    monkeypatch.setattr(command, "_LOOK", 0.02)  # each look at an urgent stop comes before all of it is read
    asked = b"HEAD\n" * 200_000
    answer = ask(repo, "cat-file", "--batch-check=x", stdin=asked, timeout=60)
    assert (answer.code, answer.out) == (0, b"x\n" * 200_000)
