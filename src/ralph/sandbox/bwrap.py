"""bubblewrap: namespaces for processes, network, IPC and host name; the file system read-only; no capabilities. Linux.

The sandbox dies with the thread that started it (`--die-with-parent` is per thread), so that thread has to live as
long as the command does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import ralph
from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, run
from ralph.sandbox import relay
from ralph.sandbox.wall import PROXY_PORT, Found, Mount, Wall

NAME = "bwrap"
TITLE = "bubblewrap"
MOUNTS = True
_INSIDE = "/run/ralph"
_PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")
_OLDEST = (0, 5)
_DISABLES_USERNS = (0, 8)
_TEMPORARY = ("/tmp", "/var/tmp", "/run")
_OTHER_HOMES = ("/home", "/root")


def find(env: Mapping[str, str]) -> Found:
    if sys.platform != "linux":
        return Found(why_not="bubblewrap exists only for Linux")
    program = which("bwrap", env.get("PATH", os.defpath))
    if not program:
        return Found(why_not="bubblewrap is not installed", hint="install the package `bubblewrap`")
    version = _version(program)
    if version < _OLDEST:
        said = ".".join(map(str, version))
        return Found(program, said, why_not=f"bubblewrap {said} is too old", hint="install bubblewrap 0.5 or newer")
    return Found(program, ".".join(map(str, version)))


@lru_cache
def _version(program: str) -> tuple[int, ...]:
    try:
        said = run((program, "--version"), cwd=Path("/"), timeout=10).out
    except CannotStart:
        return (0,)
    numbers = re.search(rb"(\d+)\.(\d+)\.?(\d*)", said)
    return tuple(int(number or 0) for number in numbers.groups()) if numbers else (0,)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    spaces = ["user", "pid", "ipc", "uts", "cgroup-try", *([] if wall.is_network_open else ["net"])]
    argv = [program, *(f"--unshare-{space}" for space in spaces)]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    if _version(program) >= _DISABLES_USERNS:
        argv.append("--disable-userns")
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in _outermost((*_TEMPORARY, *_OTHER_HOMES, str(wall.home), *map(str, _folders(wall.hidden)))):
        argv += ["--tmpfs", folder]
    for path in wall.hidden:
        if path.is_file():
            argv += ["--ro-bind", os.devnull, str(path)]
    argv += _binds(wall)
    if wall.proxy is not None:
        argv += ["--ro-bind", relay.__file__, f"{_INSIDE}/relay.py", "--bind", str(wall.proxy), f"{_INSIDE}/proxy"]
    argv += ["--chdir", str(wanted.cwd), "--"]
    if wall.proxy is not None:
        argv += [sys.executable, "-I", "-S", f"{_INSIDE}/relay.py", f"{_INSIDE}/proxy", str(PROXY_PORT)]
        argv += [*map(str, wall.forwards), "--"]
    return Start((*argv, *wanted.argv), Path("/"), _environment(wanted.env, wall))


def end(program: str, label: str) -> str:
    """The kernel ends all that is in a process namespace with its first process."""
    return ""


def own_folders() -> tuple[Path, ...]:
    """This Python and Ralph itself, which may be in a hidden folder: the relay, the hooks and the scripted agent."""
    places = (sys.prefix, sys.base_prefix, sys.exec_prefix, Path(ralph.__file__).parent)
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in places))


def _binds(wall: Wall) -> Iterator[str]:
    """Outer folders first, so that an inner one is bound over them; on one path, the later kind wins."""
    mounts = [Mount(wall.home_source, wall.home, is_writable=True)] if wall.home_source else []
    mounts += [Mount(path, path) for path in (*own_folders(), *wall.readable)]
    mounts += [Mount(path, path, is_writable=True) for path in wall.writable]
    mounts += wall.mounts
    mounts += [Mount(path, path) for path in wall.read_only]
    for mount in sorted(mounts, key=lambda mount: len(mount.target.parts)):
        if os.path.lexists(mount.source):
            yield from ("--bind" if mount.is_writable else "--ro-bind", str(mount.source), str(mount.target))


def _environment(env: Mapping[str, str], wall: Wall) -> dict[str, str]:
    inside = {name: value for name, value in env.items() if name not in _PROXIED or wall.is_network_open}
    inside |= {"HOME": str(wall.home)}
    if wall.proxy is not None:
        inside |= dict.fromkeys(_PROXIED, f"http://127.0.0.1:{PROXY_PORT}")
        inside |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return inside


def _folders(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.is_dir()]


def _outermost(folders: Sequence[str]) -> list[str]:
    """Without folders inside another one of the list, and without those that do not exist."""
    kept: list[str] = []
    for folder in sorted({os.path.normpath(folder) for folder in folders if Path(folder).is_dir()}):
        if not any(folder.startswith(outer.rstrip("/") + "/") for outer in kept):
            kept.append(folder)
    return kept
