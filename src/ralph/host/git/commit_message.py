"""The messages of the loop's commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ralph.core.plan import Mode
from ralph.core.text import clean, one_line
from ralph.host.redaction import redact

_WIDTH = 72


def subject(story_id: str, title: str, mode: Mode, outcome: str = "") -> str:
    """`feat(US-001): title`, `test(US-001): title`, `review(US-001): approved`, `fix(US-001): …`, `chore(US-001): …`.

    At most 72 wide.
    """
    story = one_line(story_id, 30)
    match mode:
        case Mode.REVIEW:
            return one_line(f"review({story}): {outcome or title}", _WIDTH)
        case Mode.FIX:
            return one_line(f"fix({story}): {outcome or 'address review feedback'}", _WIDTH)
        case Mode.SETUP:
            return one_line(f"chore({story}): {title}" if story else f"chore: {title}", _WIDTH)
        case Mode.ACCEPTANCE | Mode.EXAM:
            return one_line(f"test({story}): {title}" if story else f"test: {title}", _WIDTH)
        case Mode.IMPLEMENT:
            return one_line(f"feat({story}): {title}", _WIDTH)


def message(subject_line: str, trailers: Mapping[str, str | Sequence[str]], body: str = "") -> str:
    """Subject, body and trailers such as `Ralph-Story`, each where git expects it, without secrets."""
    listed = [(name, [value] if isinstance(value, str) else value) for name, value in trailers.items()]
    ends = [f"{name}: {line}" for name, values in listed for value in values if (line := one_line(value))]
    parts = [one_line(subject_line, _WIDTH), clean(body).strip(), "\n".join(ends)]
    return redact("\n\n".join(part for part in parts if part)) + "\n"
