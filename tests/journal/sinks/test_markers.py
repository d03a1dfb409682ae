from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.core.agent import Outcome
from ralph.core.events import AgentEnded, AgentStarted, IterationStarted, PlanSeen, Record, StepEnded
from ralph.core.evidence import Ended, How
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.review import ReviewStatus
from ralph.core.verdict import Kind
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.state_files import Markers, checkpoint, current_story, ralph_active
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import HEAD, ToldRun, reviewed, seen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def sinks(root: Path) -> Sinks:
    files = WorkspaceFiles(root)
    contents = {
        root / "current-story": current_story,
        root / ".checkpoint": checkpoint,
        root / ".ralph-active": ralph_active,
    }
    return Sinks(files, [Markers(files, contents)])


@pytest.fixture
def run(sinks: Sinks, tmp_path: Path) -> ToldRun:
    return ToldRun(tmp_path / "state" / "events.jsonl", sinks)


def there(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


ALL = {"current-story", ".checkpoint", ".ralph-active"}


def test_markers_are_there_while_the_agent_works_and_at_no_other_time(run: ToldRun, root: Path) -> None:
    moments: list[tuple[str, bool]] = []

    def look(record: Record) -> None:
        assert there(root) in (set(), ALL)
        moments.append((type(record.event).__name__, bool(there(root))))

    run.journal.listen(look)
    run.start(seen())
    run.iterate(1)
    run.stop()
    assert [name for name, marked in moments if marked] == [
        "IterationStarted",
        "AgentStarted",
        "AgentSaid",
        "AgentSaid",
    ]


def test_the_second_agent_of_an_iteration_has_markers_too(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin()
    ended = AgentEnded(iteration=1, step="agent", ended=Ended(How.EXITED, 1), outcome=Outcome())
    run.say(ended)
    assert there(root) == set()
    run.say(AgentStarted(iteration=1, step="agent", pid=7, start="1"))
    assert there(root) == ALL
    run.say(ended)
    assert there(root) == set()


def test_steps_without_an_agent_leave_no_marker_in_the_tree(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.say(IterationStarted(iteration=1, story="US-001", title="t", mode=Mode.IMPLEMENT, attempt=1))
    run.say(StepEnded(iteration=1, step="agent", kind="agent", ok=False, skipped="its circuit breaker is open"))
    assert there(root) == set()


def test_a_run_that_ends_in_the_middle_or_is_closed_leaves_none(run: ToldRun, sinks: Sinks, root: Path) -> None:
    run.start(seen())
    run.begin(1)
    run.stop(Reason.REPOSITORY)
    assert there(root) == set()
    run.begin(2)
    sinks.close()
    assert there(root) == set()


def test_what_a_killed_run_left_is_removed_by_catching_up(run: ToldRun, sinks: Sinks, root: Path) -> None:
    run.start(seen())
    run.begin(1)
    assert there(root) == ALL
    files = WorkspaceFiles(root)
    again = Sinks(files, [Markers(files, {root / name: current_story for name in ALL})])
    again.catch_up(run.records)
    assert there(root) == set()


def test_story_and_checkpoint_are_one_line_each(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin()
    assert (root / "current-story").read_text() == "US-001\n"
    assert (root / ".checkpoint").read_text() == f"{HEAD}\n"


def test_setting_up_on_an_unborn_branch_has_neither(run: ToldRun, root: Path) -> None:
    run.start(seen())
    setup = {"iteration": 1, "story": "", "title": "t", "mode": Mode.SETUP, "attempt": 1}
    run.say(IterationStarted(**setup, checkpoint={"head": None}))  # type: ignore[arg-type]
    assert there(root) == {".ralph-active"}


def test_the_active_marker_has_every_storys_review_fields_before_the_iteration(run: ToldRun, root: Path) -> None:
    run.start(seen("US-001"), reviewed("US-002", 1, ReviewStatus.APPROVED, State.DONE))
    run.begin()
    assert json.loads((root / ".ralph-active").read_bytes()) == {
        "timestamp": "2023-11-14T22:13:20Z",
        "pid": 4242,
        "max_iterations": 10,
        "mode": "direct",
        "skipReview": False,
        "reviewCap": 5,
        "iterationMode": "implement",
        "preIterationSnapshot": {
            "US-001": {"passes": False, "reviewStatus": None, "reviewCount": 0},
            "US-002": {"passes": True, "reviewStatus": "approved", "reviewCount": 1},
        },
    }


def test_the_snapshot_follows_the_plan_and_survives_iterations_that_change_nothing(run: ToldRun, root: Path) -> None:
    run.start(reviewed("US-001", 0, None))
    run.iterate(1)
    run.say(PlanSeen(whole=False, stories=(reviewed("US-001", 2, ReviewStatus.CHANGES_REQUESTED),)))
    run.iterate(2, Kind.LIMIT)
    run.begin(3, mode=Mode.FIX)
    told = json.loads((root / ".ralph-active").read_bytes())
    assert told["iterationMode"] == "review-fix"
    assert told["preIterationSnapshot"]["US-001"] == {
        "passes": False,
        "reviewStatus": "changes_requested",
        "reviewCount": 2,
    }


@pytest.mark.parametrize(
    ("mode", "word"), [(Mode.SETUP, "implement"), (Mode.IMPLEMENT, "implement"), (Mode.REVIEW, "review")]
)
def test_modes_have_the_markers_own_names(mode: Mode, word: str, run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin(mode=mode)
    assert json.loads((root / ".ralph-active").read_bytes())["iterationMode"] == word


def test_one_marker_that_cannot_be_written_does_not_stop_the_others(run: ToldRun, sinks: Sinks, root: Path) -> None:
    (root / "current-story").mkdir()
    run.start(seen())
    run.begin()
    assert there(root) == ALL
    run.judge()
    assert there(root) == {"current-story"}
    assert sinks.failures == ("current-story could not be written: it is not a regular file",)


def test_what_a_kill_in_the_middle_of_a_write_left_is_swept_away(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin(1)
    names = ["current-story", ".checkpoint", ".ralph-active"]
    for name in names:
        (root / f".{name}.x1y2.tmp").write_bytes(b"half")
    (root / ".current-story.tmp").write_bytes(b"a person's")
    files = WorkspaceFiles(root)
    Sinks(files, [Markers(files, {root / name: current_story for name in names})]).catch_up(run.records)
    assert there(root) == {".current-story.tmp"}
