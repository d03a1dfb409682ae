from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.host.git.command import git
from ralph.host.git.locks import GitBusy, clear_stale_locks
from support.processes import wait_for
from support.repositories import IDENTITY, Project

PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def _git_at_work(project: Project) -> subprocess.Popen[bytes]:
    """A git that waits for more questions; it has answered one, so it is known to be running."""
    command = ["git", "cat-file", "--batch-check"]
    process = subprocess.Popen(command, cwd=project.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"HEAD\n")
    process.stdin.flush()
    assert b"commit" in process.stdout.readline()
    return process


def _old_lock(project: Project, name: str = "index.lock") -> Path:
    """A lock that nobody has touched for a minute."""
    lock = project.root / ".git" / name
    lock.write_bytes(b"")
    os.utime(lock, (time.time() - 60,) * 2)
    return lock


def test_locks_of_killed_processes_are_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    locks = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock"]
    for name in locks:
        _old_lock(project, name)
    removed = clear_stale_locks(project.repo)
    assert {str(Path(name).relative_to(project.root / ".git")) for name in removed} == set(locks)
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "works again")
    project.check_health()


def test_a_fresh_lock_of_another_program_is_waited_for(tmp_path: Path) -> None:
    """An IDE creates the file, closes it, and renames it a moment later."""
    project = Project(tmp_path)
    repo, lock = project.repo, project.root / ".git" / "index.lock"
    lock.write_bytes(b"")
    with pytest.raises(GitBusy, match="another program is using the repository"):
        clear_stale_locks(repo, patience=0.2)
    assert lock.exists()
    with subprocess.Popen(["sh", "-c", f"sleep 0.5; rm '{lock}'"]):
        assert clear_stale_locks(repo) == ()


def test_a_lock_that_a_process_has_open_is_respected_wherever_it_runs(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo, lock = project.repo, _old_lock(project)
    with subprocess.Popen(["sh", "-c", f"exec 5<'{lock}'; echo; read x"], cwd="/", **PIPES) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(GitBusy, match=str(lock)):
            clear_stale_locks(repo, patience=0.2)
        assert lock.exists()
        holder.communicate(b"")
    assert clear_stale_locks(repo) == (str(lock),)


def test_a_commit_whose_editor_is_open_holds_its_lock(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo, lock = project.repo, project.root / ".git" / "index.lock"
    project.write("a.txt", "two\n")
    editor = f"touch {tmp_path}/open; while [ ! -e {tmp_path}/close ]; do sleep 0.05; done; false"
    environment = {**os.environ, "GIT_EDITOR": editor}
    with subprocess.Popen(["git", *IDENTITY, "commit", "-qa"], cwd=project.root, env=environment):
        wait_for((tmp_path / "open").exists)
        os.utime(lock, (time.time() - 60,) * 2)
        with pytest.raises(GitBusy):
            clear_stale_locks(repo, patience=0.2)
        (tmp_path / "close").touch()
    assert clear_stale_locks(repo) == ()


def test_a_git_that_holds_no_lock_is_no_owner(tmp_path: Path) -> None:
    """An editor keeps `git cat-file --batch` open all day."""
    project, other = Project(tmp_path / "one"), Project(tmp_path / "two")
    _old_lock(project)
    with _git_at_work(project) as here, _git_at_work(other) as elsewhere:
        assert clear_stale_locks(project.repo, patience=0.2)
        here.communicate(b"")
        elsewhere.communicate(b"")


def test_a_git_status_that_holds_the_index_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo, lock = project.repo, project.root / ".git" / "index.lock"
    project.write("a.txt", "two\n")
    lock.write_bytes(b"")
    with subprocess.Popen(["sh", "-c", f"sleep 0.7; rm '{lock}'"]):
        git(repo, "add", "a.txt")
    assert project.status() == "M  a.txt"


def test_without_locks_nothing_happens(tmp_path: Path) -> None:
    assert clear_stale_locks(Project(tmp_path).repo) == ()


HARMLESS = ["gc.pid", "gc.log.lock", "gc.pid.lock", "objects/maintenance.lock", "objects/info/commit-graph.lock"]


def test_the_files_of_housekeeping_are_neither_waited_for_nor_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in (*HARMLESS, "objects/pack/tmp_pack_Ab12Cd"):
        (project.root / ".git" / name).write_bytes(b"")
    with _git_at_work(project) as alive:
        assert clear_stale_locks(project.repo, patience=0) == ()
        alive.communicate(b"")
    assert all((project.root / ".git" / name).exists() for name in HARMLESS)


def test_a_real_gc_neither_blocks_nor_owns_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    """A background gc after a commit of many files runs for minutes; a killed commit before it left its lock."""
    project = Project(tmp_path)
    for number in range(3000):
        (project.root / f"f{number}").write_text(f"{number}\n" * 50)
    project.git("add", ".")
    project.git("commit", "-qm", "many")
    repo, folder = project.repo, project.root / ".git"
    slow = ["git", "-c", "pack.threads=1", "-c", "gc.aggressiveWindow=100", "gc", "--aggressive", "--quiet"]
    with subprocess.Popen(slow, cwd=repo.root) as gc:
        while not (folder / "gc.pid").exists():
            time.sleep(0.005)
            assert gc.poll() is None
        while (folder / "packed-refs.lock").exists():
            time.sleep(0.005)
        _old_lock(project)
        removed = clear_stale_locks(repo, patience=5)
        was_running = gc.poll() is None
    assert removed == (str(folder / "index.lock"),)
    assert was_running
    project.write("f1", "two\n")
    project.git("commit", "-qam", "works")
