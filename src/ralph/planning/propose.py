"""Turns a usable answer into a plan that could be written, with all its problems. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ralph.core.errors import BadData, IllegalChange
from ralph.core.problems import Problem
from ralph.planning.answer import Answer
from ralph.planning.compose import compose
from ralph.planning.findings import NO_CHECK, denied, findings
from ralph.planning.order import in_order
from ralph.planning.person import Proposal
from ralph.planning.target import Target, described, with_checks

Examine = Callable[[Proposal], list[Problem]]
"""Finds further problems of a proposal, for one kind of call."""


def propose(
    target: Target,
    answer: Answer,
    env: Mapping[str, str],
    *,
    taken: Iterable[str] = (),
    first: bool = False,
    examine: Examine = lambda _: [],
) -> Proposal:
    target = described(with_checks(target, answer.verify_commands, env), answer.description)
    composed = compose(target.plan, in_order(answer.stories), taken=taken, first=first)
    problems = list(denied(target, answer.verify_commands))
    try:
        after = target.store.planned(target.base, composed.changes, {})
    except (IllegalChange, BadData) as error:
        problem = Problem("unwritable", f"the plan cannot be written: {error.message}", hint=error.hint)
        return Proposal(target, answer, composed, target.base, (*problems, problem))
    problems += findings(target, after, composed.new)
    proposal = Proposal(target, answer, composed, after, tuple(problems))
    return msgspec.structs.replace(proposal, problems=(*problems, *examine(proposal)))


def refuse_findings(proposal: Proposal) -> None:
    """Without a user to review it, the plan must have no findings. Missing project checks do not count."""
    problems = [problem for problem in proposal.problems if problem.code not in NO_CHECK]
    if problems:
        raise BadData.of(problems)


def told_in_words(problem: Problem) -> str:
    where = problem.where.path or (f"story {problem.story}" if problem.story else "")
    said = f"{where}: {problem.message}" if where and where not in problem.message else problem.message
    return f"{said} ({problem.hint})" if problem.hint else said
