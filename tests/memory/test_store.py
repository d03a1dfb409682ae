"""The memory of a plan where a layout has no place for it, and where it is very long."""

from __future__ import annotations

import os
from pathlib import Path

from ralph.core.events import IterationEnded, Record
from ralph.core.learning import learned
from ralph.core.plan import Mode
from ralph.core.ports import Locations, PlanRef
from ralph.core.verdict import Kind
from ralph.journal.sinks.table import make_sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.memory.store import Touched, keep, learnings_of, memory_of, recent_learnings, take_in
from ralph.state.places import plan_state
from support.workspaces import workspace


def elsewhere(root: Path) -> tuple[PlanRef, Locations]:
    """A plan in a layout of somebody else, without a log."""
    ref = PlanRef("toml", root, root, root / "plan.toml", "plan")
    return ref, Locations(plan=ref.path, archive=root / "archive")


def ended(*texts: str, kind: Kind = Kind.ACCEPTED) -> Record:
    event = IterationEnded(
        iteration=1,
        story="US-1",
        mode=Mode.IMPLEMENT,
        kind=kind,
        learned=texts,
        files=("src/a.py",),
        commit="abcdef012",
    )
    return Record(1, 0.0, event)


def test_a_layout_without_a_place_for_it_has_one_in_the_state_folder(tmp_path: Path) -> None:
    ref, where = elsewhere(tmp_path)
    state = plan_state(ref, os.environ)
    state.mkdir(parents=True)
    sinks = make_sinks(ref, where, WorkspaceFiles(tmp_path), state)
    sinks(ended("Cents only", kind=Kind.REJECTED))
    sinks(ended("cents only!", "One more"))
    sinks(ended("One more"))
    memory = memory_of(ref, where, os.environ)
    assert memory.path == state / "learnings.md"
    assert memory.path.read_text() == (
        "# Learnings\n\n"
        "- Cents only (US-1, 1970-01-01, abcdef012, not accepted)\n"
        "- cents only! (US-1, 1970-01-01, abcdef012)\n"
        "- One more (US-1, 1970-01-01, abcdef012)\n"
    )
    assert [one.text for one in learnings_of(memory)] == ["cents only!", "One more"]
    assert list(tmp_path.iterdir()) == []
    kept = keep(ref, memory, [learned("By hand", day="2026-01-01")], os.environ)
    assert [one.text for one in kept.new] == ["By hand"]
    assert len(learnings_of(memory)) == 3


def test_of_a_very_long_log_the_beginning_and_the_end_are_heard(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    log = ref.folder / "progress.txt"
    middle = "".join(f"\n- Learned: fact {n} (2026-01-01)\n" for n in range(20_000))
    log.write_text(
        f"# Log\n\n## Codebase Patterns\n- First of all\n\n---\n{middle}\n- Learned: Last of all (2026-01-02)\n"
    )
    where = Locations(plan=ref.path, archive=tmp_path, progress=log)
    memory = memory_of(ref, where, os.environ)
    heard = [one.text for one in recent_learnings(memory)]
    assert heard[0] == "First of all"
    assert heard[-1] == "Last of all"
    assert 1000 < len(heard) < 10_000
    assert len(learnings_of(memory)) == 20_002, "nothing is lost"


def test_nothing_waits_and_nothing_is_told(tmp_path: Path) -> None:
    ref, where = elsewhere(tmp_path)
    assert take_in(ref, memory_of(ref, where, os.environ)) == []


def test_files_that_attempts_have_touched_are_remembered_by_story() -> None:
    touched = Touched()
    touched.listen(ended())
    touched.listen(ended())
    assert touched.of("US-1") == ("src/a.py",)
    assert touched.of("US-2") == ()
