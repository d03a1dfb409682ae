"""The first process in a container: `python3 -I -S container_init.py FOLDER LIMITS CPU PATH [RELAY…] -- COMMAND…`.

FOLDER has `run`, a socket that the run holds. When it closes that, however the run ended, this process exits, and the
kernel ends all others in the container. Before it exits with the command's code, it reports on the socket which of
LIMITS were hit. CPU is the processor time, in seconds, that all processes together may use; 0: no limit. FOLDER may
also have `filter`, for the system calls of the command.

Folders of PATH that exist here are searched after the image's own. A command by a full path that does not exist here is
searched by its name: on the host, the agent is installed elsewhere. RELAY is the script that leads to the proxy and its
arguments; it starts the command.

It imports nothing of Ralph and runs on the Python of the image: any 3.8 or newer.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FORWARDED = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))  # Windows has few of them
_NOT_FOUND, _NOT_EXECUTABLE, _ABANDONED = 127, 126, 137
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 4, 38, 22, 2
_INSTRUCTION = 8
"""Bytes of one instruction of a filter."""
_TICK = 1.0
_CGROUP = "/sys/fs/cgroup"
_COUNTERS = {
    "memory": (("memory.events", "oom_kill"), ("memory/memory.oom_control", "oom_kill")),
    "processes": (("pids.events", "max"), ("pids/pids.events", "max")),
}
"""Limit → its counter of refusals, in control groups of version 2 and 1."""


def main(arguments: "list[str]") -> None:
    at = arguments.index("--")
    folder, limits, cpu_seconds, folders, *relay = arguments[:at]
    command = arguments[at + 1 :]
    run = socket.socket(socket.AF_UNIX)
    try:
        run.connect(f"{folder}/run")
    except OSError:
        os._exit(_ABANDONED)
    _keep_out()
    run.sendall(b"started\n")
    os.environ["PATH"] = search_path(os.environ.get("PATH", os.defpath), folders)
    program = find_program(command[0], os.environ["PATH"])
    if not program:
        name = Path(command[0]).name
        os.write(2, f"ralph: {name} is not installed in the container image; add it to the image\n".encode())
        run.sendall(b"ended\n")
        os._exit(_NOT_FOUND)
    wake, wakes = os.pipe()
    for end in (wake, wakes):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for number in (*_FORWARDED, signal.SIGCHLD):
        signal.signal(number, _do_nothing)
    child = os.fork()
    if child == 0:
        start = [sys.executable, "-I", "-S", *relay, "--"] if relay else []
        _become([*start, program, *command[1:]], Path(folder, "filter"))
    _watch(run, wake, child, limits.split(","), int(cpu_seconds))


def _keep_out() -> None:
    """The command has the same user: it could trace this process, and so stop it for good."""
    with contextlib.suppress(ImportError, OSError, AttributeError):  # not every Python has it
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def search_path(own: str, folders: str) -> str:
    added = [folder for folder in folders.split(os.pathsep) if Path(folder).is_dir()]
    return os.pathsep.join(dict.fromkeys([*own.split(os.pathsep), *added]))


def find_program(name: str, path: str) -> "str | None":
    """The program as it is called in this container. A path that exists is kept."""
    if Path(name).is_absolute() and not os.access(name, os.X_OK):
        return shutil.which(Path(name).name, path=path)
    return name if os.sep in name else shutil.which(name, path=path)


def _become(command: "list[str]", rules: Path) -> None:
    try:
        os.setsid()
        if rules.exists():
            _install(rules.read_bytes())
        for number in (*_FORWARDED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except ImportError:
        os.write(2, b"ralph: the python3 of the container image has no ctypes; install the full package\n")
    except OSError as error:
        os.write(2, f"ralph: could not start {command[0]} in the container: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_EXECUTABLE)


def _install(rules: bytes) -> None:
    """Refuse system calls from now on. Podman's own filter lets user namespaces and mounts in them pass."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(rules) // _INSTRUCTION, rules)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter for system calls was refused")


def _watch(run: socket.socket, wake: int, child: int, limits: "list[str]", cpu_seconds: int) -> None:
    """Until the command ends. Never returns."""
    while True:
        ready = select.select([run.fileno(), wake], [], [], _TICK if cpu_seconds else None)[0]
        if run.fileno() in ready and not _is_open(run):
            os._exit(_ABANDONED)
        code = _forward(wake, child) if wake in ready else None
        if code is not None:
            _report(run, hit(limits))
            os._exit(code)
        if cpu_seconds and cpu_time() > cpu_seconds:
            _report(run, ["cpu_seconds"])
            os._exit(128 + signal.SIGXCPU)


def _is_open(run: socket.socket) -> bool:
    try:
        return bool(run.recv(64))
    except OSError:  # the run ended before it accepted this connection
        return False


def _forward(wake: int, child: int) -> "int | None":
    """Pass signals on; reap what ended. Returns the command's exit code if it has ended."""
    code = None
    for number in os.read(wake, 256):
        if number != signal.SIGCHLD:
            with contextlib.suppress(OSError):
                os.killpg(child, number)
    for pid, status in _ended():
        if pid == child:
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return code


def _ended() -> "Iterator[tuple[int, int]]":
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            yield pid, status


def _report(run: socket.socket, limits: "list[str]") -> None:
    with contextlib.suppress(OSError):
        run.sendall("".join(f"{line}\n" for line in (*limits, "ended")).encode())


def hit(limits: "list[str]") -> "list[str]":
    """Those whose counter is not zero. A container that has no control group of its own sees another's."""
    return [limit for limit, places in _COUNTERS.items() if limit in limits and any(_counter(*at) for at in places)]


def _counter(name: str, key: str) -> int:
    try:
        lines = [line.split() for line in Path(_CGROUP, name).read_text().splitlines()]
    except OSError:
        return 0
    return next((int(words[1]) for words in lines if words[0] == key), 0)


def cpu_time() -> float:
    """Seconds of processor time of all processes in this container, and of those that ended and were waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            ticks += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _do_nothing(_number: int, _frame: object) -> None:
    """The number is read from the pipe."""


if __name__ == "__main__":
    main(sys.argv[1:])
