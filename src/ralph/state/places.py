"""Where the state folder is, and the folders of a workspace and of a plan in it. Creates nothing."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ralph.core.ports import PlanRef
from ralph.host.files import read_state
from ralph.state.names import CHECKOUT_ID, CLONES, PLANNING, PLANS, TRUST, WORKERS


def home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def user_config(env: Mapping[str, str]) -> Path:
    return home(env) / ".ralph" / "config.yaml"


def state_home(env: Mapping[str, str]) -> Path:
    if own := env.get("RALPH_STATE_HOME"):
        return Path(os.path.abspath(own))  # noqa: PTH100 - no link is resolved here
    if (xdg := env.get("XDG_STATE_HOME")) and Path(xdg).is_absolute():
        return Path(xdg) / "ralph"
    return home(env) / ".local" / "state" / "ralph"


def outer_state_home(env: Mapping[str, str]) -> Path:
    """The state folder of the user, also for a worker, whose own is in it."""
    own = state_home(env)
    return own.parents[2] if own.parent.name == WORKERS and len(own.parents) > 2 else own


def as_text(path: Path) -> str:
    """For records and messages: bytes that are not UTF-8 are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def workspace_id(root: Path) -> str:
    """Readable, and the same for every spelling of a path: folder name plus a hash of the real path."""
    real = os.path.realpath(root)
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(real).name)[:40].strip("-") or "root"
    return f"{slug}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def workspace_state(root: Path, env: Mapping[str, str]) -> Path:
    """A clone that Ralph made of a workspace has the state of that workspace."""
    owner = owner_of(root, env)
    return owner if owner is not None else state_home(env) / workspace_id(root)


def owner_of(root: Path, env: Mapping[str, str]) -> Path | None:
    """The state folder that a clone is in; None: the folder is not in a clone."""
    everything, real = os.path.realpath(state_home(env)), Path(os.path.realpath(root))
    if not real.is_relative_to(everything):
        return None
    workspace, *rest = real.relative_to(everything).parts or ("",)
    return state_home(env) / workspace if rest[:1] == [CLONES] else None


def plan_state(ref: PlanRef, env: Mapping[str, str]) -> Path:
    relative = os.path.relpath(ref.path, ref.root)
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{ref.layout}-{ref.name}")[:60].strip("-")
    name = f"{slug}-{hashlib.sha256(os.fsencode(relative)).hexdigest()[:8]}"
    return workspace_state(ref.root, env) / PLANS / name


def planning_folder(root: Path, env: Mapping[str, str]) -> Path:
    return workspace_state(root, env) / PLANNING


def trust_file(root: Path, env: Mapping[str, str]) -> Path:
    return workspace_state(root, env) / TRUST


def checkout_folder(state: Path, env: Mapping[str, str]) -> Path:
    """Where the proof checkout of a workspace is, with its home folder. The path does not tell what it is for.

    It depends on a random number in the workspace's state; without one it is derived from the path of the state.
    """
    xdg = env.get("XDG_CACHE_HOME", "")
    cache = Path(xdg) if Path(xdg).is_absolute() else home(env) / ".cache"
    try:
        seed = read_state(state / CHECKOUT_ID)
    except OSError:
        seed = os.fsencode(state)
    return cache / "checkouts" / hashlib.sha256(seed).hexdigest()[:12]
