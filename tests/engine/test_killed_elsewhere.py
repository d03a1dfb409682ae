"""A run that was killed in a worktree, or for another plan: the next run closes it, and commands reach its plan."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from ralph.core.events import AgentStarted, IterationEnded
from ralph.journal.records import read
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

TWO = {"US-001": "Say one", "US-002": "Say two"}
ONE = "    - implement: [{write: {path: src/one.txt, text: one}}, claim]\n"
SLOW = (
    "    - implement: [{write: {path: src/two.txt, text: half}}, {run: 'test -e MARK || { touch MARK; sleep 60; }'}, "
    "{write: {path: src/two.txt, text: two}}, claim]\n"
)


def made(tmp_path: Path, slow: str = SLOW) -> LoopProject:
    script = f"stories:\n  US-001:\n{ONE}  US-002:\n{slow}".replace("MARK", str(tmp_path / "slept"))
    return LoopProject.make(tmp_path / "made", Scenario("tasks.json", TWO, script, [], config=CONFIG))


def worktree(project: LoopProject) -> Path:
    (folder,) = project.state.glob("*/worktrees/*")
    return folder


def killed_in_worktree(project: LoopProject) -> int:
    """Kill the loop while its second story is worked on. Returns the agent's process id: the agent lives on."""
    process = start_ralph(project, "run", "--plain", "--worktree")
    wait_for((project.folder.parent / "slept").exists)
    agents = [event for event in project.events() if isinstance(event, AgentStarted)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return agents[-1].pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_killed_run_in_a_worktree_is_shown_closed_and_continued(tmp_path: Path) -> None:
    project = made(tmp_path)
    pid = killed_in_worktree(project)
    folder = worktree(project)
    shown = run_ralph(project, "status")
    assert f"in the worktree {folder} was killed, 1 of 2 stories done; `ralph run --worktree` continues it" in shown.err
    (listed,) = json.loads(run_ralph(project, "runs", "--json").out)
    assert (listed["done"], listed["reason"], listed["running"]) == (1, None, False)
    assert "`ralph run --worktree` finishes or undoes what it left open" in run_ralph(project, "report").out
    done = run_ralph(project, "run", "--plain", "--worktree")
    assert done.code == 0, done.out + done.err
    assert "changed since that iteration started" not in done.out + done.err, (
        "the workspace's settings are as they were"
    )
    assert not is_alive(pid)
    assert "undid iteration 2 (US-002), which was interrupted" in done.out + done.err
    assert f"continuing in {folder}" in done.err
    assert list(project.state.glob("*/worktrees/*")) == [folder]
    branch = f"ralph/words-{folder.name}"
    assert project.git("show", f"{branch}:src/one.txt") == "one"
    assert project.git("show", f"{branch}:src/two.txt") == "two"
    assert project.git("log", "--format=%s", branch).count("feat(US-001)") == 1
    assert "src/one.txt" not in project.git("ls-tree", "-r", "--name-only", "main")
    newest, _ = (listed["run"] for listed in json.loads(run_ralph(project, "runs", "--json").out))
    newer = f"newer run {newest} in worktree {folder}, branch {branch}: complete, not merged here"
    assert newer in run_ralph(project, "status").err
    project.git("merge", "-q", branch)
    assert "newer run" not in run_ralph(project, "status").err


def test_a_run_in_the_workspace_ends_the_agent_of_a_killed_worktree_run(tmp_path: Path) -> None:
    project = made(tmp_path)
    pid = killed_in_worktree(project)
    done = run_ralph(project, "run", "--plain", "--once")
    assert done.code == 0, done.out + done.err
    assert not is_alive(pid)
    assert "recovered run" in done.err
    records = [read(path) for path in project.state.glob(f"{worktree(project).name}-*/runs/*/events.jsonl")]
    ended = [r.event for journal in records for r in journal if isinstance(r.event, IterationEnded)]
    assert [event.story for event in ended] == ["US-001", "US-002"]


def test_commands_reach_the_plan_of_a_run_in_a_worktree(tmp_path: Path) -> None:
    asks = "    - implement: [{ask: Which word?}]\n"
    waits = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    slow = f"    - implement: [{{write: {{path: src/two.txt, text: two}}}}, {{run: '{waits}'}}, claim]\n"
    script = f"stories:\n  US-001:\n{asks}  US-002:\n{slow}"
    project = LoopProject.make(tmp_path / "made", Scenario("tasks.json", TWO, script, [], config=CONFIG))
    before = project.plan.read_bytes()
    process = start_ralph(project, "run", "--plain", "--worktree")
    wait_for(lambda: any(project.state.glob("*/worktrees/*/src/two.txt")))
    listed = run_ralph(project, "answer")
    assert listed.out == "US-001: Which word?\n", listed.err
    learned = run_ralph(project, "learn", "Words are short")
    assert learned.code == 0, learned.err
    (tmp_path / "go").touch()
    done = finish(process)
    assert done.code == 3, done.out
    assert any("Words are short" in path.read_text() for path in worktree(project).glob(".ralph/**/*.*"))
    assert not any("Words are short" in path.read_text() for path in project.root.glob(".ralph/**/*.*"))
    answered = run_ralph(project, "answer", "US-001", "any")
    assert answered.code == 0, answered.err
    assert run_ralph(project, "answer").out == "No open questions.\n"
    assert project.plan.read_bytes() == before
    again = run_ralph(project, "run", "--plain", "--worktree")
    assert "continuing in" in again.err
    assert "implement US-001" in again.out


def test_a_killed_run_of_another_plan_is_closed_before_anything_else(tmp_path: Path) -> None:
    """Its rollback would otherwise remove what this plan's run has committed since."""
    project = made(tmp_path, SLOW.replace("two.txt", "other.txt"))
    other = json.loads(project.plan.read_text())
    other["userStories"] = [story | {"id": "OT-1"} for story in other["userStories"][:1]]
    project.write(".ralph/others/tasks.json", json.dumps(other, indent=2))
    project.write(
        ".ralph/script.yaml", (project.root / ".ralph/script.yaml").read_text() + f"  OT-1:\n{ONE.replace('one', 'ot')}"
    )
    project.git("add", "-A", ".ralph/others", ".ralph/script.yaml")
    project.git("commit", "-qm", "another plan", "--", ".ralph/others", ".ralph/script.yaml")
    process = start_ralph(project, "run", "--plain", "-f", "words")
    wait_for((tmp_path / "slept").exists)  # otherwise the last run would sleep
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(1)
    done = run_ralph(project, "run", "--plain", "-f", "others")
    assert done.code == 0, done.out + done.err
    assert "undid iteration 2 (US-002), which was interrupted" in done.out
    assert not (project.root / "src/other.txt").exists()
    commits = project.git("rev-list", "main").splitlines()
    last = run_ralph(project, "run", "--plain", "-f", "words")
    assert last.code == 0, last.out + last.err
    assert set(commits) <= set(project.git("rev-list", "main").splitlines())
    assert project.git("show", "main:src/ot.txt") == "ot"
