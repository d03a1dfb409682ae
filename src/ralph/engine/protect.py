"""Protected files: the agent's changes to them are undone before the deciding checks run."""

from __future__ import annotations

import msgspec

from ralph.core.evidence import Evidence
from ralph.core.plan import Mode
from ralph.core.run_ports import Attempt
from ralph.core.text import one_line
from ralph.core.work_tree import Inspection, PutBack
from ralph.engine.run import Run

_FEW = 5


def protect(run: Run, attempt: Attempt, inspection: Inspection) -> tuple[Inspection, tuple[str, ...]]:
    """Restore protected files. Returns the new inspection and notices.

    If one cannot be restored, none of the work can be kept: the checks would run with the agent's version.
    """
    is_protected = run.watchers.is_protected
    if attempt.mode is Mode.REVIEW or is_protected is None:  # a review changes nothing: all of it is undone
        return inspection, ()
    done = run.tree.put_back(attempt.checkpoint, is_protected, _name(run, attempt))
    if not done.paths and not done.left:
        return inspection, ()
    now = run.tree.inspect(attempt.checkpoint)
    left = tuple(f"{one_line(path, 100)} is protected and could not be restored" for path in done.left[:_FEW])
    notices = (*left, *inspection.notices, *now.notices)
    return msgspec.structs.replace(now, sound=now.sound and not left, notices=notices), _told(done)


def protect_again(run: Run, attempt: Attempt, evidence: Evidence) -> Evidence:
    """Checks run the agent's code, which may write files. Only files that existed before are restored."""
    if run.watchers.is_protected is None or not evidence.checks or attempt.mode is Mode.REVIEW:
        return evidence
    done = run.tree.put_back(attempt.checkpoint, run.watchers.is_protected, _name(run, attempt), also_new=False)
    if not done.paths and not done.left:
        return evidence
    some = ", ".join(one_line(path, 60) for path in (*done.paths, *done.left)[:_FEW])
    objection = f"protected files changed while the checks ran: {some}"
    return msgspec.structs.replace(
        evidence, notices=(*evidence.notices, *_told(done)), objections=(*evidence.objections, objection)
    )


def _name(run: Run, attempt: Attempt) -> str:
    """A name beside that of the iteration's own rescue ref."""
    return f"{run.id}/{attempt.number}-protected"


def _told(done: PutBack) -> tuple[str, ...]:
    if not done.paths:
        return ()
    some = ", ".join(one_line(path, 60) for path in done.paths[:_FEW])
    more = f" and {len(done.paths) - _FEW} more" if len(done.paths) > _FEW else ""
    where = f"; the agent's version is in {done.ref}" if done.ref else ""
    return (f"restored protected files: {some}{more}{where}",)
