"""The report of a run: the result of every story, open questions, what to review first.

Computed from the run's journal and from git. The run may have ended, been killed, or still be running.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.config.layers import load
from ralph.core.errors import RalphError
from ralph.core.events import (
    Charged,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    RunStarted,
    SeenStory,
)
from ralph.core.money import Basis
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.core.proof import KEPT_UNPROVEN, Grade, Proof
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.host.git.command import ask
from ralph.host.git.ignored import LOSSES
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.git.rescue import PREFIX, list_refs
from ralph.journal.run_state import RunState
from ralph.journal.workers import Clash, is_rescued, iteration_of
from ralph.proof.records import NOT_EXAMINED, NamedCommit, commits_by_story
from ralph.report.explain import Explanation, explain
from ralph.report.refused_hosts import RefusedHost, refused_hosts
from ralph.report.worker_time import QueueUse, WorkerUse, worker_time
from ralph.state.places import home, plan_state
from ralph.workspace.stuck_stories import read_answers


class StoryCommit(Struct, frozen=True):
    id: str
    subject: str = ""
    by_agent: bool = False
    files: int = 0
    added: int = 0
    removed: int = 0
    is_missing: bool = False
    """The commit is no longer in the repository."""
    earlier_run: str = ""
    """The earlier run that made it; it is not in the diffstat. Empty: this run."""

    @property
    def remark(self) -> str:
        parts = [
            *(["by the agent"] if self.by_agent else []),
            *([f"run {self.earlier_run}"] if self.earlier_run else []),
            *(["no longer in the repository"] if self.is_missing else []),
        ]
        return f" ({', '.join(parts)})" if parts else ""


class Rejected(Struct, frozen=True):
    """An attempt that was rolled back and saved under a rescue ref."""

    story: str
    iteration: int
    kind: str
    reason: str
    name: str
    """What `ralph rescue show` takes."""
    is_missing: bool = False
    reasons: tuple[str, ...] = ()
    """Besides the first one, and what was restored or could not be."""


class StoryReport(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    state: str
    """done, approved with open findings, unproven, failed, blocked, in progress or open. Unproven: done
    without any check, or kept and waiting for a review."""
    why: str = ""
    iterations: int = 0
    seconds: float = 0
    tokens: int = 0
    cost_usd: float | None = None
    cost_is_estimated: bool = False
    """A part of it is estimated at list prices."""
    by: tuple[str, ...] = ()
    """Who did what, if several agents worked in the run: `implement by claude`, `review by codex/gpt-5.5`."""
    commits: tuple[StoryCommit, ...] = ()
    files: tuple[str, ...] = ()
    """Without the plan and Ralph's own files."""
    added: int = 0
    removed: int = 0
    doubts: tuple[str, ...] = ()
    """Changed expectations that were accepted, and why."""
    grade: str = ""
    """proven, witnessed, reviewed or unproven; empty: not judged."""
    witnesses: tuple[str, ...] = ()
    """What fails without the change and passes with it."""
    where: str = ""
    """Where it was proven: checkout or in-place; empty: not in this run."""
    limits: tuple[str, ...] = ()
    """What the proof did not examine, and why."""
    missing: tuple[str, ...] = ()
    """What would have been a witness."""
    returned: int = 0
    """How often its work did not go together with what was merged meanwhile."""
    red_merged: int = 0
    """Of these, how often it was green alone and red merged."""


class Question(Struct, frozen=True):
    story: str
    text: str


class Report(Struct, frozen=True, kw_only=True):
    explanation: Explanation
    """Why the run ended, and what to do next."""
    branch: str
    started: float
    last: float
    """The time of the last record."""
    agent_seconds: float
    iterations: int
    verdicts: dict[str, int]
    tokens: int
    cost_usd: float | None
    cost_is_estimated: bool
    unknown_costs: int
    agents: dict[str, int]
    """Finished iterations by agent."""
    commits: int
    stories: tuple[StoryReport, ...]
    questions: tuple[Question, ...]
    look_first: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    refused_hosts: tuple[RefusedHost, ...]
    has_git: bool
    grades: dict[str, int]
    """How many finished stories have each grade."""
    exams: tuple[str, ...]
    """The result of each round of the exam."""
    where: str
    """Where stories were proven: checkout or in-place; empty: no story was."""
    workers: tuple[WorkerUse, ...] = ()
    """How each worker used its time; empty in a run without workers."""
    queue: QueueUse = QueueUse()
    clashes: tuple[Clash, ...] = ()
    """Iterations that the merge queue returned."""

    def document(self) -> dict[str, object]:
        """For `--json`: all in one level."""
        own = {name: getattr(self, name) for name in self.__struct_fields__ if name != "explanation"}
        return {name: getattr(self.explanation, name) for name in _EXPLAINED} | own


_EXPLAINED = [
    "run",
    "plan",
    "state",
    "reason",
    "detail",
    "why",
    "next",
    "exit_code",
    "seconds",
    "done",
    "total",
    "failing",
]
STATES = ("done", OPEN_FINDINGS, "unproven", "failed", "blocked", "in progress", "open")
"""In display order."""


_MOST_FIRST = 8
_LARGE = 400
"""From this many changed lines on, a story is worth reviewing for its size alone."""
_MANY = 3
_MOST_REVIEWED = 5


class _Work(Struct):
    """What a run did for one story."""

    iterations: int = 0
    seconds: float = 0
    tokens: int = 0
    cost_usd: float | None = None
    is_estimated: bool = False
    by: tuple[str, ...] = ()
    commits: dict[str, Committed] = {}
    doubts: tuple[str, ...] = ()
    proof: Proof | None = None
    asked: str = ""


def make_report(
    records: Iterable[Record], *, is_alive: bool, env: Mapping[str, str], allow_hosts: Sequence[str] = ()
) -> Report:
    """`allow_hosts`: the setting as it is now, for the commands that allow more."""
    kept = list(records)
    state = RunState()
    for record in kept:
        state.add(record)
    found = explain(kept, is_alive=is_alive)
    work = _work(kept)
    repo = _repository(state.started, env)
    commits = _commits(repo, [commit for each in work.values() for commit in each.commits])
    rescues = _rejected(kept, {one.name for one in list_refs(repo)} if repo else None)
    own = _own_folder(state.started, repo)
    earlier = _earlier(state.started, repo)
    stories = tuple(_stories(state, found, work, commits, earlier, own))
    questions = tuple(_questions(state, found, work, env))
    times = worker_time(kept)
    return Report(
        explanation=found,
        branch=state.started.branch if state.started else "",
        started=state.started_at,
        last=state.now,
        agent_seconds=round(state.agent_seconds, 3),
        iterations=state.count,
        verdicts={kind.value: count for kind, count in sorted(state.kinds.items())},
        tokens=state.tokens.total,
        cost_usd=state.cost_usd,
        cost_is_estimated=state.is_estimated,
        agents=state.agents,
        unknown_costs=state.unknown_costs,
        commits=len(state.commits),
        stories=stories,
        questions=questions,
        look_first=tuple(_look_first(found, stories, questions, state))[:_MOST_FIRST],
        rejected=rescues,
        refused_hosts=refused_hosts(state, allow_hosts),
        has_git=repo is not None,
        grades=state.grades,
        exams=tuple(state.exams),
        where=state.where,
        workers=times.workers(),
        queue=times.queue(),
        clashes=tuple(state.parallel.clashes),
    )


def _work(records: Iterable[Record]) -> dict[str, _Work]:
    work: dict[str, _Work] = {}
    stories: dict[int, str] = {}
    current = ""
    for record in records:
        event = record.event
        if isinstance(event, IterationStarted):
            stories[event.iteration] = current = event.story
        mine = work.setdefault(stories.get(iteration_of(event), current), _Work())
        match event:
            case Committed():
                mine.commits.setdefault(event.commit, event)
            case Charged(usd=usd, basis=basis) if usd is not None:
                mine.cost_usd = (mine.cost_usd or 0) + usd
                mine.is_estimated |= basis is Basis.ESTIMATED
            case Judged(evidence=evidence, verdict=verdict) if verdict.kind is Kind.ACCEPTED:
                grave = (str(doubt) for doubt in evidence.suspicions if doubt.is_grave)
                mine.doubts = tuple(dict.fromkeys((*mine.doubts, *grave)))
                mine.proof = evidence.proof or mine.proof
            case IterationEnded() as ended:
                mine.iterations += 1
                mine.seconds += ended.seconds
                mine.tokens += ended.tokens.total
                mine.asked = ended.question if ended.kind is Kind.BLOCKED else ""
                if ended.agent:
                    who = f"{ended.agent}/{ended.model}" if ended.model else ended.agent
                    mine.by = tuple(dict.fromkeys((*mine.by, f"{ended.mode.value} by {who}")))
    return work


def _repository(started: RunStarted | None, env: Mapping[str, str]) -> Repo | None:
    if started is None or not Path(started.workspace).is_dir():
        return None
    root = Path(started.workspace)
    try:
        settings = load(root=root, layout=started.layout, name=None, env=env, flags={})
        return identify(find_repository(root, settings.config.repo or None, home(env)))
    except (RalphError, OSError):
        return None


def _own_folder(started: RunStarted | None, repo: Repo | None) -> str:
    """The plan's folder as a path prefix in the repository."""
    if started is None or repo is None:
        return ".ralph/"
    folder = os.path.relpath(Path(started.plan).parent, repo.root)
    return ".ralph/" if folder.startswith((".ralph", "..")) or folder == "." else f"{folder}/"


def _commits(repo: Repo | None, wanted: list[str]) -> dict[str, tuple[StoryCommit, dict[str, tuple[int, int]]]]:
    """Commit → its data in git, and the lines added to and removed from each file."""
    found: dict[str, tuple[StoryCommit, dict[str, tuple[int, int]]]] = {}
    for commit in wanted:
        shown = (
            ask(repo, "show", "--no-renames", "--numstat", "-z", "--format=%s%x00", "--end-of-options", commit, "--")
            if repo
            else None
        )
        if shown is None or shown.code:
            found[commit] = (StoryCommit(commit, is_missing=repo is not None), {})
            continue
        subject, _, rest = shown.out.decode("utf-8", "replace").partition("\0")
        files: dict[str, tuple[int, int]] = {}
        for item in rest.split("\0"):
            added, _, tail = item.strip("\n").partition("\t")
            removed, _, path = tail.partition("\t")
            if path:  # binary files count as changed, with no lines
                files[path] = (int(added) if added.isdigit() else 0, int(removed) if removed.isdigit() else 0)
        found[commit] = (StoryCommit(commit, subject), files)
    return found


def _stories(
    state: RunState,
    found: Explanation,
    work: Mapping[str, _Work],
    commits: Mapping[str, tuple[StoryCommit, dict[str, tuple[int, int]]]],
    earlier: Mapping[str, list[NamedCommit]],
    own: str,
) -> Iterator[StoryReport]:
    for story in state.stories.values():
        mine = work.get(story.id, _Work())
        lines: dict[str, tuple[int, int]] = {}
        listed = []
        if story.state is State.DONE:
            others = (one for one in earlier.get(story.id, ()) if one.commit not in mine.commits)
            listed += [
                StoryCommit(one.commit, one.subject, earlier_run=one.run) for one in others if one.run != found.run
            ]
        # The loop commits after the agent, but the journal lists its commit first.
        for event in sorted(mine.commits.values(), key=lambda one: (one.iteration, not one.by_agent)):
            commit, by_agent = event.commit, event.by_agent
            told, files = commits[commit]
            files = {path: count for path, count in files.items() if not path.startswith(own)}
            added, removed = (sum(count[side] for count in files.values()) for side in (0, 1))
            listed.append(
                StoryCommit(commit, told.subject, by_agent, len(files), added, removed, is_missing=told.is_missing)
            )
            for path, (more, less) in files.items():
                before = lines.get(path, (0, 0))
                lines[path] = (before[0] + more, before[1] + less)
        proof = mine.proof or NOT_EXAMINED
        why_allowed = proof.excuse or "approved by a review"
        changed = tuple(f"{what} (allowed: {why_allowed})" for what in proof.changed_expectations)
        is_graded = story.state is State.DONE or story.id in state.waiting_for_proof
        yield StoryReport(
            id=story.id,
            title=story.title,
            state=_state(state, story.id, story.state),
            why=found.stuck.get(story.id) or _depends(state, story),
            iterations=mine.iterations,
            seconds=round(mine.seconds, 3),
            tokens=mine.tokens,
            cost_usd=mine.cost_usd,
            cost_is_estimated=mine.is_estimated,
            by=mine.by if len(state.agents) > 1 else (),
            commits=tuple(listed),
            files=tuple(lines),
            added=sum(count[0] for count in lines.values()),
            removed=sum(count[1] for count in lines.values()),
            doubts=(*mine.doubts, *changed) if story.state is State.DONE else (),
            grade=story.grade if is_graded else "",
            witnesses=tuple(witness.name for witness in proof.witnesses) if is_graded else (),
            where=proof.where if is_graded else "",
            limits=proof.limits if is_graded else (),
            missing=proof.missing if is_graded and not proof.witnesses else (),
            returned=sum(clash.story == story.id for clash in state.parallel.clashes),
            red_merged=sum(clash.story == story.id and clash.is_red for clash in state.parallel.clashes),
        )


def _earlier(started: RunStarted | None, repo: Repo | None) -> dict[str, list[NamedCommit]]:
    if started is None or repo is None:
        return {}
    return commits_by_story(repo, os.path.relpath(started.plan, repo.root), started.branch)


def _depends(state: RunState, story: SeenStory) -> str:
    """Which failed or blocked stories keep an open one from starting."""
    if story.state not in (State.TODO, State.IN_PROGRESS):
        return ""
    stuck = (state.stories.get(name) for name in story.depends_on)
    named = [f"{one.id} ({one.state.value})" for one in stuck if one and one.state in (State.FAILED, State.BLOCKED)]
    return f"depends on {', '.join(named)}" if named else ""


def _state(state: RunState, story: str, now: State) -> str:
    if (seen := state.stories.get(story)) and seen.approved_at and now is State.DONE:
        return OPEN_FINDINGS
    if (now is State.DONE and story in state.unproven) or story in state.waiting_for_proof:
        return "unproven"
    if any(each.started and each.started.story == story for each in state.parallel.open.values()):
        return "in progress"
    return {State.TODO: "open", State.IN_PROGRESS: "open"}.get(now, now.value)


def _questions(
    state: RunState, found: Explanation, work: Mapping[str, _Work], env: Mapping[str, str]
) -> Iterator[Question]:
    """Questions that are still unanswered."""
    started = state.started
    answered: set[str] = set()
    if started is not None:
        plan = Path(started.plan)
        ref = PlanRef(started.layout, Path(started.workspace), plan.parent, plan, started.name)
        kept = read_answers(plan_state(ref, env)).stories
        answered = {answer.question for answers in kept.values() for answer in answers}
    for story, mine in work.items():
        known = state.stories.get(story)
        is_open = known is None or known.state is not State.DONE
        if mine.asked and mine.asked not in answered and is_open:
            yield Question(story, mine.asked)


def _rejected(records: Iterable[Record], known: set[str] | None) -> tuple[Rejected, ...]:
    found = []
    for record in records:
        event = record.event
        if isinstance(event, IterationEnded) and is_rescued(event):
            name = event.rescue.removeprefix(PREFIX)
            is_missing = known is not None and name not in known
            first = (event.story, event.iteration, event.kind.value, event.headline, name)
            found.append(Rejected(*first, is_missing, (*event.reasons, *event.undone)))
    return tuple(found)


def _look_first(
    found: Explanation, stories: tuple[StoryReport, ...], questions: tuple[Question, ...], state: RunState
) -> Iterator[str]:
    """Most urgent first."""
    for question in questions:
        yield f"{question.story or 'the run'} asks: {one_line(question.text, 160)}"
    if found.failing and found.reason == "final-checks":
        yield f"the final checks fail: {', '.join(one_line(check.name, 40) for check in found.failing[:3])}"
    asking = {question.story for question in questions}
    for story in stories:
        if story.state in ("failed", "blocked") and story.id not in asking:
            yield f"{story.id} {story.state}: {one_line(story.why, 160)}"
    for story in stories:
        if story.doubts:
            yield f"{story.id} changed tests or checks: {one_line(story.doubts[0], 140)}"
        if story.state == OPEN_FINDINGS:
            yield f"{story.id} was {OPEN_FINDINGS}: `ralph task show {story.id}`"
        if story.state == "unproven":
            is_kept = story.id in state.waiting_for_proof
            yield f"{story.id} is {KEPT_UNPROVEN if is_kept else 'done, but no check ran for it'}"
        if missing := sum(commit.is_missing for commit in story.commits):
            yield f"{story.id}: {missing} of its commits {'is' if missing == 1 else 'are'} no longer in the repository"
    for event in state.iterations:
        if event.kind in (Kind.ACCEPTED, Kind.PARTIAL):
            yield from (f"{event.story}: {one_line(text, 400)}" for text in event.notices if text.startswith(LOSSES))
    if reviewed := [story.id for story in stories if story.state == "done" and story.grade == Grade.REVIEWED]:
        some = ", ".join(reviewed[:_MOST_REVIEWED]) + (" …" if len(reviewed) > _MOST_REVIEWED else "")
        yield f"only a review shows that {some} {'is' if len(reviewed) == 1 else 'are'} done: no test fails without it"
    if state.proved is None and found.reason == "complete":
        yield "no check proves the final tree"
    done = [story for story in stories if story.state == "done"]
    large = sorted(
        (story for story in done if story.added + story.removed >= _LARGE), key=lambda s: -s.added - s.removed
    )
    for story in large[:2]:
        yield f"{story.id} is a large change: +{story.added} −{story.removed} in {len(story.files)} files"
    for story in sorted((story for story in done if story.iterations >= _MANY), key=lambda s: -s.iterations)[:2]:
        yield f"{story.id} took {story.iterations} iterations"
