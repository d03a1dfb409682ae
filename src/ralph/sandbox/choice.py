"""Which sandbox is used: the one that was asked for, or the strongest that works here. `trial` says what works."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.sandbox.wall import Backend, Found

BACKENDS = ("bwrap", "srt", "podman", "docker", "sbx")
_AUTO = ("bwrap", "srt")
"""Strongest first. sbx is used only by name: it changes how files reach the agent."""
_WITH_IMAGE = ("bwrap", "podman", "docker", "srt")
"""A container has only the tools of its image, so that is used where the user has named one."""


class Chosen(Struct, frozen=True):
    """A backend that works here, or why there is none."""

    backend: Backend | None = None
    program: str = ""
    version: str = ""
    why_not: str = ""
    """Empty with a backend, and where none was asked for."""
    hint: str = ""

    @property
    def parts(self) -> tuple[str, str, str]:
        """Name, program and version, for another process on this machine."""
        name = self.backend.__name__.rpartition(".")[2] if self.backend else ""  # type: ignore[attr-defined]
        return name, self.program, self.version

    @property
    def title(self) -> str:
        return f"{self.backend.TITLE} {self.version}".strip() if self.backend else ""


def backend_of(name: str) -> Backend:
    return cast(Backend, import_module(f"ralph.sandbox.{name}"))


def chosen_before(name: str, program: str, version: str) -> Chosen:
    """From `parts`, without another trial."""
    return Chosen(backend_of(name) if name else None, program, version)


def choose(use: str, env: Mapping[str, str], *, image: str = "") -> Chosen:
    """Raises SetupError if a sandbox is required and none works."""
    if use == "none":
        return Chosen()
    names = [use] if use in BACKENDS else [*(_WITH_IMAGE if image else _AUTO)]
    tried = []
    for name in names:
        tried.append(try_backend(name, env, image))
        if not tried[-1].why_not:
            return tried[-1]
    first = tried[0]
    if use == "auto":
        return first
    raise SetupError(f"no sandbox: {first.why_not}", hint=first.hint or "`ralph sandbox status` shows each kind")


def try_backend(name: str, env: Mapping[str, str], image: str = "") -> Chosen:
    """Look whether it is installed, then start one and try to get out of it."""
    from ralph.sandbox.trial import prove  # much to import, once in a run

    backend = backend_of(name)
    found = backend.find(env)
    if found.why_not:
        return _not(backend, found)
    proven = prove(backend, found, image=image)
    if proven.why_not:
        return _not(backend, proven)
    return Chosen(backend, found.program, found.version)


def _not(backend: Backend, found: Found) -> Chosen:
    return Chosen(None, found.program, found.version, found.why_not, found.hint)
