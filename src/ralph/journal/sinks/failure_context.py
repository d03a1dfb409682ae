"""`.ralph/failure-context.log` of seed 000: the last lines of each failing check, and of tests that rolled back an
iteration.

Rotated, so it stays small.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ralph.core.events import HookAnswered, IterationEnded, IterationStarted, Proved, Record
from ralph.core.evidence import CheckResult
from ralph.core.text import clean, one_line
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import ending, iso, story_name

LIMIT = 100 * 1024
_LINES = 100
_LONGEST_LINE = 500


class FailureContext(Sink):
    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path
        self._undone: list[CheckResult] = []
        """Tests that failed during the session, with `rollback: immediate`."""

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case IterationStarted():
                self._undone.clear()
            case HookAnswered(hook="rollback", subject=command, output=output):
                self._undone.append(CheckResult(name="tests", command=command, passed=False, tail=output))
            case IterationEnded() as event:
                self._add(
                    [*account.checks, *self._undone],
                    f"{iso(record.t)} {story_name(event)}, iteration {event.iteration}",
                )
            case Proved(results=results):
                self._add(results, f"{iso(record.t)} final checks")

    def _add(self, checks: Iterable[CheckResult], when: str) -> None:
        for check in checks:
            if not check.passed:
                self._door.append(self._path, context(check, when), limit=LIMIT)


def context(check: CheckResult, when: str) -> str:
    """A header and the last lines, indented so that output cannot imitate a header."""
    lines = [line[:_LONGEST_LINE] for line in clean(check.tail).splitlines()[-_LINES:]]
    while lines and sum(len(line.encode("utf-8", "replace")) + 5 for line in lines) > LIMIT // 2:
        lines = lines[len(lines) // 4 + 1 :]
    head = f"=== {when}: {one_line(check.name, 200)} failed ({ending(check)})\n"
    command = f"    $ {one_line(check.command, 500)}\n"
    return head + command + "".join(f"    {line}\n" for line in lines) + "\n"
