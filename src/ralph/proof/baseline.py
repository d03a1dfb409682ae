"""Whether a run may start on a tree whose checks do not pass. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason, Stop
from ralph.core.plan import Story
from ralph.core.text import one_line
from ralph.proof.check_trouble import NotRunnable, finds_no_tests, why_not_runnable


def why_not_start(
    results: Iterable[CheckResult], story: Story | None, *, strict: bool, worktree: Path | None = None
) -> Stop | None:
    """Why no agent should be started for `story`, the next one; None: it may start.

    A check that is the story's own is what the story has to make pass. A suite without tests fails until a story
    writes the first test.
    """
    own = story.verify if story else ()
    failing = [r for r in results if r.required and not r.passed and r.command not in own]
    broken = [
        f"{_name(result)} cannot run: {_explained(trouble, worktree)}"
        for result in failing
        if (trouble := why_not_runnable(result.command, result.code, result.tail))
    ]
    if broken:
        return Stop(Reason.BROKEN_CHECK, "; ".join(broken))
    red = [_name(result) for result in failing if not finds_no_tests(result.code, result.tail)]
    if red and strict:
        return Stop(Reason.RED_BASELINE, f"{', '.join(red)} {'fails' if len(red) == 1 else 'fail'} before any work")
    return None


def _explained(trouble: NotRunnable, worktree: Path | None) -> str:
    """In a worktree, what is missing may well be installed in the project: git puts only tracked files there."""
    if worktree is None or not trouble.reason.endswith(("does not exist", "is not installed")):
        return f"{trouble.reason}; {trouble.fix}"
    return f"{trouble.reason} in the worktree {worktree}; a worktree has no ignored files, so install them there"


def _name(result: CheckResult) -> str:
    name, command = one_line(result.name, 60), one_line(result.command, 80)
    return name if name in command else f"{name} (`{command}`)"
