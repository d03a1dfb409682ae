"""The process table: /proc where available, `ps` elsewhere. Read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError, Unsupported

_HAS_PROC = sys.platform == "linux"
_COLUMNS = ("pid", "ppid", "pgid", "stat", "lstart")


class ProcessId(Struct, frozen=True):
    """A process, distinguished from a later one with the same pid."""

    pid: int
    start: str
    """Its start time in the system's own format. Only for comparison."""


class Row(Struct, frozen=True, gc=False):
    pid: int
    parent: int
    group: int
    session: int
    """0 where the system does not report it."""
    start: str
    state: str
    threads: int = 1
    cpu: float = 0.0
    """CPU seconds used so far; 0 where the system does not report them."""
    memory: int = 0
    """Bytes in RAM; 0 where the system does not report them."""

    @property
    def id(self) -> ProcessId:
        return ProcessId(self.pid, self.start)

    @property
    def is_dead(self) -> bool:
        """A zombie. A process whose main thread ended before the others also shows as a zombie, but is alive."""
        return self.state in "ZXx" and self.threads <= 1


def require_process_control() -> None:
    if sys.platform == "win32":
        raise Unsupported(
            "Ralph cannot start and end process trees on Windows",
            hint="run it in WSL 2, where it works as on Linux",
        )


def table() -> dict[int, Row]:
    """Every process, including zombies."""
    require_process_control()
    if not _HAS_PROC:
        return {row.pid: row for row in _ps("-A")}
    names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - pathlib is slower
    if not names:
        raise SetupError("/proc is empty, so processes cannot be listed", hint="mount proc on /proc")
    return {r.pid: r for r in map(_read_stat, map(int, names)) if r is not None}


def row(pid: int) -> Row | None:
    require_process_control()
    if _HAS_PROC:
        return _read_stat(pid)
    return next(iter(_ps("-p", str(pid))), None)


def threads_of_user() -> int:
    """Threads of all processes of this user, which is what the limit on processes counts. Linux only."""
    count = 0
    for process in table().values():
        with contextlib.suppress(OSError):
            count += process.threads if os.stat(f"/proc/{process.pid}").st_uid == os.getuid() else 0  # noqa: PTH116
    return count


def name(pid: int) -> str:
    """The name of its program; empty if the system does not say."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() if _HAS_PROC else ""
    except OSError:
        return ""


def environment(pid: int) -> bytes:
    """The environment a process was started with; empty if the system or the owner does not let us see it."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() if _HAS_PROC else b""
    except OSError:
        return b""


def open_files(pid: int) -> list[str]:
    """The paths of a process's open files; empty if the system or the owner does not let us see them."""
    try:
        links = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")] if _HAS_PROC else []  # noqa: PTH208
    except OSError:
        return []
    paths = []
    for link in links:
        with contextlib.suppress(OSError):  # closed meanwhile
            paths.append(os.readlink(link))  # noqa: PTH115
    return paths


def own_children() -> list[int]:
    """Pids of our children, including zombies. Only we can reap them, so none is reused in the meantime."""
    if _HAS_PROC:
        try:
            return _listed_children()
        except OSError:  # a kernel without CONFIG_PROC_CHILDREN
            pass
    me = os.getpid()
    return [r.pid for r in table().values() if r.parent == me]


def _listed_children() -> list[int]:
    """The kernel may skip a child while another exits, so require two equal answers in a row, a limited number of
    times."""
    found: dict[int, None] = {}
    before: list[int] | None = None
    for _ in range(3):
        now = [pid for task in os.listdir("/proc/self/task") for pid in _children_of_task(task)]  # noqa: PTH208
        found.update(dict.fromkeys(now))
        if not now or now == before:
            break
        before = now
    return list(found)


def _children_of_task(task: str) -> list[int]:
    try:
        return [int(word) for word in _read(f"/proc/self/task/{task}/children").split()]
    except FileNotFoundError:
        if task == str(os.getpid()):
            raise
        return []  # a thread that has just ended; its children are another's now


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _read_stat(pid: int) -> Row | None:
    try:
        text = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name is in parentheses and may hold anything, a ")" too.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Row(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=f"{fields[19].decode()}@{_boot()}",
        state=fields[0].decode(),
        threads=int(fields[17]),
        cpu=sum(map(int, fields[11:15])) / _ticks(),  # with that of children that have ended
        memory=int(fields[21]) * _page() if len(fields) > 21 else 0,
    )


@cache
def _boot() -> str:
    """Identifies the boot. Start times count from boot, so a process of an earlier boot could look like a current
    one."""
    try:
        return _read("/proc/sys/kernel/random/boot_id").decode()[:8]
    except OSError:
        return ""


@cache
def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")


@cache
def _page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def _ps(*which: str) -> list[Row]:
    # One -o for each: POSIX lets a header, even an empty one, reach to the end of its argument.
    command = ["ps", *which, *(word for column in _COLUMNS for word in ("-o", f"{column}="))]
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(
            f"could not run `ps`: {error}", hint="Ralph needs it to find the processes an agent started"
        ) from None
    return [found for line in done.stdout.decode(errors="replace").splitlines() if (found := parse_ps(line))]


def parse_ps(line: str) -> Row | None:
    """One line of `ps` output for these columns."""
    words = line.split()
    if len(words) < 5 or not all(word.isdigit() for word in words[:3]):
        return None
    pid, parent, group = map(int, words[:3])
    return Row(pid=pid, parent=parent, group=group, session=0, start=" ".join(words[4:]), state=words[3][0])
