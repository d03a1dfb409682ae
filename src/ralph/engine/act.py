"""Act: run the steps, then find out what they left. The result is evidence, not what the agent reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.agent import Outcome, Trouble
from ralph.core.errors import BadData, LockHeld, RalphError, StoppedNow, UsageError
from ralph.core.events import Noted, SessionTaken
from ralph.core.evidence import CheckResult, Ended, Evidence, How
from ralph.core.plan import Mode
from ralph.core.ports import Session, StepContext
from ralph.core.requests import Request
from ralph.core.review import ReviewStatus
from ralph.core.run_ports import Attempt
from ralph.core.text import one_line
from ralph.core.work_tree import Inspection
from ralph.engine.evidence import gather, note_checks, prove, share, take_request
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
from ralph.state.names import INTERNAL_ERROR

_VERDICT_TIME = 300.0
"""Seconds for a session that only has to write down its verdict."""
_LONGEST_ERROR = 400


class Acted(Struct, frozen=True, kw_only=True):
    """What is known about a session, stage by stage."""

    attempt: Attempt
    """Once the stages have run, its checkpoint has what somebody else changed meanwhile."""
    taken: SessionTaken
    inspection: Inspection = Inspection("")
    notices: tuple[str, ...] = ()
    """What was restored."""
    left: str = ""
    """What could not be restored."""
    logged: str = ""
    is_as_shared: bool = False
    """The loop has written no file since it told apart who changed what."""
    evidence: Evidence

    @property
    def wants_commit(self) -> bool:
        """A step asks for a commit, or files that the agent committed itself were restored."""
        return self.taken.commit or bool(self.notices and self.inspection.commits)


def act(run: Run, attempt: Attempt, feedback: str, admit: Callable[[], str]) -> Acted:
    """`admit`: why no further agent may start."""
    sessions = Sessions(run, attempt, feedback, admit)
    try:
        if attempt.mode in (Mode.ACCEPTANCE, Mode.EXAM):
            return _tests_written(run, attempt, sessions)
        return _examine(run, attempt, _run_steps(sessions))
    except Exception as error:
        if not sessions.ran or not is_about_the_work(error):
            raise
        ended, outcome = sessions.ran[-1]
        taken = SessionTaken(iteration=attempt.number, ended=ended, outcome=outcome, request=Request())
        evidence = with_error(_basic(run, attempt, taken), error, run.places.folder)
        return Acted(attempt=attempt, taken=taken, evidence=evidence)


def _basic(run: Run, attempt: Attempt, taken: SessionTaken) -> Evidence:
    """The evidence before anything is examined."""
    return Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=taken.ended,
        outcome=taken.outcome,
        rules=run.rules.verdict,
        reviewer=attempt.reviewer,
        interrupted=run.control.stop.requested,
    )


# The sessions


class Sessions:
    """The agents of one iteration. Steps start them; how they ended is kept here."""

    def __init__(self, run: Run, attempt: Attempt, feedback: str, admit: Callable[[], str]) -> None:
        self.run, self.attempt, self.admit = run, attempt, admit
        self._feedback = feedback
        self.ran: list[tuple[Ended, Outcome]] = []
        self.started: list[Session] = []
        is_setup = attempt.mode is Mode.SETUP and run.steps.setup is not None
        self.steps = run.steps.setup if is_setup and run.steps.setup else run.steps.work

    def start(self, config: dict[str, Any], deadline: float | None) -> tuple[Ended, Outcome]:
        run = self.run
        if self.ran and (why := self.admit()):  # the first was just decided; what it did is judged without the next
            return Ended(How.NOT_RUN, detail=why), Outcome(trouble=Trouble.LIMIT, detail=why)
        session = run.agents.session(self.attempt, config, self._feedback)
        own = config.get("timeout")  # a third-party step may hand on anything
        longest = own if isinstance(own, int | float) else run.rules.patience.total
        total = min((t for t in (longest, deadline) if t), default=None)
        patience = msgspec.structs.replace(run.rules.patience, total=total)
        self.started.append(session)
        self.ran.append(run.agents.run(session, str(config.get("name") or "agent"), patience))
        return self.ran[-1]

    def context(self, deadline: float | None) -> StepContext:
        return StepContext(
            root=self.run.places.root,
            repo=self.run.places.repo,
            story=self.attempt.story,
            mode=self.attempt.mode,
            iteration=self.attempt.number,
            deadline=deadline,
            run_command=self.run.proof.checks.run_command,
            run_agent=self.start,
        )


def _run_steps(sessions: Sessions) -> SessionTaken:
    """Run the steps, and ask a reviewer once more who gave no verdict."""
    run, attempt = sessions.run, sessions.attempt
    try:
        passed, unusable = sessions.steps.run(sessions.context, attempt.number), None
    except (BadData, UsageError) as error:  # the iteration is closed like any other, so that the user can fix it
        passed, unusable = Passed((_unusable(error),)), error
    ended, outcome = sessions.ran[-1] if sessions.ran else (Ended(How.NOT_RUN, code=0), Outcome())
    request = take_request(run, attempt, outcome)
    is_asked = attempt.mode is Mode.REVIEW and sessions.started and unusable is None
    if is_asked and _lacks_verdict(run, attempt, ended, outcome, request):
        if why := sessions.admit():
            run.journal.write(Noted(f"the reviewer gave no verdict and was not asked again: {why}", warning=True))
        else:
            ended, outcome, request = _ask_for_verdict(run, attempt, sessions.started[-1], outcome, request)
    if unusable is not None:
        outcome = msgspec.structs.replace(outcome, trouble=Trouble.SETTINGS, detail=_told(unusable))
    if passed.checks:  # other steps than agents have run
        note_checks(run, attempt.begun)
    return SessionTaken(
        iteration=attempt.number,
        ended=ended,
        outcome=outcome,
        request=request,
        checks=passed.checks,
        commit=passed.commit,
    )


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
    task = msgspec.structs.replace(session.task, verdict_only=True)
    again = msgspec.structs.replace(session, prompt=prompt, task=task)
    patience = run.rules.patience
    if first.text.strip():
        patience = msgspec.structs.replace(patience, total=min(patience.total or _VERDICT_TIME, _VERDICT_TIME))
    ended, outcome = run.agents.run(again, "verdict", patience)
    request = take_request(run, attempt, outcome)
    known = [cost for cost in (first.cost_usd, outcome.cost_usd) if cost is not None]
    outcome = msgspec.structs.replace(
        outcome, tokens=first.used + outcome.tokens, cost_usd=sum(known) if known else None
    )
    return ended, outcome, msgspec.structs.replace(request, learned=request.learned or left.learned)


def _unusable(error: RalphError) -> CheckResult:
    return CheckResult(name="settings", command="settings", passed=False, tail=_told(error))


def _told(error: RalphError) -> str:
    return f"{error} ({error.hint})" if error.hint else str(error)


# The stages after the sessions


def _take_out_others(run: Run, acted: Acted) -> Acted:
    attempt, notices = share(run, acted.attempt, rules=False)
    return msgspec.structs.replace(acted, attempt=attempt, notices=(*acted.notices, *notices), is_as_shared=True)


def _restore_rules(run: Run, acted: Acted) -> Acted:
    page = run.watchers.put_back(acted.attempt.number, acted.attempt.story)
    return msgspec.structs.replace(
        acted,
        notices=(*acted.notices, *filter(None, (page.told,))),
        left=acted.left or page.left,
        logged=acted.logged or page.logged,
        is_as_shared=acted.is_as_shared and not page.wrote,
    )


def _inspect(run: Run, acted: Acted) -> Acted:
    """The tree, with protected files restored."""
    found = run.tree.inspect(acted.attempt.checkpoint, as_shared=acted.is_as_shared)
    inspection, notices = protect(run, acted.attempt, found)
    return msgspec.structs.replace(acted, inspection=inspection, notices=(*acted.notices, *notices))


def _read_plan(run: Run, acted: Acted) -> Acted:
    attempt, unsure = with_plan(run, acted.attempt)
    return msgspec.structs.replace(acted, attempt=attempt, notices=(*acted.notices, *unsure))


def _record(run: Run, acted: Acted) -> Acted:
    if acted.taken.tree:  # by the loop that was killed
        return acted
    inspection = acted.inspection
    taken = msgspec.structs.replace(acted.taken, tree=inspection.tree, commits=inspection.commits)
    run.journal.write(taken)
    return msgspec.structs.replace(acted, taken=taken)


def _gather(run: Run, acted: Acted) -> Acted:
    evidence = gather(run, acted.attempt, acted.taken, acted.inspection, acted.logged)
    return msgspec.structs.replace(acted, evidence=evidence)


def _conclude(run: Run, acted: Acted) -> Acted:
    """The evidence with what was restored, and protected files restored again."""
    evidence = msgspec.structs.replace(
        acted.evidence,
        notices=(*acted.notices, *acted.evidence.notices),
        objections=(*acted.evidence.objections, *filter(None, (acted.left,))),
    )
    return msgspec.structs.replace(acted, evidence=protect_again(run, acted.attempt, evidence))


STAGES: tuple[Callable[[Run, Acted], Acted], ...] = (
    _take_out_others,  # first: what somebody else changed is neither judged nor undone
    _restore_rules,  # before the tree is inspected, which would have the agent's version of them
    _inspect,
    _read_plan,  # whose edits these are is known from what was taken out
    _record,  # before the checks, which take long: after a kill they are repeated, and not the session
    _gather,
    _restore_rules,  # checks run the agent's code
    _conclude,
)


def _examine(run: Run, attempt: Attempt, taken: SessionTaken) -> Acted:
    acted = Acted(attempt=attempt, taken=taken, evidence=_basic(run, attempt, taken))
    for stage in STAGES:
        acted = stage(run, acted)
    return acted


def examine_again(run: Run, attempt: Attempt, taken: SessionTaken) -> Acted | None:
    """The same for a session whose loop was killed while the checks ran. None: files or commits are not as the session
    left them."""
    inspection = run.tree.inspect(attempt.checkpoint)
    if (inspection.tree, inspection.commits) != (taken.tree, taken.commits):
        return None
    return _examine(run, attempt, taken)


def prove_again(run: Run, attempt: Attempt, evidence: Evidence) -> tuple[Evidence, Inspection]:
    """Inspect and check the tree again, after a hook or a check changed it. The session's own part stays."""
    taken = SessionTaken(iteration=attempt.number, ended=evidence.ended, outcome=evidence.outcome, request=Request())
    acted = Acted(attempt=attempt, taken=taken, evidence=evidence)
    acted = _inspect(run, _restore_rules(run, acted))
    inspection = acted.inspection
    changed = tuple(path for path in inspection.changed if not run.places.is_own(path))
    checks, proof, interrupted = prove(run, attempt, inspection, changed)
    evidence = msgspec.structs.replace(
        evidence,
        changed=changed,
        repository_trouble=evidence.repository_trouble or "; ".join(() if inspection.sound else inspection.notices),
        notices=(*evidence.notices, *acted.notices),
        checks=(*(check for check in evidence.checks if check.name not in {new.name for new in checks}), *checks),
        proof=proof,
        objections=tuple(filter(None, (acted.left,))),
        interrupted=interrupted,
    )
    return protect_again(run, attempt, evidence), inspection


def _tests_written(run: Run, attempt: Attempt, sessions: Sessions) -> Acted:
    """A session that writes tests only. An exam belongs to no story, so its session cannot ask about one."""
    ended, outcome = sessions.start(sessions.steps.agent_config, None)
    # To tell who wrote a file takes a snapshot, and with that hidden tests would be in the repository.
    attempt, shared = share(run, attempt, files=not run.proof.acceptance.is_hidden)
    request = run.requests.take()
    page = run.watchers.put_back(attempt.number, attempt.story)
    is_exam = attempt.mode is Mode.EXAM
    taker = run.proof.exam if is_exam else run.proof.acceptance
    written = taker.take(attempt, f"{run.id}/{attempt.number}-{attempt.mode.value}")
    inspection = written.inspection
    taken = SessionTaken(iteration=attempt.number, ended=ended, outcome=outcome, request=request)
    evidence = msgspec.structs.replace(
        _basic(run, attempt, taken),
        changed=tuple(path for path in inspection.changed if not run.places.is_own(path)),
        repository_trouble="; ".join(() if inspection.sound else inspection.notices),
        notices=(*shared, *written.notices, *filter(None, (page.told,))),
        objections=(*written.objections, *filter(None, (page.left,))),
        acceptance=written.tests,
        exam=written.stories,
        exam_passed=written.passed,
        question="" if is_exam else request.ask or request.waiting,
        waiting="" if is_exam else request.waiting,
        learned=() if is_exam or run.proof.acceptance.is_hidden else request.learned,
    )
    return Acted(attempt=attempt, taken=taken, inspection=inspection, evidence=evidence)


# Errors


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
        file = folder / INTERNAL_ERROR
        import traceback  # only for a bug

        write_text(file, redact("".join(traceback.format_exception(error))))
        said = f"an error inside Ralph ({type(error).__name__}: {said}); please report it with {file}"
    return msgspec.structs.replace(evidence, error=one_line(said, _LONGEST_ERROR))
