"""What Docker and Podman have in common: the command line of a container, and its life line.

A container is a child of a daemon or of a monitor, not of this process. So its first process, `container_init`, holds a
connection to a socket of this process and exits when the connection ends: no container outlives the run, even one
that is killed. The same connection reports the limits that were hit.

Nothing of this machine is visible in a container but what is mounted: all else is hidden without being named. What is
hidden inside a mounted folder is covered. The rest is the image, whose Python (3.8 or newer, as `python3`) runs
`container_init` and the relay to the proxy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import ralph
from ralph.host.process.enclosure import Start
from ralph.host.process.start import CannotStart, hard_limit, run
from ralph.sandbox import container_init, masks, relay, seccomp
from ralph.sandbox.bwrap import own_folders
from ralph.sandbox.container_image import prepare_image
from ralph.sandbox.wall import PROXY_PORT, Mount, Quota, Wall

_INSIDE = Path("/run/ralph")
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"), Path("/run"))
_EMPTY_MB = 4096
_OPEN_FILES = 65_536
_PROCESSES = 32_768
"""Of the user. Podman 4.3 gives itself no more, so it cannot give more to a container; its default is more."""
_MEGABYTE = 1024 * 1024
_OF_IMAGE = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")))
"""Where the image has programs of its own: those of this machine are not mounted over them."""
_PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
_OF_CLIENT = re.compile(
    r"HOME|PATH|TMPDIR|(XDG|DBUS|DOCKER|BUILDKIT|BUILDX|CONTAINERS?|PODMAN|REGISTRY)_\w+",
)
"""Variables that the client program reads itself."""
_BY_VALUE = re.compile(r"HOME|TMPDIR|(LD|XDG)_\w+")
"""Given on the command line: the client has its own value, or must not have any."""
_DROPPED = re.compile(r"PATH|XDG_RUNTIME_DIR|(DBUS|DOCKER|BUILDKIT|BUILDX|CONTAINERS?|PODMAN|REGISTRY)_\w+")
"""They mean nothing inside."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_SOCKET = 100
_SECONDS = 60.0


class Engine(Struct, frozen=True, kw_only=True):
    """How a program that runs containers has to be called here."""

    controls: frozenset[str] = frozenset({"memory", "processes"})
    """What can be limited for a whole container. The rest is limited for each process, or for the user inside."""

    options: tuple[str, ...] = ()
    """Of `run`: the user inside is the caller."""
    tmpfs: str = ""
    """More options of an empty folder."""
    names_user: bool = False
    """The user's name is in /etc/passwd of the container anyway."""


class Lifeline(Struct, frozen=True):
    folder: Path
    server: socket.socket


_lifelines: dict[str, Lifeline] = {}


def enter(program: str, wanted: Start, wall: Wall, label: str, engine: Engine) -> Start:
    """Raises CannotStart if there is no image and none can be made."""
    if not wanted.cwd.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(wanted.cwd))
    image = prepare_image(program, wall.image)
    inside = _environment(wanted.env, wall)
    argv = [program, "run", "--rm", "-i", "--name", label, "--label", "ralph.sandbox", "--hostname", "sandbox"]
    argv += ["--pull", "never", "--log-driver", "none", "--no-healthcheck", "--cgroupns", "private", "--ipc", "private"]
    argv += ["-t"] if wanted.is_terminal else []
    argv += ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
    argv += ["--security-opt", "label=disable"]  # SELinux: the alternative is to relabel the user's files
    argv += [
        *([] if wall.is_network_open else ["--network", "none"]),
        *engine.options,
        *_limits(wall.quota, engine.controls),
    ]
    empty = f"rw,exec,nosuid,nodev,mode=1777,size={min(wall.quota.disk_mb or _EMPTY_MB, _EMPTY_MB)}m{engine.tmpfs}"
    folder = _hold(label, wall)
    passwd = [] if engine.names_user else [_passwd(folder, wall.home)]
    mounts = _mounts(wall, [*_own_mounts(folder, wall), *passwd])
    _make_places(mounts)
    for target, mount in mounts.items():
        argv += _mount_option(target, mount, empty)
    argv += _environment_options(inside)
    argv += ["--workdir", str(wanted.cwd), "--entrypoint", "python3", image, "-I", "-S", str(_INSIDE / "init.py")]
    argv += [str(_INSIDE), ",".join(sorted(engine.controls)), str(wall.quota.cpu_seconds)]
    argv += [wanted.env.get("PATH", "")]
    if wall.proxy is not None:
        argv += [*map(str, (_INSIDE / "relay.py", _INSIDE / "proxy", PROXY_PORT, *wall.forwards))]
    return Start((*argv, "--", *wanted.argv), Path("/"), _client_environment(inside))


def end(program: str, label: str) -> str:
    """Ends the container, whatever became of its client, and says which limit it hit."""
    lifeline = _lifelines.pop(label, None)
    if lifeline is None:
        return ""
    report = _report(lifeline)
    if "ended" not in report:
        with contextlib.suppress(CannotStart):  # `rm` alone would ask politely first, and wait
            run((program, "kill", label), cwd=Path("/"), timeout=_SECONDS)
            run((program, "rm", "--force", "--volumes", label), cwd=Path("/"), timeout=_SECONDS)
    shutil.rmtree(lifeline.folder, ignore_errors=True)
    if "started" not in report:
        return "the container did not start; its image needs python3, 3.8 or newer"
    limits = [limit for limit in ("memory", "processes", "cpu_seconds") if limit in report]
    return " and ".join(f"the limit sandbox.limits.{_SETTINGS.get(limit, limit)} was reached" for limit in limits)


_SETTINGS = {"memory": "memory_mb"}


# --- the life line ---------------------------------------------------------------------------------------------------


def _hold(label: str, wall: Wall) -> Path:
    """A folder with a socket that this process holds until `end`. Nobody accepts: a connection ends with the socket."""
    folder = Path(tempfile.mkdtemp(prefix=f"{label}-", dir=wall.proxy.parent if wall.proxy else None))
    if len(os.fsencode(folder)) > _LONGEST_SOCKET:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=f"{label}-", dir="/tmp"))
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "run"))
    server.listen(8)
    server.setblocking(False)
    _lifelines[label] = Lifeline(folder, server)
    return folder


def _report(lifeline: Lifeline) -> list[str]:
    """The words of the first process. It was the first to connect; others inside may try to, and are not heard."""
    with lifeline.server as server:
        try:
            first, _ = server.accept()
        except OSError:
            return []
        with first:
            first.setblocking(False)
            with contextlib.suppress(OSError):
                return first.recv(1024).decode("ascii", "replace").split()
    return []


# --- limits and files ------------------------------------------------------------------------------------------------


def _limits(quota: Quota, controls: Container[str]) -> Iterator[str]:
    open_files = min(hard_limit("nofile") or _OPEN_FILES, _OPEN_FILES)
    processes = min(hard_limit("nproc") or _PROCESSES, _PROCESSES)
    if quota.processes and "processes" in controls:
        yield from ("--pids-limit", str(quota.processes))
    elif quota.processes:
        processes = min(processes, quota.processes)
    if quota.memory_mb and "memory" in controls:
        yield from ("--memory", f"{quota.memory_mb}m", "--memory-swap", f"{quota.memory_mb}m")
    elif quota.memory_mb:
        yield from _limit("data", quota.memory_mb * _MEGABYTE)
    if quota.disk_mb:
        yield from _limit("fsize", quota.disk_mb * _MEGABYTE)
    if quota.cpu_seconds:  # `container_init` adds up all processes
        yield from _limit("cpu", quota.cpu_seconds)
    for name, value in (("nofile", open_files), ("nproc", processes), ("core", 0)):
        yield from _limit(name, value)


def _limit(name: str, value: int) -> tuple[str, str]:
    return "--ulimit", f"{name}={value}:{value}"


def _own_mounts(folder: Path, wall: Wall) -> Iterator[Mount]:
    yield Mount(folder / "run", _INSIDE / "run")
    yield Mount(Path(container_init.__file__), _INSIDE / "init.py")
    if rules := seccomp.compiled():
        (folder / "filter").write_bytes(rules)
        yield Mount(folder / "filter", _INSIDE / "filter")
    if wall.proxy is not None:
        yield Mount(Path(relay.__file__), _INSIDE / "relay.py")
        yield Mount(wall.proxy, _INSIDE / "proxy")


def _passwd(folder: Path, home: Path) -> Mount:
    """The caller has a name inside: without one, Node's `os.userInfo` throws."""
    users = {65534: "nobody:x:65534:65534::/:/bin/false", 0: "root:x:0:0::/root:/bin/sh"}
    if os.getuid() not in users:
        users[os.getuid()] = f"ralph:x:{os.getuid()}:{os.getgid()}::{home}:/bin/sh"
    (folder / "passwd").write_text("".join(f"{line}\n" for line in users.values()))
    return Mount(folder / "passwd", Path("/etc/passwd"))


def _mounts(wall: Wall, own: Iterable[Mount]) -> dict[Path, Mount | None]:
    """Target → what is there; None: an empty folder. On one path the later kind wins; Docker refuses a second one."""
    mounts: dict[Path, Mount | None] = dict.fromkeys((*_TEMPORARY, wall.home))
    if wall.home_source is not None:
        mounts[wall.home] = Mount(wall.home_source, wall.home, is_writable=True)
    readable = [path for path in (*own_folders(), *wall.readable) if not _is_of_image(path)]
    visible = [Mount(path, path) for path in (*readable, Path(ralph.__file__).parent)]
    visible += [Mount(path, path, is_writable=True) for path in wall.writable]
    visible += wall.mounts
    mounts |= {place: Mount(Path(os.devnull), place) for place in _sockets(visible)}
    covered = [path for path in wall.hidden if any(path.is_relative_to(mount.target) for mount in visible)]
    mounts |= {path: Mount(Path(os.devnull), path) if path.is_file() else None for path in covered if path.exists()}
    visible += [*(Mount(path, path) for path in wall.read_only), *own]
    mounts |= {mount.target: mount for mount in visible if os.path.lexists(mount.source)}
    return dict(sorted(mounts.items(), key=lambda entry: len(entry[0].parts)))


def _sockets(mounts: Iterable[Mount]) -> Iterator[Path]:
    """Where sockets of this machine's services would be visible."""
    for mount in mounts:
        source = Path(os.path.realpath(mount.source))
        for path in masks.sockets():
            real = Path(os.path.realpath(path))
            if real != source and real.is_relative_to(source):
                yield mount.target / real.relative_to(source)


def _make_places(mounts: Mapping[Path, Mount | None]) -> None:
    """In mounted folders, what is mounted over must exist. Docker would create it, as root."""
    for target, mount in mounts.items():
        around = [outer for outer in mounts.values() if outer and outer.target in target.parents]
        if not around:
            continue
        outer = max(around, key=lambda mount: len(mount.target.parts))
        place = Path(os.path.realpath(outer.source / target.relative_to(outer.target)))
        if place.exists() or not place.is_relative_to(os.path.realpath(outer.source)):  # a link of the agent's
            continue
        with contextlib.suppress(OSError):
            if mount is None or mount.source.is_dir():
                place.mkdir(parents=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()


def _is_of_image(path: Path) -> bool:
    return path == Path("/") or any(path.is_relative_to(folder) for folder in _OF_IMAGE)


def _mount_option(target: Path, mount: Mount | None, empty: str) -> Sequence[str]:
    if mount is not None:
        words = ["type=bind", f"src={mount.source}", f"dst={target}", *([] if mount.is_writable else ["readonly"])]
        return ("--mount", ",".join(map(_quoted, words)))
    if ":" in str(target):
        raise CannotStart(f"a container cannot have an empty folder at {target}: the path has a colon")
    return ("--tmpfs", f"{target}:{empty}")


def _quoted(word: str) -> str:
    """As a field of comma-separated values."""
    return '"' + word.replace('"', '""') + '"' if set(word) & set(',"\r\n') else word


# --- environment -----------------------------------------------------------------------------------------------------


def _environment(env: Mapping[str, str], wall: Wall) -> dict[str, str]:
    inside = {name: value for name, value in env.items() if _NAME.fullmatch(name) and not _DROPPED.fullmatch(name)}
    if not wall.is_network_open:
        inside = {name: value for name, value in inside.items() if name not in _PROXIED}
    if wall.proxy is not None:
        inside |= dict.fromkeys(_PROXIED, f"http://127.0.0.1:{PROXY_PORT}")
        inside |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    inside.setdefault("HOME", str(wall.home))  # checks have one of their own, in a writable folder
    if not any(Path(inside.get("TMPDIR", "/")).is_relative_to(folder) for folder in wall.writable):
        inside["TMPDIR"] = "/tmp"
    return inside


def _environment_options(inside: Mapping[str, str]) -> Iterator[str]:
    """By name only: values are read from the client's environment, because other users can read command lines."""
    for name, value in inside.items():
        yield from ("--env", f"{name}={value}" if _BY_VALUE.fullmatch(name) else name)


def _client_environment(inside: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if _OF_CLIENT.fullmatch(name)}
    return {**{name: value for name, value in inside.items() if not _BY_VALUE.fullmatch(name)}, **own}
