"""What a person does to a run from a view: on a run of the scripted agent while it works, and after it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.core.control import Verb
from ralph.core.errors import IllegalChange, NotTrusted, RalphError, UsageError
from ralph.core.events import (
    AnyEvent,
    Asked,
    FindingDecided,
    Guided,
    IterationEnded,
    IterationStarted,
    Noted,
    Paused,
    Resumed,
    RunEnded,
    RunStarted,
    SeenStory,
    StorySetAside,
)
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.review import Entry, Fate, Finding
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.journal.run_state import RunState
from ralph.run.replay import replay
from ralph.state.places import plan_state
from ralph.views.acts import KINDS, Act, ActVerb, command_line, perform, plan_of, possible
from ralph.workspace.find import store_for
from ralph.workspace.stuck_stories import read_answers
from support.loops import LoopProject, Scenario, finish, reviewed, run_ralph, start_ralph
from support.processes import wait_for

Play = Mapping[str, Any]
WORK = [{"run": "echo fine > src/$RALPH_STORY.txt"}, "claim"]
SLOW = [{"sleep": 2}, *WORK]
BROKEN = [{"write": {"path": "src/x.txt", "text": "BROKEN\n"}}, "claim"]
FOUND = {"verdict": {"what": "changes_requested", "findings": [{"text": "never closed"}, {"text": "a bad name"}]}}
ASK = [{"ask": "Which colour?"}]


def project(folder: Path, play: Play, **config: Any) -> LoopProject:
    """Stories that a scripted agent works through, at default settings but for what is named."""
    settings = {
        "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
        "review": {"enabled": False},
        "archive": {"on_complete": False},
        "checks": [{"name": "words", "command": "sh check.sh"}],
    } | config
    script = json.dumps({"stories": play})
    scenario = Scenario("tasks.json", dict.fromkeys(play, "Say it"), script, [], config=json.dumps(settings))
    return LoopProject.make(folder, scenario)


def started_of(made: LoopProject) -> RunStarted:
    wait_for(lambda: of(made, RunStarted))
    found: RunStarted = of(made, RunStarted)[-1]
    return found


def do(made: LoopProject, verb: ActVerb, **fields: str) -> str:
    return perform(started_of(made), Act(verb=verb, **fields), made.env)


def of(made: LoopProject, kind: type[Any]) -> list[Any]:
    return [event for event in made.events() if isinstance(event, kind)]


def until(made: LoopProject, is_there: Callable[[AnyEvent], bool]) -> None:
    wait_for(lambda: any(map(is_there, made.events())))


def begun(story: str, mode: Mode = Mode.IMPLEMENT) -> Callable[[AnyEvent], bool]:
    return lambda event: isinstance(event, IterationStarted) and (event.story, event.mode) == (story, mode)


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Runs that a failed test must not leave behind."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def start(made: LoopProject, running: list[subprocess.Popen[bytes]], *arguments: str) -> subprocess.Popen[bytes]:
    running.append(start_ralph(made, *arguments))
    return running[-1]


def modes(made: LoopProject) -> list[tuple[str, str]]:
    return [(event.story, event.mode.value) for event in of(made, IterationStarted)]


def named(name: str) -> list[Any]:
    return [{"run": f"echo fixed >> src/{name}.txt"}]


def states(made: LoopProject) -> dict[str, str]:
    found = RunState()
    for record in read(made.journals()[-1]):
        found.add(record)
    return {name: story.state.value for name, story in found.stories.items()}


def test_a_live_run_is_paused_noted_resumed_and_stopped(tmp_path: Path, running: list[subprocess.Popen[bytes]]) -> None:
    made = project(tmp_path / "p", {name: [SLOW] for name in ("US-001", "US-002", "US-003")})
    process = start(made, running)
    until(made, begun("US-001"))
    run = started_of(made).run
    assert do(made, ActVerb.PAUSE) == f"run {run} pauses after the current iteration"
    until(made, lambda event: isinstance(event, Paused))
    assert "the next iteration on US-002 of run" in do(made, ActVerb.NOTE, text="Mind the gap", story="US-002")
    assert do(made, ActVerb.RESUME) == f"run {run} continues"
    until(made, begun("US-002"))
    do(made, ActVerb.STOP)
    assert finish(process).code == 1
    assert [event.verb for event in of(made, Asked)] == [Verb.PAUSE, Verb.RESUME, Verb.STOP]
    assert len(of(made, Resumed)) == 1
    assert [(event.iteration, event.text, event.story) for event in of(made, Guided)] == [(2, "Mind the gap", "US-002")]
    (end,) = of(made, RunEnded)
    assert end.reason is Reason.ON_REQUEST
    assert modes(made) == [("US-001", "implement"), ("US-002", "implement")]


def test_stop_now_interrupts_the_agent(tmp_path: Path, running: list[subprocess.Popen[bytes]]) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"sleep": 30}, *WORK]]})
    process = start(made, running)
    until(made, begun("US-001"))
    begin = time.monotonic()
    assert "is stopping" in do(made, ActVerb.STOP_NOW)
    assert finish(process).code == 130
    assert time.monotonic() - begin < 15
    assert [event.kind for event in of(made, IterationEnded)] == [Kind.INTERRUPTED]


def test_a_question_is_answered_and_a_failed_story_retried_while_others_go_on(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    play: Play = {"US-001": [ASK, WORK], "US-002": [BROKEN, WORK], "US-003": [SLOW]}
    made = project(tmp_path / "p", play, max_loops_per_task=1, circuit_breaker={"retry_rounds": 0})
    process = start(made, running, "run", "--plain", "-n", "20")
    until(made, begun("US-003"))
    assert do(made, ActVerb.ANSWER, story="US-001", text="Red") == (
        "answered for US-001; the run reads it before its next iteration"
    )
    assert do(made, ActVerb.RETRY, story="US-002") == "the run retries US-002 before its next iteration"
    assert finish(process).code == 3, "the script asks again"
    told = [event.text for event in of(made, Noted)]
    assert "retrying, as you asked: US-002" in told
    assert "answered by you, open again: US-001" in told
    assert [story for story, _ in modes(made)].count("US-001") == 2
    assert [story for story, _ in modes(made)].count("US-002") == 2


def test_a_skipped_story_is_left_out_and_the_run_says_so(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    made = project(tmp_path / "p", {"US-001": [SLOW], "US-002": [WORK], "US-003": [WORK]})
    process = start(made, running)
    until(made, begun("US-001"))
    assert "US-002 will be skipped" in do(made, ActVerb.SKIP, story="US-002", text="not this month")
    done = finish(process)
    assert done.code == 5
    assert "skipped by you: not this month" in done.out
    (aside,) = of(made, StorySetAside)
    assert (aside.story, aside.why, aside.by_user) == ("US-002", "skipped by you: not this month", True)
    assert modes(made) == [("US-001", "implement"), ("US-003", "implement")], "the run does not retry it by itself"
    assert states(made) == {"US-001": "done", "US-002": "failed", "US-003": "done"}
    assert not replay(read(made.journals()[-1])).differences
    again = run_ralph(made, "run", "--plain", "-t", "30m")
    assert (again.code, len(modes(made))) == (5, 2), "nor does the next one, whatever settings have changed"
    with pytest.raises(IllegalChange, match="skipped already"):
        do(made, ActVerb.SKIP, story="US-002")
    assert do(made, ActVerb.RETRY, story="US-002") == "reopened US-002; `ralph run` continues"
    assert run_ralph(made).code == 0
    assert modes(made)[2:] == [("US-002", "implement")]


def test_findings_rejected_during_a_run_send_the_story_back_to_its_review(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    play = {"US-001": [{"implement": WORK, "review": [{"sleep": 2}, FOUND]}]}
    made = project(tmp_path / "p", play, review={"enabled": True})
    process = start(made, running)
    until(made, begun("US-001", Mode.REVIEW))
    do(made, ActVerb.PAUSE)
    until(made, lambda event: isinstance(event, Paused))
    sentence = do(made, ActVerb.REJECT, story="US-001", finding="F1", text="the caller closes it")
    assert sentence == (
        "finding F1 of US-001 will be rejected between two iterations of the run; the story goes to a fix next"
    )
    do(made, ActVerb.REJECT, story="US-001", finding="F2", text="it is the name of the house")
    do(made, ActVerb.RESUME)
    assert finish(process).code == 0
    assert modes(made) == [("US-001", "implement"), ("US-001", "review"), ("US-001", "review")]
    decided = [(event.finding, event.fate, event.reason) for event in of(made, FindingDecided)]
    assert decided == [
        ("F1", Fate.REJECTED, "the caller closes it"),
        ("F2", Fate.REJECTED, "it is the name of the house"),
    ]
    last = of(made, IterationEnded)[-1]
    assert last.headline == "approved: you rejected F1, F2", "a reviewer that only repeats them has nothing new"
    assert not replay(read(made.journals()[-1])).differences


def test_a_confirmed_finding_is_fixed_although_a_fix_had_rejected_it(
    tmp_path: Path, running: list[subprocess.Popen[bytes]]
) -> None:
    refusal = [{"id": "F1", "fate": "rejected", "reason": "it is closed elsewhere"}, {"id": "F2", "fate": "fixed"}]
    approves = [{"sleep": 2}, {"verdict": "approved"}]
    attempts = [
        {"implement": WORK, "review": [FOUND], "fix": [*named("y"), {"fixes": refusal}]},
        {"review": approves, "fix": [*named("z"), "claim"]},
    ]
    made = project(tmp_path / "p", {"US-001": attempts}, review={"enabled": True})
    process = start(made, running)
    until(made, begun("US-001", Mode.FIX))
    do(made, ActVerb.PAUSE)
    until(made, lambda event: isinstance(event, Paused))
    told = do(made, ActVerb.CONFIRM, story="US-001", finding="F1", text="it leaks")
    assert told.endswith("confirmed between two iterations of the run; the story goes to a fix next")
    do(made, ActVerb.RESUME)
    assert finish(process).code == 0
    assert [mode for _, mode in modes(made)] == ["implement", "review", "fix", "fix", "review", "fix", "review"]
    ended = of(made, IterationEnded)
    assert "the fix does not fix finding F1, which you confirmed" in ended[3].notices, "it rejects F1 once more"
    assert ended[4].headline.startswith("changes requested: - F1"), "an approval does not close it either"
    (decided,) = of(made, FindingDecided)
    assert (decided.fate, decided.reason, decided.text) == (Fate.OPEN, "it leaks", "never closed")
    # The person knows better than the review that has approved it.
    assert "open again, for a fix" in do(made, ActVerb.CONFIRM, story="US-001", finding="F2")
    assert run_ralph(made).code == 0
    assert [mode for _, mode in modes(made)][7:] == ["fix", "review"]


def test_acts_on_an_ended_run_change_the_plan_at_once(tmp_path: Path) -> None:
    made = project(
        tmp_path / "p", {"US-001": [ASK, WORK], "US-002": [BROKEN], "US-003": [BROKEN]}, max_loops_per_task=1
    )
    assert run_ralph(made).code != 0
    run = started_of(made)
    assert states(made)["US-001"] == "blocked"
    assert do(made, ActVerb.ANSWER, story="US-001", text="Red") == "answered for US-001; `ralph run` continues"
    assert do(made, ActVerb.NOTE, text="Mind the gap") == "saved for the next iteration of the next run"
    ref = plan_of(run, made.env)
    plan = store_for(ref, made.env).load().plan
    assert {story.id: story.state for story in plan.stories}["US-001"] is State.TODO
    assert read_answers(plan_state(ref, made.env)).of("US-001") == ("“Which colour?” — Red",)
    for verb in (ActVerb.PAUSE, ActVerb.RESUME, ActVerb.STOP, ActVerb.STOP_NOW):
        with pytest.raises(UsageError, match=f"run {run.run} has ended"):
            do(made, verb)
    assert run_ralph(made).code != 0
    assert [event.text for event in of(made, Guided)] == ["Mind the gap"]


def test_acts_after_a_run_in_a_clone_change_the_users_copy(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [BROKEN], "US-002": [WORK]}, max_loops_per_task=1, workspace="clone")
    done = run_ralph(made)
    run = started_of(made)
    assert run.checkout == str(made.root), done.err
    assert run.workspace != run.checkout
    do(made, ActVerb.SKIP, story="US-001")
    told = run_ralph(made, "task", "show", "US-001", "--json").json
    assert (told["state"], told["why"]) == ("failed", "skipped by you")


def test_a_killed_run_and_one_elsewhere_say_so(tmp_path: Path, running: list[subprocess.Popen[bytes]]) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"sleep": 30}]]})
    process = start(made, running)
    until(made, begun("US-001"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with pytest.raises(UsageError, match="was killed") as raised:
        do(made, ActVerb.PAUSE)
    assert "`ralph run`" in raised.value.hint
    elsewhere = msgspec.structs.replace(started_of(made), host="other.example")
    for verb in ActVerb:
        act = Act(verb=verb, story="US-001", text="x", finding="F1")
        with pytest.raises(UsageError, match=r"is on other\.example, not on this machine"):
            perform(elsewhere, act, made.env)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    made = LoopProject.make(tmp_path_factory.mktemp("ended") / "p", reviewed())
    assert run_ralph(made).code == 0
    return made


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (Act(verb=ActVerb.NOTE, text=" \n"), "note needs a text"),
        (Act(verb=ActVerb.NOTE, text="\x1b[2J"), "control character"),
        (Act(verb=ActVerb.NOTE, text="x" * 20_001), "the limit is 20,000"),
        (Act(verb=ActVerb.NOTE, text="hello", story="US-1"), "no story 'US-1'"),
        (Act(verb=ActVerb.ANSWER, story="US-001"), "answer needs a text"),
        (Act(verb=ActVerb.ANSWER, story="US-009", text="yes"), "no story 'US-009'"),
        (Act(verb=ActVerb.RETRY), "retry needs a story"),
        (Act(verb=ActVerb.RETRY, story="US-001"), "is done, not failed"),
        (Act(verb=ActVerb.SKIP, story="US-001"), "is done and cannot become failed"),
        (Act(verb=ActVerb.SKIP, story="../x"), "no story"),
        (Act(verb=ActVerb.REJECT, story="US-001", finding="F1"), "reject needs a text"),
        (Act(verb=ActVerb.REJECT, story="US-001", finding="F1", text="no"), "is closed"),
        (Act(verb=ActVerb.CONFIRM, story="US-001"), "confirm needs a finding"),
        (Act(verb=ActVerb.CONFIRM, story="US-001", finding="F7"), "has no finding 'F7'; it has F1|has no finding 'F7'"),
    ],
)
def test_an_act_that_makes_no_sense_says_why_and_changes_nothing(ended: LoopProject, act: Act, words: str) -> None:
    before = sorted((path, path.read_bytes()) for path in ended.state.glob("*/plans/**/*") if path.is_file())
    with pytest.raises(RalphError, match=words) as raised:
        perform(started_of(ended), act, ended.env)
    assert raised.value.hint
    after = sorted((path, path.read_bytes()) for path in ended.state.glob("*/plans/**/*") if path.is_file())
    assert [each for each in after if "edit.lock" not in str(each[0])] == [
        each for each in before if "edit.lock" not in str(each[0])
    ]


def test_an_agent_cannot_act(ended: LoopProject) -> None:
    for verb in ActVerb:
        with pytest.raises(NotTrusted, match="an agent in a loop cannot"):
            perform(
                started_of(ended),
                Act(verb=verb, story="US-001", text="x", finding="F1"),
                {**ended.env, "RALPH_LOOP": "1"},
            )


def test_every_act_has_a_command_that_exists(ended: LoopProject) -> None:
    act = {"story": "US-001", "text": "it's fine", "finding": "F2"}
    assert set(KINDS) == set(ActVerb)
    lines = {verb: command_line(Act(verb=verb, **act), "R") for verb in ActVerb}
    assert lines[ActVerb.REJECT] == """ralph task finding US-001 F2 --reject 'it'"'"'s fine'"""
    assert lines[ActVerb.STOP_NOW] == "ralph stop --now --run R"
    assert command_line(Act(verb=ActVerb.NOTE, text="a"), "R") == "ralph note a"
    assert command_line(Act(verb=ActVerb.ANSWER, text="a"), "R") == "ralph answer - a"
    assert command_line(Act(verb=ActVerb.SKIP, story="S"), "R") == "ralph task skip S"
    for line in lines.values():
        words = line.split()[1 : 3 if "task" in line else 2]
        assert run_ralph(ended, *words, "--help").code == 0, line


def test_only_acts_that_make_sense_are_offered() -> None:
    state = RunState()
    orders = {ActVerb.PAUSE, ActVerb.STOP, ActVerb.STOP_NOW}
    assert possible(state, is_live=True) == orders | {ActVerb.NOTE}
    assert possible(state, is_live=False) == {ActVerb.NOTE}
    assert possible(state, is_live=True, is_here=False) == set()
    state.wish = state.wish.after(Verb.PAUSE)
    assert ActVerb.RESUME in possible(state, is_live=True)
    assert ActVerb.PAUSE not in possible(state, is_live=True)
    state.wish = state.wish.after(Verb.STOP)
    assert possible(state, is_live=True) == {ActVerb.NOTE, ActVerb.STOP_NOW}
    for each in State:
        state.stories[each.value] = SeenStory(each.value, "", each)
    of_story = {each: possible(state, is_live=False, story=each.value) - {ActVerb.NOTE} for each in State}
    assert of_story == {
        State.TODO: {ActVerb.SKIP},
        State.IN_PROGRESS: {ActVerb.SKIP},
        State.DONE: set(),
        State.FAILED: {ActVerb.RETRY, ActVerb.SKIP},
        State.BLOCKED: {ActVerb.ANSWER, ActVerb.SKIP},
    }
    state.reasons["failed"] = "skipped by you: later"
    assert possible(state, is_live=False, story="failed") == {ActVerb.NOTE, ActVerb.RETRY}
    for each in State:
        assert possible(state, is_live=False, story=each.value, is_settled=True) == {ActVerb.NOTE}
    found = Entry(id="F1", finding=Finding("x"), fate=Fate.FIXED)
    both = {ActVerb.REJECT, ActVerb.CONFIRM}
    assert both <= possible(state, is_live=False, story="todo", finding=found)
    closed = msgspec.structs.replace(found, fate=Fate.CLOSED)
    assert both & possible(state, is_live=False, story="done", finding=closed) == {ActVerb.CONFIRM}
