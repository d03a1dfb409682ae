"""All workspaces and runs on this machine, for a first page: what is running, what waits for a person, what ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, RalphError
from ralph.core.events import RunStarted
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.journal.records import Follower
from ralph.journal.run_state import RunState
from ralph.state.clones import current
from ralph.state.locks import is_alive
from ralph.state.names import RUNS
from ralph.state.places import plan_state, state_home
from ralph.state.runs import RUN_ID, journal_path, list_runs, moved_to
from ralph.workspace.find import store_for
from ralph.workspace.runs import Standing
from ralph.workspace.stuck_stories import read_answers

_SAID = "AgentSaid"


class RunCard(Struct, frozen=True, kw_only=True):
    run: str
    workspace: str
    """The user's folder."""
    plan: str
    standing: Standing
    agent: str = ""
    model: str = ""
    branch: str = ""
    started: float = 0
    seen: float = 0
    reason: str = ""
    detail: str = ""
    doing: str = ""
    """Of a run that is alive: the story and the mode, or what it waits for."""
    done: int = 0
    total: int = 0
    failed: int = 0
    iterations: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    is_estimated: bool = False
    grades: dict[str, int] = {}
    questions: dict[str, str] = {}
    """Story → what its agent asks and nobody has answered."""
    failures: dict[str, str] = {}
    """Story → why it failed."""
    unproven: dict[str, str] = {}
    """Story that is kept and not proven → its title."""
    damage: str = ""

    @property
    def is_live(self) -> bool:
        return self.standing in (Standing.RUNNING, Standing.PAUSED, Standing.WAITING)


def workspaces(env: Mapping[str, str]) -> list[Path]:
    """The state folders that have runs."""
    home = state_home(env)
    with contextlib.suppress(OSError):
        return sorted(each for each in home.iterdir() if (each / RUNS).is_dir())
    return []


def find_journal(run: str, env: Mapping[str, str]) -> Path | None:
    """The journal of a run on this machine, by its whole ID. Nothing but an ID is ever part of a path."""
    if not RUN_ID.fullmatch(run):
        return None
    paths = (journal_path(folder, run) for folder in workspaces(env))
    return next((path for path in paths if path.is_file()), None)


def cards(env: Mapping[str, str], most: int = 200) -> list[RunCard]:
    """The latest runs of all workspaces, newest first."""
    journals = sorted(
        ((run, journal_path(folder, run)) for folder in workspaces(env) for run in list_runs(folder)), reverse=True
    )
    return [card for _, journal in journals[:most] if (card := card_of(journal, env)) is not None]


def card_of(journal: Path, env: Mapping[str, str]) -> RunCard | None:
    try:
        with folded(journal) as (state, damage):
            return _card(journal, state, damage, env)
    except OSError:
        return None


def _card(journal: Path, state: RunState, damage: str, env: Mapping[str, str]) -> RunCard:
    started = state.started
    if started is None:
        return RunCard(
            run=journal.parent.name,
            workspace="",
            plan="",
            standing=Standing.UNREADABLE,
            seen=journal.stat().st_mtime,
            damage=damage,
        )
    reason = state.ended
    return RunCard(
        run=started.run,
        workspace=started.checkout or started.workspace,
        plan=started.name,
        standing=standing(state),
        agent=started.agent,
        model=started.model,
        branch=started.branch,
        started=state.started_at,
        seen=state.now,
        reason=reason.reason.value if reason else "",
        detail=reason.detail if reason else "",
        doing=doing(state),
        done=state.done,
        total=state.total,
        failed=sum(story.state == "failed" for story in state.stories.values()),
        iterations=state.count,
        tokens=state.tokens.total,
        cost_usd=state.cost_usd,
        is_estimated=state.is_estimated,
        grades=state.grades,
        questions=open_questions(state, env),
        failures=open_failures(state, env),
        unproven={name: state.stories[name].title for name in state.waiting_for_proof},
        damage=damage,
    )


def standing(state: RunState) -> Standing:
    if state.ended is not None:
        return Standing.ENDED
    if state.started is None:
        return Standing.UNREADABLE
    if not is_alive(state.started):
        return Standing.UNFINISHED
    if state.paused_since is not None:
        return Standing.PAUSED
    return Standing.WAITING if state.waiting else Standing.RUNNING


def doing(state: RunState) -> str:
    """`implement US-004`, `waiting: the five-hour limit is reached`; empty if it has ended."""
    if state.ended is not None:
        return ""
    if state.paused_since is not None:
        return "paused"
    if state.waiting is not None:
        return f"waiting: {state.waiting.why}"
    if state.is_parallel:
        started = state.started_by_workers
        return ", ".join(f"{each.mode.value} {each.story}" for each in started[:8])
    current = state.current
    return f"{current.mode.value} {current.story}".strip() if current else ""


def plan_ref(started: RunStarted) -> PlanRef:
    """The plan of a run, in the folder as the user knows it."""
    plan = Path(started.plan)
    ref = PlanRef(started.layout, Path(started.workspace), plan.parent, plan, started.name)
    return moved_to(ref, Path(started.checkout)) if started.checkout else ref


def open_questions(state: RunState, env: Mapping[str, str]) -> dict[str, str]:
    """Story → what its agent asked, unless it was answered."""
    asked = {name: state.reasons.get(name, "") for name, story in state.stories.items() if story.state == "blocked"}
    if not asked or state.started is None:
        return asked
    known = read_answers(plan_state(plan_ref(state.started), env)).stories
    answered = {answer.question for answers in known.values() for answer in answers}
    return {name: question for name, question in asked.items() if question not in answered}


def open_failures(state: RunState, env: Mapping[str, str]) -> dict[str, str]:
    """Story → why it failed, unless the user has reopened it since the run ended."""
    found = {name: state.reasons.get(name, "") for name, story in state.stories.items() if story.state == "failed"}
    if not found or state.started is None or state.ended is None:
        return found
    with contextlib.suppress(RalphError, OSError):
        stories = store_for(current(plan_ref(state.started), env), env).load().plan.stories
        failed = {story.id for story in stories if story.state is State.FAILED}
        found = {name: why for name, why in found.items() if name in failed}
    return found


class _Fold:
    """A journal that is folded further as it grows."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.turn = Lock()
        self.begin()

    def begin(self) -> None:
        self.seen = (0, 0)
        self.state, self.damage = RunState(), ""
        self.news = Follower(self.journal, skip=_SAID)

    def catch_up(self, size: int, changed: int) -> None:
        if (size, changed) == self.seen:
            return
        if size < self.seen[0] or self.damage:  # cut by a recovery, or repaired
            self.begin()
        self.seen = (size, changed)
        try:
            for _, record in self.news.placed():
                self.state.add(record)
        except (BadData, msgspec.DecodeError, OSError) as error:
            self.damage = str(error)


@contextlib.contextmanager
def folded(journal: Path) -> Iterator[tuple[RunState, str]]:
    """The state of a run, kept for the next call, and why the rest of the journal cannot be read. Raises OSError."""
    known, fold = journal.stat(), _fold(journal)
    with fold.turn:
        fold.catch_up(known.st_size, known.st_mtime_ns)
        yield fold.state, fold.damage


@lru_cache(maxsize=512)
def _fold(journal: Path) -> _Fold:
    """Everything but what agents said."""
    return _Fold(journal)


def journals(env: Mapping[str, str]) -> Iterator[Path]:
    for folder in workspaces(env):
        for run in list_runs(folder):
            yield journal_path(folder, run)
