"""Adapt a plan so that another layout can represent it. `losses` reports what changed."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ralph.core.plan import Order, Plan, Review, ReviewStatus, State, Story
from ralph.core.ports import Layout
from ralph.core.text import one_line
from ralph.plans.registry import traits

_DIGITS = re.compile(r"([0-9]+)\Z")


DONE_BEFORE = "Done before this plan was written; not proven by it."


def fit(plan: Plan, form: Layout, sample: Plan) -> tuple[Plan, dict[str, str]]:
    """The plan for another layout, and a map of old to new story IDs in the new order. `sample`: a new plan of it."""
    stories = list(plan.stories)
    if sample.order is Order.FILE and plan.order is Order.PRIORITY:
        stories.sort(key=lambda story: story.priority)
    ids = _new_ids(stories, getattr(form, "ID", None))
    fitted = [_fit_story(story, ids, plan, form, reviewed=sample.reviewed) for story in stories]
    return msgspec.structs.replace(plan, stories=tuple(fitted), order=sample.order, reviewed=sample.reviewed), ids


def _new_ids(stories: list[Story], valid: re.Pattern[str] | None) -> dict[str, str]:
    """A valid ID stays. Others get a valid one, with their own number if that is free."""
    if valid is None:
        return {story.id: story.id for story in stories}
    taken = {story.id for story in stories if valid.fullmatch(story.id)}
    is_step = not valid.fullmatch("US-001")
    ids: dict[str, str] = {}
    number = 0
    for story in stories:
        if valid.fullmatch(story.id):
            ids[story.id] = story.id
            continue
        own = _DIGITS.search(story.id)
        candidate = _numbered(int(own[1]), is_step) if own and len(own[1]) < 7 and int(own[1]) else ""
        while not candidate or candidate in taken:
            number += 1
            candidate = _numbered(number, is_step)
        taken.add(candidate)
        ids[story.id] = candidate
    return ids


def _numbered(number: int, is_step: bool) -> str:
    return f"1.{number}" if is_step else f"US-{number:03}"


def _fit_story(story: Story, ids: dict[str, str], plan: Plan, form: Layout, *, reviewed: bool) -> Story:
    notes, review, criteria = story.notes, story.review, story.criteria
    if traits(form.NAME).needs_criteria:
        criteria = tuple(text for text in criteria if text.strip()) or (story.title.strip() or story.id,)
    if reviewed and story.is_done:
        notes = notes if notes.strip() else DONE_BEFORE
        if review.status is not ReviewStatus.APPROVED:
            review = Review(ReviewStatus.APPROVED, review.count, review.feedback)
    # Markdown has no place for commands that verify every story.
    verify = tuple(dict.fromkeys((*plan.verify, *story.verify))) if hasattr(form, "write") else story.verify
    return msgspec.structs.replace(
        story,
        id=ids[story.id],
        criteria=criteria,
        depends_on=tuple(ids[d] for d in story.depends_on),
        state=story.state if story.state in form.STATES else State.TODO,
        notes=notes,
        review=review,
        verify=verify,
        line=0,
    )


def say_plainly(story: Story, read_back: Callable[[Story], Story | None]) -> Story:
    """The story with texts that Markdown can represent, as close to the original as possible.

    `read_back` writes a story and parses it again; None if the result is not a valid plan.
    """
    alone = msgspec.structs.replace(story, depends_on=())
    if _says_the_same(alone, read_back(alone)):
        return story
    bare = Story(id=story.id, title="", state=story.state, ref=story.ref, priority=story.priority)
    for field, tries in _tries(alone).items():
        for value in tries:
            candidate = msgspec.structs.replace(bare, **{field: value})
            if _says_the_same(candidate, read_back(candidate)):
                bare = candidate
                break
    said = {name: getattr(bare, name) for name in _TEXTS}
    return msgspec.structs.replace(story, **said)


_TEXTS = ("title", "description", "criteria", "verify", "notes")


def _says_the_same(meant: Story, read: Story | None) -> bool:
    return read is not None and all(getattr(meant, name) == getattr(read, name) for name in ("id", *_TEXTS))


def _tries(story: Story) -> dict[str, list[object]]:
    """For each text, the ways to write it, most faithful first."""
    prose = {name: getattr(story, name) for name in ("description", "notes")}
    criteria = [one_line(text) for text in story.criteria]
    commands = tuple(text for text in story.verify if "\n" not in text and "\r" not in text)
    return {
        "title": [story.title, one_line(story.title), _words(story.title)],
        "description": _ways(prose["description"]),
        "criteria": [
            story.criteria,
            tuple(text for text in criteria if text),
            tuple(words for text in criteria if (words := _words(text))),
        ],
        "verify": [story.verify, commands, tuple(command.strip() for command in commands if command.strip())],
        "notes": _ways(prose["notes"]),
    }


def _ways(text: str) -> list[object]:
    lines = [one_line(line) for line in text.splitlines()]
    tidy = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return [text, tidy, tidy.replace("\n\n", "\n"), one_line(text), _words(text), f"Text: {_words(text)}"]


def _words(text: str) -> str:
    """Without anything that Markdown could interpret as markup."""
    return " ".join(re.sub(r"[*_`#\[\]<>|\\~]+", " ", one_line(text)).split()).lstrip("-+=. ")
