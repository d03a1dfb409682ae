"""The state of one run as every view shows it: a fold over its journal. Pure and bounded."""

from __future__ import annotations

from collections import deque

import msgspec

from ralph.core.agent import Denial, Limit, Tokens
from ralph.core.control import Wish
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    Asked,
    Baseline,
    Charged,
    CheckEnded,
    CheckStarted,
    Committed,
    Foreseen,
    HostRefused,
    IterationEnded,
    IterationStarted,
    Judged,
    Noted,
    Paused,
    PlanSeen,
    Proved,
    Record,
    Recovered,
    Resumed,
    RunEnded,
    RunStarted,
    SeenStory,
    StoriesRetried,
    StorySetAside,
    WaitEnded,
    WaitStarted,
)
from ralph.core.money import Basis, micros
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.proof import Grade, count_grades, exam_failure
from ralph.core.review import approved_at
from ralph.core.verdict import Kind
from ralph.journal.workers import Activity, Workers, is_rescued


class RunState:
    """Feed it the records in order; its attributes can be read at any time."""

    def __init__(self) -> None:
        self.started: RunStarted | None = None
        self.started_at = 0.0
        self.now = 0.0
        self.stories: dict[str, SeenStory] = {}
        self.done = 0
        """Of these, how many are done."""
        self.proven: set[str] = set()
        self.unproven: set[str] = set()
        """Stories that are done although no check ran for them and no review approved them."""
        self.where = ""
        """Where the last story was proven: `checkout` or `in-place`."""
        self.reasons: dict[str, str] = {}
        """Story → why it failed, or its open question."""
        self.parallel = Workers()
        """The open iterations; in a run with several workers, these and the merge queue."""
        self.waiting: WaitStarted | None = None
        self.wish = Wish()
        self.paused_since: float | None = None
        self.iterations: deque[IterationEnded] = deque(maxlen=200)
        self.count = 0
        self.exams: list[str] = []
        """The result of each round of the exam."""
        self.kinds: dict[Kind, int] = {}
        self._red_merged = 0
        self.tokens = Tokens()
        self.cost_usd: float | None = None
        self.is_estimated = False
        """A part of the cost is estimated at list prices."""
        self.last_cost: tuple[float | None, bool] = None, False
        """Of the iteration that ended last, and whether a part of it is estimated."""
        self.agents: dict[str, int] = {}
        """Finished iterations by agent."""
        self.unknown_costs = 0
        """Sessions whose cost is unknown."""
        self.first_forecast: Foreseen | None = None
        self.forecast: Foreseen | None = None
        self.agent_seconds = 0.0
        self.commits: list[str] = []
        self.rescues: list[str] = []
        self.denials: dict[str, Denial] = {}
        """Calls the client refused, one for each way to allow them."""
        self.refused_hosts: dict[tuple[str, int, str], int] = {}
        """What the sandbox refused: host, port and why, and how often."""
        self.notes: deque[Noted] = deque(maxlen=20)
        self.recovered: Recovered | None = None
        self.limit: Limit | None = None
        self.proved: Proved | None = None
        self.ended: RunEnded | None = None

    @property
    def is_parallel(self) -> bool:
        return bool(self.parallel.known)

    @property
    def started_by_workers(self) -> list[IterationStarted]:
        """The open iterations of workers, also those in the merge queue."""
        started = (each.started for each in self.parallel.open.values())
        return [each for each in started if each is not None and each.worker]

    @property
    def current(self) -> IterationStarted | None:
        """The open iteration; in a run with several workers, the one that started last."""
        return self.parallel.activity().started

    @property
    def current_since(self) -> float:
        return self.parallel.activity().since

    @property
    def agent(self) -> AgentStarted | None:
        """The running session."""
        return self.parallel.activity().agent

    @property
    def check(self) -> CheckStarted | None:
        """The running check."""
        return self.parallel.activity().check

    @property
    def checks_since(self) -> float | None:
        return self.parallel.activity().checks_since

    @property
    def checks(self) -> deque[CheckEnded]:
        return self.parallel.activity().checks

    @property
    def returned(self) -> int:
        """Iterations whose work did not go together with what was merged meanwhile."""
        return self.kinds.get(Kind.RETURNED, 0)

    @property
    def red_merged(self) -> int:
        """Of these, how many were green alone and red merged."""
        return self._red_merged

    @property
    def total(self) -> int:
        return len(self.stories)

    @property
    def grades(self) -> dict[str, int]:
        """How many finished stories have each grade, best first."""
        return count_grades(story.grade for story in self.stories.values() if story.state is State.DONE)

    @property
    def waiting_for_proof(self) -> list[str]:
        """Stories whose work is committed although nothing proves it."""
        return [
            story.id
            for story in self.stories.values()
            if story.state is not State.DONE and story.grade == Grade.UNPROVEN
        ]

    @property
    def free(self) -> int:
        """Finished iterations that do not count towards the cap, such as a usage limit or a broken connection."""
        return sum(self.kinds.get(kind, 0) for kind in (Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.RETURNED))

    def add(self, record: Record) -> None:
        self.now = record.t
        event = record.event
        activity = self.parallel.activity(event)
        self.parallel.add(event, record.t)
        match event:
            case RunStarted():
                self.started, self.started_at = event, record.t
            case PlanSeen():
                self._plan(event)
            case IterationStarted():
                self.waiting = None
            case AgentSaid(event=Limit() as limit):
                self.limit = limit
            case HostRefused(host=host, port=port, why=why, count=count):
                self.refused_hosts[host, port, why] = self.refused_hosts.get((host, port, why), 0) + count
            case AgentEnded(ended=ended, outcome=outcome):
                self.agent_seconds += ended.seconds
                self.tokens += outcome.used
                for denial in outcome.denials:
                    self.denials.setdefault(f"{denial.remedy} {denial.subject if denial.why else ''}", denial)
                if micros(outcome.cost_usd) is not None:
                    self._spend(outcome.cost_usd or 0, activity)
            case Charged(basis=Basis.ESTIMATED, usd=usd) if usd is not None:
                self._spend(usd - activity.reported, activity, is_estimated=True)
            case Charged(basis=Basis.UNKNOWN):
                self.unknown_costs += 1
            case Foreseen():
                self.first_forecast, self.forecast = self.first_forecast or event, event
            case Baseline():
                self.parallel.rest()
            case Judged(evidence=evidence) if evidence.proof is not None:
                self.where = evidence.proof.where
            case Committed(commit=commit):
                if commit not in self.commits:  # a commit recorded before a kill is recorded again
                    self.commits.append(commit)
            case IterationEnded():
                usd = event.cost_usd if activity.cost_usd is None else activity.cost_usd
                self.last_cost = usd, activity.is_estimated
                self._finished(event)
            case WaitStarted():
                self.waiting = event
            case WaitEnded():
                self.waiting = None
            case Asked(verb=verb):
                self.wish = self.wish.after(verb)
            case Paused():
                self.paused_since = record.t
            case Resumed():
                self.paused_since = None
            case Noted():
                self.notes.append(event)
            case StorySetAside(story=story, why=why):
                self.reasons[story] = why
                self._set_state(story, State.FAILED)
            case StoriesRetried(stories=retried):
                for story in retried:
                    self._set_state(story, State.TODO)
            case Recovered():
                self.recovered = event
            case Proved():
                self.proved = event
                self.parallel.rest()
            case RunEnded():
                self.ended, self.waiting = event, None
                self.paused_since = None
                self.parallel.close()

    def _spend(self, usd: float, activity: Activity, *, is_estimated: bool = False) -> None:
        self.cost_usd = (self.cost_usd or 0) + usd
        self.is_estimated |= is_estimated
        activity.spend(usd, is_estimated=is_estimated)

    def _plan(self, event: PlanSeen) -> None:
        if event.whole:
            self.stories = {story.id: story for story in event.stories}
        else:
            for story in event.stories:
                self._put(story)
            for gone in event.removed:
                self.stories.pop(gone, None)
        if event.ids is not None:
            self.stories = {name: self.stories[name] for name in event.ids if name in self.stories}
        if event.whole or event.removed or event.ids is not None:
            self.done = sum(story.state is State.DONE for story in self.stories.values())

    def _put(self, story: SeenStory) -> None:
        before = self.stories.get(story.id)
        self.done += (story.state is State.DONE) - (before is not None and before.state is State.DONE)
        self.stories[story.id] = story

    def _finished(self, event: IterationEnded) -> None:
        self.iterations.append(event)
        clashes = self.parallel.clashes
        self._red_merged += bool(event.kind is Kind.RETURNED and clashes and clashes[-1].is_red)
        self.count += 1
        if event.agent:
            self.agents[event.agent] = self.agents.get(event.agent, 0) + 1
        if event.mode is Mode.EXAM:
            number = len(self.exams) + 1
            failure = f"round {number}: no result, {exam_failure(event.headline)}"
            self.exams.append(event.headline if event.kind is Kind.ACCEPTED else failure)
        self.kinds[event.kind] = self.kinds.get(event.kind, 0) + 1
        if is_rescued(event):
            self.rescues.append(event.rescue)
        if event.completes:
            is_proven = event.proven or event.grade not in ("", Grade.UNPROVEN)
            (self.proven if is_proven else self.unproven).add(event.story)
        self.reasons[event.story] = event.question or event.headline
        self._set_state(event.story, event.story_state)
        known = self.stories.get(event.story)
        if known is not None and event.grade and (event.completes or event.grade == Grade.UNPROVEN):
            self._put(msgspec.structs.replace(known, grade=event.grade))

    def _set_state(self, story: str, state: State | None) -> None:
        known = self.stories.get(story)
        if known is not None and state is not None:
            self._put(msgspec.structs.replace(known, state=state))


class PlanDiff:
    """What the journal records of the plan: complete the first time, then only the differences. Keeps it small."""

    def __init__(self) -> None:
        self._stories: dict[str, SeenStory] | None = None

    def news(self, plan: Plan) -> PlanSeen | None:
        """The event to write, or None if nothing changed."""
        now = {story.id: seen_story(story) for story in plan.stories}
        before, self._stories = self._stories, now
        if before is None:
            return PlanSeen(whole=True, stories=tuple(now.values()), order=plan.order)
        changed = tuple(story for name, story in now.items() if before.get(name) != story)
        removed = tuple(name for name in before if name not in now)
        moved = list(now) != list(before)
        if not (changed or removed or moved):
            return None
        return PlanSeen(
            whole=False, stories=changed, removed=removed, ids=tuple(now) if moved else None, order=plan.order
        )


def seen_story(story: Story) -> SeenStory:
    return SeenStory(
        story.id,
        story.title,
        story.state,
        story.priority,
        story.depends_on,
        story.review.status,
        story.attempts,
        story.review.count,
        approved_at(story.review),
        story.grade,
    )
