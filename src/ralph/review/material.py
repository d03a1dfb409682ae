"""What a reviewer gets: exactly what the story changed, the check results, and suspicious changes.

Read from the journal of this run, and from those of earlier runs for a story that has waited for its review since then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ralph.core.errors import BadData, UsageError
from ralph.core.events import IterationStarted, Record, RunStarted
from ralph.core.plan import Mode, Story
from ralph.core.ports import PlanRef
from ralph.core.proof import Proof
from ralph.core.trail import Span, Trail, Trails, follow
from ralph.host.files import read_bytes
from ralph.host.git.command import ask, git, head_of_output
from ralph.host.git.objects import changes
from ralph.host.git.repo import Repo
from ralph.journal.records import read
from ralph.prompts.review_matter import Matter
from ralph.prompts.templates import REVIEWERS, library
from ralph.state.places import as_text
from ralph.state.runs import journal_path, list_runs

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
        self._trails = Trails()
        self._run = ""
        self._past: dict[str, Trail] | None = None
        self._recalled: set[str] = set()

    def listen(self, record: Record) -> None:
        event = record.event
        if isinstance(event, RunStarted):
            self._run = event.run
        if isinstance(event, IterationStarted) and (event.mode is not Mode.IMPLEMENT or event.attempt > 1):
            self._recall(event.story)
        self._trails = follow(self._trails, event)

    def spans(self, story: str) -> list[tuple[str, str]]:
        """For a story that is not done yet: the base and the last commit of each span of commits that was kept."""
        return [(span.base, span.commit) for span in self._there(self._trail(story).spans)]

    def proof(self, story: str) -> Proof | None:
        """Of the work that was kept last for a story that is not done yet."""
        return self._trail(story).proof

    def unfinished(self, besides: str) -> list[tuple[str, str]]:
        """The commits that this run kept for other stories which are not done."""
        trails = [trail for story, trail in self._trails.stories.items() if story != besides]
        return [(span.base, span.commit) for trail in trails for span in self._there(trail.spans)]

    def matter(self, story: Story | None, reviewer: str) -> Matter:
        if story is None:
            return Matter()
        trail = self._trail(story.id)
        spans = self._there(trail.spans)
        stat, diff = self._diff(spans)
        return Matter(
            stat=stat,
            diff=diff,
            ranges=tuple(f"{self._base(span)}..{span.commit}" for span in spans),
            is_whole=len(spans) == len(trail.spans),
            checks=trail.checks,
            doubts=tuple(str(doubt) for doubt in trail.doubts),
            proof=trail.proof,
            lens=lens(reviewer, self._ref.root),
        )

    def _trail(self, story: str) -> Trail:
        self._recall(story)
        return self._trails.stories.get(story) or Trail()

    def _recall(self, story: str) -> None:
        """Continue from what earlier runs kept for the story."""
        if story in self._recalled or story in self._trails.stories:
            return
        self._recalled.add(story)
        if self._past is None:
            self._past = self._earlier()
        if found := self._past.get(story):
            self._trails = msgspec.structs.replace(self._trails, stories=self._trails.stories | {story: found})

    def _earlier(self) -> dict[str, Trail]:
        """The earlier runs of this plan, in order: a story may have waited through several."""
        trails = Trails()
        for run in list_runs(self._state)[-_MOST_RUNS:]:
            if run == self._run:
                continue
            try:
                for record in read(journal_path(self._state, run)):
                    if isinstance(record.event, RunStarted) and record.event.plan != as_text(self._ref.path):
                        break
                    trails = follow(trails, record.event)
            except BadData:
                continue
        return trails.stories

    def _there(self, spans: tuple[Span, ...]) -> list[Span]:
        """The spans that still exist in git: the user may have rewritten history between two runs."""
        return [span for span in spans if span.commit and all(map(self._has, filter(None, (span.base, span.commit))))]

    def _has(self, name: str) -> bool:
        return ask(self._repo, "cat-file", "-e", f"{name}^{{tree}}").code == 0

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
    """What one of several reviewers focuses on: a page of the library, or a file of the workspace."""
    if not name:
        return ""
    if name in REVIEWERS:
        return library(REVIEWERS[name])
    path = root / name
    if not path.is_file():
        raise UsageError(
            f"unknown reviewer {name!r}: not in the library, and no such file",
            hint=f"the library has {', '.join(REVIEWERS)}; or name a prompt file in review.reviewers",
        )
    return read_bytes(path, within=root, limit=100_000).decode("utf-8", "replace")


def refuse_unknown_reviewers(names: Iterable[str], root: Path) -> None:
    for name in names:
        lens(name, root)
