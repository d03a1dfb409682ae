"""Every escape of the table is refused by bubblewrap, and was shown to succeed without it; ordinary work succeeds."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ralph.host.process.enclosure import Enclosure
from ralph.sandbox import bwrap, cgroup, escapes
from ralph.sandbox.attempts import Group
from ralph.sandbox.escapes import ATTEMPTS, Result, try_escapes, try_work
from ralph.sandbox.wall import Quota, Wall, Walled
from ralph.sandbox.work import WORK

pytestmark = pytest.mark.needs("bwrap", "git")
IS_ROOT = os.geteuid() == 0
NEVER = {"descriptors"}
"""Attempts without a control: `start` passes no descriptors on, with or without a sandbox."""
NEEDS_ROOT = {
    *("raw-socket", "packet-socket", "mount", "new-mount", "chroot", "device-node", "devices", "core-pattern"),
    *("sysctl", "sys", "cgroups", "module", "kexec", "file-handle", "perf", "bpf", "capabilities", "terminal"),
}
NEEDS_KERNEL = {
    *(
        "module",
        "kexec",
        "kernel-crypto",
        "vsock",
        "io-uring",
        "userfaultfd",
        "sys",
        "bpf",
        "perf",
        "sysctl",
        "keyring",
    ),
    *("add-key", "other-architecture", "device-node", "user-namespace", "clone-namespace", "ptrace", "memory"),
    *("core-pattern", "interfaces", "devices", "terminal", "cgroups", "new-mount", "file-handle", "setuid-program"),
}
"""Attempts that not every machine lets succeed, not even root."""


def inside(wall: Wall) -> Enclosure:
    return Walled(bwrap, bwrap.find(os.environ).program, wall)


def test_the_table_is_as_long_as_promised() -> None:
    assert len(ATTEMPTS) >= 40
    assert set(Counter(attempt.group for attempt in ATTEMPTS)) == set(Group)
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
    assert len({work.name for work in WORK}) == len(WORK)
    assert all(attempt.why_only for attempt in ATTEMPTS if attempt.only)


@pytest.mark.parametrize("group", Group)
def test_nothing_gets_out(group: Group, tmp_path: Path) -> None:
    outcomes = try_escapes(inside, groups=(group,), controls=True)
    assert [outcome for outcome in outcomes if not outcome.is_good] == []
    refused = {outcome.name: outcome for outcome in outcomes if outcome.result is Result.REFUSED}
    skipped = {outcome.name for outcome in outcomes} - set(refused)
    groups = cgroup.controlled(Quota(processes=1, memory_mb=1))
    uncounted = {"fork-bomb"} if IS_ROOT and "pids" not in groups else set()
    uncounted |= {"memory-limit"} if "memory" not in groups else set()
    assert skipped == (uncounted if group is Group.LIMITS else set())
    unproven = {name for name, outcome in refused.items() if not outcome.control}
    assert unproven <= NEVER | NEEDS_KERNEL | (set() if IS_ROOT else NEEDS_ROOT)


def test_holes_in_a_wall_are_found(tmp_path: Path) -> None:
    def leaky(wall: Wall) -> Enclosure:
        home, other = wall.home, wall.hidden[0]
        holes = (*wall.writable, home / "other-project", home / ".ssh", other)
        return inside(msgspec.structs.replace(wall, writable=holes, hidden=(), is_network_open=True))

    outcomes = try_escapes(leaky, groups=(Group.FILES, Group.SOCKETS))
    escaped = {outcome.name for outcome in outcomes if outcome.result is Result.ESCAPED}
    wanted = {"write-outside", "read-ssh-key", "read-other-home", "symlink-read", "rename-out", "abstract-socket"}
    assert wanted <= escaped
    assert "read-aws-login" not in escaped
    assert all(outcome.detail for outcome in outcomes if outcome.result is Result.ESCAPED)


def test_a_sandbox_that_does_not_start_proves_nothing(tmp_path: Path) -> None:
    def broken(wall: Wall) -> Enclosure:
        return Walled(bwrap, "/bin/false", wall)

    outcomes = try_escapes(broken, groups=(Group.GIT,))
    assert {outcome.result for outcome in outcomes} == {Result.FAILED}
    assert not any(outcome.is_good for outcome in outcomes)


def test_an_attempt_that_a_backend_does_not_promise_to_refuse_is_skipped_with_the_reason() -> None:
    outcomes = try_escapes(inside, backend="srt", groups=(Group.KERNEL,))
    skipped = {outcome.name: outcome.detail for outcome in outcomes if outcome.result is Result.SKIPPED}
    assert "bpf" in skipped
    assert all(skipped.values())


def test_ordinary_work_succeeds() -> None:
    outcomes = try_work(inside)
    assert [outcome for outcome in outcomes if not outcome.is_good] == []
    done = {outcome.name for outcome in outcomes if outcome.result is Result.WORKS}
    assert {"write", "git", "venv", "terminal", "threads", "locale", "loopback", "proxy"} <= done
    assert escapes.rows(outcomes)[0] == ("works", "work", "write to the project, the home folder and /tmp", "")


@pytest.fixture
def short() -> Iterator[Path]:
    """A path of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_nothing_is_left_behind(short: Path) -> None:
    before = {*Path("/dev/shm").iterdir()}
    try_escapes(inside, groups=(Group.GIT,), base=short, python=sys.executable)
    assert list(short.iterdir()) == []
    assert not [path for path in {*Path("/dev/shm").iterdir()} - before if "ralph-escape" in path.name]
