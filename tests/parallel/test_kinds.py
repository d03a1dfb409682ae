"""Several workers with reviews, other layouts, and without a sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.core.events import IterationStarted
from ralph.plans.registry import layout as read_layout
from support.parallel_runs import Project, writes
from support.workspaces import story_id, workspace

CLAIM = """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE" """


def test_workers_have_no_sandbox_where_the_run_has_none(tmp_path: Path) -> None:
    """The hosts that this agent needs are not known, so the run has no sandbox, and says so."""
    (tmp_path / "outside.txt").write_text("outside\n")
    line = f"cat {tmp_path}/outside.txt > $RALPH_STORY.txt; {CLAIM}"
    agent = {"name": "command", "command": ["sh", "-c", line]}
    project = Project(tmp_path, {"S-1": [], "S-2": []}, config={"agent": agent})
    done = project.run()
    assert "no sandbox" in done.err
    project.check("S-1", "S-2")
    assert project.git("show", "HEAD:S-1.txt") == project.git("show", "HEAD:S-2.txt") == "outside"


def test_reviews_are_sessions_of_workers_too(tmp_path: Path) -> None:
    reviewed = {"review": [{"verdict": {"what": "approved", "by": "request"}}]}
    stories = {f"S-{n}": [{"implement": writes(f"f{n}.txt", f"{n}\n"), **reviewed}] for n in (1, 2)}
    project = Project(tmp_path, stories, config={"review": {"enabled": True}})
    project.run()
    assert project.done() == ["S-1", "S-2"]
    modes = [event.mode.value for event in project.events(IterationStarted)]
    assert sorted(modes) == ["implement", "implement", "review", "review"]
    assert not project.processes()


@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "spec.md", "steps"])
def test_other_layouts(tmp_path: Path, layout: str) -> None:
    project = Project(tmp_path, {"S-1": []}, config={"review": {"enabled": False}})
    project.git("rm", "-rqf", ".ralph/many")
    ref = workspace(project.root, layout)
    (project.root / "Makefile").write_text("test:\n\t@true\n")
    every = [{"run": "echo done > $RALPH_STORY.txt"}, {"claim": "done"}]
    (tmp_path / "script.yaml").write_text(json.dumps({"stories": {"*": [{"implement": every}]}}))
    project.git("add", "-A")
    project.git("commit", "-qm", "the plan")
    project.run()
    assert project.reason() == "complete"
    files = project.git("ls-tree", "--name-only", "HEAD").splitlines()
    assert {f"{story_id(layout, n)}.txt" for n in (4, 5, 6)} <= set(files)
    assert all(story.is_done for story in read_layout(layout).parse(ref.path.read_bytes(), "").stories)
    assert all(event.worker for event in project.events(IterationStarted))
    assert not project.processes()


def test_steps_that_do_not_commit_are_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, {"S-1": [writes("one.txt", "1\n")]})
    project.git("rm", "-rqf", ".ralph/many")
    workspace(project.root, "steps")
    (project.root / ".ralph/configs").mkdir()
    steps = {"name": "default", "steps": [{"type": "agent", "name": "run-claude"}]}
    (project.root / ".ralph/configs/default.json").write_text(json.dumps(steps))
    done = project.run(code=None)
    assert done.code == 78
    assert "workers need a clone each, and none can be made: its steps do not commit" in done.err
    assert "--parallel 1" in done.err
