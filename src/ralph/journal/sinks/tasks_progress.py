"""`progress.txt` of seed 001: entries below the line that ends its curated part, each with the mode in its title."""

from __future__ import annotations

from ralph.core.events import IterationEnded
from ralph.core.text import one_line
from ralph.journal.sinks import wording
from ralph.journal.sinks.account import Account


def header(name: str, started: str) -> str:
    return (
        f"# Ralph Progress Log\nStarted: {started}\nPRD: {one_line(name, 100)}\n\n"
        "## Codebase Patterns\n- (what the next iterations should know about this code base)\n\n---\n"
    )


def entry(event: IterationEnded, at: str, account: Account) -> str:
    mode = wording.MODES[event.mode]
    lines = [
        f"## Iteration {event.iteration} ({mode}): {wording.story_name(event)}, {event.kind.value}",
        f"Date: {at}",
        f"Run: {account.run_id}",
        f"Story: {wording.story_name(event)} - {wording.story_title(event)}",
        f"Verdict: {wording.headline(event)}",
    ]
    lines += _listed("Files changed", wording.files(event))
    lines += _listed("Checks", [wording.proof(check) for check in account.checks])
    lines += _listed("Notices", wording.notices(event))
    lines += _listed("Learnings", list(event.learned))
    if event.commit:
        lines.append(f"Commit: {one_line(event.commit)}")
    if event.rescue:
        lines.append(f"Rescue: {one_line(event.rescue)}")
    return "\n" + "\n".join(lines) + "\n---\n"


def _listed(title: str, items: list[str]) -> list[str]:
    return [f"{title}:", *(f"- {item}" for item in items)] if items else []
