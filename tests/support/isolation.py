"""Tests live in a home of their own; one that reaches for the real one fails.

Everything here is called by `tests/conftest.py`, once a session or around each test.
"""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from ralph.state.places import state_home

# Variables of a developer's shell that change what programs do.
_FOREIGN = ("RALPH", "GIT_", "CLAUDE", "ANTHROPIC", "AI_AGENT", "OTEL_", "TRACE", "XDG_", "LC_", "SSH_")
_FOREIGN_NAMES = frozenset(
    {
        "BASH_ENV",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "EDITOR",
        "ENV",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LESS",
        "LINES",
        "MAX_ALLOWED_ITERATIONS",
        "MAX_ITERATIONS",
        "NO_COLOR",
        "PAGER",
        "PRD_NUMBER",
        "PYTHON",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONUNBUFFERED",
        "PYTHONWARNINGS",
        "TIMEOUT_AGENT",
        "VISUAL",
    }
)

# Audit events whose arguments, at these positions, are paths.
_PATHS_OF = {
    "glob.glob": (0,),
    "open": (0,),
    "os.chdir": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.listdir": (0,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.scandir": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "sqlite3.connect": (0,),
    "subprocess.Popen": (2,),
    "tempfile.mkdtemp": (0,),
    "tempfile.mkstemp": (0,),
}


class RealHomeTouched(BaseException):
    """Not an `Exception`, so that the code under test cannot take it for one of its own errors."""


class Watch:
    """Sees every file this process opens, lists, makes or removes, and refuses those in the forbidden folders."""

    def __init__(self, forbidden: Iterable[Path], exempt: Iterable[Path]) -> None:
        self.touched: list[str] = []
        self.is_on = False
        self._forbidden = tuple(_spellings(forbidden))
        self._exempt = tuple(_spellings(exempt))
        sys.addaudithook(self._hear)  # for good: hooks cannot be taken away again

    def exempt(self, folder: Path) -> None:
        self._exempt += tuple(_spellings([folder]))

    def take(self) -> list[str]:
        found, self.touched = self.touched, []
        return found

    def forbids(self, path: str) -> bool:
        """The closer folder decides: a clone may lie in a home, and a home in the folder for temporary files."""
        return _closest(path, self._forbidden) > _closest(path, self._exempt)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_on or event not in _PATHS_OF:
            return
        if event == "open" and isinstance(flags := arguments[2], int) and flags & getattr(os, "O_PATH", 0):
            return  # names a place in a rule of `host.process.fence`; nothing can be read or written through it
        for at in _PATHS_OF[event]:
            self._refuse(event, _absolute(arguments[at]))
        if event == "subprocess.Popen":
            environment = os.environ if arguments[3] is None else arguments[3]
            assert isinstance(environment, Mapping)
            for name in ("HOME", "RALPH_STATE_HOME", "XDG_STATE_HOME"):
                self._refuse(f"a child process with {name}", _absolute(environment.get(name)))
            if "HOME" not in environment and _would_look_up_home(str(arguments[0])):
                self._refuse("a child process without HOME takes", self._forbidden[0])

    def _refuse(self, what: str, path: str) -> None:
        if path and self.forbids(path):
            self.touched.append(f"{what} {path}")
            raise RealHomeTouched(self.touched[-1])


def real_places(environment: Mapping[str, str]) -> list[Path]:
    """The folders of the person who runs the tests: home and Ralph's state. Ask before anything is replaced."""
    homes = {Path(pwd.getpwuid(os.getuid()).pw_dir), Path(environment.get("HOME") or "/")}
    places = {*homes, state_home(environment)}
    # A home such as `/` says nothing: everything is in it.
    return sorted(place for place in places if place.is_absolute() and len(place.parts) > 1)


def needed_places(root: Path) -> list[Path]:
    """What lies in a home and is still needed: the clone, the interpreter, its packages and temporary files."""
    places = {root, Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), Path(tempfile.gettempdir())}
    places |= {Path(entry) for entry in sys.path if entry}
    if sys.pycache_prefix:
        places.add(Path(sys.pycache_prefix))
    return sorted(places)


def foreign_variables(environment: Mapping[str, str]) -> list[str]:
    return [name for name in environment if name.startswith(_FOREIGN) or name in _FOREIGN_NAMES]


def own_variables(home: Path) -> dict[str, str]:
    """The environment of a test, beyond what is left of the real one."""
    return {
        "HOME": str(home),
        "RALPH_STATE_HOME": str(home / ".local" / "state" / "ralph"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_RUNTIME_DIR": str(home / ".run"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8",
        "TERM": "xterm-256color",
    }


def children() -> dict[int, str]:
    """Living child processes of this one: pid → command line. Empty where the system cannot tell cheaply."""
    found: dict[int, str] = {}
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = [int(word) for word in listing.read_text().split()]
        except OSError:
            continue
        for pid in pids:
            if command := _command_of(pid):
                found[pid] = command
    return found


def left_behind(before: Mapping[int, str], patience: float = 2.0) -> dict[int, str]:
    """Children that a test started and that have not ended, even after a moment."""
    until = time.monotonic() + patience
    while (left := {pid: c for pid, c in children().items() if pid not in before}) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def _command_of(pid: int) -> str:
    """Empty for a process that is gone, or that has ended and only waits to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return "" if state in "ZX" else command.replace(b"\0", b" ").decode(errors="replace").strip() or "(no command line)"


def _would_look_up_home(program: str) -> bool:
    """Python, and so Ralph, asks the user database when HOME is not set."""
    return Path(program).name.startswith(("python", "ralph"))


def _absolute(argument: object) -> str:
    if isinstance(argument, os.PathLike):
        argument = argument.__fspath__()
    if isinstance(argument, bytes):
        argument = os.fsdecode(argument)
    if not isinstance(argument, str) or not argument:
        return ""
    try:
        return os.path.abspath(argument)  # noqa: PTH100 - no link is resolved: this runs for every open
    except OSError:
        return ""


def _spellings(places: Iterable[Path]) -> set[str]:
    return {spelling for place in places for spelling in (os.path.abspath(place), os.path.realpath(place))}  # noqa: PTH100


def _closest(path: str, folders: Iterable[str]) -> int:
    """How much of the path the longest of these folders covers; 0 when it is in none of them."""
    return max((len(folder) for folder in folders if path == folder or path.startswith(folder + "/")), default=0)
