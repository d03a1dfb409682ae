"""What the guards of a new run need to know about earlier runs of the workspace. Read from their journals."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.agent import Limit
from ralph.core.events import RunStarted
from ralph.core.history import History, fold
from ralph.core.limits import Limits
from ralph.engine.usage_limit import still_to_wait_for
from ralph.host.places import state_home, workspace_state
from ralph.journal.reading import pick
from ralph.journal.runs import journal_path, list_runs
from ralph.workspace.worktree_plans import WORKTREES

_HOUR = 3600.0
_MOST_RUNS = 20
_MARKS = (b'"RunStarted"', b'"AgentStarted"', b'"AgentEnded"', b'"IterationEnded"', b'"limit"')


class Recent(Struct, frozen=True):
    calls: tuple[float, ...] = ()
    used: tuple[tuple[float, int], ...] = ()
    heard: tuple[Limit, ...] = ()


def recent(state: Path, agent: str, limits: Limits, now: float) -> Recent:
    """The starts and tokens of the last hour, and usage limits of this agent that have not reset since.

    Each run carries over what the previous one left, so the last run has it all; but what an agent reported is known
    only to runs of that agent.
    """
    calls: tuple[float, ...] = ()
    used: tuple[tuple[float, int], ...] = ()
    for number, run in enumerate(reversed(list_runs(state)[-_MOST_RUNS:])):
        history, by = _remembered(journal_path(state, run))
        if number == 0:
            calls = tuple(call for call in history.calls if call > now - _HOUR)
            used = tuple(use for use in history.used if use[0] > now - _HOUR)
        if by == agent:
            return Recent(calls, used, tuple(still_to_wait_for(history, limits, now)))
    return Recent(calls, used)


def recent_of_all(root: Path, env: Mapping[str, str], agent: str, limits: Limits, now: float) -> Recent:
    """Of the workspace and of the worktrees created from it."""
    found = [recent(state, agent, limits, now) for state in _family(root, env)]
    return Recent(
        tuple(sorted({call for one in found for call in one.calls})),
        tuple(sorted({use for one in found for use in one.used})),
        tuple({limit: None for one in found for limit in one.heard}),
    )


def _family(root: Path, env: Mapping[str, str]) -> Iterator[Path]:
    everything = Path(os.path.realpath(state_home(env)))
    home = next((p.parent for p in root.parents if p.name == WORKTREES and p.parent.parent == everything), None)
    home = home or workspace_state(root, env)
    yield home
    with contextlib.suppress(OSError):
        for tree in sorted((home / WORKTREES).iterdir())[-_MOST_RUNS:]:
            yield workspace_state(tree, env)


def _remembered(path: Path) -> tuple[History, str]:
    history, agent = History(), ""
    for record in pick(path, _MARKS):
        if isinstance(record.event, RunStarted):
            agent = record.event.agent
        history = fold(history, record.event, record.t)
    return history, agent
