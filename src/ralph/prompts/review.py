"""What a prompt says to a reviewer and to a fixer, and the form of their answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode, Story
from ralph.core.proof import Proof
from ralph.core.review import Entry, Fate, Ledger
from ralph.core.text import one_line, revealed
from ralph.prompts.foreign import fenced

_MOST_TAIL = 600
_MOST_TESTS = 30
_FATES = {
    Fate.OPEN: "open",
    Fate.FIXED: "reported fixed: verify it",
    Fate.REJECTED: "rejected",
    Fate.CLOSED: "closed",
}


class Matter(Struct, frozen=True):
    stat: str = ""
    diff: str = ""
    """Exactly what this story changed, without Ralph's own files."""
    ranges: tuple[str, ...] = ()
    """The same, as revisions for `git diff`."""
    is_whole: bool = True
    """False if git no longer has part of the change."""
    checks: tuple[CheckResult, ...] = ()
    doubts: tuple[str, ...] = ()
    """Only of iterations that an older version judged."""
    proof: Proof | None = None
    acceptance: tuple[str, ...] = ()
    """Tests that another session wrote from the criteria, before the implementation."""
    is_hidden: bool = False
    """The implementing session could not see them."""
    lens: str = ""
    """The focus of this reviewer, when there are several."""


def for_review(matter: Matter, ledger: Ledger) -> Iterator[str]:
    if matter.lens.strip():
        yield matter.lens.strip()
    if matter.ranges:
        listed = ", ".join(f"`git diff {each}`" for each in matter.ranges)
        stat, diff = fenced(revealed(matter.stat)), fenced(revealed(matter.diff), "diff")
        yield f"## The change\n\nAll of it: {listed}\n\n{stat}\n\n{diff}"
    if not matter.is_whole:
        yield (
            "Part of the change is missing here: its commits are no longer in the repository. "
            "`git log` may show what happened to them."
        )
    if matter.checks:
        yield "## Check results\n\n" + "\n".join(_result(check) for check in matter.checks)
    yield from _acceptance(matter)
    yield from _unproven(matter.proof)
    if matter.doubts:
        yield (
            "## Changed tests\n\nThe loop noticed this in the change. Whatever the story does not ask for is a "
            "finding.\n\n" + "\n".join(f"- {doubt}" for doubt in matter.doubts)
        )
    if ledger.entries:
        yield (
            "## Findings of earlier reviews\n\nTo raise one again, give its `id`. A rejected one also needs new "
            '`"evidence"`: an input, an output, a failing command.\n\n'
            + "\n".join(_status(entry) for entry in ledger.entries)
        )


def _acceptance(matter: Matter) -> Iterator[str]:
    if matter.acceptance:
        seen = "could not see" if matter.is_hidden else "could see, but not change"
        yield (
            "## Acceptance tests\n\nBefore the implementation, another session wrote these tests from the criteria. "
            f"They failed then and pass now. The implementing session {seen} them. Look for what they do not cover.\n\n"
            + "\n".join(f"- {test}" for test in matter.acceptance[:_MOST_TESTS])
        )


def _unproven(proof: Proof | None) -> Iterator[str]:
    """What the checks leave open, so that this review decides."""
    if proof is None:
        return
    if proof.missing:
        yield (
            "## No check is about this story\n\nThe checks also pass without this change, so your review is the only "
            "proof. Check each criterion against the code yourself, and run it. If a test could show the difference, "
            "request one.\n\n" + "\n".join(f"- {each}" for each in proof.missing)
        )
    if proof.loosened:
        yield (
            "## Changed tests\n\nThese existing files decide what the checks accept. The checks pass without these "
            "changes, too. Whatever the story does not ask for, or makes a test weaker, is a finding.\n\n"
            + "\n".join(f"- {each}" for each in proof.loosened)
        )
    if proof.needs_approval:
        listed = "\n".join(f"- {each}" for each in proof.changed_expectations)
        output = f"\n\nWith these files as they were:\n\n{fenced(proof.old_output)}" if proof.old_output else ""
        yield (
            "## Changed expectations\n\nThe checks pass only because tests, or what decides about them, changed. "
            f"Approve only if the story asks for exactly this.\n\n{listed}{output}"
        )


def for_fix(ledger: Ledger) -> Iterator[str]:
    if ledger.open:
        listed = "\n".join(f"- {one_line(str(entry))}{_confirmed(entry)}" for entry in ledger.open)
        yield f"## Findings\n\nThe review asks for:\n\n{listed}"


def _confirmed(entry: Entry) -> str:
    why = f": {one_line(entry.reason)}" if entry.reason else ""
    return f" (The user confirmed it{why}. It cannot be rejected.)" if entry.is_confirmed else ""


def how_to_review(ledger: Ledger) -> list[str]:
    known = '"id": "F1", ' if ledger.entries else ""
    return [
        '`{"review": {"verdict": "approved"}}` when every criterion is met',
        (
            f'`{{"review": {{"verdict": "changes_requested", "findings": [{{{known}"place": "file:line", "severity": '
            '"high", "criterion": "…", "text": "what is wrong and what would be right", "evidence": "how it shows"}]}}`'
            " otherwise"
        ),
    ]


def how_to_fix(ledger: Ledger) -> list[str]:
    names = [entry.id for entry in ledger.open]
    free = [entry.id for entry in ledger.open if not entry.is_confirmed]
    if not names:
        return ['`{"claim": "done"}` when every point of the review is addressed']
    fates = [f'{{"id": "{names[0]}", "fate": "fixed"}}']
    if free:
        fates.append(f'{{"id": "{free[-1]}", "fate": "rejected", "reason": "why it is not a problem"}}')
    return [f'`{{"claim": "done", "fixes": [{", ".join(fates)}]}}` with each finding once']


def _result(check: CheckResult) -> str:
    result = "passed" if check.passed else f"failed with exit code {check.code}"
    shown = "" if check.passed or not check.tail else f"\n\n{fenced(check.tail[-_MOST_TAIL:])}\n"
    allowed = "" if check.required else " (allowed to fail)"
    return f"- `{check.command}`: {result}{allowed}, {check.seconds:.1f} s{shown}"


def _status(entry: Entry) -> str:
    why = f": {entry.reason}" if entry.reason else ""
    by = ", confirmed by the user" if entry.is_confirmed else " by the user" if entry.by_user and why else ""
    return f"- {one_line(f'{entry} — {_FATES[entry.fate]}{by}{why}')}"


_TITLE = "# The verdict of your review is missing"


def verdict_prompt(prompt: str, story: Story, last_words: str, request: Path | None) -> str:
    """A reviewer that printed nothing has to review again, so it gets its whole prompt."""
    place = f"`{request}` (`$RALPH_REQUEST_FILE`)" if request else "`$RALPH_REQUEST_FILE`"
    forms = "\n".join(f"- {form}" for form in how_to_review(story.ledger))
    form = (
        f"Write one JSON object to {place}, in exactly this form:\n\n{forms}\n\n"
        "If you cannot write files, end your answer with that object, starting on a line of its own. "
        "Change no other file."
    )
    words = last_words.strip()
    if not words:
        return f"{prompt}\n\n{_TITLE}\n\nAn earlier session gave no verdict that the loop could read.\n\n{form}\n"
    quoted = "\n".join(f"> {line}" for line in words.splitlines())
    return (
        f"{_TITLE}\n\nYou reviewed story {story.id} ({story.title}) and finished with:\n\n{quoted}\n\n"
        "The loop could not read a verdict in it, so the review does not count yet. Do not review again: give the "
        f"verdict that follows from your review.\n\n{form}\n"
    )


_TEXT = {"type": "string"}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_FINDING = _object(
    {
        "id": {"type": "string", "description": "ID of a known finding, to raise it again"},
        "place": {"type": "string", "description": "file:line"},
        "severity": {"enum": ["high", "medium", "low"]},
        "criterion": {"type": "string", "description": "the acceptance criterion it concerns"},
        "text": {"type": "string", "description": "what is wrong, and what would be right"},
        "evidence": {"type": "string", "description": "an input, an output, a failing command"},
    },
    "text",
)
_REVIEW = _object(
    {
        "verdict": {"enum": ["approved", "changes_requested"]},
        "feedback": _TEXT,
        "findings": {"type": "array", "items": _FINDING},
    },
    "verdict",
)
_REPLY = _object({"id": _TEXT, "fate": {"enum": ["fixed", "rejected"]}, "reason": _TEXT}, "id", "fate")
_LEARN = {"type": "array", "items": _TEXT, "description": "facts that later sessions would have to rediscover"}
_ASK = {"type": "string", "description": "a question only the user can decide"}


def _written(schema: dict[str, Any]) -> str:
    return msgspec.json.encode(schema).decode()


@cache
def schema_for(mode: Mode) -> str:
    """The schema for this mode; none for modes whose result is the working tree."""
    match mode:
        case Mode.REVIEW:
            return _written(_object({"review": _REVIEW, "ask": _ASK, "learn": _LEARN}))
        case Mode.FIX:
            fixes = {"type": "array", "items": _REPLY}
            return _written(_object({"claim": {"enum": ["done"]}, "fixes": fixes, "ask": _ASK, "learn": _LEARN}))
        case _:
            return ""
