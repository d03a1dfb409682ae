"""Whether anything in a folder is being written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.host.process.activity import stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("top", "a/one", "a/b/deep"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    return tmp_path


def test_a_folder_that_nobody_touches_looks_the_same(folder: Path) -> None:
    assert stamp(folder) == stamp(folder)


@pytest.mark.parametrize("name", ["top", "a/one", "a/b/deep", "a/new", "a/b/c/new"])
def test_a_file_that_is_written_or_made_shows(folder: Path, name: str) -> None:
    before = stamp(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("more")
    assert stamp(folder) != before


def test_a_file_that_goes_shows(folder: Path) -> None:
    before = stamp(folder)
    (folder / "a/b/deep").unlink()
    assert stamp(folder) != before


def test_links_are_not_followed_and_what_is_missing_is_no_error(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "gone").symlink_to(folder / "nowhere")
    assert stamp(folder)[1] < 10
    assert stamp(folder / "nowhere") == (0, 0)


def test_a_huge_folder_is_looked_at_from_the_top_and_not_for_ever(folder: Path) -> None:
    for number in range(50):
        (folder / "a" / "b" / f"{number}").write_text("")
    assert stamp(folder, most=2)[1] <= 10
