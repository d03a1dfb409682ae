"""Times, checks and verdicts as the files word them. Text from agents is cleaned and kept on one line."""

from __future__ import annotations

import re
import time

from ralph.core.events import IterationEnded
from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode
from ralph.core.text import one_line
from ralph.core.verdict import Kind

MODES = {mode: "review-fix" if mode is Mode.FIX else mode.value for mode in Mode}
"""As seed 001 names them."""

_TITLES = {Mode.EXAM: "write end-to-end tests"}

RESULTS = {
    Kind.ACCEPTED: "SUCCESS",
    Kind.PARTIAL: "PARTIAL",
    Kind.REJECTED: "FAILED",
    Kind.BLOCKED: "BLOCKED",
    Kind.LIMIT: "LIMIT",
    Kind.TRANSPORT: "FAILED",
    Kind.CRASHED: "FAILED",
    Kind.TIMED_OUT: "TIMEOUT",
    Kind.MISCONFIGURED: "FAILED",
    Kind.INTERRUPTED: "INTERRUPTED",
}
"""As seed 000 names them, with additions where it has no word."""

_TEST_FILE = re.compile(
    r"(^|/)(tests?|__tests__|specs?)/"
    r"|(^|/)test_[^/]*\.py$|(^|/)conftest\.py$"
    r"|[._-](test|spec)\.[^/.]+$|(Test|Tests|Spec)\.[^/.]+$|\.bats$"
)
_MOST_FILES = 100


def iso(t: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))


def took(seconds: float) -> str:
    whole = max(int(seconds), 0)
    return f"{whole // 60}m {whole % 60:02}s" if whole >= 60 else f"{whole}s"


def story_name(event: IterationEnded) -> str:
    return one_line(event.story, 80) or event.mode.value


def story_title(event: IterationEnded) -> str:
    return one_line(event.title, 200) or _TITLES.get(event.mode, "set up the project")


def headline(event: IterationEnded) -> str:
    return one_line(event.headline, 500)


def notices(event: IterationEnded) -> list[str]:
    return [one_line(notice, 500) for notice in event.notices]


def files(event: IterationEnded) -> list[str]:
    return [one_line(path, 300) for path in event.files[:_MOST_FILES]]


def test_files(event: IterationEnded) -> list[str]:
    return [path for path in files(event) if _TEST_FILE.search(path)]


def ending(check: CheckResult) -> str:
    """How a check ended, e.g. `exit 0` or `timed out`."""
    if check.timed_out:
        return "timed out"
    return "no exit code" if check.code is None else f"exit {check.code}"


def proof(check: CheckResult) -> str:
    """A check with its command and how it ended, e.g. `pytest -q: passed (exit 0)`."""
    allowed = "" if check.required or check.passed else ", allowed to fail"
    word = "passed" if check.passed else "failed"
    return f"{one_line(check.command, 200)}: {word} ({ending(check)}{allowed})"
