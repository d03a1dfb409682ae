"""Checks that the command that is to prove a fix really fails now."""

from __future__ import annotations

from collections.abc import Mapping

from ralph.core.environment import child_environment
from ralph.core.errors import NotTrusted
from ralph.core.evidence import CheckResult
from ralph.core.problems import Problem, Severity
from ralph.core.text import one_line
from ralph.planning.findings import why_denied
from ralph.planning.person import Person, Proposal
from ralph.proof.check_run import run_check

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
