"""What is known about each attempt, from the journals of real runs."""

from __future__ import annotations

from ralph.core.review import Fate, ReviewStatus
from ralph.views.attempts import FAILED, Attempts, SpanKind
from ralph.views.run_view import RunView
from support.loops import LoopProject


def attempts(view: RunView) -> list[tuple[str, str, str]]:
    return [(each.story, each.mode.value, each.verdict) for each in view.attempts.by_iteration.values()]


def test_every_iteration_is_an_attempt_with_its_verdict(view: RunView) -> None:
    assert attempts(view) == [
        ("US-001", "implement", "accepted"),
        ("US-001", "review", "accepted"),
        ("US-001", "fix", "accepted"),
        ("US-001", "review", "accepted"),
        ("US-002", "implement", "rejected"),
        ("US-002", "implement", "accepted"),
        ("US-002", "review", "accepted"),
        ("US-003", "implement", "blocked"),
    ]
    assert [each.iteration for each in view.attempts.of("US-002")] == [5, 6, 7]
    assert [each.number for each in view.attempts.of("US-002") if each.mode == "implement"] == [1, 2]


def test_an_accepted_attempt_has_claim_proof_checks_commit_and_cost(view: RunView, made: LoopProject) -> None:
    first = view.attempts.by_iteration[1]
    assert (first.claim, first.cost_usd, first.tokens.total) == ("done", 0.25, 1200)
    assert first.proof is not None
    assert first.proof.where == "checkout"
    assert made.git("diff", "--name-only", first.proof.tree, first.commit) == ".ralph/words/tasks.json"
    assert [(check.when, check.result.name, check.result.passed) for check in first.checks] == [
        ("story", "words", True)
    ]
    assert made.git("rev-parse", f"{first.commit}^{{commit}}") == first.commit
    assert first.message.startswith("feat(US-001)")
    assert "src/moved.txt" in first.changed
    [session] = first.sessions
    assert (session.agent, session.tools) == ("scripted", 6)
    assert session.until is not None
    assert first.until is not None
    assert first.since <= session.since <= session.until <= first.until


def test_a_rejected_attempt_has_its_reason_its_output_and_its_work(view: RunView, made: LoopProject) -> None:
    lost = view.attempts.by_iteration[5]
    assert lost.ended is not None
    assert lost.ended.headline == "check 'words' failed with exit code 1"
    [failing] = lost.failing
    assert "checking" in failing.result.tail
    assert not lost.commit
    assert made.git("rev-parse", lost.rescue) == lost.rescue_commit


def test_findings_keep_their_fate(view: RunView) -> None:
    review, fix = view.attempts.by_iteration[2], view.attempts.by_iteration[3]
    assert review.answer is ReviewStatus.CHANGES_REQUESTED
    assert [finding.text for finding in review.findings] == ["never <closed>"]
    assert [(reply.id, reply.reason) for reply in fix.replies] == [("F1", "closed")]
    [entry] = view.findings("US-001")
    assert (entry.id, entry.fate, entry.finding.place) == ("F1", Fate.CLOSED, "src/a:1")


def test_a_question_is_kept(view: RunView) -> None:
    assert view.attempts.by_iteration[8].question == "Which <colour>?"
    assert view.questions() == {"US-003": "Which <colour>?"}


def test_checks_of_the_run_belong_to_no_attempt(view: RunView) -> None:
    assert {check.when for check in view.attempts.of_run} == {"baseline"}
    assert all(check.when == "story" or each.mode == "review" for each in view.attempts.by_iteration.values()
               for check in each.checks)  # fmt: skip


def test_spans_lie_in_their_attempt_and_all_have_ended(view: RunView, many_view: RunView) -> None:
    for each in (view, many_view):
        for span in each.attempts.spans:
            assert span.until is not None
            assert span.since <= span.until
            if attempt := each.attempts.by_iteration.get(span.iteration):
                assert attempt.until is not None
                assert attempt.since <= span.since <= span.until <= attempt.until
                assert (span.story, span.worker) == (attempt.story, attempt.worker) or span.kind is SpanKind.PROOF


def test_work_that_is_red_merged_is_returned_with_the_proof_that_failed(many_view: RunView) -> None:
    [back] = [each for each in many_view.attempts.by_iteration.values() if each.verdict == "returned"]
    assert back.merged is not None
    assert not back.merged.passed
    assert back.queued is not None
    [failed] = [span for span in many_view.attempts.spans if span.kind is SpanKind.PROOF and span.label == FAILED]
    assert failed.story == back.story
    assert sorted({span.worker for span in many_view.attempts.spans if span.kind is SpanKind.AGENT}) == [1, 2]
    again = [each.verdict for each in many_view.attempts.of(back.story)]
    assert again == ["returned", "accepted"]


def test_the_runs_own_checks_are_separate_stretches_at_its_beginning_and_its_end(many_view: RunView) -> None:
    """However short the run: what its workers did in between was no check of the run."""
    own = [span for span in many_view.attempts.spans if span.kind is SpanKind.CHECKS and not span.iteration]
    assert len(own) == 2
    first = min(attempt.since for attempt in many_view.attempts.by_iteration.values())
    last = max(attempt.until or 0 for attempt in many_view.attempts.by_iteration.values())
    assert own[0].until is not None
    assert own[0].until <= first < last <= own[1].since


def test_nothing_is_known_of_an_empty_journal() -> None:
    empty = Attempts()
    assert (empty.by_iteration, empty.spans, list(empty.of("US-001"))) == ({}, [], [])
