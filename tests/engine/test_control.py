"""People and a run that is under way: pausing, going on, stopping and leaving notes from another terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.cli import control
from ralph.core.control import Order, Verb
from ralph.core.events import Asked, Guided, IterationEnded, IterationStarted, Paused, Resumed, RunEnded, WaitStarted
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from ralph.state import inbox
from support.cli import Completed, ralph_here
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph, whole
from support.processes import wait_for
from support.terminals import Terminal

pytestmark = pytest.mark.slow

GATE = "touch build/at-work; while ! test -e build/go; do sleep 0.02; done"
"""An agent that is at work until a test lets it go on."""
SCRIPT = f"""
stories:
  '*':
    - implement:
        - prompt: build/prompt.txt
        - run: {GATE}
        - append: {{path: src/words.txt, text: "word\\n"}}
        - claim: done
"""
LIMITED = """
stories:
  '*':
    - implement:
        - limit: {seconds: 300}
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LoopProject]:
    made = LoopProject.make(tmp_path / "loop", whole("tasks.json")._replace(script=SCRIPT))
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


@contextmanager
def running(project: LoopProject, *arguments: str, script: str = "") -> Iterator[subprocess.Popen[bytes]]:
    path = project.home / "script.yaml"
    path.write_text(script or SCRIPT)
    process = start_ralph(project, "run", "--plain", "--agent-script", str(path), *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def ask(project: LoopProject, *arguments: str) -> Completed:
    done = person(project, *arguments)
    assert (done.code, done.err) == (0, ""), done
    return done


def person(project: LoopProject, *arguments: str, **env: str) -> Completed:
    """Somebody in another terminal."""
    return ralph_here(*arguments, cwd=project.root, env={**project.env, **env})


def seen(project: LoopProject, kind: type) -> list[object]:
    return [event for event in project.events() if isinstance(event, kind)]


def is_at_work(project: LoopProject) -> bool:
    return (project.root / "build/at-work").exists()


def let_go(project: LoopProject) -> None:
    (project.root / "build/go").touch()


def test_a_pause_lets_the_agent_finish_first_and_says_so_at_once(project: LoopProject) -> None:
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        said = ask(project, "pause").out
        assert "pauses after iteration 1 (US-001)" in said
        assert [type(event) for event in seen(project, Asked)] == [Asked], "the run has heard it while the agent works"
        assert not seen(project, Paused)
        let_go(project)
        wait_for(lambda: seen(project, Paused))
        assert [event.kind for event in project.events() if isinstance(event, IterationEnded)] == [Kind.ACCEPTED]
        assert "paused since" in ask(project, "status").out
        project.plan.write_text(project.plan.read_text().replace("Say two", "Say two and a half"))
        assert "continues" in ask(project, "resume").out
        done = finish(process)
    assert done.code == 0, done
    assert "ralph pause: pauses after this iteration" in done.out
    assert "⏸ paused" in done.out
    assert "▶ resumed after" in done.out
    titles = [event.title for event in project.events() if isinstance(event, IterationStarted)]
    assert titles == ["Say one", "Say two and a half", "Say three"], "the plan is read anew after a pause"
    assert person(project, "replay").code == 0


def test_a_wait_is_paused_and_stopped_at_once(project: LoopProject) -> None:
    with running(project, script=LIMITED) as process:
        wait_for(lambda: seen(project, WaitStarted))
        assert "waiting until " in ask(project, "status").out
        begun = time.monotonic()
        assert "is paused" in ask(project, "pause").out
        assert time.monotonic() - begun < 5
        assert "is already paused" in ask(project, "pause").out
        assert "continues" in ask(project, "resume").out
        wait_for(lambda: len(seen(project, WaitStarted)) == 2)
        assert "was not paused" in ask(project, "resume").out
        assert "has ended: on-request" in ask(project, "stop").out
        done = finish(process)
    assert done.code == 1
    assert "stopped: on-request" in done.out
    assert [event.verb for event in project.events() if isinstance(event, Asked)] == ["pause", "resume", "stop"]
    (rest,) = (event for event in project.events() if isinstance(event, Resumed))
    assert rest.seconds > 0


def test_a_stop_waits_for_the_iteration_and_keeps_its_work(project: LoopProject) -> None:
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        assert "stops after iteration 1 (US-001)" in ask(project, "stop").out
        let_go(project)
        done = finish(process)
    assert done.code == 1
    assert "next       `ralph run` continues where it stopped" in done.out
    kinds = [event.kind for event in project.events() if isinstance(event, IterationEnded)]
    assert kinds == [Kind.ACCEPTED]
    assert project.events()[-1] == RunEnded(Reason.ON_REQUEST, "`ralph stop`")


def test_a_stop_now_is_like_an_interrupt(project: LoopProject) -> None:
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        assert run_ralph(project, "stop", "--now").code == 0, "really another process"
        done = finish(process)
    assert done.code == 130
    (ended,) = (event for event in project.events() if isinstance(event, IterationEnded))
    assert ended.kind is Kind.INTERRUPTED
    assert project.events()[-1] == RunEnded(Reason.INTERRUPTED, "`ralph stop --now`")
    assert project.processes() == []


def test_a_last_story_that_is_done_counts_more_than_a_stop(project: LoopProject) -> None:
    with running(project, "--once") as process:
        wait_for(lambda: is_at_work(project))
        ask(project, "stop")
        let_go(project)
        assert finish(process).code == 0
    assert project.events()[-1] == RunEnded(Reason.ONCE, project.events()[-1].detail)  # type: ignore[union-attr]


def test_an_order_for_a_run_that_is_over_does_not_stop_the_next(project: LoopProject) -> None:
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        ask(project, "pause")
        let_go(project)
        wait_for(lambda: seen(project, Paused))
        process.kill()
        process.communicate()
    (state,) = project.state.glob("*/plans/*")
    (old,) = project.journals()
    for verb in (Verb.PAUSE, Verb.STOP_NOW):
        inbox.put(state / "control", Order(verb=verb, run=old.parent.name, at=time.time()))
    assert "killed" in ask(project, "status").out
    assert run_ralph(project).code == 0
    assert not inbox.names(state / "control")
    assert not [event for event in project.events() if isinstance(event, Asked)][1:]


def test_a_note_is_in_one_prompt_and_is_kept_until_it_was_of_use(project: LoopProject) -> None:
    ask(project, "note", "Mind the gap")
    ask(project, "note", "--story", "US-003", "Three is a crowd")
    assert "Mind the gap" in person(project, "prompt").out
    prompt = project.root / "build/prompt.txt"
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        assert "Mind the gap" in prompt.read_text()
        assert "Three is a crowd" not in prompt.read_text()
        process.send_signal(signal.SIGINT)  # this session came to nothing
        assert finish(process).code == 130
    (project.root / "build/at-work").unlink()
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        assert "Mind the gap" in prompt.read_text()
        said = ask(project, "note", "Second thoughts").out
        assert re.search(r"saved for the next iteration of run \d", said)
        ask(project, "pause")
        let_go(project)
        wait_for(lambda: seen(project, Paused))
        (project.root / "build/go").unlink()
        (project.root / "build/at-work").unlink()
        ask(project, "resume")
        wait_for(lambda: is_at_work(project))
        assert "Second thoughts" in prompt.read_text()
        assert "Mind the gap" not in prompt.read_text()
        let_go(project)
        assert finish(process).code == 0
    assert "Three is a crowd" in prompt.read_text()
    told = [(event.iteration, event.text) for event in project.events() if isinstance(event, Guided)]
    assert told == [(1, "Mind the gap"), (1, "Mind the gap"), (2, "Second thoughts"), (3, "Three is a crowd")]
    assert not list(project.state.glob("*/plans/*/notes/*.json"))


def test_a_review_does_not_use_up_a_note_for_every_story(tmp_path: Path) -> None:
    scenario = Scenario(
        "tasks.json",
        {"US-001": "Say it"},
        """stories:
  US-001:
    - implement: [{write: {path: src/one.txt, text: one}}, claim]
      review: [{verdict: {what: changes_requested, feedback: more words}}]
      fix: [{write: {path: src/two.txt, text: two}}, claim]
    - review: [{verdict: approved}]
""",
        [],
        config=CONFIG.replace("{enabled: false}", "{enabled: true}"),
    )
    made = LoopProject.make(tmp_path / "made", scenario)
    assert run_ralph(made, "run", "--once").code in (0, 1)
    ask(made, "note", "Mind the gap")
    ask(made, "note", "--story", "US-001", "Only once")
    assert run_ralph(made).code == 0
    told = [(event.iteration, event.text) for event in made.events() if isinstance(event, Guided)]
    assert told == [(1, "Mind the gap"), (1, "Only once"), (2, "Mind the gap")]
    modes = [event.mode.value for event in made.events() if isinstance(event, IterationEnded)]
    assert modes == ["implement", "review", "fix", "review"]


def test_a_run_in_a_worktree_is_found_from_the_workspace(project: LoopProject) -> None:
    ask(project, "note", "Said before there was a worktree")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "clean")
    script = SCRIPT.replace(GATE, "touch $HOME/at-work; while ! test -e $HOME/go; do sleep 0.02; done")
    script = script.replace("build/prompt.txt", str(project.home / "prompt.txt"))
    with running(project, "--worktree", script=script) as process:
        wait_for((project.home / "at-work").exists)
        assert "Said before" in (project.home / "prompt.txt").read_text()
        assert "pauses after iteration 1" in ask(project, "pause").out
        assert "no pause" not in ask(project, "resume").out
        assert "stops after iteration 1" in ask(project, "stop").out
        ask(project, "note", "--story", "US-003", "For later")
        (project.home / "go").touch()
        assert finish(process).code == 1
    assert "For later" in person(project, "prompt", "--story", "US-003").out, "what was not used comes back"


def test_a_run_that_cannot_hear_is_told_of_as_such(project: LoopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_PATIENCE", 0.3)
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        process.send_signal(signal.SIGSTOP)
        try:
            done = person(project, "pause")
        finally:
            process.send_signal(signal.SIGCONT)
        assert done.code == 0
        assert "has not reacted yet" in done.err
        wait_for(lambda: seen(project, Asked))
        let_go(project)
        wait_for(lambda: seen(project, Paused))
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130


def test_without_a_run_an_order_is_refused_with_what_to_do(project: LoopProject) -> None:
    for verb in ("pause", "resume", "stop"):
        done = person(project, verb)
        assert done.code == 64
        assert "no active run on" in done.err
        assert "`ralph run` starts one" in done.err
    done = person(project, "pause", RALPH_LOOP="1")
    assert done.code == 78
    assert "an agent in a loop cannot pause its own run" in done.err
    assert "no plan (none)" in person(project, "pause", "-f", "none").err
    assert person(project, "note", " ").code == 64
    done = person(project, "note", "--story", "US-00", "…")
    assert (done.code, "US-00" in done.err) == (64, True)


def test_with_several_runs_it_has_to_be_said_which(project: LoopProject, tmp_path: Path) -> None:
    other = project.root / ".ralph/others/tasks.json"
    other.parent.mkdir()
    other.write_text(project.plan.read_text())
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "another plan")
    script = SCRIPT.replace(GATE, "touch $HOME/at-work-$RALPH_RUN; while ! test -e $HOME/go; do sleep 0.02; done")
    script = script.replace("build/prompt.txt", str(project.home / "prompt.txt"))
    with running(project, "-f", "words", script=script) as first:
        wait_for(lambda: len(list(project.home.glob("at-work-*"))) == 1)
        assert "pauses after" in ask(project, "pause").out, "the only run is meant, although there are two plans"
        with running(project, "-f", "others", "--worktree", script=script) as second:
            wait_for(lambda: second.poll() is not None or len(list(project.home.glob("at-work-*"))) == 2)
            assert second.poll() is None, finish(second).out[-900:]
            done = person(project, "stop")
            assert done.code == 64
            assert "2 active runs" in done.err
            assert "in a worktree" in done.err
            assert "stops after" in ask(project, "stop", "-f", "others").out
            run = ask(project, "stop", "-f", "words", "--json").out
            assert '"state": "stopping"' in run
            (project.home / "go").touch()
            assert finish(second).code == 1
            assert finish(first).code == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_quit_key_pauses_and_lets_go_on(project: LoopProject) -> None:
    terminal = Terminal(project, "run")
    wait_for(lambda: is_at_work(project), 20)
    terminal.press(b"\x1c")
    terminal.until("pauses after this iteration")
    let_go(project)
    terminal.until("paused for")
    assert not project.events()[-1:] or isinstance(project.events()[-1], Paused)
    terminal.press(b"\x1c")
    assert terminal.end() == 0, terminal.text[-2000:]
    assert "resumed after" in terminal.text
    assert not re.search(r"\d\d:\d\d:\d\d ", terminal.plain), "times are for logs"
    assert [event.by for event in project.events() if isinstance(event, Asked)] == ["Ctrl-\\", "Ctrl-\\"]


def test_a_complete_file_does_not_end_a_run_with_open_stories(project: LoopProject) -> None:
    let_go(project)
    (project.root / ".ralph/COMPLETE").touch()
    done = run_ralph(project, "run", "--plain", "--once")
    assert done.code == 0
    assert done.out.count("removed .ralph/COMPLETE: there are open stories") == 1
    assert not (project.root / ".ralph/COMPLETE").exists()


def test_a_waiting_file_ends_a_run_before_its_next_iteration(project: LoopProject) -> None:
    with running(project) as process:
        wait_for(lambda: is_at_work(project))
        ask(project, "pause")
        let_go(project)
        wait_for(lambda: seen(project, Paused))
        (project.root / ".ralph/WAITING").write_text("Look at the colours\n")
        ask(project, "resume")
        done = finish(process)
    assert done.code == 3
    assert project.events()[-1] == RunEnded(Reason.WAITING, "Look at the colours")
