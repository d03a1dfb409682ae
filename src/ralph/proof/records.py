"""Proofs, read from the journals: which checks proved a story, on which tree, and what is still valid."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.events import CheckEnded, Committed, IterationEnded, Judged, Proved, Record, RunStarted
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.proof import Grade
from ralph.core.proof import Proof as Examined
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.engine import proof_trailers as names
from ralph.host.git.command import ask
from ralph.host.git.objects import TreeEntry, changes, entries
from ralph.host.git.repo import Repo
from ralph.journal.records import read
from ralph.plans.store import PlanStore
from ralph.state.places import workspace_state
from ralph.state.runs import is_run_of, journal_path, list_runs
from ralph.workspace.plan_edit import reopen

NOT_EXAMINED = Examined(where="")


class Proof(Struct, frozen=True, kw_only=True):
    """A story was accepted because these checks passed on this tree, each with exit code and output digest."""

    story: str
    run: str
    iteration: int
    at: float
    tree: str
    check_set: str
    commit: str = ""
    checks: tuple[CheckResult, ...] = ()
    unlisted: int = 0
    """How many more checks ran; a commit lists only some."""
    agent_commits: tuple[str, ...] = ()
    """Commits by the agent, oldest first. The checks ran after the last one."""
    is_from_commit: bool = False
    """Taken from the commit: the journal of its run is not available."""
    grade: str = ""
    """As `core.proof.Grade`; empty: not judged, as in older runs."""
    is_done: bool = True
    """False: the work is kept, but waits for a review because nothing proves it."""
    where: str = ""
    """`checkout` or `in-place`; empty: unknown."""
    witnesses: tuple[str, ...] = ()
    """Own checks and tests that fail without the change and pass with it."""
    restored: tuple[str, ...] = ()
    """Files that were as at the story's start in the second pass."""
    changed_expectations: tuple[str, ...] = ()
    """What failed in that pass."""
    excuse: str = ""
    """Why that is legitimate without an approval."""
    missing: tuple[str, ...] = ()
    """What would be a witness."""
    limits: tuple[str, ...] = ()
    """What was not examined, and why."""

    @property
    def is_proven(self) -> bool:
        is_checked = any(check.required and check.passed for check in self.checks)
        return self.is_done and (is_checked or self.grade not in ("", Grade.UNPROVEN))


class Pass(Struct, frozen=True, kw_only=True):
    """Every check once, on one tree."""

    at: float
    tree: str
    check_set: str
    passed: bool
    run: str = ""
    """Empty: run by hand with `ralph verify --final`."""
    checks: tuple[CheckResult, ...] = ()


class Proofs(Struct, frozen=True):
    stories: dict[str, Proof] = {}
    """The latest proof of each story."""
    last_pass: Pass | None = None
    damaged: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    """The runs whose journals were read."""


def gather(workspace_state: Path, ref: PlanRef, by_hand: Pass | None = None) -> Proofs:
    """From all runs of one plan, oldest first. A damaged journal is read up to the damage, and reported."""
    stories: dict[str, Proof] = {}
    passes: list[Pass] = [by_hand] if by_hand else []
    damaged: list[str] = []
    runs = list_runs(workspace_state)
    for run in runs:
        records: list[Record] = []
        try:
            for record in read(journal_path(workspace_state, run)):
                records.append(record)
        except BadData as error:
            damaged.append(str(error))
        if not any(isinstance(r.event, RunStarted) and is_run_of(r.event, ref) for r in records[:3]):
            continue
        for found in from_records(run, records):
            if isinstance(found, Proof):
                stories[found.story] = found
            else:
                passes.append(found)
    last = max(passes, key=lambda one: one.at, default=None)
    return Proofs(stories, last, tuple(damaged), tuple(runs))


def _is_kept_unproven(ended: IterationEnded) -> bool:
    return ended.kind is Kind.ACCEPTED and ended.grade == Grade.UNPROVEN


def from_records(run: str, records: Iterable[Record]) -> Iterator[Proof | Pass]:
    """A check belongs to the next iteration that ends, or to the final pass of the run."""
    checks: list[CheckEnded] = []
    commits: dict[int, list[str]] = {}
    judged: Judged | None = None
    for record in records:
        match record.event:
            case CheckEnded() as check:
                checks.append(check)
            case Committed(by_agent=True) as committed:
                commits.setdefault(committed.iteration, []).append(committed.commit)
            case Judged():
                judged = record.event
            case IterationEnded() as ended if ended.completes or _is_kept_unproven(ended):
                evidence = judged.evidence if judged and judged.iteration == ended.iteration else None
                examined = (evidence.proof if evidence else None) or NOT_EXAMINED
                own = [check for check in checks if check.iteration == ended.iteration]
                yield Proof(
                    story=ended.story,
                    run=run,
                    iteration=ended.iteration,
                    at=record.t,
                    tree=own[-1].tree if own else "",
                    check_set=own[-1].check_set if own else "",
                    commit=ended.commit,
                    agent_commits=tuple(dict.fromkeys(commits.get(ended.iteration, ()))),
                    checks=tuple(check.result for check in own),
                    grade=ended.grade,
                    is_done=ended.completes,
                    where=examined.where,
                    witnesses=tuple(witness.name for witness in examined.witnesses),
                    restored=examined.restored,
                    changed_expectations=examined.changed_expectations,
                    excuse=examined.excuse,
                    missing=examined.missing,
                    limits=examined.limits,
                )
                checks = []
            case IterationEnded():
                checks = []
            case Proved(tree=tree, passed=passed, results=results):
                identity = next((check.check_set for check in reversed(checks) if check.tree == tree), "")
                yield Pass(at=record.t, tree=tree, check_set=identity, passed=passed, run=run, checks=results)
                checks = []


_MOST_COMMITS = 5000
_MOST_PER_STORY = 20
_START, _FIELD = "\x1e", "\x1f"


def from_commits(repo: Repo, plan: str, known_runs: Sequence[str] = ()) -> dict[str, Proof]:
    """The latest proof of each story of a plan, by its path in the repository. Not of runs that are `known_runs`."""
    found: dict[str, Proof] = {}
    for commit, at, _, trailers in _told(repo):
        story, run = _one(trailers, "Ralph-Story"), _one(trailers, "Ralph-Run")
        if not story or not run or run in known_runs or _one(trailers, names.VERDICT) != names.DONE:
            continue
        if _one(trailers, names.PLAN) not in ("", plan):
            continue
        number = _one(trailers, "Ralph-Iteration")
        proof = Proof(
            story=story,
            run=run,
            iteration=int(number) if number.isdecimal() else 0,
            at=at,
            tree=_one(trailers, names.TREE),
            check_set=_one(trailers, names.CHECK_SET),
            commit=commit,
            checks=names.read_checks(trailers),
            unlisted=names.unlisted(trailers),
            is_from_commit=True,
            agent_commits=tuple(trailers.get(names.AGENT_COMMIT, ())),
            grade=_one(trailers, names.GRADE),
            where=_one(trailers, names.WHERE),
            witnesses=tuple(trailers.get(names.WITNESS, ())),
        )
        found.setdefault(story, proof)
    return found


class NamedCommit(Struct, frozen=True):
    """A commit that names its story and its run."""

    commit: str
    run: str
    subject: str


def commits_by_story(repo: Repo, plan: str, branch: str) -> dict[str, list[NamedCommit]]:
    """The commits of each story of a plan on a branch, oldest first; of a long history the newest."""
    found: dict[str, list[NamedCommit]] = {}
    for commit, _, subject, trailers in _told(repo, f"refs/heads/{branch}" if branch else "HEAD"):
        mine = found.setdefault(_one(trailers, "Ralph-Story"), [])
        if _one(trailers, names.PLAN) in ("", plan) and len(mine) < _MOST_PER_STORY:
            mine.insert(0, NamedCommit(commit, _one(trailers, "Ralph-Run"), subject))
    return found


def _told(repo: Repo, ref: str = "HEAD") -> Iterator[tuple[str, float, str, Mapping[str, Sequence[str]]]]:
    """Commit, time, subject and trailers, newest first."""
    form = f"--format={_START}%H{_FIELD}%ct{_FIELD}%s{_FIELD}%(trailers:only,unfold)"
    answer = ask(repo, "log", f"-{_MOST_COMMITS}", "--grep=^Ralph-Story: ", form, "--end-of-options", ref, "--")
    if answer.code:  # a branch without a commit
        return
    for item in answer.out.decode("utf-8", "replace").split(_START)[1:]:
        commit, _, rest = item.partition(_FIELD)
        at, _, rest = rest.partition(_FIELD)
        subject, _, text = rest.partition(_FIELD)
        yield commit, float(at or 0), subject, names.parsed(text.splitlines())


def _one(trailers: Mapping[str, Sequence[str]], name: str) -> str:
    """Two different values: neither counts."""
    values = trailers.get(name, ())
    return values[0] if len(values) == 1 else ""


_FEW = 5


def reopen_lost(
    store: PlanStore, ref: PlanRef, repo: Repo, env: Mapping[str, str], is_ours: Callable[[str], bool]
) -> list[str]:
    """Reopen them, and return messages."""
    reading = store.load()
    lost = find_lost(reading.plan, ref, repo, env, is_ours)
    if lost:
        changed = [reopen(reading.plan, story) for story in lost]
        store.write(store.planned(reading, changed, dict.fromkeys(lost, "")))
    return describe_lost(lost, "is open again")


def find_lost(
    plan: Plan, ref: PlanRef, repo: Repo, env: Mapping[str, str], is_ours: Callable[[str], bool]
) -> dict[str, str]:
    """The stories, each with its commit. A squash or a rebase keeps the message or the files, so its stories stay done.

    The journals are only read if a finished story has no commit here.
    """
    done = [story.id for story in plan.stories if story.is_done]
    if not done:
        return {}
    here = commits_by_story(repo, os.path.relpath(ref.path, repo.root), "")
    unknown = [story for story in done if story not in here]
    proofs = gather(workspace_state(ref.root, env), ref).stories if unknown else {}
    return {s: p.commit for s in unknown if (p := proofs.get(s)) and p.commit and _is_lost(repo, p.commit, is_ours)}


def describe_lost(lost: Mapping[str, str], state: str) -> list[str]:
    messages = [
        f"{one_line(story, 40)} {state}: its commit {commit[:9]} is not on this branch; merge it to keep it"
        for story, commit in list(lost.items())[:_FEW]
    ]
    return [*messages, f"and {len(lost) - _FEW} more"] if len(lost) > _FEW else messages


def _is_lost(repo: Repo, commit: str, is_ours: Callable[[str], bool]) -> bool:
    """Whether a commit exists, is no ancestor of HEAD, and every file it changed is as it was before it."""
    if ask(repo, "cat-file", "-e", f"{commit}^{{commit}}").code:
        return False
    if ask(repo, "merge-base", "--is-ancestor", commit, "HEAD").code != 1:
        return False
    if ask(repo, "rev-parse", "--verify", "--quiet", f"{commit}^").code:
        return False
    work = [change for change in changes(repo, f"{commit}^", commit) if not is_ours(change.path)]
    now = entries(repo, "HEAD")
    nothing = TreeEntry("000000", repo.no_object)
    return bool(work) and all(now.get(c.raw, nothing) == TreeEntry(c.old_mode, c.old_id) for c in work)
