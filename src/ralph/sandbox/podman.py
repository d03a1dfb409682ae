"""Podman: a container per command, without a daemon. As a normal user in a user namespace of its own. Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, hard_limit, run
from ralph.sandbox import container, container_image
from ralph.sandbox.wall import Found, Wall

NAME = "podman"
TITLE = "Podman"
MOUNTS = True
_SECONDS = 20.0
"""The first call of a user sets up its storage."""
_INFO = "{{.Host.Security.Rootless}} {{.Host.ServiceIsRemote}} {{.Version.Version}}"
_OLDEST = 4
_PROCESSES = 32_768
"""Podman 4.3 sets its own limit to the smallest number that kernels use for the largest process ID. Its default for
containers is more, which only root with all capabilities may set."""


def find(env: Mapping[str, str]) -> Found:
    if sys.platform != "linux":
        return Found(why_not="Podman machines do not pass the proxy's socket into containers", hint="use srt or sbx")
    program = which("podman", env.get("PATH", os.defpath))
    if not program:
        return Found(why_not="podman is not installed", hint="install the package `podman`")
    try:
        asked = run((program, "info", "--format", _INFO), cwd=Path("/"), env=env, timeout=_SECONDS)
    except CannotStart as error:
        return Found(program, why_not=str(error), hint=error.hint)
    if asked.timed_out:
        return Found(program, why_not=f"`podman info` did not answer within {_SECONDS:.0f} s")
    words = asked.out.decode("utf-8", "replace").split()
    if not asked.ok or len(words) != 3:
        lines = asked.err.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {asked.code}"
        return Found(program, why_not=f"`podman info` failed: {why}", hint="run `podman info` to see why")
    _, is_remote, version = words
    if is_remote == "true":
        return Found(program, version, "Podman runs containers on another machine here", "unset CONTAINER_HOST")
    if int(version.partition(".")[0]) < _OLDEST:
        return Found(program, version, f"Podman {version} is too old", "install Podman 4 or newer")
    return Found(program, version)


def prepare(program: str, image: str, report: Callable[[str], None]) -> str:
    """Pull or build the image if it is missing. Raises CannotStart."""
    return container_image.prepare_image(program, image, report)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    return container.enter(program, wanted, wall, label, _engine())


def end(program: str, label: str) -> str:
    return container.end(program, label)


@lru_cache
def _engine() -> container.Engine:
    """As a normal user, Podman maps the caller's numbers to themselves and gives the user a name."""
    processes = min(hard_limit("nproc") or _PROCESSES, _PROCESSES)
    options = ["--user", f"{os.getuid()}:{os.getgid()}", "--http-proxy=false"]
    options += ["--ulimit", f"nproc={processes}:{processes}"]
    if os.getuid():
        options += ["--userns", "keep-id"]
    # Podman fills an empty folder with what it covers, unless told otherwise.
    return container.Engine(options=tuple(options), tmpfs=",notmpcopyup", names_user=bool(os.getuid()))
