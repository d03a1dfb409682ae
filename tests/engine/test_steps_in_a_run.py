"""Steps as a configuration has them, from the command line, with the scripted agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import AgentEnded, AgentStarted, IterationEnded, Judged, WaitEnded, WaitStarted
from ralph.core.evidence import How
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.journal.records import read
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

AGENT: dict[str, Any] = {"type": "agent", "name": "run-claude"}
COMMIT: dict[str, Any] = {"type": "git-commit"}
GOOD = "[{append: {path: src/one.txt, text: one}}, claim]"


def project(
    tmp_path: Path, steps: list[dict[str, Any]], script: str = GOOD, setup: str = "[]", stories: int = 1, **top: Any
) -> LoopProject:
    scenario = Scenario(
        "steps",
        {f"US-00{n}": f"Say {n}" for n in range(1, stories + 1)},
        f"setup: {setup}\nstories:\n  '*':\n    - implement: {script}\n",
        [],
        config=CONFIG.partition("checks:")[0],
    )
    made = LoopProject.make(tmp_path / "made", scenario)
    made.write(".ralph/configs/default.json", json.dumps({"name": "default", "steps": steps, **top}))
    return made


def ended(made: LoopProject) -> list[IterationEnded]:
    return [event for event in made.events() if isinstance(event, IterationEnded)]


def test_what_the_set_up_made_is_committed_before_the_first_task(tmp_path: Path) -> None:
    setup = {"type": "agent", "name": "setup", "config": {"marker_file": ".ralph/.setup_done"}}
    made = project(tmp_path, [setup, AGENT, COMMIT], setup="[{write: {path: README.md, text: hello}}]")
    done = run_ralph(made)
    assert done.code == 0, done.err
    assert made.git("log", "--format=%s", "-2", "--reverse", "--", "README.md") == "chore: set up the project"
    assert not made.git("status", "--porcelain", "--", "README.md", "src")
    assert (made.root / ".ralph/.setup_done").exists()
    again = run_ralph(made)
    assert again.code == 0, again.err
    assert [e.mode for e in ended(made)] == [Mode.SETUP, Mode.IMPLEMENT]


def test_checks_run_after_the_set_up_and_before_the_first_task(tmp_path: Path) -> None:
    setup = {"type": "agent", "name": "setup", "config": {"marker_file": ".ralph/.setup_done"}}
    made = project(tmp_path, [setup, AGENT, COMMIT], setup="[{write: {path: README.md, text: hello}}]")
    config = made.root / ".ralph/config.yaml"
    made.write(".ralph/config.yaml", config.read_text() + "checks: [{name: readme, command: test -f README.md}]\n")
    done = run_ralph(made)
    assert done.code == 0, done.err
    assert [(e.mode, e.kind) for e in ended(made)] == [(Mode.SETUP, Kind.ACCEPTED), (Mode.IMPLEMENT, Kind.ACCEPTED)]


def test_a_marker_that_a_person_wrote_keeps_its_content(tmp_path: Path) -> None:
    """Another step has no marker yet, so the set-up runs."""
    steps = [
        {"type": "agent", "name": name, "config": {"marker_file": file}}
        for name, file in (("one", "docs/setup.md"), ("two", ".ralph/.setup_done"))
    ]
    made = project(tmp_path, [*steps, AGENT, COMMIT])
    made.write("docs/setup.md", "how we set it up\n")
    made.git("add", "docs")
    made.git("commit", "-qm", "notes")
    done = run_ralph(made)
    assert done.code == 0, done.err
    assert [e.mode for e in ended(made)] == [Mode.SETUP, Mode.IMPLEMENT]
    assert (made.root / "docs/setup.md").read_text() == "how we set it up\n"
    assert (made.root / ".ralph/.setup_done").exists()


@pytest.mark.parametrize("commits", [True, False])
def test_what_was_learned_is_committed_when_the_pipeline_commits(tmp_path: Path, commits: bool) -> None:
    script = "[{append: {path: src/one.txt, text: one}}, {learn: Words are short}, claim]"
    made = project(tmp_path, [AGENT, COMMIT] if commits else [AGENT], script)
    head = made.git("rev-parse", "HEAD")
    assert run_ralph(made, "run").code == 0
    assert "Words are short" in (made.root / ".ralph/learnings.md").read_text()
    assert ("learnings.md" in made.git("status", "--porcelain")) is not commits
    assert (made.git("rev-parse", "HEAD") != head) is commits


def test_a_set_up_that_never_works_ends_the_run(tmp_path: Path) -> None:
    setup = {"type": "agent", "name": "setup", "config": {"marker_file": ".ralph/.setup_done"}}
    made = project(tmp_path, [setup, AGENT], setup="[{crash: 1}]", max_loops_per_task=2)
    done = run_ralph(made)
    assert done.code == 1
    assert "the set-up failed 2 times" in done.out


def test_over_its_attempts_a_task_is_failed_and_the_next_one_is_taken(tmp_path: Path) -> None:
    made = project(tmp_path, [AGENT, COMMIT], "[lie]", stories=3, max_loops_per_task=4)
    done = run_ralph(made)
    assert done.code == 5
    assert "stopped: failed-stories" in done.out
    assert [e.story for e in ended(made)] == [f"US-00{n}" for n in (1, 2, 3) for _ in range(4)]
    assert [task["status"] for task in json.loads(made.plan.read_text())["tasks"]] == ["failed"] * 3


def test_an_agent_step_has_its_own_time(tmp_path: Path) -> None:
    step = AGENT | {"timeout": "20m", "config": {"timeout": "1s"}}
    made = project(tmp_path, [step, COMMIT], "[{silent: 60}]")
    run_ralph(made, "run", "--once")
    (agent,) = (event for event in made.events() if isinstance(event, AgentEnded))
    assert agent.ended.how is How.TIMED_OUT
    assert agent.ended.seconds < 30


def test_what_is_said_for_one_run_wins_over_the_configuration_of_a_step(tmp_path: Path) -> None:
    config = {"model": "sonnet", "timeout": "1s", "allowed_tools": "Write", "prompt_file": "mine.md"}
    made = project(tmp_path, [AGENT | {"config": config}])
    made.write("mine.md", "MINE")
    made.write("other.md", "OTHER")
    made.write("bin/claude", "#!/bin/sh\n", mode=0o755)
    dry = ("run", "--dry-run", "--agent", "claude", "--agent-command", "bin/claude")
    plain = run_ralph(made, *dry).out
    assert "--model sonnet" in plain
    assert "--allowedTools=Write " in plain
    assert "\nMINE\n" in plain
    given = run_ralph(made, *dry, "--model", "opus", "--allowed-tools", "Read", "-p", "other.md").out
    assert "--model opus" in given
    assert "--allowedTools=Read " in given
    assert "\nOTHER\n" in given
    by_variable = run_ralph(made, *dry, RALPH_AGENT_MODEL="haiku").out
    assert "--model haiku" in by_variable


def test_an_agent_that_is_switched_off_is_not_started(tmp_path: Path) -> None:
    made = project(tmp_path, [AGENT | {"enabled": False}, {"type": "noop"}])
    run_ralph(made, "run", "--once")
    assert not any(isinstance(event, AgentEnded) for event in made.events())


def test_a_command_that_fails_is_a_reason_to_reject_unless_it_may_fail(tmp_path: Path) -> None:
    failing = {"type": "command", "name": "words", "config": {"command": "false"}}
    made = project(tmp_path, [AGENT, failing, COMMIT])
    assert run_ralph(made, "run", "--once").code == 1
    steps = [AGENT, failing | {"continue_on_error": True}, COMMIT]
    made.write(".ralph/configs/default.json", json.dumps({"steps": steps}))
    assert run_ralph(made, "run", "--once").code == 0
    assert [e.kind for e in ended(made)] == [Kind.REJECTED, Kind.ACCEPTED]
    assert made.git("log", "-1", "--format=%s") == "feat(US-001): Say 1"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([AGENT, {"type": "commnd"}], "unknown step type 'commnd'"),
        ([AGENT | {"config": {"timeout": "soon"}}], "(steps[0].config.timeout): expected a duration"),
    ],
)
def test_a_wrong_step_is_said_before_anything_begins(tmp_path: Path, steps: list[dict[str, Any]], told: str) -> None:
    made = project(tmp_path, steps)
    done = run_ralph(made)
    assert done.code in (64, 65)
    assert told in done.err
    assert not made.journals()


def test_a_step_that_cannot_be_used_stops_the_run_and_leaves_its_mending_alone(tmp_path: Path) -> None:
    wrong = {"type": "command", "name": "test", "config": {"command": "true", "args": "no list"}}
    made = project(tmp_path, [AGENT, wrong, COMMIT])
    done = run_ralph(made)
    assert done.code == 78
    assert "needs `config.command`" in done.out
    mended = json.dumps({"steps": [AGENT, {"type": "command", "config": {"command": "true"}}, COMMIT]})
    made.write(".ralph/configs/default.json", mended)
    again = run_ralph(made)
    assert again.code == 0, again.out
    assert (made.root / ".ralph/configs/default.json").read_text() == mended
    assert [e.kind for e in ended(made)] == [Kind.MISCONFIGURED, Kind.ACCEPTED]


def test_a_template_with_an_unknown_variable_stops_the_run_and_leaves_its_mending_alone(tmp_path: Path) -> None:
    made = project(tmp_path, [AGENT, COMMIT])
    made.write(".ralph/prompts/LOOP_PROMPT.md", "Do\n  {{STORY_IDD}}\n")
    done = run_ralph(made)
    assert done.code == 78
    assert ".ralph/prompts/LOOP_PROMPT.md:2:5: unknown variable STORY_IDD (did you mean STORY_ID?)" in done.out
    made.write(".ralph/prompts/LOOP_PROMPT.md", "Do {{STORY_ID}}\n")
    again = run_ralph(made)
    assert again.code == 0, again.out
    assert "recovered" not in again.out
    assert (made.root / ".ralph/prompts/LOOP_PROMPT.md").read_text() == "Do {{STORY_ID}}\n"


def test_a_reviewer_is_not_told_to_implement(tmp_path: Path) -> None:
    made = project(tmp_path, [AGENT | {"config": {"prompt_file": "mine.md"}}], review={"enabled": True})
    made.write("mine.md", "IMPLEMENT IT")
    assert "IMPLEMENT IT" in run_ralph(made, "prompt").out
    assert "IMPLEMENT IT" not in run_ralph(made, "prompt", "--mode", "review").out


def test_a_project_without_a_readme_is_not_accepted_past_its_step(tmp_path: Path) -> None:
    made = project(tmp_path, [AGENT, {"type": "readme-check"}, COMMIT])
    run_ralph(made, "run", "--once")
    (judged,) = (event for event in made.events() if isinstance(event, Judged))
    assert judged.verdict.kind is Kind.REJECTED
    assert "readme-check" in judged.verdict.headline


def aged(made: LoopProject, seconds: float) -> None:
    """Let everything in the journals have happened so much earlier."""
    for path in made.journals():
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            record.pop("prev", None)  # as in a journal of an older version, which has no chain
        path.write_text("".join(json.dumps(record | {"t": record["t"] - seconds}) + "\n" for record in records))
        path.with_suffix(".head").unlink(missing_ok=True)


def test_the_rate_holds_for_every_agent_of_an_iteration(tmp_path: Path) -> None:
    steps = [AGENT, {"type": "agent", "name": "polish"}, COMMIT]
    made = project(tmp_path, [AGENT, COMMIT], stories=2)
    assert run_ralph(made, "run", "--plain", "-n", "1").code == 1
    aged(made, 3590)
    made.write(".ralph/configs/default.json", json.dumps({"name": "default", "steps": steps}))
    done = run_ralph(made, "run", "--plain", "-r", "2")
    assert done.code == 0, done.out
    assert "⏸ 2 agent starts in the last hour; the cap is 2: waiting until " in done.out
    records = [record for path in made.journals()[1:] for record in read(path)]
    starts = [(record.event.step, record.t) for record in records if isinstance(record.event, AgentStarted)]
    ((began, over),) = ((record.t, e.until) for record in records if isinstance(e := record.event, WaitStarted))
    assert [step for step, _ in starts] == ["run-claude", "polish"]
    assert starts[0][1] < began < over <= starts[1][1] < starts[0][1] + 60
    assert "0 differ" in run_ralph(made, "replay").out


def test_a_wait_for_the_rate_in_an_iteration_is_not_begun_when_the_run_would_not_see_its_end(tmp_path: Path) -> None:
    steps = [AGENT | {"max_retries": 3, "retry_delay": "0.2s"}, COMMIT]
    made = project(tmp_path, steps, "[{crash: 1}]")
    done = run_ralph(made, "run", "--plain", "-r", "2", "--max-time", "1m")
    assert (done.code, done.out.count("⏸")) == (6, 2)
    assert "⏸ step run-claude failed; retrying (1 of 3): waiting until" in done.out
    assert "stopped: time-cap (2 agent starts in the last hour" in done.out
    assert sum(isinstance(event, AgentStarted) for event in made.events()) == 2
    waits = [type(event) for event in made.events() if isinstance(event, WaitStarted | WaitEnded)]
    assert waits == [WaitStarted, WaitEnded] * 2, "before each try, and no third time"


def test_a_wait_within_an_iteration_ends_with_the_run(tmp_path: Path) -> None:
    steps = [AGENT | {"circuit_breaker": {"threshold": 1, "reset_after": "1h"}}, COMMIT]
    made = project(tmp_path, steps, "[{crash: {code: 3, message: no such flag}}]")
    running = start_ralph(made)
    wait_for(lambda: any(isinstance(event, WaitStarted) for event in made.events()))
    running.terminate()
    done = finish(running)
    assert done.code == 143
    assert "✗ crashed US-001: the agent ended with exit code 3: no such flag" in done.out
    assert "⏸ the circuit breaker of step run-claude is open: waiting until " in done.out
    assert [event.kind for event in ended(made)] == [Kind.CRASHED, Kind.INTERRUPTED]
