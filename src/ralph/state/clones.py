"""The record of a plan's clone: there while the clone has work that the user's checkout has not."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.host.git.command import ask
from ralph.state.locks import is_at_work
from ralph.state.names import CLONE
from ralph.state.places import plan_state
from ralph.state.runs import moved_to, open_run


class Clone(Struct, frozen=True, kw_only=True):
    workspace: str
    """The user's."""
    checkout: str
    """The root of the user's working tree."""
    root: str
    """The workspace in the clone."""
    tree: str
    """The root of the clone."""
    branch: str
    base: str
    """The commit from which it started."""
    target: str = ""
    """The user's branch that is advanced at the end. Empty: the clone works on the plan's own branch."""
    copied: dict[str, str] = {}
    """Ralph's own files, with paths from the root, and hashes of what was copied."""


def read_clone(plan_state: Path) -> Clone | None:
    file = plan_state / CLONE
    with contextlib.suppress(OSError, BadData, ValueError, RecursionError):
        return msgspec.convert(json.loads(read_bytes(file)), Clone) if file.exists() else None
    return None


def record_clone(plan_state: Path, clone: Clone) -> None:
    make_folder(plan_state, private=True)
    text = json.dumps(msgspec.to_builtins(clone))  # ASCII: a path may have bytes that are not UTF-8
    write_bytes(plan_state / CLONE, text.encode() + b"\n", mode=0o600)


def forget_clone(plan_state: Path) -> None:
    (plan_state / CLONE).unlink(missing_ok=True)


def current(ref: PlanRef, env: Mapping[str, str]) -> PlanRef:
    """The plan as it is now: in the clone, while that has work that the checkout has not."""
    known = read_clone(plan_state(ref, env))
    if known is None or not has_more(known, plan_state(ref, env), env):
        return ref
    there = moved_to(ref, Path(known.root))
    return there if there.path.exists() else ref


def has_more(known: Clone, state: Path, env: Mapping[str, str]) -> bool:
    """False: no run works there or was killed there, and its commits are in the checkout: the user has merged them."""
    if is_at_work(state) or open_run(Path(known.tree), env) or not Path(known.checkout).is_dir():
        return True
    merged = ask(Path(known.checkout), "merge-base", "--is-ancestor", f"refs/heads/{known.branch}", "HEAD")
    return merged.code != 0


def users_own(ref: PlanRef, env: Mapping[str, str]) -> PlanRef:
    """The plan in the user's checkout; the reverse of `current`. Settings and what is trusted belong to that place."""
    known = read_clone(plan_state(ref, env))
    return moved_to(ref, Path(known.workspace)) if known is not None and ref.root == Path(known.root) else ref
