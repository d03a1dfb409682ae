"""What a reviewer is given: exactly what this story changed, what the checks said, what was doubtful.

Read from the journal: of this run as it goes, of earlier runs when a story has waited for its review since then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ralph.core.errors import BadData, UsageError
from ralph.core.events import Record, RunStarted
from ralph.core.plan import Story
from ralph.core.ports import PlanRef
from ralph.core.trail import Span, Trail, Trails, follow
from ralph.host.files import read_bytes
from ralph.host.git import git, head_of_output
from ralph.host.repo import Repo
from ralph.host.trees import changes
from ralph.journal.reading import read
from ralph.journal.runs import journal_path, list_runs
from ralph.prompts.review_matter import Matter
from ralph.prompts.templates import REVIEWERS, library

_MOST_DIFF = 24_000
_MOST_STAT = 4_000
_MOST_RUNS = 20
_MOST_FILES = 300


class Reviewing:
    """Listens to the journal of a run, and answers for a story."""

    def __init__(self, repo: Repo, ref: PlanRef, state: Path, is_ours: Callable[[str], bool]) -> None:
        self._repo = repo
        self._ref = ref
        self._state = state
        self._is_ours = is_ours
        self._trails = Trails()
        self._run = ""

    def listen(self, record: Record) -> None:
        if isinstance(record.event, RunStarted):
            self._run = record.event.run
        self._trails = follow(self._trails, record.event)

    def spans(self, story: str) -> list[tuple[str, str]]:
        """Of each stretch of commits that was kept for a story that is not done yet: the one before it, its last."""
        trail = self._trails.stories.get(story) or self._earlier(story) or Trail()
        return [(span.base, span.commit) for span in trail.spans]

    def matter(self, story: Story | None, reviewer: str) -> Matter:
        if story is None:
            return Matter()
        trail = self._trails.stories.get(story.id) or self._earlier(story.id) or Trail()
        stat, diff = self._diff(trail.spans)
        return Matter(
            stat=stat,
            diff=diff,
            ranges=tuple(f"{self._base(span)}..{span.commit}" for span in trail.spans if span.commit),
            checks=trail.checks,
            doubts=tuple(str(doubt) for doubt in trail.doubts),
            lens=lens(reviewer, self._ref.root),
        )

    def _earlier(self, story: str) -> Trail | None:
        """From the newest earlier run of this plan that kept something for the story."""
        for run in reversed(list_runs(self._state)[-_MOST_RUNS:]):
            if run == self._run:
                continue
            trails = Trails()
            try:
                for record in read(journal_path(self._state, run)):
                    if isinstance(record.event, RunStarted) and record.event.plan != str(self._ref.path):
                        break
                    trails = follow(trails, record.event)
            except BadData:
                continue
            if found := trails.stories.get(story):
                return found
        return None

    def _diff(self, spans: tuple[Span, ...]) -> tuple[str, str]:
        kept = [span for span in spans if span.commit]
        stats = "".join(self._git(span, _MOST_STAT, "--stat=120", "--stat-count=60") for span in kept)
        diffs = ""
        for span in kept:
            if len(diffs) <= _MOST_DIFF:
                diffs += self._git(span, _MOST_DIFF + 1, "-M")
        return stats[:_MOST_STAT].rstrip(), _bounded(diffs)

    def _git(self, span: Span, limit: int, *options: str) -> str:
        base = self._base(span)
        found = changes(self._repo, base, span.commit)
        paths = [change.raw for change in found if not self._is_ours(change.path)][:_MOST_FILES]
        if not paths:
            return ""
        argv = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", *options, base, span.commit)
        out, _ = head_of_output(self._repo, *argv, "--", *paths, limit=limit)
        return out.decode("utf-8", "replace")

    def _base(self, span: Span) -> str:
        """Before the first commit of all there is the empty tree."""
        return span.base or git(self._repo, "hash-object", "-t", "tree", "--stdin").decode().strip()


def _bounded(diff: str) -> str:
    if len(diff) <= _MOST_DIFF:
        return diff.rstrip()
    return f"{diff[:_MOST_DIFF].rpartition(chr(10))[0]}\n… (more is left out here: read it with git)"


def lens(name: str, root: Path) -> str:
    """What one of several reviewers looks at: a page of the library, or a file of the workspace."""
    if not name:
        return ""
    if name in REVIEWERS:
        return library(REVIEWERS[name])
    path = root / name
    if not path.is_file():
        raise UsageError(
            f"there is no reviewer {name!r}, and no such file",
            hint=f"the library has {', '.join(REVIEWERS)}; or name a prompt file in review.reviewers",
        )
    return read_bytes(path, within=root, limit=100_000).decode("utf-8", "replace")


def refuse_unknown_reviewers(names: Iterable[str], root: Path) -> None:
    for name in names:
        lens(name, root)
