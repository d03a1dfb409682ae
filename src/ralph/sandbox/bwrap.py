"""bubblewrap: namespaces for processes, network, IPC and host name; the file system read-only; no capabilities. Linux.

The sandbox dies with the thread that started it (`--die-with-parent` is per thread), so that thread has to live as
long as the command does.

What it does not cover: a service whose socket appears after the start, or was bound to a relative path, outside of
hidden folders. With an open network, abstract sockets of the machine can be reached as well.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import ralph
from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, run
from ralph.sandbox import cgroup, masks, relay, seccomp, terminal_entry
from ralph.sandbox.wall import PROXY_PORT, Found, Mount, Quota, Wall

NAME = "bwrap"
TITLE = "bubblewrap"
MOUNTS = True
_PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
_STEERING = ("LD_", "BASH_", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "MALLOC_", "NLSPATH", "SHELLOPTS")
"""Beginnings of variables that make a program load or run files. They are for the command: `sh` and `bwrap` themselves,
which run outside, would load a library that an agent left in the project."""
_FOLDERS = ("TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR")
"""Variables that name folders for temporary files and sockets. Most are hidden inside."""
_OLDEST = (0, 5)
_SIZES = (0, 7)
_DISABLES_USERNS = (0, 8)
_SHARED_MEMORY = "/dev/shm"
_OTHER_HOME = Path("/tmp/home")
"""Where the home folder is if its path cannot be made in the read-only file system."""
_TEMPORARY = {"/tmp": 2, "/var/tmp": 8}
"""Folders in memory that are private, empty and writable inside, and the part of the memory that each may take."""
_HIDDEN = ("/run", "/home", "/root")
_KEPT = ("/run/current-system", "/run/opengl-driver")
"""The programs of NixOS."""
_COUNTS_PER_SANDBOX = (5, 14)
"""Since this Linux, the limit of a user's processes counts those of one user namespace."""
_GRACE = 5
_MEGABYTE = 1024 * 1024
_PAGE = 4096

_OPEN = """
[ -z "$1" ] || exec 9<"$1"
[ -z "$2" ] || exec 8<"$2"
shift 2
while [ "$1" != -- ]; do echo 0 >"$1"; shift; done 2>/dev/null
shift
echo 500 2>/dev/null >/proc/self/oom_score_adj
exec "$@"
"""
"""Outside: opens the filter and the relay, enters the control groups, and becomes bubblewrap. If memory runs out, the
kernel ends what is inside before anything else of the user."""
_LIMIT = '{ %s; } 2>/dev/null; exec "$@"'
"""Inside: sets limits of single processes. One that is lower already stays."""


def find(env: Mapping[str, str]) -> Found:
    if sys.platform != "linux":
        return Found(why_not="bubblewrap exists only for Linux")
    program = which("bwrap", _trusted(env.get("PATH", os.defpath)))
    if not program:
        return Found(why_not="bubblewrap is not installed", hint="install the package `bubblewrap`")
    version = _version(program)
    if version < _OLDEST:
        said = ".".join(map(str, version))
        return Found(program, said, why_not=f"bubblewrap {said} is too old", hint="install bubblewrap 0.5 or newer")
    return Found(program, ".".join(map(str, version)))


def _trusted(path: str) -> str:
    """PATH without the project: an agent could have left a program there, in `node_modules/.bin` for instance."""
    here = Path.cwd()
    folders = [Path(part) for part in path.split(os.pathsep) if part.startswith("/")]
    return os.pathsep.join(str(folder) for folder in folders if not folder.is_relative_to(here) or here == Path("/"))


@lru_cache
def _version(program: str) -> tuple[int, ...]:
    try:
        said = run((program, "--version"), cwd=Path("/"), timeout=10).out
    except CannotStart:
        return (0,)
    numbers = re.search(rb"(\d+)\.(\d+)\.?(\d*)", said)
    return tuple(int(number or 0) for number in numbers.groups()) if numbers else (0,)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    if not wanted.cwd.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(wanted.cwd))
    view = _View(wall, _version(program))
    spaces = ["user", "pid", "ipc", "uts", "cgroup-try", *([] if wall.is_network_open else ["net"])]
    argv = [program, *(f"--unshare-{space}" for space in spaces)]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    if _version(program) >= _DISABLES_USERNS:
        argv.append("--disable-userns")
    if rules := seccomp.compiled():
        argv += ["--seccomp", "9"]
    argv += view.arguments()
    argv += ["--chdir", str(wanted.cwd.absolute()), "--"]
    if limits := "; ".join(_limits(wall.quota)):
        argv += ["/bin/sh", "-c", _LIMIT % limits, "sh"]
    if wall.proxy is not None:
        argv += [sys.executable, "-I", "-S", f"{view.own}/relay.pyc", f"{view.own}/proxy", str(PROXY_PORT)]
        argv += [*map(str, wall.forwards), "--"]
    if wanted.is_terminal:
        argv += [sys.executable, "-I", "-S", terminal_entry.__file__]
    env = _environment(wanted.env, wall, view.home_name)
    steering = {name: env.pop(name) for name in [*env] if name == "ENV" or name.startswith(_STEERING)}
    argv[1:1] = [word for name, value in steering.items() for word in ("--setenv", name, value)]
    groups = map(str, cgroup.create(label, wall.quota))
    files = (_in_memory(rules), _in_memory(_relay() if wall.proxy is not None else b""))
    outside = ("/bin/sh", "-c", _OPEN, "sh", *files, *groups, "--")
    return Start((*outside, *argv, *wanted.argv), Path("/"), env)


def end(program: str, label: str) -> str:
    """The kernel ends all that is in a process namespace with its first process; the group is removed here."""
    return cgroup.end(label)


def own_folders() -> tuple[Path, ...]:
    """This Python and Ralph itself, which may be in a hidden folder: the relay, the hooks and the scripted agent."""
    places = (sys.prefix, sys.base_prefix, sys.exec_prefix, Path(ralph.__file__).parent)
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in places))


class _View:
    """The file system as it looks inside, as arguments in the order in which bubblewrap mounts."""

    def __init__(self, wall: Wall, version: tuple[int, ...]) -> None:
        self._wall, self._version = wall, version
        self._hidden = _outermost((*_HIDDEN, *map(str, (*wall.hidden, wall.home))))
        self._temporary = {folder: part for place, part in _TEMPORARY.items() for folder in _outermost((place,))}
        self._temporary |= {_SHARED_MEMORY: 4}
        self._emptied: list[str] = []
        self._emptied = [path for path in masks.private().folders if not self._is_hidden(Path(path))]
        self.own = "/run/ralph" if "/run" in self._hidden else os.path.realpath("/tmp") + "/.ralph"
        """Where Ralph's own files are inside."""
        self.home = self._inside(wall.home)
        if str(self.home) == "/" or not (self.home.is_dir() or self._is_hidden(self.home)):
            self.home = Path(os.path.realpath(_OTHER_HOME))
        self.home_name = wall.home if self.home != Path(os.path.realpath(_OTHER_HOME)) else _OTHER_HOME
        """As it is spelled in HOME."""

    def arguments(self) -> Iterator[str]:
        yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev", "--proc", "/proc")
        for path in masks.read_only():
            yield from ("--ro-bind", path, path)
        for folder in sorted({*self._hidden, *self._temporary, *self._emptied}):
            yield from self._memory(folder, self._temporary.get(folder, 0))
        if self._wall.home_source is None:
            yield from self._memory(str(self.home), 2)
        shown = {*map(str, (*self._wall.writable, *self._wall.readable))}
        hidden = [os.path.realpath(path) for path in self._wall.hidden if path.is_file()]
        yield from _nothing((*hidden, *(file for file in masks.private().files if file not in shown)))
        mounts = list(self._mounts())
        for mount in mounts:
            kind = "--bind" if mount.is_writable else "--ro-bind"
            yield from (kind, str(mount.source), str(mount.target))
        yield from _nothing(map(str, self._sockets(mounts)))
        if self._wall.proxy is not None:
            yield from ("--ro-bind-data", "8", f"{self.own}/relay.pyc")
            yield from ("--bind", str(self._wall.proxy), f"{self.own}/proxy")
        over = {str(mount.target) for mount in mounts} | {str(self.home)}
        for folder in self._hidden:
            if folder not in over:
                yield from ("--remount-ro", folder)

    def _memory(self, folder: str, part: int) -> Iterator[str]:
        """An empty folder in memory that may take a part of it. 0: a hidden one, which nothing can be written to."""
        if self._version >= _SIZES:
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            quota = self._wall.quota.disk_mb * _MEGABYTE
            yield from ("--size", str(min(memory // part, quota or memory) if part else _PAGE))
        mode = "0555" if not part else "0755" if folder == str(self.home) else "1777"
        yield from ("--perms", mode, "--tmpfs", folder)

    def _mounts(self) -> Iterator[Mount]:
        """Outer folders first, so that an inner one is bound over them; on one path, the later kind wins.

        A path that leads through a link is there in both spellings.
        """
        wall = self._wall
        mounts = [Mount(wall.home_source, self.home, is_writable=True)] if wall.home_source else []
        shown = [path for path in (*map(Path, _KEPT), *own_folders(), *wall.readable) if self._is_hidden(path)]
        if wall.is_network_open:
            shown.append(Path("/etc/resolv.conf"))  # a link into /run where systemd resolves names
        mounts += [Mount(path, path) for path in shown]
        mounts += [Mount(path, path, is_writable=True) for path in wall.writable]
        mounts += wall.mounts
        mounts += [Mount(path, path) for path in wall.read_only]
        both: dict[Path, Mount] = {}
        for mount in mounts:
            if mount.source.exists():
                for target in (self._inside(mount.target), Path(os.path.realpath(mount.target))):
                    both.pop(target, None)
                    both[target] = Mount(Path(os.path.realpath(mount.source)), target, mount.is_writable)
        yield from sorted(both.values(), key=lambda mount: len(mount.target.parts))

    def _inside(self, path: Path) -> Path:
        """A path without the links that exist inside; what is in a hidden folder is made as it is spelled."""
        place = Path("/")
        for part in Path(os.path.normpath(path)).parts[1:]:
            place /= part
            if place.is_symlink() and not self._is_hidden(place):
                place = Path(os.path.realpath(place))
        return place

    def _is_hidden(self, path: Path) -> bool:
        """Whether it is in a folder that is empty inside, unless something is mounted there."""
        text = f"{path}/"
        return any(text.startswith(f"{folder}/") for folder in (*self._hidden, *self._temporary, *self._emptied))

    def _sockets(self, mounts: Sequence[Mount]) -> Iterator[Path]:
        """Sockets of services, where they would be visible inside."""
        for path in masks.sockets():
            real = Path(os.path.realpath(path))
            places = [m.target / real.relative_to(m.source) for m in mounts if real.is_relative_to(m.source)]
            if not self._is_hidden(real):
                places.append(real)
            yield from dict.fromkeys(place for place in places if self._is_visible(place, real, mounts))

    def _is_visible(self, place: Path, real: Path, mounts: Sequence[Mount]) -> bool:
        """Whether the innermost mount at a place shows that file there."""
        over = [mount for mount in mounts if place.is_relative_to(mount.target)]
        return not over or over[-1].source / place.relative_to(over[-1].target) == real


def _nothing(files: Iterable[str]) -> Iterator[str]:
    """Files that look like /dev/null inside."""
    for file in files:
        yield from ("--ro-bind", os.devnull, file)


def _limits(quota: Quota) -> Iterator[str]:
    """Shell commands that limit each process, where no group limits all of them. Memory is not among them: sanitizers
    of C compilers reserve terabytes, and count as if they used them."""
    if quota.processes and os.geteuid() != 0 and _linux() >= _COUNTS_PER_SANDBOX:
        yield f"ulimit -u {quota.processes} || ulimit -p {quota.processes}"  # -p in dash
    if quota.disk_mb:
        yield f"ulimit -f {quota.disk_mb * 2048}"
    if quota.cpu_seconds:
        yield f"ulimit -H -t {quota.cpu_seconds + _GRACE}; ulimit -S -t {quota.cpu_seconds}"  # a signal that names it
    if quota != Quota():
        yield "ulimit -c 0"


def _linux() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])


def _in_memory(content: bytes) -> str:
    """The path of a file with this content that a process we start can open; empty for none."""
    return f"/proc/{os.getpid()}/fd/{_descriptor(content)}" if content else ""


@lru_cache
def _descriptor(content: bytes) -> int:
    descriptor = os.memfd_create("ralph", 0)  # stays open in exec, but not in what Python starts
    os.write(descriptor, content)
    return descriptor


@lru_cache
def _relay() -> bytes:
    """The relay as Python loads it: compiling it at every start would take 4 ms."""
    source = Path(relay.__file__).read_bytes()
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(source, "relay.py", "exec", dont_inherit=True))


def _environment(env: Mapping[str, str], wall: Wall, home: Path) -> dict[str, str]:
    inside = {name: value for name, value in env.items() if name not in _PROXIED or wall.is_network_open}
    for name in _FOLDERS:
        if name in inside and not any(Path(inside[name]).is_relative_to(folder) for folder in wall.writable):
            del inside[name]  # /tmp is what programs use instead
    if inside.get("HOME", str(wall.home)) == str(wall.home):  # checks have a home of their own, in a writable folder
        inside |= {"HOME": str(home)}
    if wall.proxy is not None:
        inside |= dict.fromkeys(_PROXIED, f"http://127.0.0.1:{PROXY_PORT}")
        inside |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return inside


def _outermost(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Without folders inside another one of the list, without links, and without those that do not exist."""
    kept: list[str] = []
    real = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            real.add(os.path.realpath(folder, strict=True))
    for folder in sorted(real):
        is_inner = any(folder.startswith(outer.rstrip("/") + "/") for outer in kept)
        if Path(folder).is_dir() and not is_inner and folder != "/":
            kept.append(folder)
    return tuple(kept)
