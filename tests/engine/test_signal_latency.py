"""A signal is noticed within two seconds whatever a run waits for, and a second one ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.core.control import Verb
from ralph.core.events import AgentStarted, Asked, IterationEnded, RunEnded
from ralph.core.verdict import Kind
from support import stunts
from support.loops import CHECK, LoopProject, finish, run_ralph, start_ralph, whole
from support.processes import wait_for

DEAF = f"""acts: {stunts.__file__}
stories: {{'*': [{{implement: [daemon: {{ignore_term: true}}, write: {{path: build/ready, text: ''}}, hang]}}]}}
"""
NOTICED = 2.0
ECHO = 0.2
"""Two signals in a moment count as one."""
STUBBORN = "trap '' TERM INT HUP\n"


def hang(project: Path) -> str:
    """Shell lines that wait for ever, once the file `slow` is there, and ignore every polite signal."""
    home = project / "loop/home"
    return f"{STUBBORN}if test -e {home}/slow; then touch {home}/reached; while :; do sleep 1; done; fi\n"


@contextmanager
def running(project: LoopProject, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    (project.home / "slow").touch()
    process = start_ralph(project, *(arguments or ("run", "--plain")))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        for pid in project.processes():
            os.kill(pid, signal.SIGKILL)


def reached(project: LoopProject) -> bool:
    return (project.home / "reached").exists()


def wait_for_line(process: subprocess.Popen[bytes], pattern: str) -> float:
    """Seconds until the run prints a line like that, or ends."""
    assert process.stdout is not None
    begun = time.monotonic()
    for line in process.stdout:
        if re.search(pattern, line.decode()):
            break
    return time.monotonic() - begun


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_run_says_at_once_that_it_is_stopping(tmp_path: Path, number: int, word: str) -> None:
    """Its agent may take ten seconds to end."""
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    (project.home / "script.yaml").write_text(DEAF)
    with running(project, "run", "--plain", "--agent-script", str(project.home / "script.yaml")) as process:
        wait_for((project.root / "build/ready").exists)
        process.send_signal(number)
        assert wait_for_line(process, f"{word}: stopping; the agent's work is saved") < NOTICED
        assert process.poll() is None
        time.sleep(ECHO)
        process.send_signal(number)
        begun = time.monotonic()
        assert finish(process).code == (130 if number == signal.SIGINT else 143)
        assert time.monotonic() - begun < 5
    *_, last = project.events()
    assert isinstance(last, RunEnded)
    assert [event for event in project.events() if isinstance(event, Asked)] == [Asked(Verb.STOP_NOW, word)]


def test_a_second_signal_ends_a_git_command_that_hangs(tmp_path: Path) -> None:
    """A clean filter of the project waits for ever: git would be given ten minutes."""
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    (project.home / "filter.sh").write_text(hang(tmp_path) + "cat\n")
    project.git("config", "filter.slow.clean", f"sh {project.home}/filter.sh")
    project.write(".gitattributes", "src/one.txt filter=slow\n")
    project.git("add", ".gitattributes")
    project.git("commit", "-q", "-m", "a filter", "--", ".gitattributes")
    with running(project) as process:
        wait_for(lambda: reached(project))
        process.send_signal(signal.SIGTERM)
        assert wait_for_line(process, "SIGTERM: stopping") < NOTICED
        time.sleep(ECHO)
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        done = finish(process)
        assert time.monotonic() - begun < 5
        assert done.code == 143
        assert "was ended: the run was asked twice to stop" in done.err
        assert "the next `ralph run` closes the iteration" in done.err
        wait_for(lambda: project.processes() == [], 5)  # the filter, too
    (project.home / "slow").unlink()
    done = run_ralph(project)
    assert done.code == 0, done.err
    assert project.health() == []
    counted = [event.kind for event in project.events() if isinstance(event, IterationEnded)]
    assert Kind.CRASHED not in counted


def test_a_command_that_is_stopped_gets_a_second_to_end(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json")._replace(check=hang(tmp_path) + CHECK))
    with running(project) as process:
        wait_for(lambda: reached(project))
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130
        assert time.monotonic() - begun < NOTICED
    assert project.processes() == []


def test_a_signal_at_the_end_of_a_run_ends_a_notification_that_hangs(tmp_path: Path) -> None:
    scenario = whole("tasks.json")
    notify = f"notify: {{command: sh {tmp_path}/notify.sh, timeout: 60s}}\n"
    project = LoopProject.make(tmp_path / "loop", scenario._replace(config=scenario.config + notify))
    (tmp_path / "notify.sh").write_text(hang(tmp_path))
    with running(project, "run", "--plain", "--once") as process:
        wait_for(lambda: reached(project))
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert finish(process).code == 0  # the run itself was over
        assert time.monotonic() - begun < 6  # a minute without a signal; three seconds if it came just before the end


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for this signal."""
    [mask] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def test_a_signal_ends_the_recovery_of_a_run_whose_agent_does_not_listen(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    (project.home / "script.yaml").write_text(DEAF)
    with running(project, "run", "--plain", "--agent-script", str(project.home / "script.yaml")) as process:
        wait_for((project.root / "build/ready").exists)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in children:
            if b"ralph.host.process.watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
        process.kill()
        process.communicate()
        assert project.processes()
        with running(project) as second:
            wait_for(lambda: catches(second.pid, signal.SIGTERM))
            time.sleep(0.5)  # it waits five seconds for what the agent left
            begun = time.monotonic()
            second.send_signal(signal.SIGINT)
            done = finish(second)
            assert (done.code, done.err.splitlines()[0]) == (130, "stopping")
            assert time.monotonic() - begun < 4
    assert len([event for event in project.events() if isinstance(event, AgentStarted)]) == 1


def test_a_signal_while_a_long_plan_is_read_ends_the_run_before_it_starts(tmp_path: Path) -> None:
    stories = {f"US-{number:05}": f"Say {number}" for number in range(1, 20_001)}
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json")._replace(stories=stories))
    with running(project) as process:
        wait_for(lambda: list(project.state.glob("*/plans/*/run.lock")))
        process.send_signal(signal.SIGTERM)
        done = finish(process)
    assert (done.code, done.out) == (143, "")
    assert done.err == "stopping\nralph: stopped before the run started\n"
    assert project.journals() == []


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end of a pipe that takes nothing more, because nobody reads the other."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: signal.Signals(number).name)
@pytest.mark.parametrize("command", [("run", "--plain"), ("status",)], ids=lambda words: str(words[0]))
def test_a_signal_ends_a_command_whose_output_nobody_reads(
    tmp_path: Path, command: tuple[str, ...], number: signal.Signals
) -> None:
    """A pager that was left alone, or a terminal after Ctrl-S."""
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    with full_pipe() as pipe:
        argv = [sys.executable, "-m", "ralph", *command]
        process = subprocess.Popen(argv, cwd=project.root, env=project.env, stdout=pipe, stderr=subprocess.PIPE)
        try:
            time.sleep(1.5)
            assert process.poll() is None
            begun = time.monotonic()
            process.send_signal(number)
            _, errors = process.communicate(timeout=10)
            assert time.monotonic() - begun < NOTICED
        finally:
            process.kill()
    assert process.returncode in (-number, 128 + number)
    assert errors == b""
