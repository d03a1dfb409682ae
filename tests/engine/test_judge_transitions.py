"""The table of transitions in the loop: every line that the Stop hook refuses is put right here too, and told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ralph.core.agent import Outcome
from ralph.core.changes import AddStory, Delta, SetFields, delta
from ralph.core.evidence import CheckResult, Claim, Ended, How
from ralph.core.fallback import next_reviewer
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import NO_REVIEW, Answer, Fate, Finding, Ledger, Reply, Review, ReviewStatus, answer, hear
from ralph.core.transitions import illegal_transitions
from ralph.core.verdict import Kind, Verdict
from ralph.engine.judge import judge
from ralph.engine.prepare import attempt_number
from support.evidence import evidence_of

PASS = CheckResult(name="tests", command="pytest", passed=True, code=0)
NEEDS = Review(ReviewStatus.NEEDS_REVIEW, 1)
CHANGES = Review(ReviewStatus.CHANGES_REQUESTED, 1, "off by one")
APPROVED = Review(ReviewStatus.APPROVED, 2)


def story(id: str = "US-001", review: Review = NO_REVIEW, *, done: bool = False, **fields: Any) -> Story:
    return Story(id=id, title="t", review=review, state=State.DONE if done else State.TODO, **fields)


def plan(*stories: Story) -> Plan:
    return Plan(name="p", stories=stories, reviewed=True)


def judged(mode: Mode, before: list[Story], after: list[Story], **fields: Any) -> Verdict:
    basic: dict[str, Any] = {
        "mode": mode,
        "story": before[0],
        "ended": Ended(How.EXITED, code=0),
        "outcome": Outcome(finished=True, ok=True),
        "changed": () if mode is Mode.REVIEW else ("a.py",),
        "claim": None if mode is Mode.REVIEW else Claim.DONE,
        "checks": (PASS,),
        "delta": delta(plan(*before), plan(*after)),
        "review": True,
        "has_review_fields": True,
    }
    return judge(evidence_of(basic | fields))


def after_all(verdict: Verdict) -> dict[str, object]:
    """What the plan will say of the story in the end."""
    found: dict[str, object] = {}
    for change in verdict.changes:
        if isinstance(change, SetFields) and change.story == "US-001":
            found |= change.fields
    return found


SUBMITTED = Review(ReviewStatus.NEEDS_REVIEW, 0)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ([story(done=True)], "passes false → true: implement iterations cannot set passes"),
        ([story(review=APPROVED, done=True)], "reviewStatus null → 'approved': implement iterations cannot approve"),
        ([story(review=Review(None, 1))], "reviewCount 0 → 1: implement iterations cannot change reviewCount"),
        ([story(review=SUBMITTED)], ""),
        ([story(review=SUBMITTED), story("US-002")], ""),
        ([story(review=SUBMITTED), story("US-002", done=True)], "a new story starts with passes false"),
        ([], "stories cannot be removed"),
    ],
)
def test_an_implementation_is_only_submitted_whatever_it_wrote(after: list[Story], words: str) -> None:
    verdict = judged(Mode.IMPLEMENT, [story()], after)
    assert (verdict.kind, verdict.completes) == (Kind.ACCEPTED, False)
    assert after_all(verdict)["review"] == SUBMITTED
    assert "state" not in after_all(verdict)
    assert any(words in notice and "(corrected)" in notice for notice in verdict.notices) == bool(words)
    assert len(verdict.notices) == len(illegal_transitions(plan(story()), plan(*after), Mode.IMPLEMENT))
    kept = [change.story.id for change in verdict.changes if isinstance(change, AddStory)]
    assert kept == [each.id for each in after[1:] if not each.is_done]


def test_another_story_is_not_submitted_along_with_its_own() -> None:
    two = [story(), story("US-002")]
    verdict = judged(Mode.IMPLEMENT, two, [story(review=SUBMITTED), story("US-002", SUBMITTED)])
    assert [change.story for change in verdict.changes if isinstance(change, SetFields)] == ["US-001"]
    assert "one story per iteration may be submitted for review" in verdict.notices[0]
    alone = judged(Mode.IMPLEMENT, two, [story(), story("US-002", SUBMITTED)])
    assert alone.notices == ("story US-002 was marked needs_review; restored to todo: one story per iteration",)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (story(review=CHANGES, done=True), "a fix cannot approve"),
        (story(review=Review(ReviewStatus.APPROVED, 1), done=True), "a fix cannot approve"),
        (story(review=NEEDS), ""),
        (story(review=Review(ReviewStatus.NEEDS_REVIEW, 2)), "a fix cannot change reviewCount"),
        (story(review=Review(ReviewStatus.NEEDS_REVIEW, 1, "off by one")), "clear the feedback"),
    ],
)
def test_a_fix_goes_back_to_review_whatever_it_wrote(after: Story, words: str) -> None:
    verdict = judged(Mode.FIX, [story(review=CHANGES)], [after])
    assert (verdict.kind, verdict.completes) == (Kind.ACCEPTED, False)
    assert after_all(verdict) == {"review": NEEDS}
    assert any(words in notice for notice in verdict.notices) == bool(words)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (story(review=APPROVED, done=True), ""),
        (story(review=Review(ReviewStatus.APPROVED, 1), done=True), "a review must increment reviewCount by 1"),
        (story(review=APPROVED), "an approved story has passes true"),
        (story(review=Review(ReviewStatus.CHANGES_REQUESTED, 2, "off by one")), ""),
        (story(review=CHANGES), "a review must increment reviewCount by 1"),
        (story(review=Review(ReviewStatus.CHANGES_REQUESTED, 2, "off by one"), done=True), "has passes false"),
    ],
)
def test_a_review_counts_once_whatever_number_it_wrote(after: Story, words: str) -> None:
    verdict = judged(Mode.REVIEW, [story(review=NEEDS)], [after])
    assert verdict.kind is Kind.ACCEPTED
    review = after_all(verdict)["review"]
    assert isinstance(review, Review)
    assert (review.count, review.status) == (2, after.review.status)
    assert verdict.completes == (review.status is ReviewStatus.APPROVED)
    assert any(words in notice for notice in verdict.notices) == bool(words)


BESIDE = story("US-002", NEEDS)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ([story(review=NEEDS), BESIDE], "no verdict"),
        ([story(review=APPROVED, done=True), story("US-002", APPROVED, done=True)], "the one story it reviews"),
        ([story(review=APPROVED, done=True), story("US-002", NEEDS, done=True)], "the one story it reviews"),
        ([story(review=APPROVED, done=True)], "a review must not remove stories: US-002"),
        ([story(review=APPROVED, done=True), BESIDE, story("US-003")], "a review must not add stories: US-003"),
        (
            [story(review=APPROVED, done=True, criteria=("less",)), BESIDE],
            "must not change the criteria of story US-001",
        ),
        (
            [story(review=APPROVED, done=True), story("US-002", NEEDS, verify=("true",))],
            "the check commands of story US-002",
        ),
    ],
)
def test_a_review_that_meddles_with_the_plan_is_repeated(after: list[Story], words: str) -> None:
    verdict = judged(Mode.REVIEW, [story(review=NEEDS), BESIDE], after)
    assert (verdict.kind, verdict.completes, verdict.changes) == (Kind.REJECTED, False, ())
    assert any(words in reason for reason in verdict.reasons)
    answered = judged(Mode.REVIEW, [story(review=NEEDS), BESIDE], after, answer=Answer(ReviewStatus.APPROVED))
    assert answered.kind is (Kind.ACCEPTED if words == "no verdict" else Kind.REJECTED)


def test_what_was_put_back_in_the_tree_is_told_after_a_review_too() -> None:
    verdict = judged(
        Mode.REVIEW, [story(review=NEEDS)], [story(review=APPROVED, done=True)], notices=("it was put back",)
    )
    assert verdict.notices == ("it was put back",)


def test_a_reviewer_that_promises_too_soon_is_told_too() -> None:
    promised = Outcome(finished=True, ok=True, promised=True)
    after = [story(review=APPROVED, done=True)]
    fields: dict[str, Any] = {"outcome": promised, "promises_all": True}
    assert judged(Mode.REVIEW, [story(review=NEEDS)], after, **fields).notices == ()
    told = judged(Mode.REVIEW, [story(review=NEEDS)], after, **fields, open_after=1)
    assert (told.completes, "1 story is still open" in told.notices[0]) == (True, True)


def test_ids_that_nobody_knows_ask_for_nothing() -> None:
    said = Answer(ReviewStatus.CHANGES_REQUESTED, "", (Finding("", id="F9"),))
    verdict = judged(Mode.REVIEW, [story(review=NEEDS)], [story(review=NEEDS)], answer=said)
    assert verdict.reasons == ("changes requested, but none described",)


def test_a_story_that_waits_after_several_reviewers_always_says_for_what() -> None:
    ledger = hear(Ledger(), [Finding("off by one")], "tests", 1).ledger
    turned_down, _ = answer(Ledger(ledger.entries), _replies("F1"))
    waiting = story(review=NEEDS, ledger=msgspec.structs.replace(turned_down, heard=("quality",)))
    said = Answer(ReviewStatus.CHANGES_REQUESTED, "", (Finding("still off by one", id="F1"),))
    verdict = judged(
        Mode.REVIEW, [waiting], [waiting], answer=said, reviewer="tests", reviewers=("quality", "tests"), delta=Delta()
    )
    assert verdict.kind is Kind.BLOCKED
    review = after_all(verdict)["review"]
    assert isinstance(review, Review)
    assert "still off by one" in review.feedback


def test_a_round_of_reviewers_goes_on_where_it_was_cut_short() -> None:
    """What they have said is kept beside the plan, so a killed run does not ask them again."""
    names = ("quality", "tests", "security")
    half = story(review=NEEDS, ledger=Ledger(heard=("quality",)))
    assert (next_reviewer(names, half), attempt_number(half, Mode.REVIEW, names)) == ("tests", 5)
    assert next_reviewer(names, story(review=NEEDS)) == "quality"
    said = judged(Mode.REVIEW, [half], [half], answer=Answer(ReviewStatus.APPROVED), reviewer="tests", reviewers=names)
    assert (said.completes, said.headline) == (False, "tests approves; security reviews next")


def test_a_review_of_ten_megabytes_in_the_plan_is_cut() -> None:
    much = Review(ReviewStatus.CHANGES_REQUESTED, 2, "- it is wrong\n" * 700_000)
    review = after_all(judged(Mode.REVIEW, [story(review=NEEDS)], [story(review=much)]))["review"]
    assert isinstance(review, Review)
    assert len(review.feedback) <= 8000


def _replies(*ids: str) -> list[Reply]:
    return [Reply(each, Fate.REJECTED, "it is right") for each in ids]
