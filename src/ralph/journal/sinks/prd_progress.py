"""`.ralph/PRD-N/progress.md` of seed 000: one section per iteration, with SUCCESS, FAILED or TIMEOUT in its title."""

from __future__ import annotations

from ralph.core.events import IterationEnded
from ralph.core.text import one_line
from ralph.journal.sinks import wording
from ralph.journal.sinks.account import Account


def header(name: str, started: str) -> str:
    return f"# Progress: {one_line(name, 100)}\n\nStarted: {started}\n"


def entry(event: IterationEnded, at: str, account: Account) -> str:
    how = f"{event.mode.value}, attempt {account.attempt}, {wording.took(event.seconds)}"
    lines = [
        f"## {wording.RESULTS[event.kind]}: iteration {event.iteration}, {wording.story_name(event)}",
        "",
        f"- Story: {wording.story_title(event)}",
        f"- When: {at}, run {account.run_id} ({how})",
        f"- Verdict: {event.kind.value}: {wording.headline(event)}",
    ]
    lines += [f"- Check: {wording.proof(check)}" for check in account.checks]
    lines += [f"- File: {path}" for path in wording.files(event)]
    lines += [f"- Note: {notice}" for notice in wording.notices(event)]
    lines += [f"- Learned: {line}" for line in event.learned]
    if event.commit:
        lines.append(f"- Commit: {one_line(event.commit)}")
    if event.rescue:
        lines.append(f"- Rolled back; the work is kept in {one_line(event.rescue)}")
    return "\n" + "\n".join(lines) + "\n"
