"""Whether a sandbox holds here: starts one, tries a few escapes in it, and says why it does not. Takes under 100 ms.

`escapes` tries all of them. Nothing is remembered: the administrator may change the machine at any time. A container is
tried only once its image is there, which may take minutes; a microVM is not.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import structs

from ralph.core.text import one_line
from ralph.host.process.start import CannotStart, Finished, run
from ralph.sandbox.scene import namespaces
from ralph.sandbox.wall import Backend, Found, Quota, Wall, Walled

_PAUSE = 0.2
_SECONDS = 60.0
_CONTAINERS = ("docker", "podman")
_NOT_TRIED = ("sbx",)
_PROGRAM = """
import json, os, socket, sys
outside, secret, port = sys.argv[1:4]
spaces = json.loads(sys.argv[4])
escapes = []
def attempt(what, function):
    try:
        if function():
            escapes.append(what)
    except (OSError, ValueError):
        pass
def write():
    with open(outside, "w") as file:
        file.write("escaped")
def shares(kind):
    return os.readlink("/proc/self/ns/" + kind) == spaces[kind]
def privileges():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines["NoNewPrivs"]) != 1 or (int(lines["CapEff"], 16) and shares("user"))
attempt("", write)
attempt("a secret in the home folder was read", lambda: open(secret).read())
attempt(sys.argv[5], lambda: socket.create_connection(("127.0.0.1", int(port)), 1))
attempt("processes of this machine can be seen", lambda: shares("pid"))
attempt("there is a way to more privileges", privileges)
print(json.dumps(escapes))
"""
_REACHED = "a service on this machine was reached"
_NO_NAMESPACE = ("namespace", "uid map", "No permissions", "Operation not permitted", "Permission denied")

Read = Callable[[str], str]


def prove(backend: Backend, found: Found, *, image: str = "") -> Found:
    """The same, with `why_not` if the sandbox cannot be started or something got out of it."""
    is_container = backend.NAME in _CONTAINERS
    if found.why_not or backend.NAME in _NOT_TRIED or (is_container and not image):
        return found
    with tempfile.TemporaryDirectory(prefix="ralph-trial-") as name, socket.create_server(("127.0.0.1", 0)) as server:
        base = Path(os.path.realpath(name))
        home, work, outside = base / "home", base / "work", base / "home" / "outside"
        for folder in (home, work, base / "inner"):
            folder.mkdir()
        (home / "secret").write_text(secrets.token_hex(8))
        quota = Quota(processes=1000)
        wall = Wall(home=home, home_source=base / "inner", writable=(work,), quota=quota, image=image)
        known = (str(outside), str(home / "secret"), str(server.getsockname()[1]), json.dumps(namespaces()), _REACHED)
        argv = ("python3" if is_container else sys.executable, "-I", "-S", "-c", _PROGRAM, *known)
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
        try:
            done = run(argv, cwd=work, env=env, timeout=_SECONDS, enclosure=Walled(backend, found.program, wall))
            if not done.ok and not done.out:  # a mount of another process may have gone in this instant
                time.sleep(_PAUSE)
                done = run(argv, cwd=work, env=env, timeout=_SECONDS, enclosure=Walled(backend, found.program, wall))
        except CannotStart as error:
            return _refused(found, str(error), error.hint)
        server.setblocking(False)
        try:
            escapes = list(json.loads(done.out))
        except ValueError:
            return _refused(found, *why_not_started(backend.TITLE, done, _system))
        if _has_client(server) and _REACHED not in escapes:  # what happened outside counts, whatever is said inside
            escapes.append(_REACHED)
        if outside.exists():
            escapes.insert(0, "a file outside was written")
    reason = f"{backend.TITLE} does not hold here: {'; '.join(escapes)}" if escapes else ""
    return _refused(found, reason, "`ralph sandbox test` tries all escapes") if escapes else found


def why_not_started(title: str, done: Finished, read: Read) -> tuple[str, str]:
    """Why no sandbox could be started, and what the administrator can do. `read` reads a file of the system."""
    if done.timed_out:
        return f"{title} did not start within {_SECONDS:.0f} seconds", ""
    message = one_line(done.err.decode(errors="replace"), 200) or f"exit code {done.code}"
    obstacles = _obstacles(read) if any(part in message for part in _NO_NAMESPACE) else {}
    for reason, hint in obstacles.items():
        return f"{title} cannot start: {reason}", hint
    return f"{title} cannot start: {message}", ""


def _refused(found: Found, reason: str, hint: str) -> Found:
    return structs.replace(found, why_not=reason, hint=hint)


def _obstacles(read: Read) -> Mapping[str, str]:
    obstacles: dict[str, str] = {}
    if read("/proc/sys/user/max_user_namespaces") == "0":
        obstacles["user namespaces are disabled (user.max_user_namespaces is 0)"] = (
            "an administrator can allow them with `sysctl -w user.max_user_namespaces=10000`"
        )
    if read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        obstacles["only root may create user namespaces (kernel.unprivileged_userns_clone is 0)"] = (
            "an administrator can allow them with `sysctl -w kernel.unprivileged_userns_clone=1`"
        )
    if read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        obstacles["AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)"] = (
            "an administrator can allow them for bwrap with a profile in /etc/apparmor.d that has the rule `userns,`, "
            "or for all programs with `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if read("/.dockerenv") or read("/run/.containerenv"):
        obstacles["this is a container that may not create namespaces"] = (
            "start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined"
        )
    if int((read("/proc/self/status").partition("\nSeccomp:")[2].split() or ["0"])[0]) == 2:
        obstacles["this process is in a sandbox that forbids new namespaces"] = "start Ralph outside of it"
    return obstacles


def _system(path: str) -> str:
    """The text of a file; a mark if it is there and empty."""
    try:
        return Path(path).read_text().strip() or "(empty)"
    except OSError:
        return ""


def _has_client(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except OSError:
        return False
    return True
