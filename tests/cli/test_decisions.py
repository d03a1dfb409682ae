"""`ralph task finding` and `ralph task skip`: what they say, to people and to programs; also in a run with workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.core.changes import SetFields
from ralph.core.events import FindingDecided, IterationEnded, IterationStarted, StorySetAside
from ralph.core.plan import Mode
from ralph.core.ports import PlanRef
from ralph.core.review import Entry, Fate, Finding, Ledger, Review, ReviewStatus
from ralph.journal.records import read
from ralph.run.replay import replay
from ralph.workspace.find import store_for
from support.cli import ralph, ralph_here
from support.parallel_runs import Project, writes
from support.processes import wait_for
from support.workspaces import workspace

FOUND = {"verdict": {"what": "changes_requested", "findings": [{"text": "never closed"}]}}


@pytest.fixture
def ref(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlanRef:
    """US-004 has two findings, one of which says something that a terminal must not get."""
    env = {"RALPH_STATE_HOME": str(tmp_path / "state")}
    monkeypatch.setenv("RALPH_STATE_HOME", env["RALPH_STATE_HOME"])
    ref = workspace(tmp_path / "w", "tasks.json")
    store = store_for(ref, env)
    first = Finding("never\x1b[2J closed", "io.py:1", "high", evidence="lsof\nshows it")
    entries = (
        Entry(id="F1", finding=first, reviewer="claude", review=1),
        Entry(id="F2", finding=Finding("a bad name"), fate=Fate.REJECTED, reason="the standard's", review=1),
    )
    review = Review(ReviewStatus.CHANGES_REQUESTED, 1, "never closed")
    store.save(store.load(), [SetFields("US-004", {"ledger": Ledger(entries), "review": review})])
    return ref


def test_findings_are_listed_with_their_fate(ref: PlanRef) -> None:
    done = ralph_here("task", "finding", "US-004", cwd=ref.root)
    assert done.out.splitlines()[:4] == [
        "F1  open: [high] io.py:1: never closed",
        "    evidence: lsof shows it",
        "F2  rejected: a bad name",
        "    reason: the standard's",
    ]
    assert 'ralph task finding US-004 F1 --reject "…"' in done.err
    one = ralph_here("task", "finding", "US-004", "f2", cwd=ref.root)
    assert one.out.startswith("F2  rejected")
    listed = ralph_here("task", "finding", "US-004", "--json", cwd=ref.root).json
    assert [(each["id"], each["fate"], each["by_user"]) for each in listed] == [
        ("F1", "open", False),
        ("F2", "rejected", False),
    ]
    assert ralph_here("task", "finding", "US-005", cwd=ref.root).out == "No review of US-005 has raised a finding.\n"


def test_a_finding_is_rejected_and_another_confirmed(ref: PlanRef) -> None:
    done = ralph_here("task", "finding", "US-004", "F1", "--reject", "the caller closes it", cwd=ref.root)
    assert done.out == "rejected finding F1 of US-004; the story goes to a review next\n"
    done = ralph_here("task", "finding", "US-004", "F2", "--confirm", "--json", cwd=ref.root)
    assert done.json == {"story": "US-004", "finding": "F2", "decision": "confirmed", "queued": False}
    out = ralph_here("task", "finding", "US-004", cwd=ref.root).out
    assert "F1  rejected by you: [high]" in out
    assert "F2  open, confirmed by you: a bad name" in out
    again = ralph_here("task", "finding", "US-004", "F2", "--confirm", cwd=ref.root)
    assert (again.code, "was confirmed by you already" in again.err) == (65, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("finding", "US-004", "--confirm"), 64, "the ID of the finding is missing"),
        (("finding", "US-004", "F3", "--confirm"), 64, "has no finding 'F3'"),
        (("finding", "US-004", "F1", "--reject", ""), 64, "the reason is empty"),
        (("finding", "US-4"), 64, "did you mean US-004"),
        (("skip", "US-001"), 65, "is done and cannot become failed"),
        (("skip", "US-4"), 64, "did you mean US-004"),
        (("skip", "US-004", "\x07"), 64, "control character"),
    ],
)
def test_what_makes_no_sense_is_said(ref: PlanRef, words: tuple[str, ...], code: int, told: str) -> None:
    done = ralph_here("task", *words, cwd=ref.root)
    assert (done.code, done.out) == (code, "")
    assert told in done.err


def test_a_story_is_skipped_and_brought_back(ref: PlanRef) -> None:
    done = ralph_here("task", "skip", "US-004", "not this month", cwd=ref.root)
    assert done.out == "skipped US-004; `ralph retry US-004` brings it back\n"
    shown = ralph_here("task", "show", "US-004", cwd=ref.root).out
    assert "failed: skipped by you: not this month" in shown
    assert ralph_here("task", "skip", "US-004", cwd=ref.root).code == 65
    assert "Reopened US-004" in ralph_here("retry", cwd=ref.root).out
    kept = ralph_here("task", "show", "US-004", "--json", cwd=ref.root).json
    assert kept["state"] == "todo"
    assert kept["review"]["status"] == "changes_requested"


def test_an_agent_can_look_and_not_decide(ref: PlanRef) -> None:
    loop = {"RALPH_LOOP": "1", "RALPH_MODE": "fix", "RALPH_STORY": "US-004"}
    assert ralph_here("task", "finding", "US-004", cwd=ref.root, env=loop).code == 0
    for words in (
        ("finding", "US-004", "F1", "--reject", "no"),
        ("finding", "US-004", "F2", "--confirm"),
        ("skip", "US-004"),
    ):
        done = ralph_here("task", *words, cwd=ref.root, env=loop)
        assert (done.code, "an agent in a loop cannot" in done.err) == (65, True), words


def test_with_workers_a_decision_waits_until_nobody_works_on_the_story(tmp_path: Path) -> None:
    fix = [{"sleep": 4}, *writes("x", "x\n")]
    sessions: dict[str, Any] = {
        "S-1": [{"implement": writes("one.txt", "1\n"), "review": [FOUND], "fix": fix}],
        "S-2": [writes("two.txt", "2\n", seconds=6)],
        "S-3": [writes("three.txt", "3\n")],
    }
    made = Project(tmp_path, sessions, config={"review": {"when": "always"}})
    process = made.start(workers=2)

    def fixing() -> bool:
        return any(event.mode is Mode.FIX for event in made.events(IterationStarted))

    wait_for(lambda: made.journals and fixing())
    done = ralph("task", "finding", "S-1", "F1", "--confirm", "it leaks", cwd=made.root)
    assert "will be confirmed between two iterations of the run" in done.out
    assert "S-3 will be skipped" in ralph("task", "skip", "S-3", "later", cwd=made.root).out
    wait_for(lambda: made.events(FindingDecided))
    events = [record.event for record in read(made.journals[-1])]
    (decided,) = (number for number, event in enumerate(events) if isinstance(event, FindingDecided))
    before = [event for event in events[:decided] if isinstance(event, IterationEnded) and event.story == "S-1"]
    assert [event.mode for event in before] == [Mode.IMPLEMENT, Mode.REVIEW, Mode.FIX]
    ralph("stop", cwd=made.root)
    made.finish(process)
    (aside,) = made.events(StorySetAside)
    assert (aside.story, aside.by_user) == ("S-3", True)
    assert not replay(read(made.journals[-1])).differences
