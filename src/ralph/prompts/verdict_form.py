"""The follow-up prompt for a reviewer that gave no readable verdict: the exact form, once, in a second short
session.
"""

from __future__ import annotations

from pathlib import Path

from ralph.core.plan import Story
from ralph.prompts.review_matter import how_to_review

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
