"""The steps of one iteration: the built-in types, and the pipeline that runs them in order.

Third-party types are added through the entry point group `ralph.steps`.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, cast

import msgspec
from msgspec import Struct

from ralph.core.agent import Trouble
from ralph.core.errors import ConfigError, RalphError
from ralph.core.events import StepEnded
from ralph.core.evidence import CheckResult
from ralph.core.ports import Step, StepContext, StepReport
from ralph.core.registry import Registry
from ralph.core.text import one_line


class Position(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Circuit(Struct, frozen=True):
    threshold: int
    reset_after: float
    failures: int = 0
    opened_at: float | None = None

    def position(self, now: float) -> Position:
        if self.opened_at is None:
            return Position.CLOSED
        # A clock that was set back must not keep the circuit open for longer than it says.
        waited = abs(now - self.opened_at)
        return Position.HALF_OPEN if waited >= self.reset_after else Position.OPEN

    def left(self, now: float) -> float:
        """Seconds until the step may be tried again."""
        return 0.0 if self.opened_at is None else max(self.reset_after - abs(now - self.opened_at), 0.0)

    def after(self, ok: bool, now: float) -> Circuit:
        """The circuit after one execution. A failed trial reopens it at once."""
        if ok:
            return Circuit(self.threshold, self.reset_after)
        failures = self.failures + 1
        opens = failures >= self.threshold or self.opened_at is not None
        return Circuit(self.threshold, self.reset_after, failures, now if opens else None)


STEPS = Registry(
    "step type",
    {
        "agent": "ralph.engine.steps:AGENT",
        "git-commit": "ralph.engine.steps:GIT_COMMIT",
        "command": "ralph.engine.steps:COMMAND",
        "readme-check": "ralph.engine.steps:README_CHECK",
        "noop": "ralph.engine.steps:NOOP",
    },
    group="ralph.steps",
    protocol=Step,
)

_IN_VAIN = (
    Trouble.LIMIT, Trouble.BUDGET, Trouble.AUTHENTICATION, Trouble.BILLING, Trouble.REFUSED, Trouble.MODEL,
    Trouble.PERMISSION, Trouble.UNGUARDED,
)  # fmt: skip


def step(name: str) -> Step:
    return cast(Step, STEPS.get(name))


class BuiltIn(Struct, frozen=True):
    NAME: str
    execute: Callable[[StepContext, dict[str, Any]], StepReport]


def _agent(context: StepContext, config: dict[str, Any]) -> StepReport:
    """Run one agent process with a prompt."""
    ended, outcome = context.run_agent(config, context.deadline)
    ok = ended.well and outcome.trouble is None
    detail = "" if ok else outcome.detail or ended.detail or ended.how.value
    return StepReport(ok, detail, may_retry=outcome.trouble not in _IN_VAIN)


def _command(context: StepContext, config: dict[str, Any]) -> StepReport:
    """Run a shell command. Its exit code is evidence like that of any check."""
    command = config.get("command", "")
    args = config.get("args", [])
    if not isinstance(command, str) or not command.strip() or not isinstance(args, list):
        raise ConfigError("a `command` step needs `config.command`, a shell command", hint='e.g. command: "make test"')
    line = " ".join([command, *(shlex.quote(str(arg)) for arg in args)])
    cwd = str(config.get("cwd", config.get("working_dir", "")))
    result = context.run_command(str(config.get("name", command)), line, timeout=context.deadline, cwd=cwd)
    return StepReport(result.passed, "" if result.passed else f"exit code {result.code}", check=result)


def _readme_check(context: StepContext, config: dict[str, Any]) -> StepReport:
    """Check that the project has a README that is not empty."""
    wanted = str(config.get("file", config.get("path", ""))).lower()
    files = [
        entry
        for entry in context.repo.iterdir()
        if entry.is_file() and (entry.name.lower() == wanted if wanted else entry.name.lower().startswith("readme"))
    ]
    ok = any(entry.stat().st_size > 0 for entry in files)
    detail = "" if ok else f"{wanted or 'README'} is missing or empty"
    result = CheckResult(name="readme-check", command="readme-check", passed=ok, code=0 if ok else 1, tail=detail)
    return StepReport(ok, detail, check=result)


AGENT = BuiltIn("agent", _agent)
COMMAND = BuiltIn("command", _command)
README_CHECK = BuiltIn("readme-check", _readme_check)
GIT_COMMIT = BuiltIn("git-commit", lambda *_: StepReport(ok=True, detail="when the story is accepted", commit=True))
"""Commits the story once it is accepted. An unproven change is never committed."""
NOOP = BuiltIn("noop", lambda *_: StepReport(ok=True))
"""Does nothing, for trying out a configuration."""

Pause = Callable[[float, str], bool]
"""Waits that many seconds for a stated reason; true: the run was asked to stop."""


class PlannedStep(Struct, frozen=True):
    """A step from the settings, resolved."""

    name: str
    kind: str
    step: Step
    timeout: float | None = None
    max_retries: int = 0
    retry_delay: float = 0
    continue_on_error: bool = False
    circuit: Circuit | None = None
    config: dict[str, Any] = {}


class Passed(Struct, frozen=True):
    """The result of the whole pipeline."""

    checks: tuple[CheckResult, ...] = ()
    commit: bool = False
    failed: str = ""
    """The step that ended the pipeline."""


class Pipeline:
    """Holds the circuit breakers of a run; everything else is passed in for each iteration."""

    def __init__(
        self,
        steps: Sequence[PlannedStep],
        tell: Callable[[StepEnded], object],
        pause: Pause,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._steps = tuple(steps)
        self._tell = tell
        self._pause = pause
        self._is_stopped = is_stopped
        self.agent_config = next((step.config for step in steps if step.kind == "agent"), {})
        self._circuits = {number: step.circuit for number, step in enumerate(steps) if step.circuit}

    def run(self, make_context: Callable[[float | None], StepContext], iteration: int) -> Passed:
        """Run the steps in order. A failing agent does not end the pipeline: its tree is inspected like any other."""
        checks: list[CheckResult] = []
        commit = False
        for number, planned in enumerate(self._steps):
            if self._is_stopped():
                break
            report = self._one(number, planned, make_context, iteration)
            commit = commit or report.commit
            if (check := _evidence(planned, report)) is not None:
                checks.append(check)
            if not report.ok and planned.kind != "agent" and not planned.continue_on_error:
                return Passed(tuple(checks), commit, planned.name)
        return Passed(tuple(checks), commit)

    def _one(
        self, number: int, planned: PlannedStep, make_context: Callable[[float | None], StepContext], iteration: int
    ) -> StepReport:
        begun = time.monotonic()
        circuit = self._circuits.get(number)
        if circuit and circuit.position(begun) is Position.OPEN:
            skipped = StepReport(False, "skipped: its circuit breaker is open")
            self._tell(_ended(planned, iteration, skipped, begun, 0, "its circuit breaker is open"))
            # Without its agent an iteration is worth nothing, and would only use up an attempt.
            why = f"the circuit breaker of step {one_line(planned.name, 60)} is open"
            if planned.kind != "agent" or self._pause(circuit.left(begun), why):
                return skipped
        tries = 0
        while True:
            tries += 1
            report = _execute(planned, make_context(planned.timeout))
            is_last = report.ok or tries > planned.max_retries or not report.may_retry
            why = f"step {one_line(planned.name, 60)} failed; retrying ({tries} of {planned.max_retries})"
            if is_last or self._pause(planned.retry_delay, why):
                break
        if circuit and report.may_retry:
            self._circuits[number] = circuit.after(report.ok, time.monotonic())
        self._tell(_ended(planned, iteration, report, begun, tries, ""))
        return report


def _evidence(planned: PlannedStep, report: StepReport) -> CheckResult | None:
    """A step's result as a check of the story. Failure rejects the story unless the step may fail."""
    if planned.continue_on_error and report.check is not None:
        return msgspec.structs.replace(report.check, required=False)
    if report.ok or report.check is not None or planned.kind == "agent" or planned.continue_on_error:
        return report.check
    return CheckResult(name=planned.name, command=planned.kind, passed=False, tail=report.detail)


def _execute(planned: PlannedStep, context: StepContext) -> StepReport:
    try:
        return planned.step.execute(context, planned.config)
    except RalphError:
        raise
    except Exception as error:
        if planned.kind == "agent":  # what fails there is the loop itself, and no attempt is to blame for it
            raise
        return StepReport(False, f"{type(error).__name__}: {error}")  # a third-party step must not end the run


def _ended(
    planned: PlannedStep, iteration: int, report: StepReport, begun: float, tries: int, skipped: str
) -> StepEnded:
    return StepEnded(
        iteration=iteration,
        step=planned.name,
        kind=planned.kind,
        ok=report.ok,
        seconds=round(time.monotonic() - begun, 3),
        tries=tries,
        skipped=skipped,
        detail=report.detail[:2000],
    )
