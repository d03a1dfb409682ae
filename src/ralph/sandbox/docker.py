"""Docker: a container per command, on a daemon of this machine that runs as root or, rootless, as the caller. Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, run
from ralph.sandbox import container, container_image
from ralph.sandbox.wall import Found, Wall

NAME = "docker"
TITLE = "Docker"
MOUNTS = True
_SECONDS = 10.0
_INFO = "{{json .SecurityOptions}}\t{{.OperatingSystem}}\t{{.ServerVersion}}\t{{.MemoryLimit}}\t{{.PidsLimit}}"


class _Daemon(Struct, frozen=True):
    version: str = ""
    is_rootless: bool = False
    remaps_users: bool = False
    controls: frozenset[str] = frozenset()
    why_not: str = ""
    hint: str = ""


def find(env: Mapping[str, str]) -> Found:
    if sys.platform != "linux":
        return Found(why_not="Docker Desktop does not pass the proxy's socket into containers", hint="use srt or sbx")
    program = which("docker", env.get("PATH", os.defpath))
    if not program:
        return Found(why_not="docker is not installed", hint="install Docker or Podman")
    daemon = _ask(program, env)
    return Found(program, daemon.version, daemon.why_not, daemon.hint)


def prepare(program: str, image: str, report: Callable[[str], None]) -> str:
    """Pull or build the image if it is missing. Raises CannotStart."""
    return container_image.prepare_image(program, image, report)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    return container.enter(program, wanted, wall, label, _engine(program))


def end(program: str, label: str) -> str:
    return container.end(program, label)


@lru_cache
def _engine(program: str) -> container.Engine:
    """Rootless, root inside is the caller. Otherwise the numbers are the same inside and outside."""
    daemon = _ask(program, os.environ)
    user = "0:0" if daemon.is_rootless else f"{os.getuid()}:{os.getgid()}"
    options = ("--user", user, *(("--userns", "host") if daemon.remaps_users else ()))
    return container.Engine(controls=daemon.controls, options=options)


def _ask(program: str, env: Mapping[str, str]) -> _Daemon:
    address = env.get("DOCKER_HOST") or _output(program, env, "context", "inspect", "--format", _ADDRESS)
    if address and not address.startswith(("unix://", "npipe://")):
        return _Daemon(why_not=f"the Docker daemon at {address} is on another machine", hint="unset DOCKER_HOST")
    if "podman" in _output(program, env, "--version").lower():
        return _Daemon(why_not="`docker` is Podman here", hint="use podman")
    try:
        asked = run((program, "info", "--format", _INFO), cwd=Path("/"), env=env, timeout=_SECONDS)
    except CannotStart as error:
        return _Daemon(why_not=str(error), hint=error.hint)
    words = asked.out.decode("utf-8", "replace").strip().split("\t")
    if asked.timed_out:
        return _Daemon(why_not=f"the Docker daemon did not answer within {_SECONDS:.0f} s", hint="restart Docker")
    if not asked.ok or len(words) != 5 or not words[2]:
        return _Daemon(why_not=_why_no_answer(asked.err.decode("utf-8", "replace")), hint=_HINT)
    security, system, version, *limits = words
    if "Docker Desktop" in system:
        return _Daemon(version, why_not="Docker Desktop does not pass the proxy's socket into containers")
    controls = {name for name, answer in zip(("memory", "processes"), limits, strict=True) if answer == "true"}
    return _Daemon(version, "name=rootless" in security, "name=userns" in security, frozenset(controls))


_ADDRESS = "{{.Endpoints.docker.Host}}"
_HINT = "start it (sudo systemctl start docker), or install Podman, which needs no daemon"


def _why_no_answer(message: str) -> str:
    if "permission denied" in message.lower():
        return "the Docker daemon does not accept connections of this user"
    return "the Docker daemon does not run"


def _output(program: str, env: Mapping[str, str], *arguments: str) -> str:
    try:
        done = run((program, *arguments), cwd=Path("/"), env=env, timeout=_SECONDS)
    except CannotStart:
        return ""
    return done.out.decode("utf-8", "replace").strip() if done.ok else ""
