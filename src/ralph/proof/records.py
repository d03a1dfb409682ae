"""Proofs, read from the journals: which checks proved a story, on which tree, and what is still valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.events import CheckEnded, Committed, IterationEnded, Judged, Proved, Record, RunStarted
from ralph.core.evidence import CheckResult
from ralph.core.proof import Grade
from ralph.core.proof import Proof as Examined
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.state.places import as_text
from ralph.state.runs import journal_path, list_runs

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


def gather(workspace_state: Path, plan: Path, by_hand: Pass | None = None) -> Proofs:
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
        if not any(isinstance(r.event, RunStarted) and r.event.plan == as_text(plan) for r in records[:3]):
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
