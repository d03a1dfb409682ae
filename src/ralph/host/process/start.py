"""Starts processes. They get their own session, none of our descriptors and no terminal.

An agent is also limited, and tied to this process: Linux ends it with SIGKILL when the thread that started it ends,
however that happens; so start and supervise an agent in the same thread. `watchdog` ends what the agent itself
started, and does so on other systems, too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process import table as ptable
from ralph.host.process.enclosure import Enclosure, Start
from ralph.host.process.output import Excerpt, Pump
from ralph.host.process.programs import which
from ralph.host.process.signals import StopSignal
from ralph.host.process.table import require_process_control
from ralph.host.process.tree import CHILDREN, Tree

_PR_SET_PDEATHSIG = 1
_ORPHANED = 137
_SWEEP_GRACE = 0.5
"""Maximum seconds between SIGTERM and SIGKILL for processes a command left behind."""
_STOP_GRACE = 1.0
"""The same for a command that is ended because a stop was requested."""


class Allowance(Struct, frozen=True):
    """What an agent and everything it starts may use; 0: no limit."""

    processes: int = 0
    memory: int = 0
    """Bytes, of all its processes together where the system reports that."""
    file_size: int = 0
    """Bytes of one file."""
    cpu: int = 0
    """Seconds of processor time, of all its processes together."""
    disk: int = 0
    """Bytes by which `folders` may grow."""
    folders: tuple[Path, ...] = ()
    is_watched_only: bool = False
    """The kernel's own limits are set elsewhere: by the sandbox."""
    settings: str = "agent.max_{}"
    """The names of the settings that set these limits."""


UNLIMITED = Allowance()


def before_start(allowance: Allowance) -> Callable[[], None]:
    """The function to call in the child. All that needs memory or an import happens here, before the fork."""
    import resource

    parent, limits = os.getpid(), _limits(allowance)
    tie = _death_signal()

    def enter() -> None:
        if tie is not None:
            tie()
            if os.getppid() != parent:  # it ended before the signal was set
                os._exit(_ORPHANED)
        for name, value in limits:
            resource.setrlimit(name, (value, value))

    return enter


def _death_signal() -> Callable[[], object] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _limits(allowance: Allowance) -> list[tuple[int, int]]:
    """The kernel's own limits. Each holds for one process, except the number of processes, which is the user's."""
    import resource

    if allowance.is_watched_only:
        return []
    wanted = []
    if allowance.processes and sys.platform == "linux":
        wanted.append((resource.RLIMIT_NPROC, ptable.threads_of_user() + allowance.processes))
    if allowance.memory:
        wanted.append((resource.RLIMIT_DATA, allowance.memory))  # clients reserve far more addresses than they use
    if allowance.file_size:
        wanted.append((resource.RLIMIT_FSIZE, allowance.file_size))
    hard = {n: resource.getrlimit(n)[1] for n, _ in wanted}
    return [(n, value if hard[n] == resource.RLIM_INFINITY else min(value, hard[n])) for n, value in wanted]


def hard_limit(name: str) -> int | None:
    """The most that this process may set a limit to: `nofile`, `nproc`. None: unlimited."""
    import resource

    value = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return None if value == resource.RLIM_INFINITY else value


class CannotStart(SetupError):
    """A program could not be started. The message says which one and why."""


class Finished(Struct, frozen=True):
    argv: tuple[str, ...]
    code: int
    """The exit code, or -N for signal N."""
    out: bytes
    err: bytes
    timed_out: bool
    duration: float
    cut: bool = False
    """`out` or `err` was longer than the limit: it has a marker line in the middle."""
    swept: int = 0
    """Processes it left behind, which were terminated."""
    problem: str = ""
    """What its enclosure reports about its end."""

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = 60,
    limit: int = 1_000_000,
    grace: float = 2.0,
    sweep: bool = True,
    stop: StopSignal | None = None,
    enclosure: Enclosure | None = None,
) -> Finished:
    """Run a command to its end, or kill its whole tree after `timeout`. Keeps at most `limit` bytes per stream.

    Raises CannotStart, a SetupError, if the program does not exist. With `sweep` nothing it started outlives it.
    A request to `stop` ends it like a timeout; an urgent one without a grace period.
    """
    out, err = Excerpt(limit), Excerpt(limit)
    begun = time.monotonic()
    process = start(argv, cwd=cwd, env=env, stdin=bool(stdin), enclosure=enclosure)
    tree = Tree(process)
    timed_out = False
    swept = 0
    try:
        with contextlib.closing(Pump(process, stdin, out.feed, err.feed, stop.fileno() if stop else None)) as pump:

            def turn(seconds: float) -> bool:
                if pump.turn(seconds) and stop:
                    stop.drain()
                return stop is not None and stop.urgent

            while process.poll() is None:
                left = 3600.0 if timeout is None else begun + timeout - time.monotonic()
                stopped = stop is not None and stop.requested
                if stopped or left <= 0:
                    timed_out = not stopped
                    patience = min(grace, _STOP_GRACE) if stopped else grace
                    tree.end(grace=0 if stop and stop.urgent else patience, meanwhile=turn)
                    break
                turn(left)
            pump.drain()
            if sweep:
                swept = tree.end(grace=min(grace, _SWEEP_GRACE)).found
                pump.drain()
    except BaseException:
        tree.end(grace=0)
        raise
    finally:
        finish(process)
        problem = enclosure.end(process) if enclosure is not None else ""
    duration = time.monotonic() - begun
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    cut = out.cut or err.cut
    return Finished(tuple(argv), code, out.value(), err.value(), timed_out, duration, cut, swept, problem)


def shell(command: str) -> tuple[str, ...]:
    """The arguments that run a command line, as checks are written."""
    return ("/bin/sh", "-c", command)


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: bool,
    before: Callable[[], None] | None = None,
    enclosure: Enclosure | None = None,
) -> Popen[bytes]:
    """Start a process with pipes. The caller must also call `finish`. `before` runs in it before its program does."""
    require_process_control()
    if not argv or not argv[0]:
        raise CannotStart("the command to start is empty")

    wanted = Start(tuple(argv), cwd, os.environ if env is None else env)

    def popen(inside: Start) -> Popen[bytes]:
        return Popen(
            list(inside.argv),
            cwd=inside.cwd,
            env=dict(inside.env),
            stdin=PIPE if stdin else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            bufsize=0,
            close_fds=True,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=before,  # noqa: PLW1509 - a few system calls
        )

    def make(inside: Start) -> Popen[bytes]:
        return CHILDREN.start(lambda: popen(inside))

    try:
        with _default_signals():  # an enclosure may itself run programs first
            return make(wanted) if enclosure is None else enclosure.start(wanted, make)
    except (OSError, ValueError) as error:
        raise why_not_started(argv, cwd, env, error) from None


def finish(process: Popen[bytes]) -> None:
    """Reap it, close its pipes, and no longer count it among our processes."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL  # it hangs in the kernel; do not warn about it at exit
    CHILDREN.forget(process)


@contextlib.contextmanager
def _default_signals() -> Iterator[None]:
    """Start a child with no signal ignored or blocked, whatever we inherited (nohup ignores SIGHUP).

    An ignored signal stays ignored in the child, but a handled one becomes the default there; so for the moment of
    the start each ignored one gets a handler that does nothing. Only the main thread may do that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # for good: ignored, it would make every exit code 0
    ignored = [s for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        for number in ignored:
            signal.signal(number, _do_nothing)
        if blocked:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
        yield
    finally:
        if blocked:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def _do_nothing(_number: int, _frame: object) -> None:
    pass


def why_not_started(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None, error: OSError | ValueError
) -> CannotStart:
    program = one_line(argv[0], 200)
    if isinstance(error, ValueError):
        return CannotStart(f"could not start {program}: {error}")
    if not cwd.is_dir():
        return CannotStart(f"could not start {program} in {cwd}: no such folder")
    if error.errno == errno.E2BIG:
        return CannotStart(
            f"could not start {program}: its arguments and environment are longer than the system allows",
            hint="pass long text on stdin or in a file",
        )
    path = (os.environ if env is None else env).get("PATH", os.defpath)
    found = which(argv[0], path) if os.sep not in argv[0] else str(cwd / argv[0])
    if error.errno == errno.ENOENT and not (found and Path(found).exists()):
        if found:
            return CannotStart(f"could not start {program}: no such file")
        return CannotStart(
            f"{program} is not installed, or not on PATH", hint=f"install {program} or give its full path"
        )
    if error.errno == errno.ENOENT:
        return CannotStart(
            f"could not start {program}: the interpreter named in its first line is missing",
            hint=f"check the first line of {found}",
        )
    if error.errno == errno.EACCES:
        is_file = bool(found) and Path(str(found)).is_file()
        hint = f"chmod +x {found}" if is_file else ""
        return CannotStart(f"could not start {program}: not an executable file", hint=hint)
    if error.errno == errno.ENOEXEC:
        return CannotStart(f"could not start {program}: neither a program for this machine nor a script with a #! line")
    return CannotStart(f"could not start {program}: {error.strerror}")
