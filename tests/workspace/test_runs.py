"""The last run of a plan, whatever is left of its journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.core.agent import Text
from ralph.core.events import AgentSaid, AnyEvent, Noted, RunEnded, RunStarted, WaitEnded, WaitStarted
from ralph.core.moves import Reason
from ralph.core.ports import PlanRef
from ralph.journal.records import Journal
from ralph.state.locks import claim, is_at_work
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from ralph.workspace.runs import LastRun, Standing, last_run
from support.workspaces import workspace

RUN = "20261115-120000-abcd"


@pytest.fixture
def ref(tmp_path: Path) -> PlanRef:
    return workspace(tmp_path, "tasks.json")


def record(ref: PlanRef, *events: AnyEvent) -> Path:
    """A journal with these events after the first, one a second from 1000 on."""
    path = journal_path(workspace_state(ref.root, os.environ), RUN)
    seconds = iter(range(1000, 9999))
    journal = Journal(path, lambda: float(next(seconds)))
    journal.write(RunStarted(run=RUN, workspace=str(ref.root), layout=ref.layout, plan=str(ref.path), pid=1))
    for event in events:
        journal.write(event)
    journal.close()
    state = plan_state(ref, os.environ)
    state.mkdir(parents=True, exist_ok=True)
    (state / "last-run").write_text(f"{RUN}\n")
    return path


def test_a_plan_without_a_run_has_none(ref: PlanRef) -> None:
    assert last_run(ref, os.environ) is None


def test_a_run_that_ended_says_why_and_when(ref: PlanRef) -> None:
    record(ref, RunEnded(Reason.ITERATION_CAP, "20 iterations"))
    assert last_run(ref, os.environ) == LastRun(
        RUN, Standing.ENDED, 1000, 1001, reason="iteration-cap", detail="20 iterations"
    )


def test_a_run_at_work_holds_its_lock(ref: PlanRef) -> None:
    record(ref)
    with claim(ref, os.environ, RUN):
        assert last_run(ref, os.environ) == LastRun(RUN, Standing.RUNNING, 1000, 1000)
    assert last_run(ref, os.environ) == LastRun(RUN, Standing.UNFINISHED, 1000, 1000)
    with claim(ref, os.environ, "archive"):
        found = last_run(ref, os.environ)
    assert found is not None
    assert found.standing is Standing.UNFINISHED


def test_a_run_that_waits_says_for_what_and_until_when(ref: PlanRef) -> None:
    record(ref, WaitStarted(5000.0, "the usage limit is reached"), Noted("something"))
    with claim(ref, os.environ, RUN):
        assert last_run(ref, os.environ) == LastRun(
            RUN, Standing.WAITING, 1000, 1002, detail="the usage limit is reached", until=5000.0
        )
    record(ref, WaitStarted(5000.0, "the usage limit is reached"), WaitEnded())
    with claim(ref, os.environ, RUN):
        assert last_run(ref, os.environ) == LastRun(RUN, Standing.RUNNING, 1000, 1002)


def test_whether_any_run_is_at_work_can_be_asked(ref: PlanRef) -> None:
    state = plan_state(ref, os.environ)
    assert not is_at_work(state)
    with claim(ref, os.environ, RUN):
        assert is_at_work(state)
        assert not is_at_work(state, "another")


def test_another_plans_run_is_not_this_ones(ref: PlanRef) -> None:
    record(ref, RunEnded(Reason.COMPLETE))
    assert last_run(workspace(ref.root, "spec.md"), os.environ) is None


def test_a_long_journal_is_read_at_its_ends(ref: PlanRef) -> None:
    said = [AgentSaid(1, Text("x" * 300_000)) for _ in range(3)]
    record(ref, *said, RunEnded(Reason.COMPLETE))
    found = last_run(ref, os.environ)
    assert found is not None
    assert (found.standing, found.seen) == (Standing.ENDED, 1004)


def instead(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "not JSON": lambda path: path.write_bytes(b"what?\n" + path.read_bytes()),
    "bad last line": lambda path: path.write_bytes(path.read_bytes() + b"{}\n"),
    "zeros": lambda path: path.write_bytes(bytes(5000) + b"\n"),
    "a folder": lambda path: instead(path, Path.mkdir),
    "a FIFO": lambda path: instead(path, os.mkfifo),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_journal_is_reported(ref: PlanRef, damage: Callable[[Path], object]) -> None:
    damage(record(ref, RunEnded(Reason.COMPLETE)))
    found = last_run(ref, os.environ)
    assert found is not None
    assert (found.run, found.standing) == (RUN, Standing.UNREADABLE)
    assert "could not be read" in found.detail


@pytest.mark.parametrize("rest", [b"", b'{"seq": 1, "t'])
def test_a_run_killed_at_its_first_line_is_unfinished(ref: PlanRef, rest: bytes) -> None:
    record(ref).write_bytes(rest)
    assert last_run(ref, os.environ) == LastRun(RUN, Standing.UNFINISHED)


def test_a_torn_last_line_is_left_out(ref: PlanRef) -> None:
    path = record(ref, RunEnded(Reason.COMPLETE))
    path.write_bytes(path.read_bytes() + b'{"seq": 3, "t": 10')
    found = last_run(ref, os.environ)
    assert found is not None
    assert found.standing is Standing.ENDED


@pytest.mark.parametrize("name", ["", "../../../etc", "a/b", "x" * 500, "\x1b[31m", "\udcff"])
def test_an_odd_name_of_a_run_is_no_run(ref: PlanRef, name: str) -> None:
    record(ref, RunEnded(Reason.COMPLETE))
    (plan_state(ref, os.environ) / "last-run").write_bytes(name.encode(errors="surrogateescape"))
    assert last_run(ref, os.environ) is None
