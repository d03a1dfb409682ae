from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.git_locks import clear_stale_locks
from support.repositories import Project


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


def test_locks_of_killed_processes_are_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    locks = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock"]
    for name in locks:
        (project.root / ".git" / name).write_bytes(b"")
    removed = clear_stale_locks(project.repo)
    assert {str(Path(name).relative_to(project.root / ".git")) for name in removed} == set(locks)
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "works again")
    project.check_health()


def test_a_lock_whose_owner_is_at_work_is_respected(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo = project.repo
    lock = project.root / ".git" / "index.lock"
    with _git_at_work(project) as alive:
        lock.write_bytes(b"")
        with pytest.raises(SetupError, match="another git process is running"):
            clear_stale_locks(repo, patience=0.2)
        assert lock.exists()
        alive.communicate(b"")
    assert clear_stale_locks(repo) == (str(lock),)


def test_git_elsewhere_is_not_our_concern(tmp_path: Path) -> None:
    project, other = Project(tmp_path / "one"), Project(tmp_path / "two")
    (project.root / ".git" / "index.lock").write_bytes(b"")
    with _git_at_work(other) as alive:
        assert clear_stale_locks(project.repo, patience=0.2)
        alive.communicate(b"")


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
        (folder / "index.lock").write_bytes(b"")
        removed = clear_stale_locks(repo, patience=5)
        was_running = gc.poll() is None
    assert removed == (str(folder / "index.lock"),)
    assert was_running
    project.write("f1", "two\n")
    project.git("commit", "-qam", "works")
