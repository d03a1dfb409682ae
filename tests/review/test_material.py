"""The diff of exactly one story, through several runs, without commits, and when git has lost some of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from ralph.core.agent import Outcome
from ralph.core.events import AnyEvent, IterationEnded, IterationStarted, Judged, RunStarted, Settling
from ralph.core.evidence import CheckResult, Ended, Evidence, How
from ralph.core.plan import Mode, Story
from ralph.core.ports import PlanRef
from ralph.core.verdict import Kind, Verdict
from ralph.host.git.repo import identify
from ralph.journal.records import Journal
from ralph.review.material import Reviewing
from ralph.state.runs import journal_path

pytestmark = pytest.mark.usefixtures("git_identity")
STORY = Story(id="US-001", title="t")
CHECK = CheckResult(name="tests", command="pytest", passed=True)


class Workspace:
    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "repo", folder / "state"
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("start")
        self.ref = PlanRef("tasks.json", self.root, self.root / "ralph", self.root / "ralph/tasks.json", "p")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, name: str) -> str:
        (self.root / f"{name}.txt").write_text(f"{name}\n")
        self.git("add", "-A")
        self.git("commit", "-qm", name)
        return self.git("rev-parse", "HEAD")

    def iteration(self, name: str, mode: Mode, *, commit: bool = True, story: str = "US-001") -> list[AnyEvent]:
        """An accepted one that writes the file `name`."""
        before = {"head": self.git("rev-parse", "HEAD"), "tree": self._tree()}
        if commit:
            made = self.commit(name)
        else:
            (self.root / f"{name}.txt").write_text(f"{name}\n")
            made = ""
        evidence = Evidence(
            mode=mode, story=STORY, ended=Ended(How.EXITED, code=0), outcome=Outcome(), checks=(CHECK,), changed=(name,)
        )
        attempt = 2 if name == "again" else 1
        return [
            IterationStarted(
                iteration=1, story=story, title="t", mode=mode, attempt=attempt, checkpoint=before, plan_digest=""
            ),
            Judged(1, evidence, Verdict(Kind.ACCEPTED)),
            Settling(iteration=1, keep=True, tree=self._tree(), commit=commit),
            IterationEnded(iteration=1, story=story, mode=mode, kind=Kind.ACCEPTED, commit=made),
        ]

    def _tree(self) -> str:
        self.git("add", "-A")
        return self.git("write-tree")

    def run(self, name: str, *events: AnyEvent, plan: str = "") -> Reviewing:
        """What the reviewers of this run are told by, once these have happened."""
        reviewing = Reviewing(identify(self.root), self.ref, self.state, lambda path: path.startswith("ralph/"))
        path = journal_path(self.state, name)
        path.parent.mkdir(parents=True)
        journal = Journal(path, lambda: 1.0)
        journal.listen(reviewing.listen)
        whose = plan or str(self.ref.path)
        journal.write(RunStarted(run=name, workspace=str(self.root), layout="tasks.json", plan=whose, pid=1))
        for event in events:
            journal.write(event)
        journal.close()
        return reviewing


@pytest.fixture
def made(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def shown(reviewing: Reviewing) -> list[str]:
    diff = reviewing.matter(STORY, "").diff
    return [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


def test_a_story_that_took_three_runs_is_shown_whole_and_nothing_else(made: Workspace) -> None:
    made.run("1", *made.iteration("first", Mode.IMPLEMENT))
    made.commit("by a person")
    made.run("2", *made.iteration("other", Mode.IMPLEMENT, story="US-002"))
    made.run("3", *made.iteration("of another plan", Mode.IMPLEMENT), plan="/elsewhere")
    fixing = made.run("4", *made.iteration("second", Mode.FIX))
    assert shown(fixing) == ["first", "second"]
    assert shown(made.run("5")) == ["first", "second"]
    assert len(made.run("6").spans("US-001")) == 2
    assert fixing.matter(STORY, "").checks == (CHECK,)


def test_work_that_was_kept_without_a_claim_belongs_to_the_story(made: Workspace) -> None:
    made.run("1", *made.iteration("half", Mode.IMPLEMENT))
    assert shown(made.run("2", *made.iteration("again", Mode.IMPLEMENT))) == ["again", "half"]


def test_a_story_that_was_done_begins_anew(made: Workspace) -> None:
    events = made.iteration("first", Mode.IMPLEMENT)
    made.run("1", *events[:-1], msgspec.structs.replace(events[-1], completes=True))
    assert shown(made.run("2")) == []
    assert made.run("3").matter(STORY, "").ranges == ()


def test_without_commits_the_trees_tell(made: Workspace) -> None:
    reviewing = made.run("1", *made.iteration("first", Mode.IMPLEMENT, commit=False))
    assert shown(reviewing) == ["first"]
    assert shown(made.run("2", *made.iteration("second", Mode.FIX, commit=False))) == ["first", "second"]


def test_commits_that_are_gone_are_said_to_be(made: Workspace) -> None:
    first = made.iteration("first", Mode.IMPLEMENT)
    assert isinstance(first[-1], IterationEnded)
    made.run("1", *first[:-1], msgspec.structs.replace(first[-1], commit="0" * 39 + "1"))
    reviewing = made.run("2", *made.iteration("second", Mode.FIX))
    assert shown(reviewing) == ["second"]
    assert not reviewing.matter(STORY, "").is_whole
    assert reviewing.spans("US-001") == made.run("3").spans("US-001")


def test_of_very_many_files_the_rest_is_counted(made: Workspace) -> None:
    events = made.iteration("first", Mode.IMPLEMENT)
    for number in range(310):
        (made.root / f"many-{number:03}.txt").write_text("x\n")
    assert isinstance(events[-1], IterationEnded)
    ended = msgspec.structs.replace(events[-1], commit=made.commit("last"))
    assert "… and 12 more files" in made.run("1", *events[:-1], ended).matter(STORY, "").stat
