"""Tasks found in a source, before they become stories of a plan."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from ralph.core.plan import State
from ralph.core.problems import Place, Problem, Severity
from ralph.importing import wording


class Item(Struct, frozen=True, kw_only=True):
    key: str
    """Its permanent identity across imports of the same source, e.g. `github:acme/shop#12`."""
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: float = 0
    """1 is the highest; 0: not specified by the source."""
    depends_on: tuple[str, ...] = ()
    """Keys."""
    state: State = State.TODO
    why: str = ""
    """Why it is blocked."""
    notes: str = ""
    verify: tuple[str, ...] = ()
    phase: str = ""
    """The heading, milestone or epic it belongs to."""
    ref: str = ""
    line: int = 0


class Batch(Struct, frozen=True, kw_only=True):
    kind: str
    file: str
    items: tuple[Item, ...]
    name: str = ""
    """The title of the source."""
    verify: tuple[str, ...] = ()
    """Commands that verify all of it."""
    problems: tuple[Problem, ...] = ()
    """What was left out or not understood, with its place."""


def remark(code: str, message: str, file: str, line: int | None, hint: str = "", *, path: str = "") -> Problem:
    return Problem(code, message, Place(file, line or None, path=path), hint, Severity.WARNING)


def text_key(kind: str, file: str, *words: str) -> str:
    """A key for a task without an ID: by its text and its position."""
    digest = hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:10]
    return plain_key(f"{kind}:{file.rpartition('/')[2] or '-'}#{digest}")


def plain_key(text: str) -> str:
    """A key is one word, so that it can be found in a story's notes."""
    return "_".join(wording.visible(text).split())
