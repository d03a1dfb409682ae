from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph.core.errors import LockHeld, SetupError
from ralph.core.exit_codes import ExitCode
from ralph.host import locks
from ralph.host.locks import Lock, Owner
from ralph.host.process import tree
from ralph.host.process.start import run
from support.processes import script, wait_for

posix = pytest.mark.skipif(sys.platform == "win32", reason="fork and signals")

HOLD = """
import os, sys, time
from pathlib import Path
from ralph.core.errors import LockHeld
from ralph.host.locks import Lock, Owner
lock = Lock(Path(sys.argv[1]))
try:
    lock.acquire(Owner.here(sys.argv[2]))
except LockHeld as error:
    print("held", flush=True)
    sys.exit(73)
print("mine", flush=True)
{then}
"""


def hold(path: Path, then: str = "time.sleep(300)", run_id: str = "run-1") -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", HOLD.format(then=then), str(path), run_id]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


def answer(holder: subprocess.Popen[str]) -> str:
    assert holder.stdout is not None
    return holder.stdout.readline().strip()


def end(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


def test_of_many_that_start_at_once_exactly_one_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "run.lock"
    holders = [hold(path) for _ in range(5)]
    try:
        assert sorted(answer(h) for h in holders) == ["held"] * 4 + ["mine"]
    finally:
        for holder in holders:
            end(holder)


def test_the_message_names_the_owner_and_what_to_do(tmp_path: Path) -> None:
    holder = hold(tmp_path / "run.lock", run_id="20250101-abc")
    try:
        assert answer(holder) == "mine"
        with pytest.raises(LockHeld) as caught:
            Lock(tmp_path / "run.lock").acquire(Owner.here("run-2"))
    finally:
        end(holder)
    message = str(caught.value)
    assert caught.value.exit_code is ExitCode.LOCKED
    for part in ("run 20250101-abc", f"pid {holder.pid}", f"since {time.strftime('%Y-%m-%dT%H:')}"[:11]):
        assert part in message
    assert "`ralph stop`" in caught.value.hint
    assert "delete" not in (message + caught.value.hint).lower()
    assert "remove" not in (message + caught.value.hint).lower()


@posix
def test_a_killed_owner_frees_it_and_its_name_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    holder = hold(path)
    assert answer(holder) == "mine"
    end(holder)
    lock = Lock(path)
    stale = lock.owner()
    assert stale is not None
    assert (stale.pid, stale.is_alive) == (holder.pid, False)
    assert not lock.is_held()
    with lock.held_by(Owner.here("run-2")):
        owner = lock.owner()
        assert owner is not None
        assert (owner.pid, owner.run, owner.is_alive) == (os.getpid(), "run-2", True)
        assert lock.is_held()
    assert not lock.is_held()
    assert lock.owner() is None


@pytest.mark.skipif(sys.platform != "linux", reason="ended by what is in their environment")
@pytest.mark.parametrize(
    "child",
    [
        "if os.fork() == 0: os.setsid(); time.sleep(300)",
        "import subprocess; subprocess.Popen(['sleep', '300'], close_fds=False)",
        "from ralph.host.process.start import start; start(['sleep', '300'], cwd=Path('/'), env=None, stdin=False)",
    ],
)
def test_a_child_that_outlives_the_owner_does_not_hold_it(tmp_path: Path, child: str) -> None:
    path = tmp_path / "run.lock"
    then = f"{child}\nprint('child', flush=True)\ntime.sleep(300)"
    holder = hold(path, then)
    try:
        assert [answer(holder), answer(holder)] == ["mine", "child"]
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        wait_for(lambda: not Lock(path).is_held(), 2)
        Lock(path).held_by(Owner.here("run-2")).release()
    finally:
        for process in tree.marked("HOME", os.environ["HOME"]):
            if process.pid != os.getpid():
                tree.send(process, signal.SIGKILL)
        end(holder)


@posix
def test_a_fork_that_leaves_the_with_block_does_not_release_it(tmp_path: Path) -> None:
    body = (
        "from pathlib import Path; from ralph.host.locks import Lock, Owner\n"
        "lock = Lock(Path('run.lock'))\n"
        "with lock.held_by(Owner.here('r')):\n"
        "    child = os.fork()\n"
        "    if child:\n"
        "        os.waitpid(child, 0); print(lock.is_held(), lock.owner() is not None)\n"
        "    else:\n"
        "        others = [os.open('other', os.O_CREAT | os.O_RDWR) for _ in range(5)]\n"
        "        os.write(others[0], b'kept')\n"
    )
    argv = [a for a in script(body) if a != "-S"]
    assert run(argv, cwd=tmp_path).out == b"True True\n"
    assert (tmp_path / "other").read_bytes() == b"kept"


def test_taking_it_twice_in_one_process_fails_like_any_other(tmp_path: Path) -> None:
    first = Lock(tmp_path / "run.lock")
    with first.held_by(Owner.here("run-1")):
        with pytest.raises(LockHeld, match=f"pid {os.getpid()}"):
            Lock(tmp_path / "run.lock").acquire(Owner.here("run-2"))
        with pytest.raises(LockHeld, match="already"):
            first.acquire(Owner.here("run-1"))
    with first.held_by(Owner.here("run-3")):
        pass


@posix
def test_a_lock_file_that_is_replaced_while_it_is_being_locked_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"
    real = locks._try_lock
    moved: list[str] = []

    def replace_then_lock(descriptor: int, shared: bool = False) -> bool:
        if len(moved) < 2:
            path.unlink()
            moved.append(path.name)
            if len(moved) == 2:
                path.touch()
        return real(descriptor, shared)

    monkeypatch.setattr(locks, "_try_lock", replace_then_lock)
    with Lock(path).held_by(Owner.here("run-1")):
        monkeypatch.undo()
        assert len(moved) == 2
        with pytest.raises(LockHeld):
            Lock(path).acquire(Owner.here("run-2"))


def test_looking_at_a_lock_does_not_make_a_start_fail(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    body = (
        "import sys; from pathlib import Path; from ralph.host.locks import Lock\n"
        "print('looking', flush=True)\nwhile True: Lock(Path(sys.argv[1])).is_held()"
    )
    looking = subprocess.Popen([sys.executable, "-c", body, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert answer(looking) == "looking"
        for number in range(50):
            Lock(path).held_by(Owner.here(f"run-{number}")).release()
    finally:
        end(looking)


@posix
def test_torn_or_foreign_content_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    for content in (b"", b"[]", b'{"pid": 1, "st', b"\xff\0" * 100):
        path.write_bytes(content)
        assert Lock(path).owner() is None
    for content in (b"", b'{"pid": 1, "st'):
        with Lock(path).held_by(Owner.here("run-1")):
            path.write_bytes(content)
            with pytest.raises(LockHeld, match="did not record its name"):
                Lock(path).acquire(Owner.here("run-2"))


def test_an_owner_on_another_host_is_neither_called_alive_nor_dead(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    other = Owner(os.getpid(), "1", "another-host", "run-1", "2025-01-01T00:00:00Z")
    assert other.is_alive is None
    with Lock(path).held_by(other), pytest.raises(LockHeld, match="lock held since 2025-01-01T") as caught:
        Lock(path).acquire(Owner.here("run-2"))
    assert "`ralph stop` on another-host" in caught.value.hint
    assert "kill" not in caught.value.hint


@posix
def test_where_locks_do_not_work_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, shared: bool = False) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks, "_try_lock", refuse)
    with pytest.raises(SetupError, match="could not lock") as caught:
        Lock(tmp_path / "run.lock").acquire(Owner.here("run-1"))
    assert "RALPH_STATE_HOME" in caught.value.hint


@posix
def test_a_lock_that_cannot_be_opened_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "folder.lock").mkdir()
    (tmp_path / "link.lock").symlink_to(tmp_path / "elsewhere")
    for name in ("folder.lock", "link.lock"):
        with pytest.raises(SetupError, match=name):
            Lock(tmp_path / name).acquire(Owner.here("run-1"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    def opened() -> list[str]:
        return [str(p.readlink()) for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]

    with Lock(tmp_path / "run.lock").held_by(Owner.here("run-1")):
        with pytest.raises(LockHeld):
            Lock(tmp_path / "run.lock").acquire(Owner.here("run-2"))
        assert [name for name in opened() if "run.lock" in name] == [str(tmp_path / "run.lock")]
    assert [name for name in opened() if "run.lock" in name] == []
