"""`progress.txt` of seed 003, with the fields of its "Progress Tracking" section."""

from __future__ import annotations

from ralph.core.events import IterationEnded
from ralph.core.memory_text import LOOP
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.journal.sinks import wording
from ralph.journal.sinks.account import Account

_SAYS_NOTHING = "done"
"""The verdict on a story that went well: there is nothing to learn from it."""


def header(name: str, started: str) -> str:
    return f"# Progress Log: {one_line(name, 100)}\n# Started: {started}\n"


def entry(event: IterationEnded, at: str, account: Account) -> str:
    lines = [
        "---",
        f"Iteration: {event.iteration}",
        f"Date: {at}",
        f"Story: {wording.story_name(event)} - {wording.story_title(event)}",
        f"Status: {_status(event)}",
        *_listed("Files Changed", wording.files(event)),
        *_listed("Tests Added", wording.test_files(event)),
        *_listed("Learnings", _learnings(event)),
        f"Commit: {one_line(event.commit) or 'none'}",
    ]
    return "\n" + "\n".join(lines) + "\n"


def _status(event: IterationEnded) -> str:
    if event.completes:
        return "complete"
    given_up = event.story_state in (State.FAILED, State.BLOCKED)
    return "blocked" if given_up or event.kind is Kind.BLOCKED else "in-progress"


def _learnings(event: IterationEnded) -> list[str]:
    """The agent's learnings, then Ralph's remarks: the format has no other place for them."""
    found = [wording.headline(event)] if event.headline != _SAYS_NOTHING else []
    found += wording.notices(event)
    if event.rescue:
        found.append(f"the attempt was rolled back; its work is kept in {one_line(event.rescue)}")
    return [*event.learned, *(f"{LOOP}{said}" for said in found)]


def _listed(title: str, items: list[str]) -> list[str]:
    return [f"{title}:", *(f"  - {item}" for item in items)]
