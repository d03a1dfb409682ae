"""What is unwise in a plan that can be read: said before any money is spent. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ralph.core.plan import Plan, Story
from ralph.core.problems import Place, Problem, Severity
from ralph.core.transitions import broken_invariants

MOST_CRITERIA = 8
MOST_SENTENCES = 3
_VAGUE = re.compile(
    r"\b(works? (correctly|properly|well|fine|as (expected|intended))"
    r"|as (expected|intended|appropriate|needed|required)"
    r"|(properly|correctly|appropriately|nicely|cleanly) (handled|implemented|working|formatted)"
    r"|handles? (all )?(errors?|edge cases?)( (properly|correctly|gracefully))?[.!]?$"
    r"|(user|developer)[- ]friendly|intuitive|high[- ]quality|production[- ]ready|best practices?"
    r"|looks? (good|nice|right)"
    r"|is (good|fast|robust|clean|easy|secure|performant|complete|done|implemented|working)[.!]?$"
    r"|and so on|etc\.?$|tbd|todo|fixme|\?\?\?)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")


def lint(plan: Plan, file: str, *, has_checks: bool, review_cap: int = 5) -> list[Problem]:
    """Warnings, in the order of the file; `has_checks`: settings name checks besides the plan's own."""
    found = list(_about_checks(plan, file, has_checks))
    if plan.reviewed:
        lines = {story.id: story.line for story in plan.stories}
        for broken in broken_invariants(plan, review_cap):
            place = _place(file, lines.get(broken.story, 0), broken.field)
            found.append(Problem("review-fields", str(broken), place, severity=Severity.ERROR, story=broken.story))
    for story in plan.stories:
        found += _about_story(story, file)
    return found


def _about_checks(plan: Plan, file: str, has_checks: bool) -> Iterator[Problem]:
    if plan.reviewed and not plan.verify:
        yield _warning(
            "no-verify-commands",
            "verifyCommands is empty or missing, so the agent is not told what to run before it stops",
            Place(file, path="verifyCommands"),
            'list the project\'s test, lint and type commands, e.g. "verifyCommands": ["pytest -q"]',
        )
    if has_checks or plan.verify:
        return
    unproven = [story.id for story in plan.stories if not story.verify]
    if not unproven:
        return
    if len(unproven) == len(plan.stories):
        yield _warning(
            "no-checks",
            "no checks are configured, so `done` cannot be proven for any story",
            Place(file),
            "name the project's test command under `checks:` in .ralph/config.yaml",
        )
    else:
        yield _warning(
            "no-checks",
            f"no check would prove {', '.join(unproven[:5])}{' …' if len(unproven) > 5 else ''}",
            Place(file),
            "give them a `verify` of their own, or add `checks:` to .ralph/config.yaml",
        )


def _about_story(story: Story, file: str) -> Iterator[Problem]:
    here = _place(file, story.line, story.id)
    if story.is_done:
        return
    if not story.title.strip():
        yield _warning("no-title", f"story {story.id} has no title", here, "say in a few words what it gives", story)
    if not story.criteria and not story.ref and not story.is_review_step:
        yield _warning(
            "no-criteria",
            f"story {story.id} has no acceptance criteria",
            here,
            "add what can be checked, e.g. 'GET /health answers 200 with {\"ok\": true}'",
            story,
        )
    for criterion in story.criteria:
        if vague := _VAGUE.search(criterion):
            yield _warning(
                "vague-criterion",
                f"story {story.id}: {criterion.strip()[:80]!r} cannot be checked ({vague.group(0).strip()!r})",
                here,
                "say what is seen when it is met, e.g. 'the filter has the options All, Active, Done'",
                story,
            )
    if len(story.criteria) > MOST_CRITERIA:
        yield _warning(
            "too-large",
            f"story {story.id} has {len(story.criteria)} criteria, more than {MOST_CRITERIA}",
            here,
            f"split it: `ralph task split {story.id} 'first part' 'second part'`",
            story,
        )
    sentences = len(_SENTENCE_END.findall(story.description.strip()))
    if sentences > MOST_SENTENCES:
        yield _warning(
            "too-large",
            f"story {story.id} takes {sentences} sentences to describe, more than {MOST_SENTENCES}",
            here,
            f"split it: `ralph task split {story.id} 'first part' 'second part'`",
            story,
        )


def _warning(code: str, message: str, where: Place, hint: str, story: Story | None = None) -> Problem:
    return Problem(code, message, where, hint, Severity.WARNING, story.id if story else "")


def _place(file: str, line: int, path: str) -> Place:
    return Place(file, line or None, path="" if line else path)
