"""Which files of a workspace a run keeps up to date, by layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ralph.core.ports import Locations, PlanRef
from ralph.journal.sinks.logs import LIMIT, RunLog, activity, failures, sessions
from ralph.journal.sinks.progress import EVIDENCE, FEATURE, SECTIONS, TASKS, Format, Learnings, Progress
from ralph.journal.sinks.sink import Log, Sink, Sinks, iso
from ralph.journal.sinks.state_files import (
    Aggregate,
    Markers,
    RunStateFile,
    checkpoint,
    current_story,
    ralph_active,
)
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.state.names import LEARNINGS


class _Kept(Struct, frozen=True):
    progress: Format | None = None
    others: Callable[[WorkspaceFiles, PlanRef], list[Sink]] = lambda files, ref: []


def make_sinks(ref: PlanRef, where: Locations, files: WorkspaceFiles, state: Path | None = None) -> Sinks:
    """The sinks of one run, as one listener.

    `state` is the plan's folder in the state folder: learnings go there if the layout has no place for them.
    """
    kept = _BY_LAYOUT.get(ref.layout, _THIRD_PARTY)
    sinks = kept.others(files, ref)
    if kept.progress and where.progress:
        sinks.append(Progress(files, where.progress, ref.name, kept.progress))
    elif where.learnings:
        sinks.append(Learnings(files, where.learnings))
    if state is not None and not where.learnings and not where.progress:
        sinks.append(Learnings(WorkspaceFiles(state), state / LEARNINGS))
    return Sinks(files, sinks)


def progress_header(layout: str, name: str, at: float) -> str:
    """The header of a progress log in this layout."""
    progress = _BY_LAYOUT.get(layout, _THIRD_PARTY).progress
    return progress.header(name, iso(at)) if progress else ""


def _plan_md(files: WorkspaceFiles, ref: PlanRef) -> list[Sink]:
    ralph = ref.root / ".ralph"
    return [
        Markers(files, {ralph / "current-story": current_story, ralph / ".checkpoint": checkpoint}),
        Log(files, ralph / "sessions.log", sessions),
        Log(files, ralph / "failure-context.log", failures, LIMIT),
        Log(files, ralph / "activity.log", activity),
        RunLog(files, ref.folder / "runs"),
    ]


def _tasks_json(files: WorkspaceFiles, ref: PlanRef) -> list[Sink]:
    return [Markers(files, {ref.root / ".ralph-active": ralph_active})]


def _steps(files: WorkspaceFiles, ref: PlanRef) -> list[Sink]:
    return [
        RunStateFile(files, ref.folder / "run_state.json"),
        Aggregate(files, ref.folder / "aggregate.json"),
        RunLog(files, ref.folder / "logs"),
    ]


_BY_LAYOUT = {
    "plan.md": _Kept(SECTIONS, _plan_md),
    "tasks.json": _Kept(TASKS, _tasks_json),
    "steps": _Kept(None, _steps),
    "feature": _Kept(FEATURE),
    "spec.md": _Kept(EVIDENCE),
    "snarktank": _Kept(TASKS),
}
_THIRD_PARTY = _Kept(SECTIONS)
