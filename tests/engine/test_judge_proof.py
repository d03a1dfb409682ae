"""What passing checks are worth: the verdict table by grade, minimum and policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.agent import Outcome
from ralph.core.changes import SetFields
from ralph.core.evidence import CheckResult, Claim, Ended, Evidence, How
from ralph.core.plan import Mode, Story
from ralph.core.proof import Grade, Proof, Tamper, Witness
from ralph.core.review import ReviewStatus
from ralph.core.verdict import Kind, Verdict
from ralph.engine.judge import judge
from support.evidence import evidence_of

STORY = Story(id="US-001", title="Log in", verify=("make login",))
PASS = CheckResult(name="tests", command="pytest", passed=True, code=0)
OWN = CheckResult(name="login", command="make login", passed=True, code=0)
PROVEN = Proof(witnesses=(Witness("make login", is_own=True), Witness("t::a")))
WITNESSED = Proof(witnesses=(Witness("t::a"),))
NOTHING = Proof(missing=("add a test",))
CHANGED = Proof(witnesses=(Witness("t::a"),), changed_expectations=("t.py:5: differs",))
ALLOWED = Proof(witnesses=(Witness("t::a"),), changed_expectations=("t.py:5: differs",), excuse="the story names t.py")
LOOSENED = Proof(witnesses=(Witness("t::a"),), loosened=("t.py:5",))
SILENT = Proof(objections=("it ran no test",), changed_expectations=("t.py:5: differs",))
ALREADY = {"changed": (), "claim": Claim.ALREADY, "proof": None, "passed_before": True}


def evidence(**fields: Any) -> Evidence:
    basic: dict[str, Any] = {
        "mode": Mode.IMPLEMENT,
        "story": STORY,
        "ended": Ended(How.EXITED, code=0, seconds=5),
        "outcome": Outcome(finished=True, ok=True),
        "changed": ("src/login.py",),
        "claim": Claim.DONE,
        "checks": (PASS,),
        "minimum": Grade.REVIEWED,
        "may_review": True,
    }
    return evidence_of(basic | fields)


def outcome(verdict: Verdict) -> str:
    """`done`, `review` or the kind of the verdict; and the grade."""
    changes = [change for change in verdict.changes if isinstance(change, SetFields)]
    reviews = [change.fields["review"].status for change in changes if "review" in change.fields]
    what = "done" if verdict.completes else "review" if reviews == [ReviewStatus.NEEDS_REVIEW] else verdict.kind.value
    return f"{what} {verdict.grade}".strip()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"proof": PROVEN}, "done proven"),
        ({"proof": WITNESSED}, "done witnessed"),
        ({"proof": WITNESSED, "review": True}, "review witnessed"),
        ({"proof": NOTHING}, "review unproven"),
        ({"proof": NOTHING, "may_review": False}, "review unproven"),
        ({"proof": NOTHING, "minimum": Grade.UNPROVEN, "may_review": False}, "done unproven"),
        ({"proof": NOTHING, "minimum": Grade.WITNESSED}, "rejected"),
        ({"proof": WITNESSED, "minimum": Grade.PROVEN}, "rejected"),
        ({"proof": CHANGED}, "review witnessed"),
        ({"proof": CHANGED, "may_review": False}, "rejected"),
        ({"proof": CHANGED, "tamper": Tamper.REJECT}, "rejected"),
        ({"proof": CHANGED, "tamper": Tamper.OFF}, "done witnessed"),
        ({"proof": CHANGED, "claim": None}, "rejected"),
        ({"proof": ALLOWED, "may_review": False}, "done witnessed"),
        ({"proof": ALLOWED, "claim": None}, "partial"),
        ({"proof": LOOSENED}, "review witnessed"),
        ({"proof": LOOSENED, "may_review": False}, "done witnessed"),
        ({"proof": SILENT}, "rejected"),
        ({"proof": SILENT, "claim": None}, "rejected"),
        ({**ALREADY, "checks": (PASS, OWN)}, "done proven"),
        ({**ALREADY}, "review"),
        ({**ALREADY, "may_review": False}, "review unproven"),
    ],
)
def test_the_proof_decides(fields: dict[str, Any], expected: str) -> None:
    assert outcome(judge(evidence(**fields))) == expected


@pytest.mark.parametrize("fields", [{"proof": CHANGED, "may_review": False}, {"proof": SILENT}])
@pytest.mark.parametrize("claim", [Claim.DONE, None])
def test_a_rejection_names_file_and_line_once(fields: dict[str, Any], claim: Claim | None) -> None:
    verdict = judge(evidence(**fields, claim=claim))
    assert verdict.kind is Kind.REJECTED
    assert [reason.count("t.py:5: differs") for reason in verdict.reasons if "t.py" in reason] == [1]


@given(
    st.builds(
        evidence,
        mode=st.sampled_from([Mode.IMPLEMENT, Mode.FIX]),
        proof=st.sampled_from([None, PROVEN, WITNESSED, NOTHING, CHANGED, ALLOWED, SILENT]),
        changed=st.sampled_from([(), ("a",)]),
        claim=st.sampled_from([None, *Claim]),
        checks=st.sampled_from([(), (PASS,), (PASS, OWN)]),
        passed_before=st.sampled_from([None, True]),
        minimum=st.sampled_from([Grade.PROVEN, Grade.WITNESSED, Grade.REVIEWED]),
        may_review=st.booleans(),
        review=st.booleans(),
        tamper=st.sampled_from([Tamper.REVIEW, Tamper.REJECT]),
    )
)
def test_nothing_is_done_below_the_minimum_or_with_changed_expectations(of: Evidence) -> None:
    verdict = judge(of)
    if verdict.completes:
        assert Grade(verdict.grade).reaches(of.minimum)
        assert of.proof is None or not (of.proof.needs_approval or of.proof.objections)
