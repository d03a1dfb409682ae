"""A story that is being worked on is in progress: in the file where the format can say so, and only as long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralph.core.events import AgentStarted, IterationEnded
from ralph.core.verdict import Kind
from support.cli import ralph_here
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

GOOD: list[Any] = [{"write": {"path": "src/one.txt", "text": "one\n"}}, "claim"]


def project(folder: Path, *sessions: list[Any], config: str = CONFIG) -> LoopProject:
    script = json.dumps({"stories": {"US-001": list(sessions)}})
    return LoopProject.make(folder, Scenario("steps", {"US-001": "Say one"}, script, [], config=config))


def status(made: LoopProject) -> str:
    return str(json.loads((made.root / ".ralph/prd.json").read_text())["tasks"][0]["status"])


def test_the_file_says_in_progress_while_the_agent_works_and_done_after(tmp_path: Path) -> None:
    made = project(tmp_path / "p", [{"sleep": 2}, *GOOD])
    running = start_ralph(made)
    wait_for(lambda: [e for e in made.events() if isinstance(e, AgentStarted)])
    assert status(made) == "in_progress"
    shown = ralph_here("status", "--json", cwd=made.root, env=made.env).json
    assert [story["state"] for story in shown["stories"]] == ["in_progress"]
    assert finish(running).code == 0
    assert status(made) == "done"
    assert "in_progress" not in made.git("show", "HEAD:.ralph/prd.json")


def test_after_a_failed_attempt_it_is_open_again(tmp_path: Path) -> None:
    made = project(tmp_path / "p", [{"write": {"path": "src/one.txt", "text": "BROKEN\n"}}, "claim"])
    run_ralph(made, "run", "--plain", "-n", "1")
    assert status(made) == "todo"


def test_killed_in_the_middle_it_is_put_right_by_the_next_run(tmp_path: Path) -> None:
    made = project(tmp_path / "p", [{"sleep": 30}], GOOD)
    running = start_ralph(made)
    wait_for(lambda: [e for e in made.events() if isinstance(e, AgentStarted)])
    running.kill()
    finish(running)
    assert status(made) == "in_progress"
    (made.root / ".ralph/script.yaml").write_text(json.dumps({"stories": {"US-001": [GOOD]}}))
    made.git("add", ".ralph/script.yaml")
    made.git("commit", "-qm", "script", "--", ".ralph/script.yaml")
    asked = run_ralph(made)
    assert asked.code == 3, "somebody committed right after the kill"
    assert made.git("rev-parse", "HEAD")[:9] in asked.err
    assert status(made) == "todo"
    assert run_ralph(made).code == 0
    assert status(made) == "done"


def test_an_agents_own_mark_is_a_claim_and_in_progress_is_none(tmp_path: Path) -> None:
    marks = "sed -i.bak 's/in_progress/{}/' .ralph/prd.json && rm .ralph/prd.json.bak"
    work = {"write": {"path": "src/one.txt", "text": "one\n"}}
    made = project(tmp_path / "p", [work, {"run": marks.format("in_progress")}], [{"run": marks.format("done")}, work])
    run_ralph(made, "run", "--plain", "-n", "1")
    (first,) = [e for e in made.events() if isinstance(e, IterationEnded)]
    assert (first.kind, status(made)) == (Kind.PARTIAL, "todo"), "sound, and nobody said that it is done"


def test_without_a_check_unclaimed_work_is_kept(tmp_path: Path) -> None:
    bare = CONFIG.partition("checks:")[0] + "steps: [{type: agent}, {type: git-commit}]\n"
    work = {"write": {"path": "src/one.txt", "text": "half\n"}}
    made = project(tmp_path / "p", [work], config=bare)
    run_ralph(made, "run", "--plain", "-n", "1")
    (first,) = [e for e in made.events() if isinstance(e, IterationEnded)]
    assert first.kind is Kind.PARTIAL
    assert made.git("log", "-1", "--format=%s", "--", "src/one.txt").strip() == "wip(US-001): Say one"
