"""Review: the findings of a story, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.plan import Mode
from ralph.core.review import Entry, Fate
from ralph.core.text import plural
from ralph.core.verdict import Kind
from ralph.tui.rows import BLANK, Row, Rows, head, row, wrapped
from ralph.tui.scene import Scene
from ralph.views.attempts import Attempt
from ralph.views.words import moment

_FATES = {
    Fate.OPEN: ("○ open", "warn"),
    Fate.FIXED: ("◑ fixed, not reviewed yet", "info"),
    Fate.CLOSED: ("✓ closed", "good"),
    Fate.REJECTED: ("– rejected", "dim"),
}


def rows(scene: Scene) -> Rows:
    return list(_rows(scene))


def _rows(scene: Scene) -> Iterator[Row]:
    story = scene.story
    if story is None:
        yield row(("no story is selected", "dim"))
        return
    entries = scene.view.findings(story.id)
    count = sum(entry.fate is Fate.OPEN for entry in entries)
    yield head(f"Findings of {story.id}", f"{count} open of {len(entries)}" if entries else "")
    for entry in sorted(entries, key=lambda each: each.fate is not Fate.OPEN):
        yield from _finding(scene, entry)
    if not entries:
        yield row(("no review has raised anything", "dim"))
    else:
        yield BLANK
        yield row(("c confirms the selected finding, d rejects it", "dim"))
    reviews = [each for each in scene.view.attempts.of(story.id) if each.mode is Mode.REVIEW and each.ended is not None]
    if reviews:
        yield BLANK
        yield head(plural(len(reviews), "review"))
    for each in reviews:
        by = f" by {each.reviewer or each.choice}" if each.reviewer or each.choice else ""
        found = f", {plural(len(each.findings), 'finding')}" if each.findings else ""
        yield row(
            (f"iteration {each.iteration}{by}: ", "dim"), f"{_answer(each)}{found}", (f"  {moment(each.since)}", "dim")
        )


def _answer(review: Attempt) -> str:
    """A reviewer that writes into the plan gives none of its own: the verdict begins with it."""
    if review.answer is not None:
        return review.answer.value.replace("_", " ")
    assert review.ended is not None
    return review.ended.headline.partition(":")[0] if review.ended.kind is Kind.ACCEPTED else review.verdict


def _finding(scene: Scene, entry: Entry) -> Iterator[Row]:
    word, style = _FATES.get(entry.fate, (str(entry.fate), ""))
    by = " by you" if entry.by_user else ""
    rank = f" [{entry.finding.severity}]" if entry.finding.severity else ""
    key = f"F{entry.id}"
    yield row((entry.id, "bold"), (f" {word}{by}", style), (f"{rank} {entry.finding.place}", "dim"), key=key)
    yield from wrapped(entry.finding.text, scene.room, lead="   ", key=key)
    for name, text in (
        ("evidence", entry.finding.evidence),
        ("criterion", entry.finding.criterion),
        ("answer", entry.reason),
    ):
        if text:
            yield from wrapped(f"{name}: {text}", scene.room, "dim", lead="   ", key=key)


def finding_of(key: str) -> str:
    """The finding that a row is about; empty: none."""
    return key[1:] if key.startswith("F") else ""
