"""Rolling back: the tree, HEAD, branches, stash and index as they were, and nothing else touched."""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.git.checkpoint import Checkpoint, release, take
from ralph.host.git.ignored import KeepIgnored
from ralph.host.git.repo import RepositoryReplaced
from ralph.host.git.rescue import RolledBack, roll_back
from ralph.host.git.restore import restore
from ralph.host.git.snapshot import LARGEST_FILE
from support.repositories import Project, as_nobody, listing


def _roll_back(project: Project, checkpoint: Checkpoint) -> RolledBack:
    done = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    project.check_health()
    return done


def test_changed_deleted_new_and_retyped_files_go_back(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("run.sh", "#!/bin/sh\n", 0o755)
    (project.root / "link").symlink_to("a.txt")
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.write("a.txt", "broken\n")
    (project.root / "src/b.py").unlink()
    (project.root / "run.sh").chmod(0o644)
    (project.root / "link").unlink()
    project.write("link", "a file now")
    project.write("new/deep/er.py", "new\n")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert done.restored.removed == ("new/deep/er.py",)
    assert set(done.restored.rewritten) == {"a.txt", "src/b.py", "run.sh", "link"}


def test_untracked_files_from_before_stay_as_they_are_to_the_nanosecond(tmp_path: Path) -> None:
    project = Project(tmp_path)
    mine = project.write("notes.txt", "mine\n", 0o640)
    os.utime(mine, ns=(1_000_000_001, 1_000_000_002))
    before = mine.stat()
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "broken\n")
    project.write("new", "x")
    _roll_back(project, checkpoint)
    after = mine.stat()
    assert (after.st_mtime_ns, after.st_ino, after.st_mode) == (before.st_mtime_ns, before.st_ino, before.st_mode)


def test_uncommitted_changes_from_before_come_back(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "mine, not committed\n")
    project.write("notes.txt", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.git("reset", "-q", "--hard")
    project.git("clean", "-qfd")
    _roll_back(project, checkpoint)
    assert project.read("a.txt") == "mine, not committed\n"
    assert project.read("notes.txt") == "mine\n"


def test_ignored_files_without_copies_are_never_touched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("x.log", "before")
    project.write("build/o", "before")
    checkpoint = take(project.repo, project.index)
    project.write("x.log", "after")
    project.write("build/new", "after")
    _roll_back(project, checkpoint)
    assert (project.read("x.log"), project.read("build/o"), project.read("build/new")) == ("after", "before", "after")


def _nothing(path: str) -> bool:
    return False


def test_small_ignored_files_are_restored_and_large_ones_are_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".gitignore", "*.log\nbuild/\n.env\n*.db\nlocal/\nnode_modules/\n")
    project.git("commit", "-qam", "rules")
    secret = project.write(".env", "TOKEN=1\n", 0o600)
    project.write("local/deep/my.db", b"\0data")
    project.write("grown.log", "before\n")
    project.write("big.db", "x" * 2000)
    project.write("gone.db", "x" * 3000)
    project.write("same.db", "y" * 2000)
    project.write("node_modules/a/index.js", "before")
    wanted = KeepIgnored(1000, 5000, _nothing)
    checkpoint = take(project.repo, project.index, ignored=wanted)
    assert take(project.repo, project.index, ignored=wanted, before=checkpoint.ignored).ignored == checkpoint.ignored
    secret.write_text("TOKEN=agent\n")
    shutil.rmtree(project.root / "local")
    project.write("grown.log", "before\nand after\n")
    project.write("big.db", "z" * 2000)
    (project.root / "gone.db").unlink()
    shutil.rmtree(project.root / "node_modules")
    done = _roll_back(project, checkpoint)
    assert (project.read(".env"), secret.stat().st_mode & 0o777) == ("TOKEN=1\n", 0o600)
    assert (project.root / "local/deep/my.db").read_bytes() == b"\0data"
    assert project.read("grown.log") == "before\nand after\n"
    assert sorted(done.ignored.restored) == [".env", "local/deep/my.db"]
    assert sorted(done.ignored.lost) == ["big.db", "gone.db"]
    assert done.ignored.aside is not None
    assert b"TOKEN=agent\n" in [path.read_bytes() for path in done.ignored.aside.iterdir()]
    release(project.repo, project.index)
    assert not project.index.with_name("index.ignored").exists()


def test_an_ignored_file_is_never_restored_through_a_link(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("build/conf/.env", "mine\n")
    project.write(".gitignore", "*.log\nconf/\n")
    project.git("commit", "-qam", "rules")
    project.write("conf/.env", "mine\n")
    checkpoint = take(project.repo, project.index, ignored=KeepIgnored(1000, 5000, _nothing))
    shutil.rmtree(project.root / "conf")
    (tmp_path / "outside").mkdir()
    (project.root / "conf").symlink_to(tmp_path / "outside")
    done = _roll_back(project, checkpoint)
    assert not list((tmp_path / "outside").iterdir())
    assert done.ignored.restored == () or not (project.root / "conf").is_symlink()


def test_an_agent_that_drops_an_ignore_rule_does_not_get_the_ignored_files_deleted(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".gitignore", ".env\nnode_modules/\n")
    project.git("commit", "-qam", "rules")
    project.write(".env", "SECRET=1\n")
    project.write("node_modules/x/index.js", "x")
    checkpoint = take(project.repo, project.index)
    project.write(".gitignore", "")
    project.write("new", "x")
    _roll_back(project, checkpoint)
    assert project.read(".env") == "SECRET=1\n"
    assert project.read("node_modules/x/index.js") == "x"
    assert not (project.root / "new").exists()
    assert project.status() == ""


def test_what_an_agent_hides_by_a_new_ignore_rule_is_saved_and_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("notes.txt", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write(".gitignore", "hidden*\nnotes.txt\n")
    project.write("hidden.py", "work\n")
    project.write("notes.txt", "overwritten\n")
    done = _roll_back(project, checkpoint)
    assert not (project.root / "hidden.py").exists()
    assert project.read("notes.txt") == "mine\n"
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, "hidden.py") == b"work\n"
    assert project.in_commit(done.rescue.commit, "notes.txt") == b"overwritten\n"
    assert project.in_commit(done.rescue.commit, ".gitignore") == b"hidden*\nnotes.txt\n"
    assert done.restored.is_complete


def test_a_folder_that_ignores_itself_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write(".venv/.gitignore", "*\n")
    project.write(".venv/bin/python", "x")
    assert _roll_back(project, checkpoint).rescue is None
    assert project.read(".venv/bin/python") == "x"


def test_nothing_is_written_or_removed_through_a_link(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("src/c.py", "c\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("not yours\n")
    (outside / "x").write_text("not yours\n")
    checkpoint, before, theirs = take(project.repo, project.index), project.listing(), listing(outside)
    shutil.rmtree(project.root / "src")
    (project.root / "src").symlink_to(outside)
    (project.root / "new").symlink_to(outside)
    done = _roll_back(project, checkpoint)
    assert listing(outside) == theirs
    assert project.listing() == before
    assert set(done.restored.removed) == {"src", "new"}


def test_a_folder_moved_out_and_linked_back_is_a_folder_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    (project.root / "src").rename(tmp_path / "moved")
    (project.root / "src").symlink_to(tmp_path / "moved")
    _roll_back(project, checkpoint)
    assert project.listing() == before
    assert (tmp_path / "moved" / "b.py").read_text() == "print(1)\n"


def test_a_folder_in_the_place_of_a_file_goes_with_its_ignored_files_saved(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    (project.root / "a.txt").unlink()
    project.write("a.txt/seen.py", "seen\n")
    project.write("a.txt/unseen.log", "unseen\n")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, "a.txt/seen.py") == b"seen\n"
    assert project.in_commit(done.rescue.commit, "a.txt/unseen.log") == b"unseen\n"


def test_empty_folders_of_the_agent_go_and_those_from_before_stay(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "uploads" / "deep").mkdir(parents=True)
    (project.root / "cache").mkdir()
    checkpoint, before = take(project.repo, project.index), project.listing()
    (project.root / "made" / "up").mkdir(parents=True)
    project.write("cache/x", "x")
    project.write("src/more/x", "x")
    (project.root / "uploads" / "deep").rmdir()
    _roll_back(project, checkpoint)
    assert project.listing() == before


@pytest.mark.parametrize("name", ["new\nline", '"quoted"', " ", "-rf", "*", "ü", os.fsdecode(b"\xff"), "n" * 255])
def test_odd_names_are_saved_and_removed(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    project.write(f"kept/{name}", "before\n")
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.write(f"kept/{name}", "after\n")
    project.write(f"new/{name}/{name}", "new\n")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, f"kept/{name}") == b"after\n"
    assert project.in_commit(done.rescue.commit, f"new/{name}/{name}") == b"new\n"


def test_very_deep_paths_are_saved_and_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    deep = "/".join(["d" * 100] * 30)
    here = os.open(project.root, os.O_RDONLY)
    for part in deep.split("/"):  # longer than a path the system takes in one go
        os.mkdir(part, dir_fd=here)
        inner = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert done.rescue is not None


def test_commits_of_the_agent_are_undone_and_saved(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, head = take(project.repo, project.index), project.head()
    project.write("a.txt", "committed\n")
    project.git("commit", "-qam", "by the agent")
    mine = project.head()
    project.write("b.txt", "not committed\n")
    done = _roll_back(project, checkpoint)
    assert (project.head(), project.status(), project.read("a.txt")) == (head, "", "one\n")
    assert done.rescue is not None
    project.git("merge-base", "--is-ancestor", mine, done.rescue.commit)
    assert done.restored.branches == ("main",)


def _switch(project: Project) -> None:
    project.git("switch", "-qc", "side")


def _switch_and_commit(project: Project) -> None:
    project.git("switch", "-qc", "side")
    project.write("side.txt", "side\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "side")
    project.git("switch", "-qc", "other")
    project.git("commit", "-q", "--allow-empty", "-m", "other")


def _detach(project: Project) -> None:
    project.git("checkout", "-q", "--detach")
    project.git("commit", "-q", "--allow-empty", "-m", "nowhere")


def _amend(project: Project) -> None:
    project.git("commit", "-q", "--amend", "-m", "another first")


def _reset(project: Project) -> None:
    project.git("reset", "-q", "--hard", "HEAD~1")


def _delete_branch(project: Project) -> None:
    project.git("switch", "-qc", "side")
    project.git("branch", "-qD", "main", "old")


def _orphan(project: Project) -> None:
    project.git("switch", "-q", "--orphan", "empty")


def _take_the_name(project: Project) -> None:
    project.git("switch", "-qc", "side")
    project.git("branch", "-qD", "feat/one")
    project.git("switch", "-qc", "feat")


def _move_another_branch(project: Project) -> None:
    project.git("switch", "-q", "old")
    project.git("commit", "-q", "--allow-empty", "-m", "on old")


def _break_head(project: Project) -> None:
    (project.root / ".git" / "HEAD").write_text("nonsense\n")


def _remove_head(project: Project) -> None:
    (project.root / ".git" / "HEAD").unlink()


@pytest.mark.parametrize(
    "attack",
    [
        _switch,
        _switch_and_commit,
        _detach,
        _amend,
        _reset,
        _delete_branch,
        _orphan,
        _take_the_name,
        _move_another_branch,
        _break_head,
        _remove_head,
    ],
)
def test_head_and_branches_go_back(tmp_path: Path, attack: Callable[[Project], None]) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "second")
    project.git("branch", "old", "HEAD~1")
    project.git("branch", "feat/one")
    refs = project.git("for-each-ref", "refs/heads")
    checkpoint, before, index = take(project.repo, project.index), project.listing(), project.index_bytes()
    repo = project.repo
    attack(project)
    roll_back(repo, "run/1", project.index, checkpoint, "rejected")
    assert project.git("for-each-ref", "refs/heads") == refs
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert (project.listing(), project.index_bytes()) == (before, index)
    project.check_health()


def test_what_a_gc_has_removed_for_good_is_said_once_and_later_checkpoints_work(tmp_path: Path) -> None:
    """As on file systems without hard links."""
    project = Project(tmp_path)
    lost = project.git("commit-tree", "HEAD^{tree}", "-m", "only here")
    project.git("update-ref", "refs/heads/precious", lost)
    checkpoint = take(project.repo, project.index)
    shutil.rmtree(project.index.with_name("index.objects"))
    project.git("update-ref", "-d", "refs/heads/precious")
    project.git("branch", "fine")
    project.git("branch", "-D", "fine")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    project.write("a.txt", "bad\n")
    done = _roll_back(project, checkpoint)
    assert done.restored.lost_refs == (f"refs/heads/precious could not be restored: {lost[:12]} no longer exists",)
    assert "precious" not in done.restored.branches
    assert project.read("a.txt") == "one\n"
    again = take(project.repo, project.index)
    project.write("a.txt", "bad again\n")
    assert roll_back(project.repo, "run/2", project.index, again, "rejected").restored.is_complete
    project.check_health()


def test_a_branch_of_another_worktree_is_not_touched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    checkpoint = take(project.repo, project.index)
    project.git("commit", "-q", "--allow-empty", "-m", "another run", cwd=tmp_path / "tree")
    moved = project.git("rev-parse", "side")
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "agent")
    _roll_back(project, checkpoint)
    assert project.git("rev-parse", "side") == moved


def test_a_linked_worktree_is_rolled_back_alone(tmp_path: Path) -> None:
    main = Project(tmp_path)
    main.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    main.write("a.txt", "mine\n")
    tree = Project.__new__(Project)
    tree.root, tree.index = tmp_path / "tree", tmp_path / "state" / "tree-index"
    checkpoint, before = take(tree.repo, tree.index), tree.listing()
    tree.write("a.txt", "agent\n")
    tree.write("new", "x")
    tree.git("add", "-A")
    tree.git("commit", "-qm", "agent")
    done = roll_back(tree.repo, "run/1", tree.index, checkpoint, "rejected")
    assert tree.listing() == before
    assert tree.status() == ""
    assert main.read("a.txt") == "mine\n"
    assert done.rescue is not None
    assert main.in_commit(done.rescue.commit, "new") == b"x"


def test_first_commits_on_an_unborn_branch_are_undone(tmp_path: Path) -> None:
    project = Project(tmp_path, commit=False)
    project.write("mine", "x\n")
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.write("new", "x\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "agent")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert project.status() == "?? mine"
    assert done.rescue is not None


def test_the_users_index_comes_back_byte_for_byte(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "staged by me\n")
    project.git("add", "a.txt")
    project.write("a.txt", "not staged\n")
    index = project.index_bytes()
    checkpoint = take(project.repo, project.index)
    project.write("new", "x")
    project.git("add", "-A")
    _roll_back(project, checkpoint)
    assert project.index_bytes() == index
    assert project.git("diff", "--cached", "--name-only") == "a.txt"
    assert project.git("show", ":a.txt") == "staged by me"


def test_what_was_only_staged_is_saved_too(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "only in the index\n")
    project.git("add", "a.txt")
    project.write("a.txt", "one\n")
    done = _roll_back(project, checkpoint)
    assert done.rescue is not None
    parents = project.git("rev-parse", f"{done.rescue.commit}^@").split()
    assert b"only in the index\n" in [project.in_commit(parent, "a.txt") for parent in parents]


def test_a_merge_left_half_done_is_forgotten(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("switch", "-qc", "side")
    project.write("a.txt", "side\n")
    project.git("commit", "-qam", "side")
    project.git("switch", "-q", "main")
    project.write("a.txt", "main\n")
    project.git("commit", "-qam", "main")
    for command in (("merge", "side"), ("rebase", "side"), ("cherry-pick", "side")):
        checkpoint, before = take(project.repo, project.index), project.listing()
        project.git(*command, check=False)
        roll_back(project.repo, f"run/{command[0]}", project.index, checkpoint, "rejected")
        assert project.listing() == before
        assert project.status() == ""
        assert "in progress" not in project.git("status")
        assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    project.check_health()


def test_the_users_stash_survives_an_agent_that_clears_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for text in ("one\n", "two\n"):
        project.write("a.txt", f"stashed {text}")
        project.git("stash", "-q")
    before = project.git("rev-list", "-g", "stash")
    checkpoint = take(project.repo, project.index)
    project.git("stash", "clear")
    _roll_back(project, checkpoint)
    assert project.git("rev-list", "-g", "stash") == before


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_made_by_the_agent_is_saved_whole_and_removed(tmp_path: Path, has_commit: bool) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    nested = Project(project.root / "lib", commit=has_commit)
    nested.write("work.py", "work\n")
    nested.write("x.log", "log\n")
    done = _roll_back(project, checkpoint)
    left = {"lib/project/x.log": ("file", b"log\n")} if has_commit else {}  # ignored there by its own rules
    assert project.listing() == before | left
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, "lib/project/work.py") == b"work\n"
    assert project.in_commit(done.rescue.commit, "lib/project/.git-saved/HEAD") == b"ref: refs/heads/main\n"


def test_a_repository_from_before_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    nested = Project(project.root / "lib")
    checkpoint = take(project.repo, project.index)
    nested.write("a.txt", "changed\n")
    nested.git("commit", "-qam", "changed")
    project.write("new", "x")
    _roll_back(project, checkpoint)
    assert nested.read("a.txt") == "changed\n"
    assert nested.git("log", "--format=%s").splitlines() == ["changed", "first"]
    assert not (project.root / "new").exists()


def test_git_init_in_a_folder_of_the_project_is_undone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.git("init", "-q", cwd=project.root / "src")
    project.write("src/b.py", "changed\n")
    project.write("src/new.py", "new\n")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, "src/new.py") == b"new\n"


def test_commits_and_files_inside_a_submodule_are_undone_and_saved(tmp_path: Path) -> None:
    project, library = Project(tmp_path / "one"), Project(tmp_path / "two")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    lib = project.root / "lib"
    project.write("lib/mine.txt", "not committed\n")
    head, before = project.git("rev-parse", "HEAD", cwd=lib), project.listing()
    checkpoint = take(project.repo, project.index)
    project.write("lib/a.txt", "agent\n")
    project.git("commit", "-qam", "in the library", cwd=lib)
    project.write("lib/new.txt", "agent\n")
    project.write("lib/mine.txt", "agent\n")
    project.write("a.txt", "broken\n")
    done = _roll_back(project, checkpoint)
    assert done.restored.left == ()
    assert project.git("rev-parse", "HEAD", cwd=lib) == head
    assert project.listing() == before
    ref = done.submodules[0].rpartition(" ")[2]
    assert project.git("show", f"{ref}:new.txt", cwd=lib) == "agent"
    assert project.git("log", "--format=%s", ref, cwd=lib).count("in the library") == 1
    release(project.repo, project.index)
    assert project.git("for-each-ref", "refs/ralph/checkpoint", cwd=lib) == ""


def test_a_submodule_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    project, library = Project(tmp_path / "one"), Project(tmp_path / "two")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    checkpoint = take(project.repo, project.index)
    (project.root / "lib/.git").unlink()
    done = _roll_back(project, checkpoint)
    assert "the submodule lib could not be restored" in done.submodules[0]


def test_a_submodule_added_by_the_agent_is_saved_and_removed(tmp_path: Path) -> None:
    project, library = Project(tmp_path / "one"), Project(tmp_path / "two")
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    done = _roll_back(project, checkpoint)
    assert project.listing() == before
    assert project.status() == ""
    assert done.rescue is not None
    assert project.in_commit(done.rescue.commit, "lib/a.txt") == b"one\n"


def test_a_huge_new_file_is_kept_in_place_and_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    with project.write("huge.bin", "").open("wb") as stream:
        stream.truncate(500_000_000)
    project.write("new", "x")
    done = _roll_back(project, checkpoint)
    assert (project.root / "huge.bin").stat().st_size == 500_000_000
    assert done.rescue is not None
    assert done.rescue.left == ("huge.bin",)
    assert not (project.root / "new").exists()


def test_a_file_that_became_huge_is_saved_because_it_must_go_back(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("data", "small\n")
    checkpoint = take(project.repo, project.index)
    os.truncate(project.root / "data", LARGEST_FILE + 1)
    done = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert project.read("data") == "small\n"
    assert done.rescue is not None
    assert len(project.in_commit(done.rescue.commit, "data") or b"") == LARGEST_FILE + 1


def test_pipes_in_the_way_are_replaced(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    (project.root / "a.txt").unlink()
    os.mkfifo(project.root / "a.txt")
    _roll_back(project, checkpoint)
    assert project.listing() == before


def test_private_files_do_not_become_public(tmp_path: Path) -> None:
    project = Project(tmp_path)
    secret = project.write("secret", "mine\n", 0o600)
    checkpoint = take(project.repo, project.index)
    secret.write_text("overwritten\n")
    _roll_back(project, checkpoint)
    assert secret.read_text() == "mine\n"
    assert secret.stat().st_mode & 0o777 == 0o600


def test_what_is_not_saved_is_not_touched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    project.write("new", "work\n")
    (project.root / "src/b.py").unlink()
    done = restore(project.repo, checkpoint, project.index, None)
    assert (project.read("a.txt"), project.read("new")) == ("work\n", "work\n")
    assert project.read("src/b.py") == "print(1)\n"
    assert done.unsaved == ("a.txt", "new")
    assert not done.is_complete


def test_nothing_done_is_nothing_saved_and_nothing_touched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("mine", "x")
    checkpoint, before, index = take(project.repo, project.index), project.listing(), project.index_bytes()
    done = _roll_back(project, checkpoint)
    assert done.rescue is None
    assert (done.restored.removed, done.restored.rewritten, done.restored.branches) == ((), (), ())
    assert (project.listing(), project.index_bytes()) == (before, index)


def test_tampering_is_undone_first_and_reported(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".gitattributes", "*.txt filter=evil\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "attributes")
    repo, checkpoint = project.repo, take(project.repo, project.index)
    evil = f"touch {tmp_path}/ran; cat"
    with (project.root / ".git" / "config").open("a") as stream:
        stream.write(f'[filter "evil"]\n\tclean = {evil}\n\tsmudge = {evil}\n[core]\n\tfsmonitor = {evil}\n')
        stream.write(f"\thooksPath = {tmp_path}/hooks\n")
    project.write("a.txt", "broken\n")
    done = roll_back(repo, "run/1", project.index, checkpoint, "rejected")
    assert [item.file for item in done.restored.tampering] == ["common:config"]
    assert not (tmp_path / "ran").exists()
    assert project.read("a.txt") == "one\n"


def test_line_endings_and_filters_of_the_project_survive(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("config", "core.autocrlf", "true")
    project.git("config", "filter.strip.clean", "sed /output/d")
    project.git("config", "filter.strip.smudge", "cat")
    project.write(".gitattributes", "*.ipynb filter=strip\n* text=auto\n")
    project.write("win.txt", b"a\r\nb\r\n")
    project.write("mixed.txt", b"a\r\nb\n")
    project.write("note.ipynb", b"code\noutput\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "files")
    checkpoint, before = take(project.repo, project.index), project.listing()
    for name in ("win.txt", "mixed.txt", "note.ipynb"):
        project.write(name, "broken\n")
    _roll_back(project, checkpoint)
    assert project.listing() == before
    assert project.status() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_an_agent_that_takes_away_all_rights_is_rolled_back(tmp_path: Path) -> None:
    with as_nobody() as folder:
        project = Project(folder)
        project.write("kept/x", "x\n")
        checkpoint, before = take(project.repo, project.index), project.listing()
        project.write("a.txt", "broken\n", 0o000)
        project.write("new/deep/f", "new\n", 0o000)
        (project.root / "new" / "deep").chmod(0o000)
        (project.root / "new").chmod(0o500)
        project.write("kept/x", "broken\n")
        (project.root / "kept").chmod(0o000)
        (project.root / "src" / "b.py").unlink()
        (project.root / "src").chmod(0o555)
        done = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
        assert done.restored.is_complete, done.restored
        assert project.listing() == before
        assert done.rescue is not None
        assert project.in_commit(done.rescue.commit, "new/deep/f") == b"new\n"
        project.check_health()


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["HEAD", "index", "logs/HEAD", "refs/heads/main", "refs/heads/new", "logs/refs/stash"])
def test_a_pipe_in_the_git_folder_does_not_make_the_loop_wait(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    repo, checkpoint = project.repo, take(project.repo, project.index)
    before, head = project.listing(), project.head()
    project.write("a.txt", "broken\n")
    (project.root / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
    _pipe(project.root / ".git" / name)
    begun = time.monotonic()
    roll_back(repo, "run/1", project.index, checkpoint, "rejected")
    assert time.monotonic() - begun < 20
    if name.startswith("logs/"):
        (project.root / ".git" / name).unlink()
    assert (project.head(), project.status(), project.listing()) == (head, "", before)
    project.check_health()


def test_pipes_in_the_place_of_all_refs_stop_the_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo, checkpoint = project.repo, take(project.repo, project.index)
    _pipe(project.root / ".git" / "packed-refs")
    with pytest.raises(RepositoryReplaced, match="packed-refs is no longer a file"):
        roll_back(repo, "run/1", project.index, checkpoint, "rejected")


def test_a_change_in_the_same_moment_as_the_staging_is_not_forgotten(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.txt", "AAA\n")
    project.git("add", "a.txt")
    moment = (project.root / ".git" / "index").stat().st_mtime_ns
    project.write("a.txt", "BBB\n")
    os.utime(project.root / "a.txt", ns=(moment, moment))
    checkpoint = take(project.repo, project.index)
    project.git("add", "-A")
    project.write("new", "x")
    _roll_back(project, checkpoint)
    assert project.read("a.txt") == "BBB\n"
    assert (project.root / ".git" / "index").stat().st_mtime_ns == moment
    assert project.status().splitlines() == ["MM a.txt"]


def test_a_full_disk_is_a_sentence_and_the_next_call_finishes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint, before = take(project.repo, project.index), project.listing()
    project.write("a.txt", "broken\n")
    project.write("big", os.urandom(200_000))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limit[1]))  # no file may be larger, ours neither
    try:
        with pytest.raises(SetupError):
            roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert len(project.read("a.txt")) == len("broken\n")
    _roll_back(project, checkpoint)
    assert project.listing() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_an_agent_that_locks_the_git_folder_is_rolled_back(tmp_path: Path) -> None:
    with as_nobody() as folder:
        project = Project(folder)
        repo, checkpoint, before = project.repo, take(project.repo, project.index), project.listing()
        project.write("a.txt", "broken\n")
        for name in ("objects", "refs/heads", "hooks", ""):
            (project.root / ".git" / name).chmod(0o000)
        roll_back(repo, "run/1", project.index, checkpoint, "rejected")
        assert project.listing() == before
        project.check_health()


def test_new_pipes_are_removed_and_old_ones_stay(tmp_path: Path) -> None:
    project = Project(tmp_path)
    os.mkfifo(project.root / "mine")
    os.utime(project.root / "mine", (1, 1))
    time.sleep(0.2)
    checkpoint, before = take(project.repo, project.index), project.listing()
    for name in ("pipe", "src/pipe", "new/deep/pipe"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project.root / name)
    project.write("x.log", "ignored")
    _roll_back(project, checkpoint)
    assert project.listing() == before | {"x.log": ("file", b"ignored")}


@pytest.mark.parametrize("text", ["ref: refs/heads/../x\n", "ref: refs/heads/a..b\n", "ref: refs/heads/x.lock\n", "\n"])
def test_a_head_that_git_would_not_take_is_mended(tmp_path: Path, text: str) -> None:
    project = Project(tmp_path)
    repo, checkpoint, head = project.repo, take(project.repo, project.index), project.head()
    project.write(".git/HEAD", text)
    roll_back(repo, "run/1", project.index, checkpoint, "rejected")
    assert (project.head(), project.git("symbolic-ref", "HEAD")) == (head, "refs/heads/main")
