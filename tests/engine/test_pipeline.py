"""Steps: order, retries, time, errors, circuits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ralph.core.agent import Outcome
from ralph.core.errors import ConfigError
from ralph.core.events import StepEnded
from ralph.core.evidence import CheckResult, Ended, How
from ralph.core.plan import Mode
from ralph.core.ports import StepContext, StepReport
from ralph.engine.steps import STEPS, Circuit, Passed, Pipeline, PlannedStep, step


class Script:
    """A step that does what it is told, one report an execution."""

    NAME = "script"

    def __init__(self, *reports: bool | Exception) -> None:
        self.reports = list(reports)
        self.ran = 0

    def execute(self, context: StepContext, config: dict[str, Any]) -> StepReport:
        self.ran += 1
        report = self.reports.pop(0) if self.reports else True
        if isinstance(report, Exception):
            raise report
        return StepReport(report, "" if report else "no")


def planned(script: Script, name: str = "s", **fields: Any) -> PlannedStep:
    return PlannedStep(name=name, kind=fields.pop("kind", "command"), step=script, **fields)


class Harness:
    def __init__(self, tmp_path: Path, steps: Sequence[PlannedStep]) -> None:
        self.told: list[StepEnded] = []
        self.pauses: list[float] = []
        self.reasons: list[str] = []
        self._root = tmp_path
        self._pipeline = Pipeline(steps, self.told.append, self._pause)

    def _pause(self, seconds: float, why: str) -> bool:
        self.pauses.append(seconds)
        self.reasons.append(why)
        return False

    def run(self) -> Passed:
        return self._pipeline.run(self._context, 1)

    def _context(self, deadline: float | None) -> StepContext:
        return context(self._root, deadline)


def context(root: Path, deadline: float | None = None) -> StepContext:
    def run_command(name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        return CheckResult(name=name, command=f"{cwd}:{command}", passed=command != "false", code=0)

    def run_agent(config: dict[str, Any], limit: float | None) -> tuple[Ended, Outcome]:
        return Ended(How.EXITED, code=config.get("code", 0)), Outcome(finished=True, ok=True)

    return StepContext(root, root, None, Mode.IMPLEMENT, 1, deadline, run_command, run_agent)


def test_steps_run_in_order_and_a_failure_ends_the_pipeline(tmp_path: Path) -> None:
    first, second, third = Script(True), Script(False), Script(True)
    passed = Harness(tmp_path, [planned(first), planned(second, "bad"), planned(third)]).run()
    assert (first.ran, second.ran, third.ran) == (1, 1, 0)
    assert passed.failed == "bad"


def test_continue_on_error_goes_on(tmp_path: Path) -> None:
    last = Script(True)
    assert not Harness(tmp_path, [planned(Script(False), continue_on_error=True), planned(last)]).run().failed
    assert last.ran == 1


def test_a_failing_agent_does_not_hide_its_work_from_the_steps_after_it(tmp_path: Path) -> None:
    last = Script(True)
    Harness(tmp_path, [planned(Script(False), kind="agent"), planned(last)]).run()
    assert last.ran == 1


def test_a_step_is_tried_again_with_its_delay(tmp_path: Path) -> None:
    script = Script(False, False, True)
    harness = Harness(tmp_path, [planned(script, max_retries=2, retry_delay=30.0)])
    assert not harness.run().failed
    assert (script.ran, harness.pauses, harness.told[0].tries) == (3, [30.0, 30.0], 3)
    assert harness.reasons == [f"step s failed; retrying ({tries} of 2)" for tries in (1, 2)]


def test_an_open_circuit_skips_the_step_until_it_is_tried_again(tmp_path: Path) -> None:
    script = Script(False, False, True)
    harness = Harness(tmp_path, [planned(script, continue_on_error=True, circuit=Circuit(2, reset_after=1e9))])
    for _ in range(4):
        harness.run()
    assert script.ran == 2
    assert harness.told[-1].skipped == "its circuit breaker is open"
    at_once = Harness(tmp_path, [planned(Script(False, True), continue_on_error=True, circuit=Circuit(1, 0.0))])
    at_once.run()
    at_once.run()
    assert [t.ok for t in at_once.told] == [False, True]


def test_a_step_that_raises_is_a_failed_step(tmp_path: Path) -> None:
    harness = Harness(tmp_path, [planned(Script(ValueError("boom")))])
    assert harness.run().failed == "s"
    assert harness.told[0].detail == "ValueError: boom"


def test_a_wrong_configuration_is_said_and_not_retried(tmp_path: Path) -> None:
    one = PlannedStep(name="c", kind="command", step=step("command"), max_retries=5)
    with pytest.raises(ConfigError, match=r"needs `config.command`"):
        Harness(tmp_path, [one]).run()


def test_the_built_in_steps(tmp_path: Path) -> None:
    assert STEPS.names()[:5] == ["agent", "git-commit", "command", "readme-check", "noop"]
    here = context(tmp_path)
    assert step("noop").execute(here, {}).ok
    assert step("git-commit").execute(here, {}).commit
    assert step("agent").execute(here, {}).ok
    assert not step("agent").execute(here, {"code": 1}).ok
    report = step("command").execute(here, {"command": "make", "args": ["a b"], "cwd": "sub"})
    assert report.check is not None
    assert report.check.command == "sub:make 'a b'"
    assert not step("command").execute(here, {"command": "false"}).ok
    assert not step("readme-check").execute(here, {}).ok
    (tmp_path / "README.md").write_text("# hi")
    assert step("readme-check").execute(here, {}).ok
    assert not step("readme-check").execute(here, {"file": "docs.md"}).ok


def test_a_step_that_fails_without_evidence_is_evidence_itself(tmp_path: Path) -> None:
    committing = PlannedStep(name="commit", kind="git-commit", step=step("git-commit"))
    passed = Harness(tmp_path, [planned(Script(ValueError("boom")), "mine", kind="mine"), committing]).run()
    assert [(c.name, c.passed, c.required, c.tail) for c in passed.checks] == [
        ("mine", False, True, "ValueError: boom")
    ]
    assert not passed.commit


def test_a_step_that_may_fail_is_no_reason_to_reject(tmp_path: Path) -> None:
    failing = PlannedStep(
        name="lint", kind="command", step=step("command"), continue_on_error=True, config={"command": "false"}
    )
    passed = Harness(tmp_path, [failing, planned(Script(False), continue_on_error=True)]).run()
    assert [(c.name, c.passed, c.required) for c in passed.checks] == [("false", False, False)]


def test_a_check_that_is_skipped_does_not_count_as_passed(tmp_path: Path) -> None:
    script = Script(False, True)
    harness = Harness(tmp_path, [planned(script, "test", circuit=Circuit(1, reset_after=1e9))])
    harness.run()
    passed = harness.run()
    assert script.ran == 1
    assert [(c.name, c.passed, c.tail) for c in passed.checks] == [
        ("test", False, "skipped: its circuit breaker is open")
    ]


def test_an_iteration_waits_for_the_circuit_of_its_agent(tmp_path: Path) -> None:
    script = Script(False, True)
    harness = Harness(tmp_path, [planned(script, kind="agent", circuit=Circuit(1, reset_after=60.0))])
    harness.run()
    harness.run()
    assert script.ran == 2
    assert harness.pauses == [pytest.approx(60.0, abs=5.0)]
    assert harness.reasons == ["the circuit breaker of step s is open"]
    assert [t.skipped for t in harness.told] == ["", "its circuit breaker is open", ""]


def test_a_usage_limit_is_not_tried_again_and_no_failure_of_the_step(tmp_path: Path) -> None:
    class Limited:
        NAME = "agent"
        ran = 0

        def execute(self, context: StepContext, config: dict[str, Any]) -> StepReport:
            self.ran += 1
            return StepReport(False, "limit", may_retry=False)

    limited = Limited()
    one = PlannedStep(name="a", kind="agent", step=limited, max_retries=3, circuit=Circuit(1, 1e9))
    harness = Harness(tmp_path, [one])
    harness.run()
    harness.run()
    assert limited.ran == 2
    assert not any(t.skipped for t in harness.told)
