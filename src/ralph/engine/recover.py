"""Recover: finish or undo what a killed run left open, from its journal and nothing else.

A run that announced it would keep the work keeps it; any other open iteration is undone, with the work saved.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.events import (
    AgentStarted,
    AnyEvent,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    RunEnded,
    Settling,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.moves import Reason, Work
from ralph.core.ports import Reading
from ralph.core.verdict import Verdict
from ralph.engine.ground import Attempt, Ground, Inspection
from ralph.engine.judge import judge
from ralph.engine.prepare import AFTER, BEFORE
from ralph.engine.settle import finish, keep, trailers_for, undo
from ralph.host.repo import RepositoryReplaced
from ralph.host.tree import ProcessId, end_left_behind

_GRACE = 5.0


class Open(Struct, frozen=True):
    """An iteration without an end, and how far it came."""

    started: IterationStarted
    agent: AgentStarted | None = None
    judged: Judged | None = None
    settling: Settling | None = None
    committed: Committed | None = None


def find_open(events: Iterable[AnyEvent]) -> Open | None:
    found: Open | None = None
    for event in events:
        if isinstance(event, IterationStarted):
            found = Open(event)
        elif isinstance(event, IterationEnded):
            found = None
        elif found is not None:
            found = _further(found, event)
    return found


def _further(found: Open, event: AnyEvent) -> Open:
    change = msgspec.structs.replace
    match event:
        case AgentStarted():
            return change(found, agent=event)
        case Judged():
            return change(found, judged=event)
        case Settling():
            return change(found, settling=event, committed=None)
        case Committed():
            return change(found, committed=event)
        case _:
            return found


def recover(ground: Ground, records: list[Record]) -> str:
    """Close a killed run. `ground` is that run's own. Says in one line what was done."""
    found = find_open(record.event for record in records)
    agent = ProcessId(found.agent.pid, found.agent.start) if found and found.agent else None
    ended = end_left_behind(agent, ("RALPH_RUN", ground.run), _GRACE)
    what = f"ended {ended} process{'' if ended == 1 else 'es'} of run {ground.run}" if ended else ""
    if found is not None:
        try:
            done = _close(ground, found)
        except RepositoryReplaced as error:
            done = _give_up(ground, found, error)
        what = f"{what}; {done}" if what else done
    if not any(isinstance(record.event, RunEnded) for record in records):
        ground.journal.write(RunEnded(Reason.INTERRUPTED, "killed; closed by the next run"))
    return what


def _close(ground: Ground, found: Open) -> str:
    attempt, name = _attempt(ground, found)
    before = attempt.reading
    if not ground.tree.knows(attempt.checkpoint):
        raise RepositoryReplaced(f"the repository in {ground.repo} has not got the files of its checkpoint")
    if found.settling is None or found.judged is None:
        evidence = _interrupted(attempt)
        return _undo(ground, attempt, evidence, judge(evidence), before, f"undid {name}, which was cut short")
    target: Reading = ground.book.undump((ground.folder / AFTER).read_bytes())
    evidence, verdict = found.judged.evidence, found.judged.verdict
    if not found.settling.keep:
        return _undo(ground, attempt, evidence, verdict, target, f"finished undoing {name}")
    return _keep(ground, attempt, found, target, f"finished keeping {name}")


def _attempt(ground: Ground, found: Open) -> tuple[Attempt, str]:
    """The iteration as it was begun, and what to call it."""
    started = found.started
    before: Reading = ground.book.undump((ground.folder / BEFORE).read_bytes())
    attempt = Attempt(
        number=started.iteration,
        work=Work(started.story, started.mode),
        story=before.plan.story(started.story) if started.story else None,
        attempt=started.attempt,
        reading=before,
        checkpoint=started.checkpoint,
        begun=ground.clock(),
    )
    return attempt, f"iteration {started.iteration} ({started.story or started.mode.value})"


def _give_up(ground: Ground, found: Open, error: RepositoryReplaced) -> str:
    """Another repository is in the place of the one that was worked in: only the plan can be put back."""
    attempt, name = _attempt(ground, found)
    ground.book.write(attempt.reading)
    evidence = _interrupted(attempt)
    finish(ground, attempt, evidence, judge(evidence), Inspection(""), attempt.reading)
    return f"{name} cannot be undone, only the plan is as it was before it: {error}"


def _keep(ground: Ground, attempt: Attempt, found: Open, target: Reading, what: str) -> str:
    assert found.settling is not None
    assert found.judged is not None
    evidence, verdict = found.judged.evidence, found.judged.verdict
    inspection = Inspection(found.settling.tree)
    ground.book.write(target)
    commit = found.committed.commit if found.committed else ""
    commit = commit or ground.tree.find_commit(trailers_for(ground.run, attempt.number, attempt.work.story))
    if not commit and found.settling.commit:
        made = keep(ground, attempt, inspection, found.settling.message)
        if made is not None and made.refused is not None:
            evidence = msgspec.structs.replace(evidence, checks=(*evidence.checks, made.refused))
            verdict = judge(evidence)
            ground.journal.write(Judged(attempt.number, evidence, verdict))
            return _undo(ground, attempt, evidence, verdict, attempt.reading, f"undid what a hook refused: {what}")
        commit = made.commit if made else ""
    finish(ground, attempt, evidence, verdict, inspection, target, commit=commit)
    return what


def _undo(ground: Ground, attempt: Attempt, evidence: Evidence, verdict: Verdict, target: Reading, what: str) -> str:
    undone = undo(ground, attempt.checkpoint, attempt.number, verdict, target)
    finish(ground, attempt, evidence, verdict, Inspection(""), target, rescue=undone.ref)
    return f"{what}; the work is in {undone.ref}" if undone.ref else what


def _interrupted(attempt: Attempt) -> Evidence:
    return Evidence(
        mode=attempt.mode,
        story=attempt.story,
        ended=Ended(How.STOPPED, detail="the loop was killed"),
        outcome=Outcome(),
        interrupted=True,
    )
