from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.core.errors import NotARepository, NotTrusted, SetupError
from ralph.host.git.repo import RepositoryReplaced, find_repository, identify, still_the_same
from support.repositories import Project


def test_a_repository_is_known_by_folder_and_inode(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo = project.repo
    assert repo.root == project.root
    assert repo.git_dir == repo.common_dir == project.root / ".git"
    assert repo.git_dir_id.inode == (project.root / ".git").stat().st_ino
    assert repo.object_format == "sha1"
    still_the_same(repo)


def test_a_link_to_a_repository_leads_to_the_same_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "link").symlink_to(project.root)
    assert identify(tmp_path / "link") == project.repo


def test_a_linked_worktree_shares_the_common_folder(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    repo = identify(tmp_path / "tree")
    assert repo.common_dir == project.root / ".git"
    assert repo.git_dir == project.root / ".git" / "worktrees" / "tree"
    still_the_same(repo)
    (tmp_path / "tree" / ".git").write_text("gitdir: /elsewhere\n")
    with pytest.raises(RepositoryReplaced):
        still_the_same(repo)


def test_a_sha256_repository_is_known(tmp_path: Path) -> None:
    assert Project(tmp_path, extra=("--object-format=sha256",)).repo.object_format == "sha256"


def test_a_plain_folder_is_no_repository_even_inside_of_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "sub").mkdir()
    with pytest.raises(NotARepository, match="is not a git repository") as caught:
        identify(project.root / "sub")
    assert "init" in caught.value.hint


def test_a_bare_repository_has_no_files_to_work_on(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare.git")], check=True)
    with pytest.raises(NotARepository, match="bare repository") as caught:
        identify(tmp_path / "bare.git")
    assert "worktree add" in caught.value.hint


def test_the_inside_of_a_git_folder_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NotARepository):
        identify(Project(tmp_path).root / ".git")


def test_a_folder_that_does_not_exist_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="does not exist"):
        identify(tmp_path / "nothing")


def test_a_worktree_whose_repository_is_gone_is_explained(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    shutil.rmtree(project.root)
    with pytest.raises(NotARepository, match="points to a git folder that does not exist"):
        identify(tmp_path / "tree")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a folder to another user")
def test_a_repository_of_another_user_needs_trust(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for path in (project.root, project.root / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(NotTrusted, match="another user owns it") as caught:
        identify(project.root)
    assert f"safe.directory '{project.root}'" in caught.value.hint


def test_an_old_git_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho git version 2.29.3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(SetupError, match=r"2\.29\.3 is too old"):
        identify(project.root)


def _delete(root: Path) -> None:
    shutil.rmtree(root / ".git")


def _make_anew(root: Path) -> None:
    (root / ".git").rename(root.parent / "old")
    shutil.copytree(root.parent / "old", root / ".git")


def _make_a_file(root: Path) -> None:
    (root / ".git").rename(root.parent / "old")
    (root / ".git").write_text(f"gitdir: {root.parent / 'old'}\n")


def _make_a_link(root: Path) -> None:
    (root / ".git").rename(root.parent / "old")
    (root / ".git").symlink_to(root.parent / "old")


def _link_the_workspace(root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "moved")


def _copy_the_workspace(root: Path) -> None:
    root.rename(root.parent / "moved")
    shutil.copytree(root.parent / "moved", root)


def _delete_the_workspace(root: Path) -> None:
    shutil.rmtree(root)


def _delete_the_objects(root: Path) -> None:
    shutil.rmtree(root / ".git" / "objects")


@pytest.mark.parametrize(
    "attack",
    [
        _delete,
        _make_anew,
        _make_a_file,
        _make_a_link,
        _link_the_workspace,
        _copy_the_workspace,
        _delete_the_workspace,
        _delete_the_objects,
    ],
)
def test_a_replaced_repository_is_noticed(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    project = Project(tmp_path)
    repo = project.repo
    attack(project.root)
    with pytest.raises(RepositoryReplaced) as caught:
        still_the_same(repo)
    assert caught.value.exit_code == 78


def test_work_in_the_repository_does_not_make_it_another_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo = project.repo
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "two")
    project.git("switch", "-qc", "side")
    project.git("gc", "-q")
    still_the_same(repo)


def test_the_workspace_itself_comes_first(tmp_path: Path) -> None:
    project = Project(tmp_path)
    Project(project.root / "x")
    assert find_repository(project.root, home=tmp_path) == project.root


def test_a_repository_inside_with_the_same_name_is_found(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    for name in ("shop", "zoo"):
        subprocess.run(["git", "init", "-q", str(workspace / name)], check=True)
    assert find_repository(workspace, home=tmp_path) == workspace / "shop"
    assert find_repository(workspace, "zoo", home=tmp_path) == workspace / "zoo"


def test_the_only_repository_inside_is_found(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(workspace / "code")], check=True)
    assert find_repository(workspace, home=tmp_path) == workspace / "code"


def test_several_repositories_inside_are_listed(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    for name in ("one", "two"):
        subprocess.run(["git", "init", "-q", str(workspace / name)], check=True)
    with pytest.raises(NotARepository, match="more than one") as caught:
        find_repository(workspace, home=tmp_path)
    assert caught.value.hint == "choose one of: one, two"
    with pytest.raises(NotARepository, match="no repository three"):
        find_repository(workspace, "three", home=tmp_path)


def test_the_repository_around_a_folder_of_a_monorepo_is_found(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "packages" / "web").mkdir(parents=True)
    assert find_repository(project.root / "packages" / "web", home=tmp_path) == project.root


def test_a_repository_of_dotfiles_in_the_home_is_not_taken(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "code" / "thing").mkdir(parents=True)
    with pytest.raises(NotARepository, match="not in a git repository"):
        find_repository(tmp_path / "code" / "thing", home=tmp_path)
