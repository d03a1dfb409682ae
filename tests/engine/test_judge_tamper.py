"""What a review cannot make good: work whose checks pass only because the tests were weakened."""

from __future__ import annotations

import pytest

from ralph.core.agent import Outcome
from ralph.core.evidence import CheckResult, Claim, Ended, Evidence, How
from ralph.core.plan import Mode, Story
from ralph.core.suspicion import Suspicion, Tamper
from ralph.core.verdict import Kind
from ralph.engine.judge import judge


def evidence(*, decisive: bool, tamper: Tamper = Tamper.REVIEW) -> Evidence:
    doubt = Suspicion("test-emptied", "tests/test_a.py", "test_a does nothing any more", 3, is_decisive=decisive)
    return Evidence(
        mode=Mode.IMPLEMENT,
        story=Story(id="US-001", title="Log in"),
        ended=Ended(How.EXITED, code=0),
        outcome=Outcome(finished=True, ok=True),
        changed=("src/a.py", "tests/test_a.py"),
        claim=Claim.DONE,
        checks=(CheckResult(name="tests", command="pytest", passed=True, code=0),),
        suspicions=(doubt,),
        tamper=tamper,
        review=True,
    )


def test_work_that_passes_without_the_weakened_test_too_goes_to_review() -> None:
    assert judge(evidence(decisive=False)).kind is Kind.ACCEPTED


@pytest.mark.parametrize("policy", [Tamper.REVIEW, Tamper.REJECT])
def test_work_that_passes_only_because_of_it_is_rejected_before_any_review(policy: Tamper) -> None:
    verdict = judge(evidence(decisive=True, tamper=policy))
    assert verdict.kind is Kind.REJECTED
    assert "tests/test_a.py:3: test_a does nothing any more" in verdict.reasons
    assert "ask the user" in verdict.reasons[-1]


def test_who_does_not_want_to_know_is_not_told() -> None:
    assert judge(evidence(decisive=True, tamper=Tamper.OFF)).kind is Kind.ACCEPTED
