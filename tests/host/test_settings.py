"""Settings are asked for again whenever git could answer differently."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph.host.git import command as door
from ralph.host.git.repo import Repo, current_settings
from support.repositories import Project


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


def _autocrlf(repo: Repo) -> str:
    return current_settings(repo).values.get("core.autocrlf", "")


def test_a_change_in_any_file_that_git_reads_is_seen(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path)
    project.git("config", "extensions.worktreeConfig", "true")
    included = tmp_path / "included"
    (home / ".gitconfig").write_text(f"[include]\n\tpath = {included}\n")  # the file does not exist yet
    repo = project.repo
    assert _autocrlf(repo) == ""
    for place in (included, home / ".config/git/config", project.root / ".git/config.worktree"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("[core]\n\tautocrlf = input\n")
        assert _autocrlf(repo) == "input", place
        place.unlink()
        assert _autocrlf(repo) == "", place
    project.git("config", "core.autocrlf", "true")
    assert _autocrlf(repo) == "true"


def test_nothing_is_asked_while_nothing_changes(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Project(tmp_path).repo
    current_settings(repo)
    monkeypatch.setattr(door, "_started", None)
    current_settings(repo)


def test_a_condition_that_can_change_is_asked_each_time(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "on-other").write_text("[core]\n\tautocrlf = true\n")
    (home / ".gitconfig").write_text(f'[includeIf "onbranch:other"]\n\tpath = {tmp_path}/on-other\n')
    repo = project.repo
    assert _autocrlf(repo) == ""
    subprocess.run(["git", "checkout", "-q", "-b", "other"], cwd=project.root, check=True)
    assert _autocrlf(repo) == "true"


def test_filters_of_every_file_are_listed(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path)
    project.git("config", "filter.own.clean", "cat")
    (home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = git-lfs clean\n')
    assert current_settings(project.repo).filters == (
        ("filter.lfs.clean", "git-lfs clean"),
        ("filter.own.clean", "cat"),
    )
    assert os.environ["HOME"] == str(home)
