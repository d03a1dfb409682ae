"""Podman: a container per command, without a daemon. As a normal user in a user namespace of its own. Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, run
from ralph.sandbox import container, container_image
from ralph.sandbox.wall import Found, Wall

NAME = "podman"
TITLE = "Podman"
MOUNTS = True
_SECONDS = 20.0
"""The first call of a user sets up its storage."""
_INFO = "{{.Host.ServiceIsRemote}} {{.Version.Version}} {{json .Host.CgroupControllers}}"
_CONTROLS = {"memory": "memory", "pids": "processes"}
_OLDEST = 4


def find(env: Mapping[str, str]) -> Found:
    if sys.platform != "linux":
        return Found(why_not="Podman machines do not pass the proxy's socket into containers", hint="use srt or sbx")
    program = which("podman", env.get("PATH", os.defpath))
    if not program:
        return Found(why_not="podman is not installed", hint="install the package `podman`")
    return _ask(program, env)[0]


def _ask(program: str, env: Mapping[str, str]) -> tuple[Found, str]:
    """Whether it works here, and the controllers that may limit a container."""
    try:
        asked = run((program, "info", "--format", _INFO), cwd=Path("/"), env=env, timeout=_SECONDS)
    except CannotStart as error:
        return Found(program, why_not=str(error), hint=error.hint), ""
    if asked.timed_out:
        return Found(program, why_not=f"`podman info` did not answer within {_SECONDS:.0f} s"), ""
    words = asked.out.decode("utf-8", "replace").split()
    if not asked.ok or len(words) != 3:
        lines = asked.err.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {asked.code}"
        return Found(program, why_not=f"`podman info` failed: {why}", hint="run `podman info` to see why"), ""
    is_remote, version, controllers = words
    if is_remote == "true":
        return Found(program, version, "Podman runs containers on another machine here", "unset CONTAINER_HOST"), ""
    if int(version.partition(".")[0]) < _OLDEST:
        return Found(program, version, f"Podman {version} is too old", "install Podman 4 or newer"), ""
    return Found(program, version), controllers


def prepare(program: str, image: str, report: Callable[[str], None]) -> str:
    """Pull or build the image if it is missing. Raises CannotStart."""
    return container_image.prepare_image(program, image, report)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    return container.enter(program, wanted, wall, label, _engine(program))


def end(program: str, label: str) -> str:
    return container.end(program, label)


@lru_cache
def _engine(program: str) -> container.Engine:
    """As a normal user, Podman maps the caller's numbers to themselves and gives the user a name."""
    _, controllers = _ask(program, os.environ)
    user = ("--user", f"{os.getuid()}:{os.getgid()}")
    return container.Engine(
        controls=frozenset(limit for name, limit in _CONTROLS.items() if f'"{name}"' in controllers),
        options=("--http-proxy=false", *user, *(("--userns", "keep-id") if os.getuid() else ())),
        tmpfs=",notmpcopyup",  # by default, Podman fills an empty folder with what it covers
        names_user=bool(os.getuid()),
    )
