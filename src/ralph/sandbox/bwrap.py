"""bubblewrap: namespaces for processes, network, IPC and host name; the file system read-only; no capabilities. Linux.

The sandbox dies with the thread that started it (`--die-with-parent` is per thread), so that thread has to live as
long as the command does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ralph.sandbox import relay
from ralph.sandbox.wall import PROXY_PORT, Wall

NAME = "bwrap"
TITLE = "bubblewrap (Linux)"
_INSIDE = "/run/ralph"
_PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy")


def wrap(program: str, command: Sequence[str], wall: Wall) -> tuple[str, ...]:
    """The command line that runs `command` behind the wall. `program`: the path of bwrap."""
    spaces = ["user", "pid", "ipc", "uts", "cgroup-try", *([] if wall.is_network_open else ["net"])]
    argv = [program, *(f"--unshare-{space}" for space in spaces)]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in _without_inner(("/tmp", "/var/tmp", "/run", str(wall.home), *map(str, wall.hidden))):
        argv += ["--tmpfs", folder]
    for path in _existing(wall.readable):
        argv += ["--ro-bind", path, path]
    for path in _existing(wall.writable):
        argv += ["--bind", path, path]
    for path in _existing(wall.read_only):
        argv += ["--ro-bind", path, path]
    if wall.proxy is not None:
        argv += ["--ro-bind", relay.__file__, f"{_INSIDE}/relay.py", "--bind", str(wall.proxy), f"{_INSIDE}/proxy"]
        for path in _existing(python_folders()):
            argv += ["--ro-bind", path, path]
    argv += ["--chdir", str(wall.folder), "--"]
    if wall.proxy is not None:
        argv += [sys.executable, "-I", f"{_INSIDE}/relay.py", str(PROXY_PORT), f"{_INSIDE}/proxy"]
    return (*argv, *command)


def environment(env: Mapping[str, str], wall: Wall) -> dict[str, str]:
    """The variables of a command inside, so that its programs find the proxy."""
    inside = {name: value for name, value in env.items() if name not in _PROXIED} | {"HOME": str(wall.home)}
    if wall.proxy is not None:
        inside |= dict.fromkeys(_PROXIED, f"http://127.0.0.1:{PROXY_PORT}")
        inside |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return inside


def python_folders() -> tuple[Path, ...]:
    """Where this Python is, which may be in a hidden folder: the relay runs with it."""
    return tuple(dict.fromkeys(Path(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)))


def _existing(paths: Sequence[Path]) -> Iterator[str]:
    """Outer folders first, so that an inner one is bound over them."""
    return (str(path) for path in sorted(paths, key=lambda path: len(path.parts)) if os.path.lexists(path))


def _without_inner(folders: Sequence[str]) -> list[str]:
    """Without folders inside another one of the list, and without those that do not exist."""
    kept: list[str] = []
    for folder in sorted({os.path.normpath(folder) for folder in folders if os.path.isdir(folder)}):
        if not any(folder.startswith(outer.rstrip("/") + "/") for outer in kept):
            kept.append(folder)
    return kept
