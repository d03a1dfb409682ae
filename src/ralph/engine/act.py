"""Act: run the steps, then inspect the tree. The result is evidence, not what the agent reported."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.agent import Outcome, Trouble
from ralph.core.authorship import Session as SessionRecord
from ralph.core.authorship import Span
from ralph.core.changes import Delta
from ralph.core.errors import BadData, LockHeld, RalphError, StoppedNow, UsageError
from ralph.core.events import Noted, SessionTaken
from ralph.core.evidence import CheckResult, Claim, Ended, Evidence, How
from ralph.core.plan import Mode
from ralph.core.ports import Session, StepContext
from ralph.core.proof import Proof
from ralph.core.requests import Request, answer_at_the_end, read_request
from ralph.core.review import ReviewStatus
from ralph.core.run_ports import Attempt, PageBack
from ralph.core.text import clean, one_line
from ralph.core.work_tree import Inspection
from ralph.engine.plan_text import plan_edits, with_plan
from ralph.engine.protect import protect, protect_again
from ralph.engine.run import Run
from ralph.engine.steps import Passed
from ralph.host.file_copies import CopyLost
from ralph.host.files import is_disk_trouble, write_text
from ralph.host.git.locks import GitBusy
from ralph.host.git.repo import RepositoryReplaced
from ralph.host.redaction import redact
from ralph.prompts.review import verdict_prompt

_VERDICT_TIME = 300.0
"""Seconds for a session that only has to write down its verdict."""

_MOST_LOGGED = 2000
_MOST_ADDED = 1000
"""Stories. More are a mistake or an attack, and each costs time in every later step."""
_LONGEST_ERROR = 400
BUG = "internal-error.log"
RunAgent = Callable[[dict[str, Any], float | None], tuple[Ended, Outcome]]


Acted = tuple[Attempt, Evidence, Inspection, bool]


def act(run: Run, attempt: Attempt, feedback: str, admit: Callable[[], str]) -> Acted:
    """The evidence, the tree, and whether the steps ask for a commit. `admit`: why no further agent may start.

    The attempt that is returned has a checkpoint with what somebody else changed meanwhile.
    """
    ran: list[tuple[Ended, Outcome]] = []
    sessions: list[Session] = []

    def run_agent(config: dict[str, Any], deadline: float | None) -> tuple[Ended, Outcome]:
        if ran and (why := admit()):  # the first one was just decided; what it has done is judged without the next
            return Ended(How.NOT_RUN, detail=why), Outcome(trouble=Trouble.LIMIT, detail=why)
        session = run.agents.session(attempt, config, feedback)
        own = config.get("timeout")  # a third-party step may hand on anything
        longest = own if isinstance(own, int | float) else run.rules.patience.total
        total = min((t for t in (longest, deadline) if t), default=None)
        patience = msgspec.structs.replace(run.rules.patience, total=total)
        sessions.append(session)
        ran.append(run.agents.run(session, str(config.get("name") or "agent"), patience))
        return ran[-1]

    def context(deadline: float | None) -> StepContext:
        return StepContext(
            root=run.places.root,
            repo=run.places.repo,
            story=attempt.story,
            mode=attempt.mode,
            iteration=attempt.number,
            deadline=deadline,
            run_command=run.proof.checks.run_command,
            run_agent=run_agent,
        )

    try:
        return _examined(run, attempt, admit, run_agent, context, ran, sessions)
    except Exception as error:
        if not ran or not is_about_the_work(error):
            raise
        ended, outcome = ran[-1]
        evidence = Evidence(
            mode=attempt.mode,
            story=attempt.story,
            ended=ended,
            outcome=outcome,
            rules=run.rules.verdict,
            reviewer=attempt.reviewer,
            interrupted=run.control.stop.requested,
        )
        return attempt, with_error(evidence, error, run.places.folder), Inspection(""), False


def _examined(
    run: Run,
    attempt: Attempt,
    admit: Callable[[], str],
    run_agent: RunAgent,
    context: Callable[[float | None], StepContext],
    ran: list[tuple[Ended, Outcome]],
    sessions: list[Session],
) -> Acted:
    """Run the steps and examine what they left. `ran` and `sessions` are filled by `run_agent`."""
    steps = run.steps.setup if attempt.mode is Mode.SETUP and run.steps.setup else run.steps.work
    if attempt.mode in (Mode.ACCEPTANCE, Mode.EXAM):
        ended, outcome = run_agent(steps.agent_config, None)
        # To tell who wrote a file takes a snapshot, and with that hidden tests would be in the repository.
        attempt, shared = share(run, attempt, files=not run.proof.acceptance.is_hidden)
        return _written_evidence(run, attempt, ended, outcome, shared)
    try:
        passed, unusable = steps.run(context, attempt.number), None
    except (BadData, UsageError) as error:  # the iteration is closed like any other, so that the user can fix it
        passed, unusable = Passed((_unusable(error),)), error
    ended, outcome = ran[-1] if ran else (Ended(How.NOT_RUN, code=0), Outcome())
    request = _request(run, attempt, outcome) if attempt.mode is Mode.REVIEW else None
    if request and sessions and unusable is None and _lacks_verdict(run, attempt, ended, outcome, request):
        if why := admit():
            run.journal.write(Noted(f"the reviewer gave no verdict and was not asked again: {why}", warning=True))
        else:
            ended, outcome, request = _ask_for_verdict(run, attempt, sessions[-1], outcome, request)
    if unusable is not None:
        outcome = msgspec.structs.replace(outcome, trouble=Trouble.SETTINGS, detail=_told(unusable))
    if passed.checks:  # other steps than agents have run
        note_checks(run, attempt.begun)
    taken = SessionTaken(
        iteration=attempt.number,
        ended=ended,
        outcome=outcome,
        request=request or _request(run, attempt, outcome),
        checks=passed.checks,
        commit=passed.commit,
    )
    return _weigh(run, attempt, taken)


def weigh_again(run: Run, attempt: Attempt, taken: SessionTaken) -> Acted | None:
    """The same for a session whose loop was killed while the checks ran. None: files or commits are not as the session
    left them."""
    inspection = run.tree.inspect(attempt.checkpoint)
    if (inspection.tree, inspection.commits) != (taken.tree, taken.commits):
        return None
    return _weigh(run, attempt, taken)


def _weigh(run: Run, attempt: Attempt, taken: SessionTaken) -> Acted:
    """Inspect the tree and run the checks. What the session left is recorded first: after a kill, the checks are
    repeated, and not the session."""
    attempt, shared = share(run, attempt, rules=False)
    inspection, page, notices = _inspect(run, attempt)
    attempt, unsure = with_plan(run, attempt)
    notices = (*shared, *notices, *unsure)
    if not taken.tree:
        taken = msgspec.structs.replace(taken, tree=inspection.tree, commits=inspection.commits)
        run.journal.write(taken)
    ended, outcome, request = taken.ended, taken.outcome, taken.request
    evidence = _evidence(run, attempt, ended, outcome, inspection, request, taken.checks, page.logged)
    again = run.watchers.put_back(attempt.number, attempt.story)  # checks run the agent's code
    notices += (again.told,) if again.told else ()
    if left := page.left or again.left:
        evidence = msgspec.structs.replace(evidence, objections=(*evidence.objections, left))
    told = msgspec.structs.replace(evidence, notices=(*notices, *evidence.notices))
    evidence = protect_again(run, attempt, told)
    # Protected files that an agent committed itself are also restored by a commit.
    return attempt, evidence, inspection, taken.commit or bool(notices and inspection.commits)


def _written_evidence(run: Run, attempt: Attempt, ended: Ended, outcome: Outcome, shared: tuple[str, ...]) -> Acted:
    """Of a session that writes tests only. An exam belongs to no story, so its session cannot ask about one."""
    request = run.requests.take()
    page = run.watchers.put_back(attempt.number, attempt.story)
    is_exam = attempt.mode is Mode.EXAM
    taker = run.proof.exam if is_exam else run.proof.acceptance
    written = taker.take(attempt, f"{run.id}/{attempt.number}-{attempt.mode.value}")
    inspection = written.inspection
    evidence = Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=ended,
        outcome=outcome,
        rules=run.rules.verdict,
        changed=tuple(path for path in inspection.changed if not run.places.is_own(path)),
        repository_trouble="; ".join(() if inspection.sound else inspection.notices),
        notices=(*shared, *written.notices, *((page.told,) if page.told else ())),
        objections=(*written.objections, *((page.left,) if page.left else ())),
        acceptance=written.tests,
        exam=written.stories,
        exam_passed=written.passed,
        question="" if is_exam else request.ask or request.waiting,
        waiting="" if is_exam else request.waiting,
        learned=() if is_exam or run.proof.acceptance.is_hidden else request.learned,
        interrupted=run.control.stop.requested,
    )
    return attempt, evidence, inspection, False


def prove_again(run: Run, attempt: Attempt, evidence: Evidence) -> tuple[Evidence, Inspection]:
    """Inspect and check the tree again, after a hook or a check changed it. The session's own part stays."""
    inspection, page, notices = _inspect(run, attempt)
    changed = tuple(path for path in inspection.changed if not run.places.is_own(path))
    checks, proof, interrupted = _prove(run, attempt, inspection, changed)
    objections = (page.left,) if page.left else ()
    evidence = msgspec.structs.replace(
        evidence,
        changed=changed,
        repository_trouble=evidence.repository_trouble or "; ".join(() if inspection.sound else inspection.notices),
        notices=(*evidence.notices, *notices),
        checks=(*(check for check in evidence.checks if check.name not in {new.name for new in checks}), *checks),
        proof=proof,
        objections=objections,
        interrupted=interrupted,
    )
    return protect_again(run, attempt, evidence), inspection


def _inspect(run: Run, attempt: Attempt) -> tuple[Inspection, PageBack, tuple[str, ...]]:
    page = run.watchers.put_back(attempt.number, attempt.story)
    inspection, notices = protect(run, attempt, run.tree.inspect(attempt.checkpoint))
    return inspection, page, (*notices, *((page.told,) if page.told else ()))


def _unusable(error: RalphError) -> CheckResult:
    return CheckResult(name="settings", command="settings", passed=False, tail=_told(error))


def _told(error: RalphError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)


def _evidence(
    run: Run,
    attempt: Attempt,
    ended: Ended,
    outcome: Outcome,
    inspection: Inspection,
    request: Request,
    step_checks: tuple[CheckResult, ...],
    logged: str,
) -> Evidence:
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
    is_needed = bool(changed or claim is Claim.ALREADY or looks or request.replies)
    is_claimed = claim is not None or outcome.promised or run.rules.verdict.claim_is_implied
    checks, proof, interrupted = step_checks, None, run.control.stop.requested
    if is_needed:
        more, proof, interrupted = _prove(run, attempt, inspection, changed, step_checks, is_claimed=is_claimed)
        checks += more
    required = [check.passed for check in checks if check.required]
    return Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=ended,
        outcome=outcome,
        rules=run.rules.verdict,
        changed=changed,
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


def _prove(
    run: Run,
    attempt: Attempt,
    inspection: Inspection,
    changed: tuple[str, ...],
    before: tuple[CheckResult, ...] = (),
    *,
    is_claimed: bool = True,
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
    if changed and passed and not run.control.stop.requested:
        proof = run.proof.prover.prove(attempt, candidate, is_claimed=is_claimed)
        note_checks(run, begun)
    return checks, proof, run.control.stop.requested


def _lacks_verdict(run: Run, attempt: Attempt, ended: Ended, outcome: Outcome, request: Request) -> bool:
    """Whether a review ended normally, without a question and without a verdict."""
    if not ended.well or outcome.trouble or run.control.stop.requested or attempt.story is None:
        return False
    if request.review or request.ask or request.waiting:
        return False
    edits, _ = plan_edits(run, attempt)
    edited = edits.of(attempt.story.id) if edits else None
    return edited is None or edited.new.review.status in (None, ReviewStatus.NEEDS_REVIEW)


def _ask_for_verdict(
    run: Run, attempt: Attempt, session: Session, first: Outcome, left: Request
) -> tuple[Ended, Outcome, Request]:
    """Ask once more in a short session that shows the exact form. The iteration's cost includes both sessions."""
    assert attempt.story is not None
    run.journal.write(Noted("the reviewer gave no verdict; asking once more with the exact form"))
    prompt = verdict_prompt(session.prompt, attempt.story, first.text, session.request)
    again = msgspec.structs.replace(session, prompt=prompt, verdict_only=True)
    patience = run.rules.patience
    if first.text.strip():
        patience = msgspec.structs.replace(patience, total=min(patience.total or _VERDICT_TIME, _VERDICT_TIME))
    ended, outcome = run.agents.run(again, "verdict", patience)
    request = _request(run, attempt, outcome)
    known = [cost for cost in (first.cost_usd, outcome.cost_usd) if cost is not None]
    outcome = msgspec.structs.replace(
        outcome, tokens=first.used + outcome.tokens, cost_usd=sum(known) if known else None
    )
    return ended, outcome, msgspec.structs.replace(request, learned=request.learned or left.learned)


def _open_besides(attempt: Attempt) -> int:
    return sum(not story.is_done and story.id != attempt.work.story for story in attempt.reading.plan.stories)


def _request(run: Run, attempt: Attempt, outcome: Outcome) -> Request:
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


def is_about_the_work(error: Exception) -> bool:
    """Whether an error says something about the agent's work, and is judged like a failed check.

    Git refuses to commit a file, a check's folder has become a link, refs are in each other's way: without a verdict no
    attempt would be counted, and every later run would fail in the same way. A full disk, a lock held by another
    program, a replaced repository and a lost state folder say nothing about the work; those errors end the run. An
    error nobody foresaw is a bug of ours that this work brought out: it costs the iteration, not the night, and its
    traceback is kept.
    """
    if not isinstance(error, RalphError | OSError):
        return not isinstance(error, MemoryError)
    of_others = RepositoryReplaced | CopyLost | GitBusy | LockHeld | StoppedNow
    return not isinstance(error, of_others) and not is_disk_trouble(error)


def with_error(evidence: Evidence, error: Exception, folder: Path) -> Evidence:
    """The same evidence with the error as the reason against keeping the work. `folder`: for the traceback of a bug."""
    said = str(error)
    if not isinstance(error, RalphError | OSError):
        file = folder / BUG
        write_text(file, redact("".join(traceback.format_exception(error))))
        said = f"an error inside Ralph ({type(error).__name__}: {said}); please report it with {file}"
    return msgspec.structs.replace(evidence, error=one_line(said, _LONGEST_ERROR))
