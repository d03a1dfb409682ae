"""Evidence: what a session left, by its request, its edits of the plan, and checks that the loop runs itself."""

from __future__ import annotations

import time

import msgspec

from ralph.core.agent import Outcome
from ralph.core.authorship import Session as SessionRecord
from ralph.core.authorship import Span
from ralph.core.changes import Delta
from ralph.core.events import SessionTaken
from ralph.core.evidence import CheckResult, Claim, Evidence
from ralph.core.plan import Mode
from ralph.core.proof import Proof
from ralph.core.requests import Request, answer_at_the_end, read_request
from ralph.core.review import ReviewStatus
from ralph.core.run_ports import Attempt
from ralph.core.text import clean
from ralph.core.work_tree import Inspection
from ralph.engine.plan_text import plan_edits
from ralph.engine.run import Run

_MOST_LOGGED = 2000
_MOST_ADDED = 1000
"""Stories. More are a mistake or an attack, and each costs time in every later step."""


def gather(run: Run, attempt: Attempt, taken: SessionTaken, inspection: Inspection, logged: str) -> Evidence:
    """Run the checks, if there is something to check, and put together all that `judge` needs.

    `logged`: what the agent added to the progress log.
    """
    outcome, request = taken.outcome, taken.request
    trouble = list(() if inspection.sound else inspection.notices)
    if misplaced := run.plan.misplaced(attempt.reading):
        trouble.append(misplaced)
    edits, problem = plan_edits(run, attempt)
    notices = [request.problem] if request.problem else []
    if edits is not None and len(edits.added) > _MOST_ADDED:
        many = f"{len(edits.added):,} stories were added to the plan; one session may add {_MOST_ADDED:,}"
        notices.append(f"{many}, so none of them was taken")
        edits = msgspec.structs.replace(edits, added=())
    changed = tuple(path for path in inspection.changed if not run.places.is_own(path))
    claim = _claim(request, edits, attempt)
    looks = attempt.mode is Mode.REVIEW or (attempt.story is not None and attempt.story.is_review_step)
    is_claimed = claim is not None or outcome.promised or run.rules.verdict.claim_is_implied
    continues = is_claimed and not changed and claim is not Claim.ALREADY and _has_earlier_work(run, attempt)
    is_needed = bool(changed or continues or claim is Claim.ALREADY or looks or request.replies)
    checks, proof, interrupted = taken.checks, None, run.control.stop.requested
    if is_needed:
        more, proof, interrupted = prove(
            run, attempt, inspection, changed, taken.checks, is_claimed=is_claimed, continues=continues
        )
        checks += more
    required = [check.passed for check in checks if check.required]
    return Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=taken.ended,
        outcome=outcome,
        rules=run.rules.verdict,
        changed=changed,
        continues=continues,
        repository_trouble="; ".join(trouble),
        notices=tuple(notices),
        delta=edits,
        plan_problem=problem,
        claim=claim,
        question=request.ask or request.waiting,
        waiting=request.waiting,
        checks=checks,
        check_set=run.proof.checks.check_set if checks else "",
        proof=proof,
        passed_before=all(required) if required and not changed else None,
        answer=request.review if attempt.mode is Mode.REVIEW else None,
        reviewer=attempt.reviewer,
        replies=request.replies if attempt.mode is Mode.FIX else (),
        learned=request.learned,
        logged=clean(logged)[:_MOST_LOGGED],
        has_review_fields=attempt.reading.plan.reviewed,
        unchecked=bool(changed) and not checks and not interrupted,
        open_after=_open_besides(attempt),
        interrupted=interrupted,
    )


def prove(
    run: Run,
    attempt: Attempt,
    inspection: Inspection,
    changed: tuple[str, ...],
    before: tuple[CheckResult, ...] = (),
    *,
    is_claimed: bool = True,
    continues: bool = False,
) -> tuple[tuple[CheckResult, ...], Proof | None, bool]:
    """Run the checks, then find out what they are worth: checks, proof, and whether the run is stopping.

    `before`: checks that have run as steps. Work that is not claimed is kept as well, so its tests are compared, too.
    """
    if run.control.stop.requested:
        return (), None, True
    begun = run.control.clock()
    when = "review" if attempt.mode is Mode.REVIEW else "story"
    plan = attempt.reading.plan  # as it was before: an agent does not choose its own checks
    candidate = run.proof.prover.candidate(attempt, inspection)
    checks = run.proof.checks(plan, attempt.story, when, attempt.number, candidate)
    note_checks(run, begun)
    if attempt.mode is Mode.REVIEW:
        return checks, run.proof.prover.known(attempt.work.story), run.control.stop.requested
    passed = all(check.passed for check in (*before, *checks) if check.required)
    proof = None
    if (changed or continues) and passed and not run.control.stop.requested:
        proof = run.proof.prover.prove(attempt, candidate, is_claimed=is_claimed)
        note_checks(run, begun)
    return checks, proof, run.control.stop.requested


def _has_earlier_work(run: Run, attempt: Attempt) -> bool:
    """A session before this one left work that passed its checks, and did not claim it."""
    story = attempt.story
    if story is None or attempt.mode is not Mode.IMPLEMENT or story.is_review_step or not story.attempts:
        return False
    return run.proof.prover.has_kept(story.id)


def _claim(request: Request, edits: Delta | None, attempt: Attempt) -> Claim | None:
    story = attempt.story
    if request.claim is not None:
        return request.claim
    if request.complete or (request.replies and attempt.mode is Mode.FIX):
        return Claim.DONE
    edited = edits.of(story.id) if edits and story else None
    if edited is None:
        return None
    submitted = edited.new.review.status in (ReviewStatus.NEEDS_REVIEW, ReviewStatus.APPROVED)
    if edited.new.is_done or (submitted and edited.new.review.status is not edited.old.review.status):
        return Claim.DONE
    return None


def _open_besides(attempt: Attempt) -> int:
    return sum(not story.is_done and story.id != attempt.work.story for story in attempt.reading.plan.stories)


def take_request(run: Run, attempt: Attempt, outcome: Outcome) -> Request:
    """The agent's request file. A review or a fix may have answered through the client's schema instead, or at the
    end of its last message."""
    left = run.requests.take()
    if attempt.mode not in (Mode.REVIEW, Mode.FIX):
        return left
    answered = read_request(outcome.structured.encode()) if outcome.structured else answer_at_the_end(outcome.text)
    return msgspec.structs.replace(
        left,
        claim=left.claim or answered.claim,
        ask=left.ask or answered.ask,
        review=left.review or answered.review,
        replies=left.replies or answered.replies,
        learned=left.learned or answered.learned,
    )


def share(run: Run, attempt: Attempt, *, files: bool = True, rules: bool = True) -> tuple[Attempt, tuple[str, ...]]:
    """The attempt without what somebody else changed in its working tree meanwhile, and notices about that.

    Without `rules`, the rules are left out: they are restored, unless a person committed them.
    """

    def is_ours(path: str) -> bool:
        return run.places.is_own(path) or (not rules and run.watchers.is_rule(path))

    shared = run.tree.share(attempt.checkpoint, is_ours, files=files)
    if shared.committed:
        run.watchers.accept(shared.committed)
    return msgspec.structs.replace(attempt, checkpoint=shared.checkpoint, shared=shared), shared.notices


def note_checks(run: Run, begun: float) -> None:
    """What changed since then may be the work of commands that the loop started."""
    now = time.time()  # as files have it; the run's own clock is ahead of it after the system's was set back
    run.tree.note_session(SessionRecord(life=Span(now - (run.control.clock() - begun), now), is_agent=False))
