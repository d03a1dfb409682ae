"""Warnings about a valid plan, before any money is spent, each with its place in the file. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ralph.core.areas import bad_area
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import EXAMPLE_TITLE, Plan, Story
from ralph.core.problems import Place, Problem, Severity
from ralph.core.review import NO_REVIEW
from ralph.core.text import one_line
from ralph.core.transitions import broken_invariants
from ralph.plans.json_text import Locator, Path, decode_object, key_of_list, show_path
from ralph.plans.prose import count_sentences, count_words, vague_words

_SPELLINGS = {"criteria": ("acceptanceCriteria", "acceptance_criteria", "criteria")}


class Places:
    """Places are computed on demand: most plans have no problem."""

    def __init__(self, plan: Plan, source: bytes, file: str) -> None:
        self.file = file
        self._plan = plan
        self._source = source

    def whole(self, key: str = "") -> Place:
        """The file, or a key at the top of a JSON document."""
        if not key or not self._document:
            return Place(self.file)
        if key not in self._document:
            return Place(self.file, path=key)
        return self._at((key,))

    def story(self, index: int, field: str = "", number: int | None = None) -> Place:
        """A story, one of its fields, or one entry of a field. In Markdown always the line where the story starts."""
        story = self._plan.stories[index]
        if story.line:
            return Place(self.file, story.line)
        if not self._stories:
            return Place(self.file, path=story.id)
        values = self._document[self._stories][index]
        key = next((name for name in _SPELLINGS.get(field, (field,)) if name in values), "")
        path: Path = (self._stories, index)
        if key:
            path = (*path, key) if number is None else (*path, key, number)
        return self._at(path)

    def _at(self, path: Path) -> Place:
        line, column = self._locator.position(path)
        return Place(self.file, line, column, show_path(path))

    @cached_property
    def _document(self) -> dict[str, Any]:
        return decode_object(self._source) or {}

    @cached_property
    def _stories(self) -> str:
        return key_of_list(self._document, [story.id for story in self._plan.stories])

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self._source)


MOST_CRITERIA = 8
MOST_SENTENCES = 3
MOST_WORDS = 400
"""In description and criteria. Three sentences can be as long as a book."""
_EXAMPLES = lazy_pattern(
    re.escape(EXAMPLE_TITLE)
    + r"|Replace this example (?:with|by) your first (?:story|task|step)|And this one (?:with|by) the next;"
)
"""How the titles of a new plan's example stories begin; earlier versions wrote `by`, `task` and `step`."""
_EXAMPLE_CRITERION = "One thing that can be checked, such as:"


def is_example(story: Story) -> bool:
    """An example from `ralph init` that was not replaced."""
    return _EXAMPLES.match(story.title) is not None


def unwritten(plan: Plan) -> tuple[str, str, str]:
    """Why a plan has nothing to run, as a code, a sentence and a hint; empty if it has."""
    if not plan.stories:
        return "no-stories", "the plan has no stories", "write one, or let an agent write them: `ralph plan`"
    if examples := [one_line(story.id, 60) for story in plan.stories if is_example(story) and not story.is_done]:
        verb = "is still the example" if len(examples) == 1 else "are still the examples"
        what = f"{', '.join(examples)} {verb} that `ralph init` wrote"
        return "example", what, "replace it with your own story, or let an agent write them: `ralph plan`"
    return "", "", ""


def lint(plan: Plan, places: Places, *, has_checks: bool, review_cap: int = 5) -> list[Problem]:
    """Problems in file order; `has_checks`: the settings define checks besides the plan's own."""
    if not plan.stories:
        code, message, hint = unwritten(plan)
        return [Problem(code, message, places.whole(), hint)]
    problems = list(_about_checks(plan, places, has_checks))
    if plan.reviewed:
        problems += _about_reviews(plan, places, review_cap)
    for index, story in enumerate(plan.stories):
        if not story.is_done:
            problems += _about_text(index, story, places)
            problems += _about_size(index, story, places)
            problems += _about_touches(index, story, places)
    return problems


def _about_touches(index: int, story: Story, places: Places) -> Iterator[Problem]:
    for number, path in enumerate(story.touches):
        if why := bad_area(path):
            yield Problem(
                "bad-touches",
                f"story {one_line(story.id, 60)}: touches {one_line(path, 60)!r} {why}",
                places.story(index, "touches", number),
                "name a file, a folder or a pattern of this repository, such as src/login.py, docs/ or src/*.css",
                severity=Severity.WARNING,
                story=story.id,
            )


def _about_checks(plan: Plan, places: Places, has_checks: bool) -> Iterator[Problem]:
    if has_checks or plan.verify:
        return
    unproven = [one_line(story.id, 40) for story in plan.stories if not story.verify]
    if len(unproven) == len(plan.stories):
        own = '"verifyCommands" of this plan, e.g. ["pytest -q"], or to ' if plan.reviewed else ""
        yield _warning(
            "no-checks",
            "no checks are configured, so the agent does not know what to run, and only a review can prove a story",
            places.whole("verifyCommands") if plan.reviewed else places.whole(),
            f"add the project's test command to {own}`checks:` in .ralph/config.yaml",
        )
    elif unproven:
        message = f"no check covers {', '.join(unproven[:5])}{' …' if len(unproven) > 5 else ''}"
        hint = "give them a `verify` command, or add `checks:` to .ralph/config.yaml"
        yield _warning("no-checks", message, places.whole(), hint)


def _about_reviews(plan: Plan, places: Places, review_cap: int) -> Iterator[Problem]:
    index = {story.id: number for number, story in enumerate(plan.stories)}
    for number, story in enumerate(plan.stories):
        if story.is_done and not story.notes.strip():
            message = f"story {one_line(story.id, 60)}: passes is true but notes is empty"
            where = places.story(number, "notes")
            yield _warning("missing-notes", message, where, 'describe in "notes" what was done', story)
    for violation in broken_invariants(plan, review_cap):
        name, where = f"story {violation.story}", places.story(index[violation.story], violation.field)
        story = plan.stories[index[violation.story]]
        if story.is_done and story.review == NO_REVIEW:
            hint = "redo it with a review: `ralph task reopen`"
            yield _warning("unreviewed", f"{name} was done without a review", where, hint, story)
        elif violation.field == "reviewCount" and story.review.count > review_cap:  # the cap was higher before
            message = f"{name} has had {story.review.count} reviews, more than review.cap"
            yield _warning("many-reviews", message, where, "decide whether the story can be completed at all", story)
        else:
            message = f"{name}: {violation.field} is {violation.new}, but {violation.message}"
            yield Problem("review-fields", message, where, story=violation.story)


def _about_text(index: int, story: Story, places: Places) -> Iterator[Problem]:
    name = f"story {one_line(story.id, 60)}"
    if is_example(story):
        message = f"{name} is still the example that `ralph init` wrote"
        hint = "replace it with your own story, or let an agent write them: `ralph plan`"
        yield Problem("example", message, places.story(index, "title"), hint, story=story.id)
        return
    if not story.title.strip():
        where = places.story(index, "title")
        yield _warning("no-title", f"{name} has no title", where, "describe the result in a few words", story)
    if not story.criteria and not story.ref and not story.is_review_step:
        hint = "add what can be checked, e.g. 'GET /health answers 200 with {\"ok\": true}'"
        where = places.story(index, "criteria")
        yield _warning("no-criteria", f"{name} has no acceptance criteria", where, hint, story)
    for number, criterion in enumerate(story.criteria):
        if criterion.startswith(_EXAMPLE_CRITERION):
            message = f"{name} still has the example criterion that `ralph init` wrote"
            where = places.story(index, "criteria", number)
            yield _warning("example-criterion", message, where, "write a criterion that can be checked", story)
        if vague := vague_words(criterion):
            message = f"{name}: {one_line(criterion, 80)!r} cannot be checked ({vague!r})"
            hint = "describe the visible result, e.g. 'the filter has the options All, Active, Done'"
            yield _warning("vague-criterion", message, places.story(index, "criteria", number), hint, story)


def _about_size(index: int, story: Story, places: Places) -> Iterator[Problem]:
    name = f"story {one_line(story.id, 60)}"
    hint = f"split it: `ralph task split {shlex.quote(one_line(story.id, 60))} 'first part' 'second part'`"
    if (count := len(story.criteria)) > MOST_CRITERIA:
        where = places.story(index, "criteria")
        yield _warning("too-large", f"{name} has {count} criteria, more than {MOST_CRITERIA}", where, hint, story)
    if (count := count_sentences(story.description)) > MOST_SENTENCES:
        message = f"{name} needs {count} sentences, more than {MOST_SENTENCES}"
        yield _warning("too-large", message, places.story(index, "description"), hint, story)
    elif (count := count_words("\n".join((story.description, *story.criteria)))) > MOST_WORDS:
        message = f"{name} needs {count} words with its criteria, more than {MOST_WORDS}"
        yield _warning("too-large", message, places.story(index, "description"), hint, story)


def _warning(code: str, message: str, where: Place, hint: str, story: Story | None = None) -> Problem:
    return Problem(code, message, where, hint, Severity.WARNING, story.id if story else "")
