"""What `ralph check` would report about a plan that is not written yet, and what the guard says about its commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ralph.config.schema import Config
from ralph.core.problems import Place, Problem, Severity
from ralph.core.text import estimate_tokens, one_line
from ralph.planning.target import Target
from ralph.plans.lint import lint
from ralph.plans.places import Places
from ralph.plans.registry import traits
from ralph.plans.store import Loaded
from ralph.session.hook_policy import guard_section

NO_CHECK = frozenset({"no-checks"})
"""Findings about the project rather than the plan."""


def findings(target: Target, after: Loaded, new: Iterable[str]) -> list[Problem]:
    """About the new stories and about the plan as a whole."""
    ids = set(new)
    file = target.ref.path.relative_to(target.ref.root).as_posix()
    found = lint(
        after.in_file,
        Places(after.in_file, after.source, file),
        has_checks=target.has_checks,
        review_cap=target.settings.config.review.cap,
    )
    found = [problem for problem in found if not problem.story or problem.story in ids]
    for story in after.plan.stories:
        if story.id in ids:
            found += denied(target, story.verify, story.id)
    budget = traits(target.ref.layout).budgets.get("plan")
    if budget and (tokens := estimate_tokens(after.source.decode())) > budget:
        message = f"the spec is about {tokens} tokens long; its budget is {budget}"
        hint = "every session reads it: shorten it, or use fewer steps"
        found.append(Problem("over-budget", message, Place(file), hint, Severity.WARNING))
    return found


def denied(target: Target, commands: Iterable[str], story: str = "") -> Iterator[Problem]:
    """Commands that agents may not run are not allowed as checks either."""
    for command in commands:
        if reason := why_denied(command, str(target.ref.root), target.settings.config):
            message = f"{one_line(command, 80)!r} would be denied: {one_line(reason, 200)}"
            yield Problem("denied-command", message, hint="prove the story with a harmless command", story=story)


def why_denied(command: str, root: str, config: Config) -> str:
    from ralph.guard.decision import judge_command

    try:
        decision = judge_command(command, root, guard_section(config) | {"workspace": root})
    except Exception:  # noqa: BLE001 - as in the hook: it was not analysed, so it is not run
        return "the guard could not parse it"
    return decision.reason if decision.denied else ""
