"""Runs without a terminal: `ralph run --detach`, and a terminal that is closed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from ralph.core.events import AgentStarted, Event, IterationEnded, RunEnded, RunStarted
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from support.loops import CONFIG, LoopProject, Scenario, run_ralph
from support.terminals import Terminal

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
E = TypeVar("E", bound=Event)
SCRIPT = """\
stories:
  US-001:
    - implement:
        - write: {path: src/one.txt, text: "one\\n"}
        - run: while [ ! -e ../go ]; do sleep 0.05; done
        - claim: done
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[LoopProject]:
    scenario = Scenario("feature", {"US-001": "Say one"}, SCRIPT, [], config=CONFIG)
    project = LoopProject.make(tmp_path / "made", scenario)
    yield project
    pids = [event.pid for event in events(project, RunStarted)]
    for pid in (*pids, *project.processes()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def events(project: LoopProject, kind: type[E]) -> list[E]:
    return [event for event in project.events() if isinstance(event, kind)]


def wait_for(is_so: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def let_go(project: LoopProject) -> None:
    (project.folder / "go").touch()


def test_a_detached_run_continues_to_its_end(made: LoopProject) -> None:
    started = run_ralph(made, "run", "--detach")
    assert started.code == 0, started.err
    (run,) = events(made, RunStarted)
    assert f"run {run.run} started in the background (pid {run.pid})" in started.out
    assert "ralph watch" in started.out
    assert "ralph stop" in started.out
    assert os.getsid(run.pid) == run.pid, "its own session"
    let_go(made)
    watched = run_ralph(made, "watch")
    assert watched.code == 0
    assert events(made, RunEnded)[-1].reason is Reason.COMPLETE
    log = Path(started.out.split()[-1])
    wait_for(lambda: "every story is done" in log.read_text())
    assert "✓ accepted US-001" in log.read_text()


def test_a_detached_run_survives_its_terminal(made: LoopProject) -> None:
    terminal = Terminal(made, "run", "--detach")
    terminal.until("started in the background")
    assert terminal.hang_up() in (0, -signal.SIGHUP), "the launcher has nothing left to do"
    (run,) = events(made, RunStarted)
    time.sleep(0.3)
    os.kill(run.pid, 0)
    let_go(made)
    wait_for(lambda: events(made, RunEnded))
    assert events(made, RunEnded)[-1].reason is Reason.COMPLETE


def test_what_keeps_a_run_from_starting_is_said_by_the_launcher(made: LoopProject) -> None:
    untrusted = run_ralph(made, "run", "--detach", RALPH_TRUST="")
    assert untrusted.code == 78
    assert "trust" in untrusted.err
    made.write("src/mine.txt", "not committed\n")
    refused = run_ralph(made, "run", "--detach")
    assert refused.code == 78
    assert "uncommitted" in refused.err
    assert "src/mine.txt" in refused.err
    assert not events(made, RunStarted)


def test_a_run_that_is_over_at_once_is_shown_by_the_launcher(made: LoopProject) -> None:
    let_go(made)
    assert run_ralph(made, "run").code == 0
    again = run_ralph(made, "run", "--detach")
    assert again.code == 0
    assert "every story is done" in again.out
    assert "started in the background" not in again.out


def test_the_launcher_speaks_json(made: LoopProject) -> None:
    document = json.loads(run_ralph(made, "run", "--detach", "--json").out)
    (run,) = events(made, RunStarted)
    assert (document["run"], document["pid"]) == (run.run, run.pid)
    assert json.loads(Path(document["log"]).read_text().splitlines()[0])["event"]["type"] == "RunStarted"
    stopped = run_ralph(made, "stop", "--now")
    assert stopped.code == 0
    wait_for(lambda: events(made, RunEnded))


def test_a_detached_run_in_a_worktree_is_found_from_the_workspace(made: LoopProject) -> None:
    started = run_ralph(made, "run", "--detach", "--worktree")
    assert started.code == 0, started.err
    run = started.out.split()[1]
    assert f"run {run} works in a worktree: `ralph watch {run}` shows it" in run_ralph(made, "status").err
    assert run_ralph(made, "stop", "--now").code == 0
    watched = run_ralph(made, "watch")
    assert watched.code == 0
    assert run in watched.out
    assert "stopped: interrupted" in watched.out


def test_a_detached_run_that_is_killed_is_said_to_be_dead(made: LoopProject) -> None:
    assert run_ralph(made, "run", "--detach").code == 0
    (run,) = events(made, RunStarted)
    wait_for((made.root / "src" / "one.txt").exists)
    os.kill(run.pid, signal.SIGKILL)
    watched = run_ralph(made, "watch")
    assert watched.code == 1
    assert f"run {run.run} died after" in watched.err
    assert "the next `ralph run` saves its work under refs/ralph/rescue/ and undoes it" in watched.err
    let_go(made)
    done = run_ralph(made, "run", "--plain")
    assert done.code == 0
    assert "recovered" in done.out
    assert made.rescues()


def test_a_closed_terminal_ends_the_run_in_good_order_and_is_explained(made: LoopProject) -> None:
    terminal = Terminal(made, "run")
    wait_for(lambda: events(made, AgentStarted))
    wait_for((made.root / "src/one.txt").exists)
    assert terminal.hang_up() == 143
    assert events(made, RunEnded)[-1].reason is Reason.TERMINAL_CLOSED
    assert events(made, IterationEnded)[-1].kind is Kind.INTERRUPTED
    assert made.processes() == []
    assert not (made.root / "src/one.txt").exists()
    explained = "the last run ended because its terminal was closed; `ralph run --detach` survives that"
    assert explained in run_ralph(made, "status").out
    let_go(made)
    done = run_ralph(made, "run", "--plain")
    assert done.code == 0
    assert explained in done.err
    assert explained not in run_ralph(made, "status").out
    assert not list(made.state.glob("**/error-*.log"))
