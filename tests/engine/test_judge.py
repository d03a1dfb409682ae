"""The verdict table, row by row, and the promise that the way an agent ended never hides finished work."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.agent import Outcome, Trouble
from ralph.core.changes import Added, AddStory, Delta, Edited, SetFields
from ralph.core.evidence import CheckResult, Claim, Ended, Evidence, How
from ralph.core.plan import Mode, State, Story
from ralph.core.proof import Suspicion, Tamper
from ralph.core.review import Answer, Finding, Ledger, OnCap, Review, ReviewStatus, answer, hear
from ralph.core.verdict import Kind, Verdict
from ralph.engine.judge import judge
from support.evidence import evidence_of

STORY = Story(id="US-001", title="Log in", criteria=("POST /login answers 200",))
OTHER = Story(id="US-002", title="Log out")
PASS = CheckResult(name="tests", command="pytest", passed=True, code=0)
FAIL = CheckResult(name="tests", command="pytest", passed=False, code=1, tail="1 failed in 0.31s")
WELL = Ended(How.EXITED, code=0, seconds=5)
OK = Outcome(finished=True, ok=True)


def evidence(**fields: Any) -> Evidence:
    basic: dict[str, Any] = {
        "mode": Mode.IMPLEMENT,
        "story": STORY,
        "ended": WELL,
        "outcome": OK,
        "changed": ("src/login.py",),
        "claim": Claim.DONE,
        "checks": (PASS,),
    }
    return evidence_of(basic | fields)


def edited(story: Story = STORY, **fields: Any) -> Delta:
    return Delta(edited=(Edited(story, msgspec.structs.replace(story, **fields)),))


def test_a_claim_with_a_change_and_passing_checks_is_accepted() -> None:
    verdict = judge(evidence())
    assert verdict.kind is Kind.ACCEPTED
    assert verdict.completes
    assert verdict.changes == (SetFields("US-001", {"state": State.DONE}),)


def test_with_review_acceptance_means_on_to_review() -> None:
    verdict = judge(evidence(review=True))
    assert verdict.kind is Kind.ACCEPTED
    assert not verdict.completes
    assert verdict.changes == (SetFields("US-001", {"review": Review(ReviewStatus.NEEDS_REVIEW)}),)


@pytest.mark.parametrize(
    "ended",
    [
        Ended(How.TIMED_OUT, signal=15, seconds=900),
        Ended(How.SILENT, signal=15),
        Ended(How.EXITED, code=1),
        Ended(How.EXITED, signal=9),
        Ended(How.LINGERED, signal=15),
    ],
)
def test_finished_work_is_accepted_however_the_agent_ended(ended: Ended) -> None:
    verdict = judge(evidence(ended=ended))
    assert verdict.kind is Kind.ACCEPTED
    assert "its work was complete" in verdict.headline


@pytest.mark.parametrize("trouble", [Trouble.LIMIT, Trouble.TRANSPORT, Trouble.EMPTY, Trouble.BUDGET, Trouble.CONTEXT])
def test_finished_work_is_accepted_whatever_trouble_came_after_it(trouble: Trouble) -> None:
    verdict = judge(evidence(outcome=Outcome(finished=True, trouble=trouble), ended=Ended(How.EXITED, code=1)))
    assert verdict.kind is Kind.ACCEPTED


def test_a_failing_check_rejects_and_is_named() -> None:
    verdict = judge(evidence(checks=(PASS, FAIL)))
    assert verdict.kind is Kind.REJECTED
    assert verdict.headline == "check 'tests' failed with exit code 1"
    assert verdict.fingerprint


def test_a_check_that_may_fail_is_no_reason() -> None:
    assert judge(evidence(checks=(PASS, msgspec.structs.replace(FAIL, required=False)))).kind is Kind.ACCEPTED


def test_a_claim_without_a_change_is_rejected() -> None:
    verdict = judge(evidence(changed=()))
    assert verdict.kind is Kind.REJECTED
    assert "no files changed" in verdict.headline


def test_a_claim_about_work_of_an_earlier_session_needs_no_change() -> None:
    assert judge(evidence(changed=(), continues=True)).kind is Kind.ACCEPTED
    assert judge(evidence(changed=(), continues=True, checks=(FAIL,))).kind is Kind.REJECTED


@pytest.mark.parametrize(
    ("checks", "before", "kind"),
    [
        ((PASS,), True, Kind.ACCEPTED),
        ((PASS,), False, Kind.REJECTED),
        ((), None, Kind.REJECTED),
        ((FAIL,), False, Kind.REJECTED),
        ((msgspec.structs.replace(FAIL, required=False),), None, Kind.REJECTED),
    ],
)
def test_already_satisfied_needs_checks_that_passed_before(
    checks: tuple[CheckResult, ...], before: bool | None, kind: Kind
) -> None:
    assert judge(evidence(changed=(), claim=Claim.ALREADY, checks=checks, passed_before=before)).kind is kind


def test_sound_work_without_a_claim_is_kept_but_not_done() -> None:
    verdict = judge(evidence(claim=None))
    assert verdict.kind is Kind.PARTIAL
    assert not verdict.completes
    assert not [c for c in verdict.changes if isinstance(c, SetFields) and "state" in c.fields]


def test_work_without_a_claim_and_without_any_check_is_not_kept() -> None:
    assert judge(evidence(claim=None, checks=())).kind is Kind.REJECTED


def test_the_promise_tag_is_a_claim_and_no_proof() -> None:
    assert judge(evidence(claim=None, outcome=Outcome(finished=True, ok=True, promised=True))).kind is Kind.ACCEPTED
    promised = Outcome(finished=True, ok=True, promised=True)
    assert judge(evidence(claim=None, outcome=promised, checks=(FAIL,))).kind is Kind.REJECTED


def test_where_the_loop_marks_a_good_ending_is_the_claim() -> None:
    assert judge(evidence(claim=None, claim_is_implied=True)).kind is Kind.ACCEPTED
    killed = evidence(claim=None, claim_is_implied=True, ended=Ended(How.TIMED_OUT, signal=15))
    assert judge(killed).kind is Kind.TIMED_OUT


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"question": "Which database?"}, Kind.BLOCKED),
        ({"outcome": Outcome(trouble=Trouble.LIMIT, resets_at=99.0)}, Kind.LIMIT),
        ({"outcome": Outcome(trouble=Trouble.TRANSPORT)}, Kind.TRANSPORT),
        ({"outcome": Outcome(trouble=Trouble.EMPTY)}, Kind.TRANSPORT),
        ({"outcome": Outcome(trouble=Trouble.AUTHENTICATION)}, Kind.MISCONFIGURED),
        ({"outcome": Outcome(trouble=Trouble.MODEL)}, Kind.MISCONFIGURED),
        ({"outcome": Outcome(trouble=Trouble.PERMISSION)}, Kind.MISCONFIGURED),
        ({"ended": Ended(How.FAILED_TO_START, detail="not installed")}, Kind.MISCONFIGURED),
        ({"ended": Ended(How.TIMED_OUT, signal=15)}, Kind.TIMED_OUT),
        ({"ended": Ended(How.SILENT, signal=15)}, Kind.TIMED_OUT),
        ({"ended": Ended(How.EXITED, code=3)}, Kind.CRASHED),
        ({"ended": Ended(How.EXITED, signal=9)}, Kind.CRASHED),
        ({"interrupted": True}, Kind.INTERRUPTED),
        ({}, Kind.REJECTED),
    ],
)
def test_the_cause_decides_what_an_unfinished_iteration_costs(fields: dict[str, Any], kind: Kind) -> None:
    assert judge(evidence(changed=(), claim=None, checks=(), **fields)).kind is kind


def test_an_interrupted_iteration_is_not_accepted_even_when_it_looks_finished() -> None:
    assert judge(evidence(interrupted=True)).kind is Kind.INTERRUPTED


def test_a_limit_says_when_it_ends() -> None:
    limit = Outcome(trouble=Trouble.LIMIT, resets_at=1794737722.0)
    assert judge(evidence(claim=None, changed=(), outcome=limit)).resets_at == 1794737722.0


COSTS = {
    Kind.ACCEPTED: (True, False),
    Kind.PARTIAL: (True, True),
    Kind.REJECTED: (True, True),
    Kind.BLOCKED: (False, False),
    Kind.LIMIT: (False, False),
    Kind.TRANSPORT: (False, False),
    Kind.CRASHED: (True, True),
    Kind.TIMED_OUT: (True, True),
    Kind.MISCONFIGURED: (False, False),
    Kind.INTERRUPTED: (False, False),
    Kind.RETURNED: (False, False),
}


@pytest.mark.parametrize("kind", list(Kind))
def test_what_each_verdict_costs(kind: Kind) -> None:
    assert (kind.uses_attempt, kind.feeds_breaker) == COSTS[kind]


# Tampering

WEAKENED = (Suspicion("assert-removed", "tests/test_a.py", "an assertion was removed", 12),)


@pytest.mark.parametrize(
    ("policy", "reviewed", "kind"),
    [
        (Tamper.REVIEW, False, Kind.REJECTED),
        (Tamper.REVIEW, True, Kind.ACCEPTED),
        (Tamper.REJECT, True, Kind.REJECTED),
        (Tamper.REJECT, False, Kind.REJECTED),
        (Tamper.OFF, False, Kind.ACCEPTED),
    ],
)
def test_a_weakened_test_is_rejected_or_goes_to_review(policy: Tamper, reviewed: bool, kind: Kind) -> None:
    verdict = judge(evidence(suspicions=WEAKENED, tamper=policy, review=reviewed))
    assert verdict.kind is kind
    if kind is Kind.REJECTED:
        assert "tests/test_a.py:12: an assertion was removed" in verdict.reasons
    elif policy is Tamper.REVIEW:
        assert not verdict.completes
        assert "for the reviewer to check: tests/test_a.py:12" in verdict.notices[0]


def test_a_slight_doubt_does_not_reject() -> None:
    slight = (msgspec.structs.replace(WEAKENED[0], is_grave=False),)
    assert judge(evidence(suspicions=slight)).kind is Kind.ACCEPTED


# What the agent did to the plan


def test_marking_another_story_is_put_back_and_said() -> None:
    verdict = judge(evidence(delta=edited(OTHER, state=State.DONE)))
    assert verdict.kind is Kind.ACCEPTED
    assert [c.story for c in verdict.changes if isinstance(c, SetFields)] == ["US-001"]
    assert "US-002 was marked done; restored" in verdict.notices[0]


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Easy"},
        {"criteria": ("it starts",)},
        {"verify": ("true",)},
        {"depends_on": ()},
        {"description": "less"},
    ],
)
def test_an_agent_cannot_move_its_own_goalposts(change: dict[str, Any]) -> None:
    story = msgspec.structs.replace(STORY, depends_on=("US-000",), verify=("pytest",))
    verdict = judge(evidence(story=story, delta=edited(story, **change)))
    assert len(verdict.notices) == 1
    assert "restored" in verdict.notices[0]
    assert all(isinstance(c, SetFields) and set(c.fields) == {"state"} for c in verdict.changes)


def test_notes_and_priorities_are_the_agents_to_write() -> None:
    verdict = judge(evidence(delta=edited(notes="used bcrypt", priority=3)))
    assert verdict.changes[0] == SetFields("US-001", {"notes": "used bcrypt", "priority": 3})
    assert not verdict.notices


def test_new_stories_are_kept_and_start_open() -> None:
    new = Story(id="US-003", title="Rate limit")
    assert AddStory(new, "US-002") in judge(evidence(delta=Delta(added=(Added(new, "US-002"),)))).changes
    done = msgspec.structs.replace(new, state=State.DONE)
    verdict = judge(evidence(delta=Delta(added=(Added(done, "US-002"),))))
    assert not [c for c in verdict.changes if isinstance(c, AddStory)]
    assert "new stories start open" in verdict.notices[0]


def test_removed_stories_and_changed_checks_come_back() -> None:
    notices = judge(evidence(delta=Delta(removed=("US-002",), checks_changed=True))).notices
    assert any("US-002 was removed; restored" in n for n in notices)
    assert any("check commands were changed; restored" in n for n in notices)


def test_a_plan_that_cannot_be_read_is_put_back_whole() -> None:
    verdict = judge(evidence(delta=None, plan_problem="not JSON"))
    assert verdict.kind is Kind.ACCEPTED
    assert "was restored: not JSON" in verdict.notices[0]


# Review

WAITING = msgspec.structs.replace(STORY, review=Review(ReviewStatus.NEEDS_REVIEW, 1))


def review(status: ReviewStatus | None, feedback: str = "", **fields: Any) -> Verdict:
    delta = edited(WAITING, review=Review(status, 2, feedback))
    basic: dict[str, Any] = {"mode": Mode.REVIEW, "story": WAITING, "changed": (), "claim": None, "delta": delta}
    return judge(evidence(**(basic | fields)))


def test_an_approval_completes_the_story_and_counts() -> None:
    verdict = review(ReviewStatus.APPROVED)
    assert verdict.completes
    assert verdict.changes == (SetFields("US-001", {"review": Review(ReviewStatus.APPROVED, 2), "state": State.DONE}),)


def test_requested_changes_need_words() -> None:
    assert review(ReviewStatus.CHANGES_REQUESTED, "off by one").kind is Kind.ACCEPTED
    assert review(ReviewStatus.CHANGES_REQUESTED).kind is Kind.REJECTED


def test_an_approval_against_failing_checks_is_rejected() -> None:
    assert review(ReviewStatus.APPROVED, checks=(FAIL,)).kind is Kind.REJECTED


def test_a_review_that_edits_code_is_rejected() -> None:
    verdict = review(ReviewStatus.APPROVED, changed=("src/login.py",))
    assert verdict.kind is Kind.REJECTED
    assert "must not change files" in verdict.headline


def asked(count: int, policy: OnCap = OnCap.APPROVE, **fields: Any) -> Verdict:
    story = msgspec.structs.replace(WAITING, review=Review(ReviewStatus.NEEDS_REVIEW, count))
    delta = edited(story, review=Review(ReviewStatus.CHANGES_REQUESTED, count + 1, "off by one"))
    basic: dict[str, Any] = {"mode": Mode.REVIEW, "story": story, "changed": (), "claim": None, "delta": delta}
    return judge(evidence(**(basic | {"review_cap": 3, "on_cap": policy} | fields)))


def test_below_the_cap_changes_are_requested_and_at_the_cap_the_policy_decides() -> None:
    assert not asked(1).completes
    approved = asked(2)
    assert approved.completes
    [change] = approved.changes
    assert isinstance(change, SetFields)
    assert change.fields["review"] == Review(ReviewStatus.APPROVED, 3, "[AUTO-APPROVED AT CAP] off by one")
    assert asked(2, OnCap.HUMAN).kind is Kind.BLOCKED
    [failed] = asked(2, OnCap.FAIL).changes
    assert isinstance(failed, SetFields)
    assert failed.fields["state"] is State.FAILED


def test_nothing_is_approved_at_the_cap_against_failing_checks() -> None:
    verdict = asked(2, checks=(FAIL,))
    assert not verdict.completes
    assert "the checks fail" in verdict.headline


def test_a_reviewer_can_answer_in_the_request_file_in_any_layout() -> None:
    finding = Finding("the limit is off by one", "src/login.py:12", "high", "POST /login answers 200")
    said = Answer(ReviewStatus.CHANGES_REQUESTED, "", (finding,))
    verdict = review(ReviewStatus.NEEDS_REVIEW, delta=Delta(), answer=said)
    [change] = verdict.changes
    assert isinstance(change, SetFields)
    words = "- [high] src/login.py:12: the limit is off by one (criterion: POST /login answers 200)"
    assert change.fields["review"] == Review(ReviewStatus.CHANGES_REQUESTED, 2, words)
    approved = review(ReviewStatus.NEEDS_REVIEW, delta=None, answer=Answer(ReviewStatus.APPROVED))
    assert approved.completes, "a plan it broke is put back; what it said counts"


def test_a_reviewers_edits_are_never_kept_as_somebodys_work() -> None:
    verdict = review(ReviewStatus.NEEDS_REVIEW, changed=("src/login.py",))
    assert not verdict.kind.keeps_work


def test_a_review_without_a_verdict_is_rejected_or_follows_its_cause() -> None:
    assert review(ReviewStatus.NEEDS_REVIEW).kind is Kind.REJECTED
    assert review(ReviewStatus.NEEDS_REVIEW, outcome=Outcome(trouble=Trouble.LIMIT)).kind is Kind.LIMIT
    assert review(None).kind is Kind.REJECTED


# Properties

results = st.builds(
    CheckResult,
    name=st.just("c"),
    command=st.just("c"),
    passed=st.booleans(),
    code=st.integers(0, 2),
    required=st.booleans(),
)
evidences = st.builds(
    evidence,
    mode=st.sampled_from([Mode.IMPLEMENT, Mode.FIX, Mode.REVIEW]),
    ended=st.builds(
        Ended, how=st.sampled_from(How), code=st.sampled_from([None, 0, 1]), signal=st.sampled_from([None, 9])
    ),
    outcome=st.builds(
        Outcome,
        finished=st.booleans(),
        ok=st.booleans(),
        promised=st.booleans(),
        trouble=st.sampled_from([None, *Trouble]),
    ),
    changed=st.sampled_from([(), ("a",)]),
    claim=st.sampled_from([None, *Claim]),
    question=st.sampled_from(["", "why?"]),
    checks=st.lists(results, max_size=3).map(tuple),
    passed_before=st.sampled_from([None, True, False]),
    review=st.booleans(),
    claim_is_implied=st.booleans(),
    interrupted=st.booleans(),
    delta=st.sampled_from([Delta(), None, edited(state=State.DONE), edited(review=Review(ReviewStatus.APPROVED, 1))]),
)


@given(evidences)
def test_nothing_is_ever_done_against_a_failing_check(given_evidence: Evidence) -> None:
    verdict = judge(given_evidence)
    if any(c.required and not c.passed for c in given_evidence.checks):
        assert not verdict.completes
        assert not verdict.kind.keeps_work or given_evidence.mode is Mode.REVIEW


@given(evidences)
def test_the_same_evidence_gives_the_same_verdict_after_a_trip_through_the_journal(given_evidence: Evidence) -> None:
    read_back = msgspec.json.decode(msgspec.json.encode(given_evidence), type=Evidence)
    assert judge(read_back) == judge(given_evidence)


@given(evidences)
def test_every_verdict_has_a_headline(given_evidence: Evidence) -> None:
    assert judge(given_evidence).headline.strip()


ASKED = hear(Ledger(), [Finding("off by one")], "", 1).ledger
CIRCLING = msgspec.structs.replace(WAITING, ledger=answer(Ledger(ASKED.entries), [])[0])


@pytest.mark.parametrize(
    ("policy", "checks", "kind", "state", "feedback"),
    [
        (OnCap.HUMAN, (PASS,), Kind.BLOCKED, None, "off by one"),
        (OnCap.APPROVE, (PASS,), Kind.ACCEPTED, State.DONE, "[AUTO-APPROVED AT STALEMATE] off by one"),
        (OnCap.APPROVE, (FAIL,), Kind.ACCEPTED, State.FAILED, "off by one"),
        (OnCap.FAIL, (PASS,), Kind.ACCEPTED, State.FAILED, "off by one"),
    ],
)
def test_a_stalemate_ends_as_the_policy_says(
    policy: OnCap, checks: tuple[CheckResult, ...], kind: Kind, state: State | None, feedback: str
) -> None:
    said = edited(CIRCLING, review=Review(ReviewStatus.CHANGES_REQUESTED, 2, "off by one"))
    verdict = review(None, story=CIRCLING, on_stalemate=policy, checks=checks, delta=said)
    (change,) = verdict.changes
    assert isinstance(change, SetFields)
    assert (verdict.kind, change.fields.get("state"), change.fields["review"].feedback) == (kind, state, feedback)


def test_a_stalemate_does_not_use_up_the_cap() -> None:
    said = edited(CIRCLING, review=Review(ReviewStatus.CHANGES_REQUESTED, 2, "off by two, now"))
    assert review(None, story=CIRCLING, delta=said).headline == "changes requested: off by two, now"


# Without any check


def test_unclaimed_work_without_any_check_is_kept() -> None:
    verdict = judge(evidence(claim=None, checks=(), unchecked=True))
    assert verdict.kind is Kind.PARTIAL
    assert verdict.headline == "the agent did not claim the story as done"


def test_unclaimed_work_is_not_kept_where_a_check_did_not_run_or_something_is_wrong() -> None:
    assert judge(evidence(claim=None, checks=())).kind is Kind.REJECTED, "as recorded before there was such a rule"
    broken = evidence(claim=None, checks=(), unchecked=True, repository_trouble="history was rewritten")
    assert judge(broken).kind is Kind.REJECTED
    assert judge(evidence(claim=None, checks=(), unchecked=True, objections=("no",))).kind is Kind.REJECTED


def test_a_session_whose_own_tests_failed_last_is_not_accepted_where_nothing_else_speaks() -> None:
    failed = msgspec.structs.replace(OK, tests_failed="pytest -q")
    verdict = judge(evidence(checks=(), unchecked=True, outcome=failed))
    assert (verdict.kind, verdict.completes) == (Kind.PARTIAL, False)
    assert verdict.headline == "the last test run of the session failed: pytest -q"
    assert judge(evidence(checks=(), unchecked=True)).kind is Kind.ACCEPTED
    assert judge(evidence(outcome=failed)).kind is Kind.ACCEPTED, "the loop's own checks have passed since"
