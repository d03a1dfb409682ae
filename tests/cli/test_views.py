"""What people see of a run: lines, the live panel, the summary; and the log afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ralph.cli.live_view import LiveView
from ralph.cli.plain_view import describe
from ralph.cli.summary import summary
from ralph.core.agent import ToolUse
from ralph.core.events import (
    AgentSaid,
    AnyEvent,
    CheckEnded,
    IterationEnded,
    IterationStarted,
    PlanSeen,
    Proved,
    Record,
    RunEnded,
    RunStarted,
    SeenStory,
    StepEnded,
    WaitStarted,
)
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.rules import Limits
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph

LONG = "python3 -c 'a check with a name that is longer than any line on any terminal has room for, and goes on and on'"
STARTED = RunStarted(
    run="r",
    workspace="/w",
    layout="feature",
    plan="p",
    pid=1,
    max_iterations=9,
    total=2,
    limits=Limits(max_iterations=9),
)
STORIES = (SeenStory("US-001", "Greet people " * 9, State.DONE), SeenStory("US-002", "Say bye", State.TODO))
ITERATION = IterationStarted(iteration=2, story="US-002", title="Say bye", mode=Mode.IMPLEMENT, attempt=2)
UNDER_WAY: tuple[AnyEvent, ...] = (
    STARTED,
    PlanSeen(whole=True, stories=STORIES),
    ITERATION,
    CheckEnded(iteration=2, tree="t", check_set="s", result=CheckResult(LONG, LONG, passed=True)),
)


def told(*events: AnyEvent) -> Iterator[str]:
    """Each event as a line, in the order they come."""
    state = RunState()
    for number, event in enumerate(events, 1):
        record = Record(number, time.time(), event)
        state.add(record)
        yield describe(record, state)


def ended(kind: Kind, **fields: object) -> IterationEnded:
    known = {"iteration": 2, "story": "US-002", "title": "Say bye", "mode": Mode.IMPLEMENT, "kind": kind}
    return IterationEnded(**{**known, **fields})  # type: ignore[arg-type]


def panel(width: int, *events: AnyEvent) -> list[str]:
    view = LiveView()
    for number, event in enumerate(events, 1):
        view.add(Record(number, time.time(), event))
    return [line for line, _ in view.panel(width, 40)]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_panel_has_one_line_for_each_thing_at_any_width(width: int) -> None:
    lines = panel(width, *UNDER_WAY)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    for fact in ("1/2 stories", "▶ implement US-002", "iteration 2/9", "✓ python3", "⚙ running checks (", "✓ US-001"):
        assert sum(fact in line for line in lines) == 1, text
    assert "left: 9 iterations" in text
    assert len(lines) == 9, text


def test_the_panel_names_the_guards_that_may_trip_next() -> None:
    events = (*UNDER_WAY[:3], ended(Kind.REJECTED), ITERATION)
    assert "left: 8 iterations · no progress 1/3 · attempt 2/5" in panel(100, *events)[-1]


def test_the_panel_counts_a_wait_down() -> None:
    lines = panel(80, *UNDER_WAY[:2], WaitStarted(time.time() + 90, "the usage limit is reached"))
    assert any("⏸ 1 m 30 s left: the usage limit is reached (Ctrl-C stops)" in line for line in lines)


def test_setting_up_is_about_no_story() -> None:
    setup = IterationStarted(iteration=1, story="", title="set up the project", mode=Mode.SETUP, attempt=1)
    lines = list(told(STARTED, setup, ended(Kind.ACCEPTED, story="", headline="set up")))
    assert lines[1] == "▶ iteration 1/9: setup set up the project"
    assert lines[2].startswith("✓ accepted set up (")


def test_who_steps_in_for_the_first_choice_is_named() -> None:
    stands_in = msgspec.structs.replace(ITERATION, choice="claude/haiku")
    assert list(told(STARTED, stands_in))[1] == "▶ iteration 2/9: implement US-002 Say bye, attempt 2, by claude/haiku"
    assert any(line.endswith("by claude/haiku") for line in map(str.rstrip, panel(100, STARTED, stands_in)))


def test_a_story_that_has_used_its_attempts_is_shown_as_failed() -> None:
    (line,) = told(ended(Kind.REJECTED, headline="a test failed", story_state=State.FAILED, attempts=5))
    assert line.splitlines()[1].strip() == "US-002 failed after 5 attempts"


def test_no_view_lets_through_what_would_steer_a_terminal() -> None:
    bad = "x\x1b]0;title\x07\x1b[2Jy\r\n"
    events: tuple[AnyEvent, ...] = (
        STARTED,
        PlanSeen(whole=True, stories=(SeenStory(bad, bad, State.TODO),)),
        IterationStarted(iteration=1, story=bad, title=bad, mode=Mode.IMPLEMENT, attempt=1),
        AgentSaid(1, ToolUse(bad, bad)),
        StepEnded(iteration=1, step=bad, kind="command", ok=False, detail=bad),
        CheckEnded(iteration=1, tree="t", check_set="s", result=CheckResult(bad, bad, passed=False)),
        ended(Kind.REJECTED, story=bad, headline=bad, notices=(bad,), story_state=State.FAILED),
        RunEnded(Reason.WAITING, bad),
    )
    state = RunState()
    for number, event in enumerate(events, 1):
        state.add(Record(number, 1.0, event))
    lines = [*told(*events), *summary(state), *panel(80, *events[:-2])]
    assert not [line for line in lines if {"\x1b", "\x07", "\r"} & set(line)]


def test_the_end_of_an_iteration_has_its_grade_and_every_reason() -> None:
    (approved,) = told(ended(Kind.ACCEPTED, headline="approved", completes=True, grade="reviewed"))
    assert "approved (reviewed, " in approved
    reasons = ("check 'lint' failed with exit code 1", "tests/test_a.py:12: changed", *["more"] * 5)
    (rejected,) = told(ended(Kind.REJECTED, headline="check 'tests' failed with exit code 1", reasons=reasons))
    assert rejected.count("failed") == 1, "a failing check has its own line"
    assert "\n    tests/test_a.py:12: changed\n" in rejected
    assert rejected.endswith("\n    and 1 more")


def test_the_panel_and_the_summary_show_grades() -> None:
    kept = ended(Kind.ACCEPTED, grade="unproven", story_state=State.TODO)
    stories = (SeenStory("US-001", "Say hello", State.DONE, grade="proven"), SeenStory("US-002", "Bye", State.TODO))
    events: tuple[AnyEvent, ...] = (STARTED, PlanSeen(whole=True, stories=stories), kept)
    shown = panel(80, *events)
    assert [line.split()[-1] for line in shown if "US-00" in line] == ["proven", "unproven"]
    state = RunState()
    for number, event in enumerate(events, 1):
        state.add(Record(number, 1.0, event))
    lines = list(summary(state))
    assert "  proof      1 proven" in lines
    assert "  unproven   US-002: committed, but no test fails without the change and no review approved it" in lines
    assert not [line for line in lines if line.startswith("  open")]


def test_a_reviewed_story_without_checks_is_done_and_not_unproven() -> None:
    state = RunState()
    state.add(Record(1, 0.0, PlanSeen(whole=True, stories=(SeenStory("US-002", "Bye", State.TODO),))))
    state.add(Record(2, 1.0, ended(Kind.ACCEPTED, completes=True, grade="reviewed", story_state=State.DONE)))
    assert "  done       US-002" in list(summary(state))


def test_the_summary_says_what_was_done_what_was_not_and_what_to_do() -> None:
    state = RunState()
    state.add(Record(1, 0.0, STARTED))
    states = (State.DONE, State.DONE, State.FAILED, State.BLOCKED, State.TODO)
    stories = tuple(SeenStory(f"US-00{n}", "Title", state) for n, state in enumerate(states, 1))
    state.add(Record(2, 0.0, PlanSeen(whole=True, stories=stories)))
    state.add(Record(3, 1.0, ended(Kind.ACCEPTED, completes=True, proven=False, story_state=State.DONE)))
    state.add(Record(4, 65.0, RunEnded(Reason.WAITING, "which colour?")))
    *lines, last = summary(state)
    assert lines[1:] == [
        "[████████░░░░░░░░░░░░] 2/5  stopped: waiting — which colour?",
        "  done       US-001",
        "  unproven   US-002",
        "  failed     US-003",
        "  blocked    US-004",
        "  open       US-005",
        "  iterations 1 (1 accepted)",
        "  time       1 m 05 s, 0 s of it in the agent",
        "  used       0 tokens, cost unknown",
        "  report     `ralph report` shows commits, diffs and what to look at first",
    ]
    assert last == '  next       `ralph answer US-004 "…"`, then `ralph run`'


@pytest.mark.parametrize(
    ("layout", "blocked", "named", "line"),
    [
        ("tasks.json", ("A", "B"), (), '`ralph answer A "…"` and `ralph answer B "…"`, then `ralph run`'),
        ("tasks.json", ("A", "B"), ("B",), '`ralph answer B "…"`, then `ralph run`'),
        ("tasks.json", (), (), '`ralph answer - "…"`, then `ralph run`'),
        ("spec.md", ("A",), (), '`ralph answer A "…"` (or delete .ralph/WAITING), then `ralph run`'),
        ("tasks.json", ("A", "B", "C", "D"), (), '`ralph answer` lists the questions, `ralph answer ID "…"` answers'),
    ],
)
def test_the_next_step_names_the_stories_that_asked(
    layout: str, blocked: tuple[str, ...], named: tuple[str, ...], line: str
) -> None:
    state = RunState()
    state.add(Record(1, 0.0, msgspec.structs.replace(STARTED, layout=layout, limits=Limits(stories=named))))
    stories = tuple(SeenStory(name, "Title", State.BLOCKED) for name in blocked)
    state.add(Record(2, 0.0, PlanSeen(whole=True, stories=stories)))
    state.add(Record(3, 1.0, RunEnded(Reason.WAITING, "which colour?")))
    assert list(summary(state))[-1].startswith(f"  next       {line}")


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        ((True, True), "every story is done, and the checks pass on the final tree"),
        ((True, False), "every story is done, and the checks pass on the final tree, except 1 that may fail"),
        ((False,), "every story is done, but no check proves it"),
        ((), "every story is done, but no check proves it"),
    ],
)
def test_the_summary_does_not_call_a_failure_that_is_excused_a_pass(passed: tuple[bool, ...], words: str) -> None:
    results = tuple(CheckResult("c", "c", passed=each, required=each) for each in passed)
    proved = Proved(tree="tree", passed=True, results=results)
    events: tuple[AnyEvent, ...] = (STARTED, proved, RunEnded(Reason.COMPLETE))
    state = RunState()
    for number, event in enumerate(events, 1):
        state.add(Record(number, 0.0, event))
    assert next(line for line in summary(state) if "every story" in line).endswith(words)


def slow(tmp_path: Path, seconds: int = 60) -> LoopProject:
    script = f"stories:\n  '*':\n    - implement: [{{sleep: {{seconds: {seconds}, heartbeat: 1}}}}, lie]\n"
    scenario = Scenario("feature", {"US-001": "Say one"}, script, [], config=CONFIG)
    return LoopProject.make(tmp_path / "made", scenario)


def test_lines_are_written_when_they_happen_also_into_a_file(tmp_path: Path) -> None:
    made = slow(tmp_path)
    log = tmp_path / "out.log"
    env = {name: value for name, value in made.env.items() if name != "PYTHONUNBUFFERED"}
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "ralph", "run"]
        running = subprocess.Popen(command, cwd=made.root, env=env, stdin=subprocess.DEVNULL, stdout=stream)
    try:
        deadline = time.monotonic() + 30
        while "▶ iteration 1/" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "▶ iteration 1/5: implement US-001 Say one" in log.read_text()
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 143


def test_following_the_log_of_a_run_ends_with_the_run(tmp_path: Path) -> None:
    made = slow(tmp_path, seconds=1)
    running = start_ralph(made, "run", "--once", "--quiet")
    _wait_for_agent(made)
    followed = run_ralph(made, "log", "--follow", "--json")
    assert finish(running).code == 1
    last = json.loads(followed.out.splitlines()[-1])
    assert last["event"]["type"] == "RunEnded"
    assert [json.loads(line)["seq"] for line in followed.out.splitlines()] == list(range(1, last["seq"] + 1))


def test_following_the_log_of_a_killed_run_ends_too(tmp_path: Path) -> None:
    made = slow(tmp_path)
    running = start_ralph(made)
    _wait_for_agent(made)
    running.kill()
    finish(running)
    followed = run_ralph(made, "log", "--follow")
    assert followed.code == 0
    assert "the run was killed" in followed.err
    for left in made.processes():
        os.kill(left, signal.SIGKILL)


def _wait_for_agent(made: LoopProject) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if any("AgentStarted" in path.read_text() for path in made.state.glob("*/runs/*/events.jsonl")):
            return
        time.sleep(0.05)
    raise AssertionError("the agent did not start")


def test_a_missing_git_identity_is_said_once(tmp_path: Path) -> None:
    script = "stories:\n  '*':\n    - implement: [{append: {path: src/x.txt, text: x}}, claim]\n"
    stories = {"US-001": "Say one", "US-002": "Say two"}
    made = LoopProject.make(tmp_path / "made", Scenario("feature", stories, script, [], config=CONFIG))
    (made.home / ".gitconfig").unlink()
    done = run_ralph(made)
    assert done.code == 0, done.err
    assert done.out.count("as Ralph Loop <ralph@localhost>") == 1
    assert made.git("log", "-2", "--format=%an <%ae>").splitlines() == ["Ralph Loop <ralph@localhost>"] * 2
