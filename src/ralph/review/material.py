"""What a reviewer gets to see: the story's changes, checks and doubts, from its journals and git."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.core.errors import BadData, UsageError
from ralph.core.events import (
    AnyEvent,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Record,
    RunStarted,
    Settling,
)
from ralph.core.evidence import CheckResult
from ralph.core.fallback import reviewer_parts
from ralph.core.plan import Mode, Story
from ralph.core.ports import PlanRef
from ralph.core.proof import Proof, Suspicion
from ralph.host.files import read_bytes
from ralph.host.git.command import git, head_of_output
from ralph.host.git.objects import changes, has_tree
from ralph.host.git.repo import Repo
from ralph.journal.records import read
from ralph.prompts.review import Matter
from ralph.prompts.templates import REVIEWERS, library
from ralph.state.runs import is_run_of, journal_path, list_runs


class Span(Struct, frozen=True):
    """From the commit before an iteration to the commit after it. Empty: there was none.

    If nothing is committed, the trees before and after it.
    """

    base: str
    commit: str


class StoryHistory(Struct, frozen=True):
    spans: tuple[Span, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """From the last iteration that was kept."""
    doubts: tuple[Suspicion, ...] = ()
    proof: Proof | None = None


class Begun(Struct, frozen=True):
    """An iteration that has not ended."""

    started: IterationStarted
    judged: Judged | None = None
    tree: str = ""
    """As the iteration left it."""


class Histories(Struct, frozen=True):
    stories: dict[str, StoryHistory] = {}
    begun: dict[int, Begun] = {}


def follow(histories: Histories, event: AnyEvent) -> Histories:
    change = msgspec.structs.replace
    if isinstance(event, IterationStarted):
        return Histories(histories.stories, histories.begun | {event.iteration: Begun(event)})
    if not isinstance(event, Judged | Settling | Landing | IterationEnded):
        return histories
    begun = histories.begun.get(event.iteration)
    if isinstance(event, IterationEnded):
        others = {number: one for number, one in histories.begun.items() if number != event.iteration}
        return Histories(_after(histories.stories, begun, event), others)
    if begun is None:
        return histories
    match event:
        case Judged():
            begun = change(begun, judged=event)
        case Settling():
            begun = change(begun, tree=event.tree)
        case Landing():  # the work begins where it was merged, not where its worker began
            begun = change(begun, started=change(begun.started, checkpoint=event.checkpoint))
    return Histories(histories.stories, histories.begun | {event.iteration: begun})


def _after(stories: dict[str, StoryHistory], begun: Begun | None, ended: IterationEnded) -> dict[str, StoryHistory]:
    others = {story: history for story, history in stories.items() if story != ended.story}
    if ended.completes:
        return others
    is_work = ended.mode in (Mode.IMPLEMENT, Mode.FIX) and ended.kind.keeps_work
    if not is_work or begun is None or begun.judged is None:
        return stories
    started, judged = begun.started, begun.judged
    known = stories.get(ended.story, StoryHistory())
    span = Span(str(started.checkpoint.get("head") or ""), ended.commit)
    if not ended.commit and started.checkpoint.get("tree"):
        span = Span(str(started.checkpoint["tree"]), begun.tree)
    evidence = judged.evidence
    doubts = dict.fromkeys((*known.doubts, *evidence.suspicions))
    return others | {
        ended.story: StoryHistory(_joined(known.spans, span), evidence.checks, tuple(doubts), evidence.proof)
    }


def _joined(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    """Append the span, or extend the last one if the new one directly follows it."""
    if span.base == span.commit:  # nothing was changed
        return spans
    if spans and spans[-1].commit and spans[-1].commit == span.base and span.commit:
        return (*spans[:-1], msgspec.structs.replace(spans[-1], commit=span.commit))
    return (*spans, span)


_MOST_DIFF = 24_000
_MOST_STAT = 4_000
_MOST_RUNS = 20
_MOST_FILES = 300


class Reviewing:
    """Listens to the journal of a run, and answers questions about a story."""

    def __init__(self, repo: Repo, ref: PlanRef, state: Path, is_ours: Callable[[str], bool]) -> None:
        self._repo = repo
        self._ref = ref
        self._state = state
        self._is_ours = is_ours
        self._histories = Histories()
        self._run = ""
        self._past: dict[str, StoryHistory] | None = None
        self._recalled: set[str] = set()

    def listen(self, record: Record) -> None:
        event = record.event
        if isinstance(event, RunStarted):
            self._run = event.run
        if isinstance(event, IterationStarted) and (event.mode is not Mode.IMPLEMENT or event.attempt > 1):
            self._recall(event.story)
        self._histories = follow(self._histories, event)

    def spans(self, story: str) -> list[tuple[str, str]]:
        """For a story that is not done yet: the base and the last commit of each span of commits that was kept."""
        return [(span.base, span.commit) for span in self._there(self._history(story).spans)]

    def proof(self, story: str) -> Proof | None:
        """Of the work that was kept last for a story that is not done yet."""
        return self._history(story).proof

    def kept(self, stories: Iterable[str]) -> dict[str, StoryHistory]:
        """What was kept of all stories that are not done. Earlier runs are read for `stories`."""
        for story in stories:
            self._recall(story)
        return self._histories.stories

    def take_kept(self, kept: dict[str, StoryHistory]) -> None:
        """In a worker: what the driver knows counts, and not the journals of workers."""
        self._past = {}
        self._histories = msgspec.structs.replace(self._histories, stories=kept)

    def unfinished(self, besides: str) -> list[tuple[str, str]]:
        """The commits that this run kept for other stories which are not done."""
        histories = [history for story, history in self._histories.stories.items() if story != besides]
        return [(span.base, span.commit) for history in histories for span in self._there(history.spans)]

    def matter(self, story: Story | None, reviewer: str) -> Matter:
        if story is None:
            return Matter()
        history = self._history(story.id)
        spans = self._there(history.spans)
        stat, diff = self._diff(spans)
        return Matter(
            stat=stat,
            diff=diff,
            ranges=tuple(f"{self._base(span)}..{span.commit}" for span in spans),
            is_whole=len(spans) == len(history.spans),
            checks=history.checks,
            doubts=tuple(str(doubt) for doubt in history.doubts),
            proof=history.proof,
            lens=lens(reviewer, self._ref.root),
        )

    def _history(self, story: str) -> StoryHistory:
        self._recall(story)
        return self._histories.stories.get(story) or StoryHistory()

    def _recall(self, story: str) -> None:
        """Continue from what earlier runs kept for the story."""
        if story in self._recalled or story in self._histories.stories:
            return
        self._recalled.add(story)
        if self._past is None:
            self._past = self._earlier()
        if found := self._past.get(story):
            self._histories = msgspec.structs.replace(self._histories, stories=self._histories.stories | {story: found})

    def _earlier(self) -> dict[str, StoryHistory]:
        """The earlier runs of this plan, in order: a story may have waited through several."""
        histories = Histories()
        for run in list_runs(self._state)[-_MOST_RUNS:]:
            if run == self._run:
                continue
            try:
                for record in read(journal_path(self._state, run)):
                    if isinstance(record.event, RunStarted) and not is_run_of(record.event, self._ref):
                        break
                    histories = follow(histories, record.event)
            except BadData:
                continue
        return histories.stories

    def _there(self, spans: tuple[Span, ...]) -> list[Span]:
        """The spans that still exist in git: the user may have rewritten history between two runs."""
        return [span for span in spans if span.commit and all(map(self._has, filter(None, (span.base, span.commit))))]

    def _has(self, name: str) -> bool:
        return has_tree(self._repo, name)

    def _diff(self, spans: list[Span]) -> tuple[str, str]:
        stats = "".join(self._git(span, _MOST_STAT, "--stat=120", "--stat-count=60") for span in spans)
        diffs = ""
        for span in spans:
            if len(diffs) <= _MOST_DIFF:
                diffs += self._git(span, _MOST_DIFF + 1, "-M")
        return stats[:_MOST_STAT].rstrip(), _bounded(diffs)

    def _git(self, span: Span, limit: int, *options: str) -> str:
        base = self._base(span)
        found = changes(self._repo, base, span.commit)
        paths = [change.raw for change in found if not self._is_ours(change.path)]
        if not paths:
            return ""
        left = f"… and {len(paths) - _MOST_FILES} more files\n" if len(paths) > _MOST_FILES else ""
        argv = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", *options, base, span.commit)
        out, _ = head_of_output(self._repo, *argv, "--", *paths[:_MOST_FILES], limit=limit)
        return out.decode("utf-8", "replace") + left

    def _base(self, span: Span) -> str:
        """The empty tree stands for the parent of the first commit."""
        return span.base or git(self._repo, "hash-object", "-t", "tree", "--stdin").decode().strip()


def _bounded(diff: str) -> str:
    if len(diff) <= _MOST_DIFF:
        return diff.rstrip()
    return f"{diff[:_MOST_DIFF].rpartition(chr(10))[0]}\n… (truncated: read the rest with git)"


def lens(name: str, root: Path) -> str:
    """What one of several reviewers focuses on: a page of the library, or a file of the workspace. The agent that the
    name ends with, as in `security@codex`, is left out."""
    if "@" in name:
        name, _ = reviewer_parts(name, AGENTS.names())
    if not name:
        return ""
    if name in REVIEWERS:
        return library(REVIEWERS[name])
    path = root / name
    if not path.is_file():
        raise UsageError(
            f"unknown reviewer {name!r}: not in the library, and no such file",
            hint=f"the library has {', '.join(REVIEWERS)}; or name a prompt file in review.reviewers; each may be "
            "followed by @AGENT or @AGENT/MODEL",
        )
    return read_bytes(path, within=root, limit=100_000).decode("utf-8", "replace")


def refuse_unknown_reviewers(names: Iterable[str], root: Path) -> None:
    for name in names:
        lens(name, root)
