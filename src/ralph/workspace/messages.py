"""What a person tells a run, from a command or a view: orders, notes, and answers. Texts are checked first."""

from __future__ import annotations

import time
from pathlib import Path

from ralph.core.control import Note, Order, Verb
from ralph.core.errors import UsageError
from ralph.state import inbox
from ralph.state.names import ORDERS
from ralph.workspace.control import leave
from ralph.workspace.plan_edit import prose


def give_order(state: Path, run: str, verb: Verb) -> Path:
    """The file is gone once the run has taken it."""
    return inbox.put(state / ORDERS, Order(verb=verb, run=run, at=time.time()))


def put_note(state: Path, text: str, story: str = "") -> None:
    leave(state, Note(text=note_text(text), at=time.time(), story=story))


def note_text(text: str) -> str:
    return _checked("the note", text, '`ralph note "…"`')


def answer_text(text: str) -> str:
    return _checked("the answer", text, '`ralph answer US-003 "…"`')


def _checked(what: str, text: str, example: str) -> str:
    if not (checked := prose(what, text)):
        raise UsageError(f"{what} is empty", hint=example)
    return checked
