"""What stands in the prompt of a review or a fix besides the story: the change itself, and what is known about it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ralph.core.evidence import CheckResult
from ralph.core.findings import Entry, Fate, Ledger

_MOST_TAIL = 600
_FATES = {
    Fate.OPEN: "asked for, and not dealt with yet",
    Fate.FIXED: "said to be fixed: look whether it is",
    Fate.REJECTED: "turned down",
    Fate.CLOSED: "closed",
}


class Matter(Struct, frozen=True):
    stat: str = ""
    diff: str = ""
    """Exactly what this story changed, without the loop's own files."""
    ranges: tuple[str, ...] = ()
    """The same, as git names it."""
    is_whole: bool = True
    """False: git no longer has some of it."""
    checks: tuple[CheckResult, ...] = ()
    doubts: tuple[str, ...] = ()
    lens: str = ""
    """What this one of several reviewers looks at."""


def for_review(matter: Matter, ledger: Ledger) -> Iterator[str]:
    if matter.lens.strip():
        yield matter.lens.strip()
    if matter.ranges:
        listed = ", ".join(f"`git diff {each}`" for each in matter.ranges)
        fence = "`" * max(3, _longest_fence(matter.diff) + 1)
        yield (
            f"## What this story changed\n\nAll of it, and nothing else: {listed}\n\n```\n{matter.stat}\n```\n\n"
            f"{fence}diff\n{matter.diff}\n{fence}"
        )
    if not matter.is_whole:
        yield (
            "Some of what this story changed is not shown: its commits are no longer in the repository. "
            "`git log` may show what became of them."
        )
    if matter.checks:
        yield "## What the checks said\n\n" + "\n".join(_result(check) for check in matter.checks)
    if matter.doubts:
        yield (
            "## What looks like tampering\n\nThe loop found this in the change. Say for each whether the story asks "
            "for it; if not, it is a finding.\n\n" + "\n".join(f"- {doubt}" for doubt in matter.doubts)
        )
    if ledger.entries:
        yield (
            "## What earlier reviews found\n\nName a finding by its id when you ask for it again. One that was turned "
            'down needs new `"evidence"`: an input, an output, a failing command. Without it, it stays turned down.\n\n'
            + "\n".join(_told(entry) for entry in ledger.entries)
        )


def for_fix(ledger: Ledger) -> Iterator[str]:
    if ledger.open:
        yield (
            "## Findings to answer\n\nEach of them: fix it, or turn it down and say why.\n\n"
            + "\n".join(f"- {entry}" for entry in ledger.open)
        )


def how_to_review(ledger: Ledger) -> str:
    again = ' Add `"id": "F1"` to ask for a known finding again, and `"evidence"` for what shows it.'
    return (
        '`{"review": {"verdict": "approved"}}`, or `{"review": {"verdict": "changes_requested", "findings": '
        '[{"place": "file:line", "severity": "high", "criterion": "…", "text": "what is wrong, what is right", '
        f'"evidence": "what shows it"}}]}}}}`.{again if ledger.entries else ""} Or '
    )


def how_to_fix(ledger: Ledger) -> str:
    names = [entry.id for entry in ledger.open]
    if not names:
        return '`{"claim": "done"}` when every point of the review is dealt with, '
    return (
        f'`{{"claim": "done", "fixes": [{{"id": "{names[0]}", "fate": "fixed"}}, {{"id": "{names[-1]}", "fate": '
        '"rejected", "reason": "why it is none"}]}` with each finding once, '
    )


def _result(check: CheckResult) -> str:
    said = "passed" if check.passed else f"failed with exit code {check.code}"
    shown = "" if check.passed or not check.tail else f"\n\n```\n{check.tail[-_MOST_TAIL:]}\n```\n"
    allowed = "" if check.required else " (allowed to fail)"
    return f"- `{check.command}`: {said}{allowed}, {check.seconds:.1f} s{shown}"


def _told(entry: Entry) -> str:
    why = f": {entry.reason}" if entry.reason else ""
    return f"- {entry} — {_FATES[entry.fate]}{why}"


def _longest_fence(text: str) -> int:
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    return longest
