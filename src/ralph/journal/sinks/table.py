"""Which files of a workspace a run keeps up to date, by layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ralph.core.ports import Locations, PlanRef
from ralph.journal.sinks import evidence_log, feature_progress, prd_progress, tasks_progress
from ralph.journal.sinks.activity_log import ActivityLog
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.failure_context import FailureContext
from ralph.journal.sinks.learnings import Learnings
from ralph.journal.sinks.markers import Markers, checkpoint, current_story, ralph_active
from ralph.journal.sinks.progress import Entry, Header, Progress
from ralph.journal.sinks.run_log import RunLog
from ralph.journal.sinks.sessions_log import SessionsLog
from ralph.journal.sinks.sink import Sink, Sinks
from ralph.journal.sinks.steps_files import Aggregate, RunStateFile
from ralph.journal.sinks.wording import iso

BESIDE = "learnings.md"
"""In the state folder, for layouts with neither learnings nor a progress log."""

Choose = Callable[[Door, PlanRef, Locations], list[Sink]]


def make_sinks(ref: PlanRef, where: Locations, door: Door, state: Path | None = None) -> Sinks:
    """The sinks of one run, as one listener. A layout that is not in the table has none.

    `state` is the plan's folder in the state folder: learnings go there if the layout has no place for them.
    """
    choose = _BY_LAYOUT.get(ref.layout)
    sinks = choose(door, ref, where) if choose else []
    if state is not None and not where.learnings and not (where.progress and choose):
        sinks.append(Learnings(Door(state), state / BESIDE))
    return Sinks(door, sinks)


def progress_header(layout: str, name: str, at: float) -> str:
    """The header of a progress log in this layout."""
    header = _HEADERS.get(layout)
    return header(name, iso(at)) if header else ""


def _plan_md(door: Door, ref: PlanRef, where: Locations) -> list[Sink]:
    ralph = ref.root / ".ralph"
    return [
        Markers(door, {ralph / "current-story": current_story, ralph / ".checkpoint": checkpoint}),
        *_progress(door, ref, where, prd_progress.entry),
        SessionsLog(door, ralph / "sessions.log"),
        FailureContext(door, ralph / "failure-context.log"),
        ActivityLog(door, ralph / "activity.log"),
        RunLog(door, ref.folder / "runs"),
    ]


def _tasks_json(door: Door, ref: PlanRef, where: Locations) -> list[Sink]:
    return [
        Markers(door, {ref.root / ".ralph-active": ralph_active}),
        *_progress(door, ref, where, tasks_progress.entry),
    ]


def _feature(door: Door, ref: PlanRef, where: Locations) -> list[Sink]:
    return _progress(door, ref, where, feature_progress.entry)


def _steps(door: Door, ref: PlanRef, where: Locations) -> list[Sink]:
    return [
        RunStateFile(door, ref.folder / "run_state.json"),
        Aggregate(door, ref.folder / "aggregate.json"),
        RunLog(door, ref.folder / "logs"),
        *([Learnings(door, where.learnings)] if where.learnings else []),
    ]


def _spec_md(door: Door, ref: PlanRef, where: Locations) -> list[Sink]:
    return _progress(door, ref, where, evidence_log.entry)


def _progress(door: Door, ref: PlanRef, where: Locations, entry: Entry) -> list[Sink]:
    return [Progress(door, where.progress, ref.name, _HEADERS[ref.layout], entry)] if where.progress else []


_HEADERS: dict[str, Header] = {
    "plan.md": prd_progress.header,
    "tasks.json": tasks_progress.header,
    "feature": feature_progress.header,
    "spec.md": evidence_log.header,
}

_BY_LAYOUT: dict[str, Choose] = {
    "plan.md": _plan_md,
    "tasks.json": _tasks_json,
    "steps": _steps,
    "feature": _feature,
    "spec.md": _spec_md,
}
