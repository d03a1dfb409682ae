"""A plan that could be written, with all its problems, and the user who decides about it. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.errors import BadData, IllegalChange, NotTrusted
from ralph.core.evidence import CheckResult
from ralph.core.problems import Place, Problem, Severity
from ralph.core.text import estimate_tokens, one_line
from ralph.planning.add import Composed, compose
from ralph.planning.answer import Answer, Question, in_order
from ralph.planning.target import Target, described, with_checks
from ralph.plans.lint import Places, lint
from ralph.plans.registry import traits
from ralph.plans.store import Loaded
from ralph.proof.check_run import run_check
from ralph.session.hook_policy import guard_section


class Proposal(Struct, frozen=True):
    """A plan that could be written."""

    target: Target
    answer: Answer
    composed: Composed
    after: Loaded
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)


class Word(StrEnum):
    ACCEPT = "accept"
    EDIT = "edit"
    EDIT_REQUIREMENTS = "edit-requirements"
    REVISE = "revise"
    DROP = "drop"


class Decision(Struct, frozen=True):
    word: Word
    feedback: str = ""


class Person(Protocol):
    @property
    def can_be_asked(self) -> bool: ...

    def answer(self, question: Question, number: int, total: int) -> str | None:
        """The user's answer. None: ask no more, plan with what is known."""
        ...

    def decide(self, proposal: Proposal) -> Decision: ...

    def edit(self, text: str, name: str) -> str:
        """The text as the user saved it in the editor."""
        ...

    def may_run(self, command: str) -> bool:
        """Whether a command that an agent proposes may run right now."""
        ...

    def tell(self, text: str, *, warning: bool = False) -> None: ...


class Nobody:
    """For CI: asks nothing. Messages go to the log."""

    can_be_asked = False

    def __init__(self, tell: Person | None = None, *, trusts: bool = False) -> None:
        self._tell = tell
        self._trusts = trusts

    def answer(self, question: Question, number: int, total: int) -> str | None:
        return None

    def decide(self, proposal: Proposal) -> Decision:
        return Decision(Word.ACCEPT)

    def edit(self, text: str, name: str) -> str:
        return text

    def may_run(self, command: str) -> bool:
        return self._trusts

    def tell(self, text: str, *, warning: bool = False) -> None:
        if self._tell is not None:
            self._tell.tell(text, warning=warning)


NO_CHECK = frozenset({"no-checks"})
"""Findings about the project rather than the plan."""


def findings(target: Target, after: Loaded, new: Iterable[str]) -> list[Problem]:
    """About the new stories and about the plan as a whole."""
    ids = set(new)
    file = target.ref.path.relative_to(target.ref.root).as_posix()
    problems = lint(
        after.in_file,
        Places(after.in_file, after.source, file),
        has_checks=target.has_checks,
        review_cap=target.settings.config.review.cap,
    )
    problems = [problem for problem in problems if not problem.story or problem.story in ids]
    for story in after.plan.stories:
        if story.id in ids:
            problems += denied(target, story.verify, story.id)
    budget = traits(target.ref.layout).budgets.get("plan")
    if budget and (tokens := estimate_tokens(after.source.decode())) > budget:
        message = f"the spec is about {tokens} tokens long; its budget is {budget}"
        hint = "every session reads it: shorten it, or use fewer steps"
        problems.append(Problem("over-budget", message, Place(file), hint, Severity.WARNING))
    return problems


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


def problem_line(problem: Problem) -> str:
    where = problem.where.path or (f"story {problem.story}" if problem.story else "")
    text = f"{where}: {problem.message}" if where and where not in problem.message else problem.message
    return f"{text} ({problem.hint})" if problem.hint else text


_TIME = 600.0
_CANNOT_RUN = (126, 127)


class FaultCheck:
    """Runs each command once, if the user allows it."""

    def __init__(self, person: Person, env: Mapping[str, str]) -> None:
        self._person = person
        self._env = env
        self._results: dict[str, CheckResult | None] = {}

    def __call__(self, proposal: Proposal) -> list[Problem]:
        problems: list[Problem] = []
        for story_id in proposal.composed.new:
            story = proposal.after.plan.story(story_id)
            commands = story.verify if story else ()
            results = [self._result(command, proposal) for command in commands]
            limit = _limit(proposal)
            problems += [found for result in results if result and (found := _unfit(result, limit, story_id))]
            if results and all(result is not None and result.passed for result in results):
                message = f"{one_line(commands[0], 80)!r} already passes, so it does not show the fault"
                hint = "use a command that fails now because of this fault"
                problems.append(
                    Problem("passes-already", message, hint=hint, severity=Severity.WARNING, story=story_id)
                )
        return problems

    def _result(self, command: str, proposal: Proposal) -> CheckResult | None:
        """None: it was not run, so its result is unknown."""
        if command in self._results:
            return self._results[command]
        root, config = proposal.target.ref.root, proposal.target.settings.config
        if why_denied(command, str(root), config):
            return None  # already in the findings
        if not self._person.may_run(command):
            if not self._person.can_be_asked:
                raise NotTrusted(
                    f"the command that proves the fix has to run now: {one_line(command, 200)}",
                    hint="pass --trust or set RALPH_TRUST=1 to allow it; without --no-input you are asked",
                )
            self._results[command] = None
            self._person.tell("not run: it is not known whether it fails now", warning=True)
            return None
        env = child_environment(self._env, config.agent.env, everything=config.env == "caller")
        limit = _limit(proposal)
        result = run_check("fault", command, root=root, env=env, timeout=limit)
        if not result.passed and _unfit(result, limit) is None:
            self._person.tell(f"fails now, as it should (exit code {result.code}): {one_line(command, 80)}")
        self._results[command] = result
        return result


def _limit(proposal: Proposal) -> float:
    """The same limit as for any check of a plan."""
    return min(_TIME, proposal.target.settings.config.time_ceiling)


def _unfit(result: CheckResult, limit: float, story: str = "") -> Problem | None:
    """A command that fails, but not because of the fault."""
    command = one_line(result.command, 80)
    if result.timed_out:
        hint = "use one that ends by itself"
        return Problem("check-too-slow", f"{command!r} did not finish within {limit:g} s", hint=hint, story=story)
    if result.code in _CANNOT_RUN:
        last = one_line(result.tail.splitlines()[-1] if result.tail else "", 120)
        return Problem(
            "cannot-run",
            f"{command!r} cannot be run here: {last}",
            hint=("use a command that is installed here"),
            story=story,
        )
    return None
