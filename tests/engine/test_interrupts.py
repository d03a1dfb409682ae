"""Signals at every stage of a run, an agent that outlives a killed loop, and two runs at once."""

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

from ralph.core.events import AgentStarted, IterationEnded, Recovered, RunEnded, WaitStarted
from ralph.core.moves import BY_SIGNAL
from ralph.core.verdict import Kind
from support import stunts
from support.loops import CHECK, LoopProject, finish, run_ralph, start_ralph, whole
from support.processes import wait_for

pytestmark = pytest.mark.slow

SLOW_CHECK = 'if test -e "$HOME/slow"; then touch build/checking; sleep 300; fi\n' + CHECK
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}


def script(*actions: str) -> str:
    lines = "".join(f"        - {action}\n" for action in actions)
    start = f"acts: {stunts.__file__}\nstories:\n  '*':\n    - implement:\n"
    return f"{start}        - write: {{path: src/half.txt, text: half}}\n{lines}"


BUSY = script("write: {path: build/ready, text: ''}", "silent")
STUBBORN = script("daemon: {ignore_term: true}", "write: {path: build/ready, text: ''}", "hang")
LIMITED = script("limit: {seconds: 300}")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LoopProject]:
    made = LoopProject.make(tmp_path / "loop", whole("tasks.json")._replace(check=SLOW_CHECK))
    yield made
    for pid in made.processes():  # a failed test must not leave a sleeper behind
        os.kill(pid, signal.SIGKILL)


@contextmanager
def running(project: LoopProject, script: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """`ralph run`, with another script than the next run has."""
    path = project.home / "script.yaml"
    path.write_text(script or project.scenario.script)
    process = start_ralph(project, "run", "--plain", "--agent-script", str(path))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def has(project: LoopProject, kind: type) -> bool:
    return any(isinstance(event, kind) for event in project.events())


def goes_on(project: LoopProject, *flags: str) -> None:
    """The next run does the first story, with an agent that behaves."""
    (project.home / "slow").unlink(missing_ok=True)
    done = run_ralph(project, "run", "--plain", "--once", *flags)
    notes = [line for line in done.err.splitlines() if "its terminal was closed" not in line]
    assert (done.code, notes) == (0, [])
    assert project.git("log", "--grep", "^feat", "--format=%s") == "feat(US-001): Say one"
    assert not (project.root / "src/half.txt").exists()
    assert project.health() == []
    assert project.processes() == []


def was_interrupted(project: LoopProject, code: int) -> None:
    *_, last = project.events()
    assert isinstance(last, RunEnded)
    assert last.reason in BY_SIGNAL
    assert last.reason.exit_code == code
    assert project.processes() == []
    assert project.git("status", "--porcelain", "src") == ""
    assert run_ralph(project, "status").code == 0


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_the_agent_saves_its_work_and_exits(project: LoopProject, number: int) -> None:
    with running(project, BUSY) as process:
        wait_for((project.root / "build/ready").exists)
        process.send_signal(number)
        assert finish(process).code == SIGNALS[signal.Signals(number)]
    was_interrupted(project, process.returncode)
    ended = [event for event in project.events() if isinstance(event, IterationEnded)]
    assert [event.kind for event in ended] == [Kind.INTERRUPTED]
    assert project.git("show", f"{ended[0].rescue}:src/half.txt") == "half"
    goes_on(project)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_a_check_that_would_take_minutes(project: LoopProject, number: int) -> None:
    (project.home / "slow").touch()
    with running(project) as process:
        wait_for((project.root / "build/checking").exists)
        begun = time.monotonic()
        process.send_signal(number)
        assert finish(process).code == SIGNALS[signal.Signals(number)]
        assert time.monotonic() - begun < 30
    was_interrupted(project, process.returncode)
    goes_on(project)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_a_wait_at_once(project: LoopProject, number: int) -> None:
    with running(project, LIMITED) as process:
        wait_for(lambda: has(project, WaitStarted))
        begun = time.monotonic()
        process.send_signal(number)
        assert finish(process).code == SIGNALS[signal.Signals(number)]
        assert time.monotonic() - begun < 10
    was_interrupted(project, process.returncode)
    goes_on(project, "--reset-circuit")  # which also forgets the limit: the next run would wait for it


def test_a_second_interrupt_does_not_wait_for_an_agent_that_does_not_listen(project: LoopProject) -> None:
    with running(project, STUBBORN) as process:
        wait_for((project.root / "build/ready").exists)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)  # two in a moment count as one
        assert process.poll() is None
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130
        assert time.monotonic() - begun < 8  # its grace would be ten seconds
    was_interrupted(project, 130)
    goes_on(project)


def kill(process: subprocess.Popen[bytes], *, watchdog: bool) -> None:
    """`kill -9`, of its watchdog first if that is wanted."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    dogs = [int(pid) for pid in children if b"ralph.host.process.watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(dogs) == 1
    if watchdog:
        os.kill(dogs[0], signal.SIGKILL)
    process.kill()
    process.communicate()


def test_what_a_killed_run_started_ends_with_it(project: LoopProject) -> None:
    with running(project, STUBBORN) as process:
        wait_for((project.root / "build/ready").exists)
        assert len(project.processes()) == 3
        kill(process, watchdog=False)
    wait_for(lambda: project.processes() == [], 5)
    goes_on(project)


def test_the_check_of_a_killed_run_ends_with_it(project: LoopProject) -> None:
    (project.home / "slow").touch()
    with running(project) as process:
        wait_for((project.root / "build/checking").exists)
        kill(process, watchdog=False)
    wait_for(lambda: project.processes() == [], 5)
    goes_on(project)


def test_the_run_after_a_killed_one_ends_what_its_agent_left_behind(project: LoopProject) -> None:
    """Without a watchdog the system still ends the agent itself."""
    with running(project, STUBBORN) as process:
        wait_for((project.root / "build/ready").exists)
        kill(process, watchdog=True)
    wait_for(lambda: len(project.processes()) == 1, 5)
    goes_on(project)
    told = [event for event in project.events() if isinstance(event, Recovered)]
    assert len(told) == 1
    assert "killed 1 process of" in told[0].what
    assert "the work is in refs/ralph/rescue/" in told[0].what


def test_the_run_after_a_killed_one_ends_its_check(project: LoopProject) -> None:
    (project.home / "slow").touch()
    with running(project) as process:
        wait_for((project.root / "build/checking").exists)
        kill(process, watchdog=True)
    assert project.processes()
    goes_on(project)


def test_of_two_runs_at_once_one_runs_and_the_other_says_who_has_the_plan(project: LoopProject) -> None:
    with running(project, BUSY) as process:
        wait_for((project.root / "build/ready").exists)
        other = run_ralph(project)
        assert other.code == 73
        assert f"(pid {process.pid})" in other.err
        assert re.search(r"run \d{8}-\d{6}-[0-9a-f]{4}", other.err)
        assert len(project.journals()) == 1
        process.terminate()
        assert finish(process).code == 143
    goes_on(project)


def test_of_two_runs_started_in_the_same_moment_exactly_one_runs(project: LoopProject) -> None:
    with running(project) as first, running(project) as second:
        done = [finish(first), finish(second)]
    assert sorted(each.code for each in done) in ([0, 73], [0, 0])
    started = [event for event in project.events() if isinstance(event, AgentStarted)]
    assert len(started) == len(project.scenario.attempts)
    assert project.health() == []
    assert project.processes() == []
