"""Progress logs and learnings: a header, then an entry for each final iteration in the format of the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.events import IterationEnded, Record, RunStarted
from ralph.core.learning import LOOP, Learning, in_log, in_notes, learned, news, written
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.journal.sinks.sink import (
    Account,
    Sink,
    changed_files,
    changed_tests,
    headline,
    iso,
    mode_name,
    notices,
    proof,
    story_name,
    story_title,
    took,
)
from ralph.journal.sinks.workspace_files import WorkspaceFiles

HEADER = "# Learnings\n\n"
_SAYS_NOTHING = "done"
"""The verdict on a story that went well: there is nothing to learn from it."""
_RESULTS = {
    Kind.ACCEPTED: "SUCCESS",
    Kind.PARTIAL: "PARTIAL",
    Kind.BLOCKED: "BLOCKED",
    Kind.LIMIT: "LIMIT",
    Kind.TIMED_OUT: "TIMEOUT",
    Kind.INTERRUPTED: "INTERRUPTED",
    Kind.RETURNED: "RETURNED",
}
"""As seed 000 names them, with additions where it has no word. All others are FAILED."""


class Format(Struct, frozen=True):
    header: Callable[[str, str], str]
    """The plan's name and the time of the first run → the start of the file."""
    entry: Callable[[IterationEnded, str, Account], str]
    """The iteration, its time and the account → text that starts with an empty line, or nothing.

    Its learnings are complete lines already.
    """


class Progress(Sink):
    def __init__(self, files: WorkspaceFiles, path: Path, name: str, format: Format) -> None:
        super().__init__(files, path)
        self._name = name
        self._format = format

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if isinstance(event, RunStarted):
            self._add("", account)
        elif isinstance(event, IterationEnded):
            if event.learned:
                new = news(_learned_in(event, record.t), in_log(self.files.read(self.path)))
                event = msgspec.structs.replace(event, learned=tuple(map(written, new)))
            if entry := self._format.entry(event, iso(record.t), account):
                self._add(entry, account)

    def _add(self, entry: str, account: Account) -> None:
        self.files.append(self.path, entry, header=self._format.header(self._name, iso(account.run.started_at)))


class Learnings(Sink):
    """`learnings.md`: one line per learning, without duplicates."""

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or not event.learned:
            return
        if new := news(_learned_in(event, record.t), in_notes(self.files.read(self.path))):
            self.files.append(self.path, listed(new), header=HEADER)


def listed(learnings: Sequence[Learning]) -> str:
    return "".join(f"- {written(learning)}\n" for learning in learnings)


def _learned_in(event: IterationEnded, at: float) -> list[Learning]:
    """Learnings from an attempt that was not accepted are marked permanently."""
    kept = event.kind.keeps_work
    return [learned(text, day=iso(at), story=event.story, commit=event.commit, accepted=kept) for text in event.learned]


def _markdown_header(name: str, started: str) -> str:
    return f"# Progress: {one_line(name, 100)}\n\nStarted: {started}\n"


def _sections(event: IterationEnded, at: str, account: Account) -> str:
    how = f"{event.mode.value}, attempt {account.attempt}, {took(event.seconds)}"
    lines = [
        f"## {_RESULTS.get(event.kind, 'FAILED')}: iteration {event.iteration}, {story_name(event)}",
        "",
        f"- Story: {story_title(event)}",
        f"- When: {at}, run {account.run_id} ({how})",
        f"- Verdict: {event.kind.value}: {headline(event)}",
    ]
    lines += [f"- Check: {proof(check)}" for check in account.checks]
    lines += [f"- File: {path}" for path in changed_files(event)]
    lines += [f"- Note: {notice}" for notice in notices(event)]
    lines += [f"- Learned: {line}" for line in event.learned]
    if event.commit:
        lines.append(f"- Commit: {one_line(event.commit)}")
    if event.rescue:
        lines.append(f"- Rolled back; the work is kept in {one_line(event.rescue)}")
    return "\n" + "\n".join(lines) + "\n"


def _tasks_header(name: str, started: str) -> str:
    return (
        f"# Ralph Progress Log\nStarted: {started}\nPRD: {one_line(name, 100)}\n\n"
        "## Codebase Patterns\n- (what the next iterations should know about this code base)\n\n---\n"
    )


def _tasks_entry(event: IterationEnded, at: str, account: Account) -> str:
    lines = [
        f"## Iteration {event.iteration} ({mode_name(event.mode)}): {story_name(event)}, {event.kind.value}",
        f"Date: {at}",
        f"Run: {account.run_id}",
        f"Story: {story_name(event)} - {story_title(event)}",
        f"Verdict: {headline(event)}",
    ]
    for title, items in (
        ("Files changed", changed_files(event)),
        ("Checks", [proof(check) for check in account.checks]),
        ("Notices", notices(event)),
        ("Learnings", event.learned),
    ):
        lines += [f"{title}:", *(f"- {item}" for item in items)] if items else []
    if event.commit:
        lines.append(f"Commit: {one_line(event.commit)}")
    if event.rescue:
        lines.append(f"Rescue: {one_line(event.rescue)}")
    return "\n" + "\n".join(lines) + "\n---\n"


def _feature_header(name: str, started: str) -> str:
    return f"# Progress Log: {one_line(name, 100)}\n# Started: {started}\n"


def _feature_entry(event: IterationEnded, at: str, account: Account) -> str:
    lines = [
        "---",
        f"Iteration: {event.iteration}",
        f"Date: {at}",
        f"Story: {story_name(event)} - {story_title(event)}",
        f"Status: {_feature_status(event)}",
    ]
    for title, items in (
        ("Files Changed", changed_files(event)),
        ("Tests Added", changed_tests(event)),
        ("Learnings", _feature_learnings(event)),
    ):
        lines += [f"{title}:", *(f"  - {item}" for item in items)]
    return "\n" + "\n".join((*lines, f"Commit: {one_line(event.commit) or 'none'}")) + "\n"


def _feature_status(event: IterationEnded) -> str:
    if event.completes:
        return "complete"
    given_up = event.story_state in (State.FAILED, State.BLOCKED)
    return "blocked" if given_up or event.kind is Kind.BLOCKED else "in-progress"


def _feature_learnings(event: IterationEnded) -> list[str]:
    """The agent's learnings, then Ralph's remarks: the format has no other place for them."""
    remarks = [headline(event)] if event.headline != _SAYS_NOTHING else []
    remarks += notices(event)
    if event.rescue:
        remarks.append(f"the attempt was rolled back; its work is kept in {one_line(event.rescue)}")
    return [*event.learned, *(f"{LOOP}{remark}" for remark in remarks)]


def _evidence(event: IterationEnded, at: str, account: Account) -> str:
    """An attempt that did not finish its step is not evidence: only its learnings are kept."""
    learnings = [f"- Learned: {line}" for line in event.learned]
    if not event.completes:
        return "\n" + "\n".join(learnings) + "\n" if learnings else ""
    lines = [f"## {story_name(event)} {story_title(event)}", ""]
    lines += [f"- {proof(check)}" for check in account.checks]
    if not event.proven:
        lines.append("- no check has proven this step")
    lines += [f"- {notice}" for notice in notices(event)]
    lines.append(f"- commit {one_line(event.commit)}" if event.commit else "- nothing was committed")
    lines.append(f"- {at}, run {account.run_id}, iteration {event.iteration}")
    return "\n" + "\n".join((*lines, *learnings)) + "\n"


SECTIONS = Format(_markdown_header, _sections)
"""`.ralph/PRD-N/progress.md` of seed 000: one section per iteration, with SUCCESS, FAILED or TIMEOUT in its title.

Also the format of third-party layouts.
"""
TASKS = Format(_tasks_header, _tasks_entry)
"""`progress.txt` of seed 001: entries below the line that ends its curated part, each with the mode in its title."""
FEATURE = Format(_feature_header, _feature_entry)
"""`progress.txt` of seed 003, with the fields of its "Progress Tracking" section."""
EVIDENCE = Format(_markdown_header, _evidence)
"""`.ralph/progress.md` beside a spec (seed 004): the evidence for each finished step."""
