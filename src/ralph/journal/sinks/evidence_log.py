"""`.ralph/progress.md` beside a spec (seed 004): the evidence for each finished step."""

from __future__ import annotations

from ralph.core.events import IterationEnded
from ralph.core.text import one_line
from ralph.journal.sinks import wording
from ralph.journal.sinks.account import Account


def header(name: str, started: str) -> str:
    return f"# Progress: {one_line(name, 100)}\n\nStarted: {started}\n"


def entry(event: IterationEnded, at: str, account: Account) -> str:
    """An attempt that did not finish its step is not evidence: only its learnings are kept."""
    learned = [f"- Learned: {line}" for line in event.learned]
    if not event.completes:
        return "\n" + "\n".join(learned) + "\n" if learned else ""
    lines = [f"## {wording.story_name(event)} {wording.story_title(event)}", ""]
    lines += [f"- {wording.proof(check)}" for check in account.checks]
    if not event.proven:
        lines.append("- no check has proven this step")
    lines += [f"- {notice}" for notice in wording.notices(event)]
    lines.append(f"- commit {one_line(event.commit)}" if event.commit else "- nothing was committed")
    lines.append(f"- {at}, run {account.run_id}, iteration {event.iteration}")
    lines += learned
    return "\n" + "\n".join(lines) + "\n"
