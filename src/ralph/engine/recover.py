"""Recover: finish or undo what a killed run left open, using only its journal.

If the journal says that the work was to be kept, it is kept; any other open iteration is undone, with the work saved.
What somebody else changed after the last sign of life is not the dead agent's: it stays. Where that cannot be told,
nothing is undone, and the user is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.authorship import Session, Span
from ralph.core.environment import run_marks, workers_of
from ralph.core.errors import PlanError, RalphError, SetupError
from ralph.core.events import (
    CLOSED_LATER,
    AgentStarted,
    AnyEvent,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Noted,
    Queued,
    Record,
    RunEnded,
    SessionTaken,
    Settling,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.exit_codes import ExitCode
from ralph.core.fallback import next_reviewer
from ralph.core.moves import Reason, Work
from ralph.core.plan import Mode
from ralph.core.ports import Reading
from ralph.core.run_ports import Attempt
from ralph.core.text import plural
from ralph.core.verdict import Kind
from ralph.core.work_tree import Inspection
from ralph.engine.act import examine_again, is_about_the_work
from ralph.engine.evidence import share
from ralph.engine.judge import judge
from ralph.engine.plan_text import write_plan
from ralph.engine.proof_trailers import AGENT_COMMIT
from ralph.engine.run import Run
from ralph.engine.settle import (
    Judgement,
    finish,
    journal_agent_commits,
    judge_and_record,
    keep,
    mark_setup,
    settle,
    settle_changed,
    settle_refused,
    track,
    trailers_for,
    undo,
)
from ralph.host.file_copies import CopyLost
from ralph.host.files import read_state
from ralph.host.git.refs import MovedMeanwhile
from ralph.host.git.repo import RepositoryReplaced
from ralph.host.git.rescue import PREFIX as RESCUE
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import end_left_behind
from ralph.state.names import AGENTS_ENDED, ALIVE, PLAN_AFTER, PLAN_BEFORE

_GRACE = 5.0
_FEW = 5
_CALM_TRIES = 3
_LAST_WORDS = 5.0
"""Seconds after the last sign of life of a loop in which its agent may still have written."""


class NotUndone(SetupError):
    """A killed run is closed, but its work is left as it is: the user has to look at it."""

    exit_code = ExitCode.WAITING


class Open(Struct, frozen=True):
    """An iteration without an end record, and how far it got."""

    started: IterationStarted
    agent: AgentStarted | None = None
    taken: SessionTaken | None = None
    judged: Judged | None = None
    settling: Settling | None = None
    committed: Committed | None = None


def open_since(records: Iterable[Record]) -> float:
    """When the first agent of the open iteration started; without one, when the iteration did."""
    since, has_agent = 0.0, False
    for record in records:
        if isinstance(record.event, IterationStarted):
            since, has_agent = record.t, False
        elif isinstance(record.event, AgentStarted) and not has_agent:
            since, has_agent = record.t, True
    return since


class Unmerged(Struct, frozen=True):
    """An iteration of a worker without an end record. With a `queued` one its work is accepted, and waits on a ref."""

    started: IterationStarted
    judged: Judged | None = None
    queued: Queued | None = None


def find_open(events: Iterable[AnyEvent]) -> Open | None:
    """The iteration in the run's own tree. Those of workers count from the moment they were about to land there."""
    found: Open | None = None
    workers: dict[int, IterationStarted] = {}
    for event in events:
        if isinstance(event, IterationStarted) and event.worker:
            workers[event.iteration] = event
        elif isinstance(event, IterationStarted):
            found = Open(event)
        elif isinstance(event, Landing) and event.iteration in workers:
            started = workers[event.iteration]
            change = {"checkpoint": event.checkpoint, "plan_digest": event.plan_digest}
            found = Open(msgspec.structs.replace(started, **change))
        elif found is not None and getattr(event, "iteration", found.started.iteration) == found.started.iteration:
            found = None if isinstance(event, IterationEnded) else _further(found, event)
    return found


def find_unmerged(events: Iterable[AnyEvent], *, stopped: bool = False) -> tuple[Unmerged, ...]:
    """The iterations of workers that had not ended and were not about to land.

    `stopped`: also those whose accepted work was still in the queue when the run was stopped.
    """
    found: dict[int, Unmerged] = {}
    change = msgspec.structs.replace
    for event in events:
        match event:
            case IterationStarted(iteration=number, worker=worker) if worker:
                found[number] = Unmerged(event)
            case IterationEnded(iteration=number, kind=Kind.INTERRUPTED) if (
                stopped and number in found and found[number].queued
            ):
                continue
            case IterationEnded(iteration=number) | Landing(iteration=number):
                found.pop(number, None)
            case Judged(iteration=number) if number in found:
                found[number] = change(found[number], judged=event)
            case Queued(iteration=number) if number in found:
                found[number] = change(found[number], queued=event)
    return tuple(found.values())


def _further(found: Open, event: AnyEvent) -> Open:
    change = msgspec.structs.replace
    match event:
        case AgentStarted():
            return change(found, agent=event, taken=None)
        case SessionTaken():
            return change(found, taken=event)
        case Judged():
            # Judged again: a hook refused what was about to be kept, so that is not to be kept any more.
            return change(found, judged=event, settling=None, committed=None)
        case Settling():
            return change(found, settling=event, committed=None)
        case Committed(by_agent=False):
            return change(found, committed=event)
        case _:
            return found


def recover(run: Run, records: list[Record]) -> str:
    """Close a killed run. `run` is that run's own. Returns one line about what was done."""
    found = find_open(record.event for record in records)
    agent = ProcessId(found.agent.pid, found.agent.start) if found and found.agent else None
    mark, mark_in_checkout = run_marks(run.id)
    ended = end_left_behind(agent, mark, _GRACE, mark_in_checkout, *run_marks(workers_of(run.id)))
    what = f"killed {ended} process{'' if ended == 1 else 'es'} of run {run.id}" if ended else ""
    question = ""
    if found is not None:
        last = run.control.clock() if ended else _last_moment(run, records)
        life = Span(open_since(records), last)
        run.tree.note_session(Session(life=life, is_agent=found.agent is not None))
        try:
            done, question = _close_calmly(run, found)
        except (RalphError, OSError) as error:
            if not isinstance(error, RepositoryReplaced | CopyLost) and not is_about_the_work(error):
                raise  # a full disk or a held lock: the next run can still close the iteration
            done = _give_up(run, found, error)
        what = f"{what}; {done}" if what else done
        if not found.started.worker and (
            changed := run.watchers.changed()
        ):  # by the agent or by the user since: only the user can tell
            what += f"; changed since that iteration started: {', '.join(changed[:_FEW])}; check them"
    if unmerged := find_unmerged(record.event for record in records):
        closed = _close_unmerged(run, unmerged)
        what = f"{what}; {closed}" if what else closed
    if not any(isinstance(record.event, RunEnded) for record in records):
        run.journal.write(RunEnded(Reason.INTERRUPTED, CLOSED_LATER))
    if question:
        raise NotUndone(
            f"run {run.id} was killed; its open iteration is closed now: {question}",
            hint="look at these commits (`git log`); undo what is not yours, then `ralph run` continues",
        )
    return what


def _close_unmerged(run: Run, unmerged: Sequence[Unmerged]) -> str:
    """Workers have ended with the loop. What they had not finished is in their clones; what they had is on refs."""
    for one in unmerged:
        started, queued = one.started, one.queued
        when = "before this was merged" if queued else "while a worker was at it"
        ref = f"{RESCUE}{run.id}/{started.iteration}" if queued else ""
        run.journal.write(
            IterationEnded(
                iteration=started.iteration,
                story=started.story,
                title=started.title,
                mode=started.mode,
                kind=Kind.INTERRUPTED,
                headline=f"the run was killed {when}",
                files=one.judged.evidence.changed[:100] if one.judged else (),
                rescue=ref,
            )
        )
    queued_too = sum(one.queued is not None for one in unmerged)
    what = f"interrupted {plural(len(unmerged), 'iteration')} of its workers"
    return what + (f"; the accepted work of {queued_too} is merged now" if queued_too else "")


def _last_moment(run: Run, records: list[Record]) -> float:
    """Until when an agent of the killed loop may have written."""
    last = _last_sign(run, records)
    with contextlib.suppress(OSError):
        if (ended := (run.places.folder / AGENTS_ENDED).stat().st_mtime) >= last:
            return ended
    return last + _LAST_WORDS


def _last_sign(run: Run, records: list[Record]) -> float:
    """When the killed loop was last known to be alive."""
    try:
        return max(records[-1].t, (run.places.folder / ALIVE).stat().st_mtime)
    except OSError:
        return records[-1].t


def _close_calmly(run: Run, found: Open) -> tuple[str, str]:
    """A person may commit in this very moment: then look again whose commits are there."""
    for _ in range(_CALM_TRIES):
        with contextlib.suppress(MovedMeanwhile):
            return _close(run, found)
    return _close(run, found)


def _close(run: Run, found: Open) -> tuple[str, str]:
    """What was done, and a question for the user if work was not undone."""
    attempt, name = _attempt(run, found)
    before = attempt.reading
    if not run.tree.knows(attempt.checkpoint):
        raise RepositoryReplaced(f"the repository in {run.places.repo} does not have the files of its checkpoint")
    if commit := _commit_made(run, found):
        target = _reading(run, PLAN_AFTER)
        target = write_plan(run, attempt, target)  # a run that ended with an error has restored the plan
        track(run, attempt, target)
        return _finish_kept(run, attempt, found, target, commit, name), ""
    if attempt.mode is Mode.ACCEPTANCE and found.settling is None:
        run.proof.acceptance.discard(attempt)  # before a snapshot: hidden tests must not be in the repository
    attempt, notices = share(run, attempt)
    for notice in notices:
        run.journal.write(Noted(notice, warning=True))
    can_undo = attempt.shared is None or attempt.shared.can_undo
    taken = found.taken if found.judged is None and can_undo else None
    if taken is not None and (done := _judge_now(run, attempt, taken, name)):
        return done, ""
    if found.settling is None or found.judged is None or (found.settling.keep and not can_undo):
        evidence = _interrupted(attempt)
        judged = Judgement(attempt, evidence, Inspection(""), judge(evidence))
        return _undo(run, judged, before, f"undid {name}, which was interrupted", notices)
    target = _reading(run, PLAN_AFTER)
    if not found.settling.keep:
        judged = Judgement(attempt, found.judged.evidence, Inspection(""), found.judged.verdict)
        return _undo(run, judged, target, f"finished undoing {name}", notices)
    return _keep(run, attempt, found, target, name), ""


def _judge_now(run: Run, attempt: Attempt, taken: SessionTaken, name: str) -> str:
    """Judge a session that had ended when its loop was killed. Empty: its work is no longer as it left it."""
    acted = examine_again(run, attempt, taken)
    if acted is None:
        return ""
    judged = judge_and_record(run, acted.attempt, acted.evidence, acted.inspection)
    settle(run, judged, commit=run.rules.commits or acted.wants_commit)
    return f"{name} was killed during its checks; they ran again, and its work was {judged.verdict.kind.value}"


def _attempt(run: Run, found: Open) -> tuple[Attempt, str]:
    """The iteration as it started, and its display name."""
    started = found.started
    before = _reading(run, PLAN_BEFORE)
    story = before.plan.story(started.story) if started.story else None
    attempt = Attempt(
        number=started.iteration,
        work=Work(started.story, started.mode),
        story=story,
        attempt=started.attempt,
        reading=before,
        shown=run.plan.in_progress(before, started.story),
        checkpoint=started.checkpoint,
        begun=run.control.clock(),
        reviewer=next_reviewer(run.rules.verdict.reviewers, story) if started.mode is Mode.REVIEW else "",
    )
    return attempt, f"iteration {started.iteration} ({started.story or started.mode.value})"


def _reading(run: Run, name: str) -> Reading:
    path = run.places.folder / name
    try:
        return run.plan.undump(read_state(path))  # type: ignore[no-any-return]
    except (OSError, msgspec.DecodeError, PlanError) as error:
        raise CopyLost(f"the saved plan {path} could not be read: {error}") from None


def _give_up(run: Run, found: Open, error: RalphError | OSError) -> str:
    """Close an iteration that cannot be rolled back, so that later runs do not fail in the same way."""
    started = found.started
    plan = "the plan was not changed"
    is_undone = found.settling is not None and not found.settling.keep  # then the plan after it counts the attempt
    with contextlib.suppress(CopyLost):
        run.plan.write(_reading(run, PLAN_AFTER if is_undone else PLAN_BEFORE))
        plan = "only the plan was restored"
    what = f"iteration {started.iteration} ({started.story or started.mode.value}) cannot be rolled back"
    run.journal.write(
        IterationEnded(
            iteration=started.iteration,
            story=started.story,
            title=started.title,
            mode=started.mode,
            kind=Kind.INTERRUPTED,
            headline=what,
        )
    )
    return f"{what}, {plan}: {error}"


def _keep(run: Run, attempt: Attempt, found: Open, target: Reading, name: str) -> str:
    assert found.settling is not None
    assert found.judged is not None
    inspection = Inspection(found.settling.tree)
    judged = Judgement(attempt, found.judged.evidence, inspection, found.judged.verdict)
    target = write_plan(run, attempt, target)
    track(run, attempt, target)
    settling = found.settling
    made = keep(run, attempt, inspection, settling.message, settling.proof) if settling.commit else None
    if made is not None and made.refused is not None:
        ended = settle_refused(run, judged, made.refused)
        return _with_rescue(f"undid {name}: a commit hook rejected it", ended.rescue)
    if made is not None and made.changed:
        ended = settle_changed(run, judged, made, is_again=True)
        return _with_rescue(f"undid {name}: files changed after they were checked", ended.rescue)
    return _finish_kept(run, attempt, found, target, made.commit if made else "", name)


def _finish_kept(run: Run, attempt: Attempt, found: Open, target: Reading, commit: str, name: str) -> str:
    assert found.settling is not None
    assert found.judged is not None
    journal_agent_commits(run, attempt.number, found.settling.proof.get(AGENT_COMMIT, ()))
    mark_setup(run, attempt)
    inspection = Inspection(found.settling.tree)
    finish(run, Judgement(attempt, found.judged.evidence, inspection, found.judged.verdict), target, commit=commit)
    return f"finished keeping {name}"


def _commit_made(run: Run, found: Open) -> str:
    """The commit that kept the work, if it was made."""
    if found.settling is None or found.judged is None or not found.settling.commit:
        return ""
    if found.committed is not None:
        return found.committed.commit
    started = found.started
    return run.tree.find_commit(trailers_for(run.id, started.iteration, started.story))


def _undo(run: Run, judged: Judgement, target: Reading, what: str, notices: tuple[str, ...]) -> tuple[str, str]:
    undone = undo(run, judged.attempt, judged.verdict, target)
    ended = finish(run, judged, target, undone=undone)
    return "; ".join((_with_rescue(what, undone.ref), *notices)), ended.ask


def _with_rescue(what: str, ref: str) -> str:
    return f"{what}; the work is in {ref}" if ref else what


def _interrupted(attempt: Attempt) -> Evidence:
    return Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=Ended(How.STOPPED, detail="the loop was killed"),
        outcome=Outcome(),
        interrupted=True,
    )
