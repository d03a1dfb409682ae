"""The last run of a plan: how it ended, or that it is active. Never fails, even on a damaged journal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.events import AnyEvent, Asked, Noted, Paused, Record, RunEnded, WaitStarted
from ralph.core.history import History, fold
from ralph.core.ports import PlanRef
from ralph.host.files import open_state, read_state
from ralph.host.locks import Lock
from ralph.host.places import workspace_state
from ralph.journal.reading import read
from ralph.journal.runs import RUN_ID, journal_path
from ralph.workspace.active_runs import LOCK
from ralph.workspace.find import plan_state

LAST_RUN = "last-run"
_LONGEST_LINE = 16 * 1024 * 1024


class Standing(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    """Waiting, e.g. for a usage limit or the rate limit; `detail` says for what."""
    ENDED = "ended"
    UNFINISHED = "unfinished"
    """It was killed; the next run finishes or undoes what it left open."""
    UNREADABLE = "unreadable"


class LastRun(Struct, frozen=True):
    run: str
    standing: Standing
    started: float | None = None
    seen: float | None = None
    """Time of the last record: the end, if it has ended."""
    reason: str = ""
    detail: str = ""
    until: float | None = None
    """When its wait is over."""


def last_run(ref: PlanRef, env: Mapping[str, str]) -> LastRun | None:
    state = plan_state(ref, env)
    try:
        run = read_state(state / LAST_RUN)[:200].decode("utf-8", "replace").strip()
    except OSError:
        return None
    if not RUN_ID.fullmatch(run):
        return None
    standing = Standing.RUNNING if is_at_work(state, run) else Standing.UNFINISHED
    try:
        ends = _ends(journal_path(workspace_state(ref.root, env), run))
    except (OSError, msgspec.DecodeError) as error:
        return LastRun(run, Standing.UNREADABLE, detail=f"its journal could not be read: {error}")
    if ends is None:
        return LastRun(run, standing)
    first, last, doing = ends
    if isinstance(last.event, RunEnded):
        return LastRun(run, Standing.ENDED, first.t, last.t, last.event.reason.value, last.event.detail)
    if standing is Standing.RUNNING and isinstance(doing, WaitStarted):
        return LastRun(run, Standing.WAITING, first.t, last.t, detail=doing.why, until=doing.until)
    if standing is Standing.RUNNING and isinstance(doing, Paused):
        standing = Standing.PAUSED
    return LastRun(run, standing, first.t, last.t)


def feedback(ref: PlanRef, env: Mapping[str, str]) -> dict[str, str]:
    """How attempts of earlier runs failed, by story: the next run tells its agents."""
    try:
        run = read_state(plan_state(ref, env) / LAST_RUN)[:200].decode("utf-8", "replace").strip()
    except OSError:
        return {}
    history = History()
    if RUN_ID.fullmatch(run):
        with contextlib.suppress(BadData):  # as far as it can be read
            for record in read(journal_path(workspace_state(ref.root, env), run)):
                history = fold(history, record.event, record.t)
    return history.feedback


def is_at_work(state: Path, run: str = "") -> bool:
    """Whether a run holds this plan's lock; with a name, whether that run does."""
    lock = Lock(state / LOCK)
    if not lock.is_held():
        return False
    owner = lock.owner()
    return not run or owner is None or owner.run == run


def _ends(path: Path) -> tuple[Record, Record, AnyEvent | None] | None:
    """The first and the last complete record, and the run's activity. A long journal is not read in full."""
    with open_state(path) as stream:
        first = stream.readline(_LONGEST_LINE)
        size = stream.seek(0, os.SEEK_END)
        span = 65536
        while True:
            start = max(size - span, 0)
            stream.seek(start)
            data = stream.read(size - start)
            lines = data[: data.rfind(b"\n") + 1].splitlines()  # a torn last line is no record
            if start == 0 or len(lines) > 1 or span > _LONGEST_LINE:
                break
            span *= 8
    decoder = msgspec.json.Decoder(Record)
    if not lines:
        return None
    latest = (decoder.decode(line) for line in reversed(lines))
    doing = next((record.event for record in latest if not isinstance(record.event, Asked | Noted)), None)
    return decoder.decode(first), decoder.decode(lines[-1]), doing


def last_run_id(state: Path) -> str:
    try:
        return read_state(state / LAST_RUN).decode("utf-8", "replace").strip()
    except OSError:
        return ""
