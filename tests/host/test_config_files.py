from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.host.file_copies import kept
from ralph.host.git.config_files import record_config_files, restore_config_files, tampering
from support.repositories import Project

EVIL = "#!/bin/sh\ntouch /tmp/evil\n"


def _prepared(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
    project.write(".git/hooks/parts/one", "part\n")
    (project.root / ".git/hooks/post-merge").symlink_to("pre-commit")
    project.write(".git/info/attributes", "*.bin -text\n")
    return project


def _files(project: Project) -> dict[str, tuple[int, bytes]]:
    found = {}
    for name in ("config", "config.worktree", "commondir", "shallow", "objects/info", "info", "hooks"):
        path = project.root / ".git" / name
        inner = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
        for item in inner:
            if item.is_symlink():
                found[str(item)] = (0, os.fsencode(item.readlink()))
            elif item.is_file() and item.suffix != ".sample":
                found[str(item)] = (item.stat().st_mode, item.read_bytes())
    return found


def _edit_config(git: Path) -> None:
    with (git / "config").open("a") as stream:
        stream.write('[core]\n\tfsmonitor = touch /tmp/evil\n[filter "x"]\n\tclean = evil\n')


def _break_config(git: Path) -> None:
    (git / "config").write_text("[[[ not a configuration")


def _config_is_a_folder(git: Path) -> None:
    (git / "config").unlink()
    (git / "config").mkdir()
    (git / "config" / "x").write_text("x")


def _config_is_a_pipe(git: Path) -> None:
    (git / "config").unlink()
    os.mkfifo(git / "config")


def _config_is_a_link(git: Path) -> None:
    shutil.copy(git / "config", git.parent / "elsewhere")
    (git / "config").unlink()
    (git / "config").symlink_to(git.parent / "elsewhere")


def _config_is_gone(git: Path) -> None:
    (git / "config").unlink()


def _another_common_folder(git: Path) -> None:
    (git / "commondir").write_text("/elsewhere\n")


def _new_hook(git: Path) -> None:
    (git / "hooks" / "post-checkout").write_text(EVIL)
    (git / "hooks" / "post-checkout").chmod(0o755)


def _edit_hook(git: Path) -> None:
    (git / "hooks" / "pre-commit").write_text(EVIL)


def _disable_hook(git: Path) -> None:
    (git / "hooks" / "pre-commit").chmod(0o644)


def _edit_part(git: Path) -> None:
    (git / "hooks" / "parts" / "one").write_text(EVIL)


def _hooks_are_a_link(git: Path) -> None:
    shutil.copytree(git / "hooks", git.parent / "hooks-elsewhere", symlinks=True)
    shutil.rmtree(git / "hooks")
    (git / "hooks").symlink_to(git.parent / "hooks-elsewhere")


def _info_is_a_link(git: Path) -> None:
    shutil.copytree(git / "info", git.parent / "info-elsewhere")
    shutil.rmtree(git / "info")
    (git / "info").symlink_to(git.parent / "info-elsewhere")


def _hide_everything(git: Path) -> None:
    (git / "info" / "exclude").write_text("*\n")


def _no_attributes(git: Path) -> None:
    (git / "info" / "attributes").unlink()


def _cut_the_history(git: Path) -> None:
    (git / "shallow").write_text("0" * 40 + "\n")


def _borrow_objects(git: Path) -> None:
    (git / "objects" / "info" / "alternates").write_text("/elsewhere\n")


ATTACKS = [
    _cut_the_history,
    _borrow_objects,
    _edit_config,
    _break_config,
    _config_is_a_folder,
    _config_is_a_pipe,
    _config_is_a_link,
    _config_is_gone,
    _another_common_folder,
    _new_hook,
    _edit_hook,
    _disable_hook,
    _edit_part,
    _hooks_are_a_link,
    _info_is_a_link,
    _hide_everything,
    _no_attributes,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_change_to_what_git_obeys_is_noticed_and_undone(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    project, store = _prepared(tmp_path), tmp_path / "store"
    repo, before = project.repo, _files(project)
    guarded = record_config_files(repo, store)
    assert tampering(repo, guarded, store) == ()
    attack(project.root / ".git")
    found = restore_config_files(repo, guarded, store)
    assert found
    assert _files(project) == before
    assert restore_config_files(repo, guarded, store) == ()
    project.check_health()


def test_what_a_link_pointed_to_is_not_touched(tmp_path: Path) -> None:
    project, store = _prepared(tmp_path), tmp_path / "store"
    guarded = record_config_files(project.repo, store)
    outside = tmp_path / "outside"
    shutil.copytree(project.root / ".git" / "info", outside)
    (outside / "exclude").write_text("mine\n")
    shutil.rmtree(project.root / ".git" / "info")
    (project.root / ".git" / "info").symlink_to(outside)
    restore_config_files(project.repo, guarded, store)
    assert (outside / "exclude").read_text() == "mine\n"
    assert not (project.root / ".git" / "info").is_symlink()


def test_the_version_of_the_agent_is_kept(tmp_path: Path) -> None:
    project, store = _prepared(tmp_path), tmp_path / "store"
    guarded = record_config_files(project.repo, store)
    _edit_hook(project.root / ".git")
    (found,) = restore_config_files(project.repo, guarded, store)
    assert (found.file, found.what) == ("common:hooks/pre-commit", "changed")
    assert kept(store, found.copy) == EVIL.encode()


def test_sample_hooks_are_not_worth_a_copy(tmp_path: Path) -> None:
    project = _prepared(tmp_path)
    assert not [name for name in record_config_files(project.repo, tmp_path / "store") if name.endswith(".sample")]
