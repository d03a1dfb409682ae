"""Detects whether Ralph runs in a sandbox. Ralph starts none itself, but may be started inside one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ralph.doctor.doctor import Finding, ok, warn

_MARKERS = ("/.dockerenv", "/run/.containerenv")
"""Files that docker and podman create in every container."""
_VARIABLES = ("container", "IS_SANDBOX")
"""`container` is set by podman and systemd-nspawn, `IS_SANDBOX` by users of Claude Code."""
_ADVICE = "run Ralph in a container for unattended work"


def sandbox(env: Mapping[str, str]) -> str:
    """The evidence of a sandbox; empty if there is none."""
    found = [path for path in _MARKERS if os.path.exists(path)]  # noqa: PTH110 - no Path is needed
    return next(iter([*found, *(name for name in _VARIABLES if env.get(name))]), "")


def finding(permissions: str, env: Mapping[str, str]) -> Finding:
    if where := sandbox(env):
        return ok(f"inside a container ({where})")
    if permissions == "skip":
        return warn("no sandbox, and `permissions: skip`: the agent can do everything you can", _ADVICE)
    return ok(f"none: the agent runs as you, limited by `permissions: {permissions}`")
